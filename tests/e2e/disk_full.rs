//! Disks without room: no block left, no inode left, files that may not grow. It is told in `view/sidecar.json`,
//! nothing is lost, and the sidecar goes on by itself when there is room again.

use super::support::small_disk::{SmallDisk, has_mounts_of_its_own};
use super::support::stage::Stage;
use super::support::stage_files::{json_lines, make_folder, read_json};
use super::support::tally;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};

/// Requests that are dropped while there is no room.
const REQUESTS: usize = 300;
/// Limits that let a handoff be judged soon.
const CONFIG: &str = "[limits]\nwriting = \"20s\"\n";

/// A stage whose whole home lies on a small disk, with an agent. The disk goes first.
fn on_small_disk(options: &str) -> Option<(SmallDisk, Stage, String)> {
    if !has_mounts_of_its_own() {
        return None;
    }
    let stage = Stage::without_sidecar(CONFIG);
    let disk = SmallDisk::over(&stage.home(), options);
    fs::write(stage.home().join("config.toml"), CONFIG).expect("the configuration");
    stage.start_sidecar();
    let agent = stage.agent("dev");
    Some((disk, stage, agent))
}

fn name(number: usize) -> String {
    format!("full-{number}")
}

/// Writes requests where they are not read yet: a writer whose disk is full can't write any more.
fn prepare(stage: &Stage) {
    for number in 0..REQUESTS {
        let request = json!({"v": 1, "kind": "handoff_cancel", "handoff_id": format!("nothing-{number}")});
        fs::write(stage.spool("tmp").join(name(number)), request.to_string()).expect("there is room");
    }
}

fn drop_prepared(stage: &Stage, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let to = stage.spool("requests").join(format!("{}.json", name(number)));
        fs::rename(stage.spool("tmp").join(name(number)), to).expect("a rename needs no room");
    }
}

fn sidecar_view(stage: &Stage) -> Value {
    read_json(&stage.home().join("view/sidecar.json")).unwrap_or(Value::Null)
}

/// The view says that it can't go on, and why; and goes on being written. What was taken is removed, so that some room
/// comes back: `fill` takes it again.
fn until_told(stage: &Stage, why: &str, fill: impl Fn()) {
    let pid = stage.sidecar_pid();
    let is_told = |view: &Value| {
        let problem = view["problem"].as_str().unwrap_or_default();
        view["pid"] == pid && view["state"] == "degraded" && problem.contains(why)
    };
    stage.until("the view tells of it", || {
        fill();
        is_told(&sidecar_view(stage))
    });
    let before = sidecar_view(stage)["heartbeat"].clone();
    let beats = || {
        fill();
        Some(sidecar_view(stage)).filter(|view| view["heartbeat"] != before)
    };
    let later = stage.wait_for("the heart beats on a full disk", beats);
    assert!(is_told(&later), "{later}");
    println!("it says: {}", later["problem"]);
}

/// Every request has its one answer; the state is well again.
fn until_recovered(stage: &Stage) {
    stage.until("it runs again", || {
        let view = sidecar_view(stage);
        view["state"] == "running" && view["problem"].is_null()
    });
    for number in 0..REQUESTS {
        let answer = stage.result(&name(number));
        assert_eq!(answer["error"]["code"], "no_handoff", "{answer}");
    }
    assert!(stage.names("requests").is_empty() && stage.names("rejected").is_empty());
    stage.check_once();
    tally::add(tally::REQUESTS, REQUESTS as u64);
}

/// A handoff goes through as if nothing had been.
fn hand_off(stage: &Stage, agent: &str) {
    stage.check_done(&stage.until_step(&stage.hand_off(agent), "done"));
    tally::add(tally::FAULTS, 1);
    tally::none_lost_none_twice("requests on a full disk", &[], &[]);
}

#[test]
fn a_full_disk_is_told_and_nothing_is_lost() {
    let Some((disk, stage, agent)) = on_small_disk("size=8m") else { return };
    prepare(&stage);
    disk.fill_blocks();
    drop_prepared(&stage, 0..5);
    until_told(&stage, "No space left", || disk.fill_blocks());
    drop_prepared(&stage, 5..REQUESTS);
    until_told(&stage, "No space left", || disk.fill_blocks());
    disk.make_room();
    until_recovered(&stage);
    hand_off(&stage, &agent);
    drop(disk);
}

#[test]
fn a_disk_that_was_full_over_a_crash_loses_nothing() {
    let Some((disk, stage, agent)) = on_small_disk("size=8m") else { return };
    prepare(&stage);
    disk.fill_blocks();
    drop_prepared(&stage, 0..REQUESTS);
    until_told(&stage, "No space left", || disk.fill_blocks());
    stage.end_sidecar(Signal::SIGKILL);
    // On a disk that is full it says so and ends, or runs and says so.
    fs::remove_file(stage.log_file()).expect("a log");
    stage.spawn_sidecar();
    let pid = stage.sidecar_pid();
    let ended = stage.ended_or("running", || {
        let view = sidecar_view(&stage);
        view["pid"] == pid && view["state"] == "degraded"
    });
    if let Some(status) = ended {
        assert_eq!(status.code(), Some(75), "{status}\n{}", stage.story());
        let log = fs::read_to_string(stage.log_file()).unwrap_or_default();
        assert!(log.contains("tasuki: ") && log.contains("No space left"), "{log}");
        disk.make_room();
        stage.start_sidecar();
    } else {
        until_told(&stage, "No space left", || disk.fill_blocks());
        disk.make_room();
    }
    until_recovered(&stage);
    hand_off(&stage, &agent);
    drop(disk);
}

#[test]
fn a_disk_without_inodes_is_told_and_nothing_is_lost() {
    let Some((disk, stage, agent)) = on_small_disk("size=64m,nr_inodes=600") else { return };
    prepare(&stage);
    disk.fill_inodes();
    drop_prepared(&stage, 0..REQUESTS);
    until_told(&stage, "No space left", || disk.fill_inodes());
    disk.make_room();
    until_recovered(&stage);
    hand_off(&stage, &agent);
    drop(disk);
}

#[test]
fn a_handoff_that_meets_a_full_disk_ends_as_the_contract_says() {
    let Some((disk, stage, agent)) = on_small_disk("size=8m") else { return };
    stage.faults("slow_turn=1500");
    let id = stage.hand_off(&agent);
    stage.until_step(&id, "writing");
    disk.fill_blocks();
    stage.faults("");
    // Neither the agent nor its hook can write: the step's limit passes, or the next one fails.
    until_told(&stage, "No space left", || disk.fill_blocks());
    disk.make_room();
    let view = stage.until_ended(&id);
    stage.check_crashed(&view);
    tally::add(tally::FAULTS, 1);
    drop(disk);
}

/// Sets the longest that a file of the running sidecar may be.
fn limit_files(stage: &Stage, bytes: &str) -> bool {
    let pid = stage.sidecar_pid().to_string();
    let limit = format!("--fsize={bytes}:unlimited");
    let set = Command::new("prlimit").args(["--pid", &pid, &limit]).stderr(Stdio::null()).status();
    let is_set = set.is_ok_and(|status| status.success());
    if !is_set {
        tally::skip("no prlimit");
    }
    is_set
}

#[test]
fn a_journal_that_was_cut_short_goes_on_without_a_gap() {
    // A journal that is longer than the state file, so that it alone meets the limit. It is ahead of the store, which
    // numbers on from it.
    let stage = Stage::without_sidecar("");
    make_folder(&stage.spool(""));
    let lines = 40_000;
    let line = |seq: u32| format!("{{\"seq\":{seq},\"at\":\"2026-11-21T20:00:00.000Z\",\"type\":\"agent.state\"}}\n");
    fs::write(stage.spool("journal.jsonl"), (1..=lines).map(line).collect::<String>()).expect("a journal");
    stage.start_sidecar();
    let size = fs::metadata(stage.spool("journal.jsonl")).expect("a journal").len();
    if !limit_files(&stage, &(size + 20).to_string()) {
        return;
    }
    stage.persona("dev");
    let request = stage.send(&json!({"kind": "agent_create", "persona_slug": "dev"}));
    until_told(&stage, "File too large", || {});
    let torn = fs::read_to_string(stage.spool("journal.jsonl")).expect("a journal");
    println!("{} bytes behind the last whole line", torn.len() - torn.rfind('\n').map_or(0, |at| at + 1));
    assert!(limit_files(&stage, "unlimited"));
    stage.until("it runs again", || sidecar_view(&stage)["state"] == "running");
    let agent = stage.result(&request)["result"]["agent_id"].as_str().expect("an id").to_owned();
    stage.until_idle(&agent);
    stage.until("the journal goes on", || json_lines(&stage.spool("journal.jsonl")).len() > lines as usize + 1);
    stage.check_once();
    tally::add(tally::FAULTS, 1);
}

#[test]
fn a_state_file_that_may_not_grow_is_told_and_nothing_is_lost() {
    let stage = Stage::with_config(CONFIG);
    let agent = stage.agent("dev");
    prepare(&stage);
    if !limit_files(&stage, "8192") {
        return;
    }
    drop_prepared(&stage, 0..REQUESTS);
    until_told(&stage, "File too large", || {});
    assert!(limit_files(&stage, "unlimited"));
    until_recovered(&stage);
    hand_off(&stage, &agent);
}
