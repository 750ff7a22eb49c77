//! A handoff's document and facts over HTTP, and what a person decides about them.

use super::support::server::{Server, has_curl};
use super::support::stage::Stage;
use serde_json::json;
use std::fs;

const NOBODY: &str = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9afff";

#[test]
fn a_document_is_shown_as_it_was_recorded_and_a_person_asks_for_another_one() {
    if !has_curl() {
        return;
    }
    let stage = Stage::new();
    let agent = stage.agent("kai");
    stage.faults("flaw=headings");
    let id = stage.hand_off_with(&agent, &json!({"check": "hold"}));
    let server = Server::start(stage.command(&["serve"]));
    stage.until("it waits for a person", || stage.handoff_view(&id)["held_since"].is_string());
    let address = |what: &str| format!("api/handoffs/{id}/{what}");
    let path = stage.handoff_view(&id)["file_path"].as_str().expect("a path").to_owned();
    let shown = server.curl(&address("document"), &[]);
    assert_eq!((shown.status, &shown.said), (200, &fs::read_to_string(&path).expect("a document")));
    for header in [
        "content-type: text/markdown; charset=utf-8",
        "x-content-type-options: nosniff",
        "content-security-policy: default-src 'none'",
        "cache-control: no-store",
    ] {
        assert!(shown.headers.contains(header), "{header} is not in {}", shown.headers);
    }
    let facts = server.curl(&address("facts"), &[]);
    assert_eq!((facts.status, &facts.body), (200, &stage.handoff_view(&id)["facts"]));
    facts_are_text_for_those_who_ask_for_text(&stage, &server, &id);
    for what in ["document", "facts"] {
        for unknown in [NOBODY, "nobody", "..%2F..%2Fsidecar"] {
            let answer = server.curl(&format!("api/handoffs/{unknown}/{what}"), &[]);
            assert_eq!((answer.status, answer.text("code")), (404, "no_handoff"), "{unknown}");
        }
    }
    for (body, status) in [(json!({}), 400), (json!({"note": " "}), 400), (json!({"note": "x", "handoff_id": id}), 400)]
    {
        assert_eq!(server.post(&address("rework"), &body, &[]).status, status, "{body}");
    }
    let asked = server.post(&address("rework"), &json!({"note": "Fill the sections."}), &[]);
    assert_eq!(
        (asked.status, asked.text("status"), asked.text("handoff_id")),
        (200, "reworking", id.as_str()),
        "{asked:?}"
    );
    stage.until_step(&id, "done");
    assert!(stage.prompts(&agent).iter().any(|prompt| prompt.contains("Fill the sections.")));
    let late = server.post(&address("rework"), &json!({"note": "once more"}), &[]);
    assert_eq!((late.status, late.text("code")), (409, "already_ended"), "{late:?}");
    // What is shown is what was recorded, or nothing.
    let recorded = fs::read_to_string(&path).expect("a document");
    assert_eq!(server.curl(&address("document"), &[]).said, recorded);
    fs::write(&path, format!("{recorded}\nMore.\n")).expect("written");
    let changed = server.curl(&address("document"), &[]);
    assert_eq!((changed.status, changed.text("code")), (409, "document_changed"), "{changed:?}");
    assert!(!changed.said.contains("More."), "{changed:?}");
    fs::remove_file(&path).expect("removed");
    std::os::unix::fs::symlink("/etc/passwd", &path).expect("a link");
    let link = server.curl(&address("document"), &[]);
    assert_eq!((link.status, link.text("code")), (409, "document_changed"), "{link:?}");
    old_views_are_written_again(&stage, &server, &id, &agent);
}

fn facts_are_text_for_those_who_ask_for_text(stage: &Stage, server: &Server, id: &str) {
    let beside = stage.handoff_view(id)["facts_path"].as_str().expect("a path").replace(".json", ".md");
    let beside = fs::read_to_string(beside).expect("the facts as text");
    for accept in ["text/plain", "text/markdown"] {
        let facts = server.curl(&format!("api/handoffs/{id}/facts"), &["-H", &format!("Accept: {accept}")]);
        assert_eq!((facts.status, &facts.said), (200, &beside), "{accept}");
        assert!(facts.headers.contains(&format!("content-type: {accept}; charset=utf-8")), "{}", facts.headers);
    }
}

/// As 7 days later, when their views have been removed.
fn old_views_are_written_again(stage: &Stage, server: &Server, id: &str, agent: &str) {
    for (address, folder, one) in [
        (format!("api/handoffs/{id}"), "handoffs", id),
        (format!("api/handoffs/{id}/facts"), "handoffs", id),
        (format!("api/agents/{agent}"), "agents", agent),
    ] {
        fs::remove_file(stage.home().join(format!("view/{folder}/{one}.json"))).expect("a view");
        assert_eq!(server.curl(&format!("api/{folder}/{one}?old=false"), &[]).status, 404, "{folder}");
        assert_eq!(server.curl(&address, &[]).status, 200, "{address}");
    }
}

#[test]
fn before_there_is_a_document_there_is_nothing_to_show() {
    if !has_curl() {
        return;
    }
    let stage = Stage::new();
    let agent = stage.agent("kai");
    stage.faults("write_never");
    let id = stage.hand_off(&agent);
    stage.until_failed(&id, "writing", "document_missing");
    let server = Server::start(stage.command(&["serve"]));
    for (what, code) in [("document", "no_document"), ("facts", "no_facts")] {
        let answer = server.curl(&format!("api/handoffs/{id}/{what}"), &[]);
        assert_eq!((answer.status, answer.text("code")), (404, code), "{answer:?}");
    }
}
