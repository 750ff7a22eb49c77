//! The adapters that effects need.

use super::late::Late;
use crate::agents::profile::Profiles;
use crate::config::{FactsConfig, Home, OperatorCommand};
use crate::tmux::Tmux;
use std::path::PathBuf;
use std::sync::Arc;

/// The adapters that effects need.
#[derive(Debug)]
pub struct Tools {
    pub tmux: Tmux,
    pub profiles: Profiles,
    pub home: Home,
    /// What tells the operator beside tmux.
    pub notify_command: OperatorCommand,
    /// The user's `gh`, by name or path.
    pub gh: String,
    /// How tasuki looks at an agent's work itself.
    pub facts: FactsConfig,
    /// Expressions for what looks like a credential and is none.
    pub allow: Vec<String>,
    /// The path of this program, for hooks and for the demo agent.
    pub program: PathBuf,
    /// The effects that did not end in time.
    pub late: Arc<Late>,
}
