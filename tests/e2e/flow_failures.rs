//! Each failure that a step can end in: what it leaves, and how a person goes on from there.

use super::support::stage::Stage;
use serde_json::{Value, json};
use std::path::Path;

fn id_of(view: &Value) -> &str {
    view["handoff_id"].as_str().expect("an id")
}

fn successor_of(view: &Value) -> &str {
    view["successor_id"].as_str().expect("an id")
}

fn pane_of(stage: &Stage, agent: &str) -> String {
    stage.agent_view(agent)["pane"].as_str().expect("a pane").to_owned()
}

fn retry(stage: &Stage, id: &str) -> Value {
    let result = stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id}));
    assert_eq!((&result["status"], &result["handoff_id"]), (&json!("retrying"), &json!(id)));
    result
}

fn retry_assuming(stage: &Stage, id: &str, assume: &str) {
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id, "assume": assume}));
}

/// `(status, code)` of a request about a handoff that is refused.
fn refused(stage: &Stage, kind: &str, id: &str) -> (u64, String) {
    let (status, code, _) = stage.refused(&json!({"kind": kind, "handoff_id": id}));
    (status, code)
}

#[test]
fn agent_busy_and_a_retry_of_waiting() {
    let stage = Stage::with_config("[limits]\nwaiting = \"1s\"\n");
    let agent = stage.agent("dev");
    stage.faults("slow_turn=4000");
    let verdict = stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": "work"}));
    assert_eq!(verdict["verdict"], "delivered");
    let view = stage.until_failed(&stage.hand_off(&agent), "waiting", "agent_busy");
    stage.check_halted(&view);
    assert!(view["error"]["hint"].as_str().is_some_and(|hint| hint.contains("--now")), "{view:#}");
    assert_eq!(stage.typed(&agent), (0, 1, 0), "nothing was typed");
    stage.faults("");
    stage.until("its turn ends", || stage.agent_view(&agent)["state"] == "idle");
    retry(&stage, id_of(&view));
    stage.check_done(&stage.until_step(id_of(&view), "done"));
}

#[test]
fn a_turn_of_ours_that_was_broken_off_does_not_keep_a_handoff_waiting() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("interrupt");
    stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": "work"}));
    stage.faults("");
    let id = stage.hand_off(&agent);
    assert_eq!(stage.agent_view(&agent)["state"], "busy", "no event has told of the end");
    stage.check_done(&stage.until_step(&id, "done"));
}

#[test]
fn an_agent_that_ends_while_it_is_waited_for() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("slow_turn=2000,die_at=stop");
    stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": "work"}));
    let view = stage.until_failed(&stage.hand_off(&agent), "waiting", "agent_ended");
    stage.check_failure(&view);
    assert_eq!(refused(&stage, "handoff_retry", id_of(&view)), (400, "not_active".into()));
}

#[test]
fn a_draft_is_not_touched_and_a_retry_types_once_it_is_gone() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let pane = pane_of(&stage, &agent);
    stage.tmux(&["send-keys", "-t", &pane, "-l", "half a thought"]);
    stage.until("the draft is seen", || stage.screen(&pane).contains("half a thought"));
    let view = stage.until_failed(&stage.hand_off(&agent), "instructing", "not_delivered");
    stage.check_halted(&view);
    let verdict = &view["verdicts"]["instruction"];
    assert_eq!((&verdict["verdict"], &verdict["reason"]), (&json!("not_delivered"), &json!("draft")));
    assert!(stage.screen(&pane).contains("half a thought"), "the draft stands where it was");
    assert_eq!(stage.typed(&agent), (0, 1, 0));
    stage.tmux(&["send-keys", "-t", &pane, "C-u"]);
    stage.until("the draft is gone", || !stage.screen(&pane).contains("half a thought"));
    retry(&stage, id_of(&view));
    stage.check_done(&stage.until_step(id_of(&view), "done"));
}

#[test]
fn agent_failed_and_a_retry_instructs_anew_for_the_same_path() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("fail_turn");
    let view = stage.until_failed(&stage.hand_off(&agent), "writing", "agent_failed");
    stage.check_halted(&view);
    stage.faults("");
    retry(&stage, id_of(&view));
    let done = stage.until_step(id_of(&view), "done");
    assert_eq!(done["file_path"], view["file_path"]);
    assert_eq!(stage.typed(&agent), (2, 1, 0), "a new instruction, for the first one failed for certain");
    assert_eq!(stage.views("handoffs").len(), 1);
    stage.check_once();
}

#[test]
fn an_agent_that_dies_while_it_writes() {
    let stage = Stage::new();
    let faults = "prompt: die_at=prompt\nturn: die_at=turn\nhalf: die_at=write\nwhole: die_at=stop";
    let agents = stage.agents(&["prompt", "turn", "half", "whole"]);
    stage.faults(faults);
    let handoffs: Vec<String> = agents.iter().map(|agent| stage.hand_off(agent)).collect();
    for (at, id) in handoffs.iter().enumerate() {
        let step = if at == 0 { "instructing" } else { "writing" };
        let view = stage.until_failed(id, step, "agent_ended");
        stage.check_failure(&view);
        assert!(view["recorded_at"].is_null() && view["successor_id"].is_null());
        assert_eq!(stage.typed(&agents[at]), (1, 1, 0));
    }
    stage.faults("");
    assert_eq!(refused(&stage, "handoff_retry", &handoffs[0]), (400, "not_active".into()));
    retry(&stage, &handoffs[1]);
    stage.until("a retry without a document fails again", || stage.errors_of(&handoffs[1]).len() == 2);
    // This one had written all of it before it died.
    retry(&stage, &handoffs[3]);
    stage.check_done(&stage.until_step(&handoffs[3], "done"));
}

#[test]
fn a_pane_that_is_closed_while_the_document_is_written() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("slow_turn=20000");
    let id = stage.hand_off(&agent);
    stage.until_step(&id, "writing");
    stage.tmux(&["kill-pane", "-t", &pane_of(&stage, &agent)]);
    let view = stage.until_step(&id, "failed");
    let code = view["error"]["code"].as_str().expect("a code");
    assert!(["agent_ended", "pane_gone"].contains(&code), "{view:#}");
    stage.check_failure(&view);
    stage.until("its process is gone", || stage.processes(&agent).is_empty());
}

#[test]
fn stop_never_came_and_the_document_is_accepted() {
    let stage = Stage::with_config("[limits]\nwriting = \"2s\"\n");
    let agent = stage.agent("dev");
    stage.faults("never_stops");
    let view = stage.until_failed(&stage.hand_off(&agent), "writing", "stop_never_came");
    stage.check_halted(&view);
    // Escape ends the turn, and no event tells of it.
    let pane = pane_of(&stage, &agent);
    stage.tmux(&["send-keys", "-t", &pane, "Escape"]);
    stage.until("the turn is over", || stage.screen(&pane).contains("Interrupted"));
    stage.faults("");
    let accepted = stage.granted(&json!({"kind": "handoff_accept", "handoff_id": id_of(&view)}));
    assert_eq!(accepted, json!({"status": "accepted", "handoff_id": id_of(&view)}));
    let done = stage.until_step(id_of(&view), "done");
    stage.check_done(&done);
    assert_eq!(refused(&stage, "handoff_accept", id_of(&view)), (409, "already_ended".into()));
}

#[test]
fn a_turn_that_was_broken_off_without_a_word_can_be_retried() {
    let stage = Stage::with_config("[limits]\nwriting = \"4s\"\n");
    let agent = stage.agent("dev");
    stage.faults("interrupt");
    let view = stage.until_failed(&stage.hand_off(&agent), "writing", "stop_never_came");
    stage.check_halted(&view);
    stage.faults("");
    retry(&stage, id_of(&view));
    let done = stage.until_step(id_of(&view), "done");
    assert_eq!(stage.typed(&agent), (2, 1, 0), "the document was not there: a new instruction");
    assert_eq!(done["file_path"], view["file_path"]);
    stage.check_once();
}

#[test]
fn the_own_priming_of_an_agent_is_no_part_of_its_handoff() {
    let stage = Stage::new();
    stage.persona("dev");
    stage.persona("odd");
    stage.faults("odd: fail_priming");
    let created: Vec<Value> = ["dev", "odd"]
        .iter()
        .map(|slug| stage.granted(&json!({"kind": "agent_create", "persona_slug": slug})))
        .collect();
    let agent_of = |at: usize| created[at]["agent_id"].as_str().expect("an id");
    let handoffs: Vec<String> = (0..2).map(|at| stage.hand_off(agent_of(at))).collect();
    let error = stage.wait_for("the priming's failure is told", || stage.errors().pop());
    assert_eq!((&error["code"], &error["agent_id"]), (&json!("priming_failed"), &json!(agent_of(1))), "{error}");
    assert_eq!(error["handoff_id"], Value::Null, "it is the agent's failure, not the handoff's: {error}");
    stage.faults("");
    for (at, id) in handoffs.iter().enumerate() {
        let done = stage.until_step(id, "done");
        stage.check_done(&done);
        let primings = stage.journal().into_iter().filter(|line| line["purpose"] == "priming");
        let own: Vec<Value> = primings.filter(|line| line["agent_id"] == agent_of(at)).collect();
        assert_eq!((own.len(), &own[0]["handoff_id"]), (1, &Value::Null), "{own:?}");
    }
    assert_eq!(stage.errors().len(), 1);
}

#[test]
fn a_document_is_accepted_while_it_is_waited_for() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("slow_turn=3000,write_never");
    let id = stage.hand_off(&agent);
    let view = stage.until_step(&id, "writing");
    assert_eq!(refused(&stage, "handoff_accept", &id), (409, "document_missing".into()));
    assert_eq!(stage.handoff_view(&id)["step"], "writing", "a refusal changes nothing");
    std::fs::write(view["file_path"].as_str().expect("a path"), "# Handoff\n\nBy hand.\n").expect("written");
    stage.faults("");
    stage.granted(&json!({"kind": "handoff_accept", "handoff_id": id}));
    let done = stage.until_step(&id, "done");
    stage.check_done(&done);
    let warnings = done["warnings"].as_array().expect("a list");
    let is_section =
        |warning: &&Value| warning.as_str().is_some_and(|text| text.starts_with("the document has no section"));
    assert_eq!(warnings.iter().filter(is_section).count(), 6, "missing sections are warnings: {done:#}");
}

#[test]
fn did_not_exit_and_a_retry_when_it_obeys() {
    let stage = Stage::with_config("[limits]\nending = \"2s\"\n");
    let agent = stage.agent("dev");
    stage.faults("ignore_exit");
    let view = stage.until_failed(&stage.hand_off(&agent), "ending", "did_not_exit");
    stage.check_failure(&view);
    assert!(stage.is_running(&agent) && view["successor_id"].is_null());
    let pid = stage.processes(&agent)[0];
    let message = view["error"]["message"].as_str().expect("a message");
    assert!(message.contains(&pid.to_string()), "the message names the process {pid}: {message}");
    assert_eq!(refused(&stage, "handoff_accept", id_of(&view)), (409, "already_ended".into()));
    stage.faults("");
    retry(&stage, id_of(&view));
    stage.check_done(&stage.until_step(id_of(&view), "done"));
}

#[test]
fn the_end_of_a_session_is_not_the_end_of_the_agent() {
    let stage = Stage::with_config("[limits]\nending = \"5s\"\n");
    let agents = stage.agents(&["short", "long"]);
    stage.faults("short: linger=900\nlong: linger=9000");
    let handoffs: Vec<String> = agents.iter().map(|agent| stage.hand_off(agent)).collect();
    let done = stage.until_step(&handoffs[0], "done");
    stage.check_done(&done);
    let failed = stage.until_failed(&handoffs[1], "ending", "did_not_exit");
    stage.check_failure(&failed);
    assert!(stage.is_running(&agents[1]), "it lives on after its session's end, and nothing is started beside it");
    stage.until("it is gone", || stage.processes(&agents[1]).is_empty());
    stage.until("its end is seen", || stage.agent_view(&agents[1])["state"] == "ended");
    retry(&stage, &handoffs[1]);
    stage.check_done(&stage.until_step(&handoffs[1], "done"));
}

#[test]
fn a_successor_with_a_dialog_is_adopted_when_it_was_answered() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("dialog");
    let view = stage.until_failed(&stage.hand_off(&agent), "starting", "successor_failed");
    stage.check_failure(&view);
    assert!(stage.is_running(successor_of(&view)), "it is left as it is");
    stage.tmux(&["send-keys", "-t", &pane_of(&stage, successor_of(&view)), "Enter"]);
    stage.faults("");
    retry(&stage, id_of(&view));
    let done = stage.until_step(id_of(&view), "done");
    assert_eq!(done["successor_id"], view["successor_id"], "no second one is started");
    stage.check_done(&done);
}

#[test]
fn a_successor_that_is_too_slow_is_adopted_by_a_retry() {
    let stage = Stage::with_config("[limits]\nstarting = \"4s\"\n");
    let agent = stage.agent("dev");
    stage.faults("start_slow=7000");
    let view = stage.until_failed(&stage.hand_off(&agent), "starting", "successor_failed");
    stage.check_failure(&view);
    let successor = successor_of(&view).to_owned();
    assert!(stage.is_running(&successor));
    stage.until("it is ready after all", || !stage.screen(&pane_of(&stage, &successor)).contains("Starting"));
    stage.faults("");
    retry(&stage, id_of(&view));
    let done = stage.until_step(id_of(&view), "done");
    assert_eq!(done["successor_id"], successor.as_str());
    stage.check_done(&done);
    assert_eq!(stage.views("agents").len(), 2);
}

/// A handoff whose successor's priming fails, and which answers a plain retry with doubt.
fn failed_priming(stage: &Stage) -> Value {
    let agent = stage.agent("dev");
    stage.faults("fail_priming");
    let view = stage.until_failed(&stage.hand_off(&agent), "priming", "priming_failed");
    stage.check_failure(&view);
    let successor = successor_of(&view);
    assert!(stage.is_running(successor));
    assert_eq!(stage.typed(successor), (0, 1, 0), "no briefing without a priming");
    assert_eq!(refused(stage, "handoff_retry", id_of(&view)), (409, "in_doubt".into()));
    stage.faults("");
    view
}

#[test]
fn priming_failed_and_the_operator_says_that_it_arrived() {
    let stage = Stage::new();
    let view = failed_priming(&stage);
    retry_assuming(&stage, id_of(&view), "delivered");
    let done = stage.until_step(id_of(&view), "done");
    assert_eq!(stage.typed(successor_of(&done)), (0, 1, 1));
    stage.check_done(&done);
}

#[test]
fn priming_failed_and_the_operator_says_that_it_did_not_arrive() {
    let stage = Stage::new();
    let view = failed_priming(&stage);
    retry_assuming(&stage, id_of(&view), "not_delivered");
    let done = stage.until_step(id_of(&view), "done");
    assert_eq!(stage.typed(successor_of(&done)), (0, 2, 1), "it is typed anew, under an id of its own");
    assert_ne!(done["verdicts"]["priming"]["delivery_id"], view["verdicts"]["priming"]["delivery_id"]);
    stage.check_once();
}

#[test]
fn a_successor_that_dies_before_its_briefing_gives_way_to_another() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let id = stage.hand_off(&agent);
    stage.until_recorded(&id);
    stage.faults("die_at=turn");
    let view = stage.until_failed(&id, "priming", "agent_ended");
    stage.check_failure(&view);
    stage.faults("");
    retry_or_assume(&stage, &id);
    let done = stage.until_step(&id, "done");
    assert_eq!(done["former_successors"], json!([view["successor_id"]]));
    stage.check_done(&done);
}

fn retry_or_assume(stage: &Stage, id: &str) {
    let answer = stage.ask(&json!({"kind": "handoff_retry", "handoff_id": id}));
    assert_eq!(answer["ok"], true, "a dead successor leaves no doubt: {answer}");
}

#[test]
fn a_briefing_that_meets_a_draft_is_typed_by_a_retry() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let id = stage.hand_off(&agent);
    stage.until_recorded(&id);
    stage.faults("slow_turn=2000");
    stage.until_step(&id, "priming");
    let successor = successor_of(&stage.handoff_view(&id)).to_owned();
    stage.until("it answers its priming", || stage.agent_view(&successor)["state"] == "busy");
    let pane = pane_of(&stage, &successor);
    stage.tmux(&["send-keys", "-t", &pane, "-l", "wait a moment"]);
    let view = stage.until_failed(&id, "briefing", "not_delivered");
    stage.check_failure(&view);
    assert_eq!(view["verdicts"]["briefing"]["reason"], "draft");
    assert_eq!(stage.typed(&successor), (0, 1, 0));
    stage.faults("");
    stage.tmux(&["send-keys", "-t", &pane, "C-u"]);
    stage.until("the draft is gone", || !stage.screen(&pane).contains("wait a moment"));
    retry(&stage, &id);
    stage.check_done(&stage.until_step(&id, "done"));
}

#[test]
fn an_abandoned_handoff_keeps_its_document_and_frees_the_agent() {
    let stage = Stage::with_config("[limits]\nending = \"1s\"\n");
    let agent = stage.agent("dev");
    stage.faults("ignore_exit");
    let id = stage.hand_off(&agent);
    assert_eq!(refused(&stage, "handoff_abandon", &id), (409, "handoff_in_progress".into()));
    let view = stage.until_failed(&id, "ending", "did_not_exit");
    let result = stage.granted(&json!({"kind": "handoff_abandon", "handoff_id": id}));
    assert_eq!(result, json!({"status": "cancelled", "handoff_id": id}));
    let abandoned = stage.until_step(&id, "cancelled");
    assert_eq!((&abandoned["sha256"], &abandoned["injection_prompt"]), (&view["sha256"], &view["injection_prompt"]));
    assert!(Path::new(view["file_path"].as_str().expect("a path")).is_file());
    for kind in ["handoff_retry", "handoff_abandon", "handoff_cancel", "handoff_accept"] {
        assert_eq!(refused(&stage, kind, &id), (409, "already_ended".into()), "{kind}");
    }
    stage.faults("");
    let second = stage.hand_off(&agent);
    let done = stage.until_step(&second, "done");
    assert_ne!(done["file_path"], view["file_path"]);
    assert!(Path::new(view["file_path"].as_str().expect("a path")).is_file(), "documents accumulate");
    assert_eq!(stage.typed(&agent), (2, 1, 0));
    stage.check_once();
}
