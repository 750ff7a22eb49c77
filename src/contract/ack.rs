//! The acknowledgement of a handoff, as others see it.

use super::words::{Word, without_defaults, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

words! {
    /// How soon the successor must acknowledge.
    #[derive(JsonSchema)]
    Urgency {
        /// Within 5 minutes.
        Immediate = "immediate",
        /// Within 15 minutes.
        Prepare = "prepare",
        /// Within 30 minutes.
        WhenAvailable = "when_available",
    }
}

words! {
    listed
    /// The priority of a handoff's messages.
    Weight {
        /// Of an `immediate` handoff.
        Urgent = "urgent",
        /// Of a `prepare` handoff.
        High = "high",
        /// Of a `when_available` handoff.
        Normal = "normal",
    }
}

impl From<Urgency> for Weight {
    fn from(urgency: Urgency) -> Self {
        match urgency {
            Urgency::Immediate => Weight::Urgent,
            Urgency::Prepare => Weight::High,
            Urgency::WhenAvailable => Weight::Normal,
        }
    }
}

words! {
    /// What a successor says of its handoff.
    #[derive(JsonSchema)]
    AckStatus {
        /// Understood; it begins.
        ReadyToProceed = "ready_to_proceed",
        /// It has questions and waits for the answers.
        NeedsClarification = "needs_clarification",
        /// It can't set up what it needs.
        EnvironmentIssue = "environment_issue",
        /// It can't take the task.
        Rejected = "rejected",
    }
}

words! {
    listed
    /// The state of an acknowledgement.
    Standing {
        /// The successor is not briefed yet.
        NotAsked = "not_asked",
        /// It was asked and has not answered.
        Pending = "pending",
        /// It begins.
        Acknowledged = "acknowledged",
        /// It has asked, and waits for answers.
        NeedsClarification = "needs_clarification",
        /// It can't set up what it needs.
        EnvironmentIssue = "environment_issue",
        /// It can't take the task.
        Rejected = "rejected",
        /// The operator continued without the successor's answer.
        AcknowledgedWithDelay = "acknowledged_with_delay",
        /// The successor never answered, or its questions were never answered.
        TimedOut = "timed_out",
    }
}

words! {
    listed
    /// What is due next. T is the time within which the successor must acknowledge.
    Due {
        /// After T.
        Reminder = "reminder",
        /// After T/2 more.
        FinalReminder = "final_reminder",
        /// After T/2 more.
        Escalation = "escalation",
    }
}

words! {
    listed
    /// What a message tells its recipient.
    Kind {
        /// That the successor was briefed, and what it is to acknowledge.
        HandoffNotice = "handoff_notice",
        /// That no ACK came.
        Reminder = "reminder",
        /// The right form of an ACK.
        Form = "form",
        Clarification = "clarification",
        /// Where the document that came with answers is published.
        DocumentPublished = "document_published",
        /// That the operator asks again after a failure.
        AskedAgain = "asked_again",
        /// What the successor has said.
        HandoffAck = "handoff_ack",
        /// That neither ACK nor answer ever came.
        Escalation = "escalation",
        /// That the successor has begun.
        HandoffComplete = "handoff_complete",
    }
}

words! {
    listed
    /// How far a message is.
    Sending {
        /// It is typed as soon as the successor can take it.
        Waiting = "waiting",
        /// It is on its way.
        Open = "open",
        /// It arrived.
        Sent = "sent",
        /// It can't be known whether it arrived.
        Unconfirmed = "unconfirmed",
        /// It could not be typed in time, and will not be any more.
        Missed = "missed",
        /// It did not arrive.
        Failed = "failed",
    }
}

/// One answer to one question.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clarification {
    /// The question, as the successor asked it.
    pub question: String,
    /// The answer.
    pub answer: String,
}

/// The acknowledgement of an urgent handoff.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct AckView {
    /// How urgent it is.
    pub urgency: Word<Urgency>,
    /// The priority that its messages bear.
    pub priority: Word<Weight>,
    /// Where it stands.
    pub status: Word<Standing>,
    /// When the successor was asked for it: UTC, milliseconds, `Z`.
    pub sent_at: Option<String>,
    /// When the step fails if nothing happens.
    pub final_deadline: Option<String>,
    /// What is due next.
    pub next: Option<NextView>,
    /// How many rounds have begun: one at the briefing, and another one after questions, after answers and after a
    /// retry.
    pub round: u32,
    /// When the last ACK was taken.
    pub at: Option<String>,
    /// Whether the last ACK came after the deadline.
    pub late: bool,
    /// The status that the last ACK reported.
    pub said: Option<Word<AckStatus>>,
    /// The task in the successor's words, to be compared with `tasks`.
    pub understanding: Option<String>,
    /// What the successor has to do.
    pub tasks: Vec<String>,
    /// Where the successor continues.
    pub starting_from: Option<String>,
    /// The checkpoint that the document's front matter states.
    pub checkpoint: Option<String>,
    /// What the last ACK asks.
    pub questions: Vec<String>,
    /// Answers that were given.
    pub answers: Vec<Clarification>,
    /// Questions that no answer named.
    pub unanswered: Vec<String>,
    /// The decision of the operator, or of the orchestrator's agent, to continue without an ACK.
    pub r#override: Option<OverrideView>,
    /// Earlier ACKs.
    pub former: Vec<ReceivedView>,
    /// Documents that were replaced by better ones; their files still exist.
    pub former_documents: Vec<FormerDocumentView>,
    /// What became of each reminder.
    pub reminders: Vec<SentView>,
    /// What became of each escalation.
    pub escalations: Vec<SentView>,
    /// Every message, in the form that agent teams use.
    pub messages: Vec<MessageView>,
    /// How many reminders of the present round may have been read.
    pub reminders_sent: u64,
}

/// What is due next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct NextView {
    /// Which.
    pub what: Word<Due>,
    /// When: UTC, milliseconds, `Z`.
    pub at: String,
}

/// Why tasuki stopped waiting for an ACK.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct OverrideView {
    /// The reason.
    pub reason: String,
    /// Who stopped it: `operator`, or the id of the orchestrator's agent.
    pub by: String,
    /// When: UTC, milliseconds, `Z`.
    pub at: String,
}

/// An ACK that was taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ReceivedView {
    /// The agent that sent it.
    pub agent_id: String,
    /// The task in the agent's words.
    pub understanding: String,
    /// Where the agent continues.
    pub starting_from: String,
    /// The agent's questions.
    pub questions: Vec<String>,
    /// What the agent will do.
    pub status: Word<AckStatus>,
    /// When it was taken: UTC, milliseconds, `Z`.
    pub at: String,
    /// It came after the deadline.
    pub late: bool,
}

/// A document that was replaced by a better one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct FormerDocumentView {
    /// Its absolute path.
    pub file_path: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: String,
    /// When it was recorded: UTC, milliseconds, `Z`.
    pub recorded_at: String,
}

/// A reminder or an escalation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct SentView {
    /// Its number among the handoff's messages.
    pub number: u32,
    /// To whom.
    pub to: String,
    /// When it was due: UTC, milliseconds, `Z`.
    pub due_at: String,
    /// What became of it.
    pub outcome: Word<Sending>,
    /// When that was known.
    pub at: Option<String>,
    /// Why it did not arrive, or has not yet.
    pub reason: Option<String>,
    /// 1, or 2 for the final reminder.
    pub reminder_number: Option<u64>,
}

/// One message of the protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct MessageView {
    /// Its number.
    pub number: u32,
    /// What it is.
    pub kind: Word<Kind>,
    /// To whom: the successor's name, `operator`, `agent:…` or `command`.
    pub to: String,
    /// When it was due: UTC, milliseconds, `Z`.
    pub due_at: String,
    /// What became of it.
    pub outcome: Word<Sending>,
    /// When that was known.
    pub at: Option<String>,
    /// Why it did not arrive, or has not yet.
    pub reason: Option<String>,
    /// The message: `to`, `subject`, `priority`, `content`.
    pub message: Value,
}
