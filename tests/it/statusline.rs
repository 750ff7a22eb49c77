//! `tasuki statusline` as Claude Code runs it.

use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const AGENT: &str = "6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa";

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    for folder in ["spool/tmp", "spool/events"] {
        std::fs::create_dir_all(home.path().join(folder)).expect("folders");
    }
    home
}

fn input(used: u64) -> String {
    let usage = json!({"input_tokens": used, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 500});
    let window = json!({"context_window_size": 200_000, "current_usage": usage, "used_percentage": 1});
    json!({"session_id": "s1", "transcript_path": "/t.jsonl", "cwd": "/w", "context_window": window}).to_string()
}

fn run(home: &Path, input: &str, former: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
    command.arg("statusline").arg("--home").arg(home).args(former.first().map(|_| "--")).args(former);
    command.env_remove("TASUKI_HOME").env_remove("TMUX").env_remove("TMUX_PANE").env("TASUKI_AGENT_ID", AGENT);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("it starts");
    // A command that reads nothing may be gone already.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    child.wait_with_output().expect("it ends")
}

fn events(home: &Path) -> Vec<Value> {
    let files = std::fs::read_dir(home.join("spool/events")).expect("events");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    let read = |path| serde_json::from_slice(&std::fs::read(path).expect("readable")).expect("JSON");
    paths.into_iter().map(read).collect()
}

#[test]
fn each_change_is_one_event() {
    let home = home();
    for used in [1_000, 1_000, 2_000, 2_000] {
        let out = run(home.path(), &input(used), &[]);
        assert!(out.status.success() && out.stdout.is_empty() && out.stderr.is_empty());
    }
    let events = events(home.path());
    let used: Vec<&Value> = events.iter().map(|event| &event["context"]["used"]).collect();
    assert_eq!(used, [&json!(1_500), &json!(2_500)]);
    assert!(events.iter().all(|event| event["event"] == "context" && event["agent_id"] == AGENT));
    assert!(events.iter().all(|event| event["session_id"] == "s1" && event["context"]["window"] == 200_000));
}

#[test]
fn the_users_own_line_is_printed_as_it_is() {
    let home = home();
    let line = "\u{1b}[31mred\u{1b}[0m é\n\nlast";
    let out = run(home.path(), &input(7), &["printf", "%s", line]);
    assert_eq!(out.stdout, line.as_bytes());
    let out = run(home.path(), &input(7), &["sh", "-c", "cat; exit 3"]);
    assert_eq!((out.stdout, out.status.code()), (input(7).into_bytes(), Some(0)));
    assert_eq!(events(home.path()).len(), 1);
}

#[test]
fn options_of_every_command_may_go_before_it() {
    let home = home();
    let named = format!("--home={}", home.path().display());
    let lines = [&[&named[..], "statusline"][..], &["--json", &named, "statusline"], &["statusline", &named, "--json"]];
    for (used, args) in lines.into_iter().enumerate() {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
        command.args(args).args(["--", "sh", "-c", "cat >/dev/null; echo MYLINE"]).env_remove("TASUKI_HOME");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let _ = child.stdin.take().expect("piped").write_all(input(used as u64).as_bytes());
        let out = child.wait_with_output().expect("it ends");
        assert_eq!((out.status.code(), out.stdout.as_slice()), (Some(0), b"MYLINE\n".as_slice()), "{args:?}");
        assert_eq!(events(home.path()).len(), used + 1, "{args:?}");
    }
}

#[test]
fn whatever_is_wrong_it_exits_with_0_and_leaves_no_event() {
    let home = home();
    for input in ["", "{", "[]", "{\"context_window\":{\"current_usage\":null,\"used_percentage\":null}}"] {
        let out = run(home.path(), input, &["echo", "mine"]);
        assert_eq!((out.status.code(), out.stdout.as_slice()), (Some(0), b"mine\n".as_slice()), "{input}");
    }
    assert!(run(home.path(), "", &["/no/such/program"]).status.success());
    assert!(events(home.path()).is_empty());
    assert!(run(Path::new("/no/such/home"), &input(1), &["echo", "mine"]).stdout == b"mine\n");
}

#[test]
fn a_command_that_hangs_is_ended() {
    let began = Instant::now();
    assert!(run(home().path(), &input(1), &["sleep", "600"]).status.success());
    assert!(began.elapsed() < Duration::from_secs(60));
}
