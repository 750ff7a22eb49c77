//! How people name agents and handoffs, from outside.

use crate::support::fake_sidecar::FakeHome;
use crate::support::said::{err, out};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

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
    assert!(code == Some(1) && text.contains("no recent handoff of an agent of mia"), "{text}");
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

#[test]
fn what_does_not_exist_is_refused_where_it_is_typed() {
    let home = FakeHome::new();
    home.beat(0);
    let (code, text) = said(&home, &["persona", "new", "bob", "--profile", "nope"]);
    assert!(code == Some(1) && text.contains("There is no profile nope.") && text.contains("claude"), "{text}");
    assert!(!home.path().join("data/personas/bob").exists(), "nothing was made");
    let (code, text) = said(&home, &["work", "list", "--status", "nope"]);
    assert!(code == Some(2) && text.contains("withdrawn"), "{text}");
    let view = json!({"handoff_id": OLD, "persona_slug": "kai", "step": "done", "created_at": "-", "steps": []});
    home.write(&format!("view/handoffs/{OLD}.json"), &view);
    let (code, text) = said(&home, &["clarify", "1111", "--answer", "main"]);
    assert!(code == Some(1) && text.contains("has no open questions"), "{text}");
}

#[test]
fn handoffs_are_sorted_by_what_is_shown_and_a_long_reason_is_cut() {
    let home = FakeHome::new();
    home.beat(0);
    for (id, at) in
        [(OLD, "2026-11-21T20:00:01.000Z"), (NEW, "2026-11-21T20:00:02.000Z"), (NEW, "2026-11-21T20:00:02.000Z")]
    {
        let view =
            json!({"handoff_id": id, "step": "done", "created_at": at, "steps": [], "reason": "long ".repeat(3_000)});
        home.write(&format!("view/handoffs/{id}.json"), &view);
    }
    let view = json!({"handoff_id": OLD, "step": "done", "created_at": "2026-11-21T20:00:01.000Z", "steps": [], "reason": "short"});
    home.write(&format!("view/handoffs/{OLD}.json"), &view);
    let (_, text) = said(&home, &["handoffs"]);
    let rows: Vec<&str> = text.lines().skip(1).collect();
    assert!(rows[0].starts_with("22222222") && rows[1].starts_with("11111111"), "{text}");
    assert!(rows[0].ends_with('…') && rows[0].chars().count() < 250, "{text}");
}

#[test]
fn who_stops_to_look_on_is_told_that_it_goes_on_and_how_to_look_again() {
    let home = FakeHome::new();
    home.beat(0);
    let steps = json!([{"step": "writing", "entered_at": "2026-11-21T20:00:01.000Z", "left_at": null}]);
    let document = json!({"bytes": 12, "at": "2026-11-21T20:00:02.000Z"});
    let view = json!({"handoff_id": OLD, "step": "writing", "steps": steps, "document": document});
    home.write(&format!("view/handoffs/{OLD}.json"), &view);
    let mut command = home.command(&["handoffs", "follow", "1111"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut first = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut first).expect("a line");
    assert!(first.contains("12 bytes"), "{first}");
    kill(Pid::from_raw(i32::try_from(child.id()).expect("an id")), Signal::SIGINT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    let said = err(&output);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("is not affected and continues.") && said.contains("tasuki handoffs follow 1111"), "{said}");
}
