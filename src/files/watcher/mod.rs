//! Reports that something has changed in a few folders. A notice is only a hint: the system merges, delays and loses
//! notices, so the user of a watcher must also look from time to time.
//!
//! On macOS, the notices come from the kernel queue. The watcher holds its folders open, and the queue reports changes
//! of open files. So notices come at once, and links in a folder's path do not matter. But the queue does not say which
//! file has come or gone, and it reports a file's growth only if that file is held open too. On other systems, the
//! notices come from the crate `notify`, which uses what the system has, such as inotify.

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

/// Whether a watched folder reports the growth of any file in it. Otherwise only the growth of files that were given to
/// [`FolderWatcher::watch_growth`] is reported.
pub const SEES_GROWTH: bool = cfg!(not(target_os = "macos"));
