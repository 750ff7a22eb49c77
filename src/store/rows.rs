//! The store's own rows, which the core does not know, and what one commit and one checkpoint write.

use crate::core::decision::{Decision, ErrorRow};
use crate::core::effect::EffectKey;
use crate::core::id::{AgentId, ErrorId, HandoffId};
use crate::core::time::Now;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// How long an answered request is remembered, in milliseconds (30 days). During that time the same request gets the
/// same answer.
const REMEMBER_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// The ledger's row of a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LedgerRow {
    /// The request's kind; none if the request could not be parsed.
    pub(crate) kind: Option<String>,
    /// SHA-256 of the request's bytes, hexadecimal.
    pub(crate) sha256: String,
    /// When it was answered, or accepted if it has no answer yet, in milliseconds since 1970.
    pub(crate) at_ms: i64,
    /// The same by the boot clock: the boot, and milliseconds since then; none in a row of an earlier version.
    #[serde(default)]
    pub(crate) boot: Option<(u64, u64)>,
    /// When tasuki first saw that `at_ms` lies in the future, because the wall clock was wrong when `at_ms` was noted.
    #[serde(default)]
    pub(crate) seen_ahead: Option<Now>,
    /// The answer, as the result file holds it; none while the request is open.
    pub(crate) result: Option<Value>,
}

/// The agents and handoffs that undismissed errors name: the errors' hints tell the operator to run commands on them.
#[derive(Debug, Default)]
pub struct NamedInErrors {
    pub agents: BTreeSet<AgentId>,
    pub handoffs: BTreeSet<HandoffId>,
}

/// The clocks by which the ages of the ledger's rows are computed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clocks {
    pub(crate) now: Now,
    /// What [`crate::core::time::BelievedClock`] says.
    pub(crate) believed_ms: Option<i64>,
}

/// Whether a request has been remembered for long enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RememberedAge {
    Young,
    Old,
    /// The row's date lies in the future. tasuki notes in the row when it saw this, and counts the age from that
    /// moment.
    Ahead,
}

impl LedgerRow {
    /// Within one boot the boot clock says how old the row is, whatever the wall clock said then or says now.
    pub(crate) fn age(&self, clocks: &Clocks) -> RememberedAge {
        let Clocks { now, believed_ms } = clocks;
        let is_since = |boot: u64, since: u64| {
            let ms = now.boot_ms.saturating_sub(since);
            (boot == now.boot).then_some(i64::try_from(ms).unwrap_or(i64::MAX) >= REMEMBER_MS)
        };
        let is_before = |at_ms: i64| believed_ms.is_some_and(|ms| at_ms < ms.saturating_sub(REMEMBER_MS));
        let is_old = match (self.boot.and_then(|(boot, since)| is_since(boot, since)), self.seen_ahead) {
            (Some(is_old), _) => is_old,
            (None, _) if self.at_ms <= now.wall_ms => is_before(self.at_ms),
            (None, None) if believed_ms.is_some() => return RememberedAge::Ahead,
            (None, None) => false,
            (None, Some(seen)) => is_since(seen.boot, seen.boot_ms).unwrap_or_else(|| is_before(seen.wall_ms)),
        };
        if is_old { RememberedAge::Old } else { RememberedAge::Young }
    }
}

/// A failure, and whether its error file is known to be on the disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredError {
    pub(crate) row: ErrorRow,
    pub(crate) written: bool,
}

/// An event file that was decided. The same file must not be decided again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SeenEvent {
    /// Its name; bytes that are not UTF-8 are escaped.
    pub name: String,
    pub ino: u64,
    /// The change time of its inode, in nanoseconds since 1970.
    pub ctime_ns: i64,
    /// The change time of its content, in nanoseconds since 1970. The row of an earlier version has none.
    #[serde(default)]
    pub mtime_ns: Option<i64>,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
}

impl SeenEvent {
    /// Whether both are of one file. If somebody changes the mode or the owner of a file that was decided, or gives it
    /// a second name, it stays the same event.
    pub(super) fn is_same_file(&self, other: &SeenEvent) -> bool {
        let is_same_time = match (self.mtime_ns, other.mtime_ns) {
            (Some(one), Some(other)) => one == other,
            _ => self.ctime_ns == other.ctime_ns,
        };
        is_same_time && (&self.name, self.ino, &self.sha256) == (&other.name, other.ino, &other.sha256)
    }
}

/// Everything that one commit writes.
pub struct Batch<'a> {
    /// One decision, or several that were joined.
    pub decision: &'a Decision,
    /// The time that the ledger notes.
    pub now: Now,
    /// Event files that were decided.
    pub seen: &'a [SeenEvent],
}

/// A checkpoint: files that are known to be on the disk.
#[derive(Debug, Default)]
pub struct Checkpoint {
    /// Journal lines below this number.
    pub journal_below: u64,
    /// The answers in ledger rows below this number are in their result files.
    pub ledger_below: u64,
    /// Views: `agents/<id>`, `handoffs/<id>`, `work/<id>`.
    pub views: Vec<String>,
    /// Errors whose file is on the disk.
    pub errors: Vec<ErrorId>,
}

/// The key of an effect in the outbox table.
pub(crate) fn outbox_key(key: EffectKey) -> u64 {
    key.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_file_whose_mode_was_changed_is_the_same_and_a_new_file_is_not() {
        let one = SeenEvent { name: "a".to_owned(), ino: 1, ctime_ns: 5, mtime_ns: Some(5), sha256: "00".to_owned() };
        assert!(one.is_same_file(&SeenEvent { ctime_ns: 9, ..one.clone() }));
        assert!(!one.is_same_file(&SeenEvent { ctime_ns: 9, mtime_ns: Some(9), ..one.clone() }));
        assert!(!one.is_same_file(&SeenEvent { sha256: "01".to_owned(), ..one.clone() }));
        assert!(!one.is_same_file(&SeenEvent { ino: 2, ..one.clone() }));
        // As an earlier version has written it.
        let old = SeenEvent { mtime_ns: None, ..one.clone() };
        assert!(old.is_same_file(&one) && !old.is_same_file(&SeenEvent { ctime_ns: 9, ..one }));
    }
}
