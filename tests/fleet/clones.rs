//! Being one host: restarts, copies of a home, homes that were put back, homes that were made new.

use crate::fleet::{TestFleet, text};
use serde_json::json;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_bridge_that_was_killed_serves_again_at_once() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let b = fleet.host("b");
    b.kill_bridge();
    let start = Instant::now();
    b.start_bridge();
    b.until_serving();
    println!("serves again after {:?}", start.elapsed());
    // 2 s on a machine with nothing else to do.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    // A second bridge on the same home is refused.
    let second = b.fleet_command(&["run"]).output().expect("it runs");
    assert_eq!(second.status.code(), Some(75), "{second:?}");
}

#[test]
fn a_copy_of_a_home_does_not_serve_until_the_operator_says_that_it_was_moved() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["view"]);
    // The copy lies on the same machine: its lock file is another one.
    let copy = b.stage.home().with_file_name("copy");
    assert!(Command::new("cp").arg("-a").arg(b.stage.home()).arg(&copy).status().expect("cp").success());
    let place = copy.display().to_string();
    let command = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki-fleet"));
        command.args(["--home", &place]).args(args).stdin(Stdio::null());
        command
    };
    let run = |args: &[&str]| command(args).output().expect("it runs");
    let ended = run(&["run"]);
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(78), "{said}");
    assert!(said.contains("home_copied") && said.contains(" fleet moved"), "{said}");
    assert_eq!(a.ask("v1", "b", &json!({"kind": "view", "of": "agents"}))["status"], 200, "the first one serves on");
    // The first is gone, and the operator says so.
    b.kill_bridge();
    assert!(run(&["moved"]).status.success());
    let mut moved = command(&["run"]).stderr(Stdio::null()).spawn().expect("it runs");
    // Nobody serves for a minute: the roster of the first home must stand unchanged for so long.
    b.until_within(Duration::from_secs(150), "the copy serves", || {
        let view = crate::support::stage_files::read_json(&copy.join("fleet/bridge.json")).unwrap_or_default();
        view["pid"] == moved.id() && view["lease"] == "held"
    });
    // And now the first home is the copy.
    b.start_bridge();
    let (code, said) = b.bridge_end();
    assert_eq!(code, Some(78), "{said}");
    moved.kill().expect("our own child");
    moved.wait().expect("our own child");
}

#[test]
fn a_home_that_was_put_back_does_not_serve_and_joins_as_a_new_one() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["send", "view"]);
    let journal = b.stage.spool("journal.jsonl");
    b.stage.agent("mia");
    let before = std::fs::read(&journal).expect("it has lines");
    let lines = before.iter().filter(|byte| **byte == b'\n').count() as u64;
    let agent = b.stage.agent("kai");
    b.until("its roster tells of that", || {
        a.fleet(&["hosts"]);
        crate::support::stage_files::read_json(&a.files("hosts/b.json")).unwrap_or_default()["journal_seq"].as_u64()
            > Some(lines)
    });
    b.kill_bridge();
    b.stage.end_sidecar(nix::sys::signal::Signal::SIGKILL);
    std::fs::write(&journal, before).expect("written");
    b.start_bridge();
    let (code, said) = b.bridge_end();
    assert!(code == Some(78) && said.contains("home_rolled_back"), "{said}");
    // What is sent to the old home meanwhile is refused by the new one.
    a.drop_to("late", "b", &text(&agent, "to the old home"), Some("1h"));
    a.until("it is at the server", || a.audit().iter().any(|line| line["id"] == "late"));
    let line = b.fleet(&["rejoin"]);
    let refused = a.fleet_command(&["admit", line.trim()]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("name_taken"));
    let ticket = a.fleet(&["admit", "--replace", line.trim()]);
    b.fleet(&["join", ticket.trim()]);
    b.stage.start_sidecar();
    b.start_bridge();
    // Nobody can see whose roster stood there, for the key is another one: a minute passes.
    b.until_within(Duration::from_secs(120), "the new home serves", || b.bridge_view()["lease"] == "held");
    let answer = a.answered("late");
    assert!(["host_reborn", "no_answer"].iter().any(|code| answer["error"]["code"] == *code), "{answer}");
    assert_eq!(b.times_typed(&agent, &["to the old home".to_owned()]), [0]);
    assert_eq!(a.ask("v1", "b", &json!({"kind": "view", "of": "agents"}))["status"], 200);
}

#[test]
fn an_expelled_host_is_cut_off_at_once_and_after_a_restart_of_the_server_too() {
    let Some(fleet) = TestFleet::new(&["a", "b", "c"]) else { return };
    let (a, b, c) = (fleet.host("a"), fleet.host("b"), fleet.host("c"));
    c.accept("*", &["send"]);
    let agent = c.stage.agent("kai");
    assert_eq!(b.ask("s1", "c", &text(&agent, "as a member"))["result"]["verdict"], "delivered");
    a.fleet(&["expel", "b"]);
    c.until("the list is known", || {
        let log = std::fs::read_to_string(c.log_file()).unwrap_or_default();
        log.contains("members=2")
    });
    b.drop_to("s2", "c", &text(&agent, "as nobody"), Some("1h"));
    b.until("it is told", || !b.bridge_view()["problem"].is_null());
    fleet.server.kill();
    fleet.server.start();
    assert_eq!(a.ask("s3", "c", &text(&agent, "as a member still"))["result"]["verdict"], "delivered");
    b.kill_bridge();
    b.start_bridge();
    b.until("it is refused again", || {
        let view = b.bridge_view();
        view["pid"] == b.bridge_pid() && !view["problem"].is_null()
    });
    assert_eq!(c.times_typed(&agent, &["as a member".to_owned(), "as nobody".to_owned()]), [2, 0]);
}

/// The bridge that ran had read its login once, and was refused for ever.
#[test]
fn a_host_that_is_admitted_again_is_let_in_without_a_new_start_of_its_bridge() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["view"]);
    let line = b.fleet(&["key", "b"]);
    a.fleet(&["expel", "b"]);
    // Of the claims of one key, the server refuses those that are from the second of the expulsion or earlier: the
    // ticket is of the same second.
    let ticket = a.fleet(&["admit", line.trim()]);
    b.until("it is refused", || b.bridge_view()["problem"].as_str().is_some_and(|it| it.contains("login")));
    let said = b.fleet(&["join", ticket.trim()]);
    assert!(said.contains("bridge that runs") && !said.contains("fleet run"), "{said}");
    b.until_serving();
    assert!(b.bridge_view()["problem"].is_null(), "{}", b.bridge_view());
    assert_eq!(a.ask("v1", "b", &json!({"kind": "view", "of": "agents"}))["status"], 200);
}

/// Its request lay in `out/`, was never sent, and was answered "it may have been carried out" when its time was over.
#[test]
fn what_was_never_sent_to_a_host_that_is_expelled_is_answered_at_once() {
    let Some(fleet) = TestFleet::joined(&["a", "b"]) else { return };
    let a = fleet.host("a");
    fleet.server.kill();
    a.start_bridge();
    a.drop_to("s1", "b", &json!({"kind": "view", "of": "agents"}), Some("1h"));
    a.until("it is taken", || a.files("out/s1.json").exists());
    a.kill_bridge();
    fleet.server.start();
    a.fleet(&["expel", "b"]);
    a.start_bridge();
    let answer = a.answered("s1");
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(404), &json!("no_host")), "{answer}");
}

/// The list of members named the new home already, so a repetition saw nothing to revoke, and the first try said that
/// nothing was changed.
#[test]
fn a_replacement_that_has_broken_off_is_completed_by_the_same_command() {
    let Some(fleet) = TestFleet::joined(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    let former = b.stage.home().with_file_name("former");
    assert!(Command::new("cp").arg("-a").arg(b.stage.home()).arg(&former).status().expect("cp").success());
    let line = b.fleet(&["rejoin"]);
    // With the wrong key for the server's system account, the list is put and the login is not revoked.
    let seeds = || std::fs::read_to_string(a.files("owner.json")).expect("its file");
    let file: serde_json::Value = serde_json::from_str(&seeds()).expect("JSON");
    let [fleet_seed, system] = ["fleet", "system"].map(|key| format!("\"{key}\":{}", file[key]));
    let wrong = fleet_seed.replace("\"fleet\"", "\"system\"");
    std::fs::write(a.files("owner.json"), seeds().replace(&system, &wrong)).expect("written");
    let broken = a.fleet_command(&["admit", "--replace", line.trim()]).output().expect("it runs");
    let said = String::from_utf8_lossy(&broken.stderr).into_owned();
    assert!(!broken.status.success() && said.contains("broken off") && !said.contains("Nothing was changed"), "{said}");
    std::fs::write(a.files("owner.json"), seeds().replace(&wrong, &system)).expect("written");
    let ticket = a.fleet(&["admit", "--replace", line.trim()]);
    b.fleet(&["join", ticket.trim()]);
    b.start_bridge();
    b.until("the new home is let in", || !b.bridge_view()["connected_since"].is_null());
    let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki-fleet"));
    command.arg("--home").arg(&former).arg("run").stdin(Stdio::null()).stderr(Stdio::null());
    crate::support::stage::Stage::make_own(&mut command);
    let mut bridge = command.spawn().expect("it runs");
    let view = || crate::support::stage_files::read_json(&former.join("fleet/bridge.json")).unwrap_or_default();
    a.until("the former home is not let in", || view()["problem"].as_str().is_some_and(|it| it.contains("login")));
    bridge.kill().expect("our own child");
    bridge.wait().expect("our own child");
}

/// The list of those who may not log in any more lies at the owner's home, and the server had only what that home had
/// last pushed.
#[test]
fn an_owner_whose_home_was_put_back_lets_nobody_in_again_by_expelling_another() {
    let Some(fleet) = TestFleet::joined(&["a", "b", "c"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    let before = std::fs::read(a.files("owner.json")).expect("its file");
    a.fleet(&["expel", "b"]);
    std::fs::write(a.files("owner.json"), before).expect("written");
    a.fleet(&["expel", "c"]);
    b.start_bridge();
    b.until("it is refused", || b.bridge_view()["problem"].as_str().is_some_and(|it| it.contains("login")));
    assert!(b.bridge_view()["connected_since"].is_null(), "{}", b.bridge_view());
}

/// Nobody but the owner can admit a host: an owner whose home was put back and that had made it a new one was a member
/// of nothing, and could admit nobody any more.
#[test]
fn the_home_of_the_owner_joins_as_a_new_one_by_itself() {
    let Some(fleet) = TestFleet::joined(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    let own = || crate::support::stage_files::read_json(&a.files("host.json")).expect("its file");
    let before = own();
    a.fleet(&["rejoin"]);
    assert_ne!(own()["home_id"], before["home_id"]);
    assert_eq!(own()["fleet"], before["fleet"]);
    b.accept("a", &["view"]);
    [a, b].into_iter().for_each(crate::fleet::TestHost::start_bridge);
    [a, b].into_iter().for_each(crate::fleet::TestHost::until_serving);
    assert_eq!(a.ask("v1", "b", &json!({"kind": "view", "of": "agents"}))["status"], 200);
    a.fleet(&["expel", "b"]);
}
