//! What a receipt is worth: a CLI may report a prompt and drop it a moment later. Where its transcript tells which
//! prompts were taken, that counts; elsewhere a prompt that somebody has typed into is not believed at once.

use super::flow_rules::{pane_of, type_line, with_profile};
use crate::support::stage::Stage;
use serde_json::{Value, json};

/// A stage whose agents' transcripts prove what was taken.
fn proving() -> Stage {
    with_profile("", "[transcript]\n", "[transcript]\nproves_prompts = true\n")
}

/// The verdict of a text that is sent while the agent has that fault, and what happens then.
fn verdict(stage: &Stage, agent: &str, fault: &str, then: impl FnOnce()) -> Value {
    stage.faults(fault);
    let before = stage.prompts(agent).len();
    let id = stage.send(&json!({"kind": "agent_send", "agent_id": agent, "text": "Look at the parser."}));
    stage.until("it is reported", || stage.prompts(agent).len() > before);
    then();
    stage.result(&id)["result"].clone()
}

#[test]
fn a_prompt_that_was_reported_and_then_dropped_is_not_called_delivered() {
    let stage = proving();
    let agent = stage.agent("dev");
    let pane = pane_of(&stage, &agent);
    let dropped = verdict(&stage, &agent, "drop_prompt", || {
        stage.faults("");
        type_line(&stage, &pane, "my own words");
    });
    assert_eq!((&dropped["verdict"], &dropped["reason"]), (&json!("unconfirmed"), &json!("not_taken")), "{dropped}");
    stage.until_idle(&agent);
    let taken = verdict(&stage, &agent, "transcript_lag=300", || {});
    assert_eq!((&taken["verdict"], &taken["reason"]), (&json!("delivered"), &Value::Null), "{taken}");
    stage.until_idle(&agent);
    let done = stage.until_step(&stage.hand_off(&agent), "done");
    stage.check_done(&done);
}

#[test]
fn without_a_transcript_the_turn_that_answers_is_the_proof() {
    let stage = proving();
    stage.faults("no_transcript");
    let agent = stage.agent("dev");
    let done = stage.until_step(&stage.hand_off(&agent), "done");
    stage.check_done(&done);
}

#[test]
fn a_priming_of_which_no_hook_tells_is_told_as_soon_as_any_other_text() {
    let stage = with_profile("[limits]\ninstructing = \"3s\"\n", "text = \"/prompt\"", "text = \"/misspelt\"");
    stage.persona("dev");
    stage.granted(&json!({"kind": "agent_create", "persona_slug": "dev"}));
    stage.until("the operator is told", || !stage.errors().is_empty());
    let error = stage.errors()[0].clone();
    assert_eq!(error["code"], "priming_failed", "{error:#}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("no_receipt") && message.contains("reported no prompt"), "{error:#}");
}
