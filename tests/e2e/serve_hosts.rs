//! What `tasuki serve` shows of other hosts, and how it passes requests to them. The fleet is made of files.

use super::support::fake_bridge::FakeBridge;
use super::support::fake_fleet::{AWAY_SINCE, MIA, box_1, bridge, host, join};
use super::support::fake_sidecar::FakeHome;
use super::support::server::{Answer, Server, has_curl};
use serde_json::{Value, json};
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

fn serve(home: &FakeHome, more: &[&str]) -> Server {
    Server::start(home.command(&[&["--timeout", "5s", "serve"], more].concat()))
}

fn code(answer: &Answer) -> (u16, &str) {
    let code = answer.body["code"].as_str().or_else(|| answer.body["error"]["code"].as_str());
    (answer.status, code.unwrap_or_default())
}

#[test]
fn hosts_are_listed_with_their_states_and_how_much_they_have() {
    if !has_curl() {
        return;
    }
    let home = FakeHome::new();
    let server = serve(&home, &[]);
    for path in ["api/hosts", "api/hosts/box-1/agents"] {
        assert_eq!(code(&server.curl(path, &[])), (404, "no_fleet"), "{path}");
    }
    join(home.path());
    let all = server.curl("api/hosts", &[]);
    let told = |all: &Answer| -> Vec<Value> {
        let hosts = all.body.as_array().unwrap_or_else(|| panic!("{all:?}"));
        hosts.iter().map(|host| json!([host["host"], host["state"], host["own"], host["counts"]["agents"]])).collect()
    };
    assert_eq!(
        told(&all),
        [json!(["attic", "away", false, 1]), json!(["box-1", "live", false, 2]), json!(["desk", "live", true, 0])]
    );
    let counts = json!({"agents": 2, "handoffs": 1, "errors": 1, "personas": 0});
    assert_eq!((&all.body[1]["counts"], &all.body[1]["agents"]), (&counts, &Value::Null));
    assert_eq!((&all.body[0]["away_since"], &all.body[0]["sidecar"]["state"]), (&json!(AWAY_SINCE), &json!("runs")));
    assert_eq!(server.curl("api/hosts?limit=1", &[]).body.as_array().map(Vec::len), Some(1));
    assert_eq!(server.curl("api/hosts?all=true", &[]).status, 400);
    let agents = server.curl("api/hosts/box-1/agents", &[]);
    assert_eq!((&agents.body["state"], &agents.body["away_since"]), (&json!("live"), &Value::Null), "{agents:?}");
    assert_eq!(agents.body["agents"][0]["agent_id"], MIA);
    assert_eq!(server.curl("api/hosts/box-1/handoffs", &[]).body["handoffs"][0]["step"], "writing");
    assert_eq!(server.curl("api/hosts/box-1/errors", &[]).body["errors"][0]["code"], "document_missing");
    assert_eq!(server.curl("api/hosts/attic/agents", &[]).body["away_since"], AWAY_SINCE);
    for name in ["nowhere", "..%2Fdesk", "BOX-1", "%ff"] {
        assert_eq!(code(&server.curl(&format!("api/hosts/{name}/agents"), &[])), (404, "no_host"), "{name}");
    }
    // The bridge was asked to keep them up to date.
    assert!(home.path().join("fleet/looked").exists());
    host(home.path(), "box-1", &json!({"authentic": false}));
    assert_eq!(told(&server.curl("api/hosts", &[]))[1][1], "not authentic");
    bridge(home.path(), None);
    assert!(told(&server.curl("api/hosts", &[])).iter().all(|host| host[1] == "unknown"), "nobody here knows");
    let page = "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n";
    assert!(!server.raw(page).said.contains("data-all-hosts"));
    let with_hosts = serve(&home, &["--all-hosts"]);
    assert!(with_hosts.raw(page).said.contains("data-all-hosts"));
    let get = "GET /api/hosts HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n";
    assert_eq!(code(&with_hosts.raw(get)), (401, "no_token"));
    assert_eq!(code(&with_hosts.raw(&get.replace("{host}", "evil.example"))), (403, "bad_host"));
}

#[test]
fn a_request_to_another_host_gets_that_hosts_answer() {
    if !has_curl() {
        return;
    }
    let home = Arc::new(FakeHome::new());
    join(home.path());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let answer = move |_: &FakeHome, dropped: &Value| {
        let (to, request) = (dropped["to"].as_str().expect("a host"), &dropped["request"]);
        noted.lock().expect("ours").push((to.to_owned(), request.clone()));
        let refused =
            json!({"code": "not_accepted", "message": "box-1 does not accept agent_send from desk", "hint": null});
        match request["kind"].as_str() {
            Some("agent_send") => Some((403, refused)),
            Some("handoff_cancel") => None,
            _ => Some((200, json!({"of": "agents"}))),
        }
    };
    let _bridge = FakeBridge::start(&home, "", Box::new(answer));
    let server = serve(&home, &[]);
    let ask = |host: &str, body: &Value, key: &str| {
        let key = format!("Idempotency-Key: {key}");
        server.post(&format!("api/hosts/{host}/requests"), body, &["-H", &key])
    };
    let send = json!({"v": 1, "kind": "agent_send", "agent_id": MIA, "text": "run the tests"});
    let refused = ask("box-1", &send, "one");
    assert_eq!((code(&refused), refused.text("host")), ((403, "not_accepted"), "box-1"), "{refused:?}");
    assert_eq!(*seen.lock().expect("ours"), [("box-1".to_owned(), send.clone())]);
    // The same key and the same request: the same answer, and nothing is sent again.
    assert_eq!(ask("box-1", &send, "one").body, refused.body);
    let view = json!({"v": 1, "kind": "view", "of": "agents"});
    assert_eq!(code(&ask("box-1", &view, "one")), (409, "id_reused"));
    assert_eq!(code(&ask("attic", &send, "one")), (409, "id_reused"));
    assert_eq!(ask("box-1", &view, "two").body["result"], json!({"of": "agents"}), "a kind that bridges answer");
    assert_eq!(seen.lock().expect("ours").len(), 2);
    assert_eq!(server.curl("api/hosts/box-1/requests/one", &[]).body, refused.body);
    for path in ["api/hosts/attic/requests/one", "api/hosts/box-1/requests/never", "api/hosts/box-1/requests/..%2Fx"] {
        assert_eq!(code(&server.curl(path, &[])), (404, "no_request"), "{path}");
    }
    for (to, body, key, expected) in [
        ("desk", &send, "a", (400, "own_host")),
        ("box-1", &json!({"v": 1, "kind": "agent_send"}), "a", (400, "bad_request")),
        ("box-1", &json!([]), "a", (400, "bad_request")),
        ("box-1", &send, "a.b", (400, "bad_request")),
    ] {
        assert_eq!(code(&ask(to, body, key)), expected, "{to} {body} {key}");
    }
    assert_eq!(seen.lock().expect("ours").len(), 2, "none of these was sent");
    let cancel = json!({"v": 1, "kind": "handoff_cancel", "handoff_id": "h"});
    let late = ask("box-1", &cancel, "late");
    assert_eq!((code(&late), late.text("request_id")), ((504, "no_answer"), "late"), "{late:?}");
    assert_eq!(code(&server.curl("api/hosts/box-1/requests/late", &[])), (404, "no_answer"));
    home.write("fleet/results/late.json", &json!({"host": "box-1", "status": 200, "ok": true, "result": {}}));
    assert_eq!(server.curl("api/hosts/box-1/requests/late", &[]).status, 200);
    bridge(home.path(), None);
    assert_eq!(code(&ask("box-1", &send, "three")), (503, "no_bridge"));
    assert!(home.files("fleet/requests").is_empty() && home.files("fleet/tmp").is_empty());
    assert_eq!(ask("box-1", &send, "one").body, refused.body, "what has an answer keeps it");
}

/// It ended at once the wait of a request that the bridge had taken.
#[test]
fn a_server_that_is_away_for_a_while_ends_no_wait_for_an_answer() {
    if !has_curl() {
        return;
    }
    let home = Arc::new(FakeHome::new());
    join(home.path());
    let answer = |home: &FakeHome, _: &Value| {
        bridge(home.path(), None);
        std::thread::sleep(Duration::from_secs(2));
        bridge(home.path(), Some("tls://box 2.12.7"));
        Some((200, json!({"status": "ok"})))
    };
    let _bridge = FakeBridge::start(&home, "", Box::new(answer));
    let accept = json!({"v": 1, "kind": "handoff_accept", "handoff_id": "h"});
    let answered = serve(&home, &[]).post("api/hosts/box-1/requests", &accept, &[]);
    assert_eq!(answered.status, 200, "{answered:?}");
}

/// The bridge knows all members. It writes their files only while somebody looks at them.
#[test]
fn the_bridge_says_whether_a_host_without_a_file_is_a_member() {
    if !has_curl() {
        return;
    }
    let home = Arc::new(FakeHome::new());
    join(home.path());
    let answer = |_: &FakeHome, dropped: &Value| match dropped["to"].as_str() {
        Some("shed") => Some((200, json!({"of": "agents"}))),
        _ => Some((404, json!({"code": "no_host", "message": "This is not a host of this fleet.", "hint": null}))),
    };
    let _bridge = FakeBridge::start(&home, "", Box::new(answer));
    let server = serve(&home, &[]);
    let ask = |host: &str| {
        let view = json!({"v": 1, "kind": "view", "of": "agents"});
        server.post(&format!("api/hosts/{host}/requests"), &view, &["-H", &format!("Idempotency-Key: {host}")])
    };
    assert_eq!(ask("shed").status, 200);
    assert_eq!(code(&ask("nowhere")), (404, "no_host"));
}

/// The answer to the first request was said of the second, which was never sent.
#[test]
fn a_request_under_the_id_of_one_that_has_no_answer_yet_never_gets_that_ones_answer() {
    if !has_curl() {
        return;
    }
    let home = Arc::new(FakeHome::new());
    join(home.path());
    let _bridge = FakeBridge::start(&home, "", Box::new(|_, _| None));
    let server = serve(&home, &[]);
    let send = |text: &str| json!({"v": 1, "kind": "agent_send", "agent_id": MIA, "text": text});
    let ask = |host: &str, key: &str, text: &str| {
        let key = format!("Idempotency-Key: {key}");
        server.post(&format!("api/hosts/{host}/requests"), &send(text), &["-H", &key])
    };
    let hash = |text: &str| tasuki::core::text::sha256(send(text).to_string().as_bytes());
    let taken = || home.files("fleet/requests").is_empty() && home.path().join("fleet/out/one.json").exists();
    let until_taken = || {
        std::thread::sleep(Duration::from_millis(500));
        let until = SystemTime::now() + Duration::from_secs(60);
        while !taken() {
            assert!(SystemTime::now() < until, "it is not taken");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| ask("box-1", "one", "A"));
        until_taken();
        let others = [("box-1", "B"), ("attic", "A")].map(|(host, text)| scope.spawn(move || ask(host, "one", text)));
        until_taken();
        let delivered = json!({"host": "box-1", "status": 200, "ok": true, "result": {"verdict": "delivered"},
            "request_sha256": hash("A")});
        home.write("fleet/results/one.json", &delivered);
        assert_eq!(first.join().expect("it ends").status, 200);
        for other in others {
            assert_eq!(code(&other.join().expect("it ends")), (409, "id_reused"));
        }
    });
    // The bridge has refused it while the first had no answer.
    let reused = json!({"host": "box-1", "status": 409, "ok": false, "error": {"code": "id_reused", "message": "No."},
        "request_sha256": hash("B")});
    home.write("fleet/results/two.reused.json", &reused);
    assert_eq!(code(&ask("box-1", "two", "B")), (409, "id_reused"));
}

#[test]
fn listeners_are_told_of_hosts_that_change_and_the_bridge_that_somebody_looks() {
    let home = FakeHome::new();
    join(home.path());
    fs::write(home.path().join("spool/journal.jsonl"), "{\"seq\":1,\"type\":\"work\"}\n").expect("a journal");
    let server = serve(&home, &["--all-hosts"]);
    let looked = home.path().join("fleet/looked");
    assert!(!looked.exists(), "nobody listens");
    let mut events = server.listen(None);
    let until = SystemTime::now() + Duration::from_secs(60);
    while !looked.exists() {
        assert!(SystemTime::now() < until, "the bridge is not told");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut told = |host: &str| {
        loop {
            let event = events.until("host").pop().expect("an event");
            if event.data["host"] == host {
                return event;
            }
        }
    };
    // A host may have changed since the client has read the list, so each is told once at the beginning.
    assert_eq!(told("attic").data["state"], "away");
    assert_eq!(told("box-1").data["state"], "live");
    host(home.path(), "box-1", &json!({"away_since": AWAY_SINCE}));
    let event = told("box-1");
    assert_eq!((&event.data["state"], event.id), (&json!("away"), None));
    host(home.path(), "box-1", &box_1("busy"));
    let event = told("box-1");
    assert_eq!((&event.data["state"], &event.data["counts"]["agents"]), (&json!("live"), &json!(2)));
    fs::remove_file(home.path().join("fleet/hosts/attic.json")).expect("ours");
    assert_eq!(told("attic").data, json!({"host": "attic", "gone": true}));
}
