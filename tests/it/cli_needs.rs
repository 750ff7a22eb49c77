//! `tasuki status` from outside: what it prints for views and error files, and its exit codes.

use crate::support::fake_sidecar::FakeHome;
use crate::support::said::{err, out};
use crate::support::schema::{faults, of};
use serde_json::{Value, json};
use std::process::Output;

const KAI: &str = "11111111-1111-4111-8111-111111111111";
const MIA: &str = "22222222-2222-4222-8222-222222222222";
const HANDOFF: &str = "33333333-3333-4333-8333-333333333333";
const ITEM: &str = "44444444-4444-4444-8444-444444444444";
const ERROR: &str = "55555555-5555-4555-8555-555555555555";
const AT: &str = "2026-11-21T20:00:05.000Z";

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// A home with a failed handoff of kai, and mia, whose context is nearly full.
fn home() -> FakeHome {
    let home = FakeHome::new();
    home.beat(0);
    home.agent(KAI, Some("kai"), None, "idle");
    let mia = json!({"agent_id": MIA, "persona_slug": "mia", "state": "busy", "handoff_suggested": true});
    home.write(&format!("view/agents/{MIA}.json"), &mia);
    let error = json!({"error_id": ERROR, "step": "briefing", "code": "unconfirmed", "hint": "look at the pane",
        "message": "It is not known whether the briefing arrived"});
    let steps = json!([{"step": "failed", "entered_at": AT}]);
    let handoff = json!({"handoff_id": HANDOFF, "agent_id": KAI, "persona_slug": "kai", "step": "failed", "error": error,
        "steps": steps, "created_at": AT});
    home.write(&format!("view/handoffs/{HANDOFF}.json"), &handoff);
    let file = json!({"v": 1, "error_id": ERROR, "at": AT, "code": "unconfirmed", "message": "It is not known", "hint": "Look.",
        "handoff_id": HANDOFF, "agent_id": KAI, "step": "briefing"});
    home.write(&format!("spool/errors/{ERROR}.json"), &file);
    home
}

fn listed(output: &Output) -> Vec<Value> {
    let all: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(output)));
    all.as_array().expect("a list").clone()
}

#[test]
fn what_waits_is_printed_with_its_command_and_the_exit_code_says_so() {
    let home = home();
    let output = home.run(&["status"]);
    assert_eq!((code(&output), err(&output).as_str()), (10, ""));
    let text = out(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "2 things need you (2 agents, 0 running handoffs)");
    assert!(
        lines[1].starts_with("in doubt    kai, handoff 33333333: It is not known whether the briefing arrived  2026-")
    );
    assert_eq!(lines[2..4], ["  look at the pane", "  tasuki retry 33333333 --assume …"]);
    assert_eq!(lines[4], "suggestion  mia, agent 22222222: Its context is nearly full");
    assert_eq!(lines[5..], ["  tasuki handoff 22222222 --reason context_limit --wait"]);
}

#[test]
fn the_list_as_json_is_as_its_schema_says() {
    let home = home();
    std::fs::create_dir_all(home.path().join("view/work/open")).expect("a folder");
    let item = json!({"item_id": ITEM, "type": "bug", "title": "the shop", "status": "escalated", "priority": "high",
        "parent_id": null, "claimed_by": null, "created_at": AT, "escalated_at": AT, "escalation_reason": "no access"});
    home.write(&format!("view/work/{ITEM}.json"), &item);
    std::fs::write(home.path().join("view/work/open").join(ITEM), "").expect("a mark");
    let output = home.run(&["status", "--json"]);
    let all = listed(&output);
    let what: Vec<&str> = all.iter().filter_map(|need| need["what"].as_str()).collect();
    assert_eq!((code(&output), what), (10, vec!["in_doubt", "escalated", "suggestion"]));
    for need in &all {
        assert_eq!(faults(&of("need"), need), [] as [String; 0], "{need}");
        assert_eq!(need.as_object().map(serde_json::Map::len), Some(10), "null or not, each field is there: {need}");
    }
}

/// An error file stays until somebody dismisses it, so what waits longest comes after all newer ones.
#[test]
fn a_failure_is_listed_also_if_there_are_very_many_newer_ones_and_the_list_says_what_it_lacks() {
    let home = home();
    let oldest = std::fs::File::options().write(true).open(home.path().join(format!("spool/errors/{ERROR}.json")));
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3_600);
    oldest.and_then(|file| file.set_modified(hour_ago)).expect("set");
    let more = |numbers: std::ops::RangeInclusive<u32>| {
        for number in numbers {
            home.write(&format!("spool/errors/e-{number}.json"), &json!({"error_id": format!("e-{number}")}));
        }
    };
    more(1..=1_500);
    let output = home.run(&["status"]);
    assert!(out(&output).starts_with("1502 things need you (2 agents, 0 running handoffs)\nin doubt    kai"));
    more(1_501..=2_001);
    let all = listed(&home.run(&["status", "--json"]));
    assert_eq!((all.len(), &all[0]["what"]), (2_002, &json!("degraded")));
    assert_eq!(all[0]["said"], "2 older errors are not read, so this list may lack something");
}

#[test]
fn nothing_is_left_after_a_dismissal_and_no_sidecar_is_no_answer() {
    let home = home();
    std::fs::remove_file(home.path().join(format!("spool/errors/{ERROR}.json"))).expect("dismissed");
    std::fs::remove_file(home.path().join(format!("view/agents/{MIA}.json"))).expect("gone");
    let output = home.run(&["status"]);
    assert_eq!((code(&output), out(&output).as_str()), (0, "Nothing needs you. (1 agent, 0 running handoffs)\n"));
    assert_eq!((code(&home.run(&["status", "--json"])), listed(&home.run(&["status", "--json"]))), (0, vec![]));
    home.beat(60);
    let output = home.run(&["status"]);
    assert_eq!((code(&output), out(&output).as_str()), (69, ""));
    assert!(err(&output).contains("tasuki run --home"), "{}", err(&output));
}

#[test]
fn a_handoff_that_is_not_there_can_be_neither_shown_nor_followed() {
    let home = home();
    // A sidecar would be asked to write the view again.
    home.beat(60);
    for command in [&["show"][..], &["follow"], &["show", "--document"], &["show", "--facts"]] {
        let output = home.run(&[&["handoffs"], command, &[ITEM]].concat());
        let said = err(&output);
        assert!(code(&output) == 1 && said.contains(&format!("Handoff not found: \"{ITEM}\"")), "{command:?}: {said}");
    }
    let output = home.run(&["lineage", ITEM]);
    assert!(err(&output).contains(&format!("Agent not found: \"{ITEM}\"")), "{}", err(&output));
}

#[test]
fn a_sidecar_that_can_not_do_all_of_its_work_needs_a_person() {
    let home = FakeHome::new();
    home.beat(0);
    let path = home.path().join("view/sidecar.json");
    let mut view: Value = serde_json::from_slice(&std::fs::read(path).expect("a view")).expect("JSON");
    (view["state"], view["problem"]) = (json!("degraded"), json!("the disk is full"));
    home.write("view/sidecar.json", &view);
    let output = home.run(&["status"]);
    assert_eq!((code(&output), err(&output).as_str()), (10, ""));
    let lines: Vec<String> = out(&output).lines().map(str::to_owned).collect();
    assert_eq!(lines[0], "1 thing needs you (0 agents, 0 running handoffs)");
    assert_eq!(lines[1], "degraded    tasuki: The sidecar can't do all of its work: the disk is full");
    assert_eq!(lines[2..], ["  tasuki doctor"]);
    // A program that reads the list sees the reason too.
    let output = home.run(&["status", "--json"]);
    let [need] = listed(&output).try_into().expect("one entry");
    assert_eq!((code(&output), &need["what"], &need["command"]), (10, &json!("degraded"), &json!("tasuki doctor")));
    assert_eq!(faults(&of("need"), &need), [] as [String; 0], "{need}");
}

/// Nobody must take a list for whole that lacks a file. The tests may run as root, who can read every file: a pipe in
/// the place of a view can't be read by root either.
#[test]
fn a_list_says_so_if_it_lacks_a_file_that_can_not_be_read() {
    let home = home();
    let pipe = |path: &str| {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let _ = std::fs::remove_file(&path);
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR).expect("a pipe");
    };
    std::fs::create_dir_all(home.path().join("view/work/open")).expect("a folder");
    std::fs::write(home.path().join("view/work/open").join(ITEM), "").expect("a mark");
    for path in [format!("view/agents/{MIA}.json"), format!("view/work/{ITEM}.json")] {
        pipe(&path);
    }
    pipe(&format!("view/handoffs/{HANDOFF}.json"));
    pipe(&format!("spool/errors/{ERROR}.json"));
    let output = home.run(&["status"]);
    assert_eq!((code(&output), err(&output).as_str()), (10, ""));
    let text = out(&output);
    let lines: Vec<&str> = text.lines().collect();
    let said = "degraded    tasuki: 3 files can't be read, so this list may lack something: Can't read ";
    assert!(lines[0] == "1 thing needs you (1 agent, 0 running handoffs)" && lines[1].starts_with(said), "{text}");
    let output = home.run(&["status", "--json"]);
    let [need] = listed(&output).try_into().expect("one entry");
    assert_eq!((code(&output), &need["what"]), (10, &json!("degraded")));
    let lists =
        [&["agents"][..], &["handoffs"], &["errors"], &["work", "list"], &["work", "tree"], &["work", "export"]];
    for list in lists.into_iter().chain([&["lineage", KAI][..], &["work", "stats"]]) {
        for list in [list.to_vec(), [list, &["--json"]].concat()] {
            let output = home.run(&list);
            let said = err(&output);
            let told = said.contains("This list is not whole: 1 file can't be read, and was left out.");
            assert!(code(&output) == 0 && told && said.contains(".json"), "{list:?}: {said}");
        }
    }
    let report = home.run(&["doctor", "--json"]);
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(report.contains("3 views or error files can't be read"), "{report}");
}
