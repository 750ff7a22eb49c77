//! System calls that fail once: with an error of the disk, no room, or an interruption. The sidecar goes on, or ends and
//! says why; either way every request has one result, and nothing is typed twice.

use super::support::intake::{self, ASKED, all_answered, check_intake, results};
use super::support::random::Random;
use super::support::stage::Stage;
use super::support::stage_files::read_json;
use super::support::strace::{self, Injection};
use super::support::tally::{self, is_long};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Instant;

/// Calls, and about how many of each there are on the home's own files.
const CALLS: [(&str, u64); 11] = [
    ("pwrite64", 120),
    ("fdatasync", 24),
    ("write", 30),
    ("openat", 100),
    ("renameat", 22),
    ("renameat2", 4),
    ("mkdirat", 12),
    ("ftruncate", 5),
    ("unlinkat", 3),
    ("fsync", 2),
    ("getdents64", 20),
];
/// What the disk may say.
const ERRORS: [&str; 3] = ["error=EIO", "error=ENOSPC", "error=EINTR"];
/// How many in the gate, of an intake and of a handoff.
const FAULTS: (u32, u32) = (12, 3);
/// The same in the long suite, where the time suffices.
const LONG_FAULTS: (u32, u32) = (600, 150);

/// The files and folders of the home, so that only their calls fail: an error in the library's own pipes is none that a
/// system gives.
fn own_paths(stage: &Stage) -> Vec<PathBuf> {
    let home = stage.home();
    let folders = [
        "spool",
        "spool/tmp",
        "spool/requests",
        "spool/events",
        "spool/results",
        "spool/errors",
        "spool/rejected",
        "state",
        "state/reap",
        "view",
        "view/agents",
        "view/handoffs",
        "view/work",
    ];
    let folders = folders.iter().map(|name| home.join(name));
    let scratch: Vec<PathBuf> = folders.clone().map(|folder| folder.join(".tasuki-new")).collect();
    let files = ["spool/journal.jsonl", "state/tasuki.redb", "state/tasuki.redb.new", "state/tasuki.lock"];
    let files = files.iter().map(|name| home.join(name));
    std::iter::once(home.clone()).chain(folders).chain(scratch).chain(files).collect()
}

fn draw(stage: &Stage, random: &mut Random) -> Injection {
    let (call, most) = *random.one_of(&CALLS);
    let what = random.one_of(&ERRORS);
    Injection { call, what, paths: own_paths(stage), when: 1 + random.below(most) }
}

/// A sidecar that can't go on says so, and never by a panic.
fn check_end(stage: &Stage, injection: &Injection, status: ExitStatus) {
    let log = fs::read_to_string(stage.log_file()).unwrap_or_default();
    let said = log.lines().any(|line| line.starts_with("tasuki: "));
    let code = status.code();
    assert!(
        code == Some(0) || (said && code.is_some_and(|code| [75, 77, 78].contains(&code))),
        "{injection:?}: {status}\n{}\n{}",
        stage.trace(),
        stage.story()
    );
}

fn check_log(stage: &Stage, injection: &Injection) {
    let log = fs::read_to_string(stage.log_file()).unwrap_or_default();
    assert!(!log.contains("panicked"), "{injection:?}\n{}\n{log}", stage.trace());
    // Each life has a log of its own.
    fs::remove_file(stage.log_file()).expect("a log");
}

/// The intake of a few requests in a new home, in which one call fails. Says whether it was reached.
fn intake_with(stage: &Stage, injection: &Injection) -> bool {
    stage.fresh_home("");
    intake::drop_before_the_start(stage);
    stage.spawn_under_strace(injection);
    let ended = stage.ended_or("answering", || {
        all_answered(stage) && stage.names("events").is_empty() && stage.names("requests").is_empty()
    });
    let status = ended.unwrap_or_else(|| stage.end_sidecar(Signal::SIGTERM));
    check_end(stage, injection, status);
    check_log(stage, injection);
    let (reached, promised) = (stage.was_injected(), results(stage));
    stage.start_sidecar();
    check_intake(stage, &promised, &format!("{injection:?}"));
    stage.end_sidecar(Signal::SIGKILL);
    reached
}

#[test]
fn a_call_that_fails_loses_no_request() {
    if !strace::is_there() {
        return;
    }
    let mut random = Random::from_env();
    let stage = Stage::without_sidecar("");
    let (began, mut faults) = (Instant::now(), 0);
    let most = if is_long() { LONG_FAULTS.0 } else { FAULTS.0 };
    for _ in 0..most {
        let injection = draw(&stage, &mut random);
        println!("{} {} {}", injection.call, injection.what, injection.when);
        faults += u64::from(intake_with(&stage, &injection));
        tally::add(tally::REQUESTS, ASKED.len() as u64 + 1);
        if began.elapsed() > tally::budget() {
            break;
        }
    }
    println!("seed {}: {faults} faults, {:?}", random.seed, began.elapsed());
    tally::add(tally::FAULTS, faults);
    tally::none_lost_none_twice("requests", &[], &[]);
}

/// A handoff in which one call fails.
fn handoff_with(stage: &Stage, agent: &str, injection: &Injection) -> (bool, Value) {
    let request = stage.send(&json!({"kind": "handoff", "agent_id": agent, "reason": "context_limit"}));
    let result = stage.spool("results").join(format!("{request}.json"));
    stage.spawn_under_strace(injection);
    let ended = stage.ended_or("done", || stage.handoff_has_ended(&result));
    let status = ended.unwrap_or_else(|| stage.end_sidecar(Signal::SIGTERM));
    check_end(stage, injection, status);
    check_log(stage, injection);
    let (reached, promised) = (stage.was_injected(), read_json(&result));
    stage.start_sidecar();
    let answer = stage.result(&request);
    assert!(promised.is_none_or(|promised| promised == answer), "{injection:?}: the answer is another one");
    let id = answer["result"]["handoff_id"].as_str().expect("an id");
    let view = stage.until_ended(id);
    stage.check_crashed(&view);
    (reached, view)
}

#[test]
fn a_call_that_fails_in_a_handoff_types_nothing_twice() {
    if !strace::is_there() {
        return;
    }
    let mut random = Random::from_env();
    let stage = Stage::with_config("");
    let mut agent = stage.agent("dev");
    let (began, mut faults) = (Instant::now(), 0);
    let most = if is_long() { LONG_FAULTS.1 } else { FAULTS.1 };
    for _ in 0..most {
        stage.end_sidecar(Signal::SIGTERM);
        let injection = draw(&stage, &mut random);
        let injection = Injection { when: injection.when * 2, ..injection };
        println!("{} {} {}", injection.call, injection.what, injection.when);
        let (reached, view) = handoff_with(&stage, &agent, &injection);
        // One failed call is no reason for a handoff to fail.
        assert_eq!(view["step"], "done", "{injection:?}: {view:#}\n{}", stage.story());
        stage.check_done(&view);
        agent = view["successor_id"].as_str().expect("an id").to_owned();
        stage.until_idle(&agent);
        faults += u64::from(reached);
        tally::add(tally::REQUESTS, 1);
        tally::add(tally::TEXTS, 3);
        if began.elapsed() > tally::budget() {
            break;
        }
    }
    println!("seed {}: {faults} faults, {:?}", random.seed, began.elapsed());
    tally::add(tally::FAULTS, faults);
    tally::none_lost_none_twice("handoffs", &[], &[]);
}
