//! `tasuki fleet demo` shows what it says, and leaves nothing behind.

use crate::fleet::nats_program;
use crate::support::processes::bearing;
use crate::support::tally;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn demo(scratch: &Path, nats: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki-fleet"));
    command.args(["demo", "--json"]).env("TMPDIR", scratch).env("TASUKI_NATS_SERVER", nats).stdin(Stdio::null());
    command.output().expect("the program runs")
}

/// How many processes were started with this folder for temporary files.
fn processes(scratch: &Path) -> usize {
    bearing(&format!("TMPDIR={}", scratch.display())).len()
}

#[test]
fn the_demo_shows_a_text_that_arrives_once_and_leaves_nothing() {
    let Some(nats) = nats_program() else { return tally::skip("there is no NATS server for the demo of a fleet") };
    let scratch = tempfile::Builder::new().prefix("t").tempdir_in("/tmp").expect("a folder with a short name");
    let output = demo(scratch.path(), &nats);
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    let lines: Vec<Value> =
        String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let counted = lines.iter().rev().find(|line| line["type"] == "passed").expect("a count");
    assert_eq!(counted["answer"]["prompts"], 1, "{said}");
    assert_eq!(lines.last().expect("lines")["type"], "demo_done", "{said}");
    assert_eq!(fs::read_dir(scratch.path()).expect("a folder").count(), 0, "{said}");
    assert_eq!(processes(scratch.path()), 0, "{said}");
}

#[test]
fn without_a_server_the_demo_says_so_and_starts_nothing() {
    let scratch = tempfile::tempdir().expect("a folder");
    let output = demo(scratch.path(), Path::new("/nowhere/nats-server"));
    assert_eq!(output.status.code(), Some(69));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no_nats_server"));
    assert_eq!(fs::read_dir(scratch.path()).expect("a folder").count(), 0);
}
