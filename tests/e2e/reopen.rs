//! The agent that was handed off can be asked: its conversation is read, and its session is opened again.

use super::support::stage::Stage;
use super::support::stage_files::processes_with;
use serde_json::{Value, json};
use std::fs;

/// A stage whose demo agents can be opened again.
fn stage() -> Stage {
    let stage = Stage::without_sidecar("");
    let profiles = stage.home().join("data/profiles");
    fs::create_dir_all(&profiles).expect("a folder");
    let resume = json!([env!("CARGO_BIN_EXE_tasuki"), "demo-agent", "--session", "{session_id}"]);
    let profile = format!("resume = {resume}\n{}", include_str!("../../data/profiles/demo.toml"));
    fs::write(profiles.join("demo.toml"), profile).expect("written");
    stage.start_sidecar();
    stage
}

/// What a command prints.
fn printed(stage: &Stage, args: &[&str]) -> String {
    let output = stage.command(args).output().expect("it runs");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The live sessions that were opened again.
fn reopened(stage: &Stage) -> Vec<Value> {
    let views = stage.views("agents").into_iter();
    views.filter(|view| view["reopened"] == true && view["ended_at"].is_null()).collect()
}

#[test]
fn the_conversation_is_read_and_the_session_opened_beside_the_successor_once() {
    let stage = stage();
    let agent = stage.agent("dev");
    let id = stage.hand_off(&agent);
    let done = stage.until_step(&id, "done");
    let successor = done["successor_id"].as_str().expect("a successor").to_owned();
    stage.until_idle(&successor);
    let short = &id[..8];

    let session_id = stage.agent_view(&agent)["session_id"].as_str().expect("an id").to_owned();
    let command = done["resume_command"].as_str().expect("a command");
    assert!(command.ends_with(&format!("demo-agent --session {session_id}")), "{command}");
    assert!(printed(&stage, &["handoffs", "show", short]).contains(command));
    assert!(stage.prompts(&successor).iter().any(|prompt| prompt.contains(&format!(" read {short} --find"))));
    let said: Value = serde_json::from_str(&printed(&stage, &["read", short, "--json"])).expect("JSON");
    let messages = said["messages"].as_array().expect("messages");
    assert_eq!((&said["agent_id"], &messages[messages.len() - 1]["number"]), (&json!(agent), &json!(1)));
    let found = printed(&stage, &["read", &agent, "--find", "document WRITE handoff", "--last", "1"]);
    assert!(found.contains("handoff document") && found.contains("] user"), "{found}");

    // Killed in the middle of it, the sidecar starts no second one.
    let current = stage.tmux(&["list-windows", "-a", "-F", "#{session_name} #{window_active} #{window_id}"]);
    let request = stage.send(&json!({"kind": "handoff_reopen", "handoff_id": id}));
    stage.crash_and_restart();
    let answer = stage.result(&request);
    assert_eq!((&answer["status"], &answer["result"]["status"]), (&json!(200), &json!("reopened")), "{answer}");
    let new = answer["result"]["agent_id"].as_str().expect("an id").to_owned();
    let pane = answer["result"]["pane"].as_str().expect("a pane").to_owned();
    let all = reopened(&stage);
    let [view] = &all[..] else { panic!("one: {all:?}") };
    assert_eq!((&view["agent_id"], &view["reopened_from"]), (&json!(new), &json!(agent)), "{view}");
    assert_eq!(view["tmux_session"], stage.agent_view(&successor)["tmux_session"]);
    // Wherever it was started: the id of the session is among its arguments.
    let transcripts = format!("TASUKI_DEMO_DIR={}", stage.recorder().with_file_name("transcripts").display());
    let has_session = |arguments: &str| arguments.ends_with(&session_id);
    stage.until("one process has the session open", || processes_with(&transcripts, has_session).len() == 1);
    let after = stage.tmux(&["list-windows", "-a", "-F", "#{session_name} #{window_active} #{window_id}"]);
    assert!(current.lines().all(|window| after.contains(window)), "{current}\n{after}");
    let name = stage.tmux(&["display-message", "-p", "-t", &pane, "#{window_name}"]);
    assert_eq!(name.trim(), "dev-reopened");
    let refused = stage.refused(&json!({"kind": "handoff_reopen", "handoff_id": id}));
    assert_eq!((refused.0, refused.1.as_str()), (409, "already_open"));

    // A person asks it. Its hooks report the old session, which is nobody else's now.
    stage.until("its session is known", || stage.agent_view(&new)["session_id"] == json!(session_id));
    // How full a context is, the sidecar reads later than that its turn is over.
    stage.until("the successor's context is known", || !stage.agent_view(&successor)["context"].is_null());
    let views = || [&agent, &successor].map(|id| stage.agent_view(id));
    let before = (views(), stage.handoff_view(&id), stage.prompts(&successor));
    // What is typed before the composer is there is lost.
    stage.until("its composer is there", || stage.screen(&pane).contains('╰'));
    stage.tmux(&["send-keys", "-t", &pane, "-l", "Why did you stop?"]);
    stage.until("it stands in the composer", || stage.screen(&pane).contains("Why did you stop?"));
    stage.tmux(&["send-keys", "-t", &pane, "Enter"]);
    stage.until("it has answered", || {
        stage.screen(&pane).contains("Why did you stop?") && {
            stage.prompts(&new) == ["Why did you stop?"] && stage.agent_view(&new)["state"] == "idle"
        }
    });
    assert_eq!((views(), stage.handoff_view(&id), stage.prompts(&successor)), before);

    // It becomes nobody's agent, and ends when it is told to.
    let (status, code, _) = stage.refused(&json!({"kind": "agent_register", "pane": pane, "persona_slug": "dev"}));
    assert_eq!((status, code.as_str()), (409, "reopened"));
    let ended = stage.granted(&json!({"kind": "agent_shutdown", "agent_id": new, "force": true}));
    assert!(ended["ended_at"].is_string() && reopened(&stage).is_empty(), "{ended}");
    assert!(stage.errors().is_empty(), "{:?}", stage.errors());
}
