//! Every parser that reads what others wrote, against the corpus of the fuzz targets and against what becomes of it
//! when it is cut, doubled and spoilt. What must hold stands in `tests/fuzz/checks.rs`, which the fuzz targets drive
//! too.

#[path = "../fuzz/checks.rs"]
mod checks;

use crate::support::tally;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is put into the middle of things.
const SNIPPETS: [&[u8]; 22] = [
    b"\x1b[201~",
    b"\x1b]0;title\x07",
    b"\xc2\x9b31m",
    b"\xe2\x80\xae",
    b"\\u001b[31m",
    b"\\u0000",
    b"\\ud800",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\n%end 1 5 1\n",
    b"\n%begin 9 9 1\n",
    b"\n%exit\n",
    b"#{pane_pid}#(touch /tmp/x);",
    b"$(id)`id`'\"",
    b"(tasuki delivery 000000000000.)",
    b"99999999999999999999",
    b"1e999",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    b"\"a\":1,\"a\":2,",
    b"../../../etc/passwd",
];

type Check = fn(&[u8]);
const TARGETS: [(&str, Check); 5] = [
    ("request", checks::request),
    ("event", checks::event),
    ("control", checks::control),
    ("profile", checks::profile),
    ("transcript", checks::transcript),
];

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(paths.len() >= 4, "{} is next to empty", folder.display());
    paths.into_iter().map(|path| (path.clone(), fs::read(path).expect("read"))).collect()
}

#[test]
fn the_corpus_is_read_without_harm() {
    for (target, check) in TARGETS {
        for (path, bytes) in corpus(target) {
            println!("{}", path.display());
            check(&bytes);
            tally::add(tally::INPUTS, 1);
        }
    }
}

/// One change to bytes: where, how long, and what.
type Edit = (prop::sample::Index, usize, u8, prop::sample::Index);

fn spoil(bytes: &mut Vec<u8>, (at, length, what, snippet): &Edit) {
    let at = at.index(bytes.len() + 1);
    let end = (at + length).min(bytes.len());
    match what % 6 {
        0 => drop(bytes.drain(at..end)),
        1 => bytes.truncate(at),
        2 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (length % 8)),
        3 => {
            let copy = bytes[at..end].to_vec();
            bytes.splice(at..at, copy);
        }
        4 => {
            let piece = SNIPPETS[snippet.index(SNIPPETS.len())];
            bytes.splice(at..at, piece.iter().copied());
        }
        _ => {
            let piece = SNIPPETS[snippet.index(SNIPPETS.len())].repeat(length * 40);
            bytes.splice(at..end, piece);
        }
    }
}

/// Runs one check over spoilt copies of its corpus.
fn spoilt(target: &str) {
    let (_, check) = TARGETS.into_iter().find(|(name, _)| *name == target).expect("a target");
    let seeds: Vec<Vec<u8>> = corpus(target).into_iter().map(|(_, bytes)| bytes).collect();
    let cases = if tally::is_long() { 5_000 } else { 500 };
    let edits = prop::collection::vec(any::<Edit>().prop_map(|(at, len, what, s)| (at, len % 64, what, s)), 0..6);
    let plan = (any::<prop::sample::Index>(), edits);
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(cases) });
    let tried = Cell::new(0);
    let result = runner.run(&plan, |(seed, edits)| {
        let mut bytes = seeds[seed.index(seeds.len())].clone();
        edits.iter().for_each(|edit| spoil(&mut bytes, edit));
        check(&bytes);
        tried.set(tried.get() + 1);
        Ok(())
    });
    tally::add(tally::INPUTS, tried.get());
    result.unwrap_or_else(|error| panic!("{target}: {error}"));
}

#[test]
fn spoilt_requests_are_answered_with_field_or_place() {
    spoilt("request");
}

#[test]
fn spoilt_events_are_refused_with_their_field() {
    spoilt("event");
}

#[test]
fn a_spoilt_control_stream_is_the_same_however_it_is_cut() {
    spoilt("control");
}

#[test]
fn spoilt_profiles_are_refused_with_line_and_key() {
    spoilt("profile");
}

#[test]
fn spoilt_transcripts_are_read_as_far_as_they_go() {
    spoilt("transcript");
}

proptest! {
    #[test]
    fn bytes_of_any_kind_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        TARGETS.into_iter().for_each(|(_, check)| check(&bytes));
    }
}

/// The hook takes whatever a CLI gives it: it says nothing, does not fail, and leaves an event that the sidecar can
/// read.
#[test]
fn the_hook_makes_an_event_of_every_input() {
    let home = tempfile::tempdir().expect("a home");
    for folder in ["spool/tmp", "spool/events"] {
        fs::create_dir_all(home.path().join(folder)).expect("made");
    }
    let mut tried = 0;
    for (path, bytes) in corpus("event").into_iter().chain(corpus("transcript")) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tasuki"))
            .args(["hook", "claude", "--event", "Stop"])
            .env("TASUKI_HOME", home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        child.stdin.take().expect("a pipe").write_all(&bytes).expect("it takes everything");
        let out = child.wait_with_output().expect("it ends");
        assert!(out.status.success() && out.stdout.is_empty() && out.stderr.is_empty(), "{}: {out:?}", path.display());
        let events: Vec<_> = fs::read_dir(home.path().join("spool/events")).expect("a folder").flatten().collect();
        assert_eq!(events.len(), 1, "{}", path.display());
        let event = fs::read(events[0].path()).expect("the event");
        fs::remove_file(events[0].path()).expect("taken");
        checks::event(&event);
        let profiles = tasuki::agents::Profiles::load(None).expect("built in");
        tasuki::agents::read_event(&event, &profiles).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        tried += 1;
    }
    tally::add(tally::INPUTS, tried);
}
