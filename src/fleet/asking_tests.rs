//! Requests over a courier that loses, repeats, delays and forgets, and lies about what it has stored; with bridges
//! that are killed at any time.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

const TTL_MS: u64 = 600_000;

fn id(number: usize) -> FleetId {
    format!("r-{number}").parse().expect("an id")
}

fn asked(age_ms: u64, was_begun: bool) -> TakenRequest {
    TakenRequest { to: "b".parse().expect("a name"), to_home: HomeId(Uuid::nil()), age_ms, ttl_ms: TTL_MS, was_begun }
}

#[test]
fn a_request_is_published_at_once_and_again_until_it_is_answered() {
    let mut asking = Asking::new(7);
    asking.take(id(1), asked(0, false), 0);
    let Some(AskingStep::Publish { message, is_first: true, age_ms: 0, .. }) = asking.poll(0, true) else { panic!() };
    assert_eq!(asking.poll(0, true), None, "its confirmation is awaited");
    asking.published(&id(1), message, &Published::Stored, 100);
    let at = asking.wake_at_ms().expect("it is published again");
    assert!((24_000..37_000).contains(&at), "{at}");
    let Some(AskingStep::Publish { message: next, is_first: false, .. }) = asking.poll(at, true) else { panic!() };
    assert_ne!(message, next, "a new message: the server would drop the old one");
    assert!(asking.awaits(&id(1), &"b".parse().expect("a name"), HomeId(Uuid::nil())));
    assert!(!asking.awaits(&id(1), &"m".parse().expect("a name"), HomeId(Uuid::nil())), "another host answers nothing");
    assert!(
        !asking.awaits(&id(1), &"b".parse().expect("a name"), HomeId(Uuid::max())),
        "nor another home of that name"
    );
    let earlier = |home| asking.awaits_earlier_home(&id(1), &"b".parse().expect("a name"), home);
    assert!(earlier(HomeId(Uuid::max())) && !earlier(HomeId(Uuid::nil())), "but it can say that it is another one");
    asking.answered(&id(1));
    assert_eq!((asking.wake_at_ms(), asking.poll(u64::MAX, true)), (None, None));
}

#[test]
fn without_a_confirmation_the_same_message_comes_again_ever_later() {
    let mut asking = Asking::new(7);
    asking.take(id(1), asked(0, false), 0);
    let (mut now, mut messages, mut pauses) = (0, BTreeSet::new(), Vec::new());
    for _ in 0..12 {
        let Some(AskingStep::Publish { message, .. }) = asking.poll(now, true) else { panic!("at {now}") };
        messages.insert(message);
        asking.published(&id(1), message, &Published::Unreachable, now);
        let next = asking.wake_at_ms().expect("again");
        pauses.push(next - now);
        now = next;
    }
    assert_eq!(messages.len(), 1);
    assert!(pauses[0] < 400 && pauses[11] > 20_000 && pauses.iter().all(|pause| *pause <= 36_000), "{pauses:?}");
}

/// At which of these times the request is given up, and as what; none if it is not.
fn given_up(asking: &mut Asking, has_lease: bool, times_ms: impl IntoIterator<Item = u64>) -> Option<(u64, GivenUp)> {
    times_ms.into_iter().find_map(|now_ms| match asking.poll(now_ms, has_lease) {
        Some(AskingStep::GiveUp { why, .. }) => Some((now_ms, why)),
        _ => None,
    })
}

#[test]
fn without_a_lease_nothing_is_published_and_what_is_over_is_given_up() {
    for (was_begun, why) in [(false, GivenUp::NotSent), (true, GivenUp::NoAnswer)] {
        let mut asking = Asking::new(7);
        asking.take(id(1), asked(0, was_begun), 0);
        let looks = (0..10 * TTL_MS).step_by(5_000);
        assert_eq!(given_up(&mut asking, false, looks), Some((TTL_MS + GIVEN_UP_AFTER_MS, why)));
    }
    // The machine has slept: the lease is about to come back.
    let mut asking = Asking::new(7);
    asking.take(id(1), asked(0, true), 0);
    let looks = (0..10_000).chain(2 * TTL_MS..3 * TTL_MS).step_by(5_000);
    let at_ms = 2 * TTL_MS + LEASE_BACK_WITHIN_MS;
    assert_eq!(given_up(&mut asking, false, looks), Some((at_ms, GivenUp::NoAnswer)));
}

#[test]
fn once_the_lease_is_back_an_answer_that_lies_ready_is_fetched_before_anything_is_given_up() {
    let mut asking = Asking::new(7);
    asking.take(id(1), asked(0, true), 0);
    let Some(AskingStep::Publish { message, .. }) = asking.poll(0, true) else { panic!() };
    asking.published(&id(1), message, &Published::Stored, 0);
    assert_eq!(asking.poll(2 * TTL_MS, false), None);
    assert_eq!(asking.poll(2 * TTL_MS + 1_000, true), None);
    let at_ms = 2 * TTL_MS + 1_000 + FETCHED_WITHIN_MS;
    assert_eq!(asking.wake_at_ms(), Some(at_ms));
    assert_eq!(given_up(&mut asking, true, [at_ms - 1, at_ms]), Some((at_ms, GivenUp::NoAnswer)));
}

#[test]
fn a_request_whose_answer_could_not_be_written_is_given_up_again() {
    let mut asking = Asking::new(7);
    asking.take(id(1), asked(0, false), 0);
    asking.poll(0, true);
    let now_ms = TTL_MS + GIVEN_UP_AFTER_MS;
    let Some(AskingStep::GiveUp { id, asked, .. }) = asking.poll(now_ms, true) else { panic!() };
    assert_eq!((asking.open(), asked.age_ms), (0, now_ms));
    asking.take(id, asked, now_ms + 5_000);
    assert_eq!(given_up(&mut asking, true, [now_ms + 5_000]), Some((now_ms + 5_000, GivenUp::NoAnswer)));
}

#[test]
fn after_its_time_it_is_published_no_more() {
    let mut asking = Asking::new(7);
    asking.take(id(1), asked(TTL_MS - 1_000, true), 50_000);
    assert!(matches!(asking.poll(50_000, true), Some(AskingStep::Publish { age_ms, .. }) if age_ms == TTL_MS - 1_000));
    assert_eq!(asking.poll(60_000, true), None);
    assert_eq!(asking.wake_at_ms(), Some(50_000 + 61_000));
    // The lease comes back too late.
    let mut asking = Asking::new(7);
    asking.take(id(1), asked(0, false), 0);
    assert_eq!(asking.poll(TTL_MS + 1, true), None);
    assert_eq!(asking.wake_at_ms(), Some(TTL_MS + 60_000));
}

/// What a host has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Done,
    Expired,
    GivenUp(GivenUp),
}

/// A letter on its way.
#[derive(Debug, Clone)]
enum Flying {
    Request { id: FleetId, age_ms: u64, at_ms: u64 },
    Result { id: FleetId, answer: Answer },
}

#[derive(Debug, Default)]
struct World {
    now_ms: u64,
    starts: u64,
    asking: Asking,
    /// Files: open requests, each with the time when it was taken and whether its publishing has begun; and results.
    out: BTreeMap<FleetId, (u64, bool)>,
    results: BTreeMap<FleetId, Vec<Answer>>,
    flying: Vec<Flying>,
    seen: BTreeSet<u64>,
    /// The other host's files: what it has answered, and what it has carried out, at which time.
    there: BTreeMap<FleetId, Answer>,
    done: Vec<(FleetId, u64)>,
}

impl World {
    fn ask(&mut self, number: usize) {
        self.out.insert(id(number), (self.now_ms, false));
        self.asking.take(id(number), asked(0, false), self.now_ms);
    }

    fn kill_asking(&mut self) {
        // No other start has had these numbers.
        self.starts += 1;
        self.asking = Asking::new(self.starts << 40);
        for (id, (taken, was_begun)) in &self.out {
            self.asking.take(id.clone(), asked(self.now_ms - taken, *was_begun), self.now_ms);
        }
    }

    fn answer(&mut self, id: &FleetId, answer: Answer) {
        self.results.entry(id.clone()).or_default().push(answer);
        self.out.remove(id);
    }

    /// All that is due at the asking host. `chance`: what the server does with it.
    fn run(&mut self, chance: u8) {
        for _ in 0..50 {
            match self.asking.poll(self.now_ms, true) {
                None => return,
                Some(AskingStep::GiveUp { id, why, .. }) => self.answer(&id, Answer::GivenUp(why)),
                Some(AskingStep::Publish { id, message, age_ms, .. }) => {
                    self.out.get_mut(&id).expect("it is open").1 = true;
                    let published = match chance % 6 {
                        0 => Published::Unreachable,
                        1 => Published::Full,
                        _ => Published::Stored,
                    };
                    // Confirmed and lost, or stored and not confirmed: the server may lie both ways.
                    let is_stored = [0, 2, 3, 4].contains(&(chance % 6));
                    if is_stored && self.seen.insert(message) {
                        self.flying.push(Flying::Request { id: id.clone(), age_ms, at_ms: self.now_ms });
                    }
                    self.asking.published(&id, message, &published, self.now_ms);
                }
            }
        }
        panic!("it is never done");
    }

    /// A letter arrives; a copy of it may stay on its way.
    fn arrive(&mut self, at: usize, stays: bool) {
        if self.flying.is_empty() {
            return;
        }
        let at = at % self.flying.len();
        let letter = if stays { self.flying[at].clone() } else { self.flying.swap_remove(at) };
        match letter {
            Flying::Request { id, age_ms, at_ms } => {
                let is_late = age_ms + (self.now_ms - at_ms) > TTL_MS;
                let answer =
                    *self.there.entry(id.clone()).or_insert(if is_late { Answer::Expired } else { Answer::Done });
                if answer == Answer::Done && !self.done.iter().any(|(done, _)| *done == id) {
                    self.done.push((id.clone(), self.now_ms));
                }
                self.flying.push(Flying::Result { id, answer });
            }
            Flying::Result { id, answer } => {
                if self.asking.awaits(&id, &"b".parse().expect("a name"), HomeId(Uuid::nil())) {
                    self.answer(&id, answer);
                    self.asking.answered(&id);
                }
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Happens {
    Ask,
    Run(u8),
    Arrive(usize, bool),
    Lost(usize),
    Emptied,
    Killed,
    Later(u32),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        2 => Just(Happens::Ask),
        6 => any::<u8>().prop_map(Happens::Run),
        6 => (any::<usize>(), any::<bool>()).prop_map(|(at, stays)| Happens::Arrive(at, stays)),
        2 => any::<usize>().prop_map(Happens::Lost),
        1 => Just(Happens::Emptied),
        2 => Just(Happens::Killed),
        4 => (0_u32..100_000).prop_map(Happens::Later),
    ]
}

fn live(story: &[Happens]) -> Result<(), TestCaseError> {
    let mut world = World { asking: Asking::new(1), ..World::default() };
    let mut number = 0;
    for happens in story {
        match happens {
            Happens::Ask => {
                number += 1;
                world.ask(number);
            }
            Happens::Run(chance) => world.run(*chance),
            Happens::Arrive(at, stays) => world.arrive(*at, *stays),
            Happens::Lost(at) if !world.flying.is_empty() => {
                let at = at % world.flying.len();
                world.flying.remove(at);
            }
            Happens::Lost(_) => {}
            Happens::Emptied => {
                world.flying.clear();
                world.asking.stream_replaced(world.now_ms);
            }
            Happens::Killed => world.kill_asking(),
            Happens::Later(more) => world.now_ms += u64::from(*more),
        }
    }
    // The courier works again, for as long as it takes.
    for _ in 0..2_000 {
        if world.out.is_empty() {
            break;
        }
        world.run(3);
        (0..world.flying.len()).for_each(|at| world.arrive(at, false));
        world.now_ms = world.asking.wake_at_ms().unwrap_or(world.now_ms).max(world.now_ms + 1);
    }
    for number in 1..=number {
        let (id, results) = (id(number), world.results.get(&id(number)).cloned().unwrap_or_default());
        prop_assert_eq!(results.len(), 1, "each request has exactly one result: {} {:?}", &id, &results);
        let is_done = world.done.iter().any(|(done, _)| *done == id);
        match results[0] {
            Answer::Done => prop_assert!(is_done, "{} is said to be done", &id),
            Answer::Expired => prop_assert!(!is_done, "{} is said to be refused", &id),
            Answer::GivenUp(GivenUp::NotSent) => prop_assert!(!is_done, "{} is said to be never sent", &id),
            Answer::GivenUp(GivenUp::NoAnswer) => {}
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn each_request_has_one_result_and_it_is_true(story in proptest::collection::vec(happens(), 1..80)) {
        live(&story)?;
    }
}
