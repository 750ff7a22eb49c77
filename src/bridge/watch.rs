//! Tells when something has changed in the folders that the bridge reads. What the system does not report is found by
//! the look every 5 s.

use crate::config::Home;
use notify::event::EventKind;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Notify;

/// Files of `fleet/` itself that the bridge reads; all others there are its own.
const READ: [&str; 2] = ["looked", "fleet.toml"];

/// Watches the folders.
pub(super) struct FolderWatch {
    watcher: Option<RecommendedWatcher>,
    missing: BTreeSet<PathBuf>,
    files: Arc<Notify>,
    views: Arc<Notify>,
}

impl FolderWatch {
    pub(super) fn new(home: &Home) -> FolderWatch {
        let (files, views) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (tell_files, tell_views, fleet) = (Arc::clone(&files), Arc::clone(&views), home.fleet());
        let view_folders = [home.agent_views(), home.handoff_views(), home.errors()];
        let is_view = {
            let folders = view_folders.clone();
            move |path: &PathBuf| folders.iter().any(|folder| path.starts_with(folder))
        };
        let is_own = move |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            path.parent() == Some(&fleet) && !READ.contains(&name)
        };
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let Some(event) = event.ok().filter(|event| !matches!(event.kind, EventKind::Access(_))) else { return };
            // Without a path it may be anything.
            let is_any = event.paths.is_empty();
            if is_any || event.paths.iter().any(&is_view) {
                tell_views.notify_one();
            }
            if is_any || event.paths.iter().any(|path| !is_view(path) && !is_own(path)) {
                tell_files.notify_one();
            }
        });
        let own = [home.fleet(), home.fleet().join("requests"), home.spool().join("results")];
        let missing = own.into_iter().chain(view_folders).collect();
        let mut watch = FolderWatch { watcher: watcher.ok(), missing, files, views };
        watch.retry();
        watch
    }

    /// Watches the folders that were not there before.
    pub(super) fn retry(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        self.missing.retain(|folder| watcher.watch(folder, RecursiveMode::NonRecursive).is_err());
    }

    /// Waits until something was dropped or answered, or the settings have changed.
    pub(super) async fn files_changed(&self) {
        self.files.notified().await;
    }

    /// Waits until the sidecar's views have changed.
    pub(super) async fn views_changed(&self) {
        self.views.notified().await;
    }
}
