//! The order in which the files of one listing are read and decided.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The name under which `tasuki hook` submits an event. Its parts are the first 8 hexadecimal digits of the boot id,
/// the nanoseconds since boot, and the process id. Sorted by name, events of one boot are in the order in which their
/// hooks began, however long each hook took.
#[must_use]
pub fn event_name(boot_prefix: &str, boot_ns: u64, pid: u32) -> String {
    format!("{boot_prefix}-{boot_ns:020}-{pid}.json")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EventName {
    boot: [u8; 8],
    ns: u64,
    pid: u32,
}

fn parse(name: &OsStr) -> Option<EventName> {
    let stem = name.as_bytes().strip_suffix(b".json")?;
    let mut parts = stem.split(|byte| *byte == b'-');
    let (boot, ns, pid) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    if parts.next().is_some() || ns.len() != 20 || pid.is_empty() || !digits(ns) || !digits(pid) {
        return None;
    }
    let number = |part| std::str::from_utf8(part).ok();
    Some(EventName { boot: boot.try_into().ok()?, ns: number(ns)?.parse().ok()?, pid: number(pid)?.parse().ok()? })
}

/// Whether a name is one of [`event_name`].
pub(super) fn is_event_name(name: &OsStr) -> bool {
    parse(name).is_some()
}

/// A file name with the file's modification time (mtime), in nanoseconds.
pub(super) type Listed = (OsString, i64);

/// The order of requests: oldest modification time first, then by name.
pub(super) fn by_time(mut listed: Vec<Listed>) -> Vec<OsString> {
    listed.sort_unstable_by(|(a, a_ns), (b, b_ns)| (a_ns, a).cmp(&(b_ns, b)));
    listed.into_iter().map(|(name, _)| name).collect()
}

/// The order of events. Within a boot they are ordered by the time in their names; file times do not matter. Files of
/// different boots, and files without such a name, are compared by the wall clock. For this, tasuki estimates when each
/// boot began: each file gives its modification time minus the time in its name, and the earliest estimate counts. This
/// shifts all files of a boot by the same amount, so a jump of the wall clock can't change the order within a boot.
pub(super) fn events(listed: Vec<Listed>) -> Vec<OsString> {
    let mut starts: BTreeMap<[u8; 8], i128> = BTreeMap::new();
    let parsed: Vec<(OsString, i64, Option<EventName>)> = listed
        .into_iter()
        .map(|(name, mtime)| {
            let ours = parse(&name);
            (name, mtime, ours)
        })
        .collect();
    for (_, mtime, ours) in &parsed {
        if let Some(ours) = ours {
            let start = i128::from(*mtime) - i128::from(ours.ns);
            starts.entry(ours.boot).and_modify(|known| *known = start.min(*known)).or_insert(start);
        }
    }
    let mut keyed: Vec<((i128, u32), OsString)> = parsed
        .into_iter()
        .map(|(name, mtime, ours)| match ours {
            Some(ours) => ((starts.get(&ours.boot).copied().unwrap_or(0) + i128::from(ours.ns), ours.pid), name),
            None => ((i128::from(mtime), 0), name),
        })
        .collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(listed: &[(&str, i64)]) -> Vec<Listed> {
        listed.iter().map(|(name, mtime)| (OsString::from(name), *mtime)).collect()
    }

    #[test]
    fn an_event_name_reads_back() {
        let name = event_name("6f1c3a52", 12_345, 77);
        assert_eq!(name, "6f1c3a52-00000000000000012345-77.json");
        assert_eq!(parse(OsStr::new(&name)), Some(EventName { boot: *b"6f1c3a52", ns: 12_345, pid: 77 }));
        for other in [
            "a.json",
            "6f1c3a52-1-77.json",
            "6f1c3a52-00000000000000012345-.json",
            "6f1c3a52-00000000000000012345-7-8.json",
        ] {
            assert_eq!(parse(OsStr::new(other)), None, "{other}");
        }
    }

    #[test]
    fn events_of_one_boot_go_by_their_names_and_not_by_file_times() {
        let (early, late) = (event_name("aaaaaaaa", 10, 9), event_name("aaaaaaaa", 20, 8));
        let sorted = events(names(&[(&late, 1_000), (&early, 2_000)]));
        assert_eq!(sorted, [OsString::from(early), OsString::from(late)]);
    }

    #[test]
    fn other_names_are_ordered_among_events_by_time() {
        let (early, late) = (event_name("aaaaaaaa", 10, 1), event_name("aaaaaaaa", 1_000, 1));
        let sorted = events(names(&[(&late, 2_001), ("other.json", 1_500), (&early, 1_010)]));
        assert_eq!(sorted, [OsString::from(early), OsString::from("other.json"), OsString::from(late)]);
    }

    #[test]
    fn an_earlier_boot_comes_first() {
        let (before, after) = (event_name("ffffffff", 900, 1), event_name("00000000", 5, 1));
        let sorted = events(names(&[(&after, 5_000), (&before, 4_000)]));
        assert_eq!(sorted, [OsString::from(before), OsString::from(after)]);
    }

    proptest! {
        #[test]
        fn whatever_the_file_times_one_boot_stays_in_order(files in proptest::collection::btree_map(0u64..1_000_000, any::<i64>(), 0..40)) {
            let expected: Vec<OsString> = files.keys().map(|ns| event_name("0a0b0c0d", *ns, 4).into()).collect();
            let mut listed: Vec<Listed> = files.iter().map(|(ns, mtime)| (event_name("0a0b0c0d", *ns, 4).into(), *mtime)).collect();
            listed.reverse();
            prop_assert_eq!(events(listed), expected);
        }
    }
}
