//! Everything that can happen to the core.

use super::effect::{EffectKey, Outcome};
use super::hook::HookEvent;
use super::id::{AgentId, HandoffId, RequestId, Slug};
use super::pane::ServerId;
use super::persona::PersonaFacts;
use super::request;
use super::rules::Rules;
use serde_json::Value;
use std::collections::BTreeMap;

/// What the intake knows of a request besides its text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestFacts {
    /// The persona that the request, or the agent in it, names.
    pub persona: Option<(Slug, PersonaFacts)>,
    /// For `error_dismiss`: there is such an error.
    pub error_known: bool,
    /// For author `provided`: the document, or why it can't be taken.
    pub document: Option<Result<String, String>>,
    /// For author `agent_reply`: how many messages the agent's transcript holds, where it can be read.
    pub messages: Option<u64>,
    /// For `agent_create` with `cwd`: there is no such folder.
    pub no_cwd: bool,
    /// For `agent_forget`: whether the agent's process runs, or, if that process is unknown, whether the pane's process
    /// runs. `None` if neither is known, or if the system could not be asked.
    pub runs: Option<bool>,
}

/// What the ledger says of a request id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// SHA-256 of the first request file with this id, hexadecimal.
    pub sha256: String,
    pub result: Option<Value>,
}

/// A request file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncomingRequest {
    pub id: RequestId,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
    pub read: request::ParsedRequest,
    pub facts: RequestFacts,
}

/// How an agent's process or pane disappeared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Dead,
    /// Its pane is gone, and its process is not known to be dead.
    PaneGone,
}

/// Everything that can happen to the core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A request was read for the first time.
    Request(Box<IncomingRequest>),
    Hook(Box<HookEvent>),
    Settled {
        key: EffectKey,
        outcome: Outcome,
    },
    /// An agent is gone. The loop sends this after all events that were in the spool when it noticed that.
    AgentExit {
        agent_id: AgentId,
        how: Exit,
    },
    /// The awaited document has another size.
    DocumentGrew {
        handoff_id: HandoffId,
        bytes: u64,
    },
    /// The rules for work items have changed. `Err` says why the new ones can't be used; the old ones then stay in
    /// force.
    Rules(Result<Box<Rules>, String>),
    /// The roles that personas give themselves in `persona.toml` have changed.
    Roles(BTreeMap<Slug, String>),
    /// Another tmux server answers, or none.
    Server(Option<ServerId>),
    /// A probe of the loop itself, which arrives among the requests and asks for nothing. Once the probe is decided,
    /// the loop knows that it still decides requests.
    Probe,
    /// A deadline has passed. The loop sends this after all events that were in the spool when the deadline passed.
    Deadlines,
}
