//! Requests from one host to another: carried out once where the host accepts them, and refused where it does not.

use crate::fleet::{TestFleet, text};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

fn code(answer: &Value) -> (u64, String) {
    let status = answer["status"].as_u64().unwrap_or_default();
    (status, answer["error"]["code"].as_str().unwrap_or_default().to_owned())
}

fn refused(status: u64, code: &str) -> (u64, String) {
    (status, code.to_owned())
}

#[test]
fn nobody_may_ask_for_anything_until_the_operator_says_so_and_then_for_that_alone() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    let agent = b.stage.agent("kai");
    let said = |id: &str, request: &Value| code(&a.ask(id, "b", request));
    let view = json!({"kind": "view", "of": "agents", "id": agent});
    assert_eq!(said("s1", &text(&agent, "first")), refused(403, "not_accepted"));
    assert_eq!(said("v1", &view), refused(403, "not_accepted"));
    b.accept("a", &["view"]);
    b.until("the right is known", || {
        let id = format!("v-{}", uuid::Uuid::new_v4());
        a.ask(&id, "b", &view)["status"] == 200
    });
    assert_eq!(said("s2", &text(&agent, "second")), refused(403, "not_accepted"));
    let seen = a.ask("v2", "b", &view);
    assert_eq!(seen["result"]["view"]["agent_id"], json!(agent), "{seen}");
    assert_eq!((&seen["host"], &seen["request_id"]), (&json!("b"), &json!("v2")));
    b.accept("a", &["send"]);
    b.until("the right is known", || {
        let id = format!("s-{}", uuid::Uuid::new_v4());
        a.ask(&id, "b", &text("no-such-agent", "x"))["status"] != 403
    });
    let sent = a.ask("s3", "b", &text(&agent, "third"));
    assert_eq!(sent["result"]["verdict"], "delivered", "{sent}");
    assert_eq!(
        said("h1", &json!({"kind": "handoff", "agent_id": agent, "reason": "context"})),
        refused(403, "not_accepted")
    );
    // What was refused once stays refused: its answer was written down.
    assert_eq!(code(&a.answered("s1")), refused(403, "not_accepted"));
    assert_eq!(b.times_typed(&agent, &["first", "second", "third"].map(str::to_owned)), [0, 0, 1]);
    b.fleet(&["refuse", "a"]);
    b.until("the rights are gone", || {
        let id = format!("g-{}", uuid::Uuid::new_v4());
        a.ask(&id, "b", &view)["status"] == 403
    });
}

#[test]
fn what_waits_in_the_spool_is_taken_back_when_the_right_to_it_is_gone() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["send"]);
    let agent = b.stage.agent("kai");
    let waiting = || fs::read_dir(b.stage.spool("requests")).map_or(0, Iterator::count);
    b.stage.signal(Signal::SIGSTOP);
    a.drop_to("s1", "b", &text(&agent, "no more"), Some("1m"));
    b.until("it is in the spool", || waiting() == 1);
    b.fleet(&["refuse", "a"]);
    // Sooner than by the letter that comes again half a minute after the first.
    b.until_within(Duration::from_secs(15), "it is taken back", || waiting() == 0);
    b.stage.signal(Signal::SIGCONT);
    b.stage.until_beating();
    b.stage.ask(&text(&agent, "from here"));
    assert_eq!(b.times_typed(&agent, &["no more", "from here"].map(str::to_owned)), [0, 1]);
}

#[test]
fn what_can_t_be_asked_is_answered_here() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("*", &["view", "send", "receive", "operate", "work", "personas"]);
    for (id, to, request, expected) in [
        ("e1", "nowhere", json!({"kind": "view", "of": "agents"}), (404, "no_host")),
        ("e2", "../b", json!({"kind": "view", "of": "agents"}), (404, "no_host")),
        ("e3", "a", json!({"kind": "view", "of": "agents"}), (400, "bad_request")),
        ("e4", "b", json!({"kind": "publish", "handoff_id": "x"}), (400, "not_from_elsewhere")),
        ("e5", "b", json!({"kind": "agent_register", "pane": "%1"}), (400, "not_from_elsewhere")),
        ("e6", "b", json!({"kind": 7}), (400, "bad_request")),
        ("e7", "b", json!({"kind": "handoff", "document": {"path": "/etc/passwd"}}), (400, "not_from_elsewhere")),
        ("e8", "b", json!({"kind": "agent_send", "host": "c", "text": "x"}), (400, "not_from_elsewhere")),
    ] {
        let answer = a.ask(id, to, &request);
        assert_eq!(code(&answer), refused(expected.0, expected.1), "{id}");
        // The last two were asked: the host b has refused them.
        assert_eq!(answer["answered_here"], json!(!["e7", "e8"].contains(&id)), "{answer}");
    }
    fs::write(a.files("requests/broken.json"), "{").expect("written");
    assert_eq!(code(&a.answered("broken")), refused(400, "bad_request"));
    fs::write(a.files("requests/bad name.json"), "{}").expect("written");
    // Each lies there with the reason beside it, and so do the six that this host has refused, and the file that is no
    // JSON.
    a.until("it is put aside", || fs::read_dir(a.files("rejected")).is_ok_and(|names| names.count() == 16));
    // The same id and the same bytes: the same answer. Other bytes: refused beside the answer, which stays.
    let first = a.answered("e1");
    a.drop_to("e1", "nowhere", &json!({"kind": "view", "of": "agents"}), None);
    a.until("it is taken", || a.open() == 0);
    assert_eq!(a.answered("e1"), first);
    a.drop_to("e1", "nowhere", &json!({"kind": "view", "of": "work"}), None);
    a.until("it is put aside", || fs::read_dir(a.files("rejected")).is_ok_and(|names| names.count() == 18));
    assert_eq!(a.answered("e1"), first);
    assert_eq!(code(&a.answered("e1.reused")), refused(409, "id_reused"));
}

#[test]
fn a_handoff_is_begun_from_another_host_and_followed_to_its_end() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["operate"]);
    b.stage.agent("kai");
    a.until("its roster shows the agent", || {
        let output = a.stage.command(&["agents", "--all-hosts", "--json"]).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).contains("\"kai\"")
    });
    let output = a.stage.command(&["handoff", "kai@b", "--reason", "context", "--wait"]).output().expect("it runs");
    let said = crate::fleet::succeeded(&output);
    assert!(said.contains("done"), "{said}");
    assert_eq!(b.stage.views("handoffs").len(), 1);
    let lineage = a.stage.command(&["lineage", "kai@b"]).output().expect("it runs");
    assert!(crate::fleet::succeeded(&lineage).contains("by handoff"));
}

#[test]
fn a_persona_is_given_to_another_host_that_accepts_it() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    a.stage.persona("kai");
    let push = |more: &[&str]| {
        let output = a.fleet_command(&[&["persona", "push", "kai", "b"], more].concat()).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, said) = push(&[]);
    assert!(code == Some(77) && said.contains(" fleet accept a personas"), "{said}");
    b.accept("a", &["personas"]);
    b.until("it is accepted", || push(&[]).0 == Some(0));
    let skill = b.stage.home().join("data/personas/kai/skill.md");
    assert!(fs::read_to_string(&skill).expect("it is there").contains("Skill of kai"));
    fs::write(&skill, "changed there").expect("written");
    let (code, said) = push(&[]);
    assert!(code == Some(1) && said.contains("persona_differs"), "{said}");
    assert_eq!(fs::read_to_string(&skill).expect("it is there"), "changed there");
    assert_eq!(push(&["--replace"]).0, Some(0));
    assert_eq!(fs::read_dir(b.files("replaced")).expect("kept").count(), 1);
}
