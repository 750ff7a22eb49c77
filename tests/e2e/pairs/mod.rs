//! Two at once: every pair of requests, hooks and human keys on one agent, on one persona, in one pane, by a seeded
//! scheduler on the real program. After each pair both requests are answered, each once; nothing was typed twice; the
//! views agree with each other; and nobody is in a state that can't be left.

mod acts;
mod check;
mod world;

use super::support::random::Random;
use super::support::tally;
use acts::{ACTS, Act};
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use world::World;

/// Pairs in the gate and in the long suite; `TASUKI_PAIRS` says another number.
const PAIRS: (u64, u64) = (24, 10_000);
/// Pairs on one stage: then it is taken down, for what its files hold is read again after each pair.
const ON_A_STAGE: u64 = 24;
/// Stages at once, in the gate and in the long suite: most of a pair's time goes by in waiting.
const STAGES: (u64, u64) = (3, 8);
/// The second of a pair comes so much later, in milliseconds, or at once.
const LATER_MS: [u64; 6] = [0, 0, 3, 30, 150, 600];

/// One pair, as its number and the seed make it.
#[derive(Debug, Clone, Copy)]
struct Pair {
    first: Act,
    second: Act,
    later_ms: u64,
    /// The second is about another agent of the same persona.
    is_about_another: bool,
}

/// Every pair comes once before any comes again.
fn pair(seed: u64, number: u64) -> Pair {
    let mut random = Random::of(seed.wrapping_mul(0x0010_0001).wrapping_add(number));
    let count = ACTS.len() as u64;
    // A stride that has no divisor in common with the number of pairs: neighbours have little in common.
    let place = number.wrapping_add(seed).wrapping_mul(101) % (count * count);
    let at = |index: u64| ACTS[usize::try_from(index).expect("it fits")];
    Pair {
        first: at(place / count),
        second: at(place % count),
        later_ms: *random.one_of(&LATER_MS),
        is_about_another: random.below(4) == 0,
    }
}

fn pairs() -> u64 {
    let given = std::env::var("TASUKI_PAIRS").ok().and_then(|text| text.parse().ok());
    given.unwrap_or(if tally::is_long() { PAIRS.1 } else { PAIRS.0 })
}

#[test]
fn whatever_comes_two_at_once_is_answered_once_typed_once_and_leaves_nobody_stuck() {
    let seed = Random::from_env().seed;
    let (all, next, done) = (pairs(), AtomicU64::new(0), AtomicU64::new(0));
    let stages = if tally::is_long() { STAGES.1 } else { STAGES.0 };
    let failures = Mutex::new(Vec::new());
    let on_a_stage = ON_A_STAGE.min(all.div_ceil(stages));
    std::thread::scope(|scope| {
        for _ in 0..stages {
            scope.spawn(|| {
                loop {
                    let from = next.fetch_add(on_a_stage, Ordering::Relaxed);
                    let to = all.min(from + on_a_stage);
                    if from >= all {
                        return;
                    }
                    let lived = std::panic::catch_unwind(AssertUnwindSafe(|| one_stage(seed, from, to, &done)));
                    if let Err(panic) = lived {
                        let said = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "it panicked".to_owned());
                        failures.lock().expect("nobody panics with it").push(said);
                    }
                }
            });
        }
    });
    let done = done.into_inner();
    tally::add("pairs at once", done);
    println!("{done} pairs with seed {seed}");
    let failures = failures.into_inner().expect("nobody panics with it");
    assert!(failures.is_empty(), "{} stages failed:\n{}", failures.len(), failures.join("\n======\n"));
}

fn one_stage(seed: u64, from: u64, to: u64, done: &AtomicU64) {
    let mut world = World::new();
    for number in from..to {
        let pair = pair(seed, number);
        world.say(format!("pair {number} of seed {seed}: {pair:?}"));
        world.run(number, pair);
        done.fetch_add(1, Ordering::Relaxed);
    }
}
