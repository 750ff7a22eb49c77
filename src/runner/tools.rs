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
    /// How the operator is notified, in addition to tmux.
    pub notify_command: OperatorCommand,
    /// The user's `gh`, by name or path.
    pub gh: String,
    /// How tasuki collects the facts of an agent's work.
    pub facts: FactsConfig,
    /// Expressions for texts that look like credentials but are not.
    pub allow: Vec<String>,
    /// The path of this program, for hooks and for the demo agent.
    pub program: PathBuf,
    /// The effects that did not end in time.
    pub late: Arc<Late>,
}
