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
    /// For `agent_forget`: whether the agent's process runs, or its pane's if the agent's own is unknown; none if it
    /// has neither, or the look failed.
    pub runs: Option<bool>,
}

/// What the ledger says of a request id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// SHA-256 of the bytes that came first, hexadecimal.
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
    /// An agent is gone. Comes only after all events that lay in the spool when that was seen.
    AgentExit {
        agent_id: AgentId,
        how: Exit,
    },
    /// The awaited document has another size.
    DocumentGrew {
        handoff_id: HandoffId,
        bytes: u64,
    },
    /// The rules for work items have changed; or they can't be used, and why: then the old ones stay in force.
    Rules(Result<Box<Rules>, String>),
    /// The roles that personas have of their own have changed.
    Roles(BTreeMap<Slug, String>),
    /// Another tmux server answers, or none.
    Server(Option<ServerId>),
    /// A question of the loop's own, which comes in with requests and asks for nothing: that it is decided shows that
    /// they are.
    Probe,
    /// A deadline is due. Comes only after all events that lay in the spool when it became so.
    Deadlines,
}
