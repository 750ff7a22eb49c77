//! A successor that is started while its predecessor still runs: it takes over as any other, or is ended again.

use super::support::stage::Stage;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::{Value, json};

fn stage(more: &str) -> Stage {
    Stage::with_config(&format!("[handoff]\nstarting = \"early\"\n{more}"))
}

/// When a handoff entered a step.
fn entered<'v>(view: &'v Value, step: &str) -> &'v str {
    let steps = view["steps"].as_array().expect("its steps");
    let found = steps.iter().find(|span| span["step"] == step).unwrap_or_else(|| panic!("{step}: {view:#}"));
    found["entered_at"].as_str().expect("a time")
}

fn registered_at(stage: &Stage, agent: &Value) -> String {
    stage.agent_view(agent.as_str().expect("an id"))["registered_at"].as_str().expect("a time").to_owned()
}

/// The successors that were ended again. Nothing of them is left, and nobody was bothered.
fn ended_again(stage: &Stage, view: &Value) -> Vec<String> {
    let former = view["former_successors"].as_array().expect("a list");
    let former: Vec<String> = former.iter().map(|id| id.as_str().expect("an id").to_owned()).collect();
    for agent in &former {
        stage.until("it has ended", || stage.agent_view(agent)["ended_at"].is_string());
        assert!(!stage.is_running(agent), "{agent}\n{}", stage.story());
        assert_eq!(stage.typed(agent), (0, 0, 0), "nobody has spoken with it");
    }
    former
}

/// A handoff whose outgoing agent does not end, and its successor, which takes input.
fn with_a_ready_successor(stage: &Stage, agent: &str) -> (String, String) {
    stage.faults("ignore_exit");
    let id = stage.hand_off(agent);
    let successor = stage.wait_for("one is ready", || {
        let successor = stage.handoff_view(&id)["successor_id"].as_str()?.to_owned();
        (stage.agent_view(&successor)["state"] == "idle").then_some(successor)
    });
    (id, successor)
}

#[test]
fn it_takes_over_as_any_other() {
    let stage = stage("");
    let agent = stage.agent("dev");
    let view = stage.until_step(&stage.hand_off(&agent), "done");
    stage.check_done(&view);
    assert!(
        registered_at(&stage, &view["successor_id"]).as_str() < entered(&view, "starting"),
        "it was early: {view:#}"
    );
    assert_eq!((&view["warnings"], &view["former_successors"]), (&json!([]), &json!([])), "{view:#}");
    let successor = stage.agent_view(view["successor_id"].as_str().expect("an id"));
    assert_eq!(successor["previous_agent_id"], json!(agent));
    assert_eq!(stage.agent_view(&agent)["successor_id"], view["successor_id"]);
}

/// The window goes into the session in which the agent is now, not in which it was started.
#[test]
fn it_follows_its_predecessor_into_a_session_with_another_name() {
    let stage = stage("");
    let agent = stage.agent("dev");
    let pane = stage.agent_view(&agent)["pane"].as_str().expect("a pane").to_owned();
    stage.tmux(&["rename-session", "-t", &pane, "elsewhere"]);
    let view = stage.until_step(&stage.hand_off(&agent), "done");
    let successor = stage.agent_view(view["successor_id"].as_str().expect("an id"));
    let pane = successor["pane"].as_str().expect("a pane");
    assert_eq!(stage.tmux(&["display-message", "-p", "-t", pane, "#{session_name}"]).trim(), "elsewhere");
}

#[test]
fn one_whose_handoff_waits_for_a_person_is_ended_and_another_takes_over() {
    let stage = stage("");
    let agent = stage.agent("dev");
    let id = stage.hand_off_with(&agent, &json!({"check": "hold", "review": true}));
    stage.until("it waits for a person", || stage.handoff_view(&id)["held_since"].is_string());
    let view = stage.handoff_view(&id);
    assert_eq!(view["successor_id"], Value::Null, "{view:#}");
    let former = ended_again(&stage, &view);
    assert_eq!(former.len(), 1, "{view:#}");
    assert_eq!(stage.agent_view(&agent)["successor_id"], Value::Null);
    stage.granted(&json!({"kind": "handoff_accept", "handoff_id": id}));
    let view = stage.until_step(&id, "done");
    stage.check_done(&view);
    assert_ne!(view["successor_id"], json!(former[0]));
    assert_eq!(stage.errors(), [] as [Value; 0]);
}

#[test]
fn one_whose_predecessor_does_not_end_is_ended_and_a_retry_starts_another() {
    let stage = stage("[limits]\nending = \"2s\"\n");
    let agent = stage.agent("dev");
    stage.faults("ignore_exit");
    let id = stage.hand_off(&agent);
    let view = stage.until_failed(&id, "ending", "did_not_exit");
    stage.check_failure(&view);
    assert_eq!(ended_again(&stage, &view).len(), 1, "{view:#}");
    stage.faults("");
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id}));
    let view = stage.until_step(&id, "done");
    assert_eq!(stage.errors().len(), 1, "only the failure of the handoff is told");
    assert_eq!(stage.typed(view["successor_id"].as_str().expect("an id")), (0, 1, 1));
}

#[test]
fn one_that_dies_before_it_is_needed_gives_way_to_another() {
    let stage = stage("");
    let agent = stage.agent("dev");
    let (id, first) = with_a_ready_successor(&stage, &agent);
    stage.until("the predecessor is asked to end", || stage.steps_of(&id).iter().any(|step| step == "ending"));
    kill(&stage, &first);
    stage.until("its death is known", || stage.agent_view(&first)["ended_at"].is_string());
    assert_eq!(stage.handoff_view(&id)["step"], "ending");
    stage.faults("");
    kill(&stage, &agent);
    let view = stage.until_step(&id, "done");
    stage.check_done(&view);
    assert_eq!(view["former_successors"], json!([first]), "{view:#}");
    let warnings = view["warnings"].to_string();
    assert!(warnings.contains("the successor that was started early has ended"), "{warnings}");
}

fn kill(stage: &Stage, agent: &str) {
    for pid in stage.processes(agent) {
        nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it runs");
    }
}

#[test]
fn one_that_a_person_has_typed_to_is_left_running() {
    let stage = stage("[limits]\nending = \"4s\"\n");
    let agent = stage.agent("dev");
    let (id, first) = with_a_ready_successor(&stage, &agent);
    let pane = stage.agent_view(&first)["pane"].as_str().expect("a pane").to_owned();
    stage.tmux(&["send-keys", "-t", &pane, "-l", "Which branch is this?"]);
    stage.until("it is in the composer", || stage.screen(&pane).contains("Which branch is this?"));
    stage.tmux(&["send-keys", "-t", &pane, "Enter"]);
    stage.until("it has answered", || stage.prompts(&first).len() == 1);
    let view = stage.until_failed(&id, "ending", "did_not_exit");
    assert_eq!(view["successor_id"], Value::Null, "{view:#}");
    assert!(view["warnings"].to_string().contains("somebody has typed to the successor"), "{view:#}");
    let own = stage.agent_view(&first);
    assert!(stage.is_running(&first) && own["ended_at"].is_null() && own["handoff_id"].is_null(), "{own:#}");
    assert_eq!(stage.agent_view(&agent)["successor_id"], Value::Null);
}

/// Killed at instants that differ: whatever was begun is found again, and no agent is left over.
#[test]
fn a_sidecar_that_is_killed_meanwhile_finds_it_again() {
    let stage = stage("");
    for (round, slug) in ["dev", "second", "third", "fourth"].into_iter().enumerate() {
        let agent = stage.agent(slug);
        let id = stage.hand_off(&agent);
        let at = ["writing", "checking", "ending", "priming"][round];
        stage.until("it is there", || stage.steps_of(&id).iter().any(|step| step == at));
        if at == "writing" {
            stage.until("one was started", || !stage.handoff_view(&id)["successor_id"].is_null());
        }
        stage.crash_and_restart();
        let view = stage.until_step(&id, "done");
        stage.check_crashed(&view);
        assert_eq!(stage.typed(view["successor_id"].as_str().expect("an id")), (0, 1, 1), "{at}: {view:#}");
        assert!(ended_again(&stage, &view).is_empty(), "{at}: {view:#}");
    }
}
