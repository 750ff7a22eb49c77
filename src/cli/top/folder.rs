//! Reads one folder of JSON files repeatedly, and skips what has not changed. The stamp of the folder changes when a
//! file is renamed into it or removed, and the stamp of a file when the file is replaced. A folder that takes long to
//! list is listed less often.

use crate::cli::error::CliError;
use crate::files::{FileStamp, file_stamp};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Two renames in the same instant may leave a folder with the same time. So a stamp counts only if the folder's time
/// is at least this long ago.
const SETTLED: Duration = Duration::from_secs(1);
/// After a listing, the folder is not listed again for this many times the time that it took: at most 5 % of a core.
const REST: u32 = 20;

fn is_settled(file_stamp: &FileStamp) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let own = Duration::from_nanos(u64::try_from(file_stamp.mtime_ns).unwrap_or(0));
    now.abs_diff(own) > SETTLED
}

#[derive(Debug)]
struct Entry<T> {
    file_stamp: FileStamp,
    /// `None` for a file that can't be read or is not a view.
    row: Option<T>,
    fault: Option<String>,
}

/// How the files of a folder become rows.
#[derive(Debug)]
pub(super) struct FolderKind<T> {
    /// Reads a file; `None` if it is not a view.
    pub(super) read: fn(&Path) -> Result<Option<T>, CliError>,
    /// Whether the row can still change: then its file is checked each time, and the row is kept at any age.
    pub(super) lives: fn(&T) -> bool,
    /// The names of the files, without `.json`.
    pub(super) names: fn(&Path) -> Result<Vec<String>, CliError>,
    pub(super) most: usize,
}

#[derive(Debug)]
pub(super) struct WatchedFolder<T> {
    path: PathBuf,
    /// The folder, and others whose change is a reason to list it again.
    marks: Vec<PathBuf>,
    kind: FolderKind<T>,
    rows: BTreeMap<String, Entry<T>>,
    /// Files that are read at any age.
    wanted: BTreeSet<String>,
    /// The stamps of the marks when the folder was last listed; none if they could still hide a change.
    seen: Option<Vec<Option<FileStamp>>>,
    /// Until when the folder is not listed again.
    resting: Option<Instant>,
    /// How many more files there are than were read.
    pub(super) left_out: usize,
}

impl<T> WatchedFolder<T> {
    /// A folder before its first read.
    pub(super) fn new(path: PathBuf, more_marks: &[PathBuf], kind: FolderKind<T>) -> Self {
        let marks = std::iter::once(path.clone()).chain(more_marks.iter().cloned()).collect();
        let (rows, wanted) = (BTreeMap::new(), BTreeSet::new());
        WatchedFolder { path, marks, kind, rows, wanted, seen: None, resting: None, left_out: 0 }
    }

    /// Keeps these files too, whatever their age, from the next refresh on.
    pub(super) fn want(&mut self, wanted: BTreeSet<String>) {
        // While all files are read, there is nothing to look for.
        if self.left_out > 0 && !wanted.is_subset(&self.wanted) {
            (self.seen, self.resting) = (None, None);
        }
        self.wanted = wanted;
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &T> {
        self.rows.values().filter_map(|entry| entry.row.as_ref())
    }

    /// The names of the files that can't be read, each with the reason.
    pub(super) fn unread(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rows.iter().filter_map(|(name, entry)| Some((name.as_str(), entry.fault.as_deref()?)))
    }

    /// Reads changed files; returns whether there were any.
    ///
    /// # Errors
    /// When the folder can't be read. A missing folder counts as empty.
    pub(super) fn refresh(&mut self) -> Result<bool, CliError> {
        let marks: Vec<Option<FileStamp>> = self.marks.iter().map(|mark| file_stamp(mark)).collect();
        if self.seen.as_ref() == Some(&marks) {
            return Ok(false);
        }
        if self.resting.is_some_and(|until| Instant::now() < until) {
            let living = self.rows.iter().filter(|(_, entry)| entry.row.as_ref().is_some_and(self.kind.lives));
            let names: Vec<String> = living.map(|(name, _)| name.clone()).collect();
            return Ok(self.read(names));
        }
        let settled = marks.iter().flatten().all(is_settled);
        let began = Instant::now();
        let changed = self.look_through()?;
        self.resting = Some(Instant::now() + began.elapsed() * REST);
        self.seen = settled.then_some(marks);
        Ok(changed)
    }

    fn look_through(&mut self) -> Result<bool, CliError> {
        let names = (self.kind.names)(&self.path)?;
        let mut found: Vec<(Option<FileStamp>, String)> =
            names.into_iter().map(|name| (file_stamp(&self.file(&name)), name)).collect();
        let all = found.len();
        if all > self.kind.most {
            let (rows, wanted) = (&self.rows, &self.wanted);
            let lives = |name: &str| rows.get(name).and_then(|entry| entry.row.as_ref()).is_some_and(self.kind.lives);
            found.sort_unstable_by_key(|(file_stamp, name)| {
                let changed = file_stamp.map(|file_stamp| file_stamp.mtime_ns);
                std::cmp::Reverse((lives(name), wanted.contains(name), changed))
            });
            found.truncate(self.kind.most);
        }
        self.left_out = all - found.len();
        let names: Vec<String> = found.into_iter().map(|(_, name)| name).collect();
        let kept: BTreeSet<&String> = names.iter().collect();
        let before = self.rows.len();
        self.rows.retain(|name, _| kept.contains(name));
        let lost = self.rows.len() != before;
        Ok(self.read(names) || lost)
    }

    /// Reads the files that have changed; returns whether there were any.
    fn read(&mut self, names: Vec<String>) -> bool {
        let mut changed = false;
        for name in names {
            let path = self.file(&name);
            let Some(file_stamp) = file_stamp(&path) else {
                changed |= self.rows.remove(&name).is_some();
                continue;
            };
            if self.rows.get(&name).is_some_and(|entry| entry.file_stamp == file_stamp) {
                continue;
            }
            let (row, fault) = match (self.kind.read)(&path) {
                Ok(row) => (row, None),
                Err(error) => (None, Some(error.message)),
            };
            self.rows.insert(name, Entry { file_stamp, row, fault });
            changed = true;
        }
        changed
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::view;
    use serde_json::Value;
    use std::fs;

    fn folder(path: &Path, most: usize) -> WatchedFolder<u64> {
        let read = |path: &Path| Ok(view::read(path)?.and_then(|seen: view::ViewFile<Value>| seen["n"].as_u64()));
        WatchedFolder::new(path.to_owned(), &[], FolderKind { read, lives: |n| *n < 10, names: view::stems, most })
    }

    fn put(path: &Path, name: &str, text: &str) {
        fs::write(path.join(".new"), text).expect("written");
        fs::rename(path.join(".new"), path.join(name)).expect("renamed");
    }

    fn rows(folder: &mut WatchedFolder<u64>) -> Vec<u64> {
        folder.resting = None;
        folder.refresh().expect("readable");
        folder.rows().copied().collect()
    }

    #[test]
    fn replaced_added_and_removed_files_are_seen() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut folder = folder(dir.path(), 9);
        assert_eq!(rows(&mut folder), [] as [u64; 0]);
        put(dir.path(), "a.json", "{\"n\":1}");
        put(dir.path(), "b.json", "{\"n\":2}");
        assert_eq!(rows(&mut folder), [1, 2]);
        put(dir.path(), "a.json", "{\"n\":3}");
        fs::remove_file(dir.path().join("b.json")).expect("removed");
        assert_eq!(rows(&mut folder), [3]);
    }

    #[test]
    fn a_folder_that_rests_is_looked_through_later_but_what_lives_in_it_is_seen_at_once() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut folder = folder(dir.path(), 9);
        put(dir.path(), "a.json", "{\"n\":1}");
        assert_eq!(rows(&mut folder), [1]);
        folder.resting = Some(Instant::now() + Duration::from_secs(3_600));
        put(dir.path(), "a.json", "{\"n\":2}");
        put(dir.path(), "b.json", "{\"n\":5}");
        assert!(folder.refresh().expect("readable"));
        assert_eq!(folder.rows().copied().collect::<Vec<_>>(), [2]);
        assert_eq!(rows(&mut folder), [2, 5]);
    }

    #[test]
    fn the_newest_and_the_living_are_kept_and_the_rest_is_counted() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut folder = folder(dir.path(), 2);
        put(dir.path(), "a.json", "{\"n\":1}");
        assert_eq!(rows(&mut folder), [1]);
        let later = |name: &str, seconds: u64| {
            put(dir.path(), name, "{\"n\":20}");
            let file = fs::File::options().write(true).open(dir.path().join(name)).expect("there");
            file.set_modified(SystemTime::now() + Duration::from_secs(seconds)).expect("set");
        };
        (1..=3).for_each(|number| later(&format!("b{number}.json"), number));
        assert_eq!((rows(&mut folder), folder.left_out), (vec![1, 20], 2));
    }

    #[test]
    fn a_file_that_is_wanted_is_kept_at_any_age() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut folder = folder(dir.path(), 2);
        for (name, age) in [("a", 9), ("b", 3), ("c", 2), ("d", 1)] {
            put(dir.path(), &format!("{name}.json"), &format!("{{\"n\":{}}}", 10 + age));
            let file = fs::File::options().write(true).open(dir.path().join(format!("{name}.json"))).expect("there");
            file.set_modified(SystemTime::now() - Duration::from_secs(age * 60)).expect("set");
        }
        assert_eq!(rows(&mut folder), [12, 11]);
        folder.want(BTreeSet::from(["a".to_owned()]));
        assert_eq!(rows(&mut folder), [19, 11]);
        folder.want(BTreeSet::new());
        put(dir.path(), "e.json", "{\"n\":30}");
        assert_eq!(rows(&mut folder), [11, 30]);
    }

    #[test]
    fn links_torn_files_and_large_ones_are_told_and_stop_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        put(dir.path(), "a.json", "{\"n\":1}");
        put(dir.path(), "b.json", "{\"n\":");
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("c.json")).expect("a link");
        fs::File::create(dir.path().join("d.json")).and_then(|file| file.set_len(view::LARGEST + 1)).expect("large");
        nix::unistd::mkfifo(&dir.path().join("e.json"), nix::sys::stat::Mode::S_IRUSR).expect("a pipe");
        let mut folder = folder(dir.path(), 9);
        assert_eq!(rows(&mut folder), [1]);
        assert_eq!(folder.unread().map(|(name, _)| name).collect::<Vec<_>>(), ["b", "c", "d", "e"]);
    }
}
