//! What people and agents write to each other is in no log, at any level.

use crate::support::stage::Stage;
use crate::support::tally;
use serde_json::json;
use std::fs;

/// In every text of this test.
const MARK: &str = "xyzzy";

fn marked(what: &str) -> String {
    format!("{MARK}-{what} of the {what}")
}

#[test]
fn no_text_is_in_any_log_at_the_loudest_level() {
    let stage = Stage::without_sidecar("");
    stage.spawn_sidecar_by(&[], "trace");
    stage.until_beating();
    let agent = stage.agent("kai");
    let folder = stage.home().join("data/personas/kai");
    fs::write(folder.join("skill.md"), format!("# Skill\n\n{}\n", marked("skill"))).expect("written");
    fs::write(folder.join("experience.md"), marked("experience")).expect("written");
    // Commands say nothing of it either, however loud they are asked to be.
    let said = |arguments: &[&str]| {
        let out =
            stage.command(arguments).env("TASUKI_LOG", "trace").env("RUST_LOG", "trace").output().expect("it runs");
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    assert!(!said(&["send", &agent, &marked("message")]).contains(MARK));
    stage.until_idle(&agent);
    let (reason, focus) = (marked("reason"), marked("focus"));
    assert!(
        !said(&["handoff", &agent, "--reason", &reason, "--focus", &focus, "--wait", "--timeout", "60s"])
            .contains(MARK)
    );
    let view = stage.views("handoffs").remove(0);
    stage.check_done(&view);
    // A document that is given, its text in the request; and requests and events that are refused for their text.
    let successor = view["successor_id"].as_str().expect("a successor").to_owned();
    stage.until_idle(&successor);
    let provided = stage.hand_off_with(
        &successor,
        &json!({"author": "provided", "document": {"text": format!("# It\n\n{}\n", marked("document"))}, "tasks": [marked("task")]}),
    );
    stage.until_step(&provided, "done");
    stage.ask(&json!({"kind": "handoff", "agent_id": [marked("id")], "reason": 1}));
    stage.ask(&json!({"kind": "agent_send", "agent_id": successor, "text": format!("/{}", marked("command"))}));
    stage.ask(&json!({"kind": marked("kind"), "text": marked("text")}));
    stage.drop_file("requests", "bad.json", marked("request").as_bytes());
    for (name, event) in [
        (
            "e1.json",
            json!({"v": 1, "event": "stop", "agent_id": successor, "last_text": marked("answer"), "message": marked("message")}),
        ),
        (
            "e2.json",
            json!({"v": 1, "event": "prompt_submit", "agent_id": successor, "text": marked("prompt"), "session_id": marked("session")}),
        ),
        ("e3.json", json!({"v": 1, "event": "stop", "agent_id": marked("id"), "text": marked("prompt")})),
        (
            "e4.json",
            json!({"v": 1, "event": "blocked", "agent_id": successor, "message": marked("question"), "payload": {"prompt": marked("payload")}}),
        ),
    ] {
        stage.drop_file("events", name, event.to_string().as_bytes());
    }
    stage.until("all is taken", || stage.names("requests").is_empty() && stage.names("events").is_empty());
    let log = fs::read_to_string(stage.log_file()).expect("a log");
    assert!(log.contains("TRACE") || log.contains("DEBUG"), "the level is not loud");
    let told: Vec<&str> = log.lines().filter(|line| line.contains(MARK)).collect();
    assert!(told.is_empty(), "{told:#?}");
    assert!(fs::read_to_string(stage.recorder()).expect("read").contains(MARK), "the texts did arrive");
    stage.check_once();
    tally::add(tally::TEXTS, stage.recorded().len() as u64);
}
