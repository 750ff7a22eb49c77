//! What can be asked: every request kind with its fields (SPEC 3.5). How a request file is read stands in `read`.

mod ack;
mod integers;
mod publish;
mod read;
pub mod work;

use super::id::{RequestId, Slug};
use schemars::JsonSchema;
use serde::Deserialize;

pub use crate::contract::ack::{AckStatus, Clarification, Urgency};
pub use crate::contract::handoff::{Author, Successor};
pub use ack::{AckAsked, ClarifyAsked, MalformedAck, OverrideAsked, form};
pub(crate) use publish::is_host;
pub use publish::{AssumePublished, Fallback, Issue, PublishAsked, PublishNow, PublishTarget, publish_target};
pub use read::{KINDS, Read, read};
pub(crate) use read::{PRIVATE_SESSIONS, is_session_name};

/// The document of an author `provided`: exactly one of the two.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentAsked {
    /// The document itself.
    pub text: Option<String>,
    /// A file inside HOME, absolute or relative to it.
    pub path: Option<String>,
}

/// `handoff`: hand an agent off.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandoffAsked {
    /// The outgoing agent.
    pub agent_id: String,
    /// Why.
    pub reason: String,
    /// What the document should dwell on.
    pub focus: Option<String>,
    /// Who writes the document.
    #[serde(default)]
    pub author: Author,
    /// For author `provided`: `{"text":…}` or `{"path":…}`.
    pub document: Option<DocumentAsked>,
    /// Who takes over.
    #[serde(default)]
    pub successor: Successor,
    /// What the successor has to do, each in one line.
    #[serde(default)]
    pub tasks: Vec<String>,
    /// Absent: no acknowledgement wanted.
    pub urgency: Option<Urgency>,
    /// Where to publish the document.
    pub publish: Option<PublishAsked>,
    /// Do not wait for the end of a running turn.
    #[serde(default)]
    pub now: bool,
}

impl HandoffAsked {
    /// With every dial at its default.
    #[must_use]
    pub fn new(agent_id: &super::id::AgentId, reason: &str) -> Self {
        HandoffAsked {
            agent_id: agent_id.to_string(),
            reason: reason.to_owned(),
            focus: None,
            author: Author::default(),
            document: None,
            successor: Successor::default(),
            tasks: Vec::new(),
            urgency: None,
            publish: None,
            now: false,
        }
    }
}

/// What the operator knows of a text whose delivery is in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Assume {
    /// It arrived: go on.
    Delivered,
    /// It did not: type it anew.
    NotDelivered,
}

/// `handoff_retry`: go on at the step that failed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryAsked {
    /// Which.
    pub handoff_id: String,
    /// Settles a doubt.
    pub assume: Option<Assume>,
    /// Another successor, with the same record.
    pub successor: Option<Successor>,
}

/// A request that names a handoff and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandoffNamed {
    /// Which.
    pub handoff_id: String,
}

/// `agent_create`: start an agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateAsked {
    /// Its persona.
    #[schemars(with = "String")]
    pub persona_slug: Slug,
    /// Its profile; without it the persona's own.
    pub profile: Option<String>,
    /// Where it works.
    pub cwd: Option<String>,
    /// Its predecessor.
    pub previous_agent_id: Option<String>,
    /// The tmux session for its window; without it a detached session `tasuki-<slug>`.
    pub session: Option<String>,
}

/// `agent_register`: adopt a pane that runs already.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterAsked {
    /// `%3`.
    pub pane: String,
    /// The value of `$TMUX` there.
    pub tmux: Option<String>,
    /// Its persona; without it the agent is anonymous.
    #[schemars(with = "Option<String>")]
    pub persona_slug: Option<Slug>,
    /// Its profile; without it the persona's own, or what its command line shows.
    pub profile: Option<String>,
}

/// `agent_shutdown`: end an agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShutdownAsked {
    /// Which.
    pub agent_id: String,
    /// Kill the pane, if tasuki started it.
    #[serde(default)]
    pub force: bool,
}

/// `agent_forget`: take an agent whose process does not run out of the living ones.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetAsked {
    /// Which.
    pub agent_id: String,
}

/// `agent_send`: type a text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendAsked {
    /// To whom.
    pub agent_id: String,
    /// What.
    pub text: String,
}

/// `error_dismiss`: delete an error file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DismissAsked {
    /// Which.
    pub error_id: String,
}

/// A request that has been read and has passed every check that needs no state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Hand an agent off.
    Handoff(HandoffAsked),
    /// Go on at the step that failed.
    HandoffRetry(RetryAsked),
    /// Close a failed handoff for good.
    HandoffAbandon(HandoffNamed),
    /// Stop a handoff before its agent ends.
    HandoffCancel(HandoffNamed),
    /// Take the document now.
    HandoffAccept(HandoffNamed),
    /// Start an agent.
    AgentCreate(CreateAsked),
    /// Adopt a pane.
    AgentRegister(RegisterAsked),
    /// End an agent.
    AgentShutdown(ShutdownAsked),
    /// Let go of an agent whose process does not run.
    AgentForget(ForgetAsked),
    /// Type a text.
    AgentSend(SendAsked),
    /// A successor acknowledges.
    Ack(AckAsked),
    /// Answer its questions.
    Clarify(ClarifyAsked),
    /// Go on without its ACK.
    AckOverride(OverrideAsked),
    /// Publish a document now.
    Publish(PublishNow),
    /// Make a work item.
    WorkCreate(work::WorkCreateAsked),
    /// Take a work item.
    WorkClaim(work::WorkClaimAsked),
    /// Hand over what came of a work item.
    WorkComplete(work::WorkCompleteAsked),
    /// Make children that a completion could not make.
    WorkRetryChildren(work::WorkRetryAsked),
    /// Give a work item back.
    WorkRelease(work::WorkReleaseAsked),
    /// Leave a work item to a person.
    WorkEscalate(work::WorkEscalateAsked),
    /// Undo a completion.
    WorkRollback(work::WorkRollbackAsked),
    /// Say something of a work item.
    WorkComment(work::WorkCommentAsked),
    /// Take work items from elsewhere.
    WorkImport(work::WorkImportAsked),
    /// Delete an error file.
    ErrorDismiss(DismissAsked),
}

/// The number of a pane id such as `%3`.
#[must_use]
pub fn pane_number(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('%')?;
    let plain = !digits.is_empty() && digits.len() <= 9 && digits.bytes().all(|b| b.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// The request id that a file name gives, if it gives one.
#[must_use]
pub fn id_of_file(name: &str) -> Option<RequestId> {
    name.strip_suffix(".json")?.parse().ok()
}
