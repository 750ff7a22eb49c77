//! What the server may do: be away, lose everything, go back to an earlier state.

use crate::fleet::{TestFleet, check_promises, free_port, text};
use crate::support::small_disk::{SmallDisk, has_mounts_of_its_own};
use crate::support::tally;
use serde_json::json;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp is everywhere");
    assert!(copied.success());
}

#[test]
fn while_the_server_is_away_all_else_works_and_afterwards_all_is_answered() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["send", "view"]);
    let agents = b.stage.agents(&["kai", "mia"]);
    fleet.server.kill();
    let mut sent = Vec::new();
    for number in 0..12 {
        let (id, agent, words) =
            (format!("t{number}"), agents[number % 2].clone(), format!("text <{number}> of before"));
        a.drop_to(&id, "b", &text(&agent, &words), Some("1h"));
        sent.push((id, agent, words));
    }
    let looks: Vec<String> = (0..if tally::is_long() { 488 } else { 48 }).map(|number| format!("v{number}")).collect();
    let look = json!({"kind": "view", "of": "agents"});
    looks.iter().for_each(|id| a.drop_to(id, "b", &look, Some("1h")));
    a.drop_to("short", "b", &look, Some("1s"));
    a.until("they are taken", || looks.iter().all(|id| a.files(&format!("out/{id}.json")).exists()));
    assert!(a.bridge_mib() < 64, "the bridge of a holds {} MiB", a.bridge_mib());
    // The sidecars need no server.
    assert_eq!(b.stage.ask(&text(&agents[0], "from here"))["result"]["verdict"], "delivered");
    // Its second is over before anybody can be asked.
    std::thread::sleep(Duration::from_millis(1_100));
    fleet.server.start();
    let all_are_answered = || sent.iter().map(|(id, ..)| id).chain(&looks).all(|id| a.answer(id).is_some());
    a.until_within(Duration::from_secs(120), "all is answered", all_are_answered);
    assert!(a.bridge_mib() < 64 && b.bridge_mib() < 64, "{} and {} MiB", a.bridge_mib(), b.bridge_mib());
    for id in &looks {
        let answer = a.answered(id);
        assert_eq!(answer["status"], 200, "{answer}");
    }
    check_promises(a, b, &sent);
    // It is published no more after its time: it is answered a minute later, or b has found it to be too late.
    let short = a.answer("short");
    assert!(short.as_ref().is_none_or(|answer| answer["status"] == 410), "{short:?}");
}

/// A server to which nobody says how much it may keep takes three quarters of what is free on its disk. A fleet on a
/// small disk was refused for that.
#[test]
fn how_much_the_server_may_keep_does_not_depend_on_its_disk() {
    let Some(fleet) = TestFleet::joined(&["a"]) else { return };
    let log = fs::read_to_string(fleet.server.folder.join("log")).expect("its log");
    let said = log.lines().find(|line| line.contains("Max Storage:")).expect("what it may keep");
    assert!(said.trim_end().ends_with(" 8.00 GB"), "{said}");
}

/// It lets the hosts log in, and answers none of them.
#[test]
fn a_server_that_has_no_room_for_the_fleet_is_told_of() {
    let Some(fleet) = TestFleet::joined(&["a"]) else { return };
    let a = fleet.host("a");
    fleet.server.kill();
    fs::remove_dir_all(fleet.server.store()).expect("its store");
    let little = |conf: String| conf.replace("max_file_store: 8589934592", "max_file_store: 1048576");
    fleet.server.change("nats-server.conf", little);
    fleet.server.start();
    a.start_bridge();
    let problem = || a.bridge_view()["problem"].as_str().map(str::to_owned).unwrap_or_default();
    a.until("the operator is told", || problem().contains("stream"));
    let checks = a.fleet(&["--json", "checks"]);
    assert!(checks.contains("stream"), "doctor says nothing of it: {checks}");
}

/// A server whose disk is full still names its streams, and answers nothing to what it can't store. Only its own log said
/// so.
#[test]
fn a_server_whose_disk_is_full_is_told_of() {
    if !has_mounts_of_its_own() {
        return;
    }
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["view"]);
    fleet.server.kill();
    let aside = fleet.server.folder.join("aside");
    copy(&fleet.server.store(), &aside);
    let disk = SmallDisk::over(&fleet.server.store(), "size=32m");
    copy(&aside.join("."), &fleet.server.store());
    fleet.server.start();
    let look = json!({"kind": "view", "of": "agents"});
    assert_eq!(a.ask("before", "b", &look)["status"], 200);
    let problem = || a.bridge_view()["problems"][0].clone();
    a.until_within(Duration::from_secs(90), "the operator is told", || {
        disk.fill_blocks();
        problem()["about"] == "storage"
    });
    assert!(problem()["message"].as_str().is_some_and(|it| it.contains("full disk")), "{}", problem());
    let checks = a.fleet(&["--json", "checks"]);
    assert!(checks.contains("full disk"), "doctor says nothing of it: {checks}");
    fleet.server.kill();
    disk.make_room();
    fleet.server.start();
    a.until_within(Duration::from_secs(90), "nothing is wrong any more", || problem().is_null());
    assert_eq!(a.ask("after", "b", &look)["status"], 200);
}

#[test]
fn a_server_that_has_lost_everything_is_set_up_again_and_nothing_is_lost_or_done_twice() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["send"]);
    let agent = b.stage.agent("kai");
    let mut sent = Vec::new();
    let mut send = |number: usize| {
        let (id, words) = (format!("t{number}"), format!("text <{number}> to a server that forgets"));
        a.drop_to(&id, "b", &text(&agent, &words), Some("1h"));
        sent.push((id, agent.clone(), words));
    };
    (0..4).for_each(&mut send);
    // Some are answered, some are on their way.
    a.until("one is answered", || a.answer("t0").is_some());
    fleet.server.kill();
    fs::remove_dir_all(fleet.server.store()).expect("its store");
    (4..8).for_each(&mut send);
    fleet.server.start();
    a.until("it is noticed", || !a.bridge_view()["problem"].is_null());
    a.fleet(&["setup"]);
    // Each host waits a minute before it takes a name at a server that shows nothing of its past.
    a.until_within(Duration::from_secs(150), "all is answered", || sent.iter().all(|(id, ..)| a.answer(id).is_some()));
    check_promises(a, b, &sent);
    assert!(a.fleet(&["hosts"]).contains('b'), "the list of members is there again");
}

#[test]
fn a_server_that_was_put_back_to_an_earlier_state_brings_nothing_back() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["send"]);
    let agent = b.stage.agent("kai");
    let send = |number: usize| {
        let (id, words) = (format!("t{number}"), format!("text <{number}> to a server that goes back"));
        a.drop_to(&id, "b", &text(&agent, &words), Some("1h"));
        (id, agent.clone(), words)
    };
    // Letters that no bridge has fetched are in the state that comes back.
    b.kill_bridge();
    let mut sent: Vec<_> = (0..3).map(send).collect();
    a.until("they are at the server", || a.audit().iter().filter(|line| line["status"] == "sent").count() >= 3);
    fleet.server.kill();
    let aside = fleet.server.folder.join("aside");
    copy(&fleet.server.store(), &aside);
    fleet.server.start();
    b.start_bridge();
    a.until("all is answered", || sent.iter().all(|(id, ..)| a.answer(id).is_some()));
    fleet.server.kill();
    fs::remove_dir_all(fleet.server.store()).expect("its store");
    copy(&aside, &fleet.server.store());
    fleet.server.start();
    sent.push(send(3));
    a.until_within(Duration::from_secs(150), "the last is answered too", || a.answer("t3").is_some());
    check_promises(a, b, &sent);
}

/// A ticket names all addresses of the server's machine, and most of them lead nowhere from elsewhere. The client
/// paused up to 15 s before each of them, and the checks and the owner's commands tried one after the other.
#[test]
fn addresses_that_lead_nowhere_keep_no_host_from_the_server() {
    let Some(fleet) = TestFleet::joined(&["a"]) else { return };
    let a = fleet.host("a");
    // Two accept and say nothing; at the others nobody listens.
    let silent = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let silent = silent.each_ref().map(|socket| socket.local_addr().expect("bound").port());
    let ports = silent.into_iter().chain((0..5).map(|_| free_port())).chain([fleet.server.port]);
    let urls: Vec<String> = ports.map(|port| format!("\"tls://127.0.0.1:{port}\"")).collect();
    fs::write(a.files("fleet.toml"), format!("[server]\nurls = [{}]\n", urls.join(", "))).expect("its settings");
    for _ in 0..3 {
        let checks = a.fleet(&["--json", "checks"]);
        assert!(!checks.contains("the server was not reached"), "{checks}");
    }
    let start = Instant::now();
    a.fleet(&["setup"]);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    a.start_bridge();
    a.until("it is connected", || !a.bridge_view()["connected_since"].is_null());
    fleet.server.kill();
    a.until("it is noticed", || a.bridge_view()["connected_since"].is_null());
    std::thread::sleep(Duration::from_secs(30));
    fleet.server.start();
    let is_back = || !a.bridge_view()["connected_since"].is_null();
    a.until_within(Duration::from_secs(50), "it is connected again", is_back);
}
