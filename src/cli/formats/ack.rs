//! The acknowledgement in a handoff's view.

use crate::core::request::{AckStatus, Clarification, Urgency};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The acknowledgement of an urgent handoff.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AckView {
    /// How urgent it is.
    pub urgency: Urgency,
    /// The priority that its messages bear.
    #[schemars(extend("enum" = ["urgent", "high", "normal"]))]
    pub priority: String,
    /// Where it stands.
    #[schemars(extend("enum" = ["not_asked", "pending", "acknowledged", "needs_clarification", "environment_issue", "rejected", "acknowledged_with_delay", "timed_out"]))]
    pub status: String,
    /// When the successor was asked for it: UTC, milliseconds, `Z`.
    pub sent_at: Option<String>,
    /// When the step fails if nothing happens.
    pub final_deadline: Option<String>,
    /// What falls next.
    pub next: Option<NextView>,
    /// How often the time has begun: at the briefing, after questions, after answers, after a retry.
    pub round: u32,
    /// When the last ACK was taken.
    pub at: Option<String>,
    /// That one came after the time was up.
    pub late: bool,
    /// What that one said that its agent will do.
    pub said: Option<AckStatus>,
    /// The task in the successor's words, to be compared with `tasks`.
    pub understanding: Option<String>,
    /// What the successor has to do.
    pub tasks: Vec<String>,
    /// Where the successor goes on.
    pub starting_from: Option<String>,
    /// The checkpoint that the document's front matter states.
    pub checkpoint: Option<String>,
    /// What the last ACK asks.
    pub questions: Vec<String>,
    /// Answers that were given.
    pub answers: Vec<Clarification>,
    /// Questions that no answer named.
    pub unanswered: Vec<String>,
    /// The operator's decision to go on without an ACK.
    pub r#override: Option<OverrideView>,
    /// Earlier ACKs.
    pub former: Vec<ReceivedView>,
    /// Documents that gave way to better ones; their files are still there.
    pub former_documents: Vec<FormerDocumentView>,
    /// What became of each reminder.
    pub reminders: Vec<SentView>,
    /// What became of each escalation.
    pub escalations: Vec<SentView>,
    /// Every message, in the form that teams know.
    pub messages: Vec<MessageView>,
    /// Reminders since the time last began for another reason than a reminder.
    pub reminders_sent: u64,
}

/// What falls next.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NextView {
    /// Which.
    #[schemars(extend("enum" = ["reminder", "final_reminder", "escalation"]))]
    pub what: String,
    /// When: UTC, milliseconds, `Z`.
    pub at: String,
}

/// Why no ACK was waited for any longer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OverrideView {
    /// The operator's reason.
    pub reason: String,
    /// When: UTC, milliseconds, `Z`.
    pub at: String,
}

/// An ACK that was taken.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReceivedView {
    /// From whom.
    pub agent_id: String,
    /// The task in its words.
    pub understanding: String,
    /// Where it goes on.
    pub starting_from: String,
    /// What it asks.
    pub questions: Vec<String>,
    /// What it will do.
    pub status: AckStatus,
    /// When it was taken: UTC, milliseconds, `Z`.
    pub at: String,
    /// It came after the time was up.
    pub late: bool,
}

/// A document that gave way to a better one.
#[derive(Debug, Serialize, JsonSchema)]
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
#[derive(Debug, Serialize, JsonSchema)]
pub struct SentView {
    /// Its number among the handoff's messages.
    pub number: u32,
    /// To whom.
    pub to: String,
    /// When it was due: UTC, milliseconds, `Z`.
    pub due_at: String,
    /// What became of it.
    #[schemars(extend("enum" = ["waiting", "open", "sent", "unconfirmed", "missed", "failed"]))]
    pub outcome: String,
    /// When that was known.
    pub at: Option<String>,
    /// Why it did not arrive, or has not yet.
    pub reason: Option<String>,
    /// 1, or 2 for the final reminder.
    pub reminder_number: Option<u64>,
}

/// One message of the protocol.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MessageView {
    /// Its number.
    pub number: u32,
    /// What it is.
    #[schemars(extend("enum" = ["handoff_notice", "reminder", "form", "clarification", "asked_again", "handoff_ack", "escalation", "handoff_complete"]))]
    pub kind: String,
    /// To whom: the successor's name, `operator`, `agent:…` or `command`.
    pub to: String,
    /// When it was due: UTC, milliseconds, `Z`.
    pub due_at: String,
    /// What became of it.
    #[schemars(extend("enum" = ["waiting", "open", "sent", "unconfirmed", "missed", "failed"]))]
    pub outcome: String,
    /// When that was known.
    pub at: Option<String>,
    /// Why it did not arrive, or has not yet.
    pub reason: Option<String>,
    /// The message: `to`, `subject`, `priority`, `content`.
    pub message: Value,
}
