//! Agents that misbehave in ways that a handoff must carry on through, and documents that it must not take.

use super::support::stage::Stage;
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Fault lines that are each meant for one persona only.
fn for_each(faults: &[(&str, &str)]) -> String {
    faults.iter().map(|(slug, fault)| format!("{slug}: {fault}\n")).collect()
}

/// Agents of these personas, each handed off under its fault at the same time; gives the handoffs.
fn hand_off_all(stage: &Stage, faults: &[(&str, &str)]) -> Vec<String> {
    let slugs: Vec<&str> = faults.iter().map(|(slug, _)| *slug).collect();
    let agents = stage.agents(&slugs);
    stage.faults(&for_each(faults));
    agents.iter().map(|agent| stage.hand_off(agent)).collect()
}

/// Every one of them is carried through, and each text was typed once.
fn all_done(faults: &[(&str, &str)]) -> (Stage, Vec<Value>) {
    let stage = Stage::new();
    let views: Vec<Value> = hand_off_all(&stage, faults).iter().map(|id| stage.until_step(id, "done")).collect();
    views.iter().for_each(|view| stage.check_done(view));
    assert!(stage.errors().is_empty());
    (stage, views)
}

#[test]
fn odd_composers_are_no_obstacle() {
    all_done(&[
        ("collapsing", "collapse"),
        ("wrapping", "wrap"),
        ("haunted", "ghost"),
        ("plain", "no_bracket"),
        ("deaf", "swallow_enter=1"),
    ]);
}

#[test]
fn odd_hooks_are_no_obstacle() {
    let (stage, views) = all_done(&[
        ("double", "stop_twice"),
        ("cleared", "end_by_clear"),
        ("paused", "background"),
        ("slow", "slow_hooks=700"),
        ("twice", "hooks_twice"),
        ("queued", "hooks_twice,queue"),
        ("nested", "hooks_twice,nested"),
        ("continued", "stop_early"),
    ]);
    let paused = &views[2];
    let steps = stage.steps_of(paused["handoff_id"].as_str().expect("an id"));
    assert_eq!(steps.iter().filter(|step| *step == "writing").count(), 1, "a pause is no end of the turn");
}

#[test]
fn events_of_a_nested_copy_do_not_count() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("nested");
    let view = stage.until_step(&stage.hand_off(&agent), "done");
    stage.check_done(&view);
    assert_eq!(stage.views("agents").len(), 2, "a nested copy is no agent of its own: {}", stage.story());
}

#[test]
fn a_prompt_of_the_user_before_ours_does_not_end_our_turn() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("dev: queue,slow_turn=600");
    let id = stage.hand_off(&agent);
    let view = stage.until_step(&id, "done");
    assert_eq!(stage.typed(&agent), (1, 1, 0));
    assert!(view["warnings"].as_array().is_some_and(Vec::is_empty), "{view:#}");
    stage.check_once();
}

#[test]
fn now_types_into_a_running_turn_and_waits_for_the_next_one() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("slow_turn=2500");
    let pane = stage.agent_view(&agent)["pane"].as_str().expect("a pane").to_owned();
    stage.tmux(&["send-keys", "-t", &pane, "-l", "a long piece of work"]);
    stage.until("it is seen", || stage.screen(&pane).contains("a long piece of work"));
    stage.tmux(&["send-keys", "-t", &pane, "Enter"]);
    stage.until("it works", || stage.agent_view(&agent)["state"] == "busy");
    let id = stage.hand_off_with(&agent, &json!({"now": true}));
    stage.until("the instruction has its receipt", || stage.steps_of(&id).iter().any(|step| step == "writing"));
    assert!(stage.screen(&pane).contains("Working"), "{}", stage.screen(&pane));
    stage.faults("");
    let view = stage.until_step(&id, "done");
    stage.check_done(&view);
    assert!(view["bytes"].as_u64() > Some(0), "the first Stop was another turn's: the document was not there yet");
}

#[test]
fn without_now_the_running_turn_is_waited_for() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("slow_turn=1500");
    let pane = stage.agent_view(&agent)["pane"].as_str().expect("a pane").to_owned();
    stage.tmux(&["send-keys", "-t", &pane, "-l", "a long piece of work"]);
    stage.until("it is seen", || stage.screen(&pane).contains("a long piece of work"));
    stage.tmux(&["send-keys", "-t", &pane, "Enter"]);
    stage.until("it works", || stage.agent_view(&agent)["state"] == "busy");
    let id = stage.hand_off(&agent);
    stage.until_step(&id, "waiting");
    stage.faults("");
    let view = stage.until_step(&id, "done");
    stage.check_done(&view);
    let document = fs::read_to_string(view["file_path"].as_str().expect("a path")).expect("the document");
    assert!(document.contains("a long piece of work"), "{document}");
}

#[test]
fn documents_that_are_none_are_not_taken() {
    let stage = Stage::new();
    let faults = [
        ("absent", "write_never"),
        ("late", "write_late=2000"),
        ("empty", "write_empty"),
        ("blank", "write_space"),
        ("linked", "write_link"),
        ("folder", "write_dir"),
        ("binary", "write_binary"),
    ];
    let codes = [
        "document_missing",
        "document_missing",
        "document_empty",
        "document_empty",
        "document_unsafe",
        "document_unsafe",
        "document_unsafe",
    ];
    let handoffs = hand_off_all(&stage, &faults);
    let mut late = Value::Null;
    for ((id, code), (slug, _)) in handoffs.iter().zip(codes).zip(faults) {
        let view = stage.until_failed(id, "writing", code);
        stage.check_halted(&view);
        assert!(view["recorded_at"].is_null());
        if slug == "late" {
            late = view;
        }
    }
    assert_eq!(stage.errors().len(), faults.len());
    // The late one is there by now: a retry takes it, and types nothing again.
    let id = late["handoff_id"].as_str().expect("an id");
    let path = late["file_path"].as_str().expect("a path");
    stage.until("it is written", || fs::read_to_string(path).is_ok_and(|text| text.contains("Next steps")));
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id}));
    let done = stage.until_step(id, "done");
    stage.check_done(&done);
    assert_eq!(stage.errors_of(id).len(), 1, "the error's file stays until it is dismissed");
    assert!(done["error"].is_null());
}

#[test]
fn a_document_that_is_still_being_written_is_waited_for() {
    let stage = Stage::new();
    let handoffs = hand_off_all(&stage, &[("half", "write_half")]);
    let view = stage.until_step(&handoffs[0], "done");
    stage.check_done(&view);
    let document = fs::read_to_string(view["file_path"].as_str().expect("a path")).expect("the document");
    assert!(document.contains("## Next steps") && view["bytes"] == document.len());
    assert_eq!(view["warnings"], json!([]));
}

#[test]
fn a_document_that_never_stops_changing_is_not_taken() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let id = stage.hand_off(&agent);
    let path = stage.handoff_view(&id)["file_path"].as_str().expect("a path").to_owned();
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let writer = std::thread::spawn(move || {
        while !flag.load(Ordering::SeqCst) {
            if let Ok(mut file) = OpenOptions::new().append(true).open(&path) {
                file.write_all(b"more\n").expect("written");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let view = stage.until_failed(&id, "writing", "document_unsafe");
    stop.store(true, Ordering::SeqCst);
    writer.join().expect("it ends");
    stage.check_halted(&view);
    // It is quiet now: a retry takes it.
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id}));
    stage.check_done(&stage.until_step(&id, "done"));
}

#[test]
fn three_handoffs_at_once_do_not_touch_each_other() {
    let stage = Stage::new();
    let handoffs = hand_off_all(&stage, &[("one", "slow_turn=150"), ("two", "fail_turn"), ("three", "slow_turn=300")]);
    let views: Vec<Value> = handoffs.iter().map(|id| stage.until_ended(id)).collect();
    stage.check_done(&views[0]);
    stage.check_done(&views[2]);
    assert_eq!((&views[1]["error"]["code"], &views[1]["error"]["step"]), (&json!("agent_failed"), &json!("writing")));
    stage.check_halted(&views[1]);
    assert_eq!(stage.errors().len(), 1);
    for (view, id) in views.iter().zip(&handoffs) {
        let agent = view["agent_id"].as_str().expect("an id");
        let own = stage.lines_of(id, "delivery");
        let others = own.iter().filter(|line| line["agent_id"] != agent && line["agent_id"] != view["successor_id"]);
        assert_eq!(others.count(), 0, "{own:#?}");
        let path = view["file_path"].as_str().expect("a path");
        let texts = stage.prompts(agent).join("\n");
        assert!(texts.contains(path), "{texts}");
        let foreign = views.iter().filter(|other| other["handoff_id"] != view["handoff_id"]);
        for other in foreign {
            assert!(!texts.contains(other["file_path"].as_str().expect("a path")));
        }
    }
}

#[test]
fn a_document_that_was_changed_after_the_record_is_said_to_be_so() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("dev: linger=1500");
    let id = stage.hand_off(&agent);
    let view = stage.until_recorded(&id);
    let mut file = OpenOptions::new().append(true).open(view["file_path"].as_str().expect("a path")).expect("open");
    file.write_all(b"\nchanged by hand\n").expect("written");
    let done = stage.until_step(&id, "done");
    assert_eq!(done["warnings"].as_array().map(Vec::len), Some(1), "{done:#}");
    assert_eq!((&done["sha256"], &done["bytes"]), (&view["sha256"], &view["bytes"]));
    let texts = stage.prompts(done["successor_id"].as_str().expect("an id"));
    assert!(texts[1].contains("was changed after it was recorded"), "{}", texts[1]);
}

/// A person has tidied up, say with `git clean`. Nobody else has the text any more.
#[test]
fn a_document_that_is_gone_after_the_record_is_written_again_before_the_briefing() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("dev: linger=1500");
    let id = stage.hand_off(&agent);
    let view = stage.until_recorded(&id);
    let path = view["file_path"].as_str().expect("a path");
    let text = fs::read_to_string(path).expect("a document");
    fs::remove_dir_all(std::path::Path::new(path).parent().expect("a folder")).expect("removed");
    let done = stage.until_step(&id, "done");
    assert_eq!(fs::read_to_string(path).expect("it is there again"), text);
    let warnings = done["warnings"].as_array().expect("warnings");
    let says_so = |warning: &Value| warning.as_str().is_some_and(|said| said.contains("wrote the recorded text again"));
    assert!(warnings.len() == 1 && says_so(&warnings[0]), "{done:#}");
    let texts = stage.prompts(done["successor_id"].as_str().expect("an id"));
    assert!(!texts[1].contains("was changed"), "{}", texts[1]);
}

#[test]
fn a_dialog_within_a_handoff_is_told_and_waited_for() {
    let (stage, told) = Stage::with_notices();
    let agent = stage.agent("dev");
    stage.faults("dialog_on_write");
    let id = stage.hand_off(&agent);
    stage.until("it is blocked", || stage.agent_view(&agent)["state"] == "blocked");
    let notice = stage.wait_for("the operator is told", || {
        let text = fs::read_to_string(&told).unwrap_or_default();
        text.lines().find_map(|line| serde_json::from_str::<Value>(line).ok())
    });
    assert_eq!((&notice["handoff_id"], &notice["agent_id"]), (&json!(id), &json!(agent)), "{notice}");
    assert_eq!(stage.handoff_view(&id)["step"], "writing");
    assert!(stage.errors().is_empty(), "a dialog is no failure");
    let pane = stage.agent_view(&agent)["pane"].as_str().expect("a pane").to_owned();
    stage.tmux(&["send-keys", "-t", &pane, "Enter"]);
    stage.check_done(&stage.until_step(&id, "done"));
}

#[test]
fn an_agent_whose_dialog_was_answered_counts_as_busy_although_no_event_says_so() {
    let (stage, told) = Stage::with_notices();
    let agent = stage.agent("dev");
    stage.faults("dialog_on_write,never_stops");
    let id = stage.hand_off(&agent);
    let state = || stage.agent_view(&agent)["state"].clone();
    stage.until("it is blocked", || state() == "blocked");
    // Until a look has found the dialog.
    std::thread::sleep(Duration::from_secs(10));
    assert_eq!(state(), "blocked");
    let pane = stage.agent_view(&agent)["pane"].as_str().expect("a pane").to_owned();
    stage.tmux(&["send-keys", "-t", &pane, "Enter"]);
    stage.until("it is at work", || state() == "busy");
    assert_eq!(stage.handoff_view(&id)["step"], "writing");
    let text = fs::read_to_string(&told).unwrap_or_default();
    assert_eq!(text.lines().filter(|line| line.contains("agent_blocked")).count(), 1, "{text}");
}
