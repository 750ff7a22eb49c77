//! The health of the store: after a failure it is left alone for a while, and nothing is decided until it can be read
//! again.

use crate::core::time::{Deadline, Now};
use crate::store::Error;

/// The first pause after a failure of the store, and the longest, in milliseconds.
const PAUSE_MS: (u64, u64) = (200, 5_000);
/// While the whole state file is checked: how often the loop asks whether that is done, in milliseconds.
const CHECKING_MS: u64 = 100;

#[derive(Debug, Default)]
pub(super) struct StoreHealth {
    pub(super) failures: u32,
    /// After a failure: when the store is opened and read again. Until that works nothing is decided.
    pub(super) again: Option<Deadline>,
    pub(super) problem: Option<String>,
}

impl StoreHealth {
    /// The store can't be read or written: it is tried again after a pause.
    pub(super) fn failed(&mut self, now: &Now, error: &Error) {
        tracing::error!(%error, "the state file failed; requests and events wait until the state file can be read \
                                 again");
        let (first, longest) = PAUSE_MS;
        let pause = (first << self.failures.min(6)).min(longest);
        self.failures = self.failures.saturating_add(1);
        self.again = Some(Deadline::after(now, pause));
        self.problem = Some(error.to_string());
    }

    /// The whole state file is checked before it is used again: the loop asks soon whether that is done.
    pub(super) fn wait_for_check(&mut self, now: &Now) {
        self.again = Some(Deadline::after(now, CHECKING_MS));
    }

    /// Whether the store has failed and has not been read again.
    pub(super) fn is_down(&self) -> bool {
        self.again.is_some()
    }

    /// A cycle has succeeded.
    pub(super) fn well(&mut self) {
        self.failures = 0;
        self.problem = None;
    }
}
