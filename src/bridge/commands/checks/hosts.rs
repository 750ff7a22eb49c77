//! Checks the other hosts by their rosters: whether they are live, whether all have one version, and whether personas
//! of one name are the same on all hosts.

use super::finding::{listed, ok, span, warn};
use super::server::FoundRosters;
use crate::bridge::roster::personas;
use crate::cli::doctor::Line;
use crate::config::Home;
use crate::contract::fleet::{HOST_STALE_MS, HostPersona};
use crate::core::host::HostName;
use crate::fleet::MemberList;
use crate::fleet::roster::{RosterNumbers, Seen};
use std::collections::{BTreeMap, BTreeSet};

/// What was read of one host.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HostLook {
    /// Its roster: how old it is, in milliseconds, the host's version, and its personas.
    Told { age_ms: i64, version: String, personas: Vec<HostPersona> },
    /// It has never put a roster.
    Never,
    /// The bytes at its name are not signed by it, or are an older roster than was seen before.
    NotAuthentic,
    /// Its roster could not be fetched.
    Unread,
}

/// Verifies the rosters. `server_ms`: the server's clock, in milliseconds since 1970; without it, rosters count as new.
pub(super) fn read(
    rosters: &FoundRosters,
    list: &MemberList,
    numbers: &mut RosterNumbers,
    server_ms: Option<i64>,
) -> BTreeMap<HostName, HostLook> {
    let mut looks: BTreeMap<HostName, HostLook> =
        list.members.iter().map(|member| (member.name.clone(), HostLook::Unread)).collect();
    for (name, found) in rosters {
        let look = match found {
            Err(_) => HostLook::Unread,
            Ok(None) => HostLook::Never,
            Ok(Some(standing)) => match numbers.read(&standing.bytes, name, list) {
                Seen::NotAuthentic => HostLook::NotAuthentic,
                Seen::Roster(roster) => {
                    let age_ms = server_ms.unwrap_or(standing.stored_ms).saturating_sub(standing.stored_ms);
                    HostLook::Told { age_ms, version: roster.version, personas: roster.personas }
                }
            },
        };
        looks.insert(name.clone(), look);
    }
    looks
}

/// Judges the hosts. `own`: this host. `hide`: personas of this home that other hosts are not told of.
pub(super) fn judge(home: &Home, own: &HostName, hide: &[String], looks: &BTreeMap<HostName, HostLook>) -> [Line; 3] {
    let mut told: Vec<(&HostName, Vec<HostPersona>)> = Vec::new();
    for (name, look) in looks.iter().filter(|(name, _)| *name != own) {
        if let HostLook::Told { personas, .. } = look {
            told.push((name, personas.clone()));
        }
    }
    let personas = match personas(home, hide) {
        Ok(personas) => {
            told.insert(0, (own, personas));
            judge_personas(&told)
        }
        Err(error) => warn("fleet.personas", error.message, "look at that folder; the bridge can't read it either"),
    };
    [presence(own, looks), versions(own, looks), personas]
}

fn presence(own: &HostName, looks: &BTreeMap<HostName, HostLook>) -> Line {
    let id = "fleet.hosts";
    let others = || looks.iter().filter(|(name, _)| *name != own);
    let of = |wanted: fn(&HostLook) -> Option<String>| -> Vec<String> {
        others().filter_map(|(name, look)| Some(format!("{name}{}", wanted(look)?))).collect()
    };
    let forged =
        if matches!(looks.get(own), Some(HostLook::NotAuthentic)) { vec![own.to_string()] } else { Vec::new() };
    let forged = [forged, of(|look| matches!(look, HostLook::NotAuthentic).then(String::new))].concat();
    let away = of(|look| match look {
        HostLook::Told { age_ms, .. } if *age_ms > HOST_STALE_MS => Some(format!(" (for {})", span(*age_ms))),
        HostLook::Never => Some(" (since it was admitted)".to_owned()),
        _ => None,
    });
    let unread = of(|look| matches!(look, HostLook::Unread).then(String::new));
    if !forged.is_empty() {
        let said = format!("not authentic: {}: another member or the server has written at that name", listed(&forged));
        let fix = "if that stays so: look at the members (tasuki fleet hosts), expel the one you do not trust, and check the \
                   server";
        return warn(id, said, fix);
    }
    if !away.is_empty() {
        let fix = "start the machine, or the bridge on it: tasuki fleet run; a host that is gone for good: tasuki fleet expel HOST";
        return warn(id, format!("away: {}", listed(&away)), fix);
    }
    if !unread.is_empty() {
        return warn(id, format!("the server did not tell of {}", listed(&unread)), "try again");
    }
    match others().count() {
        0 => ok(id, "this host is the only one of its fleet"),
        1 => ok(id, "the other host is live"),
        count => ok(id, format!("the {count} other hosts are live")),
    }
}

fn versions(own: &HostName, looks: &BTreeMap<HostName, HostLook>) -> Line {
    let (id, own_version) = ("fleet.versions", env!("CARGO_PKG_VERSION"));
    let other = looks.iter().filter(|(name, _)| *name != own).filter_map(|(name, look)| match look {
        HostLook::Told { version, .. } if version != own_version => Some(format!("{name} ({version})")),
        _ => None,
    });
    let other: Vec<String> = other.collect();
    if other.is_empty() {
        return ok(id, format!("every host that has told of itself has version {own_version}"));
    }
    let said = format!("another version than {own_version} here: {}", listed(&other));
    warn(id, said, "install one version on all hosts, and start the bridges again")
}

/// Each host uses its own personas, and a difference may be intended. So it is mentioned, but is not a warning.
fn judge_personas(told: &[(&HostName, Vec<HostPersona>)]) -> Line {
    let id = "fleet.personas";
    let mut all: BTreeMap<&str, (BTreeSet<&str>, Vec<&str>)> = BTreeMap::new();
    for (host, personas) in told {
        for persona in personas {
            let (hashes, hosts) = all.entry(&persona.slug).or_default();
            hashes.insert(&persona.sha256);
            hosts.push(host.as_str());
        }
    }
    let differ = all.iter().filter(|(_, (hashes, _))| hashes.len() > 1);
    let differ: Vec<String> = differ.map(|(slug, (_, hosts))| format!("{slug} ({})", hosts.join(", "))).collect();
    if differ.is_empty() {
        return ok(id, "personas of one name are the same on all hosts");
    }
    ok(id, format!("not the same on all hosts, and each host uses its own: {}", listed(&differ)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::fleet::HostSidecar;
    use crate::core::host::HomeId;
    use crate::fleet::nats::StoredRoster;
    use crate::fleet::roster::Teller;
    use crate::fleet::{HostKeys, Member, Roster};

    fn name(text: &str) -> HostName {
        text.parse().expect("a name")
    }

    fn told(age_ms: i64, version: &str) -> HostLook {
        HostLook::Told { age_ms, version: version.to_owned(), personas: Vec::new() }
    }

    #[test]
    fn hosts_that_are_away_or_not_authentic_are_named() {
        let own = env!("CARGO_PKG_VERSION");
        let judged = |looks: Vec<(&str, HostLook)>| {
            let looks = looks.into_iter().map(|(host, look)| (name(host), look)).collect();
            (presence(&name("desk"), &looks), versions(&name("desk"), &looks))
        };
        let (hosts, versions) = judged(vec![("desk", told(90_000, own)), ("box", told(1_000, own))]);
        assert_eq!((hosts.status.as_str(), versions.status.as_str()), ("ok", "ok"), "its own is seen by the bridge");
        let (hosts, versions) = judged(vec![("box", told(25 * 60_000, "0.0.9")), ("old", HostLook::Never)]);
        assert_eq!(hosts.said, "away: box (for 25 min), old (since it was admitted)");
        assert_eq!(versions.said, format!("another version than {own} here: box (0.0.9)"));
        let (hosts, _) = judged(vec![("desk", HostLook::NotAuthentic), ("box", HostLook::NotAuthentic)]);
        assert!(hosts.said.starts_with("not authentic: desk, box:"), "{hosts:?}");
        assert_eq!(judged(vec![("box", HostLook::Unread)]).0.status, "warn");
    }

    #[test]
    fn a_roster_counts_only_if_its_host_has_signed_it() {
        let (keys, other) = (HostKeys::generate(), HostKeys::generate());
        let home_id = HomeId(uuid::Uuid::new_v4());
        let (user_key, box_key, admitted_at) = (keys.user_key(), keys.box_key(), String::new());
        let fleet = "home".parse().expect("a name");
        let list =
            MemberList::new(fleet, 1, vec![Member { name: name("box"), home_id, user_key, box_key, admitted_at }]);
        let teller = || Teller {
            host: name("box"),
            home_id,
            instance: uuid::Uuid::new_v4(),
            machine: String::new(),
            boot: String::new(),
            started_at: String::new(),
        };
        let seen = |keys: &HostKeys, n| {
            let bytes = Roster::new(teller(), n, 0, HostSidecar::default()).sign(keys, &list.fleet);
            let rosters = vec![(name("box"), Ok(Some(StoredRoster { bytes, sequence: 1, stored_ms: 1_000 })))];
            let mut numbers: RosterNumbers =
                serde_json::from_value(serde_json::json!({ home_id.to_string(): 5 })).expect("numbers");
            read(&rosters, &list, &mut numbers, Some(4_000)).remove(&name("box")).expect("a host")
        };
        assert_eq!(seen(&keys, 5), told(3_000, env!("CARGO_PKG_VERSION")));
        assert_eq!((seen(&keys, 4), seen(&other, 6)), (HostLook::NotAuthentic, HostLook::NotAuthentic));
        let none = read(&vec![(name("box"), Ok(None))], &list, &mut RosterNumbers::default(), None);
        assert_eq!(none[&name("box")], HostLook::Never);
    }

    #[test]
    fn personas_of_one_name_that_differ_are_told_and_are_not_a_fault() {
        let persona = |slug: &str, sha256: &str| HostPersona { slug: slug.to_owned(), sha256: sha256.to_owned() };
        let (desk, other) = (name("desk"), name("box"));
        let line = judge_personas(&[
            (&desk, vec![persona("kai", "1"), persona("mia", "1")]),
            (&other, vec![persona("kai", "2"), persona("mia", "1"), persona("zoe", "3")]),
        ]);
        assert_eq!(line.said, "not the same on all hosts, and each host uses its own: kai (desk, box)");
        assert_eq!(line.status, "ok");
    }
}
