//! How a document is checked before it is recorded.

use super::words::{Word, without_defaults, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// What is done about a document whose checks find faults.
    #[derive(Default, JsonSchema)]
    DocumentCheck {
        /// Nothing: the document is not checked.
        Off = "off",
        /// The faults become warnings.
        Warn = "warn",
        /// The agent is asked once to repair them; what is left becomes warnings.
        #[default]
        Fix = "fix",
        /// The handoff waits for a person.
        Hold = "hold",
    }
}

words! {
    listed
    /// What was checked.
    FaultCheck {
        /// A section that was asked for is missing or empty.
        Sections = "sections",
        /// It is too short or too long.
        Size = "size",
        /// It ends in the middle, or a fence does not close.
        Whole = "whole",
        /// It is a copy of the predecessor's document or of the instruction.
        Copy = "copy",
        /// It names a file that does not exist.
        Paths = "paths",
        /// It says something about the repository that git contradicts.
        Repository = "repository",
        /// Changed files that it does not name.
        DirtyFiles = "dirty_files",
        /// It names no place to begin, or a stale one.
        Checkpoint = "checkpoint",
        /// It does not say what was verified last, or that is stale.
        Verified = "verified",
        /// It names no next command and no file to begin with.
        NextStep = "next_step",
        /// It holds a credential.
        Secrets = "secrets",
    }
}

words! {
    listed
    /// How much a fault matters.
    FaultGrade {
        /// The agent is asked to repair it.
        Fix = "fix",
        /// It is only told.
        Warn = "warn",
    }
}

/// A fault of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct DocumentFault {
    /// Which check found it.
    pub check: Word<FaultCheck>,
    /// How much it matters.
    pub grade: Word<FaultGrade>,
    /// The line in the document, from 1; null where the fault is not in one line.
    pub line: Option<u64>,
    /// What the document says, or lacks, in a few words. Of a credential only its kind and its last four characters.
    pub said: String,
    /// What tasuki has found instead.
    pub is: String,
}

impl DocumentFault {
    /// The fault in one line, for a warning or a list.
    #[must_use]
    pub fn sentence(&self) -> String {
        let line = self.line.map(|line| format!("line {line}: ")).unwrap_or_default();
        match (self.said.is_empty(), self.is.is_empty()) {
            (false, false) => format!("{line}{}; {}", self.said, self.is),
            (false, true) => format!("{line}{}", self.said),
            (true, _) => format!("{line}{}", self.is),
        }
    }
}
