//! Which files the screen is made from.

use super::*;
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, SystemTime};

/// Writes a file of a home, as old as that.
fn put(home: &Home, name: &str, minutes: u64, value: &Value) {
    let path = home.root().join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(&path, value.to_string()).expect("written");
    let file = fs::File::options().write(true).open(path).expect("there");
    file.set_modified(SystemTime::now() - Duration::from_secs(minutes * 60)).expect("set");
}

#[test]
fn what_waits_longest_is_listed_also_if_there_are_many_newer_errors_and_handoffs() {
    let dir = tempfile::tempdir().expect("a folder");
    let home = Home::at(dir.path()).expect("a home");
    let error = json!({"error_id": "e-0", "step": "briefing", "code": "unconfirmed", "message": "Nobody knows"});
    let file = json!({"error_id": "e-0", "step": "briefing", "code": "unconfirmed", "handoff_id": "h-0"});
    put(&home, "spool/errors/e-0.json", 90, &file);
    put(
        &home,
        "view/handoffs/h-0.json",
        90,
        &json!({"handoff_id": "h-0", "agent_id": "a", "step": "failed", "error": error}),
    );
    (1..=MOST_HANDOFFS).for_each(|n| {
        let id = format!("h-{n}");
        put(&home, &format!("view/handoffs/{id}.json"), 1, &json!({"handoff_id": id, "agent_id": "a", "step": "done"}));
        put(&home, &format!("spool/errors/e-{n}.json"), 1, &json!({"error_id": format!("e-{n}"), "code": "c"}));
    });
    let mut reader = Reader::new(&home, None);
    let model = reader.refresh().expect("a model");
    assert_eq!(model.needs.len(), 1 + MOST_HANDOFFS);
    assert_eq!((model.needs[0].what.as_str(), model.needs[0].handoff_id.as_deref()), ("in_doubt", Some("h-0")));
    assert_eq!(model.left_out, ["1 older handoffs are not shown"]);
    let more = needs::MOST_FAILURES - MOST_HANDOFFS;
    (0..more).for_each(|n| put(&home, &format!("spool/errors/f-{n}.json"), 1, &json!({"error_id": format!("f-{n}")})));
    reader.failures = Reader::new(&home, None).failures;
    let needs = reader.refresh().expect("a model").needs;
    assert_eq!(needs[0].said, "1 older error is not read, so this list may lack something");
    assert_eq!(needs.len(), 1 + needs::MOST_FAILURES);
}
