//! Why a change to a CLI's configuration failed.

use super::text::SyntaxError;
use crate::files::Unfit;
use std::io;
use std::path::{Path, PathBuf};

/// Why a change failed. The file was left as it is, except with [`InstallError::Unrecorded`].
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The profile has no `install` section.
    #[error("the profile {profile} does not say what to install")]
    NoInstall { profile: String },
    /// None of the profile's paths can be resolved.
    #[error("tasuki can't tell where {profile} keeps its configuration: HOME is not set")]
    NoPlace { profile: String },
    /// The file must not be changed.
    #[error("{path} was left as it is: {why}", path = path.display())]
    Unfit { path: PathBuf, why: Unfit },
    #[error("{path} is a broken link; nothing was written", path = path.display())]
    DanglingLink { path: PathBuf },
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
    /// A whole file of ours would replace a file that is not ours.
    #[error("{path} was left as it is: it is not the file that tasuki installed", path = path.display())]
    Foreign { path: PathBuf },
    /// Another program wrote the file while we were changing it.
    #[error("{path} was just changed by another program; nothing was written", path = path.display())]
    Changed { path: PathBuf },
    /// The record of an installation can't be read.
    #[error("the record of the installation, {path}, can't be read, so nothing was changed: {message}", path = path.display())]
    Record { path: PathBuf, message: String },
    /// The file was changed, and after that its record could not be removed.
    #[error(
        "{path} was changed as planned, but the record of the installation, {record}, could not be removed: {source}",
        path = path.display(), record = record.display()
    )]
    Unrecorded { path: PathBuf, record: PathBuf, source: io::Error },
    #[error("could not {doing} {path}: {source}", path = path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

pub(super) fn wrong(path: &Path, fault: SyntaxError) -> InstallError {
    InstallError::Wrong { path: path.to_owned(), line: fault.line, column: fault.column, message: fault.message }
}
