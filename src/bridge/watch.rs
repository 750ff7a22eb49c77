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
    changed: Arc<Notify>,
}

impl FolderWatch {
    pub(super) fn new(home: &Home) -> FolderWatch {
        let changed = Arc::new(Notify::new());
        let (tell, fleet) = (Arc::clone(&changed), home.fleet());
        let is_read = move |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            path.parent() != Some(&fleet) || READ.contains(&name)
        };
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let is_change = event.is_ok_and(|event| {
                !matches!(event.kind, EventKind::Access(_))
                    && (event.paths.is_empty() || event.paths.iter().any(&is_read))
            });
            if is_change {
                tell.notify_one();
            }
        });
        let folders = [
            home.fleet(),
            home.fleet().join("requests"),
            home.spool().join("results"),
            home.agent_views(),
            home.handoff_views(),
            home.errors(),
        ];
        let mut watch = FolderWatch { watcher: watcher.ok(), missing: folders.into(), changed };
        watch.retry();
        watch
    }

    /// Watches the folders that were not there before.
    pub(super) fn retry(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        self.missing.retain(|folder| watcher.watch(folder, RecursiveMode::NonRecursive).is_err());
    }

    /// Waits until something has changed.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}
