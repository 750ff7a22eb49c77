//! `kill -9` of bridges, sidecars and the server, at any moment, under load.

use crate::fleet::{TestFleet, TestHost, check_promises, text};
use crate::support::random::Random;
use crate::support::tally;
use nix::sys::signal::Signal;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What dies.
#[derive(Clone, Copy)]
enum Dies {
    AskingBridge,
    ServingBridge,
    Server,
    Sidecar,
}

/// Sends texts to agents of `b` while things die, and holds the promises.
fn storm(what: &[Dies], deaths: usize, texts: usize, seed: &mut Random) {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["send"]);
    let agents = b.stage.agents(&["kai", "mia", "ben"]);
    let mut sent = Vec::new();
    let (mut dead, per_death) = (0, (texts / deaths.max(1)).max(1));
    for number in 0..texts {
        let (id, agent) = (format!("t{number}"), agents[number % agents.len()].clone());
        let words = format!("text <{number}> of this storm");
        a.drop_to(&id, "b", &text(&agent, &words), Some("2h"));
        sent.push((id, agent, words));
        if number % per_death == 0 && dead < deaths {
            // Anywhere between the drop and the answer, which takes about a quarter of a second.
            sleep(Duration::from_millis(seed.below(300)));
            die(*seed.one_of(what), (&fleet, a, b), seed);
            dead += 1;
        }
    }
    tally::add(tally::DEATHS, dead as u64);
    a.until_within(Duration::from_secs(240), "all is answered", || sent.iter().all(|(id, ..)| a.answer(id).is_some()));
    check_promises(a, b, &sent);
    a.until_nothing_is_open();
}

fn die(what: Dies, (fleet, a, b): (&TestFleet, &TestHost, &TestHost), seed: &mut Random) {
    let pause = Duration::from_millis(seed.below(200));
    match what {
        Dies::AskingBridge => {
            a.kill_bridge();
            sleep(pause);
            a.start_bridge();
        }
        Dies::ServingBridge => {
            b.kill_bridge();
            sleep(pause);
            b.start_bridge();
        }
        Dies::Server => {
            fleet.server.kill();
            sleep(pause);
            fleet.server.start();
        }
        Dies::Sidecar => {
            b.stage.end_sidecar(Signal::SIGKILL);
            sleep(pause);
            b.stage.start_sidecar();
        }
    }
}

#[test]
fn the_asking_bridge_dies_under_load() {
    storm(&[Dies::AskingBridge], 20, 40, &mut Random::from_env());
}

#[test]
fn the_serving_bridge_dies_under_load() {
    storm(&[Dies::ServingBridge], 20, 40, &mut Random::from_env());
}

#[test]
fn the_server_dies_under_load() {
    storm(&[Dies::Server], 8, 24, &mut Random::from_env());
}

#[test]
fn all_of_them_die_under_load() {
    let all = [Dies::AskingBridge, Dies::ServingBridge, Dies::Server, Dies::Sidecar];
    storm(&all, 16, 40, &mut Random::from_env());
}

/// The calls by which the bridge changes its files: what it has done before one of them is there, and the rest is not.
const CALLS: [&str; 3] = ["renameat2,renameat,rename", "unlinkat", "fsync"];

/// One request for each of the bridge's system calls that change a file, at whose entry it dies.
fn die_at_each_call(is_asking: bool) {
    if !strace_works() {
        return;
    }
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["send"]);
    let agent = b.stage.agent("kai");
    let dying = if is_asking { a } else { b };
    let (most, mut sent, mut deaths) = (if tally::is_long() { 24 } else { 7 }, Vec::new(), 0);
    for (call, when) in CALLS.iter().flat_map(|call| (1..=most).map(move |when| (*call, when))) {
        dying.kill_bridge();
        dying.start_bridge_dying_at(call, when);
        let id = format!("t{}", sent.len());
        let words = format!("text <{id}> for a bridge that dies");
        a.drop_to(&id, "b", &text(&agent, &words), Some("1h"));
        a.until("it dies, or the request is answered", || dying.has_bridge_ended() || a.answer(&id).is_some());
        deaths += u64::from(dying.has_bridge_ended());
        dying.kill_bridge();
        dying.start_bridge();
        a.until("the request is answered", || a.answer(&id).is_some());
        sent.push((id, agent.clone(), words));
    }
    tally::add(tally::DEATHS, deaths);
    println!("{deaths} deaths");
    assert!(deaths >= 6, "strace has killed the bridge only {deaths} times");
    check_promises(a, b, &sent);
}

fn strace_works() -> bool {
    let works = Command::new("strace").args(["-qq", "-e", "trace=none", "true"]).stderr(Stdio::null()).status();
    let works = works.is_ok_and(|status| status.success());
    if !works {
        tally::skip("no strace, or it may not trace");
    }
    works
}

#[test]
fn the_asking_bridge_dies_at_each_of_its_changes() {
    die_at_each_call(true);
}

#[test]
fn the_serving_bridge_dies_at_each_of_its_changes() {
    die_at_each_call(false);
}

/// For a part of the long suites' time: all of it dies, again and again.
#[test]
fn a_long_storm_over_a_fleet() {
    if !tally::is_long() {
        return tally::skip("a long storm over the fleet: only in the long suite; short ones are tried always");
    }
    let (mut seed, end) = (Random::from_env(), Instant::now() + tally::budget());
    let all = [Dies::AskingBridge, Dies::ServingBridge, Dies::Server, Dies::Sidecar];
    while Instant::now() < end {
        storm(&all, 50, 100, &mut seed);
    }
}
