//! A handoff's document, its faults and its facts on the command line, and what a person decides about them.

use super::cli::code;
use crate::support::fake_sidecar::{FakeHome, FakeSidecar};
use crate::support::said::{err, out};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tasuki::core::text::sha256;

const KAI: &str = "11111111-1111-4111-8111-111111111111";
const HANDOFF: &str = "44444444-4444-4444-8444-444444444444";
/// It rings, clears the screen and turns the direction of writing.
const TEXT: &str = "# Handoff\n\n\u{7}All \u{1b}[2Jof \u{202e}it\r\n\tin two lines\u{9b}31m\n\n\n";
const SHOWN: &str = "# Handoff\n\nAll [2Jof it\n\tin two lines31m\n";

/// A home whose handoff has this document; the document's path, and the handoff's view.
fn home_with(text: &str) -> (FakeHome, PathBuf, Value) {
    let home = FakeHome::new();
    home.beat(0);
    let folder = home.path().join("data/personas/kai/handoffs");
    fs::create_dir_all(&folder).expect("folders");
    let path = folder.join("a.md");
    fs::write(&path, text).expect("a document");
    let view = json!({
        "handoff_id": HANDOFF, "agent_id": KAI, "persona_slug": "kai", "step": "checking", "check": "hold", "reworks": 1,
        "steps": [{"step": "checking", "entered_at": "2026-11-21T20:00:00.000Z", "left_at": null}], "file_path": path,
        "held_since": "2026-11-21T20:00:01.000Z", "generation": 2,
        "faults": [{"check": "sections", "grade": "fix", "line": null, "said": "has no section about blockers", "is": ""}],
        "facts": {"v": 1, "taken_at": "2026-11-21T20:00:00.000Z",
            "repository": {"root": "/w", "branch": "ma\u{1b}in", "head": "0123456789abcdef", "changed": 0}},
    });
    home.write(&format!("view/handoffs/{HANDOFF}.json"), &view);
    (home, path, view)
}

/// Its persona's folder is gone, with the document: that is when a person must be able to name it.
#[test]
fn a_handoff_is_named_by_its_persona_when_the_persona_s_folder_is_gone() {
    let (home, path, mut view) = home_with(TEXT);
    fs::remove_dir_all(home.path().join("data/personas/kai")).expect("moved away");
    let output = home.run(&["handoffs", "show", "kai"]);
    assert!(code(&output) == 0 && out(&output).contains("44444444"), "{}{}", out(&output), err(&output));
    assert_ne!(code(&home.run(&["handoffs", "show", "mia"])), 0, "nobody has that name");
    (view["sha256"], view["step"]) = (json!(sha256(TEXT.as_bytes())), json!("done"));
    home.write(&format!("view/handoffs/{HANDOFF}.json"), &view);
    let output = home.run(&["handoffs", "show", "kai", "--document"]);
    let said = err(&output);
    assert!(said.contains("is not there any more") && said.contains("backup"), "{said}");
    assert_eq!(said.matches(&path.display().to_string()).count(), 1, "{said}");
}

#[test]
fn the_document_is_printed_without_what_drives_a_terminal() {
    let (home, path, mut view) = home_with(TEXT);
    let output = home.run(&["handoffs", "show", "4444", "--document"]);
    assert_eq!((code(&output), out(&output).as_str(), err(&output).as_str()), (0, SHOWN, ""));
    let output = home.run(&["handoffs", "show", "4444", "--document", "--json"]);
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let expected = json!({"file_path": path, "sha256": sha256(TEXT.as_bytes()), "text": TEXT, "changed": false});
    assert!(said == expected && !out(&output).contains('\u{1b}'), "{said}");
    view["sha256"] = json!(sha256(b"another"));
    home.write(&format!("view/handoffs/{HANDOFF}.json"), &view);
    let output = home.run(&["handoffs", "show", "4444", "--document"]);
    assert_eq!((code(&output), out(&output).as_str()), (0, SHOWN));
    assert!(err(&output).contains("has changed since tasuki recorded it"), "{}", err(&output));
    let said: Value =
        serde_json::from_slice(&home.run(&["handoffs", "show", "4444", "--document", "--json"]).stdout).expect("JSON");
    assert_eq!(said["changed"], true);
}

#[test]
fn without_a_document_or_facts_the_reason_is_told() {
    let (home, path, mut view) = home_with(TEXT);
    fs::remove_file(&path).expect("removed");
    view["facts"] = Value::Null;
    home.write(&format!("view/handoffs/{HANDOFF}.json"), &view);
    for (option, why) in [("--document", "no_document"), ("--facts", "no_facts")] {
        let output = home.run(&["handoffs", "show", "4444", option]);
        assert!(code(&output) == 1 && err(&output).contains(why), "{option}: {}", err(&output));
    }
    std::os::unix::fs::symlink("/etc/passwd", &path).expect("a link");
    let output = home.run(&["handoffs", "show", "4444", "--document"]);
    assert!(code(&output) == 1 && err(&output).contains("document_unsafe") && output.stdout.is_empty());
    assert_eq!(code(&home.run(&["handoffs", "show", "4444", "--document", "--facts"])), 2);
}

#[test]
fn the_facts_are_printed_as_markdown_and_as_json() {
    let (home, _, view) = home_with(TEXT);
    let output = home.run(&["handoffs", "show", "4444", "--facts"]);
    let text = out(&output);
    assert!(text.starts_with("# What tasuki saw at ") && text.contains("- branch: `main`"), "{text}");
    let said: Value =
        serde_json::from_slice(&home.run(&["handoffs", "show", "4444", "--facts", "--json"]).stdout).expect("JSON");
    assert_eq!(
        (&said["taken_at"], &said["repository"]["head"]),
        (&view["facts"]["taken_at"], &json!("0123456789abcdef"))
    );
}

#[test]
fn a_held_handoff_shows_why_and_what_to_do() {
    let (home, _, _) = home_with(TEXT);
    let text = out(&home.run(&["handoffs", "show", "4444"]));
    for part in [
        "held since ",
        "fix   has no section about blockers",
        "HEAD       0123456789ab",
        "generation 2",
        "tasuki rework 44444444 --note TEXT",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let list = out(&home.run(&["handoffs"]));
    assert!(list.contains("checking: waits for you"), "{list}");
}

#[test]
fn what_a_person_asks_for_is_sent() {
    let (home, _, _) = home_with(TEXT);
    let home = Arc::new(home);
    home.agent(KAI, Some("kai"), None, "idle");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let answer = move |_: &FakeHome, request: &Value| {
        log.lock().expect("no panic").push(request.clone());
        Some((200, json!({"status": "reworking", "handoff_id": HANDOFF, "file_path": "/d.md"})))
    };
    let sidecar = FakeSidecar::start(&home, Box::new(answer));
    let output = home.run(&["rework", "4444", "--note", "say which tests you ran"]);
    assert_eq!((code(&output), out(&output)), (0, format!("handoff {HANDOFF} continues\n")));
    for (check, word) in [("off", "off"), ("warn", "warn"), ("fix", "fix"), ("hold", "hold")] {
        let output = home.run(&["handoff", "kai", "--check", check]);
        let last = seen.lock().expect("no panic").last().cloned().expect("a request");
        assert_eq!((code(&output), &last["check"], last.get("review")), (0, &json!(word), None));
    }
    // An agent can't wait for its own handoff, but it can ask for a review.
    let output =
        home.command(&["handoff", KAI, "--review"]).env("TASUKI_AGENT_ID", KAI).output().expect("the program runs");
    drop(sidecar);
    assert!(code(&output) == 0 && err(&output).contains("tasuki accept 44444444"), "{}", err(&output));
    let seen = seen.lock().expect("no panic");
    assert_eq!(
        seen[0],
        json!({"v": 1, "kind": "handoff_rework", "handoff_id": HANDOFF, "note": "say which tests you ran"})
    );
    assert_eq!(seen.last().expect("a request")["review"], true);
    assert_eq!(code(&home.run(&["rework", "4444"])), 2, "a rework needs a note");
}
