//! Requests that come late, and hosts that are away.

use crate::fleet::{TestFleet, text};
use crate::support::stage_files::read_json;
use nix::sys::signal::Signal;
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};

#[test]
fn what_comes_after_its_time_is_never_carried_out_and_what_waits_is_carried_out_once() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["send"]);
    let agent = b.stage.agent("kai");
    b.kill_bridge();
    a.drop_to("short", "b", &text(&agent, "too late"), Some("2s"));
    a.drop_to("long", "b", &text(&agent, "in time"), Some("1h"));
    a.until("both are at the server", || a.audit().iter().filter(|line| line["status"] == "sent").count() >= 2);
    std::thread::sleep(Duration::from_millis(2_500));
    b.start_bridge();
    let (short, long) = (a.answered("short"), a.answered("long"));
    assert_eq!((&short["status"], &short["error"]["code"]), (&json!(410), &json!("expired")), "{short}");
    assert_eq!(long["result"]["verdict"], "delivered", "{long}");
    assert_eq!(b.times_typed(&agent, &["too late".to_owned(), "in time".to_owned()]), [0, 1]);
}

#[test]
fn without_a_sidecar_nothing_is_dropped_and_the_rest_is_carried_out_when_it_is_back() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["send"]);
    let agent = b.stage.agent("kai");
    b.stage.end_sidecar(Signal::SIGTERM);
    a.drop_to("short", "b", &text(&agent, "too late"), Some("2s"));
    a.drop_to("long", "b", &text(&agent, "in time"), Some("1h"));
    let short = a.answered("short");
    assert_eq!(short["error"]["code"], "expired", "it is told in time: {short}");
    assert!(std::fs::read_dir(b.stage.spool("requests")).is_ok_and(|files| files.count() == 0), "nothing was dropped");
    b.stage.start_sidecar();
    assert_eq!(a.answered("long")["result"]["verdict"], "delivered");
    assert_eq!(b.times_typed(&agent, &["too late".to_owned(), "in time".to_owned()]), [0, 1]);
}

/// The bridge there stopped looking for the answer two minutes after the text's time, and the sidecar typed it later.
#[test]
fn a_text_that_is_typed_long_after_its_time_is_told_late() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["send"]);
    let agent = b.stage.agent("kai");
    b.stage.faults("slow_turn=130000");
    b.stage.ask(&text(&agent, "a long turn"));
    b.stage.faults("");
    a.drop_to("late", "b", &text(&agent, "at last"), Some("3s"));
    a.until_within(Duration::from_secs(90), "it is given up", || a.answer("late").is_some());
    assert_eq!(a.answered("late")["error"]["code"], "no_answer");
    a.until_within(Duration::from_secs(120), "it is told late", || a.answer("late.late").is_some());
    assert_eq!(a.answered("late.late")["result"]["verdict"], "delivered");
    assert_eq!(b.times_typed(&agent, &["at last".to_owned()]), [1]);
}

#[test]
fn a_host_that_stands_still_is_shown_as_away_with_its_age() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.signal_bridge(Signal::SIGSTOP);
    let state = || {
        a.fleet(&["hosts"]);
        read_json(&a.files("hosts/b.json")).unwrap_or_default()
    };
    assert!(state()["away_since"].is_null(), "a moment ago it was there");
    a.until_within(Duration::from_secs(90), "it is shown as away", || !state()["away_since"].is_null());
    b.signal_bridge(Signal::SIGCONT);
    a.until("it is there again", || state()["away_since"].is_null());
}

/// As after a reboot: a bridge that waits puts nothing, and so does not know the server's clock. Each host that told
/// something was shown as away then.
#[test]
fn a_bridge_that_still_waits_shows_the_others_as_live() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.stage.agent("kai");
    a.kill_bridge();
    // With another lock file, it counts as a home that was moved.
    let (lock, next) = (a.files("lock"), a.files("lock.next"));
    fs::copy(&lock, &next).expect("copied");
    fs::rename(&next, &lock).expect("renamed");
    a.fleet(&["moved"]);
    a.start_bridge();
    let seen = || {
        a.fleet(&["hosts"]);
        read_json(&a.files("hosts/b.json")).unwrap_or_default()
    };
    let pid = a.bridge_pid();
    a.until("it waits", || a.bridge_view()["pid"] == pid && a.bridge_view()["lease"] == "waiting");
    a.until("b is read", || seen()["n"].as_u64() > Some(0));
    let (start, first) = (Instant::now(), seen()["n"].clone());
    // b puts a roster every 15 s.
    while start.elapsed() < Duration::from_secs(33) {
        let view = seen();
        assert!(view["away_since"].is_null() && view["told_at"] != "", "{view}");
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_ne!(seen()["n"], first, "what b has told meanwhile is shown");
    assert_eq!(a.bridge_view()["lease"], "waiting");
}
