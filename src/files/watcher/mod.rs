//! Tells that something has changed in a few folders. What is told is only a hint: the system merges, delays and loses
//! notices, so who uses them also looks from time to time.
//!
//! On macOS the kernel queue tells of the folders, which are held open for it: at once, and without their paths, which may
//! lead over links. It does not say which file has come or gone, and tells of a file's growth only if that file is held
//! open too. The other systems have notices of their own, such as inotify.

#[cfg(target_os = "macos")]
mod kernel_queue;
#[cfg(not(target_os = "macos"))]
mod notices;
#[cfg(any(target_os = "macos", test))]
mod table;

#[cfg(target_os = "macos")]
pub use kernel_queue::FolderWatcher;
#[cfg(not(target_os = "macos"))]
pub use notices::FolderWatcher;

use std::path::PathBuf;

/// Whether the growth of any file in a watched folder is told; else only that of files that are watched themselves.
pub const SEES_GROWTH: bool = cfg!(not(target_os = "macos"));

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
    pub fn path(&self) -> Option<&std::path::Path> {
        match self {
            FolderNotice::Came(path) | FolderNotice::Left(path) | FolderNotice::In(path) => Some(path),
            FolderNotice::Lost | FolderNotice::Broken => None,
        }
    }
}
