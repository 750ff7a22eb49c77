//! The intake of a few requests that need no agent, and what must be so after it, whatever happened.

use super::stage::Stage;
use super::stage_files::{make_folder, read_json};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// The requests of an intake: what is dropped, and the status and code of the answer.
pub(crate) const ASKED: [(&str, &str, u64, &str); 3] = [
    ("r-unknown", r#"{"v":1,"kind":"handoff_cancel","handoff_id":"nothing"}"#, 404, "no_handoff"),
    ("r-odd", r#"{"v":1,"kind":"agent_send","agent_id":"nobody","text":"hello","tpyo":1}"#, 400, "bad_request"),
    ("r-nobody", r#"{"v":1,"kind":"handoff","agent_id":"nobody","reason":"context_limit"}"#, 404, "no_agent"),
];

/// Drops all of them, and an event that can't be taken.
pub(crate) fn drop_all(stage: &Stage) {
    for (id, text, ..) in ASKED {
        stage.drop_file("requests", &format!("{id}.json"), text.as_bytes());
    }
    stage.drop_file("events", "bad.json", b"{\"v\":1,\"event\":\"no such event\"}");
}

/// The results that are there.
pub(crate) fn results(stage: &Stage) -> BTreeMap<String, Value> {
    let names = stage.names("results").into_iter().filter(|name| !name.starts_with('.'));
    names.filter_map(|name| Some((name.clone(), read_json(&stage.spool("results").join(&name))?))).collect()
}

/// Whether every one of them has its result.
pub(crate) fn all_answered(stage: &Stage) -> bool {
    ASKED.iter().all(|(id, ..)| stage.spool("results").join(format!("{id}.json")).exists())
}

/// Every request is answered once, as it was promised; what was bad is kept once; the ledger knows them.
pub(crate) fn check_intake(stage: &Stage, promised: &BTreeMap<String, Value>, what: &str) {
    stage.until("everything is answered", || {
        all_answered(stage) && stage.names("events").is_empty() && stage.names("requests").is_empty()
    });
    let found = results(stage);
    assert_eq!(found.len(), ASKED.len(), "{what}: {found:#?}\n{}", stage.story());
    for (id, _, status, code) in ASKED {
        let answer = &found[&format!("{id}.json")];
        assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(status), &json!(code)), "{what}: {answer}");
    }
    for (name, answer) in promised {
        assert_eq!(found.get(name), Some(answer), "{what}: an answer that was given is another one now");
    }
    // The same again: the ledger knows it, and answers with the very same words.
    let (id, text, ..) = ASKED[0];
    let result = stage.spool("results").join(format!("{id}.json"));
    fs::remove_file(&result).expect("the result");
    stage.drop_file("requests", &format!("{id}.json"), text.as_bytes());
    assert_eq!(stage.result(id), found[&format!("{id}.json")], "{what}");
    // What was bad lies there once, whole. A crash may leave a reason too many.
    let rejected = stage.names("rejected");
    for bad in ["bad.json", "r-odd.json"] {
        let is_bad = |name: &&String| name.split_once('-').is_some_and(|(_, rest)| rest == bad);
        assert_eq!(rejected.iter().filter(is_bad).count(), 1, "{what}: {rejected:?}\n{}", stage.story());
    }
    stage.check_once();
}

/// Drops them where no sidecar has run yet.
pub(crate) fn drop_before_the_start(stage: &Stage) {
    for room in ["tmp", "requests", "events"] {
        make_folder(&stage.spool(room));
    }
    drop_all(stage);
}
