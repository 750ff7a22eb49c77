//! Counts the answers in `fleet/told` for each host that asked: refusals, and answers to pushed personas. Each is kept
//! as a file for 30 days. The limit keeps a host that asks again and again from filling this host's disk.

use super::folder::FleetFolder;
use crate::core::host::HostName;
use std::collections::BTreeMap;

/// The number of answers from which on no more are written for one host: it is refused nothing, and its personas are
/// not taken.
const MOST: usize = 10_000;

/// The counts, by host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ToldCounts(BTreeMap<HostName, usize>);

impl ToldCounts {
    /// Counts the files; none if they can't be listed.
    pub(super) fn count(folder: &FleetFolder) -> Option<ToldCounts> {
        let mut counts = ToldCounts::default();
        for name in folder.all_names("told").ok()? {
            if let Some(host) = host_of(&name) {
                counts.add(&host);
            }
        }
        Some(counts)
    }

    /// Counts an answer that was written.
    pub(super) fn add(&mut self, host: &HostName) {
        *self.0.entry(host.clone()).or_default() += 1;
    }

    /// Whether no more answers are to be written for this host.
    pub(super) fn is_full(&self, host: &HostName) -> bool {
        self.0.get(host).is_some_and(|count| *count >= MOST)
    }
}

/// The host that has sent the request to which a file or folder belongs: a request's id here is `fleet.HOST.ID`.
pub(super) fn host_of(name: &str) -> Option<HostName> {
    name.split('.').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::folder::of_test;
    use super::*;
    use crate::files::Grade;

    #[test]
    fn the_answers_to_each_host_are_counted_and_after_too_many_there_are_no_more() {
        let (_dir, _, folder) = of_test();
        let [one, other]: [HostName; 2] = ["m", "b"].map(|name| name.parse().expect("a name"));
        folder.write("told", "fleet.m.x.json", b"{}", Grade::Fast).expect("written");
        folder.write("told", "garbage", b"{}", Grade::Fast).expect("written");
        let mut counts = ToldCounts::count(&folder).expect("listed");
        assert_eq!(counts.0.get(&one), Some(&1));
        (1..MOST - 1).for_each(|_| counts.add(&one));
        assert!(!counts.is_full(&one));
        counts.add(&one);
        assert!(counts.is_full(&one) && !counts.is_full(&other));
        std::fs::remove_dir_all(folder.path("told", "")).expect("removed");
        assert_eq!(ToldCounts::count(&folder), None, "what can't be listed is not nothing");
    }
}
