//! Tells that something has changed in a few folders. What is told is only a hint: the system merges, delays and loses
//! notices, so who uses them also looks from time to time.
//!
//! On macOS the kernel queue tells of the folders, which are held open for it: at once, and without their paths, which may
//! lead over links. It does not say which file has come or gone, and tells of a file's growth only if that file is held
//! open too. The other systems have notices of their own, such as inotify.

#[cfg(target_os = "macos")]
mod kernel_queue;
mod notice;
#[cfg(not(target_os = "macos"))]
mod notices;
#[cfg(any(target_os = "macos", test))]
mod table;

#[cfg(target_os = "macos")]
pub use kernel_queue::FolderWatcher;
#[cfg(not(target_os = "macos"))]
pub use notices::FolderWatcher;

pub use notice::FolderNotice;

/// Whether the growth of any file in a watched folder is told; else only that of files that are watched themselves.
pub const SEES_GROWTH: bool = cfg!(not(target_os = "macos"));
