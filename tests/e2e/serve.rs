//! `tasuki serve` over a real sidecar: the scenarios of the handoff endpoint, by curl; every list and every kind; and
//! what is told while a handoff passes.

use super::flow::external;
use super::support::schema::{faults, of};
use super::support::server::{Server, has_curl};
use super::support::stage::Stage;
use super::support::steps::STEPS;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const NOBODY: &str = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9afff";
const PLAIN: &str = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9a001";
const NAMED: &str = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9a002";
const ENDED: &str = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9a003";

fn serve(stage: &Stage) -> Server {
    Server::start(stage.command(&["serve"]))
}

fn trigger(server: &Server, agent: &str, body: &Value) -> super::support::server::Answer {
    server.post(&format!("api/agents/{agent}/handoff"), body, &[])
}

#[test]
fn the_endpoint_answers_each_scenario_with_its_own_words() {
    if !has_curl() {
        return;
    }
    let stage = Stage::new();
    let agent = stage.agent("developer-con-1");
    external(&stage, NAMED, "developer-con-1");
    for (name, id) in [("a.json", PLAIN), ("b.json", ENDED)] {
        let event = json!({"v": 1, "event": "session_start", "agent_id": id, "session_id": id});
        stage.drop_file("events", name, event.to_string().as_bytes());
    }
    stage.until("both are seen", || [PLAIN, ENDED].iter().all(|id| stage.agent_view(id)["state"] == "idle"));
    let event = json!({"v": 1, "event": "session_end", "agent_id": ENDED, "session_id": ENDED});
    stage.drop_file("events", "c.json", event.to_string().as_bytes());
    stage.until("one has ended", || stage.agent_view(ENDED)["state"] == "ended");
    let server = serve(&stage);
    let reason = json!({"reason": "context_limit"});
    for (id, body, status, code, error) in [
        (PLAIN, &reason, 400, "no_persona", "Agent has no persona"),
        (NAMED, &reason, 400, "no_pane", "Agent has no tmux pane"),
        (ENDED, &reason, 400, "not_active", "Agent is not active"),
        (NOBODY, &reason, 404, "no_agent", "Agent not found"),
        ("nobody", &reason, 404, "no_agent", "Agent not found"),
        ("%2e%2e%2f", &reason, 404, "no_agent", "Agent not found"),
        (agent.as_str(), &json!({"reason": " "}), 400, "bad_request", "reason must not be empty"),
    ] {
        let answer = trigger(&server, id, body);
        assert_eq!((answer.status, answer.text("code"), answer.text("error")), (status, code, error), "{id}");
    }
    for body in
        [json!({}), json!({"reason": "x", "focuss": "y"}), json!({"reason": "x", "agent_id": NOBODY}), json!([])]
    {
        assert_eq!(trigger(&server, &agent, &body).status, 400, "{body}");
    }
    assert!(stage.views("handoffs").is_empty(), "nothing was begun");
    let answer = trigger(&server, &agent, &json!({"reason": "context_limit", "focus": "the flaky test"}));
    assert_eq!((answer.status, answer.text("status")), (200, "initiated"), "{answer:?}");
    let handoff = answer.text("handoff_id").to_owned();
    assert!(answer.text("file_path").contains("/data/personas/developer-con-1/handoffs/"));
    let again = trigger(&server, &agent, &reason);
    let conflict = (409, "handoff_in_progress", "Handoff already in progress");
    assert_eq!((again.status, again.text("code"), again.text("error")), conflict);
    // It goes on by itself, to its end.
    let view = stage.until_step(&handoff, "done");
    assert_eq!((&view["reason"], &view["focus"]), (&json!("context_limit"), &json!("the flaky test")));
    stage.check_done(&view);
    assert_eq!(trigger(&server, &agent, &reason).text("error"), "Agent is not active");
}

#[test]
fn the_steps_of_a_handoff_and_its_failure_are_told_as_they_pass() {
    let stage = Stage::new();
    let agent = stage.agent("kai");
    let mut server = serve(&stage);
    let mut events = server.listen(None);
    let handoff = stage.hand_off(&agent);
    stage.until_step(&handoff, "done");
    let mut steps: Vec<String> = Vec::new();
    while steps.last().is_none_or(|last| last != "done") {
        let event = events.next().expect("the stream goes on");
        // What changes without a line has no number.
        if event.name == "changed" {
            continue;
        }
        assert_eq!(
            (event.id, event.name.as_str()),
            (event.data["seq"].as_u64(), event.data["type"].as_str().unwrap_or(""))
        );
        if event.name == "handoff.step" && event.data["document_bytes"].is_null() {
            steps.push(event.data["step"].as_str().expect("a step").to_owned());
        }
    }
    assert_eq!(steps, STEPS);
    stage.faults("write_never");
    let next = stage.handoff_view(&handoff)["successor_id"].as_str().expect("a successor").to_owned();
    stage.until_idle(&next);
    let failing = stage.hand_off(&next);
    let seen = events.until("handoff.failed");
    let failed = seen.last().expect("it came");
    assert_eq!((&failed.data["handoff_id"], &failed.data["code"]), (&json!(failing), &json!("document_missing")));
    // From the beginning on, all of it again, without a gap.
    let mut again = server.listen(Some(0));
    let ids: Vec<u64> = again.until("handoff.failed").iter().filter_map(|event| event.id).collect();
    assert_eq!(ids, (1..=failed.id.expect("a seq")).collect::<Vec<u64>>());
    // In good order: the listeners are told, and it ends with 0.
    assert_eq!(server.end(Signal::SIGTERM).code(), Some(0));
    assert_eq!(events.until("stopping").last().map(|event| event.id), Some(None));
    assert_eq!(events.next(), None);
}

/// Each list, and each of its members alone, is as its schema says.
fn lists(server: &Server, agent: &str, handoff: &str, item: &str) {
    for (path, format, one) in [
        ("api/agents", "agent_view", Some(agent)),
        ("api/handoffs", "handoff_view", Some(handoff)),
        ("api/work", "work_view", Some(item)),
        ("api/errors", "error", None),
        ("api/needs", "need", None),
    ] {
        let answer = server.curl(path, &[]);
        let all = answer.body.as_array().unwrap_or_else(|| panic!("{answer:?}")).clone();
        assert!(answer.status == 200 && !all.is_empty(), "{path}: {answer:?}");
        all.iter().for_each(|value| assert_eq!(faults(&of(format), value), [] as [String; 0], "{path}"));
        if let Some(id) = one {
            // It may change between two looks.
            let mut all = all;
            let mut alone = server.curl(&format!("{path}/{id}"), &[]);
            for _ in 0..10 {
                if all.contains(&alone.body) {
                    break;
                }
                all = server.curl(path, &[]).body.as_array().expect("a list").clone();
                alone = server.curl(&format!("{path}/{id}"), &[]);
            }
            assert!(alone.status == 200 && all.contains(&alone.body), "{path}: {alone:?}");
            assert_eq!(server.curl(&format!("{path}/{NOBODY}"), &[]).status, 404, "{path}");
            assert_eq!(server.curl(&format!("{path}/..%2F..%2Fsidecar"), &[]).status, 404, "{path}");
        }
        assert_eq!(server.curl(&format!("{path}?limit=1"), &[]).body.as_array().map(Vec::len), Some(1));
        assert_eq!(server.curl(&format!("{path}?limit=0"), &[]).status, 400);
        assert_eq!(server.curl(&format!("{path}?all=maybe"), &[]).status, 400);
    }
}

#[test]
fn agents_are_found_by_their_place_and_a_monitor_learns_whether_the_sidecar_lives() {
    if !has_curl() {
        return;
    }
    let stage = Stage::new();
    let agents = stage.agents(&["kai", "mia"]);
    let view = stage.agent_view(&agents[0]);
    let server = serve(&stage);
    let found = |query: &str| -> Vec<String> {
        let answer = server.curl(&format!("api/agents?{query}"), &[]);
        let all = answer.body.as_array().unwrap_or_else(|| panic!("{query}: {answer:?}"));
        all.iter().filter_map(|agent| agent["agent_id"].as_str().map(str::to_owned)).collect()
    };
    let pane = view["pane"].as_str().expect("a pane").trim_start_matches('%').to_owned();
    assert_eq!(found(&format!("pane={pane}")), [agents[0].clone()]);
    assert_eq!(found(&format!("pane=%25{pane}")), [agents[0].clone()]);
    let session = view["tmux_session"].as_str().expect("a session");
    let mut there = found(&format!("session={session}"));
    there.sort_unstable();
    let mut same = agents;
    same.retain(|agent| stage.agent_view(agent)["tmux_session"] == session);
    same.sort_unstable();
    assert_eq!(there, same);
    assert_eq!(found("session=nowhere"), [] as [String; 0]);
    assert_eq!(server.curl("api/agents?pane=x", &[]).status, 400);

    let health = server.curl("api/health", &[]);
    assert_eq!((health.status, &health.body["alive"], health.text("state")), (200, &json!(true), "running"));
    let counts = json!({"agents": 2, "handoffs": 0, "errors": 0, "needs": 0});
    assert_eq!((&health.body["counts"], health.text("version")), (&counts, env!("CARGO_PKG_VERSION")));
    assert!(health.body["heartbeat_age_ms"].as_i64().is_some_and(|age| age < 15_000), "{health:?}");
    assert_eq!(server.raw("GET /api/health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").status, 401);
    stage.end_sidecar(Signal::SIGTERM);
    let gone = server.curl("api/health", &[]);
    assert_eq!((gone.status, &gone.body["alive"], &gone.body["state"]), (503, &json!(false), &json!(null)));
}

#[test]
fn what_is_shown_is_what_the_views_hold_and_every_kind_is_taken() {
    if !has_curl() {
        return;
    }
    let stage = Stage::new();
    let agent = stage.agent("kai");
    stage.faults("write_never");
    let handoff = stage.hand_off(&agent);
    stage.until_failed(&handoff, "writing", "document_missing");
    let server = serve(&stage);
    let ask = |body: &Value, key: &str| server.post("api/requests", body, &["-H", &format!("Idempotency-Key: {key}")]);
    let create = json!({"v": 1, "kind": "work_create", "type": "task", "title": "<b>mend</b> \u{1b}[31m it"});
    let made = ask(&create, "make-1");
    assert_eq!((made.status, &made.body["ok"], made.text("request_id")), (200, &json!(true), "make-1"), "{made:?}");
    let item = made.body["result"]["item_id"].as_str().expect("an id").to_owned();
    // The same key and bytes: the same answer, and no second item. The same key and other bytes: refused.
    assert_eq!(ask(&create, "make-1").body, made.body);
    let other = json!({"v": 1, "kind": "work_create", "type": "task", "title": "other"});
    for _ in 0..2 {
        let reused = ask(&other, "make-1");
        assert_eq!((reused.status, &reused.body["error"]["code"]), (409, &json!("id_reused")), "{reused:?}");
    }
    assert_eq!(server.curl("api/requests/make-1", &[]).body, made.body);
    assert_eq!(server.curl("api/requests/make-2", &[]).text("code"), "no_request");
    for wrong in [".hidden", "a/b", "a b", ""] {
        let answer = ask(&create, wrong);
        // A header without a value is no header for curl.
        assert!(answer.status == 400 || wrong.is_empty(), "{wrong}: {answer:?}");
    }
    lists(&server, &agent, &handoff, &item);
    assert_eq!(faults(&of("sidecar_view"), &server.curl("api/sidecar", &[]).body), [] as [String; 0]);
    assert_eq!(server.curl("api/agents", &[]).body[0], stage.agent_view(&agent));
    assert_eq!(server.curl("api/handoffs", &[]).body[0], stage.handoff_view(&handoff));
    let personas = server.curl("api/personas", &[]).body;
    assert_eq!((&personas[0]["persona_slug"], &personas[0]["profile"]), (&json!("kai"), &json!("demo")), "{personas}");
    assert_eq!(server.curl("api/openapi.json", &[]).body, tasuki::cli::serve::document());
    // Each kind is taken as the spool takes it: what lacks its fields is refused by their names.
    for kind in tasuki::core::request::KINDS {
        let answer = server.post("api/requests", &json!({"v": 1, "kind": kind}), &[]);
        assert!([400, 422].contains(&answer.status) && answer.body["kind"] == kind, "{kind}: {answer:?}");
    }
    assert_eq!(server.post("api/requests", &json!({"v": 1, "kind": "nonsense"}), &[]).status, 400);
    let dismiss = json!({"v": 1, "kind": "error_dismiss", "error_id": stage.errors()[0]["error_id"]});
    assert_eq!(server.post("api/requests", &dismiss, &[]).status, 200);
    assert_eq!(server.curl("api/errors", &[]).body, json!([]));
    stage.end_sidecar(Signal::SIGTERM);
    let gone = server.post("api/requests", &create, &[]);
    assert_eq!((gone.status, gone.text("code")), (503, "no_sidecar"));
    // What has an answer keeps it.
    assert_eq!(ask(&create, "make-1").body, made.body);
    assert_eq!(server.curl("api/agents", &[]).status, 200);
}

/// Only one answer to other bytes lies beside the first one's, and all of these wait for theirs.
#[test]
fn many_bodies_under_one_key_at_once_are_all_answered() {
    if !has_curl() {
        return;
    }
    let stage = Stage::new();
    let server = serve(&stage);
    let ask = &|handoff: usize| {
        let body = json!({"v": 1, "kind": "handoff_cancel", "handoff_id": format!("h-{handoff}")});
        server.post("api/requests", &body, &["-H", "Idempotency-Key: one"])
    };
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..8).map(|number| scope.spawn(move || ask(number).status)).collect();
        asked.into_iter().map(|asked| asked.join().expect("it asked")).collect()
    });
    let of = |status: u16| statuses.iter().filter(|found| **found == status).count();
    assert_eq!((of(404), of(409)), (1, 7), "{statuses:?}");
    let body = json!({"v": 1, "kind": "handoff_cancel", "handoff_id": "h-0"});
    let reserved = server.post("api/requests", &body, &["-H", "Idempotency-Key: one.reused"]);
    assert_eq!((reserved.status, reserved.text("code")), (400, "bad_request"), "{reserved:?}");
}
