//! Nothing in `HOME/fleet` grows for ever: answers, refusals and parts are removed when nobody can ask for them any more.

use super::folder::FleetFolder;
use crate::config::Home;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How often it is swept, in milliseconds.
pub(super) const EVERY_MS: u64 = 3_600_000;
const DAY: Duration = Duration::from_secs(24 * 3_600);
/// The most files that were put aside.
const MOST_REJECTED: usize = 1_000;
/// The most personas that were replaced.
const MOST_REPLACED: usize = 100;

/// Removes what is too old: answers after 7 days, refusals after 30, what was put aside after 30, parts that came with a
/// request 7 days after its answer, parts of requests that are answered, and what a crash has left in `tmp`.
pub(super) fn sweep(folder: &FleetFolder, home: &Home, now: SystemTime) {
    let older = |folder_name: &str, limit: Duration| {
        for name in folder.all_names(folder_name).unwrap_or_default() {
            if age(&folder.path(folder_name, &name), now).is_some_and(|age| age > limit) {
                let _ = folder.remove(folder_name, &name);
            }
        }
    };
    older("results", 7 * DAY);
    older("told", 30 * DAY);
    older("rejected", 30 * DAY);
    older("tmp", DAY / 24);
    newest_only(folder, "rejected", 2 * MOST_REJECTED);
    newest_only(folder, "replaced", MOST_REPLACED);
    for name in folder.all_names("in").unwrap_or_default() {
        let path = folder.path("in", &name);
        let answered = [home.spool().join("results"), folder.path("told", "")];
        let answer_age = answered.iter().find_map(|place| age(&place.join(format!("{name}.json")), now));
        let is_over = answer_age.is_some_and(|age| age > 7 * DAY) || age(&path, now).is_some_and(|age| age > 40 * DAY);
        if is_over {
            let _ = fs::remove_dir_all(path);
        }
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

/// Names begin with the time, so that the first are the oldest.
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
    fn what_nobody_can_ask_for_any_more_is_removed_and_the_rest_stays() {
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
        assert_eq!(all(), [1, 2, 1, 0, 1, 2], "a crash's leftovers, and parts of nothing");
        after(8);
        assert_eq!(all(), [0, 2, 1, 0, 0, 2], "answers, and the parts that came with one");
        after(31);
        assert_eq!(all(), [0, 0, 0, 0, 0, 2], "what is on its way stays");
    }
}
