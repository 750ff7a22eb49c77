//! The demo leaves nothing behind, however it ends.

use super::support::processes::{bearing, words};
use super::support::steps::STEPS;
use super::support::tally;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts the demo with a folder for temporary files of its own, as if from inside somebody's tmux.
fn start(scratch: &Path, args: &[&str]) -> Child {
    command(scratch, args).spawn().expect("the program runs")
}

fn command(scratch: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
    command.arg("demo").args(args).env("TMPDIR", scratch).env("TMUX", "/nowhere/tmux,1,0").env("TMUX_PANE", "%0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("t").tempdir_in("/tmp").expect("a folder with a short name")
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").filter_map(Result::ok);
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The processes that were started with this folder for temporary files.
fn processes(scratch: &Path) -> Vec<String> {
    let pids = bearing(&format!("TMPDIR={}", scratch.display())).into_iter();
    pids.map(|pid| words(pid).join("\0")).collect()
}

fn ended(child: Child) -> Output {
    child.wait_with_output().expect("it ends")
}

fn nothing_is_left(scratch: &Path, output: &Output) {
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(entries(scratch).is_empty(), "{:?}\n{said}", entries(scratch));
    assert!(processes(scratch).is_empty(), "{:?}\n{said}", processes(scratch));
}

/// When the demo has shown so much, it is interrupted.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// The folder has been made.
    Folder,
    /// So long after that.
    After(Duration),
}

/// Starts a demo, sends it a signal at a moment, and waits for its end.
fn interrupted(signal: Signal, moment: Moment) {
    let scratch = scratch();
    let child = start(scratch.path(), &[]);
    let end = Instant::now() + PATIENCE;
    // The folder is made after the signals are watched.
    while entries(scratch.path()).is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    if let Moment::After(pause) = moment {
        // Not a wait for anything: the moment itself is what is tried.
        std::thread::sleep(pause);
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    kill(pid, signal).expect("it runs");
    let output = ended(child);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{signal} at {moment:?} must be taken, not died of: {said}");
    assert!(said.contains("interrupted"), "{signal} at {moment:?}: {said}");
    nothing_is_left(scratch.path(), &output);
}

/// Numbers from 0 to 1 that look random and differ from run to run; the seed is told, for a failure to be repeated.
fn chances(count: usize) -> Vec<f64> {
    let mut state = u64::from(std::process::id()) ^ chrono::Utc::now().timestamp_micros().unsigned_abs();
    eprintln!("seed {state}");
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(state >> 33).unwrap_or_default()) / f64::from(u32::MAX >> 1)
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn the_demo_shows_a_whole_handoff_and_leaves_nothing_behind() {
    let scratch = scratch();
    let began = Instant::now();
    let output = ended(start(scratch.path(), &[]));
    nothing_is_left(scratch.path(), &output);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}{errors}");
    for step in STEPS.iter().filter(|step| **step != "done") {
        let line = said.lines().find(|line| line.trim_start().starts_with(step));
        assert!(line.is_some_and(|line| line.contains(" s")), "{step} with its time:\n{said}");
    }
    for part in ["# Handoff from kai", "## Next steps", "I have read the handoff document", "└─ ", "by handoff "] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    assert!(errors.is_empty(), "{errors}");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}, and 30 s is the aim", began.elapsed());
}

#[test]
fn the_demo_tells_programs_in_json_lines() {
    let scratch = scratch();
    let output = ended(start(scratch.path(), &["--json"]));
    nothing_is_left(scratch.path(), &output);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let types: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    for word in ["scene", "entered", "passed", "done", "document", "screen", "lineage", "demo_done"] {
        assert!(types.contains(&word), "{word}: {types:?}");
    }
}

#[test]
fn a_demo_that_is_interrupted_at_its_beginning_leaves_nothing_behind() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        interrupted(signal, Moment::Folder);
    }
}

#[test]
fn a_demo_that_is_interrupted_at_any_moment_leaves_nothing_behind() {
    let rounds = if tally::is_long() { 30 } else { 4 };
    for (round, chance) in chances(rounds).into_iter().enumerate() {
        let signal = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT][round % 4];
        interrupted(signal, Moment::After(Duration::from_secs_f64(chance * 6.0)));
    }
}

#[test]
fn a_demo_whose_reader_goes_away_leaves_nothing_behind() {
    let scratch = scratch();
    let mut child = start(scratch.path(), &[]);
    drop(child.stdout.take());
    nothing_is_left(scratch.path(), &ended(child));
}

#[test]
fn a_demo_without_tmux_says_so_and_leaves_nothing_behind() {
    let scratch = scratch();
    let empty = scratch.path().join("bin");
    fs::create_dir(&empty).expect("a folder");
    let output = command(scratch.path(), &[]).env("PATH", &empty).output().expect("the program runs");
    fs::remove_dir(&empty).expect("still empty");
    assert_eq!(output.status.code(), Some(78));
    assert!(String::from_utf8_lossy(&output.stderr).contains("tmux"), "{output:?}");
    nothing_is_left(scratch.path(), &output);
}

#[test]
fn a_demo_whose_step_fails_says_why_and_leaves_nothing_behind() {
    let scratch = scratch();
    let output = command(scratch.path(), &[]).env("TASUKI_DEMO_FAULTS", "write_never").output().expect("it runs");
    nothing_is_left(scratch.path(), &output);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.contains("document_missing"), "{errors}");
}
