//! The spool of one home: its open folders, and what the spool remembers between two calls.

use super::age::{Ager, AgingCandidate};
use super::dirs::{SpoolDir, SpoolDirs};
use super::error::Error;
use super::lane::{Lane, LaneState, Unmoved};
use super::rejected::Rejected;
use super::reserve::Reserve;
use super::sweep::Sweeper;
use crate::core::time::Now;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// The spool, the state folder and the views of one home, held open. Made for one thread.
#[derive(Debug)]
pub struct Spool {
    pub(super) dirs: SpoolDirs,
    pub(super) requests: LaneState,
    pub(super) events: LaneState,
    pub(super) rejected: Rejected,
    /// Why handled files stay in their lanes; `None` if none do.
    pub(super) unmoved: Option<Unmoved>,
    sweeper: Sweeper,
    ager: Ager,
    pub(super) reserve: Reserve,
    /// Whether the folder of the results takes names that differ by case alone for one name; `None` until that was
    /// tried.
    pub(super) folds_case: Option<bool>,
}

impl Spool {
    /// Opens the folders of a home, making those that are missing with mode 0700, and sets the umask of the process to
    /// 077.
    ///
    /// # Errors
    /// [`ErrorKind::NotAllowed`](super::ErrorKind) if another user could read or change them; `Layout` if they are
    /// links or lie on several file systems or mounts; otherwise an I/O error of the system.
    pub fn open(home: &Path) -> Result<Spool, Error> {
        let mut spool = Spool {
            dirs: SpoolDirs::open(home)?,
            requests: LaneState::default(),
            events: LaneState::default(),
            rejected: Rejected::default(),
            unmoved: None,
            sweeper: Sweeper::default(),
            ager: Ager::default(),
            reserve: Reserve::default(),
            folds_case: None,
        };
        // If the reserve can't be made now, the next successful write of the sidecar's view makes it.
        let _ = spool.reserve.keep(spool.dirs.dir(SpoolDir::View));
        Ok(spool)
    }

    /// The home folder, absolute and without links.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.dirs.home()
    }

    /// Opens all folders again after some were moved or replaced. On an error the old ones stay in use. A home or a
    /// state folder that was moved away is not made again. The numbers of listings continue, because the sidecar
    /// compares those from before and after the reopening. Returns whether folders of views were replaced; then
    /// `view/.built` is removed.
    ///
    /// # Errors
    /// As for [`Spool::open`]; also if the home or its state folder is missing.
    pub fn reopen(&mut self) -> Result<bool, Error> {
        self.dirs.check_not_moved_away()?;
        let (requests, events) = (self.requests.listings, self.events.listings);
        let fresh = Spool::open(self.dirs.home())?;
        let views_lost = fresh.dirs.has_other_views(&self.dirs);
        if views_lost {
            fresh.dirs.forget_views()?;
        }
        // The scan that follows finds the handled files that are held, and they are held again.
        let unmoved = self.unmoved.take();
        *self = fresh;
        self.unmoved = unmoved;
        (self.requests.listings, self.events.listings) = (requests, events);
        Ok(views_lost)
    }

    /// Looks at the next `max` views of history and files of texts that were too long to type. Removes those that are
    /// old, unless `is_in_use` says that they are needed. Returns how many it removed.
    pub fn remove_old_views_and_texts(
        &mut self,
        max: usize,
        now: &Now,
        is_in_use: impl Fn(AgingCandidate<'_>) -> bool,
    ) -> usize {
        self.ager.remove_old_views_and_texts(&self.dirs, max, now, is_in_use)
    }

    /// Whether the last pass over views and texts has ended and the next one has not begun.
    #[must_use]
    pub fn is_aging_done(&self) -> bool {
        self.ager.is_aging_done()
    }

    /// Looks at the next `max` files of `tmp/` and `results/`, removes those that are too old, and returns how many it
    /// removed.
    pub fn sweep(&mut self, max: usize, now: &Now) -> usize {
        self.sweeper.sweep(&self.dirs, max, now)
    }

    /// Whether the last pass over `tmp/` and `results/` has ended and the next one has not begun.
    #[must_use]
    pub fn is_swept(&self) -> bool {
        self.sweeper.is_swept()
    }

    /// For tests: computes the change time of a file from its real one, which only the kernel can set.
    #[cfg(all(test, target_os = "linux"))]
    pub(crate) fn set_file_times(&mut self, file_times: fn(i64) -> i64) {
        self.dirs.file_times = Some(file_times);
    }

    pub(super) fn dir(&self, spool_dir: SpoolDir) -> BorrowedFd<'_> {
        self.dirs.dir(spool_dir)
    }

    pub(super) fn path(&self, spool_dir: SpoolDir) -> &Path {
        self.dirs.path(spool_dir)
    }

    pub(super) fn lane(&mut self, lane: Lane) -> &mut LaneState {
        match lane {
            Lane::Requests => &mut self.requests,
            Lane::Events => &mut self.events,
        }
    }
}
