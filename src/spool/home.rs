//! The spool of one home: its folders, and what is remembered of each.

use super::age::{Ager, Old};
use super::dirs::{SpoolDir, SpoolDirs};
use super::error::Error;
use super::lane::{Lane, LaneState};
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
    sweeper: Sweeper,
    ager: Ager,
    pub(super) reserve: Reserve,
}

impl Spool {
    /// Opens the folders of a home, making those that are missing with mode 0700, and sets the umask of the process to
    /// 077.
    ///
    /// # Errors
    /// [`ErrorKind::NotAllowed`](super::ErrorKind) if another user could read or change them; `Layout` if they are
    /// links or lie on several file systems; else the system's.
    pub fn open(home: &Path) -> Result<Spool, Error> {
        let mut spool = Spool {
            dirs: SpoolDirs::open(home)?,
            requests: LaneState::default(),
            events: LaneState::default(),
            rejected: Rejected::default(),
            sweeper: Sweeper::default(),
            ager: Ager::default(),
            reserve: Reserve::default(),
        };
        // Where it can't be kept now, it is kept when the view was written.
        let _ = spool.reserve.keep(spool.dirs.dir(SpoolDir::View));
        Ok(spool)
    }

    /// The home folder, absolute and without links.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.dirs.home()
    }

    /// Opens everything again after folders were moved or replaced. On an error the old ones stay in use.
    ///
    /// # Errors
    /// As for [`Spool::open`].
    pub fn reopen(&mut self) -> Result<(), Error> {
        *self = Spool::open(self.dirs.home())?;
        Ok(())
    }

    /// Looks at the next `max` views of history and files of texts in turn, and removes those that are old and that
    /// `is_wanted` does not want; returns how many it removed.
    pub fn age(&mut self, max: usize, now: &Now, is_wanted: impl Fn(Old<'_>) -> bool) -> usize {
        self.ager.age(&self.dirs, max, now, is_wanted)
    }

    /// Whether one round over all old files has ended, and no new round has begun.
    #[must_use]
    pub fn is_aged(&self) -> bool {
        self.ager.is_aged()
    }

    /// Looks at the next `max` files of `tmp/` and `results/` in turn and removes those that are too old; returns how
    /// many it removed.
    pub fn sweep(&mut self, max: usize, now: &Now) -> usize {
        self.sweeper.sweep(&self.dirs, max, now)
    }

    /// Whether both were looked through to the end, and no new round was begun.
    #[must_use]
    pub fn is_swept(&self) -> bool {
        self.sweeper.is_swept()
    }

    /// Where tests say when a file was changed, which only the kernel can otherwise.
    #[cfg(test)]
    pub(crate) fn play_file_times(&mut self, played: fn(i64) -> i64) {
        self.dirs.file_times = Some(played);
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
