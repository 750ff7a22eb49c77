//! Rows that are stored besides the core's own, and what one commit and one checkpoint write.

use crate::core::decision::{Decision, ErrorRow};
use crate::core::effect::EffectKey;
use crate::core::id::ErrorId;
use crate::core::time::Now;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The ledger's row of a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LedgerRow {
    pub(crate) kind: Option<String>,
    pub(crate) sha256: String,
    pub(crate) at_ms: i64,
    pub(crate) result: Option<Value>,
}

/// A failure, and whether its file was written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredError {
    pub(crate) row: ErrorRow,
    pub(crate) written: bool,
}

/// An event file that was decided. The same file must not be decided again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenEvent {
    /// Its name; bytes that are not UTF-8 are escaped.
    pub name: String,
    pub ino: u64,
    /// The change time of its inode, in nanoseconds since 1970.
    pub ctime_ns: i64,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
}

/// Everything that one commit writes.
pub struct Batch<'a> {
    pub decision: &'a Decision,
    pub now: Now,
    /// Event files that were decided.
    pub seen: &'a [SeenEvent],
}

/// A checkpoint: files that are known to be on the disk.
#[derive(Debug, Default)]
pub struct Checkpoint {
    /// Journal lines below this number.
    pub journal_below: u64,
    /// Ledger rows below this number have their result file.
    pub ledger_below: u64,
    pub views: Vec<String>,
    pub errors: Vec<ErrorId>,
}

/// The key of an effect in the outbox table.
pub(crate) fn outbox_key(key: EffectKey) -> u64 {
    key.0
}
