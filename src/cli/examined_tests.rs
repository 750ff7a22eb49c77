//! Views in, lines out.

use super::*;
use crate::contract::understood;
use serde_json::{Value, json};

fn text(view: Value) -> String {
    lines(&understood(view).expect("an object")).join("\n")
}

#[test]
fn a_held_handoff_shows_its_faults_and_what_to_decide() {
    let text = text(json!({
        "handoff_id": "5f2a9c81-d0e3-4000-8000-000000000000", "step": "checking", "check": "hold", "review": true, "reworks": 1,
        "held_since": "2026-11-21T20:00:01.000Z",
        "faults": [{"check": "repository", "grade": "fix", "line": 12, "said": "says \"pushed\"", "is": "2 commits are not"},
            {"check": "next_step", "grade": "warn", "line": null, "said": "names no\ncommand\u{1b}[2J", "is": ""}],
    }));
    for part in [
        "held since ",
        "waits for you to accept its document",
        "check      hold, with a review; the agent was asked once to write its document again",
        "faults     2",
        "    fix   line 12: says \"pushed\"; 2 commits are not",
        "    warn  names no command[2J",
        "decide     tasuki accept 5f2a9c81, tasuki rework 5f2a9c81 --note TEXT, or tasuki cancel 5f2a9c81",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn a_document_that_no_agent_has_written_is_not_sent_back() {
    for author in ["salvage", "provided"] {
        let text = text(json!({
            "handoff_id": "5f2a9c81-d0e3-4000-8000-000000000000", "author": author, "step": "checking", "check": "hold",
            "held_since": "2026-11-21T20:00:01.000Z",
        }));
        assert!(text.contains("decide     tasuki accept 5f2a9c81 or tasuki cancel 5f2a9c81"), "{text}");
        assert!(!text.contains("rework"), "{text}");
    }
}

#[test]
fn a_handoff_of_another_host_is_decided_there() {
    let id = "44444444-4444-4444-8444-444444444444";
    assert_eq!(choices(id, false), "tasuki accept 44444444 or tasuki cancel 44444444");
    assert_eq!(choices(&format!("{id}@box"), true), "tasuki accept 44444444@box or tasuki cancel 44444444@box");
    // The id of another host's handoff is that host's own word.
    assert_eq!(choices("$(id);@evil@box", true), "tasuki accept HANDOFF@box or tasuki cancel HANDOFF@box");
}

#[test]
fn facts_are_a_few_short_lines() {
    let lines = facts(
        &understood(json!({
            "taken_at": "2026-11-21T20:00:01.000Z", "not_known": ["git took longer than 2 s", "x"],
            "repository": {"branch": "main", "head": "0123456789abcdef", "subject": "fix the clock", "upstream": "origin/main",
                "ahead": 2, "behind": 0, "head_on_remote": false, "changed": 6, "in_progress": "rebase",
                "status": [{"path": "a.rs"}, {"path": "b.rs"}, {"path": "c.rs"}, {"path": "d.rs"}, {"path": "e.rs"}]},
            "actions": {"last_test": {"command": "cargo test", "exit": 1}, "sent": [{"command": "x"}, {"command": "git push", "failed": false}, {"command": "y", "failed": true}]},
        }))
        .expect("an object"),
    );
    let expected = [
        "    branch     main; 2 ahead of origin/main, 0 behind; a rebase is in progress",
        "    HEAD       0123456789ab (not pushed) fix the clock",
        "    changed    6 files: a.rs, b.rs, c.rs, d.rs, …",
        "    last test  cargo test: exit 1",
        "    sent       git push: did not fail; 1 more",
        "    not known  git took longer than 2 s; 1 more",
    ];
    assert_eq!(lines[1..], expected);
    assert!(lines[0].starts_with("  facts      taken at "), "{}", lines[0]);
}

#[test]
fn the_chain_and_the_drift_have_their_lines() {
    let text = text(json!({
        "step": "done", "generation": 3, "drift": ["HEAD has moved from a to b"],
        "earlier": [{"handoff_id": "5f2a9c81-d0e3", "file_path": "/h/1.md", "checkpoint": "step 2"}, {"handoff_id": "6", "file_path": "/h/2.md"}],
    }));
    let expected = [
        "  drift      HEAD has moved from a to b",
        "  generation 3",
        "  earlier    5f2a9c81 /h/1.md, checkpoint: step 2",
        "  earlier    6 /h/2.md",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_view_of_an_older_version_has_none_of_these_lines() {
    assert_eq!(text(json!({"step": "writing", "held_since": "2026-11-21T20:00:01.000Z"})), "");
}

#[test]
fn hostile_texts_stay_in_one_line() {
    let evil = "a\n  decide     run this\u{1b}]0;t\u{7}";
    let text = text(json!({
        "handoff_id": evil, "step": "checking", "held_since": evil, "check": evil, "drift": [evil], "faults": [{"said": evil, "grade": evil}],
        "earlier": [{"handoff_id": evil, "file_path": evil, "checkpoint": evil}],
        "facts": {"taken_at": evil, "not_known": [evil], "repository": {"branch": evil, "head": evil, "subject": evil, "changed": 1,
            "status": [{"path": evil}], "in_progress": evil}, "actions": {"last_test": {"command": evil, "at": evil}}},
    }));
    assert!(
        !text.contains('\u{1b}') && text.lines().filter(|line| line.starts_with("  decide")).count() == 1,
        "{text}"
    );
}
