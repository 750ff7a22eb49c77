//! Errors of the spool. Their messages name the path, what was left untouched and what to do.

use std::io;
use std::path::{Path, PathBuf};

/// An error of the spool.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Owner or mode of a folder is not what tasuki requires. Nothing was changed.
    #[error("{path}: {what}. Nothing was changed. {fix}", path = .path.display())]
    NotAllowed { path: PathBuf, what: String, fix: String },
    /// The folders have the wrong layout: one is a link or a file, or they are on several file systems.
    #[error("{path}: {what}. Nothing was changed. {fix}", path = .path.display())]
    Layout { path: PathBuf, what: String, fix: String },
    /// There is no spool in this home.
    #[error("{path}: there is no spool here; nothing was written. Start the sidecar (`tasuki run`) or check --home", path = .path.display())]
    NoSpool { path: PathBuf },
    #[error("{path}: a file with that name already exists; nothing was written. Use another id", path = .path.display())]
    Taken { path: PathBuf },
    /// A journal line would leave a gap.
    #[error("{path}: line {got} would leave a gap after line {last}; nothing was written", path = .path.display())]
    Gap {
        path: PathBuf,
        last: u64,
        /// The line that was to be added.
        got: u64,
    },
    #[error("could not {action} {path}: {cause}", path = .path.display())]
    Io {
        /// What was tried, as a verb: "read", "move aside".
        action: &'static str,
        path: PathBuf,
        /// Part of the message, so it is not given as the error's source too.
        cause: io::Error,
    },
}

/// The kinds of error that callers tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Owner or mode is not what tasuki requires, or the system denied access.
    NotAllowed,
    /// Exit code 78: the folders have the wrong layout.
    Layout,
    /// Exit code 69: no sidecar has ever run here.
    NoSpool,
    Taken,
    /// The disk or the quota is full.
    Full,
    /// Any other I/O error; a retry may help.
    Io,
}

impl Error {
    /// The message, and the fix if there is one.
    #[must_use]
    pub fn parts(&self) -> (String, Option<&str>) {
        match self {
            Error::NotAllowed { path, what, fix } | Error::Layout { path, what, fix } => {
                (format!("{} {what}", path.display()), Some(fix))
            }
            Error::NoSpool { .. } | Error::Taken { .. } | Error::Gap { .. } | Error::Io { .. } => {
                (self.to_string(), None)
            }
        }
    }

    /// The system's error, if it says nothing about the file: a shortage, a disk that does not answer or a missing
    /// permission.
    #[must_use]
    pub fn unavailable(&self) -> Option<&io::Error> {
        match self {
            Error::Io { cause, .. } if crate::limits::is_unavailable(cause) => Some(cause),
            _ => None,
        }
    }

    /// The kind of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::NotAllowed { .. } => ErrorKind::NotAllowed,
            Error::Layout { .. } => ErrorKind::Layout,
            Error::NoSpool { .. } => ErrorKind::NoSpool,
            Error::Taken { .. } => ErrorKind::Taken,
            Error::Gap { .. } => ErrorKind::Io,
            Error::Io { cause, .. } => match cause.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Full,
                io::ErrorKind::PermissionDenied => ErrorKind::NotAllowed,
                _ => ErrorKind::Io,
            },
        }
    }

    /// The error for a folder that could not be opened.
    pub(super) fn open_dir(path: &Path, error: io::Error) -> Error {
        if crate::files::is_not_a_dir(&error) {
            let what = "is a link or a file, but must be a folder".to_owned();
            let fix = "Move it away; tasuki creates the folder itself".to_owned();
            return Error::Layout { path: path.to_owned(), what, fix };
        }
        Error::io("open the folder", path, error)
    }

    /// The error for a folder on another file system, into which files can't be renamed.
    pub(super) fn other_file_system(path: PathBuf) -> Error {
        let what = "is on a different file system than spool/".to_owned();
        let fix = "Put spool/ and state/ with all their folders on one file system".to_owned();
        Error::Layout { path, what, fix }
    }

    pub(super) fn other_mount(path: PathBuf) -> Error {
        let what = "is mounted by itself, so files can't be moved from it to state/reap".to_owned();
        let fix = "Mount the whole home, or neither spool/ nor state/ nor a folder in them".to_owned();
        Error::Layout { path, what, fix }
    }

    /// An error of the system, with what was tried.
    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>, cause: impl Into<io::Error>) -> Error {
        Error::Io { action, path: path.into(), cause: cause.into() }
    }
}
