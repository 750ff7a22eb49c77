//! A running turn: the acts that are left, and when each is due.

use super::plan::Act;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A turn that runs, or what is left of one after its Stop.
pub(super) struct Turn {
    pub(super) id: String,
    pub(super) acts: VecDeque<Act>,
    /// When the next act is due; `None`: never.
    pub(super) due: Option<Instant>,
    pub(super) began: Instant,
    pub(super) last_said: String,
}

impl Turn {
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn seconds(&self, now: Instant) -> u64 {
        now.duration_since(self.began).as_secs()
    }

    /// Removes the acts that write, because a dialog was answered with no.
    pub(super) fn refuse(&mut self) {
        let writes = |act: &Act| matches!(act, Act::Create(..) | Act::Append(..) | Act::Folder(_) | Act::Link(..));
        self.acts.retain(|act| !writes(act));
    }

    /// The next act that is due; a wait only moves the time on.
    pub(super) fn next(&mut self, now: Instant) -> Option<Act> {
        while self.due.is_some_and(|due| now >= due) {
            match self.acts.pop_front() {
                Some(Act::Wait(u64::MAX)) => self.due = None,
                Some(Act::Wait(ms)) => self.due = Some(now + Duration::from_millis(ms)),
                Some(act) => return Some(act),
                None => self.due = None,
            }
        }
        None
    }
}
