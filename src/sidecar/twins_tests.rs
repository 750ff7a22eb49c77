//! Requests whose ids differ by upper and lower case alone: the first is accepted, on every system.

use super::intake_item::IntakeItem;
use super::tests::{Ground, NOTHING};
use crate::core::id::RequestId;
use crate::spool::{Lane, OutputFile, client};
use serde_json::{Value, json};

fn names(ground: &Ground, below: &str) -> Vec<String> {
    let entries = std::fs::read_dir(ground.path(below)).expect("a folder").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Whether names that differ by case alone are different files in the temporary folder. If not, two such files can't
/// wait there.
fn keeps_case(ground: &Ground) -> bool {
    !ground.path("SPOOL").exists()
}

fn assert_refused(answer: &Value, id: &str) {
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(409), &json!("id_reused")), "{answer}");
    assert_eq!(answer["request_id"], id, "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("case")), "{answer}");
}

#[tokio::test]
async fn a_request_whose_id_differs_from_a_known_one_by_case_alone_is_refused_in_a_result_of_its_own() {
    let mut ground = Ground::new().await;
    if !keeps_case(&ground) {
        return;
    }
    ground.drop_again("requests", "Deploy-1.json", NOTHING);
    let first = ground.answer("Deploy-1");
    assert_eq!(first["error"]["code"], "no_agent");
    for twin in ["deploy-1", "DEPLOY-1"] {
        ground.drop_again("requests", &format!("{twin}.json"), NOTHING);
        assert_refused(&ground.answer(twin), twin);
    }
    assert_eq!(names(&ground, "spool/results"), ["DEPLOY-1.json", "Deploy-1.json", "deploy-1.json"]);
    assert_eq!((ground.count("spool/requests"), ground.count("spool/rejected")), (0, 4), "two files, two reasons");
    assert_eq!(ground.answer("Deploy-1"), first);
    // The refusal does not make its id known, also after a restart.
    let mut ground = ground.restarted().await;
    ground.settle();
    std::fs::remove_file(ground.path("spool/results/Deploy-1.json")).expect("removed");
    ground.drop_again("requests", "Deploy-1.json", NOTHING);
    assert_eq!(ground.answer("Deploy-1"), first, "the same answer again");
    ground.drop_again("requests", "deploy-1.json", NOTHING);
    assert_refused(&ground.answer("deploy-1"), "deploy-1");
}

#[tokio::test]
async fn of_two_such_requests_that_wait_at_once_the_first_is_accepted() {
    let mut ground = Ground::new().await;
    if !keeps_case(&ground) {
        return;
    }
    ground.ask("deploy-1.json", NOTHING);
    let older = std::fs::File::options().write(true).open(ground.path("spool/requests/deploy-1.json"));
    let before = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    older.and_then(|file| file.set_modified(before)).expect("an older file");
    ground.drop_again("requests", "Deploy-1.json", NOTHING);
    assert_eq!(ground.answer("deploy-1")["error"]["code"], "no_agent", "it is the older one");
    assert_refused(&ground.answer("Deploy-1"), "Deploy-1");
}

/// As on macOS: there `results/deploy-1.json` would be the file of the first answer, so the refusal gets another name
/// beside it.
#[tokio::test]
async fn where_both_names_are_one_file_the_first_answer_is_neither_replaced_nor_taken_for_the_other_ones() {
    let mut ground = Ground::new().await;
    ground.sidecar.spool.set_folds_case(true);
    ground.drop_again("requests", "Deploy-1.json", NOTHING);
    let first = ground.answer("Deploy-1");
    ground.drop_again("requests", "deploy-1.json", NOTHING);
    assert_eq!(names(&ground, "spool/results"), ["Deploy-1.json", "deploy-1.reused.json"]);
    assert_eq!(ground.answer("Deploy-1"), first);
    assert_refused(&ground.answer("deploy-1.reused"), "deploy-1");
    // On such a system a client that looks for its own answer finds the file of the first one under that name.
    if keeps_case(&ground) {
        std::fs::copy(ground.path("spool/results/Deploy-1.json"), ground.path("spool/results/deploy-1.json"))
            .expect("copied");
    }
    let id: RequestId = "deploy-1".parse().expect("an id");
    let read = || client::read_result(&ground.path(""), &id).expect("read");
    let found: Value = serde_json::from_slice(&read().expect("an answer")).expect("JSON");
    assert_refused(&found, "deploy-1");
    std::fs::remove_file(ground.path("spool/results/deploy-1.reused.json")).expect("removed");
    assert_eq!(read(), None, "the answer of the other request is not its own");
}

/// What becomes of the files that wait in the lane, once they have been at rest for long enough.
fn taken(ground: &mut Ground) -> Vec<IntakeItem> {
    let mut now = ground.sidecar.clock.now();
    let mut found = Vec::new();
    for _ in 0..2 {
        let scan = ground.sidecar.spool.scan(Lane::Requests, 10, 1_000_000, &now);
        found = scan.expect("a scan").found;
        now.boot_ms += 10_000;
    }
    let mut items = Vec::new();
    assert!(ground.sidecar.read_files(found, &mut items, &now).expect("the store is well"));
    items
}

#[tokio::test]
async fn a_request_whose_id_is_reserved_is_refused_under_its_own_name_unless_something_lies_there() {
    let mut ground = Ground::new().await;
    ground.ask("y.reused.json", NOTHING);
    let [item] = &taken(&mut ground)[..] else { panic!("one file") };
    let (file, answer) = item.result.as_ref().expect("an answer");
    assert_eq!(*file, OutputFile::Result("y.reused".parse().expect("an id")));
    assert_eq!((&answer["request_id"], &answer["status"]), (&json!("y.reused"), &json!(400)), "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains(".reused")), "{answer}");
    assert_eq!(answer["kind"], serde_json::from_str::<Value>(NOTHING).expect("JSON")["kind"]);
    assert!(item.event.is_none() && item.why.as_ref().is_some_and(|why| why.code == "bad_name"));
    // The refusal of a reused id comes in the same cycle, or has come before.
    ground.drop_again("requests", "y.json", NOTHING);
    ground.ask("y.json", r#"{"v":1,"kind":"frobnicate"}"#);
    std::fs::remove_file(ground.path("spool/requests/y.reused.json")).expect("removed");
    ground.ask("y.reused.json", NOTHING);
    let both = taken(&mut ground);
    let places: Vec<String> =
        both.iter().flat_map(|item| &item.result).map(|(file, _)| format!("{file:?}").to_ascii_lowercase()).collect();
    assert!(both.len() == 2 && places.len() == 1 && places[0].contains("reused"), "{places:?}");
    std::fs::write(ground.path("spool/results/y.reused.json"), "{}").expect("written");
    std::fs::remove_file(ground.path("spool/requests/y.json")).expect("removed");
    let [item] = &taken(&mut ground)[..] else { panic!("one file") };
    assert!(item.result.is_none() && item.why.is_some(), "what lies there is not replaced");
}
