//! Terminals that go away, stand still or are full: what a program of ours says must never keep it from its work, nor from
//! its end.

use super::support::stage::Stage;
use super::support::stage_files::read_json;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use std::fs;
use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::AsFd;
use std::process::Stdio;

/// A command of this home for a shell in a pane. Whatever of it is left ends with the stage.
fn line(stage: &Stage, args: &str) -> String {
    let (home, program) = (stage.home(), env!("CARGO_BIN_EXE_tasuki"));
    format!("env TASUKI_HOME='{}' TASUKI_LOG=debug '{program}' {args}", home.display())
}

/// A sidecar in a pane of the session `user`, started by a shell as a person would; gives the pane and the process id.
fn in_pane(stage: &Stage, before: &str) -> (String, i32) {
    let run = format!("{before} {}", line(stage, &format!("run --tmux '{}'", stage.socket().display())));
    let pane = stage.tmux(&["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "user:", &format!("{run}; exec cat")]);
    (pane.trim().to_owned(), until_beating(stage))
}

/// Waits for the heartbeat of a sidecar that is no child of ours.
fn until_beating(stage: &Stage) -> i32 {
    let view = stage.home().join("view/sidecar.json");
    let pid = stage.wait_for("it beats", || read_json(&view)?["pid"].as_i64());
    i32::try_from(pid).expect("a process id")
}

fn is_there(pid: i32) -> bool {
    kill(Pid::from_raw(pid), None).is_ok()
}

fn until_gone(stage: &Stage, pid: i32) {
    stage.until(&format!("process {pid} has ended"), || !is_there(pid));
}

/// A pipe that takes no byte more. Whoever holds the reader holds it full.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let set = |flags| fcntl(writer.as_fd(), FcntlArg::F_SETFL(flags)).expect("it can be told");
    set(OFlag::O_NONBLOCK);
    while (&writer).write(&[b'x'; 4096]).is_ok() {}
    while (&writer).write(b"x").is_ok() {}
    set(OFlag::empty());
    writer.flush().expect("nothing is held back");
    (reader, writer)
}

/// Requests that are answered, each with lines in the log.
fn works(stage: &Stage) {
    let agent = stage.agent("kai");
    stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": "hello"}));
    for _ in 0..50 {
        stage.refused(&json!({"kind": "agent_send", "agent_id": agent}));
    }
}

/// Starts a sidecar of ours with this standard error.
fn start(stage: &Stage, stderr: impl Into<Stdio>) {
    let mut command = stage.command(&["run", "--tmux", &stage.socket().display().to_string()]);
    command.env("TASUKI_LOG", "debug").stdout(Stdio::null()).stderr(stderr);
    stage.adopt(command.spawn().expect("it starts"));
    stage.until_beating();
}

#[test]
fn a_log_that_nobody_reads_holds_nothing_up() {
    let stage = Stage::without_sidecar("");
    let (reader, writer) = full_pipe();
    start(&stage, writer);
    works(&stage);
    assert!(stage.end_sidecar(Signal::SIGTERM).success());
    drop(reader);
}

#[test]
fn a_log_whose_reader_has_gone_holds_nothing_up() {
    let stage = Stage::without_sidecar("");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    start(&stage, writer);
    works(&stage);
    assert!(stage.end_sidecar(Signal::SIGTERM).success());
}

#[test]
fn a_sidecar_whose_pane_is_stopped_by_ctrl_s_answers_and_ends() {
    let stage = Stage::without_sidecar("");
    let (pane, pid) = in_pane(&stage, "");
    stage.until("it says that it runs", || stage.screen(&pane).contains("tasuki runs"));
    stage.tmux(&["send-keys", "-t", &pane, "C-s"]);
    works(&stage);
    kill(Pid::from_raw(pid), Signal::SIGTERM).expect("it is there");
    until_gone(&stage, pid);
}

#[test]
fn a_sidecar_ends_with_its_pane() {
    let stage = Stage::without_sidecar("");
    let (pane, pid) = in_pane(&stage, "");
    stage.tmux(&["kill-pane", "-t", &pane]);
    until_gone(&stage, pid);
    assert!(!stage.home().join("view/sidecar.json").exists(), "it says that it lives no more");
}

#[test]
fn a_log_that_can_t_be_written_holds_nothing_up() {
    let stage = Stage::without_sidecar("");
    // As good as a disk that has no room, or a file that is closed.
    let log = fs::File::open("/dev/null").expect("a file to read");
    start(&stage, log);
    works(&stage);
    assert!(stage.end_sidecar(Signal::SIGTERM).success());
}
