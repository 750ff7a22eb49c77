//! `tasuki serve`: what a listener is told that comes late, or whose journal has holes or can't be read.

use super::broken_off::under_nohup;
use super::serve_bounds::lines;
use super::support::fake_sidecar::FakeHome;
use super::support::server::{Event, Events, Server};
use nix::sys::signal::{Signal, kill};
use std::fs;

fn serve(home: &FakeHome) -> Server {
    Server::start(home.command(&["serve"]))
}

fn rotate(home: &FakeHome, first: u64) {
    let spool = home.path().join("spool");
    fs::rename(spool.join("journal.jsonl"), spool.join(format!("journal-{first}.jsonl"))).expect("rotated");
}

/// The ids of the next events; for an event without one, its name.
fn next(events: &mut Events, number: usize) -> Vec<String> {
    let name = |event: Event| event.id.map_or(event.name, |id| id.to_string());
    (0..number).map(|_| events.next().map_or_else(|| "the end".to_owned(), name)).collect()
}

// On macOS only the folder of a change is told.
#[cfg(not(target_os = "macos"))]
#[test]
fn what_changes_while_a_listener_is_caught_up_is_told_to_it_afterwards() {
    let home = FakeHome::new();
    // More than all buffers between us hold.
    lines(&home, 1..=8_000, 4_000);
    home.write("spool/errors/e-1.json", &serde_json::json!({"error_id": "e-1"}));
    let server = serve(&home);
    let mut from_now = server.listen(None);
    let mut late = server.listen(Some(1));
    fs::remove_file(home.path().join("spool/errors/e-1.json")).expect("dismissed");
    assert_eq!(next(&mut from_now, 1), ["changed"]);
    let seen = late.until("changed");
    assert_eq!(seen.iter().filter_map(|event| event.id).collect::<Vec<u64>>(), (2..=8_000).collect::<Vec<u64>>());
    assert_eq!(seen.last().expect("an event").data, serde_json::json!({"kind": "errors", "id": "e-1"}));
}

#[test]
fn a_listener_is_told_of_lines_that_the_journal_has_no_more() {
    let home = FakeHome::new();
    lines(&home, 1..=3, 1);
    rotate(&home, 1);
    lines(&home, 10..=11, 1);
    let server = serve(&home);
    assert_eq!(next(&mut server.listen(Some(1)), 5), ["2", "3", "reset", "10", "11"]);
    assert_eq!(next(&mut server.listen(Some(0)), 1), ["1"]);
    assert_eq!(next(&mut server.listen(Some(9)), 2), ["10", "11"]);
    fs::remove_file(home.path().join("spool/journal-1.jsonl")).expect("ours");
    assert_eq!(next(&mut server.listen(Some(2)), 3), ["reset", "10", "11"]);
    assert_eq!(next(&mut server.listen(Some(0)), 2), ["10", "11"], "it has lost no line");
}

#[test]
fn listeners_are_cut_off_while_the_journal_can_not_be_read() {
    let home = FakeHome::new();
    lines(&home, 1..=1, 1);
    let server = serve(&home);
    let (mut from_now, mut caught_up) = (server.listen(None), server.listen(Some(0)));
    assert_eq!(next(&mut caught_up, 1), ["1"]);
    rotate(&home, 1);
    let journal = home.path().join("spool/journal.jsonl");
    fs::create_dir(&journal).expect("a folder in its place");
    for events in [&mut from_now, &mut caught_up, &mut server.listen(Some(1)), &mut server.listen(None)] {
        assert_eq!(next(events, 2), ["unreadable", "the end"]);
    }
    fs::remove_dir(&journal).expect("ours");
    lines(&home, 2..=2, 1);
    assert_eq!(next(&mut server.listen(Some(1)), 1), ["2"]);
}

#[test]
fn under_nohup_it_outlives_its_terminal() {
    let home = FakeHome::new();
    let mut server = Server::start(under_nohup(&home.command(&["serve"])));
    kill(server.pid(), Signal::SIGHUP).expect("it runs");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let get = "GET /api/agents HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n";
    assert_eq!(server.raw(get).status, 200);
    assert_eq!(server.end(Signal::SIGTERM).code(), Some(0));
    assert_eq!(serve(&home).end(Signal::SIGHUP).code(), Some(0));
}
