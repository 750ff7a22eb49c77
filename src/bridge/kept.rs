//! Counts the requests of each host that this home keeps in `fleet/in`, with the files that came with them: `sweep`
//! removes a request only days after its answer. The limits keep a host that asks again and again from filling this
//! host's disk.

use super::folder::FleetFolder;
use super::told::host_of;
use crate::core::host::HostName;
use std::collections::{BTreeMap, BTreeSet};

/// The number of requests of one host from which on no more are taken from it.
const MOST: usize = 10_000;
/// The most bytes of one host's requests that are kept.
const MOST_BYTES: u64 = 256 << 20;
/// What each request counts at least, in bytes: its folder and its files take whole blocks of the disk.
const LEAST_BYTES: u64 = 4_096;
/// About the largest request, in bytes. A host has room again once there is room for such a request.
const LARGEST: u64 = 2 << 20;

/// How much is kept of one host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct KeptOfHost {
    requests: usize,
    bytes: u64,
}

/// How much is kept of each host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeptRequests {
    hosts: BTreeMap<HostName, KeptOfHost>,
    /// The hosts whose requests were refused because there was no room, until there is room again.
    full: BTreeSet<HostName>,
}

impl KeptRequests {
    /// Counts what is there. If that can't be listed, the former counts stay.
    pub(super) fn count(&mut self, folder: &FleetFolder) {
        let Ok(names) = folder.all_names("in") else { return };
        let full = std::mem::take(&mut self.full);
        self.hosts.clear();
        for name in names {
            if let Some(host) = host_of(&name) {
                self.add(&host, folder.bytes_in(&format!("in/{name}")));
            }
        }
        self.full = full.into_iter().filter(|host| !self.has_room(host, LARGEST)).collect();
    }

    /// Counts a request that is about to be written. `bytes`: those of all its files.
    pub(super) fn add(&mut self, host: &HostName, bytes: u64) {
        let of = self.hosts.entry(host.clone()).or_default();
        of.requests += 1;
        of.bytes = of.bytes.saturating_add(bytes.max(LEAST_BYTES));
    }

    /// Whether one more request of this host, with so many bytes, may be kept.
    pub(super) fn has_room(&self, host: &HostName, bytes: u64) -> bool {
        let of = self.hosts.get(host).copied().unwrap_or_default();
        of.requests < MOST && of.bytes.saturating_add(bytes.max(LEAST_BYTES)) <= MOST_BYTES
    }

    /// Remembers that a request of this host was refused, because there was no room.
    pub(super) fn refuse(&mut self, host: &HostName) {
        self.full.insert(host.clone());
    }

    /// What the operator is told of the hosts whose requests are refused; none if there are none.
    pub(super) fn problem(&self) -> Option<String> {
        let hosts: Vec<&str> = self.full.iter().map(HostName::as_str).collect();
        (!hosts.is_empty()).then(|| {
            format!(
                "Requests are refused, because fleet/in has 10,000 requests or 256 MiB of one host: {}. The bridge \
                 removes each request 7 days after its answer. If a host asks too often, take its rights away: tasuki \
                 fleet refuse HOST.",
                hosts.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::folder::of_test;
    use super::*;
    use crate::files::Grade;

    fn hosts() -> [HostName; 2] {
        ["m", "b"].map(|name| name.parse().expect("a name"))
    }

    fn put(folder: &FleetFolder, rid: &str, file: &str, bytes: usize) {
        folder.make("in", rid).expect("made");
        folder.write(&format!("in/{rid}"), file, &vec![b' '; bytes], Grade::Fast).expect("written");
    }

    #[test]
    fn the_requests_of_each_host_are_counted_and_after_too_many_there_is_no_room() {
        let (_dir, _, folder) = of_test();
        let [one, other] = hosts();
        put(&folder, "fleet.m.x", "request.json", 2);
        put(&folder, "fleet.m.x", "handoff.md", 5_000);
        put(&folder, "garbage", "request.json", 2);
        let mut kept = KeptRequests::default();
        kept.count(&folder);
        assert_eq!(kept.hosts, BTreeMap::from([(one.clone(), KeptOfHost { requests: 1, bytes: 5_002 })]));
        (1..MOST).for_each(|_| kept.add(&one, 10));
        assert!(!kept.has_room(&one, 0) && kept.has_room(&other, LARGEST) && kept.problem().is_none());
        kept.refuse(&one);
        assert!(kept.problem().is_some_and(|problem| problem.contains("of one host: m. ")), "{kept:?}");
        std::fs::rename(folder.path("in", ""), folder.path("aside", "")).expect("moved");
        let before = kept.clone();
        kept.count(&folder);
        assert_eq!(kept, before, "what can't be listed is not nothing");
        std::fs::rename(folder.path("aside", ""), folder.path("in", "")).expect("moved back");
        kept.count(&folder);
        assert!(kept.has_room(&one, LARGEST) && kept.problem().is_none(), "most of them are gone");
    }

    #[test]
    fn a_few_large_requests_leave_no_room_either() {
        let (_dir, _, folder) = of_test();
        let [one, other] = hosts();
        put(&folder, "fleet.m.x", "request.json", 2);
        let large = std::fs::File::options().write(true).open(folder.path("in/fleet.m.x", "request.json"));
        large.expect("opened").set_len(MOST_BYTES - LEAST_BYTES).expect("a hole");
        let mut kept = KeptRequests::default();
        kept.count(&folder);
        assert!(kept.has_room(&one, 10) && !kept.has_room(&one, LEAST_BYTES + 1) && kept.has_room(&other, LARGEST));
        kept.refuse(&one);
        kept.count(&folder);
        assert!(kept.problem().is_some(), "there is no room for a large request yet");
    }
}
