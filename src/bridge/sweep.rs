//! Removes answers, refusals and parts from `HOME/fleet` when nobody can ask for them any more, so that it does not
//! grow for ever.

use super::folder::FleetFolder;
use super::rejected;
use crate::config::Home;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How often the folder is swept, in milliseconds.
pub(super) const EVERY_MS: u64 = 3_600_000;
const DAY: Duration = Duration::from_secs(24 * 3_600);
/// The most replaced personas that are kept.
const MOST_REPLACED: usize = 100;

/// The most that one sweep removes, because the bridge does nothing else meanwhile, and its lease at the server lasts
/// 40 seconds. The rest is removed by the next sweeps.
const MOST_AT_ONCE: usize = 1_000;

/// Removes what is too old:
///
/// - answers to requests of this host after 7 days;
/// - answers that this bridge has given to others, such as refusals, after 30 days;
/// - rejected files after 30 days;
/// - a request from another host, with its parts, 7 days after its answer, or 40 days after it came;
/// - parts in `out` whose request is gone, after an hour;
/// - files that a crash has left in `tmp`, after an hour.
pub(super) fn sweep(folder: &FleetFolder, home: &Home, now: SystemTime) {
    let older = |folder_name: &str, limit: Duration| {
        let names = folder.all_names(folder_name).unwrap_or_default().into_iter();
        let is_old = |name: &String| age(&folder.path(folder_name, name), now).is_some_and(|age| age > limit);
        for name in names.filter(is_old).take(MOST_AT_ONCE) {
            let _ = folder.remove(folder_name, &name);
        }
    };
    older("results", 7 * DAY);
    older("told", 30 * DAY);
    older("rejected", 30 * DAY);
    older("tmp", DAY / 24);
    rejected::keep_newest(folder);
    newest_only(folder, "replaced", MOST_REPLACED);
    let answered = [home.spool().join("results"), folder.path("told", "")];
    let is_over = |name: &String| {
        let answer_age = answered.iter().find_map(|place| age(&place.join(format!("{name}.json")), now));
        let came = age(&folder.path("in", name), now);
        answer_age.is_some_and(|age| age > 7 * DAY) || came.is_some_and(|age| age > 40 * DAY)
    };
    let requests = folder.all_names("in").unwrap_or_default().into_iter();
    for name in requests.filter(is_over).take(MOST_AT_ONCE) {
        let _ = fs::remove_dir_all(folder.path("in", &name));
    }
    for name in folder.all_names("out").unwrap_or_default() {
        let path = folder.path("out", &name);
        let is_left = path.is_dir() && !folder.path("out", &format!("{name}.json")).exists();
        if is_left && age(&path, now).is_some_and(|age| age > DAY / 24) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

fn age(path: &Path, now: SystemTime) -> Option<Duration> {
    now.duration_since(fs::symlink_metadata(path).ok()?.modified().ok()?).ok()
}

/// Keeps the newest entries of a folder. Their names begin with the time, so the first names are the oldest.
fn newest_only(folder: &FleetFolder, part: &str, most: usize) {
    let names = folder.all_names(part).unwrap_or_default();
    for name in &names[..names.len().saturating_sub(most)] {
        let path = folder.path(part, name);
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::folder::of_test;
    use super::*;
    use crate::files::Grade;

    #[test]
    fn old_files_are_removed_and_requests_on_their_way_stay() {
        let (_dir, home, folder) = of_test();
        let put = |part: &str| folder.write(part, "a.json", b"{}", Grade::Fast).expect("written");
        ["results", "told", "rejected", "tmp"].into_iter().for_each(put);
        folder.make("in", "fleet.a.x").expect("made");
        folder.write("told", "fleet.a.x.json", b"{}", Grade::Fast).expect("written");
        folder.make("out", "left").expect("made");
        folder.make("out", "open").expect("made");
        folder.write("out", "open.json", b"{}", Grade::Fast).expect("written");
        let names = |part: &str| folder.names(part).expect("listed").len();
        let all = || ["results", "told", "rejected", "tmp", "in", "out"].map(names);
        let after = |days: u32| sweep(&folder, &home, SystemTime::now() + DAY * days);
        assert_eq!(all(), [1, 2, 1, 1, 1, 3]);
        after(1);
        assert_eq!(all(), [1, 2, 1, 0, 1, 2], "a crash's leftovers, and parts without their request");
        after(8);
        assert_eq!(all(), [0, 2, 1, 0, 0, 2], "answers, and requests that were answered");
        after(31);
        assert_eq!(all(), [0, 0, 0, 0, 0, 2], "a request that is on its way stays");
    }

    #[test]
    fn one_sweep_does_not_remove_everything_at_once() {
        let (_dir, home, folder) = of_test();
        (0..=MOST_AT_ONCE).for_each(|number| folder.make("in", &format!("fleet.a.{number}")).expect("made"));
        for left in [1, 0] {
            sweep(&folder, &home, SystemTime::now() + 41 * DAY);
            assert_eq!(folder.all_names("in").expect("listed").len(), left);
        }
    }
}
