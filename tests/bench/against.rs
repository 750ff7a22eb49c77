//! This build beside another one of the program, such as the last release's: the same figures of both, in turns. What
//! would need the other build's own state file is left out, so a build of any age with the same contract will do.

use crate::Length;
use crate::commands;
use crate::drops::{Arrivals, round_trip};
use crate::flood;
use crate::handoff::Relay;
use crate::hook;
use crate::idle::{register_all, resident};
use crate::place::{Place, TASUKI, Worker};
use crate::rows::Figure;
use crate::sample::{Ratio, median, rounds};
use crate::start::worked_ms;
use crate::table::Row;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

figures! {
    /// The rows of `scripts/bench --against PROGRAM`: this build beside another one of the program.
    AGAINST:
    AGAINST_HOOK = "`tasuki hook`, the whole process, p50", "≤ 1.05";
    AGAINST_REQUEST_P50 = "drop of a request → result visible, p50", "≤ 1.05";
    AGAINST_REQUEST_P99 = "the same, p99", "";
    AGAINST_FLOOD = "2,500 requests by 4 writers, results for each second", "≥ 0.95";
    AGAINST_HANDOFF = "a handoff of the demo agent until its successor is briefed, p50", "≤ 1.05";
    AGAINST_AGENTS = "`tasuki agents`, 1,000 agents, the whole process, p50", "≤ 1.05";
    AGAINST_START = "start with 1,000 agents until the first answer, processor time", "≤ 1.05";
    AGAINST_MEMORY = "idle, 1,000 registered agents: resident", "≤ 1";
    AGAINST_SIZE = "size of the program", "";
}

const AGENTS: usize = 1_000;
/// Slower than this many times is worse.
const WORSE: f64 = 1.05;
const REST: Duration = Duration::from_millis(4);

/// One of the two programs, and its home.
struct Side<'a> {
    name: &'a str,
    program: &'a str,
    home: PathBuf,
}

pub(crate) fn measure(other: &str, place: &Place, length: Length) -> Vec<Row> {
    let sides = [("ours", TASUKI), ("other", other)].map(|(name, program)| {
        let home = place.home(&format!("against-{name}"));
        Side { name, program, home }
    });
    let mut rows = vec![times(AGAINST_HOOK, &hooks(&sides, length), 0.5)];
    // The events of the hooks are of no agent, and would be worked through while the requests are timed.
    for side in &sides {
        place.remove(&side.home);
        drop(tasuki::spool::Spool::open(&side.home).expect("a new home"));
    }
    let workers = sides.each_ref().map(|side| Worker::of(side.program, place, &side.home));
    let (requests, floods) = (requests(&sides, length), floods(&sides, length));
    rows.push(times(AGAINST_REQUEST_P50, &requests, 0.5));
    rows.push(times(AGAINST_REQUEST_P99, &requests, 0.99));
    rows.push(Row::rates(AGAINST_FLOOD, &floods[0], &floods[1], 0.95));
    rows.push(times(AGAINST_HANDOFF, &handoffs(&sides, place, length), 0.5));
    for side in &sides {
        register_all(&side.home, AGENTS);
    }
    rows.push(times(AGAINST_AGENTS, &lists(&sides, length), 0.5));
    // What has just been written is confirmed and tidied up at the next two ticks.
    std::thread::sleep(Duration::from_secs(14));
    let memory = workers.each_ref().map(|worker| resident(worker.pid()));
    drop(workers);
    let starts = starts(&sides, place, length);
    let [ours, rival] = starts.each_ref().map(|side| median(side));
    rows.push(Row {
        figure: AGAINST_START,
        ours: format!("{ours:.0} ms"),
        rival: format!("{rival:.0} ms"),
        ratio: Ratio::of_turns(&starts[0], &starts[1]).to_string(),
        met: ours <= rival * WORSE,
    });
    rows.push(mebibytes(AGAINST_MEMORY, memory, memory[0] <= memory[1]));
    let size =
        sides.each_ref().map(|side| fs::metadata(side.program).expect("a program").len() as f64 / f64::from(1 << 20));
    rows.push(mebibytes(AGAINST_SIZE, size, true));
    sides.iter().for_each(|side| place.remove(&side.home));
    assert!(rows.iter().map(|row| row.figure).eq(AGAINST.iter().copied()), "every figure, in its order");
    rows
}

/// Measures both sides in each round, now one first, now the other.
fn in_turns<T>(most: usize, time: Duration, mut one: impl FnMut(usize, usize) -> T) -> [Vec<T>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    for round in rounds(most, time) {
        for side in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            found[side].push(one(side, round));
        }
    }
    found
}

fn hooks(sides: &[Side<'_>; 2], length: Length) -> [Vec<Duration>; 2] {
    in_turns(length.pick(600, 200), Duration::from_secs(length.pick(30, 8)), |side, _| {
        hook::report(sides[side].program, &sides[side].home)
    })
}

fn requests(sides: &[Side<'_>; 2], length: Length) -> [Vec<Duration>; 2] {
    let results = sides.each_ref().map(|side| Arrivals::into_folder(&side.home.join("spool/results")));
    in_turns(length.pick(1_500, 300), Duration::from_secs(length.pick(60, 12)), |side, round| {
        std::thread::sleep(REST);
        round_trip(&sides[side].home, &results[side], &format!("one-{round:06}"))
    })
}

fn floods(sides: &[Side<'_>; 2], length: Length) -> [Vec<f64>; 2] {
    in_turns(length.pick(16, 4), Duration::from_secs(length.pick(120, 20)), |side, round| {
        let rate = flood::flood(&sides[side].home, round);
        std::thread::sleep(Duration::from_millis(300));
        rate
    })
}

fn handoffs(sides: &[Side<'_>; 2], place: &Place, length: Length) -> [Vec<Duration>; 2] {
    let folder = place.path("against-place");
    fs::create_dir_all(&folder).expect("a folder");
    let mut relays = sides
        .each_ref()
        .map(|side| Relay::start(side.program, place, &format!("against-handoff-{}", side.name), &folder, ""));
    let found = in_turns(length.pick(20, 5), Duration::from_secs(length.pick(240, 60)), |side, _| {
        relays[side].hand_off().0.took
    });
    relays.into_iter().for_each(|relay| relay.end(place));
    found
}

fn lists(sides: &[Side<'_>; 2], length: Length) -> [Vec<Duration>; 2] {
    in_turns(length.pick(300, 60), Duration::from_secs(length.pick(30, 8)), |side, _| {
        commands::run(sides[side].program, &sides[side].home, &["agents"])
    })
}

/// Milliseconds of processor time until a new sidecar has answered.
fn starts(sides: &[Side<'_>; 2], place: &Place, length: Length) -> [Vec<f64>; 2] {
    let results = sides.each_ref().map(|side| Arrivals::into_folder(&side.home.join("spool/results")));
    in_turns(length.pick(9, 3), Duration::from_secs(30), |side, round| {
        let worker = Worker::of(sides[side].program, place, &sides[side].home);
        round_trip(&sides[side].home, &results[side], &format!("start-{round}"));
        worked_ms(&worker)
    })
}

fn times(figure: Figure, found: &[Vec<Duration>; 2], part: f64) -> Row {
    let goal = if figure.goal.is_empty() { f64::INFINITY } else { WORSE };
    Row::times(figure, &found[0], &found[1], part, goal)
}

fn mebibytes(figure: Figure, [ours, rival]: [f64; 2], met: bool) -> Row {
    let ratio = format!("{:.2}", ours / rival);
    Row { figure, ours: format!("{ours:.1} MiB"), rival: format!("{rival:.1} MiB"), ratio, met }
}
