//! Requests that get no answer: what became of them is always said.

use crate::support::fake_sidecar::{FakeHome, FakeSidecar};
use crate::support::said::{err, out};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;

const KAI: &str = "11111111-1111-4111-8111-111111111111";

#[test]
fn a_request_that_nobody_took_in_time_is_taken_back() {
    let home = FakeHome::new();
    home.agent(KAI, Some("kai"), None, "idle");
    home.beat(0);
    let output = home.run(&["send", "kai", "hello", "--timeout", "200ms"]);
    assert_eq!(output.status.code(), Some(75));
    assert!(err(&output).contains("withdrawn"), "{}", err(&output));
    assert!(home.files("spool/requests").is_empty() && home.files("spool/tmp").is_empty());
}

#[test]
fn a_request_that_was_taken_but_not_answered_is_said_to_be_on_its_way() {
    let home = Arc::new(FakeHome::new());
    home.agent(KAI, Some("kai"), None, "idle");
    let _sidecar = FakeSidecar::start(&home, Box::new(|_, _| None));
    let output = home.run(&["send", "kai", "hello", "--timeout", "1s"]);
    assert_eq!(output.status.code(), Some(75));
    assert!(err(&output).contains("may still carry it out"), "{}", err(&output));
}

/// Where the answer can't be read, nobody may believe that nothing was done, and send the text again.
#[test]
fn an_answer_that_cant_be_read_leaves_no_doubt_about_the_request() {
    let home = FakeHome::new();
    home.agent(KAI, Some("kai"), None, "idle");
    home.beat(0);
    std::fs::remove_dir(home.path().join("spool/results")).expect("removed");
    std::fs::write(home.path().join("spool/results"), "").expect("a file");
    let said = err(&home.run(&["send", "kai", "hello"]));
    assert!(said.contains("could not read") && said.contains("The request was withdrawn"), "{said}");
    assert!(home.files("spool/requests").is_empty());
}

#[test]
fn a_heartbeat_that_stops_ends_the_wait() {
    let home = FakeHome::new();
    home.agent(KAI, Some("kai"), None, "idle");
    // Fresh enough to begin with, and stale a second or two later.
    home.beat(13);
    let output = home.run(&["send", "kai", "hello"]);
    assert_eq!(output.status.code(), Some(69), "{}", err(&output));
    assert!(home.files("spool/requests").is_empty());
}

/// As long as its process is there, no other sidecar can be started: "start one" would be of no use.
#[test]
fn a_sidecar_that_is_there_but_silent_is_named_with_what_to_do() {
    let home = FakeHome::new();
    let hint = |pid: u32| {
        home.write("view/sidecar.json", &json!({"v": 1, "pid": pid, "heartbeat": "2026-01-01T00:00:00.000Z"}));
        let output = home.run(&["send", "kai", "hello"]);
        assert_eq!(output.status.code(), Some(69), "{}", err(&output));
        err(&output)
    };
    let mut command = Command::new("sh");
    command.arg0("tasuki").args(["-c", "read line", "run"]).stdin(Stdio::piped());
    let mut silent = command.spawn().expect("it runs");
    let pid = silent.id();
    let process = Pid::from_raw(i32::try_from(pid).expect("a process id"));
    let hangs = hint(pid);
    kill(process, Signal::SIGSTOP).expect("it is there");
    let stopped = hint(pid);
    kill(process, Signal::SIGKILL).expect("it is there");
    silent.wait().expect("a child of ours");
    let dead = hint(pid);
    let start = "Start one in another pane: tasuki run --home";
    assert!(hangs.contains(&format!("kill {pid}")) && hangs.contains("tasuki doctor"), "{hangs}");
    assert!(stopped.contains(&format!("kill -CONT {pid}")), "{stopped}");
    assert!(dead.contains(start) && !hangs.contains(start) && !stopped.contains(start), "{dead}");
}

#[test]
fn a_request_over_one_mebibyte_is_not_sent() {
    let home = FakeHome::new();
    home.agent(KAI, Some("kai"), None, "idle");
    home.beat(0);
    let file = home.path().join("big");
    std::fs::write(&file, "x".repeat((1 << 20) - 10)).expect("written");
    let stdin = std::fs::File::open(&file).expect("a file");
    let output = home.command(&["send", "kai", "-"]).stdin(stdin).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("too_large"), "{}", err(&output));
    assert!(home.files("spool/requests").is_empty());
}

/// What was not found is repeated: the value of the field that the refusal names.
#[test]
fn a_refusal_names_what_was_not_found() {
    let nobody = "99999999-9999-4999-8999-999999999999";
    for (args, field, code, message) in [
        (&["handoff", "kai", "--successor", nobody][..], Some("successor"), "no_agent", "Successor not found"),
        (&["agent", "create", "nobody"], Some("persona_slug"), "no_persona", "Persona not found"),
        (&["agent", "create", "kai", "--profile", "nope"], Some("profile"), "no_profile", "Profile not found"),
        (
            &["agent", "create", "kai", "--previous", nobody],
            Some("previous_agent_id"),
            "no_agent",
            "Previous agent not found",
        ),
        (&["agent", "register", "%999"], Some("pane"), "no_pane", "No such pane"),
        (&["agent", "register", "%0", "--persona", "nobody"], Some("persona_slug"), "no_persona", "Persona not found"),
        (&["work", "create", "bug", "x", "--parent", nobody], Some("parent_id"), "no_item", "Work item not found"),
        (&["cancel", nobody], None, "no_handoff", "Handoff not found"),
    ] {
        let home = Arc::new(FakeHome::new());
        home.agent(KAI, Some("kai"), None, "idle");
        let error = json!({"code": code, "message": message, "field": field});
        let _sidecar = FakeSidecar::start(&home, Box::new(move |_, _| Some((404, error.clone()))));
        let output = home.run(args);
        let name = args.iter().rfind(|arg| **arg != "x" && !arg.starts_with("--")).expect("a name");
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", err(&output));
        assert!(err(&output).contains(&format!("{message}: \"{name}\"")), "{args:?}: {}", err(&output));
    }
    let home = FakeHome::new();
    home.agent(KAI, Some("kai"), None, "idle");
    home.write(&format!("view/handoffs/{nobody}.json"), &json!({"handoff_id": nobody, "agent_id": nobody}));
    let output = home.run(&["read", KAI.replace('1', "2").as_str()]);
    assert!(err(&output).contains(&format!("Handoff not found: \"{}\"", KAI.replace('1', "2"))), "{}", err(&output));
    let output = home.run(&["read", nobody]);
    assert!(err(&output).contains(&format!("Agent not found: \"{nobody}\"")), "{}", err(&output));
}

/// Without a sidecar, lists are the last known state. A program learns that too, from standard error.
#[test]
fn a_list_without_a_sidecar_says_so_on_standard_error() {
    let home = FakeHome::new();
    home.agent(KAI, Some("kai"), None, "idle");
    home.beat(60);
    for args in [&["agents"][..], &["handoffs"], &["errors"], &["agents", "--json"], &["errors", "--json"]] {
        let output = home.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", err(&output));
        assert!(err(&output).contains("last known state") && err(&output).contains("heartbeat"), "{args:?}");
        if args.contains(&"--json") {
            assert!(serde_json::from_str::<Value>(&out(&output)).is_ok_and(|list| list.is_array()), "{args:?}");
            assert!(err(&output).starts_with("tasuki: ") && err(&output).lines().count() == 1, "{}", err(&output));
        }
    }
    home.beat(0);
    assert_eq!(err(&home.run(&["agents", "--json"])), "");
}
