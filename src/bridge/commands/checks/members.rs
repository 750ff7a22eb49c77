//! Checks the list of members: whether the fleet's key has signed it, and whether this host is in it.

use super::finding::{ADMIT_AGAIN, SETUP, fail, ok, warn};
use crate::bridge::identity::HostFile;
use crate::cli::doctor::Line;
use crate::core::host::FleetName;
use crate::core::time::rfc3339;
use crate::fleet::nats::{CourierError, StoredRoster};
use crate::fleet::{AccountKey, HostKeys, MemberList, SignedError};

const ID: &str = "fleet.members";

/// The list that stands at the server.
#[derive(Debug)]
pub(super) enum FoundList {
    /// A list that the fleet's key has signed, and when the server has stored it, in milliseconds since 1970.
    Signed(MemberList, i64),
    /// The fleet's key has not signed it, or it can't be read.
    NotAuthentic(SignedError),
    /// There is none.
    Missing,
    /// It could not be fetched from the server.
    Unread,
}

/// Verifies the list that the server has sent.
pub(super) fn opened(
    standing: Result<Option<StoredRoster>, CourierError>,
    key: &AccountKey,
    fleet: &FleetName,
) -> FoundList {
    match standing {
        Ok(Some(standing)) => match MemberList::open(&standing.bytes, key, fleet) {
            Ok(list) => FoundList::Signed(list, standing.stored_ms),
            Err(error) => FoundList::NotAuthentic(error),
        },
        Ok(None) => FoundList::Missing,
        Err(_) => FoundList::Unread,
    }
}

/// The list that counts: the server's, or the one that this host has kept, if that is newer or the server's can't be
/// used.
pub(super) fn newest<'l>(found: &'l FoundList, kept: &'l MemberList) -> &'l MemberList {
    match found {
        FoundList::Signed(list, _) if list.version >= kept.version => list,
        _ => kept,
    }
}

/// Judges the list. `kept`: the list that this host has kept. `found`: the server's, if the server was asked.
pub(super) fn judge(host: &HostFile, keys: Option<&HostKeys>, kept: &MemberList, found: Option<&FoundList>) -> Line {
    let (list, source) = match found {
        Some(FoundList::Missing) => return fail(ID, "the server has no list of members for this fleet", SETUP),
        Some(FoundList::NotAuthentic(error)) => {
            return fail(ID, format!("the list of members at the server is not believed: {error}"), SETUP);
        }
        Some(FoundList::Signed(list, _)) if list.version < kept.version => {
            let said = format!(
                "the server has version {} of the list of members, and this host has seen {}: the server has gone back",
                list.version, kept.version
            );
            return warn(ID, said, SETUP);
        }
        Some(FoundList::Signed(list, stored_ms)) => (list, format!("of {}", rfc3339(*stored_ms))),
        Some(FoundList::Unread) | None if kept.version == 0 => {
            return warn(ID, "this host has read no list of members yet", "see fleet.server and fleet.bridge");
        }
        Some(FoundList::Unread) | None => (kept, "as this host has last read it".to_owned()),
    };
    let what = format!("version {} of the list of members, {source}", list.version);
    let Some(own) = list.find(&host.name) else {
        let said = format!("this host is not in {what}: it was expelled");
        return fail(ID, said, ADMIT_AGAIN);
    };
    if own.home_id != host.home_id {
        let said = format!("{} is another home in {what}: that one was admitted under this host's name", host.name);
        return fail(ID, said, "give this host another name: tasuki fleet leave, then key, admit, join");
    }
    let is_other = keys.is_some_and(|keys| keys.user_key() != own.user_key || keys.box_key() != own.box_key);
    if is_other {
        return fail(ID, format!("{} has other keys in {what}, so nobody believes this host", host.name), ADMIT_AGAIN);
    }
    let hosts = list.members.len();
    ok(ID, format!("this host is one of {hosts} in {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{FleetKeys, Member};

    fn member(host: &HostFile, keys: &HostKeys) -> Member {
        let (user_key, box_key, admitted_at) = (keys.user_key(), keys.box_key(), String::new());
        Member { name: host.name.clone(), home_id: host.home_id, user_key, box_key, admitted_at }
    }

    fn list(version: u64, members: Vec<Member>) -> MemberList {
        MemberList::new("home".parse().expect("a name"), version, members)
    }

    #[test]
    fn this_host_must_be_in_the_list_with_its_home_and_its_keys() {
        let (host, keys) = (HostFile::new("box".parse().expect("a name")), HostKeys::generate());
        let kept = list(2, vec![member(&host, &keys)]);
        let judged = |version, member: Option<Member>| {
            judge(&host, Some(&keys), &kept, Some(&FoundList::Signed(list(version, member.into_iter().collect()), 0)))
        };
        let own = member(&host, &keys);
        assert_eq!(judged(3, Some(own.clone())).status, "ok");
        assert_eq!(judged(1, Some(own)).status, "warn");
        assert!(judged(3, None).said.contains("it was expelled"));
        let other_home = HostFile::new(host.name.clone());
        assert!(judged(3, Some(member(&other_home, &keys))).said.contains("another home"));
        assert!(judged(3, Some(member(&host, &HostKeys::generate()))).said.contains("other keys"));
    }

    #[test]
    fn if_the_server_s_list_was_not_read_the_kept_one_counts() {
        let (host, keys) = (HostFile::new("box".parse().expect("a name")), HostKeys::generate());
        let kept = list(2, vec![member(&host, &keys)]);
        let unread = opened(
            Err(CourierError::Unreachable("silence".to_owned())),
            &FleetKeys::generate().account_key(),
            &kept.fleet,
        );
        let status = |found| judge(&host, Some(&keys), &kept, found).status;
        assert_eq!((status(None), status(Some(&unread))), ("ok".to_owned(), "ok".to_owned()));
        assert_eq!(status(Some(&FoundList::Missing)), "fail");
        assert_eq!(judge(&host, Some(&keys), &list(0, Vec::new()), None).status, "warn");
    }

    #[test]
    fn a_list_that_the_fleet_s_key_has_not_signed_counts_for_nothing() {
        let (owner, other) = (FleetKeys::generate(), FleetKeys::generate());
        let stored =
            |keys: &FleetKeys| StoredRoster { bytes: list(7, Vec::new()).sign(keys), sequence: 1, stored_ms: 5 };
        let fleet = "home".parse().expect("a name");
        let open = |keys: &FleetKeys| opened(Ok(Some(stored(keys))), &owner.account_key(), &fleet);
        let kept = list(2, Vec::new());
        assert_eq!(newest(&open(&owner), &kept).version, 7);
        let forged = open(&other);
        assert!(matches!(forged, FoundList::NotAuthentic(_)), "{forged:?}");
        assert_eq!(newest(&forged, &kept).version, 2);
        let host = HostFile::new("box".parse().expect("a name"));
        assert_eq!(judge(&host, None, &kept, Some(&forged)).status, "fail");
    }
}
