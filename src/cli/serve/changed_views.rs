//! Which views and error files have changed without a line of the journal: an error was dismissed, for example, or an
//! agent's context was measured after its turn. Listeners get events of their own for these changes.

use crate::config::Home;
use crate::files::watcher::{FolderNotice, FolderWatcher};
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// How many changed files of one kind get an event each. If there are more, one event says that the list has changed.
const MOST: usize = 100;

/// What has changed of one kind.
#[derive(Debug, PartialEq, Eq)]
enum Changed {
    Ids(BTreeSet<String>),
    /// More than [`MOST`], or nobody knows which.
    List,
}

/// The changes that listeners were not told yet, by kind: `agents`, `handoffs`, `work`, `errors`, as in the addresses.
pub(super) struct ChangedViews {
    folders: [(PathBuf, &'static str); 4],
    waiting: Mutex<BTreeMap<&'static str, Changed>>,
    bell: watch::Sender<()>,
    /// Changes may come without a notice: the system does not report those of each folder, or a folder was replaced.
    is_deaf: AtomicBool,
    /// Device and number of each folder when it was watched.
    watched: Mutex<Vec<Option<(u64, u64)>>>,
}

/// The ids in a line of the journal. A client that gets the line reads these views again, so they need no other event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    agent_id: Option<String>,
    successor_id: Option<String>,
    handoff_id: Option<String>,
    item_id: Option<String>,
    parent_id: Option<String>,
    error_id: Option<String>,
}

impl ChangedViews {
    pub(super) fn new(home: &Home) -> ChangedViews {
        let folders = [
            (home.agent_views(), "agents"),
            (home.handoff_views(), "handoffs"),
            (home.work_views(), "work"),
            (home.errors(), "errors"),
        ];
        let (waiting, bell) = (Mutex::default(), watch::Sender::new(()));
        ChangedViews { folders, waiting, bell, is_deaf: AtomicBool::new(false), watched: Mutex::default() }
    }

    /// Adds the folders to the watcher. If one can't be watched, the others are watched nevertheless.
    pub(super) fn watch(&self, watcher: &mut FolderWatcher) {
        for (folder, _) in &self.folders {
            if watcher.watch(folder).is_err() {
                self.be_deaf();
            }
        }
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = self.present();
    }

    fn present(&self) -> Vec<Option<(u64, u64)>> {
        let number = |folder: &Path| std::fs::symlink_metadata(folder).ok().map(|meta| (meta.dev(), meta.ino()));
        self.folders.iter().map(|(folder, _)| number(folder)).collect()
    }

    /// Looks from time to time whether the folders are still those that are watched: a watch stays with a folder that
    /// was moved away or deleted. If changes may come without a notice, all lists are noted as changed.
    pub(super) fn look(&self) {
        if self.present() != *self.watched.lock().unwrap_or_else(PoisonError::into_inner) {
            self.be_deaf();
        }
        if self.is_deaf() {
            self.note_all();
        }
    }

    /// Notes that changes may come without a notice. From now on all lists are reported as changed from time to time.
    pub(super) fn be_deaf(&self) {
        self.is_deaf.store(true, Ordering::Relaxed);
    }

    fn is_deaf(&self) -> bool {
        self.is_deaf.load(Ordering::Relaxed)
    }

    /// Rings when something has changed.
    pub(super) fn bell(&self) -> watch::Receiver<()> {
        self.bell.subscribe()
    }

    /// Takes a notice of the system; returns whether it is about these folders alone.
    pub(super) fn note(&self, seen: &FolderNotice) -> bool {
        let Some(path) = seen.path() else {
            if *seen == FolderNotice::Broken {
                self.be_deaf();
            }
            self.note_all();
            return false;
        };
        let found = self.folders.iter().find(|(folder, _)| path == folder || path.parent() == Some(folder));
        let Some((folder, kind)) = found else { return false };
        if path == folder {
            if matches!(seen, FolderNotice::Left(_)) {
                self.be_deaf();
            }
            self.add(kind, None);
        } else if let Some(id) = id_of(path) {
            self.add(kind, Some(id));
        }
        true
    }

    /// Notes that every list may have changed.
    pub(super) fn note_all(&self) {
        self.folders.iter().for_each(|(_, kind)| self.add(kind, None));
    }

    fn add(&self, kind: &'static str, id: Option<&str>) {
        let mut waiting = self.waiting();
        let changed = waiting.entry(kind).or_insert_with(|| Changed::Ids(BTreeSet::new()));
        match (&mut *changed, id) {
            (Changed::Ids(ids), Some(id)) if ids.len() < MOST || ids.contains(id) => {
                ids.insert(id.to_owned());
            }
            _ => *changed = Changed::List,
        }
        drop(waiting);
        self.bell.send_replace(());
    }

    /// Forgets the changes of views and errors that these events of the journal name. The file is written before the
    /// line that names it, so a client that reads it after the line sees the change.
    pub(super) fn forget_told(&self, events: &[u8]) {
        let mut waiting = self.waiting();
        if waiting.is_empty() {
            return;
        }
        let lines = events.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: "));
        for line in lines.filter_map(|line| serde_json::from_slice::<Named>(line).ok()) {
            let Named { agent_id, successor_id, handoff_id, item_id, parent_id, error_id } = line;
            let told = [
                ("agents", agent_id),
                ("agents", successor_id),
                ("handoffs", handoff_id),
                ("work", item_id),
                ("work", parent_id),
                ("errors", error_id),
            ];
            for (kind, id) in told {
                if let (Some(Changed::Ids(ids)), Some(id)) = (waiting.get_mut(kind), id) {
                    ids.remove(&id);
                }
            }
        }
    }

    /// Takes all changes that were not told yet, as the text of their events; empty if there are none.
    pub(super) fn take(&self) -> String {
        let waiting = std::mem::take(&mut *self.waiting());
        let event =
            |kind: &str, id: Option<&str>| format!("event: changed\ndata: {}\n\n", json!({"kind": kind, "id": id}));
        let events = waiting.iter().flat_map(|(kind, changed)| match changed {
            Changed::List => vec![event(kind, None)],
            Changed::Ids(ids) => ids.iter().map(|id| event(kind, Some(id))).collect(),
        });
        events.collect()
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<&'static str, Changed>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id in a file's name; none for a file that is not whole yet.
fn id_of(path: &Path) -> Option<&str> {
    let id = path.file_name()?.to_str()?.strip_suffix(".json")?;
    let is_id = (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_id.then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed() -> (ChangedViews, impl Fn(&str) -> FolderNotice) {
        let home = Home::at(Path::new("/h")).expect("a home");
        let root = home.root().to_owned();
        (ChangedViews::new(&home), move |name: &str| FolderNotice::Came(root.join(name)))
    }

    fn event(kind: &str, id: &str) -> String {
        format!("event: changed\ndata: {{\"id\":{id},\"kind\":\"{kind}\"}}\n\n")
    }

    #[test]
    fn only_whole_files_of_these_folders_are_told_each_once() {
        let (changed, came) = changed();
        let of_views = ["view/agents/a.json", "view/agents/a.json", "view/agents/.tasuki-new", "view/work/open"];
        assert!(of_views.iter().all(|name| changed.note(&came(name))));
        assert!(!["spool/journal.jsonl", "spool/results/x.json"].iter().any(|name| changed.note(&came(name))));
        let FolderNotice::Came(dismissed) = came("spool/errors/e.json") else { return };
        assert!(changed.note(&FolderNotice::Left(dismissed)));
        assert_eq!(changed.take(), event("agents", "\"a\"") + &event("errors", "\"e\""));
        assert_eq!(changed.take(), "");
    }

    #[test]
    fn what_a_line_names_is_not_told_twice() {
        let (changed, came) = changed();
        for name in ["agents/a", "agents/b", "agents/c", "handoffs/h", "work/w"] {
            changed.note(&came(&format!("view/{name}.json")));
        }
        let line =
            "id: 1\nevent: x\ndata: {\"seq\":1,\"agent_id\":\"a\",\"successor_id\":\"b\",\"handoff_id\":\"h\"}\n\n";
        changed.forget_told(line.as_bytes());
        assert_eq!(changed.take(), event("agents", "\"c\"") + &event("work", "\"w\""));
    }

    #[test]
    fn folders_that_were_replaced_are_told_whole_from_then_on() {
        let dir = tempfile::tempdir().expect("a folder");
        let home = Home::at(dir.path()).expect("a home");
        let made = || {
            for folder in [home.agent_views(), home.handoff_views(), home.work_views(), home.errors()] {
                std::fs::create_dir_all(folder).expect("made");
            }
        };
        let watching = || {
            let (changed, told) = (ChangedViews::new(&home), std::sync::mpsc::channel());
            let mut watcher = FolderWatcher::new(move |seen| drop(told.0.send(seen))).expect("a watcher");
            changed.watch(&mut watcher);
            (changed, watcher, told.1)
        };
        let all = ["agents", "errors", "handoffs", "work"].map(|kind| event(kind, "null")).concat();
        made();
        let (changed, _watcher, _told) = watching();
        changed.look();
        assert_eq!((changed.take(), changed.is_deaf()), (String::new(), false));
        std::fs::rename(home.view(), dir.path().join("old")).expect("moved away");
        made();
        for _ in 0..2 {
            changed.look();
            assert_eq!(changed.take(), all);
        }
        // A folder that is deleted and made again may have the same number.
        let (changed, _watcher, told) = watching();
        std::fs::remove_dir_all(home.view()).expect("deleted");
        made();
        while !changed.is_deaf() {
            changed.note(&told.recv_timeout(std::time::Duration::from_secs(10)).expect("a notice"));
        }
        changed.take();
        changed.look();
        assert_eq!(changed.take(), all);
    }

    #[test]
    fn very_many_changes_are_one_event_for_the_list() {
        let (changed, came) = changed();
        for number in 0..=MOST {
            changed.note(&came(&format!("view/agents/{number}.json")));
        }
        assert_eq!(changed.take(), event("agents", "null"));
        changed.note(&FolderNotice::Lost);
        let all = ["agents", "errors", "handoffs", "work"].map(|kind| event(kind, "null"));
        assert_eq!((changed.take(), changed.is_deaf()), (all.concat(), false));
    }
}
