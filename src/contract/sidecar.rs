//! The sidecar, as others see it.

use super::words::{Word, told, without_defaults, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    listed
    /// Whether a sidecar can do all of its work.
    Health {
        /// It can.
        Running = "running",
        /// It can't; `problem` says what.
        Degraded = "degraded",
    }
}

words! {
    listed
    /// How a sidecar learns of new files.
    Watch {
        /// The system reports changes at once.
        Armed = "armed",
        /// It looks for them.
        Poll = "poll",
    }
}

/// `view/sidecar.json`. It is removed when the sidecar ends in good order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct SidecarView {
    /// The format's version: 1.
    pub v: u8,
    /// The sidecar's process id.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// When it started: UTC, milliseconds, `Z`.
    pub started_at: String,
    /// Its last sign of life, renewed every 5 s; if it is older than 15 s, no sidecar answers.
    pub heartbeat: String,
    /// When it last took the requests in the spool, which it does at least every 5 s. If this is much older than the
    /// heartbeat, requests are not being answered. Null until it has taken them once.
    // An older version does not write this field.
    #[serde(deserialize_with = "told")]
    #[schemars(with = "Option<String>")]
    pub taken_at: Option<Option<String>>,
    /// The tmux server that it works in; null while the server does not answer.
    pub tmux: Option<ServerView>,
    /// `running`, or `degraded` while it can't do all of its work.
    pub state: Word<Health>,
    /// What it can't do, in one sentence.
    pub problem: Option<String>,
    /// `armed` when the system reports new files at once, `poll` when the sidecar looks for them.
    pub watch: Word<Watch>,
    /// The `seq` of the last line in the journal.
    pub journal_seq: u64,
}

/// A tmux server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = without_defaults)]
pub struct ServerView {
    /// Its process id.
    pub pid: u32,
    /// When it started, in seconds since 1970.
    #[serde(default)]
    #[schemars(with = "i64")]
    pub start_time: u64,
    /// The path of its socket. A version that did not name it left it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
}
