//! Terminals that go away, stand still or are full: what a program of ours says must never keep it from its work, nor
//! from its end.

use super::support::stage::Stage;
use super::support::stage_files::read_json;
use super::support::strace;
use super::support::tmux::Server;
use nix::fcntl::{FcntlArg, Flock, FlockArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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

#[test]
fn a_sidecar_that_is_to_ignore_hang_ups_outlives_its_pane() {
    let stage = Stage::without_sidecar("");
    let (pane, pid) = in_pane(&stage, "trap '' HUP;");
    stage.tmux(&["kill-pane", "-t", &pane]);
    stage.until("the pane has gone", || !stage.tmux(&["list-panes", "-a", "-F", "#{pane_id} "]).contains(&pane));
    kill(Pid::from_raw(pid), Signal::SIGHUP).expect("it is there");
    works(&stage);
    kill(Pid::from_raw(pid), Signal::SIGTERM).expect("it is there");
    until_gone(&stage, pid);
}

#[test]
fn a_sidecar_ends_with_the_server_of_its_pane_and_with_a_connection_that_is_cut() {
    let stage = Stage::without_sidecar("");
    // A terminal of another server: to the sidecar it ends like a window that is closed, or a connection that is cut.
    let other = Server::start();
    let run = line(&stage, &format!("run --tmux '{}'", stage.socket().display()));
    other.tmux(&["new-window", "-d", "-t", "main:", &run]);
    let pid = until_beating(&stage);
    drop(other);
    until_gone(&stage, pid);
    let (_, pid) = in_pane(&stage, "");
    stage.tmux(&["kill-server"]);
    until_gone(&stage, pid);
}

#[test]
fn a_sidecar_that_stands_still_is_ended_by_force() {
    if !strace::is_there() {
        return;
    }
    let stage = Stage::without_sidecar("");
    start(&stage, fs::File::create(stage.log_file()).expect("a log"));
    let agent = stage.agent("kai");
    // A disk that takes longer than anybody lives.
    let pid = stage.sidecar_pid().to_string();
    let calls = "fsync,fdatasync";
    let mut tracer = Command::new("strace")
        .args([
            "-f",
            "-p",
            &pid,
            "-e",
            &format!("trace={calls}"),
            "-e",
            &format!("inject={calls}:delay_enter=600000000"),
        ])
        .stderr(Stdio::piped())
        .spawn()
        .expect("strace starts");
    let mut said = BufReader::new(tracer.stderr.take().expect("a pipe"));
    let mut first = String::new();
    said.read_line(&mut first).expect("it says that it is there");
    assert!(first.contains("attached"), "{first}");
    let asked = stage.send(&json!({"kind": "agent_send", "agent_id": agent, "text": "hello"}));
    stage.until("the loop waits for the disk", || {
        first.clear();
        said.read_line(&mut first).expect("it goes on");
        first.contains("sync(")
    });
    stage.signal(Signal::SIGTERM);
    let log = || fs::read_to_string(stage.log_file()).expect("a log");
    stage.until("it says that it ends", || log().contains("hangs, so it ends by force"));
    // A call that is held up by its tracer is held up at an end as well.
    tracer.kill().expect("it is there");
    tracer.wait().expect("it ends");
    let ended = stage.wait_for("it ends", || stage.ended());
    assert_eq!(ended.code(), Some(75), "{}", log());
    stage.start_sidecar();
    assert_eq!(stage.result(&asked)["status"], 200, "the next one goes on");
    stage.check_once();
}

/// Another home holds the lock that a home needs to leave, and tmux stands still: together they would take longer than
/// an end may.
#[test]
fn a_sidecar_that_can_not_leave_tmux_ends_in_good_order() {
    let stage = Stage::without_sidecar("");
    start(&stage, fs::File::create(stage.log_file()).expect("a log"));
    let server: i32 = stage.tmux(&["display-message", "-p", "#{pid}"]).trim().parse().expect("a pid");
    stage.until("it is connected", || {
        fs::read_to_string(stage.log_file()).expect("a log").contains("connected to tmux")
    });
    // What it asks tmux after it has connected is answered by then. An unanswered question would end the connection.
    std::thread::sleep(Duration::from_secs(2));
    let folder = fs::File::open(stage.socket().parent().expect("a folder")).expect("a folder");
    let until = Instant::now() + Duration::from_secs(20);
    let busy = || {
        assert!(Instant::now() < until, "the sidecar never gives the lock back");
        std::thread::sleep(Duration::from_millis(10));
    };
    let lock = loop {
        match Flock::lock(folder.try_clone().expect("a descriptor"), FlockArg::LockExclusiveNonblock) {
            Ok(lock) => break lock,
            Err(_) => busy(),
        }
    };
    kill(Pid::from_raw(server), Signal::SIGSTOP).expect("our own server");
    let ended = stage.end_sidecar(Signal::SIGTERM);
    kill(Pid::from_raw(server), Signal::SIGCONT).expect("our own server");
    drop(lock);
    let log = fs::read_to_string(stage.log_file()).expect("a log");
    assert!(ended.success(), "{ended}: {log}");
}

#[test]
fn commands_end_with_their_pane() {
    let stage = Stage::with_config("");
    let agent = stage.agent("kai");
    stage.faults("slow_turn=600000");
    let wait = format!("handoff {agent} --reason x --wait");
    // Also where nobody would be told by a signal.
    for (before, args) in
        [("", "serve --listen 127.0.0.1:0"), ("", "top"), ("trap '' HUP;", "top"), ("trap '' HUP;", &wait)]
    {
        let run = format!("{before} exec {}", line(&stage, args));
        let made = stage.tmux(&["new-window", "-d", "-P", "-F", "#{pane_id} #{pane_pid}", "-t", "user:", &run]);
        let (pane, pid) = made.trim().split_once(' ').expect("two words");
        stage.until(&format!("{args} says something"), || stage.screen(pane).trim().len() > 10);
        stage.tmux(&["kill-pane", "-t", pane]);
        until_gone(&stage, pid.parse().expect("a process id"));
    }
}

#[test]
fn a_server_for_dashboards_whose_terminal_takes_nothing_serves_and_ends() {
    let stage = Stage::with_config("");
    let (_reader, writer) = full_pipe();
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
    let mut serve = stage
        .command(&["serve", "--listen", &free.to_string()])
        .stdout(writer.try_clone().expect("a pipe"))
        .stderr(writer)
        .spawn()
        .expect("it starts");
    stage.until("it answers", || {
        let Ok(mut stream) = std::net::TcpStream::connect(free) else { return false };
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a limit");
        let asked = write!(stream, "GET / HTTP/1.1\r\nHost: {free}\r\nConnection: close\r\n\r\n");
        asked.is_ok() && matches!(stream.read(&mut [0; 16]), Ok(count) if count > 0)
    });
    kill(Pid::from_raw(i32::try_from(serve.id()).expect("a process id")), Signal::SIGTERM).expect("it is there");
    stage.until("it ends", || serve.try_wait().expect("a child of ours").is_some());
}

#[test]
fn a_sidecar_in_a_pane_of_another_server_says_so_and_that_its_own_does_not_answer() {
    let stage = Stage::without_sidecar("");
    // Where the default server would listen, and none does.
    let run = format!("TMUX_TMPDIR='{}' {}; exec cat", stage.work_dir().display(), line(&stage, "run"));
    let pane = stage.tmux(&["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "user:", &run]);
    stage.until("it warns of both", || {
        let screen = stage.tmux(&["capture-pane", "-p", "-J", "-t", pane.trim()]);
        let said = |words: &str| screen.lines().any(|line| line.contains("WARN") && line.contains(words));
        said("this pane belongs to a different tmux server") && said("tmux does not answer")
    });
    until_beating(&stage);
}
