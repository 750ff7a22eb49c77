//! Lists of snapshots in, lines out.

use super::*;
use crate::contract::understood;
use serde_json::{Value, json};

fn seen(view: &Value) -> HandoffView {
    understood(view.clone()).expect("an object")
}

fn step(name: &str, from: u32, to: Option<u32>) -> Value {
    let at = |second: u32| format!("2026-11-21T20:00:{second:02}.000Z");
    json!({"step": name, "entered_at": at(from), "left_at": to.map(at)})
}

fn lines(follower: &mut Follower, views: &[Value]) -> Vec<String> {
    let told = |news: &Progress| match news {
        Progress::Entered { step } => format!("> {step}"),
        Progress::Ended(outcome) => format!("= {}", outcome.as_str()),
        other => line(other).expect("a line").0,
    };
    views.iter().flat_map(|view| follower.observe(&seen(view))).map(|news| told(&news)).collect()
}

#[test]
fn each_step_is_told_once_when_it_begins_and_once_when_it_has_passed() {
    let first = json!({"step": "instructing", "steps": [step("waiting", 0, Some(1)), step("instructing", 1, None)]});
    let second = json!({
        "step": "done",
        "verdicts": {"instruction": {"verdict": "delivered"}, "briefing": {"verdict": "delivered"}},
        "steps": [step("waiting", 0, Some(1)), step("instructing", 1, Some(3)), step("briefing", 3, Some(4)), step("done", 4, None)],
    });
    let told = lines(&mut Follower::new(), &[first.clone(), first, second.clone(), second]);
    let expected = [
        "> waiting",
        "waiting            1.0 s",
        "> instructing",
        "instructing        2.0 s  delivered",
        "> briefing",
        "briefing           1.0 s  delivered",
        "= done",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_failure_is_told_at_its_step_whether_or_not_the_step_was_left() {
    for left in [Some(9), None] {
        let view = json!({
            "step": "failed", "handoff_id": "h1", "steps": [step("waiting", 0, Some(1)), step("writing", 1, left)],
            "error": {"code": "document_missing", "message": "There is no document.", "hint": null},
        });
        let told = lines(&mut Follower::new(), std::slice::from_ref(&view));
        assert!(told.iter().any(|line| line.starts_with("writing") && line.ends_with("stopped here")), "{told:?}");
        assert_eq!(told.last().map(String::as_str), Some("= failed"));
        let error = failure(&seen(&view), FlowEnd::Failed).expect("an error");
        assert_eq!((error.exit, error.code.as_str()), (1, "document_missing"));
        assert_eq!(error.hint.as_deref(), Some("Fix the cause, then: tasuki retry h1"));
    }
}

#[test]
fn the_old_end_of_a_retried_handoff_is_not_its_new_end() {
    let before = json!({"step": "failed", "steps": [step("waiting", 0, Some(1)), step("writing", 1, Some(2))]});
    let after = json!({
        "step": "recording",
        "steps": [step("waiting", 0, Some(1)), step("writing", 1, Some(2)), step("writing", 5, Some(6)), step("recording", 6, None)],
    });
    let told = lines(&mut Follower::after(&seen(&before)), &[before.clone(), after]);
    assert_eq!(told, ["> writing", "writing            1.0 s", "> recording"]);
}

#[test]
fn what_happens_to_a_document_that_is_checked_is_told_once() {
    let view = |reworks: u64, held: Option<&str>, faults: usize| {
        json!({"step": "checking", "handoff_id": "5f2a9c81-d0e3", "steps": [step("checking", 1, None)], "reworks": reworks,
            "held_since": held, "faults": vec![json!({"said": "x"}); faults]})
    };
    let views = [
        view(0, None, 0),
        view(1, None, 3),
        view(1, None, 3),
        view(1, Some("t1"), 1),
        view(1, Some("t1"), 1),
        view(2, None, 0),
    ];
    let held = "the document waits for you (1 fault): tasuki accept 5f2a9c81, tasuki rework 5f2a9c81 --note TEXT, or \
        tasuki cancel 5f2a9c81";
    let expected = [
        "> checking",
        "  document    the agent was asked to fix 3 faults",
        held,
        "  document    the agent was asked to change it",
    ];
    assert_eq!(lines(&mut Follower::new(), &views), expected);
    // The person has just decided: the view does not show it yet.
    let mut follower = Follower::after(&seen(&views[3]));
    assert_eq!(lines(&mut follower, &[view(1, Some("t1"), 1), view(1, Some("t2"), 1)]), ["> checking", held]);
}

#[test]
fn cancelled_is_told_apart_from_failed() {
    let view = json!({"step": "cancelled", "steps": [step("waiting", 0, Some(1))]});
    assert_eq!(
        lines(&mut Follower::new(), std::slice::from_ref(&view)).last().map(String::as_str),
        Some("= cancelled")
    );
    assert_eq!(failure(&seen(&view), FlowEnd::Cancelled).map(|error| error.code).as_deref(), Some("cancelled"));
    assert_eq!(failure(&seen(&view), FlowEnd::Done), None);
}

#[test]
fn the_summary_names_document_successor_and_verdicts() {
    let view = json!({
        "file_path": "/h/a.md", "bytes": 12, "successor_id": "s1", "warnings": ["section missing: blockers"],
        "verdicts": {"instruction": {"verdict": "delivered"}, "priming": null, "briefing": {"verdict": "unconfirmed", "reason": "partial"}},
    });
    let expected = [
        "document   /h/a.md (12 bytes)",
        "successor  s1",
        "verdicts   instruction delivered, briefing unconfirmed (partial)",
        "warning    section missing: blockers",
    ];
    assert_eq!(summary(&seen(&view)), expected);
}

#[test]
fn spans_are_short() {
    assert_eq!((span(0).as_str(), span(59_999).as_str(), span(61_000).as_str()), ("0.0 s", "59.9 s", "1 min 01 s"));
}

#[test]
fn views_of_any_shape_do_no_harm() {
    for view in [json!({}), json!({"steps": 3}), json!({"step": 1, "steps": [null, {"step": []}]})] {
        assert_eq!(Follower::new().observe(&seen(&view)).len(), view["steps"].as_array().map_or(0, |_| 1));
        assert_eq!(summary(&seen(&view)), [] as [String; 0]);
    }
}
