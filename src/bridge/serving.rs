//! What is known of the requests that this host serves.

use crate::fleet::Header;
use crate::fleet::nats::{ArrivedLetter, Settling};

/// A request that this host serves.
#[derive(Debug)]
pub(super) struct Serving {
    pub(super) header: Header,
    pub(super) settling: Settling,
    pub(super) kind: String,
    pub(super) request: Vec<u8>,
    /// Its answer, once there is one.
    pub(super) answer: Option<Vec<u8>>,
    /// The answer is being published.
    pub(super) is_replying: bool,
    pub(super) tries: u32,
    pub(super) reply_due_ms: u64,
    pub(super) working_due_ms: u64,
    /// When its time is over.
    pub(super) over_ms: u64,
    /// When no answer is awaited any more, after it was taken back.
    pub(super) given_up_ms: Option<u64>,
}

/// A letter that can't be judged yet.
#[derive(Debug)]
pub(super) struct WaitingLetter {
    pub(super) letter: ArrivedLetter,
    pub(super) until_ms: u64,
}
