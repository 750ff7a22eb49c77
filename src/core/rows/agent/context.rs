//! What is remembered of how full an agent's context is.

use crate::core::effect::EffectKey;
use serde::{Deserialize, Serialize};

/// What is remembered of an agent's context besides the numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ContextWatch {
    /// The effect that reads the gauge from the transcript.
    pub reading: Option<EffectKey>,
    /// The effect that looks whether a handoff may begin by itself.
    #[serde(rename = "looking")]
    pub checking: Option<EffectKey>,
    /// The window's size as the CLI itself has reported it.
    #[serde(rename = "told_window")]
    pub reported_window: Option<u64>,
    /// The window's size in the gauge is a guess by the model's name.
    pub guessed: bool,
    /// The context has reached the share from which on a handoff is suggested.
    #[serde(default)]
    pub reached: bool,
    /// The session in which the operator was notified.
    pub suggested_in: Option<String>,
    /// The session in which a handoff has begun by itself: another one there is for the operator to begin.
    pub begun_in: Option<String>,
    /// Why it has not begun, as the journal said last.
    #[serde(rename = "put_off")]
    pub deferred_because: Option<String>,
}
