//! What the operator is told outside a failed handoff, as others see it.

use super::words::{Word, without_defaults, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

words! {
    listed
    /// The code of a notice. A failure has a code of its own instead, except for the first two, which are failures too.
    NoticeCode {
        /// An agent with a persona has died outside a handoff, and nobody asked it to end; or several together.
        AgentDied = "agent_died",
        /// A turn of an agent with a persona has ended in an error outside a handoff.
        TurnFailed = "turn_failed",
        /// An agent waits at a dialog: within a handoff, or for longer than `notify.blocked_after`.
        AgentBlocked = "agent_blocked",
        /// A limit stops an agent's CLI.
        AgentLimited = "agent_limited",
        /// A successor's questions wait for answers.
        QuestionOpen = "question_open",
        /// An agent's context has reached `context.suggest_at`.
        ContextFull = "context_full",
        /// A handoff has begun by itself, because the context has reached `context.auto_at`.
        HandoffBegun = "handoff_begun",
        /// The context has reached `context.auto_at`, and a handoff could not begin.
        HandoffDeferred = "handoff_deferred",
        /// A document waits for the operator to accept it.
        DocumentHeld = "document_held",
        /// The successor starts from another point than the document says.
        CheckpointDiffers = "checkpoint_differs",
        /// A new session in the same pane has taken over.
        SessionReplaced = "session_replaced",
        /// The handoff to a new session in the same pane was cancelled.
        HandoffCancelled = "handoff_cancelled",
        /// An urgent handoff has been briefed.
        HandoffNotice = "handoff_notice",
        /// The successor of an urgent handoff has begun.
        HandoffComplete = "handoff_complete",
        /// No acknowledgement came, or nobody answered the successor's questions.
        Escalation = "escalation",
        /// An item was completed, and its rule asks for a person.
        WorkCompleted = "work_completed",
        /// Items wait for a person.
        WorkWaiting = "work_waiting",
        /// An item was escalated.
        WorkEscalated = "work_escalated",
        /// The children of a completed item have failed: the completion was undone, or can't be.
        WorkRolledBack = "work_rolled_back",
    }
}

/// What `notify.command` gets on standard input if the notice reports no failure, or if it reports several agents that
/// have died together (`agent_ids` and `error_ids`). Any other failure is the content of its error file instead, with
/// `code`, `message`, `hint`, `agent_id` and `handoff_id` too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct NoticeRecord {
    /// The format's version: 1.
    pub v: u8,
    /// When: UTC, milliseconds, `Z`.
    pub at: String,
    /// Why the operator is told.
    pub code: Word<NoticeCode>,
    /// The message: one sentence.
    pub message: String,
    /// What to do; empty if there is nothing to do.
    pub hint: String,
    /// Message and hint in one text.
    pub notice: String,
    /// The agent that it is about.
    pub agent_id: Option<String>,
    /// The handoff that it is about.
    pub handoff_id: Option<String>,
    /// Further fields, which depend on the code, such as `persona_slug`, `percent`, `item_id`, `content` or
    /// `agent_ids`.
    #[serde(flatten)]
    pub details: Map<String, Value>,
}
