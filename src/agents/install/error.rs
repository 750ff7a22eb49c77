//! Why a CLI's configuration was left as it is.

use super::text::Fault;
use crate::files::Unfit;
use std::io;
use std::path::{Path, PathBuf};

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The profile has no `install` section.
    #[error("the profile {profile} does not say what to install")]
    NoInstall {
        /// Which.
        profile: String,
    },
    /// None of the profile's places can be told.
    #[error("where {profile} keeps its configuration can't be told: HOME is not set")]
    NoPlace {
        /// Which.
        profile: String,
    },
    /// The file is not one that is changed.
    #[error("{path} was left as it is: {why}", path = path.display())]
    Unfit {
        /// Which.
        path: PathBuf,
        /// The rule that it breaks.
        why: Unfit,
    },
    /// A link that leads nowhere.
    #[error("{path} is a link that leads nowhere; nothing was written", path = path.display())]
    DanglingLink {
        /// Which.
        path: PathBuf,
    },
    /// The file is not UTF-8.
    #[error("{path} was left as it is: it is not UTF-8", path = path.display())]
    NotText {
        /// Which.
        path: PathBuf,
    },
    /// The file can't be read as what it should be.
    #[error("{path} was left as it is: line {line}, column {column}: {message}", path = path.display())]
    Wrong {
        /// Which.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// In characters, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// A whole file of ours would go where something else lies.
    #[error("{path} was left as it is: it is not what tasuki put there", path = path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
    },
    /// Somebody wrote the file meanwhile.
    #[error("{path} was changed by somebody else just now; nothing was written", path = path.display())]
    Changed {
        /// Which.
        path: PathBuf,
    },
    /// The record of an installation can't be read.
    #[error("the record {path} can't be read, and so nothing was changed: {message}", path = path.display())]
    Record {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The system would not let us.
    #[error("can't {doing} {path}: {source}", path = path.display())]
    Io {
        /// Read or write.
        doing: &'static str,
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

pub(super) fn wrong(path: &Path, fault: Fault) -> InstallError {
    InstallError::Wrong { path: path.to_owned(), line: fault.line, column: fault.column, message: fault.message }
}
