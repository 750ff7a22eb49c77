//! The notices of a watcher, on every system.

use std::path::{Path, PathBuf};

/// A hint that something may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FolderNotice {
    /// The file at this path was made, moved here or changed. On some systems, it may also have been removed.
    Came(PathBuf),
    /// The file at this path was removed or moved away.
    Left(PathBuf),
    /// Something came to this folder or left it; the system does not say which file. The path is that given to `watch`.
    In(PathBuf),
    /// Notices were lost, or a notice does not say what it is about: look everywhere.
    Lost,
    /// The watcher has failed; make another.
    Broken,
}

impl FolderNotice {
    /// The path, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            FolderNotice::Came(path) | FolderNotice::Left(path) | FolderNotice::In(path) => Some(path),
            FolderNotice::Lost | FolderNotice::Broken => None,
        }
    }
}
