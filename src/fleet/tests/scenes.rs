//! Scenes that are too rare to happen in random lives.

use super::super::letter::What;
use super::super::rights::{Accepts, RIGHTS, may_be_asked};
use super::home::Link;
use super::seal::HOSTILE;
use super::server::{Entry, Faults};
use super::world::{World, accepts};
use crate::core::host::FleetId;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;
const A: usize = 0;
const B: usize = 1;

/// A fleet that runs, and breaks nothing by itself.
fn world() -> World {
    let mut world = World::new(7, false);
    world.advance(5_000);
    world
}

impl World {
    fn send(&mut self, ttl_ms: u64) -> FleetId {
        self.ask(A, B, "agent_send", ttl_ms)
    }

    fn result(&self, id: &FleetId) -> &str {
        self.homes[A].disk.results.get(id).map_or("none", String::as_str)
    }

    fn is_done(&self, id: &FleetId) -> bool {
        self.done.iter().any(|done| done.rid == format!("fleet.a.{id}"))
    }

    fn sleep(&mut self, for_ms: u64) {
        self.is_resting = true;
        self.advance(for_ms);
        self.is_resting = false;
    }

    fn close(mut self) {
        self.come_to_rest();
        self.check_at_rest();
        assert!(self.faults_found.is_empty(), "{:#?}\n{:#?}", self.faults_found, self.traced);
    }
}

#[test]
fn many_requests_wait_for_a_server_that_is_away_for_an_hour() {
    let mut world = world();
    world.homes.iter_mut().for_each(|home| home.link = Link::Down);
    let ids: Vec<FleetId> = (0..150).map(|_| world.send(7 * DAY_MS)).collect();
    world.sleep(HOUR_MS);
    world.homes.iter_mut().for_each(|home| home.link = Link::Up);
    world.sleep(10 * MINUTE_MS);
    assert!(ids.iter().all(|id| world.result(id).starts_with("200") && world.is_done(id)));
    world.close();
}

#[test]
fn a_letter_that_comes_again_and_days_late_is_carried_out_once() {
    let mut world = world();
    let id = world.send(7 * DAY_MS);
    world.advance(20_000);
    for days in 1..7 {
        world.sleep(DAY_MS);
        let letter = world.letters_seen[0].clone();
        let number = days + 1_000;
        let (now_ms, faults) = (world.now_ms, Faults::default());
        let again = super::server::Message { number, ..letter };
        let _ = world.server.publish(again, &faults, &mut world.rng, now_ms);
        world.advance(20_000);
    }
    assert!(world.result(&id).starts_with("200") && world.done.len() == 1);
    world.close();
}

#[test]
fn a_host_that_is_away_for_a_week_carries_out_what_may_wait_so_long_and_nothing_else() {
    let mut world = world();
    world.homes[B].link = Link::Down;
    let (short, long) = (world.send(10 * MINUTE_MS), world.send(7 * DAY_MS));
    world.sleep(6 * DAY_MS + 20 * HOUR_MS);
    world.homes[B].link = Link::Up;
    world.sleep(2 * HOUR_MS);
    assert_eq!((world.result(&short), world.is_done(&short)), ("504 no_answer", false));
    assert!(world.result(&long).starts_with("200") && world.is_done(&long));
    world.close();
}

#[test]
fn without_a_sidecar_nothing_is_dropped_and_what_is_late_is_told_in_time() {
    let mut world = world();
    world.homes[B].sidecar_runs = false;
    world.advance(11_000);
    let (short, long) = (world.send(2 * MINUTE_MS), world.send(HOUR_MS));
    world.advance(3 * MINUTE_MS);
    assert_eq!(world.result(&short), "410 expired", "told before the asking host gives up");
    world.advance(17 * MINUTE_MS);
    assert!(world.homes[B].disk.incoming.is_empty(), "nothing was dropped");
    world.homes[B].sidecar_runs = true;
    world.advance(2 * MINUTE_MS);
    assert!(world.result(&long).starts_with("200") && !world.is_done(&short));
    world.close();
}

/// The sidecar dies right after a request was dropped: it is taken back when its time is over.
#[test]
fn what_the_sidecar_has_not_read_in_time_is_taken_back() {
    let mut world = world();
    let id = world.send(MINUTE_MS);
    world.advance(0);
    assert_eq!(world.homes[B].disk.incoming.len(), 1, "it was dropped");
    world.homes[B].sidecar_runs = false;
    world.advance(MINUTE_MS + 1_500);
    world.homes[B].sidecar_runs = true;
    world.advance(3 * MINUTE_MS);
    assert_eq!((world.result(&id), world.is_done(&id)), ("504 no_answer", false));
    world.close();
}

#[test]
fn a_full_box_holds_what_it_may_and_the_rest_waits_here() {
    let mut world = world();
    world.server.box_limit = 100;
    world.homes[B].link = Link::Down;
    let ids: Vec<FleetId> = (0..130).map(|_| world.send(DAY_MS)).collect();
    world.sleep(MINUTE_MS);
    assert_eq!((world.in_box(B, What::Req), world.homes[A].disk.out.len()), (100, 130));
    world.homes[B].link = Link::Up;
    world.sleep(2 * HOUR_MS);
    assert!(ids.iter().all(|id| world.result(id).starts_with("200")));
    world.close();
}

#[test]
fn clocks_that_are_set_by_hours_make_nothing_early_or_late() {
    for hours in [-3_i64, 3, 9 * 24] {
        let mut world = world();
        world.homes[B].link = Link::Down;
        let (early, late) = (world.send(5 * MINUTE_MS + 5_000), world.send(5 * MINUTE_MS - 2_000));
        world.advance(MINUTE_MS);
        world.homes[B].wall_ahead_ms += hours * 3_600_000;
        world.advance(4 * MINUTE_MS);
        world.homes[B].link = Link::Up;
        world.advance(3 * MINUTE_MS);
        if hours < 24 {
            assert!(world.is_done(&early) && !world.is_done(&late), "{hours}");
            assert_eq!(world.result(&late), "410 expired");
        } else {
            assert_eq!(world.result(&early), "410 too_old");
            assert!(world.done.is_empty());
        }
        world.close();
    }
}

#[test]
fn a_copy_does_nothing_and_the_home_works_on() {
    for same_machine in [false, true] {
        let mut world = world();
        let first = world.send(HOUR_MS);
        world.advance(3 * MINUTE_MS);
        world.copies(B);
        if same_machine {
            let machine = world.homes[B].machine.clone();
            (world.homes[3].machine, world.homes[3].boots) = (machine, 9);
        }
        world.advance(MINUTE_MS);
        let second = world.send(HOUR_MS);
        world.advance(3 * MINUTE_MS);
        let problem = if same_machine { "host_taken" } else { "home_copied" };
        assert!(world.homes[3].problems.contains(problem) && world.homes[B].problems.is_empty());
        assert!([&first, &second].iter().all(|id| world.result(id).starts_with("200")));
        assert!(world.split.is_empty(), "the copy has done nothing");
        world.close();
    }
}

/// The bridge is stopped for longer than its lease. Meanwhile a copy is started whose operator has said that the home
/// was moved.
#[test]
fn a_stopped_bridge_ends_when_its_moved_home_serves() {
    let mut world = world();
    world.copies(B);
    world.homes[3].was_moved = true;
    world.homes[B].frozen_until_ms = world.now_ms + 70_000;
    world.advance(3 * MINUTE_MS);
    assert!(world.homes[B].problems.contains("host_taken") && world.homes[3].problems.is_empty());
    assert!(world.homes[3].serves(0, world.now_ms) && world.faults_found.is_empty(), "{:?}", world.faults_found);
}

#[test]
fn a_home_that_is_put_back_ends_and_a_new_one_carries_out_nothing_old() {
    let mut world = world();
    let yesterday = world.homes[B].disk.clone();
    world.send(HOUR_MS);
    world.advance(MINUTE_MS);
    world.homes[B].link = Link::Down;
    let old = world.send(HOUR_MS);
    world.advance(1_000);
    world.homes[B].disk = yesterday;
    world.homes[B].highest_n = 0;
    world.homes[B].bridge = None;
    world.homes[B].start_at_ms = Some(world.now_ms);
    world.homes[B].link = Link::Up;
    world.advance(20_000);
    assert!(world.homes[B].problems.contains("home_rolled_back"));
    world.homes[B].bridge = None;
    world.new_identity(B);
    world.homes[B].start_at_ms = Some(world.now_ms);
    world.advance(3 * MINUTE_MS);
    assert_eq!((world.result(&old), world.is_done(&old)), ("410 host_reborn", false));
    world.close();
}

#[test]
fn old_letters_old_lists_and_old_rosters_change_nothing() {
    let mut world = world();
    world.homes[B].link = Link::Down;
    let id = world.send(HOUR_MS);
    world.advance(20_000);
    world.homes[B].link = Link::Up;
    let (letter, list) = (world.letters_seen[0].clone(), world.server.list.clone());
    let roster = world.server.rosters[B].1.clone();
    world.server.letters.clear();
    world.homes[A].link = Link::Down;
    world.sleep(31 * DAY_MS);
    world.homes[A].link = Link::Up;
    world.change_members(|members| members.retain(|member| super::seal::place(&member.name) != HOSTILE));
    let newest = world.list.version;
    let (now_ms, n) = (world.now_ms, world.homes[B].disk.last_n);
    let again = super::server::Message { number: 1, ..letter };
    let _ = world.server.publish(again, &Faults::default(), &mut world.rng, now_ms);
    world.server.list = list;
    world.server.put(B, roster);
    world.advance(MINUTE_MS);
    assert!(world.homes[B].disk.told.values().any(|told| told == "410 too_old"));
    assert!(world.homes.iter().all(|home| home.disk.members.list().version == newest));
    let Entry::Roster(_, seen) = &world.server.rosters[B].1 else { panic!("its roster") };
    assert!(seen.n > n && world.homes[B].problems.is_empty());
    assert!(!world.is_done(&id));
    world.close();
}

#[test]
fn a_refusal_stays_one_when_the_right_is_given_between_two_deliveries() {
    let mut world = world();
    world.homes[B].accepts = Accepts::default();
    let id = world.send(HOUR_MS);
    // Its bridge is killed at each of its steps, and finds other rights.
    for point in 1..8 {
        world.kill_at = Some((B, point));
        world.advance(20_000);
        world.homes[B].accepts = accepts(B);
        world.advance(3 * MINUTE_MS);
    }
    let is_refused = world.result(&id).starts_with("403");
    assert!(is_refused != world.is_done(&id), "{}", world.result(&id));
    world.close();
}

#[test]
fn each_right_lets_its_own_kinds_through_and_no_others() {
    let all: Vec<&str> = RIGHTS.iter().flat_map(|right| right.kinds()).copied().collect();
    for right in RIGHTS {
        let mut world = world();
        world.homes[B].accepts = serde_json::from_str(&format!(r#"{{"a": ["{}"]}}"#, right.as_str())).expect("rights");
        for kind in all.iter().copied().chain(["publish", "ack", "work_import", "agent_register"]) {
            let id = world.ask(A, B, kind, HOUR_MS);
            // The field `host` of this kind names another host in this world, and its path leads outside.
            let is_right = right.kinds().contains(&kind) && kind != "handoff_offer";
            world.advance(100_000);
            let expected = match kind {
                _ if is_right => "200",
                "handoff_offer" => "400",
                _ if may_be_asked(kind) => "403",
                _ => "400",
            };
            assert_eq!(world.result(&id).get(..3), Some(expected), "{kind} by {right:?}");
        }
        world.close();
    }
}
