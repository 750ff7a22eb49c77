//! Drops a few requests that need no agent, and checks what must be true after the intake has taken them, whatever
//! happened meanwhile.

use super::stage::Stage;
use super::stage_files::{make_folder, read_json};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// The requests: id, bytes, and the status and code that the answer must have.
pub(crate) const ASKED: [(&str, &str, u64, &str); 3] = [
    ("r-unknown", r#"{"v":1,"kind":"handoff_cancel","handoff_id":"nothing"}"#, 404, "no_handoff"),
    ("r-odd", r#"{"v":1,"kind":"agent_send","agent_id":"nobody","text":"hello","tpyo":1}"#, 400, "bad_request"),
    ("r-nobody", r#"{"v":1,"kind":"handoff","agent_id":"nobody","reason":"context_limit"}"#, 404, "no_agent"),
];

/// Drops all of [`ASKED`], and a file in `events` that names an unknown event.
pub(crate) fn drop_all(stage: &Stage) {
    for (id, text, ..) in ASKED {
        stage.drop_file("requests", &format!("{id}.json"), text.as_bytes());
    }
    stage.drop_file("events", "bad.json", b"{\"v\":1,\"event\":\"no such event\"}");
}

/// The results that exist so far, by file name.
pub(crate) fn results(stage: &Stage) -> BTreeMap<String, Value> {
    let names = stage.names("results").into_iter().filter(|name| !name.starts_with('.'));
    names.filter_map(|name| Some((name.clone(), read_json(&stage.spool("results").join(&name))?))).collect()
}

/// Whether each request of [`ASKED`] has a result.
pub(crate) fn all_answered(stage: &Stage) -> bool {
    ASKED.iter().all(|(id, ..)| stage.spool("results").join(format!("{id}.json")).exists())
}

/// Checks that each request is answered once, with the answer in `promised` if it was answered before; that each bad
/// file is in `rejected` once; and that the ledger knows the requests. `what`: what the test has done, for messages.
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
    // The same request again: the ledger knows it, and gives the same answer.
    let (id, text, ..) = ASKED[0];
    let result = stage.spool("results").join(format!("{id}.json"));
    fs::remove_file(&result).expect("the result");
    stage.drop_file("requests", &format!("{id}.json"), text.as_bytes());
    assert_eq!(stage.result(id), found[&format!("{id}.json")], "{what}");
    // Each bad file is there once. A crash may leave a second file with the reason.
    let rejected = stage.names("rejected");
    for bad in ["bad.json", "r-odd.json"] {
        let is_bad = |name: &&String| name.split_once('-').is_some_and(|(_, rest)| rest == bad);
        assert_eq!(rejected.iter().filter(is_bad).count(), 1, "{what}: {rejected:?}\n{}", stage.story());
    }
    stage.check_once();
}

/// Drops the same files into a home in which no sidecar has run yet.
pub(crate) fn drop_before_the_start(stage: &Stage) {
    for room in ["tmp", "requests", "events"] {
        make_folder(&stage.spool(room));
    }
    drop_all(stage);
}
