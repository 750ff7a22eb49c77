//! Short of everything: descriptors, processes. Nothing that could not be looked at is taken for dead, lost or done; it
//! is told what is short, and all goes on when there is more. Disks without room are `disk_full`'s.

use super::support::stage::Stage;
use super::support::tally;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use serde_json::json;
use std::fs;
use std::process::{Command, Stdio};
use tasuki::process::{ExitWatch, identify, is_alive};

/// How many descriptors a start gets less than one took before, and at most more.
const TOO_FEW: usize = 6;

fn has_prlimit() -> bool {
    let there = Command::new("prlimit").arg("--version").stdout(Stdio::null()).status().is_ok_and(|it| it.success());
    if !there {
        tally::skip("no prlimit");
    }
    there
}

/// Sets a limit of a running process.
fn limit(pid: u32, what: &str) {
    let set = Command::new("prlimit").args(["--pid", &pid.to_string(), what]).status();
    assert!(set.is_ok_and(|status| status.success()), "{what}");
}

/// How many descriptors leave a process one more file, which is what it tells of the shortage by. Files that those who
/// started it left open at higher numbers count for nothing.
fn one_more(pid: u32) -> usize {
    let open: Vec<usize> = fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("it runs")
        .filter_map(|entry| entry.expect("an open file").file_name().to_str()?.parse().ok())
        .collect();
    (0..).find(|number| !open.contains(number)).expect("there is always a next one") + 1
}

/// No agent of the stage is said to have ended or to be lost.
fn check_all_live(stage: &Stage, agents: &[String]) {
    for agent in agents {
        let view = stage.agent_view(agent);
        let state = view["state"].as_str().unwrap_or_default();
        assert!(
            !matches!(state, "ended" | "lost") && view["ended_at"].is_null(),
            "{state}: {view:#}\n{}",
            stage.story()
        );
        assert!(stage.is_running(agent), "{agent} is to run");
    }
}

#[tokio::test]
async fn a_process_that_could_not_be_looked_at_is_not_dead() {
    if std::env::var("NEXTEST_EXECUTION_MODE").as_deref() != Ok("process-per-test") {
        return tally::skip("a process without descriptors: other tests run in this one");
    }
    let mut child = Command::new("sleep").arg("600").spawn().expect("it starts");
    let process = identify(child.id()).expect("it runs");
    let (mut watch, mut ends) = ExitWatch::new();
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, 0, hard).expect("lowered");
    let lives = is_alive(&process);
    watch.watch(process);
    // A task of its own looks; by the time that a second one has had its turn the first has, too.
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    let told = ends.try_recv();
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).expect("raised");
    child.kill().expect("our own child");
    assert!(lives && told.is_err(), "alive: {lives}; told: {told:?}");
    let end = tokio::time::timeout(std::time::Duration::from_secs(60), ends.recv()).await;
    assert_eq!(end, Ok(Some(process)), "its end is seen all the same");
    child.wait().expect("our own child");
}

#[test]
fn a_start_with_too_few_descriptors_declares_no_agent_dead() {
    if !has_prlimit() {
        return;
    }
    let stage = Stage::new();
    let agents = stage.agents(&["ana", "ben", "cleo", "dev"]);
    agents.iter().for_each(|agent| stage.until_idle(agent));
    let enough = one_more(stage.sidecar_pid());
    stage.end_sidecar(Signal::SIGKILL);
    // With fewer than a start takes it says so and ends; with a few more it runs, and says so as well.
    let told = (enough - TOO_FEW..=enough + TOO_FEW).any(|few| {
        let wanted = format!("--nofile={few}:{few}");
        stage.spawn_sidecar_by(&["prlimit", &wanted], "info");
        let pid = stage.sidecar_pid();
        let says = |view: &serde_json::Value| view["problem"].as_str().unwrap_or_default().contains("descriptor");
        let told = stage.wait_for("it says what is short, or ends", || {
            check_all_live(&stage, &agents);
            let view = stage.sidecar_view();
            if view["pid"] == pid && says(&view) { Some(true) } else { stage.ended().map(|_| false) }
        });
        let log = fs::read_to_string(stage.log_file()).expect("a log");
        let is_why = |line: &str| line.contains("descriptor") || line.contains("Too many open files");
        assert!(told || log.lines().last().is_some_and(is_why), "{log}");
        println!("with {few} descriptors: {}", if told { "told" } else { "ended" });
        told
    });
    assert!(told, "with {TOO_FEW} more than it takes it runs");
    check_all_live(&stage, &agents);
    // Not every root may lift a hard limit again.
    stage.end_sidecar(Signal::SIGKILL);
    stage.start_sidecar();
    stage.until_well();
    check_all_live(&stage, &agents);
    for agent in &agents {
        stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": "Are you there?"}));
    }
    tally::add(tally::FAULTS, 1);
}

#[test]
fn what_is_asked_while_no_descriptor_is_left_is_done_when_there_is_one() {
    if !has_prlimit() {
        return;
    }
    let stage = Stage::new();
    let agents = stage.agents(&["ana", "ben"]);
    stage.persona("cleo");
    let pid = stage.sidecar_pid();
    let soft = |descriptors: &str| limit(pid, &format!("--nofile={descriptors}:"));
    let before = fs::read_to_string(format!("/proc/{pid}/limits")).expect("it runs");
    let line = before.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a limit");
    let most = line.split_whitespace().next().expect("a soft limit").to_owned();
    soft(&one_more(pid).to_string());
    let text = stage.send(&json!({"kind": "agent_send", "agent_id": agents[0], "text": "While it was short."}));
    let made = stage.send(&json!({"kind": "agent_create", "persona_slug": "cleo"}));
    stage.until_degraded(&["descriptor"]);
    check_all_live(&stage, &agents);
    assert!(stage.names("results").iter().all(|name| !name.contains(&text) && !name.contains(&made)), "not refused");
    soft(&most);
    stage.until_well();
    assert_eq!(stage.result(&text)["ok"], true, "{}", stage.result(&text));
    assert_eq!(stage.result(&made)["ok"], true, "{}", stage.result(&made));
    check_all_live(&stage, &agents);
    let typed = stage.prompts(&agents[0]).iter().filter(|prompt| prompt.contains("While it was short.")).count();
    assert_eq!(typed, 1, "once");
    stage.check_once();
    tally::add(tally::FAULTS, 1);
}
