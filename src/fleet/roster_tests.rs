//! Rosters, and what servers and other members do to them.

use super::super::keys::FleetKeys;
use super::super::members::Member;
use super::*;
use crate::contract::fleet::SidecarWord;

fn fleet() -> FleetName {
    "home".parse().expect("a name")
}

fn name(text: &str) -> HostName {
    text.parse().expect("a name")
}

fn member(host: &str, keys: &HostKeys) -> Member {
    Member {
        name: name(host),
        home_id: HomeId(Uuid::new_v4()),
        user_key: keys.user_key(),
        box_key: keys.box_key(),
        admitted_at: "2026-11-25T12:00:00.000Z".to_owned(),
    }
}

fn roster(member: &Member, n: u64) -> Roster {
    let teller = Teller {
        host: member.name.clone(),
        home_id: member.home_id,
        instance: Uuid::new_v4(),
        machine: "m".to_owned(),
        boot: "b".to_owned(),
        started_at: "2026-11-25T12:00:00.000Z".to_owned(),
    };
    let sidecar = HostSidecar { state: SidecarWord::Runs.into(), since: "2026-11-25T12:00:00.000Z".to_owned() };
    Roster::new(teller, n, 7, sidecar)
}

fn handoff(number: usize) -> HostHandoff {
    HostHandoff {
        handoff_id: Uuid::new_v4().to_string(),
        agent_id: Uuid::new_v4().to_string(),
        persona: Some(format!("persona-{number}")),
        step: "done".to_owned(),
        since: "2026-11-25T12:00:00.000Z".to_owned(),
        from: None,
        to: None,
        error: None,
    }
}

#[test]
fn a_host_is_believed_about_itself_and_nobody_else_is() {
    let (a, m) = (HostKeys::generate(), HostKeys::generate());
    let (alpha, mallory) = (member("a", &a), member("m", &m));
    let members = MemberList::new(fleet(), 1, vec![alpha.clone(), mallory.clone()]);
    let mut numbers = RosterNumbers::default();
    let own = roster(&alpha, 4).sign(&a, &fleet());
    let Seen::Roster(seen) = numbers.read(&own, &name("a"), &members) else { panic!("its own is authentic") };
    assert_eq!((seen.n, seen.journal_seq), (4, 7));
    // Another member writes to the place of the first: its own roster, or a roster in the other's name.
    for forged in [roster(&mallory, 9).sign(&m, &fleet()), roster(&alpha, 9).sign(&m, &fleet()), b"junk".to_vec()] {
        assert_eq!(numbers.read(&forged, &name("a"), &members), Seen::NotAuthentic);
    }
    // It signs, at its own place, that it is the other one's home.
    let lying = Roster { home_id: alpha.home_id, ..roster(&mallory, 9) }.sign(&m, &fleet());
    assert_eq!(numbers.read(&lying, &name("m"), &members), Seen::NotAuthentic);
    assert!(matches!(numbers.read(&own, &name("a"), &members), Seen::Roster(_)), "the same may be read again");
}

#[test]
fn an_old_roster_never_counts_again() {
    let a = HostKeys::generate();
    let alpha = member("a", &a);
    let members = MemberList::new(fleet(), 1, vec![alpha.clone()]);
    let mut numbers = RosterNumbers::default();
    let (old, new) = (roster(&alpha, 4).sign(&a, &fleet()), roster(&alpha, 5).sign(&a, &fleet()));
    assert!(matches!(numbers.read(&new, &name("a"), &members), Seen::Roster(_)));
    assert_eq!(numbers.read(&old, &name("a"), &members), Seen::NotAuthentic);
    // An expelled host, and a home that was set up again under the old name.
    assert_eq!(numbers.read(&new, &name("a"), &MemberList::new(fleet(), 2, Vec::new())), Seen::NotAuthentic);
    let reborn = HostKeys::generate();
    let again = MemberList::new(fleet(), 3, vec![member("a", &reborn)]);
    assert_eq!(numbers.read(&new, &name("a"), &again), Seen::NotAuthentic);
    numbers.keep_only(&again);
    assert_eq!(numbers, RosterNumbers::default());
}

#[test]
fn a_roster_counts_in_its_own_fleet_alone() {
    let (a, owner) = (HostKeys::generate(), FleetKeys::generate());
    let alpha = member("a", &a);
    let whole = roster(&alpha, 1).sign(&a, &"other".parse().expect("a name"));
    assert!(Roster::open(&whole, &alpha.user_key, &fleet(), &name("a")).is_err());
    let list = MemberList::new(fleet(), 1, vec![alpha.clone()]).sign(&owner);
    assert!(Roster::open(&list, &alpha.user_key, &fleet(), &name("a")).is_err(), "a list can't be read as a roster");
}

/// Text that can't be compressed.
fn noise() -> String {
    (0..20).map(|_| Uuid::new_v4().simple().to_string()).collect()
}

#[test]
fn what_is_too_much_is_left_out_and_counted() {
    let a = HostKeys::generate();
    let alpha = member("a", &a);
    // Not even the first 1,000 all have room, because they hold long texts that can't be compressed.
    let long = |number| HostHandoff { error: Some(noise()), ..handoff(number) };
    let full = Roster { handoffs: (0..20_000).map(long).collect(), ..roster(&alpha, 1) };
    let whole = full.sign(&a, &fleet());
    assert!(whole.len() <= MAX_ROSTER, "{}", whole.len());
    let read = Roster::open(&whole, &alpha.user_key, &fleet(), &name("a")).expect("its own");
    assert_eq!(read.handoffs.len() as u64 + read.more, 20_000);
    assert!((100..MOST_ENTRIES).contains(&read.handoffs.len()), "{}", read.handoffs.len());
    let many = Roster { errors: vec![HostError::default(); 1_200], ..roster(&alpha, 1) }.sign(&a, &fleet());
    let read_many = Roster::open(&many, &alpha.user_key, &fleet(), &name("a")).expect("its own");
    assert_eq!((read_many.errors.len(), read_many.more), (MOST_ENTRIES, 200));
    let persona = |entry: &HostHandoff| entry.persona.clone();
    assert_eq!(read.handoffs.first().and_then(persona), Some("persona-0".to_owned()), "the first ones stay");
}

/// A member can name a million empty agents in some kilobytes; they must not be read.
#[test]
fn a_roster_with_more_entries_than_any_host_has_is_not_believed() {
    let (keys, fleet, name) = (HostKeys::generate(), fleet(), name("m"));
    let mallory = member("m", &keys);
    for (count, is_believed) in [(MOST_ENTRIES, true), (MOST_ENTRIES + 1, false)] {
        let roster = Roster { agents: vec![HostAgent::default(); count], ..roster(&mallory, 1) };
        let whole = signed::by_host(&keys, &fleet, &name, &roster);
        assert_eq!(Roster::open(&whole, &keys.user_key(), &fleet, &name).is_ok(), is_believed, "{count}");
    }
}
