//! Texts of which it is not known whether they arrived, and handoffs that a person stops.

use super::support::stage::Stage;
use serde_json::{Value, json};

/// Long enough for a text to be typed on a loaded machine, short enough to wait for.
const SHORT: &str = "[limits]\ninstructing = \"5s\"\n";

fn cancel(stage: &Stage, id: &str) -> Value {
    stage.ask(&json!({"kind": "handoff_cancel", "handoff_id": id}))
}

/// A handoff that was cancelled in that step: told apart from failed, and the agent is free for another one.
fn check_cancelled(stage: &Stage, agent: &str, id: &str, step: &str) {
    let answer = cancel(stage, id);
    assert_eq!(answer["result"], json!({"status": "cancelled", "handoff_id": id}), "{answer}\n{}", stage.story());
    let view = stage.until_step(id, "cancelled");
    let steps = stage.steps_of(id);
    assert_eq!(steps.last().map(String::as_str), Some("cancelled"));
    assert_eq!(steps[steps.len() - 2], step, "{steps:?}");
    assert!(view["error"].is_null() && view["deadline"].is_null() && view["recorded_at"].is_null(), "{view:#}");
    assert!(stage.errors().is_empty() && stage.lines_of(id, "handoff.failed").is_empty());
    assert!(stage.is_running(agent) && stage.agent_view(agent)["handoff_id"].is_null());
    let again = cancel(stage, id);
    assert_eq!((&again["status"], &again["error"]["code"]), (&json!(409), &json!("already_ended")));
}

#[test]
fn cancelled_while_the_agent_is_waited_for() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("slow_turn=2000");
    stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": "work"}));
    let id = stage.hand_off(&agent);
    stage.until_step(&id, "waiting");
    check_cancelled(&stage, &agent, &id, "waiting");
    stage.faults("");
    stage.until("the turn ends", || stage.agent_view(&agent)["state"] == "idle");
    assert_eq!(stage.typed(&agent), (0, 1, 0), "nothing was typed");
    stage.check_done(&stage.until_step(&stage.hand_off(&agent), "done"));
}

#[test]
fn cancelled_between_the_instruction_and_its_receipt() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("slow_hooks=2500");
    let id = stage.hand_off(&agent);
    stage.until("the instruction is submitted", || stage.typed(&agent).0 == 1);
    check_cancelled(&stage, &agent, &id, "instructing");
    stage.until("the late events have come", || {
        stage
            .journal()
            .iter()
            .filter(|line| line["agent_id"] == agent.as_str())
            .filter(|line| line["state"] == "busy")
            .count()
            == 2
    });
    stage.until("the late Stop has come", || stage.agent_view(&agent)["state"] == "idle");
    assert_eq!(stage.handoff_view(&id)["step"], "cancelled");
    stage.faults("");
    let second = stage.until_step(&stage.hand_off(&agent), "done");
    assert_eq!(stage.typed(&agent), (2, 1, 0));
    assert!(second["error"].is_null());
    stage.check_once();
}

#[test]
fn cancelled_while_the_document_is_written() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("slow_turn=1500");
    let id = stage.hand_off(&agent);
    stage.until_step(&id, "writing");
    check_cancelled(&stage, &agent, &id, "writing");
    stage.faults("");
    stage.until("the turn ends", || stage.agent_view(&agent)["state"] == "idle");
    assert_eq!(stage.handoff_view(&id)["step"], "cancelled", "its Stop comes too late to matter");
    stage.until_step(&stage.hand_off(&agent), "done");
    stage.check_once();
}

#[test]
fn too_late_to_cancel_from_ending_on() {
    let stage = Stage::with_config("[limits]\nending = \"8s\"\n");
    let agent = stage.agent("dev");
    stage.faults("dev: linger=1500");
    let id = stage.hand_off(&agent);
    stage.until_step(&id, "ending");
    let answer = cancel(&stage, &id);
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(409), &json!("too_late")), "{answer}");
    stage.check_done(&stage.until_step(&id, "done"));
    let answer = cancel(&stage, &id);
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(409), &json!("already_ended")), "{answer}");
}

/// A handoff whose instruction has no receipt in time.
fn in_doubt(stage: &Stage, fault: &str) -> (String, Value) {
    let agent = stage.agent("dev");
    stage.faults(fault);
    let view = stage.until_failed(&stage.hand_off(&agent), "instructing", "unconfirmed");
    stage.check_halted(&view);
    let verdict = &view["verdicts"]["instruction"];
    assert_eq!((&verdict["verdict"], &verdict["reason"]), (&json!("unconfirmed"), &json!("no_receipt")), "{view:#}");
    assert_eq!(stage.typed(&agent).0, 1);
    let plain = stage.refused(&json!({"kind": "handoff_retry", "handoff_id": view["handoff_id"]}));
    assert_eq!((plain.0, plain.1.as_str()), (409, "in_doubt"));
    (agent, view)
}

fn assume(stage: &Stage, view: &Value, assume: &str) -> Value {
    let id = view["handoff_id"].as_str().expect("an id");
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id, "assume": assume}));
    stage.until_step(id, "done")
}

#[test]
fn no_receipt_and_the_operator_says_that_it_arrived() {
    let stage = Stage::with_config(SHORT);
    let (agent, view) = in_doubt(&stage, "dev: hooks_off");
    let path = view["file_path"].as_str().expect("a path").to_owned();
    stage.until("the document is there", || {
        std::fs::read_to_string(&path).is_ok_and(|text| text.contains("Next steps"))
    });
    stage.faults("");
    let done = assume(&stage, &view, "delivered");
    assert_eq!(stage.typed(&agent), (1, 1, 0), "nothing is typed again");
    assert_eq!(done["file_path"], view["file_path"]);
    stage.check_once();
}

#[test]
fn no_receipt_and_the_operator_says_that_it_did_not_arrive() {
    let stage = Stage::with_config(SHORT);
    let (agent, view) = in_doubt(&stage, "dev: hooks_off,write_never");
    stage.faults("");
    let done = assume(&stage, &view, "not_delivered");
    assert_eq!(stage.typed(&agent), (2, 1, 0));
    assert_ne!(done["verdicts"]["instruction"]["delivery_id"], view["verdicts"]["instruction"]["delivery_id"]);
    assert_eq!(done["file_path"], view["file_path"]);
    stage.check_once();
}

#[test]
fn a_receipt_that_comes_too_late_does_not_settle_the_doubt_by_itself() {
    let stage = Stage::with_config(SHORT);
    let (agent, view) = in_doubt(&stage, "dev: slow_hooks=8000,slow_turn=200");
    stage.faults("");
    stage.until("the late events have come", || {
        let lines = stage.journal();
        lines.iter().filter(|line| line["agent_id"] == agent.as_str() && line["state"] == "idle").count() == 3
    });
    assert_eq!(stage.handoff_view(view["handoff_id"].as_str().expect("an id"))["step"], "failed");
    let done = assume(&stage, &view, "delivered");
    assert_eq!(stage.typed(&agent), (1, 1, 0));
    assert!(done["bytes"].as_u64() > Some(0));
    stage.check_once();
}

/// On a loaded machine a CLI has taken more than ten seconds to draw what was typed.
#[test]
fn a_text_that_is_seen_late_is_submitted_all_the_same() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("slow_paste=12000");
    let answer = stage.ask(&json!({"kind": "agent_send", "agent_id": agent, "text": "Look at the parser."}));
    assert_eq!(answer["result"]["verdict"], "delivered", "{answer}");
    assert_eq!(stage.prompts(&agent).len(), 2, "the skill and the text");
}

#[test]
fn an_enter_that_is_never_taken_leaves_doubt() {
    // Longer than a composer that is not empty is waited for.
    let stage = Stage::with_config("[limits]\ninstructing = \"5s\"\n");
    let agent = stage.agent("dev");
    stage.faults("swallow_enter=1000");
    let view = stage.until_failed(&stage.hand_off(&agent), "instructing", "unconfirmed");
    stage.check_halted(&view);
    assert_eq!(stage.typed(&agent).0, 0, "it was never submitted");
    stage.faults("");
    let pane = stage.agent_view(&agent)["pane"].as_str().expect("a pane").to_owned();
    stage.tmux(&["send-keys", "-N", "2000", "-t", &pane, "BSpace"]);
    stage.until("the composer is empty", || !stage.screen(&pane).contains("handoff document"));
    let done = assume(&stage, &view, "not_delivered");
    stage.check_done(&done);
}

#[test]
fn a_briefing_without_a_receipt_is_settled_by_the_operator() {
    let stage = Stage::with_config("[limits]\nbriefing = \"5s\"\n");
    let agent = stage.agent("dev");
    let id = stage.hand_off(&agent);
    stage.until_step(&id, "priming");
    let successor = stage.handoff_view(&id)["successor_id"].as_str().expect("an id").to_owned();
    // The turn of the priming has begun: from the next text on no event is reported.
    stage.until("it was primed", || stage.lines_of(&id, "delivery").len() == 2);
    stage.until_step(&id, "briefing");
    stage.faults("hooks_off");
    let view = stage.wait_for("it ends", || {
        let view = stage.handoff_view(&id);
        ["failed", "done"].iter().any(|end| view["step"] == *end).then_some(view)
    });
    if view["step"] == "done" {
        return; // The briefing was faster than the fault: nothing is in doubt.
    }
    assert_eq!((&view["error"]["step"], &view["error"]["code"]), (&json!("briefing"), &json!("unconfirmed")));
    stage.check_failure(&view);
    let done = assume(&stage, &view, "delivered");
    assert_eq!(stage.typed(&successor), (0, 1, 1));
    assert_eq!(done["step"], "done");
    stage.check_once();
}
