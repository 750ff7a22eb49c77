//! A handoff, as others see it.

use super::ack::AckView;
use super::document::{DocumentCheck, DocumentFault};
use super::facts::{EarlierDocument, Facts};
use super::publishing::PublishView;
use super::words::{Word, null_first, without_defaults, words};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

words! {
    listed
    /// The steps of a handoff, in their order, and its three ends.
    Step {
        /// Waits for the end of the agent's turn.
        Waiting = "waiting",
        /// Types the instruction.
        Instructing = "instructing",
        /// Waits for the Stop after the receipt.
        Writing = "writing",
        /// Checks the document against the facts that tasuki collected, and lets its author or a person repair it.
        Checking = "checking",
        /// Commits the record.
        Recording = "recording",
        /// Ends the outgoing agent.
        Ending = "ending",
        /// Starts the successor.
        Starting = "starting",
        /// Types the persona's skill.
        Priming = "priming",
        /// Types the injection prompt.
        Briefing = "briefing",
        /// Waits for the end of the turn in which the successor reads its document.
        Reading = "reading",
        /// Waits for the successor's acknowledgement, where one is wanted.
        Acknowledging = "acknowledging",
        Done = "done",
        /// Halted; a retry may continue it.
        Failed = "failed",
        /// Stopped by the operator.
        Cancelled = "cancelled",
    }
}

impl Step {
    /// Whether this is one of the steps between the record and the end of the handoff: nothing is lost if the agent
    /// ends, and it is too late to cancel.
    #[must_use]
    pub fn is_between_record_and_end(self) -> bool {
        match self {
            Step::Waiting | Step::Instructing | Step::Writing | Step::Checking | Step::Recording => false,
            Step::Ending | Step::Starting | Step::Priming | Step::Briefing | Step::Reading | Step::Acknowledging => {
                true
            }
            Step::Done | Step::Failed | Step::Cancelled => false,
        }
    }

    /// What it waits for, in a few words; empty if it waits for nothing.
    #[must_use]
    pub fn waits_for(self) -> &'static str {
        match self {
            Step::Waiting => "for the end of the running turn",
            Step::Instructing | Step::Briefing => "for the receipt",
            Step::Writing => "for the document",
            Step::Checking => "for a document without faults",
            Step::Ending => "for the agent's end",
            Step::Starting => "for the successor to be ready",
            Step::Priming => "for the successor to have read its skill",
            Step::Reading => "for the successor to have read its document",
            Step::Acknowledging => "for the successor's acknowledgement",
            Step::Recording | Step::Done | Step::Failed | Step::Cancelled => "",
        }
    }

    /// No step follows by itself.
    #[must_use]
    pub fn is_end(self) -> bool {
        matches!(self, Step::Done | Step::Failed | Step::Cancelled)
    }
}

words! {
    /// Who writes the handoff document.
    #[derive(Default, JsonSchema)]
    Author {
        /// The agent, with its own tools.
        #[default]
        AgentFile = "agent_file",
        /// The agent answers with the document.
        AgentReply = "agent_reply",
        /// tasuki, from the transcript.
        Salvage = "salvage",
        /// The caller.
        Provided = "provided",
    }
}

/// Who takes over.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Successor {
    /// A new agent in a new window.
    #[default]
    New,
    /// A new session in the same pane.
    SamePane,
    /// An agent that runs already.
    #[serde(untagged, deserialize_with = "existing")]
    #[schemars(extend("additionalProperties" = false))]
    Existing {
        /// Which.
        agent_id: String,
    },
}

/// Reads the object that names an agent, and nothing else.
fn existing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Named {
        agent_id: String,
    }
    Named::deserialize(deserializer).map(|named| named.agent_id)
}

words! {
    listed
    /// What is known of the turn in which the successor reads its document.
    Read {
        /// It has ended well, or the successor has answered in it.
        Seen = "seen",
        /// Its end was not seen: the successor was alive at the deadline, or a person has confirmed the briefing.
        Unseen = "unseen",
        /// It ended in an error, it was interrupted, or the successor ended during it.
        Failed = "failed",
    }
}

words! {
    listed
    /// The three verdicts on a delivery. None of them is a mere "sent".
    Verdict {
        /// A receipt came.
        Delivered = "delivered",
        /// It may have arrived; a person decides.
        Unconfirmed = "unconfirmed",
        /// Nothing was typed.
        NotDelivered = "not_delivered",
    }
}

/// `view/handoffs/<handoff_id>.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct HandoffView {
    /// The format's version: 1.
    pub v: u8,
    /// The handoff's id.
    pub handoff_id: String,
    /// The outgoing agent.
    pub agent_id: String,
    /// The command with which a person opens the outgoing agent's session again, quoted for a shell; null if its
    /// profile has none, or the session's id is not known.
    pub resume_command: Option<String>,
    /// Its persona, and the successor's.
    pub persona_slug: String,
    /// Why it was asked for.
    pub reason: String,
    /// What the document should concentrate on.
    pub focus: Option<String>,
    /// What the successor has to do.
    pub tasks: Vec<String>,
    /// Who writes the document.
    pub author: Word<Author>,
    /// Who was asked to take over.
    pub successor: Successor,
    /// The profile of the successor.
    pub successor_profile: Option<String>,
    /// The model that the successor was told to use; null if its CLI chooses.
    pub successor_model: Option<String>,
    /// The document's absolute path.
    pub file_path: String,
    /// The document's size in bytes, once it is recorded.
    pub bytes: Option<u64>,
    /// SHA-256 of the document, once it is recorded.
    pub sha256: Option<String>,
    /// What the successor is briefed with, once the document is recorded.
    pub injection_prompt: Option<String>,
    /// When the document was recorded: UTC, milliseconds, `Z`.
    pub recorded_at: Option<String>,
    /// When the handoff was requested.
    pub created_at: String,
    /// The successor, once one was asked for.
    pub successor_id: Option<String>,
    /// Successors that died before they were briefed.
    pub former_successors: Vec<String>,
    /// Where it stands.
    pub step: Word<Step>,
    /// Every step so far; a retry adds to the list.
    pub steps: Vec<StepView>,
    /// When the step fails if nothing happens.
    pub deadline: Option<String>,
    /// The document as it grows, before it is recorded.
    pub document: Option<DocumentView>,
    /// What became of the three texts.
    pub verdicts: Verdicts,
    /// What a person should know, though nothing failed.
    pub warnings: Vec<String>,
    /// What is done about faults of the document.
    pub check: Word<DocumentCheck>,
    /// A person has asked to see the document before its agent is ended.
    pub review: bool,
    /// What the checks find in the document as it is; after the record, as it was recorded.
    pub faults: Vec<DocumentFault>,
    /// How often the agent was asked to repair its document.
    pub reworks: u64,
    /// Since when the handoff waits for a person to accept the document; null if it does not.
    pub held_since: Option<String>,
    /// What tasuki itself has seen of the agent's work; null before the document is checked.
    pub facts: Option<Facts>,
    /// The absolute path of the file with these facts; null before the document is checked.
    pub facts_path: Option<String>,
    /// What has changed in the repository between the record and the briefing, one sentence each.
    pub drift: Vec<String>,
    /// 1 for the first handoff of a chain of agents.
    pub generation: u64,
    /// The documents of the chain before this one, oldest first.
    pub earlier: Vec<EarlierDocument>,
    /// The turn in which the successor reads its document: null before it is over, `seen`, `unseen` (the successor is
    /// alive, but the turn's end was not seen) or `failed`.
    #[schemars(transform = null_first)]
    pub read: Option<Word<Read>>,
    /// Since when a dialog has been blocking the turn in which the successor answers its briefing; null if none is.
    pub successor_blocked_at: Option<String>,
    /// Where and why it failed; null when it has not.
    pub error: Option<StepError>,
    /// The acknowledgement; null where none is wanted.
    pub ack: Option<AckView>,
    /// The publishing; null if it was not requested.
    pub publish: Option<PublishView>,
    /// The delivery, point by point.
    pub checklist: Vec<PointView>,
}

/// One step of a handoff.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct StepView {
    /// Its name.
    #[schemars(with = "String")]
    pub step: Word<Step>,
    /// When it began: UTC, milliseconds, `Z`.
    pub entered_at: String,
    /// When it was over; null while it runs.
    pub left_at: Option<String>,
}

/// A document that is being written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = without_defaults)]
pub struct DocumentView {
    /// Its size in bytes.
    pub bytes: u64,
    /// When that was seen: UTC, milliseconds, `Z`.
    #[serde(default)]
    pub at: String,
}

/// What became of the three texts of a handoff; null where none was typed yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct Verdicts {
    /// The text that asks for the document.
    pub instruction: Option<DeliveryView>,
    /// The persona's skill.
    pub priming: Option<DeliveryView>,
    /// The record's injection prompt.
    pub briefing: Option<DeliveryView>,
}

impl Verdicts {
    /// The texts that were typed, each with its name, in their order.
    pub fn typed(&self) -> impl Iterator<Item = (&'static str, &DeliveryView)> {
        let all = [("instruction", &self.instruction), ("priming", &self.priming), ("briefing", &self.briefing)];
        all.into_iter().filter_map(|(name, verdict)| Some((name, verdict.as_ref()?)))
    }
}

/// What became of one typed text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct DeliveryView {
    /// The id in the text's last line.
    pub delivery_id: String,
    /// `delivered` needs a receipt; `unconfirmed` means that nobody knows whether the text arrived; `not_delivered`
    /// that nothing was typed.
    pub verdict: Word<Verdict>,
    /// Why, unless it is simply delivered.
    pub reason: Option<String>,
    /// When that was known: UTC, milliseconds, `Z`.
    pub at: String,
}

/// Where and why a handoff failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct StepError {
    /// The name of its file in `spool/errors/`.
    pub error_id: String,
    /// The step at which it stopped.
    #[schemars(with = "String")]
    pub step: Word<Step>,
    /// The error code.
    pub code: String,
    /// The message: one sentence.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// One point of the delivery checklist.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct PointView {
    /// What it is about, in words.
    pub point: String,
    /// When it was reached: UTC, milliseconds, `Z`.
    pub at: Option<String>,
    /// Why it was not reached, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl HandoffView {
    /// Whether an agent writes the document, so that it can be asked to repair it.
    #[must_use]
    pub fn has_writer(&self) -> bool {
        !matches!(self.author.known(), Some(Author::Salvage | Author::Provided))
    }

    /// Whether it waits for a person to accept its document.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.step == Step::Checking && self.held_since.as_ref().is_some_and(|since| !since.is_empty())
    }

    /// Whether a person has closed it after a failure.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.step == Step::Cancelled && self.error.is_some()
    }

    /// Whether a step has failed although the successor waits for an answer: it could not set up its environment, or
    /// nobody has answered its questions in time. `tasuki clarify` continues such a handoff.
    #[must_use]
    pub fn waits_after_failure(&self) -> bool {
        let Some((error, ack)) = self.error.as_ref().zip(self.ack.as_ref()) else { return false };
        let waits = match error.code.as_str() {
            "ack_rejected" => ack.status == super::ack::Standing::EnvironmentIssue,
            "ack_timeout" => !ack.questions.is_empty(),
            _ => false,
        };
        self.step == Step::Failed && waits
    }

    /// Whether its successor waits for answers to its questions.
    #[must_use]
    pub fn asks(&self) -> bool {
        let waits = |ack: &AckView| ack.status == super::ack::Standing::NeedsClarification;
        self.step == Step::Acknowledging && self.ack.as_ref().is_some_and(waits)
    }

    /// The successor's questions that a person can answer now: those that it waits for, or those that the last answers
    /// have left open. None if it waits for an answer without a question.
    #[must_use]
    pub fn open_questions(&self) -> &[String] {
        match &self.ack {
            Some(ack) if self.asks() || self.waits_after_failure() => &ack.questions,
            Some(ack) if self.step == Step::Acknowledging => &ack.unanswered,
            Some(_) | None => &[],
        }
    }
}
