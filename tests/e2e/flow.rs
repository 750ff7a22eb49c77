//! The scenarios of the handoff's specification, each by its name, on the real program, a real tmux server and real
//! agents.

use super::support::stage::Stage;
use super::support::stage_files::{delivery_ids, read_json};
use super::support::steps::STEPS;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

const NO_STEPS: [&str; 0] = [];

/// A handoff of that agent is refused with exactly these words, and nothing happens.
fn assert_refused(stage: &Stage, agent: &str, status: u64, code: &str, message: &str) {
    let before = stage.views("handoffs").len();
    let refused = stage.refused(&json!({"kind": "handoff", "agent_id": agent, "reason": "context_limit"}));
    assert_eq!(refused, (status, code.to_owned(), message.to_owned()));
    assert_eq!(stage.views("handoffs").len(), before);
    assert!(stage.prompts(agent).iter().all(|prompt| !prompt.contains("handoff document")));
}

/// Starts a demo agent by hand in a window of the user's own; gives its pane.
pub(super) fn by_hand(stage: &Stage, agent_id: &str) -> String {
    let home = format!("TASUKI_HOME={}", stage.home().display());
    let id = format!("TASUKI_AGENT_ID={agent_id}");
    let mut args = vec!["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "user:", "-e", &home];
    if !agent_id.is_empty() {
        args.extend(["-e", &id]);
    }
    args.extend([env!("CARGO_BIN_EXE_tasuki"), "demo-agent"]);
    let pane = stage.tmux(&args).trim().to_owned();
    assert!(pane.starts_with('%'), "{pane:?}");
    pane
}

/// The one anonymous agent that has registered.
pub(super) fn anonymous(stage: &Stage) -> String {
    stage.wait_for("an anonymous agent is seen", || {
        let views = stage.views("agents");
        let found = views.iter().find(|view| view["persona_slug"].is_null() && view["state"] == "idle");
        found.map(|view| view["agent_id"].as_str().expect("an id").to_owned())
    })
}

/// An agent of another program: known by its own events alone, with no pane.
pub(super) fn external(stage: &Stage, agent: &str, slug: &str) {
    let event = json!({"v": 1, "event": "session_start", "agent_id": agent, "persona_slug": slug, "session_id": "s-1"});
    stage.drop_file("events", "external-start.json", event.to_string().as_bytes());
    stage.until("the external agent is seen", || stage.agent_view(agent)["state"] == "idle");
}

#[test]
fn valid_handoff_trigger() {
    let stage = Stage::new();
    let agent = stage.agent("developer-con-1");
    let request = json!({"v": 1, "kind": "handoff", "agent_id": agent, "reason": "context_limit"}).to_string();
    stage.drop_file("requests", "ask-1.json", request.as_bytes());
    let answer = stage.result("ask-1");
    let keys: Vec<&String> = answer.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["at", "kind", "ok", "request_id", "request_sha256", "result", "status", "v"]);
    assert_eq!((&answer["v"], &answer["kind"], &answer["request_id"]), (&json!(1), &json!("handoff"), &json!("ask-1")));
    assert_eq!((&answer["status"], &answer["ok"]), (&json!(200), &json!(true)));
    let hash: String = Sha256::digest(request.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(answer["request_sha256"], hash);
    let keys: Vec<&String> = answer["result"].as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["file_path", "handoff_id", "status"]);
    assert_eq!(answer["result"]["status"], "initiated");
    let path = Path::new(answer["result"]["file_path"].as_str().expect("a path"));
    assert_eq!(path.parent(), Some(stage.home().join("data/personas/developer-con-1/handoffs").as_path()));
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    let shape: String = name.chars().take(15).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!((shape.as_str(), &name[15..]), ("00000000T000000", format!("-{}.md", &agent[..8]).as_str()));
    let id = answer["result"]["handoff_id"].as_str().expect("an id");
    let view = stage.until_step(id, "done");
    stage.check_done(&view);
    assert_eq!(stage.steps_of(id), STEPS);
    let in_view: Vec<&str> =
        view["steps"].as_array().expect("steps").iter().filter_map(|s| s["step"].as_str()).collect();
    assert_eq!(in_view, STEPS);
    let left = view["steps"].as_array().expect("steps").iter().filter(|step| step["left_at"].is_string()).count();
    assert_eq!(left, STEPS.len() - 1, "all but the last were left");
    assert!(stage.errors().is_empty() && stage.names("rejected").is_empty() && stage.names("requests").is_empty());
    assert!(stage.tmux(&["list-sessions", "-F", "#{session_name}"]).lines().any(|session| session == "user"));
}

#[test]
fn agent_without_persona() {
    let stage = Stage::new();
    by_hand(&stage, "");
    let agent = anonymous(&stage);
    assert_refused(&stage, &agent, 400, "no_persona", "Agent has no persona");
}

#[test]
fn agent_without_tmux_pane() {
    let stage = Stage::new();
    stage.persona("dev");
    let agent = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9a001";
    external(&stage, agent, "dev");
    assert_refused(&stage, agent, 400, "no_pane", "Agent has no tmux pane");
}

#[test]
fn agent_already_ended() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let ended = stage.granted(&json!({"kind": "agent_shutdown", "agent_id": agent}));
    assert!(ended["ended_at"].is_string(), "{ended}");
    assert_eq!(stage.agent_view(&agent)["ended_at"], ended["ended_at"]);
    assert_refused(&stage, &agent, 400, "not_active", "Agent is not active");
}

#[test]
fn agent_already_has_handoff_record() {
    let stage = Stage::with_config("[limits]\nending = \"2s\"\n");
    let agent = stage.agent("dev");
    stage.faults("ignore_exit\nslow_turn=1000");
    let id = stage.hand_off(&agent);
    let in_progress = (409, "handoff_in_progress".to_owned(), "Handoff already in progress".to_owned());
    let again = json!({"kind": "handoff", "agent_id": agent, "reason": "context_limit"});
    assert_eq!(stage.refused(&again), in_progress);
    let view = stage.until_failed(&id, "ending", "did_not_exit");
    assert!(view["recorded_at"].is_string(), "{view:#}");
    assert_eq!(stage.refused(&again), in_progress);
    assert_eq!(stage.views("handoffs").len(), 1);
    assert!(stage.is_running(&agent));
}

#[test]
fn handoff_instruction_sent() {
    let stage = Stage::new();
    let agent = stage.agent("developer-con-1");
    let id = stage.hand_off_with(&agent, &json!({"focus": "the flaky login test"}));
    let view = stage.until_step(&id, "done");
    let texts = stage.prompts(&agent);
    let text = texts.last().expect("the instruction");
    assert!(text.contains(&format!("`{}`", view["file_path"].as_str().expect("a path"))), "{text}");
    assert!(text.contains("data/personas/developer-con-1/handoffs/"));
    for wanted in [
        "What I was working on",
        "Current progress",
        "Key decisions and why",
        "Blockers",
        "Files modified",
        "Next steps",
        "first person",
        "Additional focus: the flaky login test",
        "context_limit",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    let (first, last) = (text.lines().next().expect("a line"), text.lines().last().expect("a line"));
    assert!(first.starts_with(|c: char| c.is_ascii_alphabetic()), "{first}");
    let delivery = view["verdicts"]["instruction"]["delivery_id"].as_str().expect("an id");
    assert_eq!(last, format!("(tasuki delivery {delivery}.)"));
    assert_eq!(delivery_ids(text), [delivery]);
}

#[test]
fn stop_hook_with_handoff_file_present() {
    let stage = Stage::with_config("[limits]\nending = \"1s\"\n");
    stage.faults("ignore_exit");
    let agent = stage.agent("dev");
    let view = stage.until_failed(&stage.hand_off(&agent), "ending", "did_not_exit");
    let id = view["handoff_id"].as_str().expect("an id");
    assert_eq!(stage.steps_of(id), ["waiting", "instructing", "writing", "checking", "recording", "ending"]);
    assert!(view["sha256"].is_string());
    let grew = stage.lines_of(id, "handoff.step").iter().any(|line| line["document_bytes"].as_u64() > Some(0));
    assert!(grew, "the document's growth is reported: {}", stage.story());
}

/// A handoff of one agent with that fault ends in that failure while the document is awaited.
fn no_document(fault: &str, code: &str) -> (Stage, Value) {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults(fault);
    let view = stage.until_failed(&stage.hand_off(&agent), "writing", code);
    stage.check_halted(&view);
    assert!(view["recorded_at"].is_null() && view["injection_prompt"].is_null(), "{view:#}");
    assert_eq!(stage.typed(&agent), (1, 1, 0));
    assert_eq!(stage.agent_view(&agent)["state"], "idle");
    (stage, view)
}

#[test]
fn stop_hook_with_handoff_file_missing() {
    no_document("write_never", "document_missing");
}

#[test]
fn stop_hook_with_empty_handoff_file() {
    let (_stage, view) = no_document("write_empty", "document_empty");
    let path = view["file_path"].as_str().expect("a path");
    assert_eq!(fs::metadata(path).expect("the empty document is left where it is").len(), 0);
}

#[test]
fn normal_stop_hook_unaffected() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let verdict = stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": "What is your name?"}));
    assert_eq!(verdict["verdict"], "delivered", "{verdict}");
    stage.until("its turn ends", || stage.agent_view(&agent)["state"] == "idle");
    let kinds: Vec<Value> = stage.journal().iter().map(|line| line["type"].clone()).collect();
    assert!(kinds.iter().all(|kind| kind == "agent.state" || kind == "delivery"), "{kinds:?}");
    assert_eq!(stage.prompts(&agent).len(), 2, "the priming and the text, and nothing of our own");
    assert!(stage.views("handoffs").is_empty() && stage.errors().is_empty());
    assert_eq!(stage.processes(&agent).len(), 1);
    stage.check_once();
}

#[test]
fn handoff_record_created() {
    let stage = Stage::with_config("[limits]\nending = \"1s\"\n");
    stage.faults("ignore_exit");
    let agent = stage.agent("dev");
    let more = json!({"focus": "the parser", "tasks": ["mend the lexer", "write the tests"]});
    let view = stage.until_failed(&stage.hand_off_with(&agent, &more), "ending", "did_not_exit");
    let path = view["file_path"].as_str().expect("a path");
    let document = fs::read(path).expect("the document");
    let hash: String = Sha256::digest(&document).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((&view["agent_id"], &view["persona_slug"]), (&json!(agent), &json!("dev")));
    assert_eq!((&view["reason"], &view["focus"]), (&json!("context_limit"), &json!("the parser")));
    assert_eq!((&view["bytes"], &view["sha256"]), (&json!(document.len()), &json!(hash)));
    assert_eq!(view["warnings"], json!([]));
    let prompt = view["injection_prompt"].as_str().expect("a prompt");
    for wanted in [&agent, "dev", "context_limit", path, "mend the lexer", "write the tests", "the parser"] {
        assert!(prompt.contains(wanted), "{wanted}: {prompt}");
    }
    assert!(delivery_ids(prompt).is_empty(), "the record is without the lines that a delivery adds");
    assert!(view["successor_id"].is_null() && view["recorded_at"].is_string());
}

#[test]
fn graceful_shutdown() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let view = stage.until_step(&stage.hand_off(&agent), "done");
    let said_goodbye =
        stage.recorded().iter().filter(|line| line["agent_id"] == agent.as_str() && line["event"] == "exit").count();
    assert_eq!(said_goodbye, 1, "it ended by its exit command: {}", stage.story());
    let ended = stage.agent_view(&agent);
    assert!(ended["ended_at"].is_string() && ended["state"] == "ended");
    assert!(ended["ended_at"].as_str() >= view["recorded_at"].as_str(), "it ends after the record");
    stage.until("its process is gone", || stage.processes(&agent).is_empty());
}

#[test]
fn successor_created() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let old = stage.agent_view(&agent);
    let view = stage.until_step(&stage.hand_off(&agent), "done");
    stage.check_done(&view);
    let new = stage.agent_view(view["successor_id"].as_str().expect("an id"));
    assert_eq!((&new["persona_slug"], &new["previous_agent_id"]), (&json!("dev"), &json!(agent)));
    for name in ["profile", "cwd", "tmux_session"] {
        assert_eq!(new[name], old[name], "a successor takes its predecessor's {name}");
    }
    assert!(new["registered_at"].is_string() && new["pane"] != old["pane"]);
    assert_eq!(stage.processes(new["agent_id"].as_str().expect("an id")).len(), 1);
    let panes = stage.tmux(&["list-panes", "-s", "-t", "=tasuki-dev", "-F", "#{pane_id}"]);
    assert_eq!(panes.trim(), new["pane"].as_str().expect("a pane"), "its window is alone in the session again");
    let shown = stage.command(&["lineage", "dev"]).output().expect("it runs");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let new_id = new["agent_id"].as_str().expect("an id");
    assert!(shown.contains(&agent[..8]) && shown.contains(&new_id[..8]), "{shown}");
}

#[test]
fn successor_creation_fails() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("die_at=start");
    let view = stage.until_failed(&stage.hand_off(&agent), "starting", "successor_failed");
    stage.check_failure(&view);
    assert!(view["recorded_at"].is_string() && view["injection_prompt"].is_string(), "the record is kept");
    assert!(Path::new(view["file_path"].as_str().expect("a path")).is_file());
    assert_eq!(stage.agent_view(&agent)["state"], "ended");
    stage.faults("");
    let id = view["handoff_id"].as_str().expect("an id");
    let answer = stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id}));
    assert_eq!((&answer["status"], &answer["step"]), (&json!("retrying"), &json!("starting")));
    let done = stage.until_step(id, "done");
    stage.check_done(&done);
    assert_eq!(done["former_successors"], json!([view["successor_id"]]));
    assert_eq!((&done["sha256"], &done["recorded_at"]), (&view["sha256"], &view["recorded_at"]), "the same record");
}

#[test]
fn sequenced_delivery() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let view = stage.until_step(&stage.hand_off(&agent), "done");
    let successor = view["successor_id"].as_str().expect("an id");
    let texts = stage.prompts(successor);
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].contains("# Skill of dev") && !texts[0].contains(&agent), "{}", texts[0]);
    let body = view["injection_prompt"].as_str().expect("a prompt");
    assert!(
        texts[1].contains(body) && body.contains(&agent) && body.contains(view["file_path"].as_str().expect("a path"))
    );
    let of_successor: Vec<Value> = stage.journal().into_iter().filter(|line| line["agent_id"] == successor).collect();
    let at = |purpose: &str| of_successor.iter().position(|line| line["purpose"] == purpose).expect("a line");
    let (primed, briefed) = (at("priming"), at("briefing"));
    assert!(primed < briefed);
    let stopped = of_successor[primed..briefed].iter().any(|line| line["state"] == "idle");
    assert!(stopped, "the turn of the priming ended first: {of_successor:#?}");
}

#[test]
fn error_notification() {
    let (stage, told) = Stage::with_notices();
    let agent = stage.agent("dev");
    stage.faults("fail_turn");
    let view = stage.until_failed(&stage.hand_off(&agent), "writing", "agent_failed");
    stage.check_halted(&view);
    let error_id = view["error"]["error_id"].as_str().expect("an id");
    let file = read_json(&stage.spool(&format!("errors/{error_id}.json"))).expect("the error's file");
    let keys: Vec<&String> = file.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["agent_id", "at", "code", "error_id", "handoff_id", "hint", "message", "step", "v"]);
    let line = stage.wait_for("the command is told", || {
        let text = fs::read_to_string(&told).unwrap_or_default();
        text.lines().find_map(|line| serde_json::from_str::<Value>(line).ok())
    });
    assert_eq!(line, file, "the command gets what the file says");
    let steps = stage.steps_of(view["handoff_id"].as_str().expect("an id"));
    assert_eq!(steps, ["waiting", "instructing", "writing"], "the flow halts there");
    assert_eq!(stage.granted(&json!({"kind": "error_dismiss", "error_id": error_id}))["status"], "dismissed");
    assert_eq!(stage.names("errors"), NO_STEPS);
}
