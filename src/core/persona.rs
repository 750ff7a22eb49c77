//! What is known of a persona, as its folder was read.

use crate::contract::document::DocumentCheck;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What the disk says of a persona, read by the intake when a request names it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PersonaFacts {
    pub exists: bool,
    pub has_skill: bool,
    /// Its `persona.toml` can't be read: why.
    pub broken: Option<String>,
    pub profile: Option<String>,
    pub cwd: Option<String>,
    pub session: Option<String>,
    /// What is done about faults of its documents, if it says so itself.
    #[serde(default)]
    pub check: Option<DocumentCheck>,
    /// The names in its `handoffs/` folder.
    pub handoff_files: BTreeSet<String>,
    pub handoffs_dir: String,
}
