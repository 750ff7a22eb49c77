//! Taking files in: what is known of the two lanes, and what keeps them from being read.

use super::taken::Taken;
use crate::core::text::sanitise;
use crate::core::time::{Deadline, Now};
use crate::limits;
use crate::spool::watch::Checked;
use crate::spool::{Disposed, Error, Found, Lane, RejectOutcome, Scan, Spool, Watch, Why};

/// Most files of one lane, and most other events, in one commit.
pub(super) const BATCH: usize = 256;
/// Most bytes of one lane's files in one commit.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// When a spool that can't be read is looked at again, in milliseconds.
const UNREADABLE_MS: u64 = 1_000;

/// What is known of the lanes.
#[derive(Debug, Default)]
pub(super) struct Intake {
    pub(super) files: bool,
    /// When a file that was not complete is to be looked at again.
    pub(super) look_again: Option<Deadline>,
    /// Listings of the events that have begun.
    pub(super) listing: u64,
    /// Why what a file depends on could not be looked at just now.
    pub(super) untold: Option<String>,
    /// The next look at the requests takes a probe with it.
    pub(super) probe: bool,
    /// All events that lay there at the start were taken.
    pub(super) took_events: bool,
    /// All requests that lay there when tmux was known were taken.
    pub(super) took_requests: bool,
    /// What lay in both lanes at the start is decided.
    pub(super) drained: bool,
    /// A lane can't be read: nothing that waits for an empty one is judged.
    unreadable: bool,
    /// Why the spool can't be read, while it can't.
    pub(super) problem: Option<String>,
    /// What is wrong with the folders, while it is.
    pub(super) folder_problem: Option<String>,
    /// The number of the next file that goes to `rejected/`.
    rejected: u64,
    /// `rejected/` is full.
    pub(super) rejected_full: bool,
}

impl Intake {
    /// At the start the whole spool waits. `rejected`: the first number that no rejected file bears.
    pub(super) fn new(rejected: u64) -> Intake {
        Intake { files: true, rejected, ..Intake::default() }
    }

    /// Whether what waits for an empty lane can be judged.
    pub(super) fn judges(&self) -> bool {
        self.drained && !self.unreadable
    }

    /// Whether a lane of the start is still to be read, and can be.
    pub(super) fn is_draining(&self) -> bool {
        !self.drained && !self.unreadable
    }

    /// Looks whether the folders are those that are held, and nobody else can get at them; while not, nothing is taken in.
    pub(super) fn check_folders(&mut self, folders: &mut Watch, spool: &mut Spool) {
        match folders.check(spool) {
            Ok(checked) => {
                self.folder_problem = None;
                if checked == Checked::Rescan {
                    tracing::info!("folders were opened or watched anew");
                }
            }
            Err(error) => self.folder_problem = Some(error.to_string()),
        }
    }

    /// A look at the lanes begins.
    pub(super) fn begin_look(&mut self) {
        self.files = false;
        self.look_again = None;
        self.problem = None;
        self.unreadable = false;
    }

    /// What lies in a lane; none if it can't be read, which is not the same as empty: then nothing that waits for an
    /// empty lane is judged.
    pub(super) fn scan(&mut self, folders: &mut Watch, spool: &mut Spool, lane: Lane, now: &Now) -> Option<Scan> {
        // Answers would be put where nobody looks, and what lies in the folders that are held is perhaps not meant for us.
        if self.folder_problem.is_some() {
            self.check_folders(folders, spool);
            if self.folder_problem.is_some() {
                self.problem.clone_from(&self.folder_problem);
                self.unreadable = true;
                self.look_again_in(now, UNREADABLE_MS);
                return None;
            }
        }
        // What a request needs to know could not be looked up either, and would be taken for not there.
        let scan = match limits::shortage() {
            Some(why) => Err(why),
            None => spool.scan(lane, BATCH, BATCH_BYTES, now).map_err(|error| error.to_string()),
        };
        match scan {
            Ok(scan) => {
                if let Some(wait) = scan.look_again {
                    self.look_again_in(now, u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
                }
                Some(scan)
            }
            Err(error) => {
                tracing::error!(%error, "the spool can't be read");
                self.problem = Some(error);
                self.unreadable = true;
                self.look_again_in(now, UNREADABLE_MS);
                None
            }
        }
    }

    /// What a file depends on can't be looked at: it lies where it lay, and so do those behind it.
    pub(super) fn put_off(&mut self, spool: &mut Spool, lane: Lane, why: String, now: &Now) {
        tracing::warn!(why, "what an event or a request depends on can't be looked at; it waits");
        self.problem = Some(why);
        self.took_events &= lane != Lane::Events;
        self.took_requests = false;
        spool.begin_again(lane);
        self.look_again_in(now, UNREADABLE_MS);
    }

    fn look_again_in(&mut self, now: &Now, ms: u64) {
        if self.look_again.is_none_or(|other| other.remaining_ms(now) > ms) {
            self.look_again = Some(Deadline::after(now, ms));
        }
    }

    /// A file whose content is durable goes; one that could not be taken goes to `rejected/` whole.
    pub(super) fn put_away(&mut self, spool: &mut Spool, taken: &Taken, now: &Now) {
        let moved = match &taken.why {
            None => spool.dispose(&taken.found).map(|disposed| disposed != Disposed::Changed),
            Some(why) => self.reject(spool, &taken.found, why, now).map(|()| true),
        };
        match moved {
            Ok(true) => {}
            Ok(false) => self.files = true,
            Err(error) => {
                tracing::warn!(%error, "a file that was taken can't be moved");
                self.look_again = Some(Deadline::after(now, UNREADABLE_MS));
            }
        }
    }

    fn reject(&mut self, spool: &mut Spool, found: &Found, why: &Why, now: &Now) -> Result<(), Error> {
        match spool.reject(self.rejected, found, why, now)? {
            RejectOutcome::Moved(_) => self.rejected += 1,
            RejectOutcome::Gone => {}
            RejectOutcome::Dropped => {
                self.rejected_full = true;
                tracing::error!(
                    name = %sanitise(&found.name.to_string_lossy()),
                    "rejected/ is full and the lane is full of bad files: this one was removed"
                );
            }
            RejectOutcome::Full => {
                if !self.rejected_full {
                    tracing::warn!("rejected/ is full: bad files stay where they are until it is emptied");
                }
                self.rejected_full = true;
            }
        }
        Ok(())
    }
}
