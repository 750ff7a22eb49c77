//! System calls that fail once: with an error of the disk, no room, or an interruption. The sidecar goes on, or ends
//! and says why; either way every request has one result, and nothing is typed twice.

use super::support::intake::{self, ASKED, all_answered, check_intake, results};
use super::support::random::Random;
use super::support::stage::Stage;
use super::support::stage_files::read_json;
use super::support::strace::{self, Injection};
use super::support::tally::{self, is_long};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// Calls on the folders and small files of the home.
const CALLS: [&str; 9] =
    ["write", "openat", "renameat", "renameat2", "mkdirat", "ftruncate", "unlinkat", "fsync", "getdents64"];
/// So many of each there are on one of them, at most.
const MOST: u64 = 8;
/// Calls on the state file, and about how many there are.
const STATE_CALLS: [(&str, u64); 4] = [("pwrite64", 72), ("fdatasync", 28), ("ftruncate", 6), ("openat", 3)];
/// What the disk may say.
const ERRORS: [&str; 3] = ["error=EIO", "error=ENOSPC", "error=EINTR"];
/// Faults that are always tried: each meets another guard. Call, error, which, and where below the home.
const ALWAYS: [(&str, &str, u64, &str); 6] = [
    ("write", "error=ENOSPC", 1, "spool/results"),
    ("renameat", "error=EIO", 2, "spool/results"),
    ("getdents64", "error=EIO", 1, "spool/requests"),
    ("renameat2", "error=EIO", 1, "spool/rejected"),
    ("pwrite64", "error=ENOSPC", 45, "state/tasuki.redb"),
    ("fdatasync", "error=EIO", 12, "state/tasuki.redb"),
];
/// How many more in the gate, of an intake and of a handoff.
const FAULTS: (u32, u32) = (5, 3);
/// The same in the long suite, where the time suffices.
const LONG_FAULTS: (u32, u32) = (600, 150);

/// Folders of the home whose calls fail, with the files that are written in them.
const FOLDERS: [&str; 14] = [
    "",
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

/// One call on one place of the home fails: an error in the library's own pipes is none that a system gives.
fn draw(stage: &Stage, random: &mut Random) -> Injection {
    let home = stage.home();
    let what = *random.one_of(&ERRORS);
    if random.below(3) == 0 {
        let (call, most) = *random.one_of(&STATE_CALLS);
        let paths = ["state/tasuki.redb", "state/tasuki.redb.new"].map(|name| home.join(name)).into();
        return Injection { call, what, paths, when: 1 + random.below(most) };
    }
    let folder = home.join(*random.one_of(&FOLDERS));
    let files = [".tasuki-new", "journal.jsonl", "tasuki.lock"].map(|name| folder.join(name));
    let paths = std::iter::once(folder).chain(files).collect();
    let call = *random.one_of(&CALLS);
    Injection { call, what, paths, when: 1 + random.below(MOST) }
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
    let always = ALWAYS.iter().map(|&(call, what, when, place)| Injection {
        call,
        what,
        paths: vec![stage.home().join(place), stage.home().join(place).join(".tasuki-new")],
        when,
    });
    let drawn = (0..most).map(|_| draw(&stage, &mut random));
    for injection in always.chain(drawn) {
        println!("{} {} {} {}", injection.call, injection.what, injection.when, injection.paths[0].display());
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

/// Interruptions of what we say to tmux and hear from it, each of which is met in the course of one short text.
const INTERRUPTED: [(&str, u64); 3] = [("write", 8), ("read", 12), ("poll", 20)];

#[test]
fn an_interrupted_word_to_tmux_costs_no_connection() {
    if !strace::is_there() {
        return;
    }
    let stage = Stage::with_config("");
    let agent = stage.agent("dev");
    for (call, when) in INTERRUPTED {
        stage.end_sidecar(Signal::SIGTERM);
        fs::remove_file(stage.log_file()).expect("a log");
        let injection = Injection { call, what: "error=EINTR", paths: vec!["/dev/ptmx".into()], when };
        stage.spawn_under_strace(&injection);
        stage.until_beating();
        let verdict = stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": call}));
        assert_eq!(verdict["verdict"], "delivered", "{injection:?}\n{}", stage.story());
        assert!(stage.was_injected(), "{injection:?} was not reached\n{}", stage.trace());
        let log = fs::read_to_string(stage.log_file()).expect("a log");
        assert!(!log.contains("disconnected from tmux"), "{injection:?}\n{log}");
        stage.until_idle(&agent);
        tally::add(tally::FAULTS, 1);
    }
    stage.check_once();
}

/// Who drops a request is told that it is not written; then it must not be carried out later.
#[test]
fn a_request_whose_folder_cant_be_synced_is_taken_back() {
    if !strace::is_there() {
        return;
    }
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.until_idle(&agent);
    let requests = stage.spool("requests");
    // The sidecar stands still, so that it can't take the request in between.
    stage.signal(Signal::SIGSTOP);
    let mut command = Command::new("strace");
    command.args(["-f", "-q", "-o", "/dev/null", "-P"]).arg(&requests).args(["-e", "trace=fsync"]);
    command.args(["-e", "inject=fsync:error=EIO:when=1"]).arg(env!("CARGO_BIN_EXE_tasuki")).arg("--home");
    command.arg(stage.home()).args(["send", &agent, "taken back?"]).stdin(Stdio::null());
    Stage::make_own(&mut command);
    let output = command.output().expect("strace runs");
    let left = stage.names("requests");
    stage.signal(Signal::SIGCONT);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("could not write"), "{said}");
    assert_eq!(left, Vec::<String>::new());
    stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": "the next one"}));
    assert!(!stage.prompts(&agent).iter().any(|prompt| prompt.contains("taken back?")), "{}", stage.story());
    tally::add(tally::FAULTS, 1);
}

/// Whether the thread that syncs is there: it lives as long as one sync takes, and the first one takes twenty seconds.
fn is_syncing(stage: &Stage) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", stage.sidecar_pid())).into_iter().flatten().flatten();
    let mut names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.any(|name| name.trim_end() == "sync")
}

#[test]
fn a_disk_that_takes_its_time_to_sync_holds_up_no_answer() {
    if !strace::is_there() {
        return;
    }
    let stage = Stage::without_sidecar("");
    let what = "delay_enter=20000000";
    stage.spawn_under_strace(&Injection { call: "syncfs", what, paths: Vec::new(), when: 1 });
    stage.until_beating();
    let nobody = json!({"kind": "handoff_cancel", "handoff_id": "00000000-0000-4000-8000-000000000000"});
    stage.refused(&nobody);
    stage.until("a sync is under way", || is_syncing(&stage));
    stage.refused(&nobody);
    assert!(is_syncing(&stage), "it was answered only when the disk had synced");
    tally::add(tally::FAULTS, 1);
}
