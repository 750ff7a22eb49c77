//! Temporary names that are used only once: two writers in one folder never write, rename or remove each other's file.
//! What a crash leaves under such a name is removed when the next process writes in that folder.

use super::{meta, names, remove_at};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

const START: &str = ".tasuki-";
const END: &str = ".new";
/// The one name that former versions used.
const FORMER: &str = ".tasuki-new";
/// The most leftovers that are removed at once.
const MAX_LEFT: usize = 1_000;
/// The largest number of folders that are remembered as cleaned; cleaning one again is harmless.
const MAX_CLEANED: usize = 10_000;

/// Distinguishes this process's names from those of earlier processes.
static OURS: LazyLock<String> = LazyLock::new(|| uuid::Uuid::new_v4().simple().to_string());
static NEXT: AtomicU64 = AtomicU64::new(0);
static CLEANED: LazyLock<Mutex<HashSet<(u64, u64)>>> = LazyLock::new(Mutex::default);

/// A name in this folder that nobody else has used or will use. Only one process at a time may write in the folder.
pub fn scratch_name(dir: impl AsFd) -> OsString {
    remove_leftovers(dir.as_fd());
    OsString::from(format!("{START}{}-{}{END}", *OURS, NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// Removes the files that former processes left, once for each folder. A file that can't be removed does no harm.
fn remove_leftovers(dir: impl AsFd) {
    let dir = dir.as_fd();
    let Ok(meta) = meta(dir) else { return };
    let is_new = {
        let mut cleaned = CLEANED.lock().unwrap_or_else(PoisonError::into_inner);
        if cleaned.len() >= MAX_CLEANED {
            cleaned.clear();
        }
        cleaned.insert((meta.file_stamp.dev, meta.file_stamp.ino))
    };
    if is_new && let Ok((left, _)) = names(dir, MAX_LEFT, is_leftover) {
        left.iter().for_each(|name| drop(remove_at(dir, name)));
    }
}

/// Whether a name is from another process. That process no longer runs, because only one at a time may write here.
fn is_leftover(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let given = || {
        let (process, number) = name.strip_prefix(START)?.strip_suffix(END)?.split_once('-')?;
        let is_ours = process == OURS.as_str();
        Some(!is_ours && process.len() == OURS.len() && number.parse::<u64>().is_ok())
    };
    name == FORMER || given().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_given_twice_and_only_names_of_former_processes_are_left_over() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = super::super::open_dir(dir.path()).expect("a folder");
        let (one, other) = (scratch_name(&folder), scratch_name(&folder));
        assert_ne!(one, other);
        assert!(!is_leftover(&one));
        let former = one.to_string_lossy().replace(OURS.as_str(), &"0".repeat(32));
        assert!(is_leftover(OsStr::new(&former)) && is_leftover(OsStr::new(FORMER)));
        for others in [".tasuki-notes.new", ".tasuki-a-1.new", "a.md", ".tasuki-.new"] {
            assert!(!is_leftover(OsStr::new(others)), "{others}");
        }
    }
}
