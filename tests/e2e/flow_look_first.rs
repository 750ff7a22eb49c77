//! What is taken up again is looked for before anything else is judged: what an effect needs may be gone by then, and
//! the effect have happened.

use super::support::stage::Stage;
use nix::sys::signal::Signal;
use serde_json::json;
use std::fs;

#[test]
fn a_successor_that_runs_is_adopted_though_nothing_could_be_started_any_more() {
    let stage = Stage::with_config("[limits]\nstarting = \"4s\"\n");
    let agent = stage.agent("dev");
    stage.faults("start_slow=7000");
    let view = stage.until_failed(&stage.hand_off(&agent), "starting", "successor_failed");
    let (handoff, successor) = (view["handoff_id"].as_str().expect("an id"), view["successor_id"].clone());
    let pane = stage.agent_view(successor.as_str().expect("an id"))["pane"].as_str().expect("a pane").to_owned();
    stage.until("it is ready after all", || !stage.screen(&pane).contains("Starting"));
    stage.faults("");
    // The folder that it was started in is away, as a work tree may be.
    let (folder, away) = (stage.work_dir(), stage.work_dir().with_extension("away"));
    fs::rename(&folder, &away).expect("moved away");
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": handoff}));
    let done = stage.until_step(handoff, "done");
    fs::rename(&away, &folder).expect("moved back");
    assert_eq!(done["successor_id"], successor);
    assert_eq!(stage.views("agents").len(), 2, "a second successor was begun");
}

#[test]
fn a_text_that_stands_in_the_composer_is_never_said_not_to_have_been_typed() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let pane = stage.agent_view(&agent)["pane"].as_str().expect("a pane").to_owned();
    stage.faults("swallow_enter=1000");
    let text = "A line of a long text.\n".repeat(4000);
    let asked = stage.send(&json!({"kind": "agent_send", "agent_id": agent, "text": text}));
    stage.until("it stands in the composer", || stage.screen(&pane).contains("/texts/"));
    stage.end_sidecar(Signal::SIGKILL);
    // What it wrote is gone, and can't be written again.
    let texts = stage.home().join("data/personas/dev/texts");
    fs::remove_dir_all(&texts).expect("removed");
    fs::write(&texts, "in the way").expect("a file");
    stage.start_sidecar();
    let answer = stage.result(&asked);
    assert_eq!(answer["result"]["verdict"], "unconfirmed", "{answer}");
}
