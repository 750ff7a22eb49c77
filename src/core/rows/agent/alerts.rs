//! What the operator was told, or is to be told, of an agent outside a handoff.

use crate::core::effect::EffectKey;
use crate::core::time::Deadline;
use serde::{Deserialize, Serialize};

/// What is kept so that the operator is told once of each cause.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Alerts {
    /// The dialog that is open, as far as its events say.
    #[serde(default)]
    pub dialog: Option<OpenDialog>,
    /// The operator was told that a turn has failed, and no turn has succeeded since.
    #[serde(default, rename = "turn_failed")]
    pub told_of_failure: bool,
    /// What the CLI said of a turn that has failed, until it is known whether a limit has ended it.
    #[serde(default, rename = "failed_turn")]
    pub pending_failure: Option<String>,
}

/// A dialog that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenDialog {
    /// When to look whether it is still open; none while the look runs.
    pub due: Option<Deadline>,
    /// The effect that looks.
    pub look: Option<EffectKey>,
    /// The operator was told of it.
    pub is_told: bool,
    /// A look has found it open.
    #[serde(default)]
    pub is_seen: bool,
    /// What the CLI said of it.
    pub message: Option<String>,
}
