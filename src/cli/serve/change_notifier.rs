//! Wakes tasks that wait for a new answer or a new journal line. The system's notices are only hints, so every waiting
//! task also looks from time to time.

use crate::cli::output::eprint_quietly;
use crate::config::Home;
use notify::event::EventKind;
use notify::{Config, Event, RecommendedWatcher, RecursiveMode, Watcher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long to wait for a hint before looking anyway.
const ARMED: Duration = Duration::from_millis(250);
/// The same without hints.
const DEAF: Duration = Duration::from_millis(5);

pub(super) struct ChangeNotifier {
    results: Arc<watch::Sender<()>>,
    journal: Arc<watch::Sender<()>>,
    watcher: Option<RecommendedWatcher>,
}

impl ChangeNotifier {
    /// Watches the answers and the journal of a home. If that is not possible, waiting tasks look more often.
    pub(super) fn arm(home: &Home) -> ChangeNotifier {
        let (results, journal) = (Arc::new(watch::Sender::new(())), Arc::new(watch::Sender::new(())));
        let folders = (home.spool().join("results"), home.spool());
        let sender =
            ChangeSender { results: Arc::clone(&results), journal: Arc::clone(&journal), answers: folders.0.clone() };
        let watcher = watch(sender, &[&folders.0, &folders.1])
            .map_err(|error| {
                eprint_quietly(&format!(
                    "tasuki: Can't watch the spool for changes: {error}. Polling the spool instead."
                ))
            })
            .ok();
        ChangeNotifier { results, journal, watcher }
    }

    /// Rings when there may be a new answer.
    pub(super) fn results(&self) -> watch::Receiver<()> {
        self.results.subscribe()
    }

    /// Rings when there may be a new line in the journal.
    pub(super) fn journal(&self) -> watch::Receiver<()> {
        self.journal.subscribe()
    }

    /// How long to wait for a ring before looking anyway.
    pub(super) fn nap(&self) -> Duration {
        if self.watcher.is_some() { ARMED } else { DEAF }
    }
}

fn watch(sender: ChangeSender, folders: &[&Path]) -> notify::Result<RecommendedWatcher> {
    let config = Config::default().with_follow_symlinks(false);
    let mut watcher = RecommendedWatcher::new(move |event| sender.take(event), config)?;
    folders.iter().try_for_each(|folder| watcher.watch(folder, RecursiveMode::NonRecursive))?;
    Ok(watcher)
}

struct ChangeSender {
    results: Arc<watch::Sender<()>>,
    journal: Arc<watch::Sender<()>>,
    answers: PathBuf,
}

impl ChangeSender {
    /// Called on the watcher's thread. Reads must not count, because we cause them.
    fn take(&self, event: notify::Result<Event>) {
        let Ok(event) = event else {
            self.results.send_replace(());
            self.journal.send_replace(());
            return;
        };
        if matches!(event.kind, EventKind::Access(_)) {
            return;
        }
        let is_answer = |path: &PathBuf| path.starts_with(&self.answers);
        if event.paths.is_empty() || event.paths.iter().any(is_answer) {
            self.results.send_replace(());
        }
        if event.paths.is_empty() || !event.paths.iter().all(is_answer) {
            self.journal.send_replace(());
        }
    }
}
