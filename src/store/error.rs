//! Errors of the store, and which of redb's errors mean that the file is damaged or was not written by tasuki.

use super::tables::SCHEMA;
use std::path::{Path, PathBuf};

/// Why the store can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("another sidecar (pid {pid}) uses {}; nothing was changed. Stop that sidecar first, or use another --home", path.display())]
    Locked { path: PathBuf, pid: String },
    /// The file is damaged, foreign or of an old format.
    #[error(
        "the state file {} can't be read: {why}. The file was left as it is. Restore a copy, or move the file away to \
         begin with an empty state", path.display()
    )]
    Unreadable { path: PathBuf, why: String },
    /// A newer version of tasuki wrote it.
    #[error(
        "the state file {} has schema {found}; this version of tasuki knows schemas up to {SCHEMA}. The file was left \
         as it is. Use the version of tasuki that wrote it", path.display()
    )]
    NewerSchema { path: PathBuf, found: u64 },
    /// A single row that this version can't have written. Other rows can still be used.
    #[error("a row of the table {table} in the state file {} can't be understood: {why}. The file was left as it is", path.display())]
    Row { path: PathBuf, table: String, why: String },
    /// It was moved, deleted or replaced while it was open.
    #[error(
        "the state file {} was moved, deleted or replaced while it was open; requests and events wait until it is \
         back. Put the file back, or stop this sidecar and start another, which uses the file that is there now", path.display()
    )]
    Gone { path: PathBuf },
    /// Any other I/O error. A commit that was running may or may not have succeeded.
    #[error("the state file {} could not be {what}: {why}", path.display())]
    Io { path: PathBuf, what: &'static str, why: String },
}

impl Error {
    /// Converts an error of redb; `what` was being done with the file at `path`. Wrong content is not an I/O error,
    /// because a retry does not help.
    pub(super) fn of(path: &Path, what: &'static str, error: impl Into<redb::Error>) -> Error {
        let error = error.into();
        let why = error.to_string();
        let path = path.to_path_buf();
        match error {
            redb::Error::TableDoesNotExist(_)
            | redb::Error::TableTypeMismatch { .. }
            | redb::Error::TableIsMultimap(_)
            | redb::Error::TableIsNotMultimap(_)
            | redb::Error::TypeDefinitionChanged { .. }
            | redb::Error::UpgradeRequired(_)
            | redb::Error::Corrupted(_) => Error::Unreadable { path, why },
            _ => Error::Io { path, what, why },
        }
    }
}

/// Whether damage to the file or the disk may have caused this error. A full disk has not, and an error that redb
/// repeats after an earlier one says nothing new.
pub(super) fn may_be_corruption(error: &redb::Error) -> bool {
    use std::io::ErrorKind as Kind;
    match error {
        redb::Error::Io(error) => !matches!(error.kind(), Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge),
        redb::Error::PreviousIo | redb::Error::DatabaseClosed => false,
        _ => true,
    }
}
