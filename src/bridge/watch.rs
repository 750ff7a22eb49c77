//! Reports changes in the folders that the bridge reads. If the system does not report a change, the bridge finds it
//! when it looks at everything, every 5 s.

use crate::config::Home;
use crate::files::watcher::{FolderNotice, FolderWatcher};
use crate::files::{self, FileStamp};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The files directly in `fleet/` that others write and the bridge reads. It writes all other files there itself, or
/// reads them only when it starts.
const READ: [&str; 2] = ["looked", "fleet.toml"];

/// Watches the folders.
pub(super) struct FolderWatch {
    watcher: Option<FolderWatcher>,
    folders: Vec<PathBuf>,
    /// The folders that are not watched yet, because they did not exist.
    missing: BTreeSet<PathBuf>,
    shared: Arc<Shared>,
    /// Whether the log already says that the folders can't be watched.
    was_reported: bool,
}

/// What the watcher's own thread and the bridge share.
struct Shared {
    judge: Judge,
    files: Notify,
    views: Notify,
    /// The watcher has failed: it may report nothing any more.
    broken: AtomicBool,
}

impl Shared {
    fn on_seen(&self, seen: &FolderNotice) {
        if *seen == FolderNotice::Broken {
            self.broken.store(true, Ordering::Release);
        }
        let changed = self.judge.changed(seen);
        if changed.views {
            self.views.notify_one();
        }
        if changed.files {
            self.files.notify_one();
        }
    }
}

impl FolderWatch {
    pub(super) fn new(home: &Home) -> FolderWatch {
        let view_folders = [home.agent_views(), home.handoff_views(), home.errors()];
        let own = [home.fleet(), home.fleet().join("requests"), home.spool().join("results")];
        let shared = Shared {
            judge: Judge::new(home.fleet(), view_folders.to_vec()),
            files: Notify::new(),
            views: Notify::new(),
            broken: AtomicBool::new(false),
        };
        let mut watch = FolderWatch {
            watcher: None,
            folders: own.into_iter().chain(view_folders).collect(),
            missing: BTreeSet::new(),
            shared: Arc::new(shared),
            was_reported: false,
        };
        watch.retry();
        watch
    }

    /// Makes a watcher if there is none or if it has failed. Tries again to watch the folders that could not be watched
    /// before. The caller looks at everything afterwards, because changes may have been missed.
    pub(super) fn retry(&mut self) {
        if self.watcher.is_none() || self.shared.broken.load(Ordering::Acquire) {
            self.renew();
        }
        let Some(watcher) = &mut self.watcher else { return };
        self.missing.retain(|folder| watcher.watch(folder).is_err());
    }

    fn renew(&mut self) {
        self.watcher = None;
        self.shared.broken.store(false, Ordering::Release);
        let shared = Arc::clone(&self.shared);
        match FolderWatcher::new(move |seen| shared.on_seen(&seen)) {
            Ok(watcher) => {
                self.watcher = Some(watcher);
                self.was_reported = false;
            }
            Err(error) => {
                if !self.was_reported {
                    tracing::warn!(%error, "could not watch the folders; looking into them every 5 s instead");
                }
                self.was_reported = true;
            }
        }
        self.missing = self.folders.iter().cloned().collect();
    }

    /// Waits until a request was dropped, the sidecar has answered, the settings have changed, or `looked` was touched.
    pub(super) async fn files_changed(&self) {
        self.shared.files.notified().await;
    }

    /// Waits until the sidecar's views have changed.
    pub(super) async fn views_changed(&self) {
        self.shared.views.notified().await;
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

    #[tokio::test]
    async fn a_watcher_that_has_failed_or_could_not_be_made_is_replaced() {
        let (_dir, home, _) = super::super::folder::of_test();
        std::fs::create_dir_all(home.agent_views()).expect("made");
        let mut watch = FolderWatch::new(&home);
        let until = std::time::Duration::from_secs(10);
        for number in 0..2 {
            if number == 0 {
                // A watcher that has failed reports nothing any more.
                watch.watcher.as_mut().expect("made").unwatch(&home.agent_views());
                watch.shared.on_seen(&FolderNotice::Broken);
                watch.views_changed().await;
            } else {
                watch.watcher = None;
            }
            watch.retry();
            std::fs::write(home.agent_views().join(format!("{number}.json")), "{}").expect("written");
            tokio::time::timeout(until, watch.views_changed()).await.expect("it is reported");
        }
    }
}
