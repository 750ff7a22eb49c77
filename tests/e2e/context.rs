//! How full an agent's context is, and what follows from it, with the whole program and the demo agent.

use crate::support::stage::Stage;
use crate::support::viewer::Viewer;
use serde_json::{Value, json};

/// A client that shows a session's window, once the server counts it.
fn attached(stage: &Stage, session: &str) -> Viewer {
    let viewer = Viewer::attach(&stage.socket(), session);
    stage.until("the client is attached", || viewers(stage, session) == "1");
    viewer
}

fn viewers(stage: &Stage, session: &str) -> String {
    stage.tmux(&["display-message", "-p", "-t", session, "#{window_active_clients}"]).trim().to_owned()
}

/// One turn of the agent's own, to its end.
fn turn(stage: &Stage, agent: &str, tokens: u64) {
    stage.faults(&format!("tokens={tokens}"));
    let verdict = stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": "Please go on with it."}));
    assert_eq!(verdict["verdict"], "delivered", "{verdict}");
    stage.until("the gauge is read", || stage.agent_view(agent)["context"]["used"] == tokens);
}

/// The journal's lines about contexts: what, and why.
fn said(stage: &Stage) -> Vec<(String, Option<String>)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let lines = stage.journal().into_iter().filter(|line| line["type"] == "agent.state" && line["auto"].is_string());
    lines.map(|line| (text(&line["auto"]).unwrap_or_default(), text(&line["reason"]))).collect()
}

#[test]
fn the_gauge_is_shown_after_each_turn_and_nothing_is_said_if_that_is_turned_off() {
    let stage = Stage::with_config("[context]\nsuggest_at = \"off\"\n");
    let agent = stage.agent("dev");
    turn(&stage, &agent, 45_900);
    let gauge = json!({"used": 45_900, "window": 100_000, "percent": 45, "window_is_guess": false});
    assert_eq!(stage.agent_view(&agent)["context"], gauge);
    let out = stage.command(&["agents"]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&out.stdout).contains(" 45 %"), "{out:?}");
    turn(&stage, &agent, 99_000);
    assert_eq!(said(&stage), []);
    stage.check_once();
}

#[test]
fn the_operator_is_told_once_at_three_quarters() {
    let stage = Stage::without_sidecar("");
    let told = stage.home().join("told");
    let command = format!("[\"sh\", \"-c\", \"cat >> '{}'\"]", told.display());
    let config = format!("[notify]\ncommand = {command}\n");
    std::fs::write(stage.home().join("config.toml"), config).expect("the configuration");
    stage.start_sidecar();
    let agent = stage.agent("dev");
    for tokens in [74_000, 75_000, 80_000] {
        turn(&stage, &agent, tokens);
    }
    stage.crash_and_restart();
    turn(&stage, &agent, 81_000);
    // What is told in passing is not seen by whoever looks later.
    assert_eq!(stage.agent_view(&agent)["handoff_suggested"], true);
    let out = stage.command(&["agents"]).output().expect("it runs");
    let (listed, noted) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(listed.contains("81 %, hand off"), "{listed}");
    let home = stage.home();
    let short = &agent[..8];
    let command = format!("tasuki --home {} handoff {short} --reason context_limit --wait", home.display());
    assert!(noted.contains(&command), "a shell does not know this home: {noted}");
    let line = || stage.tmux(&["show-option", "-gqv", "@tasuki_status"]).trim().to_owned();
    stage.until("the line tells of it", || line() == "1 agent · needs you: 1");
    assert_eq!(said(&stage), [("suggested".to_owned(), None)]);
    let text = std::fs::read_to_string(told).expect("the operator was told");
    assert_eq!(text.matches("\"code\":\"context_full\"").count(), 1, "{text}");
    assert!(text.contains(&format!("tasuki handoff {short} --reason context_limit --wait")), "{text}");
    stage.check_once();
}

#[test]
fn an_automatic_handoff_begins_when_no_client_shows_the_agent() {
    let stage = Stage::with_config("[context]\nauto_at = 80\n");
    let agent = stage.agent("dev");
    turn(&stage, &agent, 85_000);
    let handoff = stage.wait_for("a handoff", || {
        let views = stage.views("handoffs");
        views.first().map(|view| view["handoff_id"].as_str().expect("an id").to_owned())
    });
    // The successor's context is its own.
    stage.faults("tokens=1000");
    let view = stage.until_step(&handoff, "done");
    assert_eq!((&view["reason"], &view["agent_id"]), (&json!("context_limit"), &json!(agent)));
    assert_eq!(said(&stage), [("suggested".to_owned(), None), ("begun".to_owned(), None)]);
    stage.check_once();
}

/// Each of them begins a turn, so if they came first, the handoff would not begin before all of them are done.
#[test]
fn an_automatic_handoff_comes_before_the_texts_and_items_that_wait() {
    let stage = Stage::with_config("[context]\nsuggest_at = \"off\"\nauto_at = 80\n");
    let agent = stage.team(&[("dev", "developer")]).remove(0);
    stage.faults("work=ignore,tokens=85000");
    let texts = ["The first text.", "The second text."];
    let sent = texts.map(|text| stage.send(&json!({"kind": "agent_send", "agent_id": agent, "text": text})));
    let items = ["one", "two"].map(|title| stage.item_of("story", title));
    let handoff = stage.wait_for("a handoff", || stage.views("handoffs").first().cloned());
    stage.faults("work=claim,tokens=1000");
    stage.until_step(handoff["handoff_id"].as_str().expect("an id"), "done");
    assert_eq!(stage.result(&sent[0])["result"]["verdict"], "delivered");
    let refused = stage.result(&sent[1]);
    assert!(["not_active", "handoff_in_progress"].map(Value::from).contains(&refused["error"]["code"]), "{refused}");
    let prompts = stage.prompts(&agent);
    assert!(!prompts.iter().any(|text| text.contains(texts[1]) || text.contains("Work item `")), "{prompts:#?}");
    stage.until("the successor has the first item", || stage.item(&items[0])["status"] == "claimed");
    assert_eq!(said(&stage).len(), 1, "one handoff has begun");
    stage.check_once();
    stage.check_work();
}

/// Its successor would be as full, and would be handed off at once too, and so on for ever.
#[test]
fn a_successor_that_is_full_at_once_is_not_handed_off() {
    let stage = Stage::with_config("[context]\nsuggest_at = \"off\"\nauto_at = 50\n");
    let agent = stage.agent("dev");
    turn(&stage, &agent, 190_000);
    let handoff = stage.wait_for("a handoff", || stage.views("handoffs").first().cloned());
    let view = stage.until_step(handoff["handoff_id"].as_str().expect("an id"), "done");
    let outcome = || said(&stage).into_iter().map(|(what, _)| what).collect::<Vec<_>>();
    stage.until("it is put off", || outcome() == ["begun", "put_off"]);
    assert_eq!(stage.views("handoffs").len(), 1);
    // A turn of another kind is work.
    let successor = view["successor_id"].as_str().expect("an id").to_owned();
    stage.granted(&json!({"kind": "agent_send", "agent_id": successor, "text": "Please go on with it."}));
    stage.until("it is put off again", || outcome() == ["begun", "put_off", "begun", "put_off"]);
    assert_eq!(stage.views("handoffs").len(), 2);
    stage.check_once();
}

#[test]
fn while_a_client_shows_the_window_nothing_begins() {
    let stage = Stage::with_config("[context]\nsuggest_at = \"off\"\nauto_at = 80\n");
    let agent = stage.agent("dev");
    let client = attached(&stage, "tasuki-dev");
    turn(&stage, &agent, 85_000);
    let why = "a tmux client is attached to the agent's window";
    stage.until("it is put off", || said(&stage) == [("put_off".to_owned(), Some(why.to_owned()))]);
    turn(&stage, &agent, 86_000);
    assert!(stage.views("handoffs").is_empty());
    client.detach();
    stage.until("it is detached", || viewers(&stage, "tasuki-dev") == "0");
    // The look after the last turn may still be under way: then it finds nobody, and the handoff is there before
    // another turn. A text that waits by then is refused when the agent has ended.
    let answer = stage.ask(&json!({"kind": "agent_send", "agent_id": agent, "text": "Please go on with it."}));
    let is_refused = ["not_active", "handoff_in_progress"].map(Value::from).contains(&answer["error"]["code"]);
    assert!(answer["ok"] == true || is_refused, "{answer}");
    let handoff = stage.wait_for("a handoff", || stage.views("handoffs").first().cloned());
    stage.faults("tokens=1000");
    stage.until_step(handoff["handoff_id"].as_str().expect("an id"), "done");
    stage.check_once();
}
