//! How people name agents and handoffs, from outside.

use crate::cli::{err, out};
use crate::support::fake_sidecar::FakeHome;
use serde_json::json;
use std::fs;

const OLD: &str = "11111111-1111-4111-8111-111111111111";
const NEW: &str = "22222222-2222-4222-8222-222222222222";

fn persona(home: &FakeHome, slug: &str) {
    fs::create_dir_all(home.path().join("data/personas").join(slug)).expect("a persona");
}

fn said(home: &FakeHome, args: &[&str]) -> (Option<i32>, String) {
    let output = home.run(args);
    (output.status.code(), out(&output) + &err(&output))
}

#[test]
fn a_handoff_is_named_by_its_persona_and_the_last_one_is_meant() {
    let home = FakeHome::new();
    home.beat(0);
    persona(&home, "kai");
    persona(&home, "mia");
    for (id, at) in [(NEW, "2026-11-21T20:00:02.000Z"), (OLD, "2026-11-21T20:00:01.000Z")] {
        let view = json!({"handoff_id": id, "persona_slug": "kai", "step": "done", "created_at": at, "steps": []});
        home.write(&format!("view/handoffs/{id}.json"), &view);
    }
    let (code, text) = said(&home, &["handoffs", "show", "kai"]);
    assert!(code == Some(0) && text.contains(&format!("handoff {NEW}")), "{text}");
    let (code, text) = said(&home, &["handoffs", "show", "mia"]);
    assert!(code == Some(1) && text.contains("No agent of mia was handed off"), "{text}");
    let (code, text) = said(&home, &["handoffs", "show", "zoe"]);
    assert!(
        code == Some(1) && text.contains("Handoff not found: \"zoe\"") && text.contains("`tasuki handoffs`"),
        "{text}"
    );
}

#[test]
fn who_is_not_there_is_told_with_the_reason() {
    let home = FakeHome::new();
    persona(&home, "kai");
    // Without a sidecar nobody knows of agents.
    for args in [&["handoff", "kai"][..], &["send", "kai", "hello"], &["retry", "5f2a"], &["work", "claim", "5f2a"]] {
        let (code, text) = said(&home, args);
        assert!(
            code == Some(69) && text.contains("not found: \"") && text.contains("tasuki run --home"),
            "{args:?}: {text}"
        );
    }
    home.beat(0);
    let (code, text) = said(&home, &["send", "kai", "hello"]);
    assert!(code == Some(1) && text.contains("No agent has the persona kai.\u{20}(no_agent)"), "{text}");
    assert!(text.contains("tasuki agent create kai"), "{text}");
    let (code, text) = said(&home, &["errors", "dismiss", "5f2a"]);
    assert!(
        code == Some(1) && text.contains("Error not found: \"5f2a\"") && text.contains("`tasuki errors`"),
        "{text}"
    );
}

#[test]
fn errors_of_a_place_where_no_sidecar_ever_ran_end_with_69() {
    let home = FakeHome::new();
    let (code, text) = said(&home, &["errors"]);
    assert!(code == Some(0) && text.contains("No sidecar runs") && text.contains("No errors."), "{text}");
    fs::remove_dir_all(home.path().join("view")).expect("no views");
    let (code, text) = said(&home, &["errors"]);
    assert!(code == Some(69) && text.contains("No sidecar runs"), "{text}");
}
