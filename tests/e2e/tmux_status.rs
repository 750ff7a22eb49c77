//! The line about us in tmux's `@tasuki_status`: when it changes, and that it goes with us. What it says is
//! `core_status_line`'s.

use crate::support::stage::Stage;
use nix::sys::signal::Signal;
use serde_json::json;
use std::fs;

fn global(stage: &Stage) -> String {
    stage.tmux(&["show-option", "-gqv", "@tasuki_status"]).trim().to_owned()
}

/// What a home's own session says.
fn own(stage: &Stage) -> String {
    let sessions = stage.tmux(&["list-sessions", "-F", "#{session_name}"]);
    let session = sessions.lines().find(|name| name.starts_with("_tasuki-")).expect("a session of ours").to_owned();
    stage.tmux(&["show-option", "-qv", "-t", &format!("={session}:"), "@tasuki_status"]).trim().to_owned()
}

#[test]
fn the_line_follows_a_handoff_and_goes_with_the_sidecar() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.until("the agent is told of", || global(&stage) == "1 agent" && own(&stage) == "1 agent");
    stage.faults("write_never\nslow_turn=3000");
    let handoff = stage.hand_off(&agent);
    stage.until("the handoff is told of", || global(&stage).starts_with("1 agent · 1 handoff: writing 0:0"));
    stage.until_failed(&handoff, "writing", "document_missing");
    stage.until("its failure is told of", || global(&stage) == "1 agent · needs you: 1");
    stage.crash_and_restart();
    stage.until("a new sidecar says the same", || own(&stage) == "1 agent · needs you: 1");
    for file in fs::read_dir(stage.spool("errors")).expect("a folder") {
        fs::remove_file(file.expect("an entry").path()).expect("dismissed");
    }
    stage.until("nothing is left to tell of but the agent", || global(&stage) == "1 agent");
    let status = stage.end_sidecar(Signal::SIGTERM);
    assert!(status.success(), "{status}");
    assert_eq!(
        stage.tmux(&["show-options", "-gq"]).matches("@tasuki").count(),
        0,
        "{}",
        stage.tmux(&["show-options", "-gq"])
    );
    assert_eq!(stage.tmux(&["show-options", "-sq"]).matches("@tasuki_status").count(), 0);
}

#[test]
fn a_server_that_comes_back_is_told_again_and_nothing_is_said_where_nobody_wants_it() {
    let stage = Stage::new();
    stage.agent("dev");
    stage.until("the agent is told of", || global(&stage) == "1 agent");
    let server = stage.tmux(&["display-message", "-p", "#{pid}"]);
    stage.tmux(&["kill-server"]);
    let server: u32 = server.trim().parse().expect("an id");
    stage.until("the server has gone", || !tasuki::process::exists(server));
    stage.start_tmux();
    stage.tmux(&["set-option", "-g", "@tasuki_status", "stale"]);
    stage.until("what is stale goes", || global(&stage) == "needs you: 1");
    let died = stage.errors();
    assert_eq!((died.len(), &died[0]["code"]), (1, &json!("agent_died")), "its tmux server has ended");
    stage.granted(&json!({"kind": "error_dismiss", "error_id": died[0]["error_id"]}));
    stage.until("nothing is left to tell", || global(&stage).is_empty());
    stage.until("we are there again", || stage.tmux(&["list-sessions"]).contains("_tasuki-"));
    fs::write(stage.home().join("config.toml"), "[tmux]\nstatus = false\n").expect("written");
    stage.agent("second");
    stage.until("the second is told of", || global(&stage) == "1 agent");
    stage.signal(Signal::SIGHUP);
    stage.until("nothing is said any more", || global(&stage).is_empty());
    stage.end_sidecar(Signal::SIGTERM);
    stage.start_sidecar();
    stage.agent("third");
    stage.ask(&json!({"kind": "error_dismiss", "error_id": "none"}));
    assert_eq!(stage.tmux(&["show-options", "-gq"]).matches("@tasuki_status").count(), 0);
}

#[test]
fn a_failure_whose_handoff_went_well_since_then_is_told_of_no_more() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("write_never");
    let handoff = stage.hand_off(&agent);
    stage.until_failed(&handoff, "writing", "document_missing");
    stage.until("its failure is told of", || own(&stage) == "1 agent · needs you: 1");
    stage.faults("");
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": handoff}));
    stage.until_step(&handoff, "done");
    stage.until("it is told of no more", || own(&stage) == "1 agent");
    assert_eq!(stage.errors().len(), 1, "its file stays until somebody dismisses it");
    stage.crash_and_restart();
    stage.until("nor by a new sidecar", || own(&stage) == "1 agent");
    let output = stage.command(&["errors"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("the handoff is done by now: nothing is left to do"), "{said}");
    assert!(!said.contains("then retry"), "{said}");
}
