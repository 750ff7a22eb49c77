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
    NoInstall { profile: String },
    /// None of the profile's places can be told.
    #[error("where {profile} keeps its configuration can't be told: HOME is not set")]
    NoPlace { profile: String },
    /// The file is not one that is changed.
    #[error("{path} was left as it is: {why}", path = path.display())]
    Unfit {
        path: PathBuf,
        /// The rule that it breaks.
        why: Unfit,
    },
    /// A link that leads nowhere.
    #[error("{path} is a link that leads nowhere; nothing was written", path = path.display())]
    DanglingLink { path: PathBuf },
    /// The file is not UTF-8.
    #[error("{path} was left as it is: it is not UTF-8", path = path.display())]
    NotText { path: PathBuf },
    /// The file can't be read as what it should be.
    #[error("{path} was left as it is: line {line}, column {column}: {message}", path = path.display())]
    Wrong {
        path: PathBuf,
        line: usize,
        /// In characters, from 1.
        column: usize,
        message: String,
    },
    /// A whole file of ours would go where something else lies.
    #[error("{path} was left as it is: it is not what tasuki put there", path = path.display())]
    Foreign { path: PathBuf },
    /// Somebody wrote the file meanwhile.
    #[error("{path} was changed by somebody else just now; nothing was written", path = path.display())]
    Changed { path: PathBuf },
    /// The record of an installation can't be read.
    #[error("the record {path} can't be read, and so nothing was changed: {message}", path = path.display())]
    Record { path: PathBuf, message: String },
    /// The system would not let us.
    #[error("can't {doing} {path}: {source}", path = path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

pub(super) fn wrong(path: &Path, fault: Fault) -> InstallError {
    InstallError::Wrong { path: path.to_owned(), line: fault.line, column: fault.column, message: fault.message }
}
