//! Errors of the store, and which of redb's errors mean that the file is damaged or was not written by tasuki.

use super::tables::SCHEMA;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Why the store can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another sidecar has the home's lock.
    #[error("another sidecar (pid {pid}) uses {}; nothing was changed. Stop that sidecar first, or use another --home", path.display())]
    Locked { path: PathBuf, pid: String },
    /// The file is damaged, is not a state file, or has a format of redb that is too old; or the link at its path leads
    /// nowhere.
    #[error(
        "the state file {} can't be read: {why}. The file was left as it is. Restore a copy. Or, to \
         begin with an empty state, stop the sidecar if it runs, move the file away, and start it", path.display()
    )]
    Unreadable { path: PathBuf, why: String },
    /// The state file or the lock file belongs to another user, or its permissions do not allow this user to use it.
    #[error(
        "{} could not be {what}: {why}. The file was left as it is. Give it to the user that runs tasuki (chown), and \
         let this user read and write it (chmod u+rw)",
        named(path)
    )]
    NotAllowed { path: PathBuf, what: &'static str, why: String },
    /// A newer version of tasuki wrote it.
    #[error(
        "the state file {} has schema {found}; this version of tasuki knows schemas up to {SCHEMA}. The file was left \
         as it is. Use the version of tasuki that wrote it", path.display()
    )]
    NewerSchema { path: PathBuf, found: u64 },
    /// A single row that can't be parsed. Other rows can still be used.
    #[error("a row of the table {table} in the state file {} can't be understood: {why}. The file was left as it is", path.display())]
    Row { path: PathBuf, table: String, why: String },
    /// It was moved, deleted or replaced while it was open.
    #[error(
        "the state file {} was moved, deleted or replaced while it was open; requests and events wait until it is \
         back. Put the file back. If another copy of it is there now, tasuki checks that one and continues with it. To begin \
         with an empty state, start the sidecar again",
        path.display()
    )]
    Gone { path: PathBuf },
    /// It was replaced by the file of another home while it was open.
    #[error(
        "the state file {} was replaced by that of another home; the file was left as it is, and requests and events \
         wait. Put the former file back. If you want this one, stop this sidecar and start another", path.display()
    )]
    OtherHome { path: PathBuf },
    /// Any other I/O error, also of the lock file or the seal. `what` is a participle, such as `written`. A commit that
    /// was running may or may not have succeeded.
    #[error("{} could not be {what}: {why}", named(path))]
    Io { path: PathBuf, what: &'static str, why: String },
}

/// A file of the store as a message names it.
fn named(path: &Path) -> String {
    let kind = match path.extension().and_then(OsStr::to_str) {
        Some("lock") => "the lock file",
        Some("closed") => "the seal of the state file,",
        _ => "the state file",
    };
    format!("{kind} {}", path.display())
}

impl Error {
    /// An error of the system, which says nothing about the file's content.
    pub(super) fn io(path: &Path, what: &'static str, error: &std::io::Error) -> Error {
        let (path, why) = (path.to_path_buf(), error.to_string());
        match error.kind() {
            std::io::ErrorKind::PermissionDenied => Error::NotAllowed { path, what, why },
            _ => Error::Io { path, what, why },
        }
    }

    /// As [`Error::io`] for a file that was to be opened; [`Error::Unreadable`] where its content is wrong or the file
    /// is missing, because then a retry does not help.
    pub(super) fn of_opening(path: &Path, error: &std::io::Error) -> Error {
        use std::io::ErrorKind as Kind;
        match error.kind() {
            Kind::InvalidData | Kind::UnexpectedEof | Kind::InvalidInput | Kind::NotFound | Kind::Other => {
                Error::Unreadable { path: path.to_path_buf(), why: error.to_string() }
            }
            _ => Error::io(path, "opened", error),
        }
    }

    /// Converts an error with which redb did not open a file.
    pub(super) fn of_database(path: &Path, error: redb::DatabaseError) -> Error {
        match error {
            redb::DatabaseError::DatabaseAlreadyOpen => {
                Error::Locked { path: path.to_path_buf(), pid: "unknown".into() }
            }
            redb::DatabaseError::Storage(redb::StorageError::Io(error)) => Error::of_opening(path, &error),
            other => Error::Unreadable { path: path.to_path_buf(), why: other.to_string() },
        }
    }

    /// Converts an error of redb into [`Error::Io`] with this `what`; into [`Error::Unreadable`] where the file's
    /// content is wrong, because then a retry does not help.
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

/// Whether damage to the file or the disk may have caused this error. A full disk, or a limit on size, is not damage.
/// `PreviousIo` and `DatabaseClosed` only repeat that an earlier call failed.
pub(super) fn may_be_corruption(error: &redb::Error) -> bool {
    use std::io::ErrorKind as Kind;
    match error {
        redb::Error::Io(error) => !matches!(error.kind(), Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge),
        redb::Error::PreviousIo | redb::Error::DatabaseClosed => false,
        _ => true,
    }
}
