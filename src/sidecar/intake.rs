//! Takes files in: what is known of the two lanes, and what keeps them from being read.

use super::intake_item::IntakeItem;
use crate::core::text::sanitise;
use crate::core::time::{Deadline, Now};
use crate::limits;
use crate::spool::watch::Checked;
use crate::spool::{Error, Finished, HoldReason, IncomingFile, Lane, RejectOutcome, Scan, Spool, SpoolWatch, Why};

/// The most files of one lane, and the most other inputs, in one commit.
pub(super) const BATCH: usize = 256;
/// The most bytes of one lane's files in one commit.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// The pause before a spool that can't be read is tried again, in milliseconds.
const UNREADABLE_MS: u64 = 1_000;

#[derive(Debug, Default)]
pub(super) struct Intake {
    /// A lane may hold files that were not looked at yet.
    pub(super) files: bool,
    /// When an incomplete file is looked at again.
    pub(super) look_again: Option<Deadline>,
    /// The number of the latest listing of `events/` that has begun.
    pub(super) events_listing: u64,
    /// Why something that a file depends on could not be looked up just now.
    pub(super) unavailable: Option<String>,
    /// The next scan of `requests/` also makes a probe.
    pub(super) probe: bool,
    /// All events that lay in `events/` at the start were taken.
    pub(super) took_events: bool,
    /// All requests were taken that lay in `requests/` when it became known whether tmux answers.
    pub(super) took_requests: bool,
    /// What lay in both lanes at the start is decided.
    pub(super) drained: bool,
    /// A lane can't be read, or not all of it: deaths and deadlines that wait do not wake the loop, which looks again
    /// after a pause.
    unreadable: bool,
    /// Why files can't be taken from the spool at the moment.
    pub(super) problem: Option<String>,
    /// What is wrong with the spool's folders at the moment.
    pub(super) folder_problem: Option<String>,
    /// Folders of views were removed or replaced: all views are to be written again.
    pub(super) views_lost: bool,
    /// The number of the next file that goes to `rejected/`.
    rejected: u64,
    /// Why bad files stay in the spool at the moment.
    pub(super) hold_reason: Option<HoldReason>,
}

impl Intake {
    /// At the start the whole spool waits. `rejected`: one more than the highest number of a rejected file.
    pub(super) fn new(rejected: u64) -> Intake {
        Intake { files: true, rejected, ..Intake::default() }
    }

    /// Whether a look into the lanes may release deaths and deadlines that wait. If not, they do not wake the loop.
    pub(super) fn may_release(&self) -> bool {
        self.drained && !self.unreadable
    }

    /// Whether files that lay in the lanes at the start are still to be taken, and the lanes can be read.
    pub(super) fn is_draining(&self) -> bool {
        !self.drained && !self.unreadable
    }

    /// Checks that the folders which are held open are still those of the spool, and that no other user can open them.
    /// If not, nothing is taken in.
    pub(super) fn check_folders(&mut self, folders: &mut SpoolWatch, spool: &mut Spool) {
        match folders.check(spool) {
            Ok(checked) => {
                self.folder_problem = None;
                self.views_lost |= checked == Checked::ViewsLost;
                if checked != Checked::Same {
                    tracing::info!("opened or watched folders of the spool again");
                }
            }
            Err(error) => self.folder_problem = Some(error.to_string()),
        }
    }

    pub(super) fn begin_look(&mut self) {
        self.files = false;
        self.look_again = None;
        self.problem = None;
        self.unreadable = false;
    }

    /// Scans a lane. Returns `None` if it can't be read. That is not the same as an empty lane: no listing of it then
    /// counts as taken whole.
    pub(super) fn scan(&mut self, folders: &mut SpoolWatch, spool: &mut Spool, lane: Lane, now: &Now) -> Option<Scan> {
        // While the folders are wrong, answers would be written where nobody looks, and the files in the folders that
        // are held open may not be meant for us.
        if self.folder_problem.is_some() {
            self.check_folders(folders, spool);
            if self.folder_problem.is_some() {
                self.problem.clone_from(&self.folder_problem);
                self.unreadable = true;
                self.look_again_in(now, UNREADABLE_MS);
                return None;
            }
        }
        // In a shortage, what a request depends on could not be looked up either, and would be taken for missing.
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
                tracing::error!(%error, "could not read the spool");
                self.problem = Some(error);
                self.unreadable = true;
                self.look_again_in(now, UNREADABLE_MS);
                None
            }
        }
    }

    /// Something that a file depends on can't be looked up: the file stays in its lane, and so do the files behind it.
    pub(super) fn defer(&mut self, spool: &mut Spool, lane: Lane, why: String, now: &Now) {
        tracing::warn!(why, "could not look up what an event or a request depends on; its file waits in the spool");
        self.problem = Some(why);
        self.unreadable = true;
        self.took_events &= lane != Lane::Events;
        self.took_requests = false;
        // Requests that the same scan has found come after the events that wait.
        spool.list_again(lane);
        spool.list_again(Lane::Requests);
        self.look_again_in(now, UNREADABLE_MS);
    }

    fn look_again_in(&mut self, now: &Now, ms: u64) {
        if self.look_again.is_none_or(|other| other.remaining_ms(now) > ms) {
            self.look_again = Some(Deadline::after(now, ms));
        }
    }

    /// Removes a file from the spool once its content is durable. A file that could not be taken goes to `rejected/`
    /// unchanged.
    pub(super) fn finish_file(&mut self, spool: &mut Spool, item: &IntakeItem, now: &Now) {
        let moved = match &item.why {
            None => spool.finish(&item.found).map(|disposed| disposed != Finished::Changed),
            Some(why) => self.reject(spool, &item.found, why, now).map(|()| true),
        };
        match moved {
            Ok(true) => {}
            Ok(false) => self.files = true,
            Err(error) if item.why.is_none() => {
                if spool.hold_handled(&item.found, &error, now) {
                    tracing::warn!(%error, "could not move a file out of the spool after it was handled");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "could not look at a bad file in the spool");
                // Without a pause, the next cycle would find the file again at once.
                self.files = false;
                self.look_again_in(now, UNREADABLE_MS);
            }
        }
    }

    fn reject(&mut self, spool: &mut Spool, found: &IncomingFile, why: &Why, now: &Now) -> Result<(), Error> {
        match spool.reject(self.rejected, found, why, now)? {
            RejectOutcome::Moved(_) => {
                self.rejected += 1;
                tracing::warn!(
                    name = %sanitise(&found.name.to_string_lossy()),
                    code = why.code,
                    field = why.field.as_deref().map(sanitise),
                    "a file in the spool could not be taken: it is in rejected/, with the reason beside it"
                );
            }
            RejectOutcome::Gone => {}
            RejectOutcome::Deleted => {
                tracing::error!(
                    name = %sanitise(&found.name.to_string_lossy()),
                    "so many bad files could not be moved to rejected/ that this file was deleted"
                );
            }
            RejectOutcome::Held(reason) => {
                if self.hold_reason != Some(reason) {
                    tracing::warn!("{}", held_files(reason));
                }
                self.hold_reason = Some(reason);
            }
        }
        Ok(())
    }
}

/// What the heartbeat and the log say about bad files that stay in the spool.
pub(super) fn held_files(reason: HoldReason) -> &'static str {
    match reason {
        HoldReason::Full => "rejected/ is full: bad files stay in the spool until it is emptied",
        HoldReason::NotMoved => {
            "a bad file could not be moved to rejected/: it stays in the spool, and tasuki tries again every 5 seconds"
        }
    }
}

/// What the heartbeat says about handled files that stay in the spool.
pub(super) fn unmoved_files(why: &str) -> String {
    format!("{why}; handled files stay in the spool and don't count again; tasuki tries again every 5 seconds")
}
