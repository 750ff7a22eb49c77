//! `fleet/bridge.json`: what this host's own bridge says of itself.

use super::words::{Word, without_defaults, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    listed
    /// Whether a bridge serves as its host.
    LeaseWord {
        /// It does.
        Held = "held",
        /// It waits until it is certain that no other bridge serves.
        Waiting = "waiting",
        /// It does not.
        None = "none",
    }
}

words! {
    listed
    /// What a problem of a bridge is about, the worst first.
    BridgeConcern {
        /// Another bridge serves as this host, or this home is a copy or was set back to an older state: this bridge
        /// has ended.
        Lease = "lease",
        /// The server does not let this host in.
        Login = "login",
        /// The server is not reached.
        Server = "server",
        /// The list of members: this host is not in it, or the list is not believed.
        Members = "members",
        /// The stream of letters at the server.
        Letters = "letters",
        /// The server does not store this host's roster, such as on a full disk.
        Storage = "storage",
        /// `fleet.toml`.
        Settings = "settings",
        /// Requests that were on their way when the bridge was started.
        Requests = "requests",
        /// Requests of a host are refused, because too many of it are kept.
        Inbox = "inbox",
    }
}

/// `fleet/bridge.json`: this host's own bridge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct BridgeView {
    /// The format's version: 1.
    pub v: u8,
    /// This host's name in the fleet.
    pub host: String,
    /// The bridge's process id.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Its last sign of life, renewed at least every 15 s; if it is older than 45 s, no bridge runs.
    pub heartbeat: String,
    /// The server that it is connected to, with its version; null while there is none.
    pub server: Option<String>,
    /// Whether it serves as this host.
    pub lease: Word<LeaseWord>,
    /// Since when it has been connected: UTC, milliseconds, `Z`.
    pub connected_since: Option<String>,
    /// When it last brought `fleet/hosts` up to date. It does so while somebody looks: while `fleet/looked` was touched
    /// within 60 s.
    pub hosts_seen_at: Option<String>,
    /// How many requests to other hosts have no answer yet.
    pub waiting: u64,
    /// What is wrong, in one sentence: the first of `problems`.
    pub problem: Option<String>,
    /// All that is wrong, the worst first.
    pub problems: Vec<BridgeProblem>,
}

/// Something that is wrong with a bridge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct BridgeProblem {
    /// What it is about. There is at most one problem about each.
    pub about: Word<BridgeConcern>,
    /// What is wrong, in one sentence.
    pub message: String,
}

impl BridgeProblem {
    /// A problem, in one sentence.
    #[must_use]
    pub fn new(about: BridgeConcern, message: &str) -> BridgeProblem {
        BridgeProblem { about: about.into(), message: message.to_owned() }
    }
}

impl BridgeView {
    /// Sets what is wrong, the worst first.
    pub fn have(&mut self, problems: Vec<BridgeProblem>) {
        self.problem = problems.first().map(|problem| problem.message.clone());
        self.problems = problems;
    }

    /// All that is wrong, as sentences; none if nothing is. A bridge of an earlier version names one problem only.
    #[must_use]
    pub fn all_problems(&self) -> Option<String> {
        let all: Vec<&str> = self.problems.iter().map(|problem| problem.message.as_str()).collect();
        let all = if all.is_empty() { self.problem.clone().unwrap_or_default() } else { all.join(" ") };
        Some(all).filter(|all| !all.is_empty())
    }
}
