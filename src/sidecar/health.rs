//! The health of the store: after a failure it is left alone for a while, and nothing is decided until it can be read
//! again.

use crate::core::time::{Deadline, Now};
use crate::store::Error;

/// The first pause after a failure of the store, and the longest, in milliseconds.
const PAUSE_MS: (u64, u64) = (200, 5_000);
/// How often it is looked whether all of the state file is read, in milliseconds.
const CHECKING_MS: u64 = 100;

#[derive(Debug, Default)]
pub(super) struct StoreHealth {
    pub(super) failures: u32,
    /// It has failed: it is opened and read again then, and until that works nothing is decided.
    pub(super) again: Option<Deadline>,
    pub(super) problem: Option<String>,
}

impl StoreHealth {
    /// It can't be read or written: after a pause it is tried again.
    pub(super) fn failed(&mut self, now: &Now, error: &Error) {
        tracing::error!(%error, "the state file failed; requests and events wait until the state file can be read \
                                 again");
        let (first, longest) = PAUSE_MS;
        let pause = (first << self.failures.min(6)).min(longest);
        self.failures = self.failures.saturating_add(1);
        self.again = Some(Deadline::after(now, pause));
        self.problem = Some(error.to_string());
    }

    /// The whole file is being read first: the loop asks again soon whether that is done.
    pub(super) fn is_checked(&mut self, now: &Now) {
        self.again = Some(Deadline::after(now, CHECKING_MS));
    }

    /// Whether it has failed, and was not read again.
    pub(super) fn is_down(&self) -> bool {
        self.again.is_some()
    }

    /// A cycle has succeeded: nothing of it was lost.
    pub(super) fn well(&mut self) {
        self.failures = 0;
        self.problem = None;
    }
}
