//! Agents that tasuki did not start: registered by the operator, met by their first event, programs of other people.
//! And the rule that holds for all of them: nothing is ever typed into an agent without a persona.

use super::flow::{anonymous, by_hand};
use super::support::stage::Stage;
use serde_json::{Value, json};
use std::fs;
use tasuki::contract::LineType;

const CLAIMED: &str = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9a0aa";

fn register(stage: &Stage, pane: &str, more: &Value) -> Value {
    let mut request = json!({"kind": "agent_register", "pane": pane});
    more.as_object().into_iter().flatten().for_each(|(name, value)| request[name] = value.clone());
    stage.ask(&request)
}

fn code(answer: &Value) -> (u64, &str) {
    (answer["status"].as_u64().expect("a status"), answer["error"]["code"].as_str().unwrap_or_default())
}

#[test]
fn a_pane_that_runs_already_is_adopted_never_primed_and_handed_off() {
    let stage = Stage::new();
    stage.persona("dev");
    let pane = by_hand(&stage, CLAIMED);
    let met = anonymous(&stage);
    assert_eq!(met, CLAIMED, "an agent keeps the id that its environment names");
    let answer = register(&stage, &pane, &json!({"persona_slug": "dev"}));
    assert_eq!(answer["ok"], true, "{answer}");
    let result = &answer["result"];
    assert_eq!(
        (&result["status"], &result["agent_id"]),
        (&json!("registered"), &json!(CLAIMED)),
        "the one that was met"
    );
    assert_eq!((&result["pane"], &result["hooks"]), (&json!(pane), &json!("seen")));
    let view = stage.agent_view(CLAIMED);
    assert_eq!(
        (&view["persona_slug"], &view["profile"], &view["started_by_tasuki"]),
        (&json!("dev"), &json!("demo"), &json!(false))
    );
    assert_eq!(code(&register(&stage, &pane, &json!({"persona_slug": "dev"}))), (409, "already_registered"));
    let force = stage.refused(&json!({"kind": "agent_shutdown", "agent_id": CLAIMED, "force": true}));
    assert_eq!((force.0, force.1.as_str()), (409, "not_ours"));
    let done = stage.until_step(&stage.hand_off(CLAIMED), "done");
    assert_eq!(stage.typed(CLAIMED), (1, 0, 0), "the instruction alone: it was never primed");
    let successor = done["successor_id"].as_str().expect("an id");
    assert_eq!(stage.typed(successor), (0, 1, 1));
    assert_eq!(stage.agent_view(successor)["tmux_session"], "user", "the successor's window is in the same session");
    // Its last hook, by which it has ended, comes before its process does.
    stage.until("its process is gone", || stage.processes(CLAIMED).is_empty());
    stage.check_once();
}

/// A persona names the one living agent that has it; where a second one takes it, whoever did that is told.
#[test]
fn who_gives_a_persona_to_a_second_agent_is_told_that_it_names_two() {
    let stage = Stage::new();
    stage.persona("dev");
    let first = by_hand(&stage, CLAIMED);
    anonymous(&stage);
    let said = |pane: &str| {
        let output = stage.command(&["agent", "register", pane, "--persona", "dev"]).output().expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(!said(&first).contains("names"), "it is the only one");
    let cat = stage.tmux(&["list-panes", "-t", "user:0", "-F", "#{pane_id}"]).trim().to_owned();
    let output = stage.command(&["agent", "register", &cat, "--persona", "dev", "--profile", "demo"]).output();
    let output = output.expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("2 agents have the persona dev now"), "{output:?}");
}

#[test]
fn what_can_not_be_registered_is_named() {
    let stage = Stage::new();
    stage.persona("dev");
    let shell = stage.tmux(&["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "user:", "sh"]).trim().to_owned();
    let cat = stage.tmux(&["list-panes", "-t", "user:0", "-F", "#{pane_id}"]).trim().to_owned();
    stage.until("the shell runs", || {
        stage.tmux(&["display-message", "-p", "-t", &shell, "#{pane_current_command}"]).trim() == "sh"
    });
    assert_eq!(code(&register(&stage, &shell, &json!({"persona_slug": "dev"}))), (409, "bare_shell"));
    let unknown = register(&stage, &cat, &json!({}));
    assert_eq!((code(&unknown), &unknown["error"]["field"]), ((400, "bad_request"), &json!("profile")));
    assert_eq!(code(&register(&stage, &cat, &json!({"profile": "nothing"}))), (404, "no_profile"));
    assert_eq!(code(&register(&stage, &cat, &json!({"persona_slug": "nobody"}))), (404, "no_persona"));
    let elsewhere = format!("{},1,0", stage.socket().display());
    assert_eq!(code(&register(&stage, &cat, &json!({"tmux": elsewhere, "profile": "demo"}))), (404, "no_pane"));
    let rubbish = register(&stage, &cat, &json!({"tmux": "rubbish", "profile": "demo"}));
    assert_eq!(code(&rubbish), (400, "bad_request"));
    assert!(stage.views("agents").is_empty());
}

#[test]
fn nothing_is_ever_typed_into_an_anonymous_agent() {
    let stage = Stage::new();
    let pane = by_hand(&stage, "");
    let agent = anonymous(&stage);
    let view = stage.agent_view(&agent);
    assert_eq!((&view["persona_slug"], &view["pane"], &view["handoff_id"]), (&Value::Null, &json!(pane), &Value::Null));
    for (number, event) in
        ["stop", "prompt_submit", "session_start", "stop_failure", "blocked", "stop"].iter().enumerate()
    {
        let body = json!({
            "v": 1, "event": event, "agent_id": agent, "session_id": view["session_id"], "pane": pane,
            "text": "Please write a handoff document", "last_text": "done",
        });
        stage.drop_file("events", &format!("{number}.json"), body.to_string().as_bytes());
    }
    // A document in a folder that belongs to nobody, and requests of every kind.
    let folder = stage.home().join("data/personas/nobody/handoffs");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(format!("20261121T200000-{}.md", &agent[..8])), "# Handoff\n").expect("a document");
    let no_persona = (400, "no_persona".to_owned(), "Agent has no persona".to_owned());
    for request in [
        json!({"kind": "handoff", "agent_id": agent, "reason": "x"}),
        json!({"kind": "agent_send", "agent_id": agent, "text": "hello"}),
        json!({"kind": "agent_shutdown", "agent_id": agent}),
        json!({"kind": "agent_shutdown", "agent_id": agent, "force": true}),
    ] {
        assert_eq!(stage.refused(&request), no_persona, "{request}");
    }
    stage.until("all events were taken", || stage.names("events").is_empty());
    stage.crash_and_restart();
    assert_eq!(stage.refused(&json!({"kind": "agent_send", "agent_id": agent, "text": "hello"})), no_persona);
    let prompts: Vec<Value> = stage.recorded().into_iter().filter(|line| line["text"].is_string()).collect();
    assert!(prompts.is_empty(), "{prompts:?}");
    let composer = stage.screen(&pane);
    assert!(!composer.contains("hello") && !composer.contains("handoff"), "{composer}");
    assert!(stage.errors().is_empty() && stage.views("handoffs").is_empty());
    assert_eq!(stage.views("agents").len(), 1);
}

#[test]
fn a_program_of_other_people_is_an_agent_by_its_events_alone() {
    let stage = Stage::new();
    let event = |name: &str, body: Value| stage.drop_file("events", name, body.to_string().as_bytes());
    event(
        "1.json",
        json!({"v": 1, "event": "session_start", "session_id": "mine", "persona_slug": "dev", "cwd": "/w"}),
    );
    let agent = stage.wait_for("it is seen", || {
        let views = stage.views("agents");
        views.first().map(|view| view["agent_id"].as_str().expect("an id").to_owned())
    });
    let state = |wanted: &str| stage.until(wanted, || stage.agent_view(&agent)["state"] == wanted);
    state("idle");
    let view = stage.agent_view(&agent);
    assert_eq!((&view["cwd"], &view["session_id"], &view["pane"]), (&json!("/w"), &json!("mine"), &Value::Null));
    event("2.json", json!({"v": 1, "event": "prompt_submit", "session_id": "mine", "text": "hello"}));
    state("busy");
    event("3.json", json!({"v": 1, "event": "blocked", "session_id": "mine", "message": "may I?"}));
    state("blocked");
    event("4.json", json!({"v": 1, "event": "context", "agent_id": agent, "context": {"used": 9, "window": 10}}));
    let gauge = json!({"used": 9, "window": 10, "percent": 90, "window_is_guess": false});
    stage.until("the gauge is shown", || stage.agent_view(&agent)["context"] == gauge);
    event("5.json", json!({"v": 1, "event": "stop", "agent_id": agent, "session_id": "mine"}));
    state("idle");
    event("6.json", json!({"v": 1, "event": "session_end", "session_id": "mine"}));
    state("ended");
    event("7.json", json!({"v": 1, "event": "stop", "agent_id": agent, "session_id": "mine"}));
    stage.until("the late event is taken", || stage.names("events").is_empty());
    assert_eq!(stage.agent_view(&agent)["state"], "ended");
    assert_eq!(stage.views("agents").len(), 1);
    // Its context is so full that a handoff is suggested: that is a line of its own.
    let is_state = |line: &&Value| line["type"] == "agent.state" && line.get("auto").is_none();
    let states: Vec<Value> = stage.journal().iter().filter(is_state).map(|line| line["state"].clone()).collect();
    assert_eq!(states, ["idle", "busy", "blocked", "idle", "ended"]);
    stage.check_once();
}

#[test]
fn events_of_nobody_change_nothing() {
    let stage = Stage::new();
    for (number, event) in ["stop", "prompt_submit", "session_end", "context", "notification"].iter().enumerate() {
        let body = json!({"v": 1, "event": event, "agent_id": CLAIMED, "session_id": "x"});
        stage.drop_file("events", &format!("{number}.json"), body.to_string().as_bytes());
    }
    stage.until("all are taken", || stage.names("events").is_empty());
    assert!(stage.views("agents").is_empty() && stage.journal().is_empty() && stage.errors().is_empty());
    assert!(stage.names("rejected").is_empty());
}

/// The view has each of these fields; what is not known is null.
fn has_all(view: &Value, names: &str) {
    for name in names.split(' ') {
        assert!(view.get(name).is_some(), "{name} is missing: {view:#}");
    }
}

#[test]
fn views_say_what_the_contract_names() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let view = stage.agent_view(&agent);
    has_all(
        &view,
        "agent_id persona_slug profile pane cwd session_id state previous_agent_id successor_id handoff_id \
         registered_at ended_at context",
    );
    let handoff = stage.until_step(&stage.hand_off(&agent), "done");
    has_all(
        &handoff,
        "handoff_id agent_id persona_slug reason focus file_path bytes sha256 injection_prompt created_at successor_id \
         warnings step steps deadline verdicts error ack publish checklist",
    );
    for name in ["instruction", "priming", "briefing"] {
        let keys: Vec<&String> = handoff["verdicts"][name].as_object().expect("a verdict").keys().collect();
        assert_eq!(keys, ["at", "delivery_id", "reason", "verdict"]);
    }
    let reached =
        handoff["checklist"].as_array().expect("points").iter().filter(|point| point["at"].is_string()).count();
    assert_eq!(reached, 6, "{handoff:#}");
    let sidecar = fs::read_to_string(stage.home().join("view/sidecar.json")).expect("the sidecar's view");
    let sidecar: Value = serde_json::from_str(&sidecar).expect("JSON");
    has_all(&sidecar, "pid version started_at heartbeat tmux");
    for line in stage.journal() {
        assert!(line["at"].is_string() && LineType::ALL.iter().any(|known| line["type"] == known.as_str()), "{line}");
    }
}

#[test]
fn a_text_is_sent_when_the_agent_is_idle_and_its_verdict_is_the_answer() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("slow_turn=1500");
    let first = stage.send(&json!({"kind": "agent_send", "agent_id": agent, "text": "first"}));
    let second = stage.send(&json!({"kind": "agent_send", "agent_id": agent, "text": "second"}));
    for request in [first, second] {
        let answer = stage.result(&request);
        assert_eq!(answer["ok"], true, "{answer}");
        let keys: Vec<&String> = answer["result"].as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["at", "delivery_id", "reason", "verdict"]);
        assert_eq!((&answer["result"]["verdict"], &answer["result"]["reason"]), (&json!("delivered"), &Value::Null));
    }
    let prompts = stage.prompts(&agent);
    assert!(prompts[1].contains("\nfirst\n") && prompts[2].contains("\nsecond\n"), "{prompts:?}");
    stage.check_once();
}

#[test]
fn an_agent_that_does_not_obey_is_ended_by_force() {
    let stage = Stage::with_config("[limits]\nending = \"1s\"\n");
    stage.faults("ignore_exit");
    let agent = stage.agent("dev");
    let asked = stage.refused(&json!({"kind": "agent_shutdown", "agent_id": agent}));
    assert_eq!((asked.0, asked.1.as_str()), (409, "did_not_exit"));
    assert!(stage.is_running(&agent));
    let ended = stage.granted(&json!({"kind": "agent_shutdown", "agent_id": agent, "force": true}));
    assert!(ended["ended_at"].is_string(), "{ended}");
    stage.until("its process is gone", || stage.processes(&agent).is_empty());
    assert_eq!(stage.agent_view(&agent)["state"], "ended");
}

/// Gemini CLI has been seen to live on when its terminal had gone.
#[test]
fn an_agent_whose_process_outlives_its_pane_is_ended_too() {
    let stage = Stage::new();
    stage.faults("dev: linger=60000");
    let agent = stage.agent("dev");
    let ended = stage.granted(&json!({"kind": "agent_shutdown", "agent_id": agent, "force": true}));
    assert!(ended["ended_at"].is_string(), "{ended}");
    assert_eq!(stage.agent_view(&agent)["state"], "ended");
    stage.until("its process is gone", || stage.processes(&agent).is_empty());
}
