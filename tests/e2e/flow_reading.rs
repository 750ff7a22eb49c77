//! The turn in which the successor reads its document: it belongs to the handoff, whatever comes of it.

use super::support::stage::Stage;
use serde_json::{Value, json};

/// A handoff whose successor is primed, and meets these faults in the turn of its briefing.
fn briefed_with(stage: &Stage, faults: &str) -> String {
    let agent = stage.agent("dev");
    let id = stage.hand_off(&agent);
    stage.until_recorded(&id);
    stage.faults("slow_turn=1500");
    stage.until("its skill has arrived", || stage.handoff_view(&id)["verdicts"]["priming"]["verdict"] == "delivered");
    // What is misdone is read again at each Enter, so the turn that runs ends well.
    stage.faults(faults);
    id
}

fn retry(stage: &Stage, id: &str) {
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id}));
}

fn successor_of(view: &Value) -> &str {
    view["successor_id"].as_str().expect("an id")
}

#[test]
fn a_turn_that_fails_is_no_handoff_done_and_a_retry_briefs_again() {
    let stage = Stage::new();
    let id = briefed_with(&stage, "fail_turn");
    let view = stage.until_failed(&id, "reading", "successor_failed");
    stage.check_failure(&view);
    assert!(view["error"]["message"].as_str().is_some_and(|text| text.contains("ended in an error")), "{view:#}");
    assert_eq!((&view["read"], &view["verdicts"]["briefing"]["verdict"]), (&json!("failed"), &json!("delivered")));
    stage.faults("");
    let first = view["verdicts"]["briefing"]["delivery_id"].clone();
    retry(&stage, &id);
    let done = stage.until_step(&id, "done");
    assert_eq!((&done["read"], successor_of(&done)), (&json!("seen"), successor_of(&view)));
    assert_ne!(done["verdicts"]["briefing"]["delivery_id"], first, "it is another delivery");
    assert_eq!(stage.typed(successor_of(&done)), (0, 1, 2), "its skill came once");
}

#[test]
fn a_successor_that_dies_while_it_reads_gives_way_to_another() {
    let stage = Stage::new();
    let id = briefed_with(&stage, "die_at=turn");
    let view = stage.until_failed(&id, "reading", "successor_failed");
    stage.check_failure(&view);
    assert_eq!(view["read"], "failed");
    stage.faults("");
    retry(&stage, &id);
    let done = stage.until_step(&id, "done");
    assert_eq!(done["former_successors"], json!([view["successor_id"]]));
    assert_eq!(done["read"], "seen");
    stage.check_done(&done);
}

#[test]
fn one_that_still_reads_at_the_limit_has_taken_over() {
    let stage = Stage::with_config("[limits]\nreading = \"500ms\"\n");
    let id = briefed_with(&stage, "slow_turn=6000");
    let done = stage.until_step(&id, "done");
    assert_eq!(done["read"], "unseen");
    assert_eq!(stage.agent_view(successor_of(&done))["state"], "busy");
    stage.check_done(&done);
}

#[test]
fn a_turn_that_ends_without_a_word_has_ended_all_the_same() {
    let stage = Stage::new();
    let id = briefed_with(&stage, "interrupt");
    let done = stage.until_step(&id, "done");
    assert_eq!((&done["read"], &done["warnings"]), (&json!("seen"), &json!(["stop_inferred"])), "{done:#}");
    stage.check_done(&done);
}
