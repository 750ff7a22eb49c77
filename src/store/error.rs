//! Why the store can't be used, and which of redb's errors mean that the file is not ours, or damaged.

use super::tables::SCHEMA;
use std::path::{Path, PathBuf};

/// Why the store can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("another sidecar (pid {pid}) runs on {}; nothing was touched. Stop it first, or use another --home", path.display())]
    Locked { path: PathBuf, pid: String },
    /// The file is damaged, foreign or of an old format.
    #[error(
        "the state file {} can't be read: {why}. It was left as it is. Put a copy back, or move it away to begin with an empty state", path.display()
    )]
    Unreadable { path: PathBuf, why: String },
    /// A newer tasuki has written it.
    #[error(
        "the state file {} is of schema {found}; this tasuki knows schemas up to {SCHEMA}. It was left as it is. Use the tasuki that wrote it", path.display()
    )]
    NewerSchema { path: PathBuf, found: u64 },
    /// A single row that this version can't have written. The rest of the file is as good as it was.
    #[error("a row of the table {table} in the state file {} can't be understood: {why}. It was left as it is", path.display())]
    Row {
        path: PathBuf,
        /// The row's table.
        table: String,
        /// What is wrong with it.
        why: String,
    },
    /// It was moved, deleted or replaced while it was open.
    #[error(
        "the state file {} was moved, deleted or replaced while it was open; nothing is decided until it is back. Put it back, or end this sidecar and start another to go on with what lies there", path.display()
    )]
    Gone { path: PathBuf },
    /// Anything that the disk refused. What was being committed may or may not be there.
    #[error("the state file {} could not be {what}: {why}", path.display())]
    Io { path: PathBuf, what: &'static str, why: String },
}

impl Error {
    /// What redb says while the file at `path` was being `what`. Content that does not fit is no failure of the disk:
    /// trying again does not help.
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

/// Whether an error may come of damage to the file or the disk. A disk that is full damages nothing, and what redb says
/// again of an earlier failure tells nothing new.
pub(super) fn may_be_damage(error: &redb::Error) -> bool {
    use std::io::ErrorKind as Kind;
    match error {
        redb::Error::Io(error) => !matches!(error.kind(), Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge),
        redb::Error::PreviousIo | redb::Error::DatabaseClosed => false,
        _ => true,
    }
}
