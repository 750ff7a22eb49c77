//! A failure, as others see it.

use super::words::without_defaults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `spool/errors/<error_id>.json`: one failure. Deleting the file dismisses it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ErrorFile {
    /// The format's version: 1.
    pub v: u8,
    /// The failure's id.
    pub error_id: String,
    /// When: UTC, milliseconds, `Z`.
    pub at: String,
    /// The error code.
    pub code: String,
    /// The message: one sentence.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// The handoff that failed, if a handoff failed.
    pub handoff_id: Option<String>,
    /// The agent that the failure is about.
    pub agent_id: Option<String>,
    /// The step at which the handoff stopped.
    pub step: Option<String>,
}
