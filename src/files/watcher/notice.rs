//! What a watcher tells, on every system.

use std::path::{Path, PathBuf};

/// What the system has told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FolderNotice {
    /// Something was made, moved or changed here.
    Came(PathBuf),
    /// Something was removed, or moved away from here.
    Left(PathBuf),
    /// Something came to this folder or left it; which file is not told. The path is the one that is watched.
    In(PathBuf),
    /// Notices were lost, or say nothing: look everywhere.
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
