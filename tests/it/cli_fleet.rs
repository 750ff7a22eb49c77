//! Lists of all hosts, waits for the answer of another one, and the program that `tasuki fleet` runs.

use crate::support::fake_bridge::{Answer, FakeBridge, ago};
use crate::support::fake_sidecar::FakeHome;
use crate::support::fleet_home::{heartbeat, home_in_fleet, host};
use crate::support::said::{err, out};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

const KAI: &str = "11111111-1111-4111-8111-111111111111";
const MIA: &str = "22222222-2222-4222-8222-222222222222";
const HANDOFF: &str = "44444444-4444-4444-8444-444444444444";

/// Three hosts: this one with kai, `box` with mia and a failed handoff, and `old`, which is dead and has no agents.
fn three_hosts() -> FakeHome {
    let home = home_in_fleet();
    home.agent(KAI, Some("kai"), None, "idle");
    home.beat(0);
    heartbeat(&home, 0);
    // What this host has last told of itself is old: it did not know kai then.
    host(&home, "desk", &json!({"n": 7}));
    let told = json!({
        "agents": [{"agent_id": MIA, "persona": "mia", "profile": "demo", "state": "busy", "context": 40,
            "handoff_id": HANDOFF, "since": ago(60)}],
        "handoffs": [{"handoff_id": HANDOFF, "agent_id": MIA, "persona": "mia", "step": "failed", "since": ago(60),
            "error": "document_missing"}],
        "errors": [{"error_id": HANDOFF, "code": "document_missing", "at": ago(60)}],
        "later": "a field of another version",
    });
    host(&home, "box", &told);
    host(&home, "old", &json!({"away_since": ago(310)}));
    home
}

fn lines(output: &Output) -> Vec<String> {
    assert_eq!(output.status.code(), Some(0), "{}", err(output));
    out(output).lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn agents_of_all_hosts_are_listed_and_a_dead_host_is_seen() {
    let home = three_hosts();
    let lines = lines(&home.run(&["agents", "--all-hosts"]));
    assert_eq!(lines[0], "HOST SEEN AGENT PERSONA PROFILE STATE CONTEXT HANDOFF SINCE");
    assert!(lines[1].starts_with("box live 22222222 mia demo busy ##--- 40 % 44444444 "), "{lines:?}");
    assert_eq!(lines[2], "desk live 11111111 kai demo idle - - -", "it is read from its own views");
    assert_eq!(lines[3], "old away 5m - - - - - - -");
    let coloured = home.command(&["agents", "--all-hosts"]).env("CLICOLOR_FORCE", "1").output().expect("it runs");
    assert!(out(&coloured).lines().any(|line| line.starts_with("\u{1b}[2mold ")), "{}", out(&coloured));
}

/// A server that was away for a second ended every wait with 69.
#[test]
fn a_server_that_is_away_ends_no_wait_and_a_bridge_that_is_gone_does() {
    let is_away = |home: &FakeHome| {
        home.write("fleet/bridge.json", &json!({"heartbeat": ago(0), "server": null, "problem": "It is not reached."}));
        sleep(Duration::from_millis(1_200));
    };
    let late = move |home: &FakeHome, _: &Value| {
        is_away(home);
        // As after the machine has slept: the heartbeat is old for a moment.
        heartbeat(home, 3_600);
        sleep(Duration::from_millis(1_200));
        Some((200, json!({"verdict": "delivered"})))
    };
    let begun = move |home: &FakeHome, _: &Value| {
        is_away(home);
        Some((200, json!({"status": "initiated", "handoff_id": HANDOFF})))
    };
    let dies = |home: &FakeHome, _: &Value| {
        heartbeat(home, 100);
        None
    };
    let send = |timeout| vec!["send", "mia@box", "hello", "--timeout", timeout];
    let cases: [(Box<Answer>, _, _, _); 4] = [
        (Box::new(late), send("30s"), 0, ""),
        (Box::new(begun), vec!["retry", "mia@box", "--wait", "--timeout", "3s"], 75, "is not affected"),
        (Box::new(move |home, _| (is_away(home), None).1), send("1s"), 75, "It is not reached."),
        (Box::new(dies), send("30s"), 69, "box may still carry it out"),
    ];
    for (answer, line, expected, said) in cases {
        let home = Arc::new(three_hosts());
        let _bridge = FakeBridge::start(&home, "cli-", answer);
        let output = home.run(&line);
        let text = err(&output);
        assert!(output.status.code() == Some(expected) && text.contains(said), "{line:?}: {text}");
    }
}

#[test]
fn handoffs_and_errors_of_all_hosts_are_listed() {
    let home = three_hosts();
    let handoffs = lines(&home.run(&["handoffs", "--all-hosts"]));
    assert!(handoffs[1].starts_with("box live 44444444 mia failed: document_missing "), "{handoffs:?}");
    assert_eq!(handoffs[2..], ["desk live - - - - -", "old away 5m - - - - -"]);
    let errors = lines(&home.run(&["errors", "--all-hosts"]));
    assert!(errors[1].starts_with("box live 44444444 document_missing "), "{errors:?}");
    assert_eq!(errors.len(), 4);
}

#[test]
fn programs_get_the_same_document_for_each_list() {
    let home = three_hosts();
    let document = |list: &str| -> Value {
        serde_json::from_str(&out(&home.run(&[list, "--all-hosts", "--json"]))).expect("JSON")
    };
    let agents = document("agents");
    for list in ["handoffs", "errors"] {
        assert_eq!(document(list)["hosts"][0], agents["hosts"][0], "{list}");
    }
    let of = |field: &str| -> Vec<&str> {
        agents["hosts"].as_array().expect("a list").iter().filter_map(|host| host[field].as_str()).collect()
    };
    assert_eq!((of("host"), of("state")), (vec!["box", "desk", "old"], vec!["live", "live", "away"]));
    assert_eq!(agents["hosts"][0]["later"], "a field of another version");
    assert_eq!((&agents["hosts"][1]["agents"][0]["agent_id"], &agents["hosts"][1]["n"]), (&json!(KAI), &json!(7)));
}

#[test]
fn without_a_bridge_nothing_is_known_of_others_and_a_forged_roster_is_told() {
    let home = three_hosts();
    host(&home, "old", &json!({"authentic": false, "seen_at": ago(125)}));
    let seen = |home: &FakeHome| lines(&home.run(&["agents", "--all-hosts"]));
    assert!(seen(&home)[3].starts_with("old not authentic 2m "), "{:?}", seen(&home));
    heartbeat(&home, 100);
    let all = home.run(&["agents", "--all-hosts"]);
    assert!(err(&all).contains("tasuki fleet run"), "{}", err(&all));
    let all = lines(&all);
    assert!(all[1].starts_with("box unknown ") && all[3].starts_with("old unknown 2m "), "{all:?}");
    assert!(all[2].starts_with("desk live "), "{all:?}");
}

#[test]
fn a_home_without_a_fleet_says_so() {
    let home = FakeHome::new();
    for line in [&["agents", "--all-hosts"][..], &["send", "kai@box", "x"], &["publish", "5f2a@box"]] {
        let output = home.run(line);
        assert_eq!(output.status.code(), Some(77), "{line:?}");
        assert!(err(&output).contains("(no_fleet)"), "{line:?}: {}", err(&output));
    }
    assert_eq!(home.run(&["agents", "--all", "--all-hosts"]).status.code(), Some(2));
}

/// Runs a copy of tasuki, beside which nothing is installed, with a `PATH` that has one folder.
fn run_copy(folder: &std::path::Path, path: &std::path::Path, args: &[&str]) -> Output {
    let copy = folder.join("tasuki");
    fs::hard_link(env!("CARGO_BIN_EXE_tasuki"), &copy)
        .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_tasuki"), &copy).map(drop))
        .expect("a copy");
    std::process::Command::new(&copy).args(args).env("PATH", path).output().expect("it runs")
}

fn install(folder: &std::path::Path, says: &str) {
    let program = folder.join("tasuki-fleet");
    fs::write(&program, format!("#!/bin/sh\nprintf '%s|' {says} \"$@\"\nexit 3\n")).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
}

#[test]
fn the_program_for_fleets_is_found_beside_tasuki_or_in_the_path() {
    let args = ["--home", "/h", "--json", "fleet", "hosts", "--help", "--json", "-x", "a b"];
    let folder = || tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let (own, path) = (folder(), folder());
    let none = run_copy(own.path(), path.path(), &args);
    assert_eq!(none.status.code(), Some(69));
    let said: Value = serde_json::from_str(&err(&none)).expect("JSON");
    assert_eq!(said["error"]["code"], "no_fleet_program");
    assert!(said["error"]["hint"].as_str().is_some_and(|hint| hint.contains("--features fleet")), "{said}");
    let (other, beside) = (folder(), folder());
    install(path.path(), "path");
    let found = run_copy(other.path(), path.path(), &args);
    assert_eq!(
        (found.status.code(), out(&found).as_str()),
        (Some(3), "path|--home|/h|--json|hosts|--help|--json|-x|a b|")
    );
    install(beside.path(), "beside");
    assert!(out(&run_copy(beside.path(), path.path(), &args)).starts_with("beside|--home|"));
}
