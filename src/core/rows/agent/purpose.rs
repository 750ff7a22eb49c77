//! Why a text is typed.

use crate::core::id::{HandoffId, ItemId, RequestId};
use serde::{Deserialize, Serialize};

/// Why a text is typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    Instruction(HandoffId),
    /// The text that asks the outgoing agent to repair its document.
    Rework(HandoffId),
    /// The persona's skill, within a handoff or after an `agent_create`.
    Priming(Option<HandoffId>),
    Briefing(HandoffId),
    Send(RequestId),
    Work(ItemId),
    /// The exit command, within a handoff or for an `agent_shutdown`.
    Exit(Option<HandoffId>),
    /// The command for a new session in the same process, within a handoff.
    NewSession(HandoffId),
    /// A message about a handoff's acknowledgement, by its number there.
    Message(HandoffId, u32),
    /// The text by which the agent continues after a limit of its CLI.
    Resume,
}

impl Purpose {
    /// The handoff that the text belongs to, if any.
    #[must_use]
    pub fn handoff(&self) -> Option<HandoffId> {
        match self {
            Purpose::Instruction(id)
            | Purpose::Rework(id)
            | Purpose::Briefing(id)
            | Purpose::NewSession(id)
            | Purpose::Message(id, _) => Some(*id),
            Purpose::Priming(id) | Purpose::Exit(id) => *id,
            Purpose::Send(_) | Purpose::Work(_) | Purpose::Resume => None,
        }
    }

    /// The wire name, as the journal has it.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Purpose::Instruction(_) => "instruction",
            Purpose::Rework(_) => "rework",
            Purpose::Priming(_) => "priming",
            Purpose::Briefing(_) => "briefing",
            Purpose::Send(_) => "send",
            Purpose::Work(_) => "work",
            Purpose::Exit(_) => "exit",
            Purpose::NewSession(_) => "new_session",
            Purpose::Message(..) => "message",
            Purpose::Resume => "resume",
        }
    }

    /// It is a command of the CLI itself. A command has no receipt: only what the CLI then does proves that it arrived.
    #[must_use]
    pub fn is_command(&self) -> bool {
        matches!(self, Purpose::Exit(_) | Purpose::NewSession(_))
    }
}
