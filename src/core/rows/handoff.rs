//! A handoff's row: its agents, its step, and its results so far.

use super::ack::Ack;
use super::agent::Agent;
use super::chain::Chain;
use super::choice::ProfileChoice;
use super::examined::Examined;
use super::publishing::Publishing;
use crate::contract::handoff::{Author, Successor};
use crate::core::effect::{EffectKey, SuccessorWindow};
use crate::core::id::{AgentId, ErrorId, HandoffId, ItemId, RequestId, Slug};
use crate::core::pane::DeliveryVerdict;
use crate::core::time::Deadline;
use serde::{Deserialize, Serialize};

pub use super::examined::CheckPhase;
pub use crate::contract::handoff::{DocumentView as DocumentSeen, Read, Step};

impl Step {
    /// The successor has its briefing, and an ACK from it is taken.
    #[must_use]
    pub fn hears_successor(self) -> bool {
        matches!(self, Step::Reading | Step::Acknowledging)
    }
}

/// One stay in a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub step: Step,
    pub entered_at: String,
    pub left_at: Option<String>,
}

/// The last verdict on each text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LastVerdicts {
    pub instruction: Option<DeliveryVerdict>,
    pub priming: Option<DeliveryVerdict>,
    pub briefing: Option<DeliveryVerdict>,
    /// On the text that asks the agent to repair its document.
    #[serde(default)]
    pub rework: Option<DeliveryVerdict>,
}

/// Why a handoff has failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffError {
    /// The file in `errors/`.
    pub error_id: ErrorId,
    pub step: Step,
    pub code: String,
    pub message: String,
    pub hint: String,
}

/// The durable record of the document, without the fields that the handoff's own row holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffRecord {
    /// Size of the document in bytes.
    pub bytes: u64,
    /// Its SHA-256, hexadecimal.
    pub sha256: String,
    /// The body of the briefing.
    pub injection_prompt: String,
    /// The work items that it names.
    #[serde(default)]
    pub items: Vec<ItemId>,
    pub created_at: String,
}

/// Why the document is being read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadReason {
    /// The handoff has come to the point at which the document must be there.
    #[serde(rename = "at_stop")]
    InFlow,
    /// The operator has accepted the document as it is.
    Accepted(RequestId),
    /// A retry checks whether the document exists by now.
    Retry {
        /// Type a new instruction if it is not.
        #[serde(rename = "instruct_anew")]
        instruct_again: bool,
    },
    /// The document could not be examined: it is recorded as it is read.
    Unexamined,
}

/// What belongs to one visit of a step: it is dropped when the handoff leaves the step.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stay {
    /// The time at which this step fails.
    pub deadline: Option<Deadline>,
    /// This step's running effect. Effects that type, or that start the successor, are in the rows of the agents.
    pub effect: Option<EffectKey>,
    /// The text of this step waits until its agent is free for it.
    #[serde(rename = "waits")]
    #[serde(default)]
    pub deferred: bool,
    /// Our turn ended while the operator's accept was being checked.
    #[serde(default)]
    pub stopped_meanwhile: bool,
    /// There was no document, and the author's screen has shown that its turn is over.
    #[serde(default)]
    pub turn_seen_over: bool,
    /// Another session has replaced the successor's.
    #[serde(default)]
    pub session_replaced: bool,
    /// Why the document is being read, while it is.
    pub reading: Option<ReadReason>,
    /// What `checking` waits for.
    #[serde(default)]
    pub checking: Option<CheckPhase>,
}

/// The session of the agent that is handed off.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OutgoingSession {
    pub profile: String,
    /// The CLI's own id of the session, if it is known.
    pub id: Option<String>,
    /// The agent had neither a known pane nor a known process, so tasuki did not end it.
    #[serde(default)]
    pub may_still_run: bool,
}

impl OutgoingSession {
    /// What is said of an agent that may still run.
    pub const NOT_ENDED: &str = "the outgoing agent has no known pane and no known process, so tasuki did not end it";

    /// The session that an agent has now.
    #[must_use]
    pub fn of(agent: &Agent) -> Self {
        OutgoingSession { profile: agent.profile.clone(), id: agent.session.id.clone(), may_still_run: false }
    }
}

/// The stored row of one handoff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handoff {
    pub handoff_id: HandoffId,
    pub agent_id: AgentId,
    /// The outgoing agent's session, which can be reopened after the agent's end.
    #[serde(default)]
    pub session: OutgoingSession,
    /// Its persona, and the successor's.
    pub persona_slug: Slug,
    pub reason: String,
    /// What the document should dwell on.
    pub focus: Option<String>,
    /// What the successor has to do.
    pub tasks: Vec<String>,
    /// Do not wait for the end of a running turn.
    #[serde(rename = "now")]
    pub interrupts_turn: bool,
    pub author: Author,
    pub successor: Successor,
    /// The CLI and the model of the successor.
    #[serde(default)]
    pub choice: ProfileChoice,
    /// It has begun by itself, because a usage limit stops the outgoing agent's CLI.
    #[serde(default)]
    pub after_limit: bool,
    pub created_at: String,
    pub file_path: String,
    /// Its name in the persona's folder.
    pub file_name: String,
    pub step: Step,
    /// The present visit of that step.
    #[serde(flatten)]
    pub stay: Stay,
    pub steps: Vec<Span>,
    /// The deadline of step `waiting`. It is kept, in case the next step finds the agent busy and the handoff returns.
    pub wait_until: Option<Deadline>,
    pub verdicts: LastVerdicts,
    /// Why it has failed; `None` after a retry.
    pub error: Option<HandoffError>,
    pub document: Option<DocumentSeen>,
    /// For author `provided`, until it is recorded: the document.
    #[serde(default)]
    pub provided: Option<String>,
    /// For author `agent_reply`, until it is recorded: the last text of the answer, as the event at the end of the turn
    /// reported it.
    #[serde(default)]
    pub last_text: Option<String>,
    pub record: Option<HandoffRecord>,
    /// Where the document says that the successor should begin.
    #[serde(default)]
    pub checkpoint: Option<String>,
    #[serde(default)]
    pub examined: Examined,
    /// The handoffs before this one.
    #[serde(default)]
    pub chain: Chain,
    /// The successor, once one was asked for.
    pub successor_id: Option<AgentId>,
    /// Successors that died before they were briefed.
    pub former_successors: Vec<AgentId>,
    /// Where the successor's window will be.
    #[serde(rename = "place")]
    pub successor_window: Option<SuccessorWindow>,
    /// Problems that do not stop the handoff.
    pub warnings: Vec<String>,
    /// Since when a dialog holds up the turn in which the successor answers its briefing.
    #[serde(default)]
    pub successor_blocked_at: Option<String>,
    /// What is known of the turn in which the successor reads its document.
    #[serde(default)]
    pub read: Option<Read>,
    #[serde(default)]
    pub ack: Option<Ack>,
    /// The publishing of the document, where that was asked for.
    #[serde(default)]
    pub publish: Option<Publishing>,
}

impl Handoff {
    /// Its row is history: nothing happens to it any more, unless a request names it.
    #[must_use]
    pub fn is_past(&self) -> bool {
        let publishes = self.publish.as_ref().is_some_and(Publishing::is_active);
        let awaits_ack = self.ack.as_ref().is_some_and(Ack::has_message_in_flight);
        self.step.is_end() && self.stay.effect.is_none() && !publishes && !awaits_ack
    }

    /// All its running deadlines.
    pub(crate) fn deadlines(&self) -> impl Iterator<Item = &Deadline> {
        let publish = self.publish.as_ref().and_then(|publish| publish.due.as_ref());
        let of_ack = self.ack.iter().flat_map(Ack::deadlines);
        [self.stay.deadline.as_ref(), publish].into_iter().flatten().chain(of_ack)
    }

    /// The same deadlines, and `wait_until`, to be converted after a reboot.
    pub(crate) fn deadlines_mut(&mut self) -> impl Iterator<Item = &mut Deadline> {
        let publish = self.publish.as_mut().and_then(|publish| publish.due.as_mut());
        let of_ack = self.ack.as_mut().into_iter().flat_map(Ack::deadlines_mut);
        [self.stay.deadline.as_mut(), self.wait_until.as_mut(), publish].into_iter().flatten().chain(of_ack)
    }

    /// The step in which it is, or in which it failed.
    #[must_use]
    pub fn place_in_flow(&self) -> Step {
        self.error.as_ref().map_or(self.step, |error| error.step)
    }

    /// The address under which the present document is published, where that is known.
    pub(crate) fn published_url(&self) -> Option<&str> {
        self.publish.as_ref()?.url.as_deref()
    }

    /// How messages and uploads name one of its agents: `<slug>-<first 8 of its id>`.
    #[must_use]
    pub fn name_of(&self, agent_id: &AgentId) -> String {
        format!("{}-{}", self.persona_slug, agent_id.short())
    }

    /// The path of the file with the facts, which is beside the document; `ending` is `json` or `md`. `None` before the
    /// facts were collected.
    #[must_use]
    pub fn facts_path(&self, ending: &str) -> Option<String> {
        let stem = self.file_path.strip_suffix(".md").unwrap_or(&self.file_path);
        self.examined.facts.as_ref().map(|_| format!("{stem}.facts.{ending}"))
    }

    /// The tag of the placeholder.
    #[must_use]
    pub fn placeholder_tag(&self) -> String {
        self.handoff_id.0.simple().to_string()
    }
}
