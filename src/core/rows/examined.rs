//! What tasuki does about a document before it records it, and what it has found in it.

use crate::contract::document::{DocumentCheck, FaultGrade};
use crate::contract::{DocumentFault, Facts};
use crate::core::effect::EnvironmentSearch;
use serde::{Deserialize, Serialize};

/// What the step `checking` waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckPhase {
    /// For the document to be read and examined.
    Examining,
    /// For the end of the turn in which the agent repairs it.
    Reworking,
    /// For the agent to be idle: the text that asks it to repair the document may not have been typed, or was not. Then
    /// tasuki reads the document again.
    #[serde(rename = "doubt")]
    AwaitingIdle,
    /// For a person.
    Held,
}

/// What tasuki does about the document before it records it, and what it has found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Examined {
    /// What is done about faults.
    pub check: DocumentCheck,
    /// A person wants to see the document first.
    pub review: bool,
    /// A person has accepted the document as it is.
    pub accepted: bool,
    /// SHA-256 of the document that was read last and is not recorded, hexadecimal.
    pub sha256: Option<String>,
    pub facts: Option<Box<Facts>>,
    /// Whether the document that was read last holds values of its agent's environment. The environment ends with the
    /// agent, so that a later search may not be able to tell.
    pub environment: EnvironmentSearch,
    pub faults: Vec<DocumentFault>,
    /// The text of the document that was read last and is not recorded. If the agent is asked to repair the document
    /// and leaves it empty, this text is recorded.
    #[serde(rename = "before")]
    pub last_read_text: Option<String>,
    /// What the agent was asked to repair last.
    pub former: Option<FormerDocument>,
    /// How often the agent was asked to repair the document.
    pub reworks: u64,
    /// The operator's words for the next rework.
    pub note: Option<String>,
    /// Since when the document waits for a person.
    pub held_since: Option<String>,
    /// What has changed in the repository between the record and the briefing.
    pub drift: Vec<String>,
}

/// A document that the agent was asked to repair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerDocument {
    pub text: String,
    /// How many faults that matter it had.
    pub faults: usize,
    /// Hexadecimal.
    #[serde(default)]
    pub sha256: Option<String>,
    /// A person has asked for the repair.
    #[serde(default)]
    pub by_person: bool,
}

impl Examined {
    /// Whether a fault matters enough to ask the agent, or a person.
    #[must_use]
    pub fn needs_repairing(&self) -> bool {
        self.repairable() > 0
    }

    /// How many such faults there are.
    #[must_use]
    pub fn repairable(&self) -> usize {
        self.faults.iter().filter(|fault| fault.grade == FaultGrade::Fix).count()
    }
}
