//! Reports changes in the folders that the bridge reads. If the system does not report a change, the bridge finds it
//! when it looks at everything, every 5 s.

use crate::config::Home;
use crate::files::watcher::{FolderNotice, FolderWatcher};
use crate::files::{self, FileStamp};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
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
    /// The folders, each held open if it is watched. While a folder is open, the system can't reuse its inode number,
    /// so the bridge notices when it was removed and made again. `None`: it is missing or can't be watched.
    folders: BTreeMap<PathBuf, Option<OwnedFd>>,
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
            folders: own.into_iter().chain(view_folders).map(|folder| (folder, None)).collect(),
            shared: Arc::new(shared),
            was_reported: false,
        };
        watch.retry();
        watch
    }

    /// Makes a watcher if there is none or if it has failed, and also if a folder was removed, moved or made again: the
    /// old watcher reports nothing about the new folder. Tries again to watch the folders that could not be watched
    /// before. The caller looks at everything afterwards, because changes may have been missed.
    pub(super) fn retry(&mut self) {
        if self.watcher.is_none() || self.shared.broken.load(Ordering::Acquire) || self.was_replaced() {
            self.renew();
        }
        let Some(watcher) = &mut self.watcher else { return };
        for (folder, known) in self.folders.iter_mut().filter(|(_, known)| known.is_none()) {
            *known = files::open_dir(folder).ok().filter(|_| watcher.watch(folder).is_ok());
        }
    }

    /// Whether another folder, or none, is at the path of a folder that is watched.
    fn was_replaced(&self) -> bool {
        let stamp = |folder: OwnedFd| files::meta(folder).ok().map(|meta| meta.file_stamp);
        let is_same = |path: &PathBuf, known: &OwnedFd| {
            let (known, here) = (files::meta(known).ok(), files::open_dir(path).ok().and_then(stamp));
            known.zip(here).is_some_and(|(known, here)| known.file_stamp.is_same_file(&here))
        };
        self.folders.iter().any(|(path, known)| known.as_ref().is_some_and(|known| !is_same(path, known)))
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
        self.folders.values_mut().for_each(|known| *known = None);
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

    #[tokio::test]
    async fn a_folder_that_was_made_again_is_watched_again_at_the_next_look() {
        let (_dir, home, folder) = super::super::folder::of_test();
        let views = home.agent_views();
        std::fs::create_dir_all(&views).expect("made");
        let mut watch = FolderWatch::new(&home);
        let until = std::time::Duration::from_secs(10);
        let calm = std::time::Duration::from_millis(300);
        let (requests, aside) = (folder.path("requests", ""), home.fleet().join("aside"));
        for is_missing_at_a_look in [false, true] {
            std::fs::remove_dir_all(&views).expect("removed");
            // Moved aside instead of removed: the system reports what happens in the former folder from now on.
            std::fs::rename(&requests, &aside).expect("moved");
            if is_missing_at_a_look {
                watch.retry();
            }
            std::fs::create_dir(&views).expect("made again");
            std::fs::create_dir(&requests).expect("made again");
            watch.retry();
            while tokio::time::timeout(calm, watch.views_changed()).await.is_ok() {}
            while tokio::time::timeout(calm, watch.files_changed()).await.is_ok() {}
            std::fs::write(aside.join("b.json"), "{}").expect("written");
            assert!(
                tokio::time::timeout(calm, watch.files_changed()).await.is_err(),
                "this folder is not read any more"
            );
            std::fs::write(views.join("a.json"), "{}").expect("written");
            tokio::time::timeout(until, watch.views_changed()).await.expect("it is reported");
            std::fs::write(requests.join("a.json"), "{}").expect("written");
            tokio::time::timeout(until, watch.files_changed()).await.expect("it is reported");
            std::fs::remove_dir_all(&aside).expect("removed");
        }
    }
}
