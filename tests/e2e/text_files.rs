//! Texts that are too long for a pane, and lie in a file of their own.

use super::support::stage::Stage;
use serde_json::json;
use std::fs;

#[test]
fn a_long_text_whose_file_can_not_be_written_is_refused_for_that_reason() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.until_idle(&agent);
    let folder = stage.home().join("data/personas/dev/texts");
    fs::write(&folder, "in the way").expect("a file in its place");
    let text = "A long line.\n".repeat(8_000);
    let ask = json!({"kind": "agent_send", "agent_id": agent, "text": text});
    let answer = stage.ask(&ask);
    let said = answer["error"].to_string();
    assert!(said.contains("text_file") && said.contains("Free disk space"), "{answer}");
    fs::remove_file(&folder).expect("out of the way");
    stage.granted(&ask);
    assert!(stage.prompts(&agent).iter().any(|prompt| prompt.contains("/texts/")), "{}", stage.story());
}
