//! Leases over a server that loses answers, forgets, goes back and is scribbled on, with restarts, reboots and copies
//! of the home.

use super::*;
use proptest::prelude::*;

#[path = "lease_reboot_tests.rs"]
mod reboot;
#[path = "lease_twins_tests.rs"]
mod twins;

const STEP_MS: u64 = 500;

/// What stands at the host's name: who has put it, or a scribble.
#[derive(Debug, Clone, PartialEq)]
enum Entry {
    Nothing,
    Roster(OursSeen),
    Scribble,
}

/// The server: one name, with all that ever stood there.
struct Server {
    sequence: u64,
    entry: Entry,
    kept: Vec<Entry>,
}

impl Server {
    fn store(&mut self, entry: Entry) {
        self.sequence += 1;
        self.kept.push(self.entry.clone());
        self.entry = entry;
    }

    /// Goes back by so many changes, but not beyond a change of the machine that serves: nobody could see that.
    fn go_back(&mut self, by: usize) {
        let machine = |entry: &Entry| match entry {
            Entry::Roster(seen) => Some(seen.machine.clone()),
            Entry::Nothing | Entry::Scribble => None,
        };
        let at = self.kept.len().saturating_sub(by + 1);
        let lost = self.kept.get(at..).unwrap_or_default();
        let machines: std::collections::BTreeSet<String> =
            lost.iter().chain([&self.entry]).filter_map(machine).collect();
        if let Some(entry) = lost.first().cloned()
            && machines.len() < 2
        {
            self.kept.truncate(at);
            (self.entry, self.sequence) = (entry, at as u64);
        }
    }

    fn standing(&self) -> RosterStanding {
        match &self.entry {
            Entry::Nothing => RosterStanding::Nothing,
            Entry::Scribble => RosterStanding::NotAuthentic,
            Entry::Roster(seen) => RosterStanding::Ours(Box::new(seen.clone())),
        }
    }
}

/// A bridge, and the home that it runs on.
struct Bridge {
    lease: Lease,
    own: Own,
    number: u8,
    ended: Option<LeaseProblem>,
}

impl Bridge {
    fn start(own: Own, number: u8, now_ms: u64) -> Bridge {
        let own = Own { instance: Uuid::from_u128(number.into()), ..own };
        Bridge { lease: Lease::new(own.clone(), now_ms), own, number, ended: None }
    }

    /// Does all that the bridge has to do now. `loses`: the answers of the server are lost.
    fn run(&mut self, server: &mut Server, now_ms: u64, is_reached: bool, loses: bool) {
        for _ in 0..8 {
            let act = self.lease.poll(now_ms);
            (self.own.last_n, self.own.stored_n) = (self.lease.last_n(), self.lease.stored_n());
            match act {
                None => return,
                Some(LeaseAct::NoteScribble) => {}
                Some(LeaseAct::End(problem)) => self.ended = Some(problem),
                Some(LeaseAct::Look | LeaseAct::Put { .. }) if !is_reached => self.lease.failed(now_ms),
                Some(LeaseAct::Look) if loses => self.lease.failed(now_ms),
                Some(LeaseAct::Look) => self.lease.looked(&server.standing(), server.sequence, now_ms),
                Some(LeaseAct::Put { n, expected, serves }) => self.put(server, (n, expected, serves), now_ms, loses),
            }
        }
        panic!("it is never done");
    }

    fn put(&mut self, server: &mut Server, (n, expected, serves): (u64, u64, bool), now_ms: u64, loses: bool) {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&n.to_le_bytes());
        digest[8] = self.number;
        self.lease.sent(n, digest);
        let Own { machine, boot, instance, journal_seq, .. } = self.own.clone();
        let seen = OursSeen {
            machine,
            boot,
            instance,
            n,
            serves,
            journal_seq,
            started_at: format!("{}", self.number),
            digest,
        };
        let is_stored = server.sequence == expected;
        if is_stored {
            server.store(Entry::Roster(seen));
        }
        match (loses, is_stored) {
            (true, _) => self.lease.failed(now_ms),
            (false, true) => self.lease.stored(n, server.sequence, now_ms),
            (false, false) => self.lease.looked(&server.standing(), server.sequence, now_ms),
        }
    }
}

fn own() -> Own {
    Own {
        machine: "m1".to_owned(),
        boot: "b1".to_owned(),
        instance: Uuid::nil(),
        journal_seq: 10,
        last_n: 0,
        stored_n: 0,
        was_moved: false,
    }
}

fn server() -> Server {
    Server { sequence: 0, entry: Entry::Nothing, kept: Vec::new() }
}

/// Runs a bridge alone for so long.
fn alone(bridge: &mut Bridge, server: &mut Server, from_ms: u64, for_ms: u64) -> u64 {
    let end = from_ms + for_ms;
    (from_ms..end).step_by(500).for_each(|now| bridge.run(server, now, true, false));
    end
}

#[test]
fn the_first_bridge_serves_at_once_and_a_restarted_one_too() {
    let mut server = server();
    let mut bridge = Bridge::start(own(), 1, 0);
    bridge.run(&mut server, 0, true, false);
    assert!(bridge.lease.is_valid_for(5_000, 0));
    let mut again = Bridge::start(bridge.own.clone(), 2, 1_000);
    again.run(&mut server, 1_000, true, false);
    assert!(again.lease.is_valid_for(5_000, 1_000), "the same boot, and the lock proves that the first is gone");
}

#[test]
fn a_bridge_that_was_killed_while_it_put_its_roster_serves_at_once_when_it_starts_again() {
    let mut server = server();
    let mut bridge = Bridge::start(own(), 1, 0);
    let now = alone(&mut bridge, &mut server, 0, 20_000) + PUT_EVERY_MS;
    // The number is given and kept; the put never arrives.
    let before = bridge.own.last_n;
    bridge.run(&mut server, now, false, false);
    assert!(bridge.own.last_n > before, "it was about to put one");
    let mut again = Bridge::start(bridge.own.clone(), 2, now);
    again.run(&mut server, now, true, false);
    assert!(again.lease.is_valid_for(5_000, now));
}

#[test]
fn a_bridge_that_starts_again_over_a_server_that_has_gone_back_waits() {
    let mut server = server();
    let mut bridge = Bridge::start(own(), 1, 0);
    let now = alone(&mut bridge, &mut server, 0, 60_000);
    server.go_back(1);
    let mut again = Bridge::start(bridge.own.clone(), 2, now);
    let end = alone(&mut again, &mut server, now, UNCHANGED_MS - 5_000);
    assert!(!again.lease.is_valid_for(0, end), "a copy's roster may have stood there");
    let end = alone(&mut again, &mut server, end, 20_000);
    assert!(again.lease.is_valid_for(0, end));
}

/// The last put of a bridge that was killed may still be on its way when the next one looks; and one of three servers
/// may show the roster before it.
#[test]
fn a_late_put_of_the_bridge_before_is_not_another_host() {
    let mut server = server();
    let mut first = Bridge::start(own(), 1, 0);
    let now = alone(&mut first, &mut server, 0, 20_000);
    let (before, sequence) = (server.standing(), server.sequence);
    // The put goes out, and the bridge is killed before any answer comes.
    alone(&mut first, &mut server, now, 15_000);
    assert!(server.sequence > sequence, "there was another one");
    let mut second = Bridge::start(first.own.clone(), 2, now + 15_000);
    assert_eq!(second.lease.poll(now + 15_000), Some(LeaseAct::Look));
    second.lease.looked(&before, sequence, now + 15_000);
    alone(&mut second, &mut server, now + 15_000, UNCHANGED_MS + 10_000);
    assert_eq!(second.ended, None);
    assert!(second.lease.is_valid_for(0, now + 15_000 + UNCHANGED_MS + 10_000));
}

#[test]
fn without_an_answer_the_lease_ends_and_nothing_is_served_after_it() {
    let mut server = server();
    let mut bridge = Bridge::start(own(), 1, 0);
    let now = alone(&mut bridge, &mut server, 0, 30_000);
    for later in (now..now + 60_000).step_by(500) {
        bridge.run(&mut server, later, false, false);
        let may = bridge.lease.is_valid_for(0, later);
        assert!(may || later >= now, "{later}");
        assert!(!may || later < now + VALID_MS, "{later}");
    }
    bridge.run(&mut server, now + 70_000, true, false);
    assert!(bridge.lease.is_valid_for(0, now + 70_000), "the server is back");
}

#[test]
fn a_copy_a_second_bridge_and_an_older_home_end_and_the_first_continues() {
    type Change = fn(Own) -> Own;
    type Expected = fn(&LeaseProblem) -> bool;
    let cases: [(Change, Expected); 3] = [
        (|own| Own { machine: "m2".to_owned(), ..own }, |problem| matches!(problem, LeaseProblem::HomeCopied(_))),
        (|own| Own { boot: "b2".to_owned(), ..own }, |problem| matches!(problem, LeaseProblem::HostTaken(_))),
        (|own| Own { journal_seq: 3, ..own }, |problem| matches!(problem, LeaseProblem::HomeRolledBack(_))),
    ];
    for (change, expected) in cases {
        let mut server = server();
        let mut first = Bridge::start(own(), 1, 0);
        let now = alone(&mut first, &mut server, 0, 5_000);
        let mut second = Bridge::start(change(first.own.clone()), 2, now);
        for now in (now..now + 120_000).step_by(500) {
            first.run(&mut server, now, true, false);
            second.run(&mut server, now, true, false);
            assert!(!second.lease.is_valid_for(0, now));
            assert!(first.lease.is_valid_for(0, now) && first.ended.is_none());
        }
        let problem = second.ended.expect("it ends");
        assert!(expected(&problem), "{problem:?}");
    }
}

#[test]
fn a_home_that_was_moved_serves_once_the_old_one_is_silent() {
    let mut server = server();
    let mut first = Bridge::start(own(), 1, 0);
    let now = alone(&mut first, &mut server, 0, 5_000);
    let moved = Own { machine: "m2".to_owned(), was_moved: true, ..first.own.clone() };
    let mut second = Bridge::start(moved, 2, now);
    let now = alone(&mut second, &mut server, now, UNCHANGED_MS + 10_000);
    assert!(second.lease.is_valid_for(0, now) && second.ended.is_none());
    first.run(&mut server, now, true, false);
    assert!(matches!(first.ended, Some(LeaseProblem::HostTaken(_))), "{:?}", first.ended);
}

/// A store that was deleted counts from the beginning again. So what stands there may reach the sequence that a bridge
/// without answers still expects.
#[test]
fn after_its_lease_a_bridge_looks_before_it_puts() {
    let mut server = server();
    let mut first = Bridge::start(own(), 1, 0);
    let now = alone(&mut first, &mut server, 0, 90_000);
    server = self::server();
    let copy = Own { machine: "m2".to_owned(), ..first.own.clone() };
    let mut second = Bridge::start(copy, 2, now);
    for now in (now..now + 200_000).step_by(500) {
        second.run(&mut server, now, true, false);
        first.run(&mut server, now, true, now < 181_000);
        let serve = [&first, &second].map(|bridge| bridge.lease.is_valid_for(0, now));
        assert!(serve != [true, true], "both serve at {now}");
    }
    assert!(first.ended.is_some() && second.ended.is_none());
}

#[test]
fn who_scribbles_on_the_name_every_second_does_not_stop_a_bridge() {
    let mut server = server();
    let mut bridge = Bridge::start(own(), 1, 0);
    let now = alone(&mut bridge, &mut server, 0, 5_000);
    for now in (now..now + 300_000).step_by(500) {
        if now % 1_000 == 0 {
            server.store(Entry::Scribble);
        }
        bridge.run(&mut server, now, true, false);
        assert!(bridge.lease.is_valid_for(0, now) && bridge.ended.is_none(), "at {now}");
    }
}

/// What happens in one step of a life.
#[derive(Debug, Clone)]
enum Happens {
    Nothing,
    Restart,
    Reboot,
    Copy,
    Old,
    Scribble,
    Emptied,
    WentBack(usize),
    Unreached(u8),
    Loses(u8),
    Later(u16),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => Just(Happens::Nothing),
        2 => Just(Happens::Restart),
        1 => Just(Happens::Reboot),
        1 => Just(Happens::Copy),
        1 => Just(Happens::Old),
        1 => Just(Happens::Scribble),
        1 => Just(Happens::Emptied),
        1 => (0_usize..50).prop_map(Happens::WentBack),
        2 => any::<u8>().prop_map(Happens::Unreached),
        2 => any::<u8>().prop_map(Happens::Loses),
        6 => (0_u16..200).prop_map(Happens::Later),
    ]
}

/// A life: the original home, which may be restarted and rebooted, and copies of it, all over one server.
fn live(story: &[Happens]) -> Result<(), TestCaseError> {
    let (mut server, mut now_ms, mut number) = (server(), 0, 0_u8);
    let mut bridges = vec![Bridge::start(own(), number, now_ms)];
    let (mut unreached, mut loses) = (0_u8, 0_u8);
    for happens in story {
        let mut steps = 4;
        number = number.wrapping_add(1);
        let first = bridges[0].own.clone();
        // As long as a home has never served, a copy of it can't be told from it.
        let can_be_copied = first.last_n > 0;
        match happens {
            Happens::Copy | Happens::Old if !can_be_copied => {}
            Happens::Nothing => {}
            Happens::Restart => bridges[0] = Bridge::start(first, number, now_ms),
            Happens::Reboot => bridges[0] = Bridge::start(Own { boot: format!("b{number}"), ..first }, number, now_ms),
            Happens::Copy => {
                bridges.push(Bridge::start(Own { machine: format!("m{number}"), ..first }, number, now_ms))
            }
            Happens::Old => bridges.push(Bridge::start(
                Own {
                    journal_seq: first.journal_seq.saturating_sub(5),
                    last_n: (first.last_n / 2).max(1),
                    stored_n: first.stored_n / 2,
                    machine: format!("m{number}"),
                    ..first
                },
                number,
                now_ms,
            )),
            Happens::Scribble => server.store(Entry::Scribble),
            Happens::Emptied => server = self::server(),
            Happens::WentBack(by) => server.go_back(*by),
            Happens::Unreached(bits) => unreached = *bits,
            Happens::Loses(bits) => loses = *bits,
            Happens::Later(more) => steps = *more,
        }
        for _ in 0..steps {
            now_ms += STEP_MS;
            for (at, bridge) in bridges.iter_mut().enumerate() {
                let is_it = |bits: u8| bits >> (at % 8) & 1 == 1 && !(now_ms / STEP_MS).is_multiple_of(3);
                bridge.run(&mut server, now_ms, !is_it(unreached), is_it(loses));
            }
            bridges[0].own.journal_seq += 1;
            let serving: Vec<usize> =
                (0..bridges.len()).filter(|at| bridges[*at].lease.is_valid_for(0, now_ms)).collect();
            prop_assert!(serving.len() <= 1, "at {now_ms} these serve: {serving:?}");
        }
        // The operator ends copies that have ended by themselves, and starts the original again.
        let is_over = bridges[0].ended.is_some();
        bridges = bridges
            .into_iter()
            .enumerate()
            .filter(|(at, bridge)| *at == 0 || bridge.ended.is_none())
            .map(|(_, bridge)| bridge)
            .take(4)
            .collect();
        if is_over {
            number = number.wrapping_add(1);
            let own = bridges[0].own.clone();
            bridges[0] = Bridge::start(own, number, now_ms);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn two_never_serve_at_once(story in proptest::collection::vec(happens(), 1..60)) {
        live(&story)?;
    }
}
