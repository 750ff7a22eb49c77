//! What an agent's row keeps about its context usage.

use crate::core::effect::EffectKey;
use crate::core::time::Deadline;
use serde::{Deserialize, Serialize};

/// Which turn of an agent has ended last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastTurn {
    /// The one that answered its priming.
    Priming,
    /// The one that answered its briefing.
    Briefing {
        /// It ended so soon that the agent can only have read.
        short: bool,
    },
    /// Any other, or none.
    #[default]
    Other,
}

/// What is kept about an agent's context usage besides the numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ContextWatch {
    /// The effect that reads the context usage from the transcript.
    pub reading: Option<EffectKey>,
    /// The effect that checks whether an automatic handoff may begin.
    #[serde(rename = "looking")]
    pub checking: Option<EffectKey>,
    /// The window's size as the CLI itself has reported it.
    #[serde(rename = "told_window")]
    pub reported_window: Option<u64>,
    /// The window's size is guessed from the model's name.
    pub guessed: bool,
    /// The context has reached the share at which tasuki suggests a handoff.
    #[serde(default)]
    pub reached: bool,
    /// The session in which the operator was notified.
    pub suggested_in: Option<String>,
    /// The session in which an automatic handoff has begun. In the same session only the operator begins another one.
    pub begun_in: Option<String>,
    /// Why the automatic handoff was deferred, as the journal's last line says.
    #[serde(rename = "put_off")]
    pub deferred_because: Option<String>,
    #[serde(default)]
    pub last_turn: LastTurn,
    /// How many tokens were used when the agent had answered its priming.
    #[serde(default)]
    pub used_by_priming: Option<u64>,
    /// Its briefing has arrived. Until this time the agent reads; what it does later is work.
    #[serde(default)]
    pub reads_until: Option<Deadline>,
}
