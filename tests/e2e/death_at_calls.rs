//! Death at every system call that writes: the real program is killed at its n-th call of each kind, n = 1, 2, 3 …
//! until it gets through, over a first start, the intake of requests that need no agent, and over a whole handoff. Then
//! it is started again, often to die once more, and what it has promised is compared with what is there.

use super::support::intake::{self, ASKED, all_answered, check_intake, drop_all, results};
use super::support::random::Random;
use super::support::stage::{PATIENCE, Stage};
use super::support::stage_files::read_json;
use super::support::strace::{self, Injection, was_killed};
use super::support::tally::{self, is_long};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

/// Calls by which commits reach the disk, and about how many of each an intake makes.
const COMMITTING: [(&str, u64); 5] =
    [("pwrite64", 72), ("fdatasync", 28), ("ftruncate", 6), ("fsync", 5), ("syncfs", 5)];
/// Calls by which everything else reaches the disk, and tmux. Between a call that is not named here and the next one
/// nothing changes on the disk.
const WRITING: [(&str, u64); 9] = [
    ("write", 23),
    ("openat", 123),
    ("renameat", 13),
    ("renameat2", 5),
    ("rename", 4),
    ("unlinkat", 4),
    ("mkdirat", 16),
    ("mkdir", 10),
    ("sendto", 7),
];
/// The same over a handoff, with more of each.
const HANDOFF: [(&str, u64); 8] = [
    ("pwrite64", 290),
    ("fdatasync", 57),
    ("write", 115),
    ("openat", 190),
    ("renameat", 60),
    ("mkdirat", 13),
    ("sendto", 63),
    ("syncfs", 3),
];
/// Instants in the gate: over an intake, over a handoff.
const INSTANTS: (usize, usize) = (14, 5);
/// Lives that the long suite plays at the same time: each is mostly waiting.
const LANES: u64 = 4;
/// Where the long suite stops counting: so many calls of a kind no life has.
const MOST: u64 = 2_000;
/// Limits that end a handoff in doubt soon enough.
const LIMITS: &str = "[limits]\ninstructing = \"8s\"\nwriting = \"20s\"\nending = \"10s\"\nstarting = \"20s\"\npriming = \"12s\"\nbriefing = \"8s\"\n";

/// Starts the sidecar, which may be to die once more, until it runs.
fn recover(stage: &Stage, random: &mut Random) -> u64 {
    let mut deaths = 0;
    if random.below(2) == 0 {
        let (call, most) = *random.one_of(&[("pwrite64", 90), ("fdatasync", 16), ("renameat", 12), ("write", 40)]);
        stage.spawn_under_strace(&Injection::death(call, 1 + random.below(most)));
        let until = Instant::now() + std::time::Duration::from_millis(150 + random.below(500));
        while stage.ended().is_none_or(|status| !was_killed(status)) {
            if Instant::now() > until {
                stage.end_sidecar(Signal::SIGKILL);
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        deaths = 1;
    }
    stage.until_left();
    stage.start_sidecar();
    deaths
}

/// A life in a new home, up to the answers of a few requests. Says whether the sidecar came to the call, and how often
/// it died.
fn intake(stage: &Stage, injection: &Injection, random: &mut Random) -> (bool, u64) {
    stage.fresh_home("");
    let waiting = injection.when.is_multiple_of(2);
    if waiting {
        intake::drop_before_the_start(stage);
    }
    stage.spawn_under_strace(injection);
    let mut dropped = waiting;
    let ended = stage.ended_or("answering", || {
        if !dropped && stage.home().join("view/sidecar.json").exists() {
            drop_all(stage);
            dropped = true;
        }
        dropped && all_answered(stage) && stage.names("events").is_empty()
    });
    // An end in good order writes too.
    let ended = ended.unwrap_or_else(|| stage.end_sidecar(Signal::SIGTERM));
    let died = was_killed(ended);
    assert!(died || ended.success(), "{injection:?}: {ended}\n{}\n{}", stage.trace(), stage.story());
    let promised = results(stage);
    let deaths = recover(stage, random) + u64::from(died);
    if !dropped {
        drop_all(stage);
    }
    check_intake(stage, &promised, &format!("{injection:?}"));
    stage.end_sidecar(Signal::SIGKILL);
    (died, deaths)
}

/// How a life is played: whether the sidecar came to the call, and how often it died.
type Life<'a> = dyn FnMut(&Injection, &mut Random) -> (bool, u64) + 'a;

/// Plays a life for every call of these kinds, n = 1, 2, 3 … until one is not reached; in the gate for a few of them
/// only. `stages` makes what a lane of lives is played on.
fn every_call<S>(
    calls: &[(&'static str, u64)],
    few: usize,
    stages: impl Fn() -> S + Sync,
    life: impl Fn(&mut S, &Injection, &mut Random) -> (bool, u64) + Sync,
) {
    let mut random = Random::from_env();
    let began = Instant::now();
    let (instants, deaths) = if is_long() {
        let seeds: Vec<u64> = (0..LANES).map(|_| random.below(u64::MAX)).collect();
        std::thread::scope(|scope| {
            let lane = |(first, seed): (u64, u64)| {
                let (stages, life) = (&stages, &life);
                scope.spawn(move || {
                    let (mut stage, mut random) = (stages(), Random::of(seed));
                    lane(calls, first, &mut random, &mut |injection, random| life(&mut stage, injection, random))
                })
            };
            let lanes: Vec<_> = (1..).zip(seeds).map(lane).collect();
            let counts = lanes.into_iter().map(|lane| lane.join().expect("no lane fails"));
            counts.fold((0, 0), |sum, lane| (sum.0 + lane.0, sum.1 + lane.1))
        })
    } else {
        let mut stage = stages();
        let mut deaths = 0;
        for _ in 0..few {
            let (call, most) = *random.one_of(calls);
            let injection = Injection::death(call, 1 + random.below(most));
            println!("{call} {}", injection.when);
            deaths += life(&mut stage, &injection, &mut random).1;
        }
        (few as u64, deaths)
    };
    println!("seed {}: {instants} lives, {deaths} deaths, {:?}", random.seed, began.elapsed());
    tally::add(tally::DEATHS, deaths);
    tally::none_lost_none_twice("lives", &[], &[]);
}

/// Every [`LANES`]-th call of each kind, from the first one given.
fn lane(calls: &[(&'static str, u64)], first: u64, random: &mut Random, life: &mut Life<'_>) -> (u64, u64) {
    let (began, budget) = (Instant::now(), tally::budget());
    let (mut instants, mut deaths) = (0, 0);
    // Each begins with another call, so that a short time leaves none out altogether.
    let skipped = usize::try_from(first).expect("small");
    for (call, most) in calls.iter().cycle().skip(skipped).take(calls.len()) {
        let mut when = first;
        while when < MOST {
            if began.elapsed() > budget {
                let left = most.saturating_sub(when) / LANES;
                tally::add("skipped: instants of death for which the time did not suffice", left);
                break;
            }
            let (reached, died) = life(&Injection::death(call, when), random);
            (instants, deaths) = (instants + 1, deaths + died);
            if !reached {
                break;
            }
            when += LANES;
        }
        println!("{call} from {first}: up to {when}, {:?}", began.elapsed());
    }
    (instants, deaths)
}

fn intakes(calls: &[(&'static str, u64)]) {
    if !strace::is_there() {
        return;
    }
    every_call(
        calls,
        INSTANTS.0,
        || Stage::without_sidecar(""),
        |stage, injection, random| {
            tally::add(tally::REQUESTS, ASKED.len() as u64 + 1);
            intake(stage, injection, random)
        },
    );
}

#[test]
fn death_at_every_call_of_a_commit_loses_no_request() {
    intakes(&COMMITTING);
}

#[test]
fn death_at_every_other_call_that_writes_loses_no_request() {
    intakes(&WRITING);
}

/// A stage on which handoffs follow each other.
struct Chain {
    stage: Stage,
    agent: String,
    handoffs: u32,
    in_doubt: u32,
}

/// Handoffs that one stage carries before it is built anew.
const HANDOFFS_OF_A_STAGE: u32 = 25;

impl Chain {
    fn new() -> Chain {
        let stage = Stage::with_config(LIMITS);
        let agent = stage.agent("dev");
        stage.end_sidecar(Signal::SIGTERM);
        Chain { stage, agent, handoffs: 0, in_doubt: 0 }
    }

    /// One handoff in which the sidecar dies at that call.
    fn life(&mut self, injection: &Injection, random: &mut Random) -> (bool, u64) {
        if self.handoffs == HANDOFFS_OF_A_STAGE {
            *self = Chain::new();
        }
        self.handoffs += 1;
        let stage = &self.stage;
        let request = stage.send(&json!({"kind": "handoff", "agent_id": self.agent, "reason": "context_limit"}));
        let result = stage.spool("results").join(format!("{request}.json"));
        stage.spawn_under_strace(injection);
        let ended = stage.ended_or("done", || stage.handoff_has_ended(&result));
        let ended = ended.unwrap_or_else(|| stage.end_sidecar(Signal::SIGTERM));
        let died = was_killed(ended);
        assert!(died || ended.success(), "{injection:?}: {ended}\n{}\n{}", stage.trace(), stage.story());
        let promised = read_json(&result);
        let deaths = recover(stage, random) + u64::from(died);
        let answer = stage.result(&request);
        assert!(promised.is_none_or(|promised| promised == answer), "{injection:?}: the answer is another one");
        let id = answer["result"]["handoff_id"].as_str();
        let id = id.unwrap_or_else(|| panic!("{injection:?}: {answer}\n{}", stage.story()));
        let view = stage.until_ended(id);
        stage.check_crashed(&view);
        println!("{injection:?}: {deaths} deaths, {} {}", view["step"], view["error"]["code"]);
        if view["step"] != "done" {
            // Only a text of which nobody can know is a reason to stop, and that is rare.
            assert_eq!(view["error"]["code"], "unconfirmed", "{injection:?}: {view:#}\n{}", stage.story());
            self.in_doubt += 1;
            assert!(self.in_doubt <= 1 + self.handoffs / 4, "{} of {} in doubt", self.in_doubt, self.handoffs);
        }
        self.agent = self.next_agent(&view);
        self.stage.end_sidecar(Signal::SIGTERM);
        (died, deaths)
    }

    /// The agent that is handed off next: the successor, or a new one where a person would have to decide.
    fn next_agent(&self, view: &Value) -> String {
        if view["step"] == "done" {
            let successor = view["successor_id"].as_str().expect("an id").to_owned();
            self.stage.until_idle(&successor);
            return successor;
        }
        self.stage.granted(&json!({"kind": "handoff_abandon", "handoff_id": view["handoff_id"]}));
        self.stage.agent("dev")
    }
}

fn handoffs(calls: &[(&'static str, u64)], of_tmux: bool) {
    if !strace::is_there() {
        return;
    }
    every_call(calls, INSTANTS.1, Chain::new, |chain, injection, random| {
        tally::add(tally::REQUESTS, 1);
        tally::add(tally::TEXTS, 3);
        let paths = if of_tmux { vec![PathBuf::from("/dev/ptmx")] } else { Vec::new() };
        chain.life(&Injection { paths, ..injection.clone() }, random)
    });
}

#[test]
fn death_at_every_call_of_a_handoff_types_nothing_twice() {
    let long = if is_long() { &HANDOFF[..1] } else { &HANDOFF[..] };
    handoffs(long, false);
}

#[test]
fn death_at_every_other_call_of_a_handoff_types_nothing_twice() {
    if is_long() {
        handoffs(&HANDOFF[1..], false);
    }
}

#[test]
fn death_at_every_word_to_tmux_types_nothing_twice() {
    handoffs(&[("write", 100)], true);
}

#[test]
fn a_hook_that_dies_leaves_a_whole_event_or_none() {
    if !strace::is_there() {
        return;
    }
    let stage = Stage::with_config("");
    stage.end_sidecar(Signal::SIGTERM);
    let mut instants = 0;
    for call in ["openat", "write", "renameat", "renameat2", "linkat", "mkdirat"] {
        for when in 1..MOST {
            let ended = hook(&stage, &Injection::death(call, when));
            let events = stage.names("events");
            assert!(events.len() <= 1, "{events:?}");
            for name in events {
                let event = read_json(&stage.spool("events").join(&name)).expect("whole");
                assert_eq!(event["payload"]["session_id"], "s-1", "{event}");
                fs::remove_file(stage.spool("events").join(name)).expect("it is there");
            }
            if !was_killed(ended) {
                assert!(ended.success(), "a hook always exits 0");
                break;
            }
            instants += 1;
        }
    }
    assert!(instants > 10, "{instants}");
    tally::add(tally::DEATHS, instants);
}

/// Runs a hook that dies at that call.
fn hook(stage: &Stage, injection: &Injection) -> std::process::ExitStatus {
    use std::io::Write;
    let mut command = std::process::Command::new("strace");
    let inject = format!("inject={}:{}:when={}", injection.call, injection.what, injection.when);
    command.args(["-qq", "-o", "/dev/null", "-e", &format!("trace={}", injection.call), "-e", &inject]);
    command.arg(env!("CARGO_BIN_EXE_tasuki")).arg("--home").arg(stage.home()).args(["hook", "demo"]);
    Stage::make_own(&mut command);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().expect("strace starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // Whoever died early reads nothing.
    let _ = stdin.write_all(br#"{"hook_event_name":"Stop","session_id":"s-1"}"#);
    drop(stdin);
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return status;
        }
        assert!(Instant::now() < until, "a hook hangs");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}
