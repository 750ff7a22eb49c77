//! The inputs of an examination: tasuki looks at an agent's work and checks the agent's document against it.

use crate::contract::facts::{ChainFacts, RepositoryFacts};
use crate::contract::handoff::Author;
use crate::core::id::{AgentId, HandoffId, Slug};
use crate::core::pane::Process;
use crate::core::settings::DocumentRules;
use serde::{Deserialize, Serialize};

/// One examination: collects facts of an agent's work, writes them beside the document, and checks the document against
/// them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExaminePlan {
    pub handoff_id: HandoffId,
    pub agent_id: AgentId,
    pub persona: Slug,
    pub file_name: String,
    /// SHA-256 of the document as it was read, hexadecimal.
    pub sha256: String,
    pub author: Author,
    /// An acknowledgement is wanted.
    pub is_urgent: bool,
    /// In these rules, `check` is the setting of this handoff. With `off`, tasuki does not look for faults.
    pub rules: DocumentRules,
    /// What the agent was asked to write; empty if it was not asked.
    pub instruction: String,
    pub profile: String,
    pub cwd: Option<String>,
    /// When the agent registered: UTC.
    pub since: Option<String>,
    pub session_id: Option<String>,
    pub transcript: Option<String>,
    /// How full its context is by its own events, in percent.
    pub context_percent: Option<u64>,
    pub process: Option<Process>,
    /// Generation and earlier documents. The examination adds the rules that those documents name.
    pub chain: ChainFacts,
}

/// What the repository is compared with at the briefing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    pub cwd: String,
    /// The repository as it was when the document was recorded.
    pub repository: RepositoryFacts,
}

/// What a search of a document for the values of its agent's environment has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvironmentSearch {
    /// It was not searched, or the environment could not be read.
    #[default]
    NotDone,
    /// No such value. Also on a system where tasuki can't read environments at all.
    Clean,
    /// At least one.
    Found,
}
