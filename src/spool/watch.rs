//! Says when to scan. A notice of the system is only a hint: tasuki also scans without one, every few seconds, so a
//! lost notice costs only time. Watches are armed before the first scan, so that no file is missed between the two.

use super::dirs::SpoolDir;
use super::error::Error;
use super::home::Spool;
use crate::files;
use crate::files::watcher::{FolderNotice, FolderWatcher, SEES_GROWTH};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The most document folders that are watched at once; the others are looked at only at the sidecar's ticks.
const MAX_FOLDERS: usize = 256;

/// How the folders are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchMode {
    /// The system reports changes; the tick comes every 5 seconds, or every second while a document is awaited whose
    /// growth the system does not report.
    Armed,
    /// The system can't report changes (no watches are left, or the file system has none); the tick comes every second.
    Poll,
}

/// What a check of the folders found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    Same,
    /// Folders were opened or watches armed again: scan now, because something may have been missed.
    Rescan,
    /// As `Rescan`. Folders of views are among those that were opened again, so views may be missing or old: write all
    /// of them again. `view/.built` was removed, so the next start does so too.
    ViewsLost,
}

/// Watches the spool, its lanes, and the folders in which documents are awaited.
#[derive(Debug)]
pub struct SpoolWatch {
    watcher: Option<FolderWatcher>,
    shared: Arc<Shared>,
    /// The document folders, each held open if it is watched. While a folder is open, the system can't reuse its inode
    /// number, so tasuki notices when it was removed and created again. `None`: the folder is missing or can't be
    /// watched; its documents are looked at only at ticks.
    folders: BTreeMap<PathBuf, Option<OwnedFd>>,
    /// For tests: folders that can't be watched, as if no watches were left.
    #[cfg(test)]
    unwatchable: Vec<PathBuf>,
    /// Whether the log already says that the folders can't be watched.
    was_reported: bool,
}

/// What the watcher's own thread and ours share.
#[derive(Debug, Default)]
struct Shared {
    dirty: AtomicBool,
    broken: AtomicBool,
    wake: Notify,
    paths: Mutex<Paths>,
}

#[derive(Debug, Default, Clone)]
struct Paths {
    spool: PathBuf,
    /// Lanes and document folders: files that arrive in them count.
    inside: Vec<PathBuf>,
}

/// Waits for hints that a folder has changed. Use it in one task only: clones share one flag, so each hint reaches only
/// one of them.
#[derive(Debug, Clone)]
pub struct Hints {
    shared: Arc<Shared>,
}

impl Hints {
    /// Returns at the next hint, or at once if one came since the last call. Cancel-safe.
    pub async fn next(&self) {
        while !self.shared.dirty.swap(false, Ordering::AcqRel) {
            self.shared.wake.notified().await;
        }
    }
}

impl SpoolWatch {
    /// Arms the watches. If that is impossible, it says so once and continues in [`WatchMode::Poll`].
    #[must_use]
    pub fn new(spool: &Spool) -> SpoolWatch {
        let shared = Arc::new(Shared::default());
        let mut watch = SpoolWatch {
            watcher: None,
            shared,
            folders: BTreeMap::new(),
            #[cfg(test)]
            unwatchable: Vec::new(),
            was_reported: false,
        };
        watch.arm(spool);
        watch
    }

    /// The receiver of hints.
    #[must_use]
    pub fn hints(&self) -> Hints {
        Hints { shared: Arc::clone(&self.shared) }
    }

    /// Whether the system's watcher is used, or the folders are polled.
    #[must_use]
    pub fn mode(&self) -> WatchMode {
        if self.watcher.is_some() { WatchMode::Armed } else { WatchMode::Poll }
    }

    /// How often to call [`SpoolWatch::check`] and to scan without a hint.
    #[must_use]
    pub fn tick(&self) -> Duration {
        tick(self.mode(), SEES_GROWTH || self.folders.is_empty())
    }

    /// The tick: checks that the folders we hold open are still those at their paths, and are still watched. If not,
    /// they are opened, checked and armed again. Document folders that could not be watched are tried again, each by
    /// itself: for them alone, no new watcher is made.
    ///
    /// # Errors
    /// A folder is open to others, or can't be opened; the old ones stay in use, and the next tick tries again.
    pub fn check(&mut self, spool: &mut Spool) -> Result<Checked, Error> {
        let mut rearm = self.watcher.is_none() || self.shared.broken.load(Ordering::Acquire);
        let was_armed = self.watcher.is_some();
        let mut views_lost = false;
        if spool.dirs.is_in_place() {
            spool.dirs.check()?;
        } else {
            tracing::warn!(home = %spool.home().display(), "folders of the spool were moved or replaced; opening them \
                                                            again");
            views_lost = spool.reopen()?;
            rearm = true;
        }
        let mut watched = self.folders.iter().filter(|(_, known)| known.is_some());
        let replaced =
            watched.any(|(path, known)| identity(known.as_ref()) != identity(files::open_dir(path).ok().as_ref()));
        if !rearm && !replaced {
            return Ok(if self.arm_unwatched() { Checked::Rescan } else { Checked::Same });
        }
        self.arm(spool);
        if views_lost {
            return Ok(Checked::ViewsLost);
        }
        // In poll mode each tick scans anyway.
        Ok(if was_armed || self.watcher.is_some() { Checked::Rescan } else { Checked::Same })
    }

    /// Watches a document folder too. It need not exist yet.
    pub fn watch_dir(&mut self, spool: &Spool, path: &Path) {
        if self.folders.contains_key(path) || self.folders.len() >= MAX_FOLDERS {
            return;
        }
        self.folders.insert(path.to_owned(), None);
        self.publish_paths(spool);
        self.arm_folder(path);
        self.shared.hint();
    }

    /// Stops watching a document folder.
    pub fn unwatch_dir(&mut self, spool: &Spool, path: &Path) {
        if self.folders.remove(path).is_some() {
            self.publish_paths(spool);
            if let Some(watcher) = &mut self.watcher {
                watcher.unwatch(path);
            }
        }
    }

    /// Makes a new watcher for all folders: the old one reports nothing about a folder that was replaced.
    fn arm(&mut self, spool: &Spool) {
        self.watcher = None;
        self.shared.broken.store(false, Ordering::Release);
        self.publish_paths(spool);
        match self.build(spool) {
            Ok(watcher) => {
                self.watcher = Some(watcher);
                self.was_reported = false;
            }
            Err(error) => {
                if !self.was_reported {
                    tracing::warn!(%error, "could not watch the folders of the spool; looking into them every second \
                                            instead");
                }
                self.was_reported = true;
            }
        }
        let paths: Vec<PathBuf> = self.folders.keys().cloned().collect();
        paths.iter().for_each(|path| self.arm_folder(path));
        self.shared.hint();
    }

    fn build(&self, spool: &Spool) -> std::io::Result<FolderWatcher> {
        let shared = Arc::clone(&self.shared);
        let mut watcher = FolderWatcher::new(move |seen| shared.on_seen(&seen))?;
        for spool_dir in [SpoolDir::Spool, SpoolDir::Requests, SpoolDir::Events] {
            watcher.watch(spool.path(spool_dir))?;
        }
        Ok(watcher)
    }

    fn arm_folder(&mut self, path: &Path) {
        let opened = files::open_dir(path).ok();
        let known = opened.filter(|_| self.watch_path(path));
        self.folders.insert(path.to_owned(), known);
    }

    /// Adds a folder to the watcher. Returns whether it is watched.
    fn watch_path(&mut self, path: &Path) -> bool {
        #[cfg(test)]
        if self.unwatchable.iter().any(|unwatchable| unwatchable == path) {
            return false;
        }
        let watcher = self.watcher.as_mut();
        watcher.is_some_and(|watcher| watcher.watch(path).is_ok())
    }

    /// Tries to watch the document folders that are not watched yet. Returns whether it succeeded for one of them.
    fn arm_unwatched(&mut self) -> bool {
        let unwatched = self.folders.iter().filter(|(_, known)| known.is_none());
        let unwatched: Vec<PathBuf> = unwatched.map(|(path, _)| path.clone()).collect();
        unwatched.iter().for_each(|path| self.arm_folder(path));
        let is_armed = unwatched.iter().any(|path| self.folders.get(path).is_some_and(Option::is_some));
        if is_armed {
            self.shared.hint();
        }
        is_armed
    }

    fn publish_paths(&self, spool: &Spool) {
        let lanes = [spool.path(SpoolDir::Requests), spool.path(SpoolDir::Events)];
        let inside = lanes.into_iter().map(Path::to_owned).chain(self.folders.keys().cloned()).collect();
        let paths = Paths { spool: spool.path(SpoolDir::Spool).to_owned(), inside };
        *self.shared.paths.lock().unwrap_or_else(PoisonError::into_inner) = paths;
    }
}

impl Shared {
    /// Called on the watcher's thread: sets a flag and wakes, nothing else.
    fn on_seen(&self, seen: &FolderNotice) {
        if *seen == FolderNotice::Broken {
            self.broken.store(true, Ordering::Release);
        }
        let relevant = self.paths.lock().unwrap_or_else(PoisonError::into_inner).is_relevant(seen);
        if relevant {
            self.hint();
        }
    }

    fn hint(&self) {
        self.dirty.store(true, Ordering::Release);
        self.wake.notify_one();
    }
}

impl Paths {
    /// Whether an event may mean that a new file arrived. What tasuki does itself (reading, moving files out, appending
    /// to the journal) must not count, or every scan would cause the next.
    fn is_relevant(&self, seen: &FolderNotice) -> bool {
        let is_root = |path: &PathBuf| *path == self.spool || self.inside.contains(path);
        match seen {
            FolderNotice::Came(path) => {
                let lies_inside = path.parent().is_some_and(|parent| self.inside.iter().any(|folder| folder == parent));
                is_root(path) || lies_inside
            }
            FolderNotice::Left(path) => is_root(path),
            // These notices do not say whether a file has come or gone. So a file that tasuki itself moves out of a
            // lane causes one more scan.
            FolderNotice::In(_) | FolderNotice::Lost | FolderNotice::Broken => true,
        }
    }
}

/// How often to look without a hint. `sees_all`: the system reports all that counts, also the growth of a document.
fn tick(mode: WatchMode, sees_all: bool) -> Duration {
    match mode {
        WatchMode::Armed if sees_all => Duration::from_secs(5),
        WatchMode::Armed | WatchMode::Poll => Duration::from_secs(1),
    }
}

fn identity(folder: Option<&OwnedFd>) -> Option<(u64, u64)> {
    let meta = files::meta(folder?).ok()?;
    Some((meta.file_stamp.dev, meta.file_stamp.ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> Paths {
        Paths { spool: "/h/spool".into(), inside: vec!["/h/spool/requests".into(), "/h/docs".into()] }
    }

    #[test]
    fn only_files_that_arrive_cause_a_hint() {
        let came = |path: &str| paths().is_relevant(&FolderNotice::Came(path.into()));
        let left = |path: &str| paths().is_relevant(&FolderNotice::Left(path.into()));
        assert!(came("/h/spool/requests/a.json") && came("/h/docs/a.md"));
        assert!(left("/h/spool/requests") && left("/h/spool") && came("/h/spool/requests"));
        assert!(!left("/h/spool/requests/a.json") && !left("/h/docs/a.md"));
        assert!(!came("/h/spool/journal.jsonl"));
        for seen in [FolderNotice::In("/h/spool/requests".into()), FolderNotice::Lost, FolderNotice::Broken] {
            assert!(paths().is_relevant(&seen), "{seen:?}");
        }
    }

    #[test]
    fn a_document_whose_growth_is_not_reported_is_looked_at_every_second() {
        assert_eq!(tick(WatchMode::Armed, true), Duration::from_secs(5));
        assert_eq!(tick(WatchMode::Armed, false), Duration::from_secs(1));
        assert_eq!(tick(WatchMode::Poll, true), Duration::from_secs(1));
    }

    /// The watcher's thread is still busy with the first event when more come than its queue can hold: the important
    /// event is lost, and only the notice of the overflow is left.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn an_overflow_is_a_hint() {
        let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").expect("Linux tells");
        let limit: usize = limit.trim().parse().expect("a number");
        let dir = tempfile::tempdir().expect("a folder");
        let spool = Spool::open(&dir.path().join("home")).expect("a new home");
        let watch = SpoolWatch::new(&spool);
        assert_eq!(watch.mode(), WatchMode::Armed);
        let hints = watch.hints();
        while tokio::time::timeout(Duration::from_millis(300), hints.next()).await.is_ok() {}
        {
            let _blocks_the_watcher = watch.shared.paths.lock().expect("nobody panicked");
            let path = spool.path(SpoolDir::Requests).join(".x");
            for _ in 0..=limit.min(100_000) / 2 + 1_000 {
                drop(std::fs::File::options().append(true).create(true).open(&path).expect("opened"));
            }
            std::fs::write(spool.path(SpoolDir::Tmp).join("a"), "{}").expect("written");
            let moved =
                std::fs::rename(spool.path(SpoolDir::Tmp).join("a"), spool.path(SpoolDir::Requests).join("a.json"));
            moved.expect("dropped");
            // From here on two hints must come: one for the creation of `.x`, on which the watcher's thread is blocked,
            // and one for the overflow.
            watch.shared.dirty.store(false, Ordering::Release);
        }
        let mut count = 0;
        while tokio::time::timeout(Duration::from_secs(if count < 2 { 10 } else { 1 }), hints.next()).await.is_ok() {
            count += 1;
        }
        assert!(count >= 2, "{count} hints instead of two: for the first file and for the overflow");
    }

    #[tokio::test]
    async fn a_document_folder_that_cannot_be_watched_causes_no_new_watcher() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut spool = Spool::open(&dir.path().join("home")).expect("a new home");
        let mut watch = SpoolWatch::new(&spool);
        let docs = dir.path().join("docs");
        watch.unwatchable = vec![docs.clone()];
        watch.watch_dir(&spool, &docs);
        assert_eq!(watch.check(&mut spool).expect("fine"), Checked::Same, "it does not exist");
        std::fs::create_dir(&docs).expect("made");
        for _ in 0..2 {
            assert_eq!(watch.check(&mut spool).expect("fine"), Checked::Same, "it exists, and can't be watched");
        }
        watch.unwatchable.clear();
        assert_eq!(watch.check(&mut spool).expect("fine"), Checked::Rescan, "it is watched");
        assert_eq!(watch.check(&mut spool).expect("fine"), Checked::Same);
        let hints = watch.hints();
        while tokio::time::timeout(Duration::from_millis(300), hints.next()).await.is_ok() {}
        std::fs::write(docs.join("a.md"), "# It").expect("written");
        tokio::time::timeout(Duration::from_secs(10), hints.next()).await.expect("a hint");
    }

    #[tokio::test]
    async fn a_watcher_that_reports_an_error_is_replaced() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut spool = Spool::open(&dir.path().join("home")).expect("a new home");
        let mut watch = SpoolWatch::new(&spool);
        assert_eq!(watch.check(&mut spool).expect("fine"), Checked::Same);
        watch.shared.on_seen(&FolderNotice::Broken);
        assert_eq!(watch.check(&mut spool).expect("armed again"), Checked::Rescan);
        assert_eq!(watch.check(&mut spool).expect("fine"), Checked::Same);
    }
}
