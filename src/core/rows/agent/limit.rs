//! What an agent's row keeps about the limits of its CLI.

use crate::contract::LimitKind;
use crate::core::effect::EffectKey;
use crate::core::id::HandoffId;
use crate::core::rows::choice::ProfileChoice;
use crate::core::time::Deadline;
use serde::{Deserialize, Serialize};

/// A limit that stops the CLI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limited {
    pub kind: LimitKind,
    /// Wall clock, in milliseconds since 1970.
    pub since_ms: i64,
    /// When it ends, if the CLI says so; wall clock, in milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// What the CLI says.
    pub said: String,
    /// Only the screen shows it.
    #[serde(default)]
    pub on_screen: bool,
}

/// A CLI and model that are known to be used up, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedUp {
    pub choice: ProfileChoice,
    /// Wall clock, in milliseconds since 1970.
    pub until_ms: i64,
}

/// Why a limit is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LookCause {
    /// The CLI has reported the end of a turn as a good one: if no limit is found, none stops the CLI any more.
    EndedWell,
    /// A turn has ended in an error, or only the screen shows that it is over, so nobody knows how it ended: a limit
    /// that is found may be a new one.
    #[serde(rename = "ended")]
    EndedOtherwise,
    /// A dialog is open, or the CLI wants a person to know something; the turn may still run.
    #[default]
    Sign,
}

/// What an agent's row keeps about the limits of its CLI.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitWatch {
    pub limited: Option<Limited>,
    /// The effect that looks for a limit.
    pub looking: Option<EffectKey>,
    /// The handoff in which the agent was when this look began, or in the turn before it: it decides what follows.
    #[serde(default)]
    pub in_handoff_id: Option<HandoffId>,
    /// Why the last look began.
    pub cause: LookCause,
    /// The effect that reads the persona's fallbacks.
    pub checking: Option<EffectKey>,
    /// When the agent is told to continue.
    pub resume_at: Option<Deadline>,
    /// What it and the agents before it in the chain have used up, at most 16.
    pub used_up: Vec<UsedUp>,
}
