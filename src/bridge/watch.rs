//! Reports changes in the folders that the bridge reads. If the system does not report a change, the bridge finds it
//! when it looks at everything, every 5 s.

use crate::config::Home;
use crate::files::watcher::{FolderNotice, FolderWatcher};
use crate::files::{self, FileStamp};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The files directly in `fleet/` that others write and the bridge reads. It writes all other files there itself, or
/// reads them only when it starts.
const READ: [&str; 2] = ["looked", "fleet.toml"];

/// Watches the folders.
pub(super) struct FolderWatch {
    watcher: Option<FolderWatcher>,
    /// The folders that are not watched yet, because they did not exist.
    missing: BTreeSet<PathBuf>,
    files: Arc<Notify>,
    views: Arc<Notify>,
}

impl FolderWatch {
    pub(super) fn new(home: &Home) -> FolderWatch {
        let (files, views) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (tell_files, tell_views) = (Arc::clone(&files), Arc::clone(&views));
        let view_folders = [home.agent_views(), home.handoff_views(), home.errors()];
        let judge = Judge::new(home.fleet(), view_folders.to_vec());
        let watcher = FolderWatcher::new(move |seen| {
            let changed = judge.changed(&seen);
            if changed.views {
                tell_views.notify_one();
            }
            if changed.files {
                tell_files.notify_one();
            }
        });
        let own = [home.fleet(), home.fleet().join("requests"), home.spool().join("results")];
        let missing = own.into_iter().chain(view_folders).collect();
        let mut watch = FolderWatch { watcher: watcher.ok(), missing, files, views };
        watch.retry();
        watch
    }

    /// Tries again to watch the folders that could not be watched before.
    pub(super) fn retry(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        self.missing.retain(|folder| watcher.watch(folder).is_err());
    }

    /// Waits until a request was dropped, the sidecar has answered, the settings have changed, or `looked` was touched.
    pub(super) async fn files_changed(&self) {
        self.files.notified().await;
    }

    /// Waits until the sidecar's views have changed.
    pub(super) async fn views_changed(&self) {
        self.views.notified().await;
    }
}

/// What the bridge has to read again.
#[derive(Debug, PartialEq, Eq)]
struct Changed {
    /// Dropped requests, the sidecar's answers, the settings and `looked`.
    files: bool,
    /// The sidecar's views.
    views: bool,
}

/// Distinguishes changes that others have made from the bridge's own writes.
struct Judge {
    fleet: PathBuf,
    view_folders: Vec<PathBuf>,
    /// The last known stamps of the files in [`READ`], for systems that report only the folder and not the file.
    read: Mutex<[Option<FileStamp>; 2]>,
}

impl Judge {
    fn new(fleet: PathBuf, view_folders: Vec<PathBuf>) -> Judge {
        let read = Mutex::new(stamps(&fleet));
        Judge { fleet, view_folders, read }
    }

    fn changed(&self, seen: &FolderNotice) -> Changed {
        // Without a path anything may have changed.
        let Some(path) = seen.path() else { return Changed { files: true, views: true } };
        let views = self.view_folders.iter().any(|folder| path.starts_with(folder));
        let is_own = match seen {
            FolderNotice::In(folder) => *folder == self.fleet && !self.was_read_file_changed(),
            _ => {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                path.parent() == Some(&self.fleet) && !READ.contains(&name)
            }
        };
        Changed { files: !views && !is_own, views }
    }

    fn was_read_file_changed(&self) -> bool {
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stamps(&self.fleet);
        std::mem::replace(&mut *known, now) != now
    }
}

fn stamps(fleet: &Path) -> [Option<FileStamp>; 2] {
    READ.map(|name| files::file_stamp(&fleet.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bridge_s_own_writes_are_ignored_even_if_the_system_names_no_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let (fleet, views) = (dir.path().join("fleet"), dir.path().join("view/agents"));
        std::fs::create_dir(&fleet).expect("made");
        let judge = Judge::new(fleet.clone(), vec![views.clone()]);
        let told = |seen: FolderNotice| {
            let Changed { files, views } = judge.changed(&seen);
            (files, views)
        };
        assert_eq!(told(FolderNotice::Lost), (true, true));
        assert_eq!(told(FolderNotice::In(views.clone())), (false, true));
        assert_eq!(told(FolderNotice::Came(views.join("a.json"))), (false, true));
        assert_eq!(told(FolderNotice::In(fleet.join("requests"))), (true, false));
        assert_eq!(told(FolderNotice::Came(fleet.join("requests/a.json"))), (true, false));
        assert_eq!(told(FolderNotice::Came(fleet.join("fleet.toml"))), (true, false));
        assert_eq!(told(FolderNotice::Came(fleet.join("bridge.json"))), (false, false));
        std::fs::write(fleet.join("bridge.json"), "{}").expect("written");
        assert_eq!(told(FolderNotice::In(fleet.clone())), (false, false));
        std::fs::write(fleet.join("looked"), "").expect("written");
        assert_eq!(told(FolderNotice::In(fleet.clone())), (true, false));
        assert_eq!(told(FolderNotice::In(fleet.clone())), (false, false), "it has not changed since");
        std::fs::write(fleet.join("fleet.toml"), "").expect("written");
        assert_eq!(told(FolderNotice::In(fleet)), (true, false));
    }
}
