//! The CLI and the model with which an agent is started.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// With which CLI, and which of its models, an agent is started.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileChoice {
    /// The profile that drives the CLI.
    pub profile: String,
    /// The model, as the CLI's own option takes it; absent: the CLI chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}
