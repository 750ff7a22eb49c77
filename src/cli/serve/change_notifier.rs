//! Wakes tasks that wait for a new answer, a new journal line or a changed view. The system's notices are only hints,
//! so tasks that wait for answers or lines also look from time to time. Changed views are known from notices only: if
//! the system can't watch a folder of views, or the folder was replaced, all lists are reported as changed from time to
//! time.

use super::changed_views::ChangedViews;
use crate::cli::output::eprint_quietly;
use crate::config::Home;
use crate::files::watcher::{FolderNotice, FolderWatcher};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long to wait for a hint before looking anyway.
const ARMED: Duration = Duration::from_millis(250);
/// The same if the system gives no hints.
const DEAF: Duration = Duration::from_millis(5);

pub(super) struct ChangeNotifier {
    results: Arc<watch::Sender<()>>,
    journal: Arc<watch::Sender<()>>,
    views: Arc<ChangedViews>,
    watcher: Option<FolderWatcher>,
}

impl ChangeNotifier {
    /// Watches the answers, the journal and the views of a home. If that is not possible, waiting tasks look more
    /// often.
    pub(super) fn arm(home: &Home) -> ChangeNotifier {
        let (results, journal) = (Arc::new(watch::Sender::new(())), Arc::new(watch::Sender::new(())));
        let (spool, answers) = (home.spool(), home.spool().join("results"));
        let views = Arc::new(ChangedViews::new(home));
        let sender = ChangeSender {
            results: Arc::clone(&results),
            journal: Arc::clone(&journal),
            views: Arc::clone(&views),
            answers: answers.clone(),
        };
        let armed = || -> io::Result<FolderWatcher> {
            let mut watcher = FolderWatcher::new(move |seen| sender.take(&seen))?;
            watcher.watch(&answers)?;
            watcher.watch(&spool)?;
            watcher.watch_growth(&spool.join("journal.jsonl"));
            views.watch(&mut watcher);
            Ok(watcher)
        };
        let watcher = armed()
            .map_err(|error| {
                eprint_quietly(&format!(
                    "tasuki: Can't watch the spool for changes: {error}. Polling the spool instead."
                ))
            })
            .ok();
        if watcher.is_none() {
            views.be_deaf();
        }
        ChangeNotifier { results, journal, views, watcher }
    }

    /// Rings when there may be a new answer.
    pub(super) fn results(&self) -> watch::Receiver<()> {
        self.results.subscribe()
    }

    /// Rings when there may be a new line in the journal.
    pub(super) fn journal(&self) -> watch::Receiver<()> {
        self.journal.subscribe()
    }

    /// The changes of views and error files that the listeners were not told yet.
    pub(super) fn views(&self) -> Arc<ChangedViews> {
        Arc::clone(&self.views)
    }

    /// How long to wait for a ring before looking anyway.
    pub(super) fn nap(&self) -> Duration {
        if self.watcher.is_some() { ARMED } else { DEAF }
    }
}

struct ChangeSender {
    results: Arc<watch::Sender<()>>,
    journal: Arc<watch::Sender<()>>,
    views: Arc<ChangedViews>,
    answers: PathBuf,
}

impl ChangeSender {
    /// Called on the watcher's thread.
    fn take(&self, seen: &FolderNotice) {
        if self.views.note(seen) {
            return;
        }
        let is_answer = seen.path().map(|path| path.starts_with(&self.answers));
        if is_answer != Some(false) {
            self.results.send_replace(());
        }
        if is_answer != Some(true) {
            self.journal.send_replace(());
        }
    }
}
