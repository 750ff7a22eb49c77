//! A successor that is killed just as its priming or its briefing begins: the failure says what helps with it, and a
//! retry in that very moment starts another one.

use super::support::stage::Stage;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

/// How it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    /// Its process alone.
    Process,
    /// Its pane is closed.
    Pane,
}

/// Plays one handoff whose successor dies as soon as that step has begun.
fn dies_at(step: &str, death: Death) {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let id = stage.hand_off(&agent);
    stage.until_step(&id, step);
    let successor = successor_of(&stage, &id);
    strike(&stage, &successor, death);
    check(&stage, &id, &successor);
}

#[test]
fn killed_as_its_priming_begins() {
    dies_at("priming", Death::Process);
}

#[test]
fn closed_as_its_priming_begins() {
    dies_at("priming", Death::Pane);
}

#[test]
fn killed_as_its_briefing_begins() {
    dies_at("briefing", Death::Process);
}

#[test]
fn closed_as_its_briefing_begins() {
    dies_at("briefing", Death::Pane);
}

fn successor_of(stage: &Stage, id: &str) -> String {
    stage.handoff_view(id)["successor_id"].as_str().expect("an id").to_owned()
}

fn strike(stage: &Stage, successor: &str, death: Death) {
    let view = stage.agent_view(successor);
    let pane = view["pane"].as_str().expect("a pane");
    match death {
        Death::Process => {
            let pid = view["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).expect("a process");
            kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it runs");
        }
        Death::Pane => {
            stage.tmux(&["kill-pane", "-t", pane]);
        }
    }
}

/// Fails, is retried as soon as that is known, and ends well with another successor.
fn check(stage: &Stage, id: &str, successor: &str) {
    let failed = stage.until_step(id, "failed");
    let error = &failed["error"];
    let hint = error["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("to start another successor"), "{error}");
    let retried = stage.ask(&json!({"kind": "handoff_retry", "handoff_id": id}));
    assert_eq!(retried["ok"], true, "{error} {retried}");
    let done = stage.wait_for("it ends", || {
        let view = stage.handoff_view(id);
        ["failed", "done"].iter().any(|end| view["step"] == *end).then_some(view)
    });
    assert_eq!(done["step"], "done", "{:#}", done["error"]);
    assert_ne!(done["successor_id"], successor);
    assert_eq!(done["former_successors"], json!([successor]));
    stage.check_done(&done);
}
