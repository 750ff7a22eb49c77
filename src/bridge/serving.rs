//! What the bridge remembers of each request from another host until its answer is published.

use crate::fleet::Header;
use crate::fleet::nats::{ArrivedLetter, Settling};

/// The pause before an answer is published again that the server has not stored, in milliseconds: the first, and the
/// longest. It doubles each time.
const AGAIN_AFTER_MS: u64 = 1_000;
const LONGEST_PAUSE_MS: u64 = 30_000;

/// A request from another host that this host has taken.
#[derive(Debug)]
pub(super) struct Serving {
    pub(super) header: Header,
    /// Settles its letter at the server.
    pub(super) settling: Settling,
    pub(super) kind: String,
    pub(super) request: Vec<u8>,
    /// Its answer, once there is one.
    pub(super) answer: Option<Vec<u8>>,
    /// The answer is being published.
    pub(super) is_replying: bool,
    /// How often publishing the answer has failed.
    pub(super) tries: u32,
    /// When the answer may be published, in milliseconds since the machine's boot, as for all times here.
    pub(super) reply_due_ms: u64,
    /// When the server is told again that the letter is being worked at.
    pub(super) working_due_ms: u64,
    /// When the request's time is over.
    pub(super) over_ms: u64,
    /// If the request was taken back: until when the sidecar's answer to it is still awaited.
    pub(super) given_up_ms: Option<u64>,
}

impl Serving {
    /// Has the answer published again after a pause, because it was not published.
    pub(super) fn reply_later(&mut self, now_ms: u64) {
        let pause = AGAIN_AFTER_MS.saturating_mul(1 << self.tries.min(5)).min(LONGEST_PAUSE_MS);
        self.tries = self.tries.saturating_add(1);
        self.is_replying = false;
        self.reply_due_ms = now_ms.saturating_add(pause);
    }
}

/// A letter that can't be judged yet.
#[derive(Debug)]
pub(super) struct WaitingLetter {
    pub(super) letter: ArrivedLetter,
    /// Until when it may wait.
    pub(super) until_ms: u64,
}
