//! A seeded simulation over the real `decide`: a model of disk, tmux and agents, with crashes before and after each
//! commit and each act, hints that are lost, doubled or late, clocks that jump, and an operator who asks for anything
//! at any time. Each seed checks every promise in `check`.

mod acks;
mod check;
mod clocks;
mod disk;
mod exits;
mod golden;
mod options;
mod outcomes;
mod publish;
mod rng;
mod runner;
mod sidecar;
mod tmux;
mod transitions;
mod world;

use crate::support::tally;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use tasuki::core::settings::{Settings, StartSuccessor};

/// How many seeds a run tries: a few thousand in the gate, 100,000 in the long run; `TASUKI_SEED` replays one.
fn seeds() -> std::ops::Range<u64> {
    if let Some(seed) = std::env::var("TASUKI_SEED").ok().and_then(|seed| seed.parse().ok()) {
        return seed..seed + 1;
    }
    0..if tally::is_long() { 100_000 } else { 2_000 }
}

#[test]
fn every_promise_holds_over_crashes_losses_and_clock_jumps() {
    let ends = live(seeds(), &world::settings());
    if ends.len() >= 1_000 {
        let lives = || ends.iter().filter_map(|(seed, end)| Some((*seed, end.as_ref().ok()?)));
        let reached: BTreeSet<&str> = lives().flat_map(|(_, life)| &life.ways).map(String::as_str).collect();
        let ways = world::every_way();
        let missed: Vec<_> = ways.iter().filter(|way| !reached.contains(way.as_str())).collect();
        // A few thousand worlds need not come to the rarest of them; a hundred thousand do.
        let may_miss = if ends.len() >= 50_000 { 0 } else { ways.len() / 8 };
        assert!(missed.len() <= may_miss, "no world came to: {missed:?}");
        let traces: BTreeMap<u64, [u8; 32]> = lives().map(|(seed, life)| (seed, life.trace)).collect();
        golden::compare(&traces.range(..golden::LIVES).map(|(_, trace)| *trace).collect::<Vec<_>>());
        let mut transitions = transitions::Transitions::default();
        lives().filter(|(seed, _)| *seed < golden::LIVES).for_each(|(_, life)| transitions.absorb(&life.transitions));
        transitions.compare();
    }
}

/// The same, where successors start while their predecessors still run.
#[test]
fn every_promise_holds_when_successors_start_early() {
    let settings = Settings { starting: StartSuccessor::Early, ..world::settings() };
    let ends = live(seeds(), &settings);
    if ends.len() >= 1_000 {
        let early = ends.iter().filter_map(|(_, end)| end.as_ref().ok());
        let (used, ended) = early.fold((0, 0), |(used, ended), life| (used + life.early.0, ended + life.early.1));
        assert!(used > 20 && ended > 20, "{used} were used, and {ended} were started for nothing");
    }
}

/// The lives of these seeds' worlds. None of them breaks a promise.
fn live(seeds: std::ops::Range<u64>, settings: &Settings) -> Vec<(u64, Result<Life, String>)> {
    let threads = 2;
    let ends: Vec<(u64, Result<Life, String>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let seeds = seeds.clone();
                scope.spawn(move || {
                    let mine = seeds.filter(|seed| seed % threads == worker);
                    mine.map(|seed| (seed, lived(seed, settings))).collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker catches its panics")).collect()
    });
    tally::add("simulated lives", ends.len() as u64);
    let failures: Vec<&String> = ends.iter().filter_map(|(_, end)| end.as_ref().err()).take(6).collect();
    assert!(failures.is_empty(), "replay with TASUKI_SEED=<seed>:\n{failures:#?}");
    ends
}

/// What is kept of a life: the ways in which its handoffs were done, what it has written and done, and where handoffs
/// went.
struct Life {
    ways: BTreeSet<String>,
    trace: [u8; 32],
    transitions: transitions::Transitions,
    /// How many successors that were started early were used, and how many were ended again.
    early: (usize, usize),
}

/// The life of this seed's world, or what is broken in it.
fn lived(seed: u64, settings: &Settings) -> Result<Life, String> {
    let run = || {
        let mut world = world::World::new(seed, settings);
        let ran = world.run();
        if ran.is_err() && std::env::var_os("TASUKI_SEED").is_some() {
            world.tell();
        }
        let early = world.early_successors();
        let (ways, trace, transitions) = (world.ways(), world.disk.trace.end(), world.disk.transitions);
        ran.map(|()| Life { ways, trace, transitions, early })
    };
    match std::panic::catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(life)) => Ok(life),
        Ok(Err(what)) => Err(format!("seed {seed}: {what}")),
        Err(_) => Err(format!("seed {seed}: panicked")),
    }
}
