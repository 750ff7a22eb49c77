//! `top` in real terminals: what it shows of a real sidecar, what its keys do, and that it never outlives its terminal.

use super::support::fake_fleet::{AWAY_SINCE, box_1, bridge, host, join};
use super::support::processes::is_running;
use super::support::stage::{PATIENCE, Stage};
use crate::support::terminal::Terminal;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::{OpenptyResult, Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::Pid;
use std::fs;
use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tasuki");

impl Stage {
    /// Runs `top` in a window of the user's own session; gives its pane and its process.
    fn top(&self) -> (String, u32) {
        self.top_with("")
    }

    fn top_with(&self, options: &str) -> (String, u32) {
        let line = format!("exec env LC_ALL=C.UTF-8 {PROGRAM} --home {} top {options}", self.home().display());
        let args = ["new-window", "-P", "-F", "#{pane_id} #{pane_pid}", "-t", "user:", &line];
        let said = self.tmux(&args);
        let (pane, pid) = said.trim().split_once(' ').expect("a pane");
        self.until_shown(pane, "tasuki ");
        (pane.to_owned(), pid.parse().expect("a process id"))
    }

    fn keys(&self, pane: &str, keys: &[&str]) {
        let args = [&["send-keys", "-t", pane], keys].concat();
        self.tmux(&args);
    }

    fn until_shown(&self, pane: &str, part: &str) {
        self.until(&format!("{pane} shows {part:?}"), || self.screen(pane).contains(part));
    }

    /// Waits until a process has ended.
    fn until_gone(&self, pid: u32) {
        self.until("top ends with its terminal", || !is_running(pid));
    }
}

#[test]
fn the_other_hosts_are_shown_with_their_age_and_their_rows_only_say_whom_to_ask() {
    let stage = Stage::new();
    join(&stage.home());
    let (pane, _) = stage.top_with("--all-hosts");
    stage.until_shown(&pane, "box-1");
    stage.until_shown(&pane, "host away");
    stage.until_shown(&pane, "hands off: ");
    assert!(stage.home().join("fleet/looked").exists(), "the bridge is not told that somebody looks");
    stage.keys(&pane, &["2"]);
    stage.until_shown(&pane, "HANDOFF ");
    stage.keys(&pane, &["c"]);
    stage.until_shown(&pane, "cancel 44444444@box-1");
    stage.keys(&pane, &["Enter"]);
    stage.until_shown(&pane, "persona     mia");
    stage.keys(&pane, &["Escape"]);
    stage.until_shown(&pane, "HANDOFF ");
    host(&stage.home(), "box-1", &box_1("busy"));
    stage.keys(&pane, &["1"]);
    stage.until_shown(&pane, "busy");
    bridge(&stage.home(), None);
    stage.until_shown(&pane, "host not reached");
    let mut gone = box_1("busy");
    gone["away_since"] = AWAY_SINCE.into();
    bridge(&stage.home(), Some("127.0.0.1:4222"));
    host(&stage.home(), "box-1", &gone);
    stage.until("both are away", || stage.screen(&pane).matches("host away").count() >= 2);
}

#[test]
fn a_handoff_is_asked_for_by_keys_and_its_steps_are_seen_to_pass() {
    let stage = Stage::new();
    let kai = stage.agent("kai");
    stage.faults("slow_turn=1500");
    let (pane, _) = stage.top();
    stage.until_shown(&pane, "idle");
    stage.keys(&pane, &["h"]);
    stage.until_shown(&pane, "Reason:");
    stage.keys(&pane, &["-l", "context is full"]);
    stage.keys(&pane, &["Enter"]);
    stage.until_shown(&pane, "Focus");
    stage.keys(&pane, &["-l", "the tests"]);
    stage.keys(&pane, &["Enter"]);
    stage.until_shown(&pane, "has started");
    stage.until_shown(&pane, "hands off: writing");
    stage.until_shown(&pane, "Running handoffs 1");
    let view = stage.wait_for("a handoff", || stage.views("handoffs").pop());
    assert_eq!(
        (&view["agent_id"], &view["reason"], &view["focus"]),
        (&kai.into(), &"context is full".into(), &"the tests".into())
    );
    let done = stage.until_step(view["handoff_id"].as_str().expect("an id"), "done");
    stage.until_shown(&pane, "no handoff");
    stage.keys(&pane, &["2"]);
    stage.until_shown(&pane, "done");
    stage.keys(&pane, &["Enter"]);
    stage.until_shown(&pane, "[x] document recorded");
    stage.keys(&pane, &["Escape"]);
    // Escape and a key in one breath would be Alt and that key.
    stage.until_shown(&pane, "HANDOFF ");
    stage.keys(&pane, &["5"]);
    stage.until_shown(&pane, "└─ ");
    stage.check_done(&done);
}

#[test]
fn a_failure_is_shown_with_its_fix_retried_cancelled_and_dismissed() {
    let stage = Stage::new();
    let kai = stage.agent("kai");
    stage.faults("write_never");
    let (pane, _) = stage.top();
    let handoff = stage.hand_off(&kai);
    stage.until_failed(&handoff, "writing", "document_missing");
    stage.until_shown(&pane, "Errors 1");
    stage.until_shown(&pane, "handoff failed");
    stage.keys(&pane, &["r"]);
    stage.until_shown(&pane, "continues");
    stage.until("it has failed again", || stage.errors_of(&handoff).len() == 2);
    // The first failure is past: the handoff had continued after it.
    stage.until_shown(&pane, "Errors 1");
    stage.faults("slow_turn=60000");
    stage.until("it can be asked for again", || stage.agent_view(&kai)["state"] == "idle");
    stage.keys(&pane, &["r"]);
    stage.until("it is written anew", || stage.handoff_view(&handoff)["step"] == "writing");
    stage.until_shown(&pane, "hands off: writing");
    stage.keys(&pane, &["c"]);
    stage.until_shown(&pane, "Cancel handoff");
    stage.keys(&pane, &["y"]);
    stage.until_step(&handoff, "cancelled");
    stage.until_shown(&pane, "is cancelled");
    stage.keys(&pane, &["4"]);
    for left in [1, 0] {
        stage.keys(&pane, &["d"]);
        stage.until_shown(&pane, "Dismiss the error document_missing (");
        stage.keys(&pane, &["y"]);
        stage.until("it is dismissed", || stage.errors().len() == left);
        // Errors of a handoff that is over count no more, but they are listed until they are dismissed.
        let listed = || stage.screen(&pane).matches(" document_missing ").count();
        stage.until("it is no longer listed", || listed() <= left);
    }
    stage.until_shown(&pane, "No errors.");
    // What is refused is said with its reason.
    stage.keys(&pane, &["2", "a"]);
    stage.until_shown(&pane, "Accept the document");
    stage.keys(&pane, &["y"]);
    stage.until_shown(&pane, "(already_ended)");
}

#[test]
fn the_person_is_brought_to_an_agents_pane() {
    let stage = Stage::new();
    let kai = stage.agent("kai");
    let at = stage.agent_view(&kai)["pane"].as_str().expect("a pane").to_owned();
    let user = Terminal::attached(&stage, "user");
    let (pane, pid) = stage.top();
    let active = || stage.tmux(&["list-clients", "-F", "#{?client_control_mode,,#{pane_id}}"]).replace('\n', "");
    stage.until("the person sees top", || active() == pane);
    stage.until_shown(&pane, "kai");
    stage.keys(&pane, &["g"]);
    stage.until("the person sees the agent", || active() == at);
    assert!(is_running(pid), "in a pane of its own it stays");
    drop(user);
}

/// The sidecar's own connection is a client too, and tmux would take it where nobody else is there.
#[test]
fn where_no_terminal_shows_the_session_nobody_is_brought_anywhere() {
    let stage = Stage::new();
    stage.agent("kai");
    let (pane, _) = stage.top();
    let clients = || stage.tmux(&["list-clients", "-F", "#{client_control_mode} #{session_id}"]);
    let before = clients();
    stage.until_shown(&pane, "kai");
    stage.keys(&pane, &["g"]);
    stage.until_shown(&pane, "No terminal is attached to the session");
    assert_eq!(clients(), before);
}

#[test]
fn in_a_popup_it_works_and_makes_way_for_the_pane_that_it_leads_to() {
    let stage = Stage::new();
    let kai = stage.agent("kai");
    let at = stage.agent_view(&kai)["pane"].as_str().expect("a pane").to_owned();
    let user = Terminal::attached(&stage, "user");
    let clients = stage.tmux(&["list-clients", "-F", "#{?client_control_mode,,#{client_name}}"]);
    let client = clients.split_whitespace().next().expect("the user's");
    let line = format!("exec env LC_ALL=C.UTF-8 {PROGRAM} --home {} top", stage.home().display());
    let mut popup = Command::new("tmux");
    popup.arg("-S").arg(stage.socket()).args(["display-popup", "-c", client, "-E", "-w", "90%", "-h", "90%", &line]);
    Stage::make_own(&mut popup);
    let mut popup = popup.stdin(Stdio::null()).spawn().expect("tmux runs");
    let shown = |part: &str| user.inner.tmux(&["capture-pane", "-p", "-t", &user.pane]).contains(part);
    stage.until("the popup shows the agent", || shown("kai") && shown("idle"));
    user.types("g");
    stage.until("the popup is closed", || popup.try_wait().expect("a child of ours").is_some());
    let active = stage.tmux(&["list-clients", "-F", "#{?client_control_mode,,#{pane_id}}"]);
    assert_eq!(active.trim(), at, "and the person sees the agent");
}

#[test]
fn it_ends_with_its_pane_its_window_and_its_server() {
    let stage = Stage::without_sidecar("");
    for end in [&["kill-pane", "-t"][..], &["kill-window", "-t"], &["respawn-pane", "-k", "-t"], &["kill-server"]] {
        let (pane, pid) = stage.top();
        let target = if end == ["kill-server"] { &[][..] } else { &[pane.as_str()] };
        stage.tmux(&[end, target].concat());
        stage.until_gone(pid);
    }
}

/// `top` on a terminal of its own, of 80 × 24, that this test holds the other end of.
fn on_a_terminal(stage: &Stage, wrapper: &[&str]) -> (OpenptyResult, Child) {
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = openpty(&size, None).expect("a terminal");
    // The other end must be nobody's but ours, or it would never be gone.
    for end in [&pty.master, &pty.slave] {
        fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).expect("set");
    }
    let mut line = wrapper.to_vec();
    line.push(PROGRAM);
    let mut command = Command::new(line[0]);
    command.args(&line[1..]).arg("--home").arg(stage.home()).arg("top").env("TERM", "xterm");
    Stage::make_own(&mut command);
    let end = || Stdio::from(pty.slave.try_clone().expect("a descriptor"));
    let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("the program runs");
    (pty, child)
}

fn until_drawn(pty: &OpenptyResult) -> String {
    let mut master = fs::File::from(pty.master.try_clone().expect("a descriptor"));
    let mut shown = Vec::new();
    while !String::from_utf8_lossy(&shown).contains("quit") {
        let mut bytes = [0; 4_096];
        let count = master.read(&mut bytes).expect("it draws");
        shown.extend_from_slice(&bytes[..count]);
    }
    String::from_utf8_lossy(&shown).into_owned()
}

fn ended(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match child.try_wait().expect("a child of ours") {
            Some(status) => return status,
            None if Instant::now() > deadline => {
                let _ = child.kill();
                panic!("it outlives its terminal");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

#[test]
fn it_ends_when_its_terminal_is_gone_of_which_no_signal_tells() {
    let stage = Stage::without_sidecar("");
    let deaf = ["sh", "-c", "trap '' HUP INT TERM; exec \"$@\"", "sh"];
    let alone = ["setsid"];
    let both = ["sh", "-c", "trap '' HUP INT TERM; exec setsid \"$@\"", "sh"];
    for wrapper in [&[][..], &deaf, &alone, &both] {
        let (pty, mut child) = on_a_terminal(&stage, wrapper);
        until_drawn(&pty);
        drop(pty);
        ended(&mut child);
    }
}

#[test]
fn it_ends_when_it_is_told_to_and_gives_the_terminal_back() {
    let stage = Stage::without_sidecar("");
    let echoes = |pty: &OpenptyResult| {
        tcgetattr(pty.slave.as_fd()).expect("a terminal").local_flags.contains(LocalFlags::ECHO | LocalFlags::ICANON)
    };
    let signals = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM, Signal::SIGQUIT].map(Some);
    for signal in signals.into_iter().chain([None]) {
        let (pty, mut child) = on_a_terminal(&stage, &[]);
        until_drawn(&pty);
        assert!(!echoes(&pty));
        match signal {
            Some(signal) => {
                kill(Pid::from_raw(i32::try_from(child.id()).expect("a process id")), signal).expect("it runs")
            }
            None => drop(nix::unistd::write(&pty.master, b"q").expect("typed")),
        }
        assert_eq!(ended(&mut child).code(), Some(0), "{signal:?}");
        assert!(echoes(&pty), "{signal:?}");
        let mut rest = [0; 64 * 1024];
        let count = nix::unistd::read(&pty.master, &mut rest).expect("the last words");
        let rest = String::from_utf8_lossy(&rest[..count]).into_owned();
        assert!(rest.contains("\u{1b}[?25h") && rest.contains("\u{1b}[?1049l"), "{rest:?}");
    }
}

#[test]
fn a_terminal_that_stands_still_keeps_it_from_nothing() {
    let stage = Stage::without_sidecar("");
    let (pty, mut child) = on_a_terminal(&stage, &[]);
    until_drawn(&pty);
    // Nobody reads any more: every resize draws the whole screen, until no more fits.
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    for _ in 0..200 {
        kill(pid, Signal::SIGWINCH).expect("it runs");
        std::thread::sleep(Duration::from_millis(2));
    }
    kill(pid, Signal::SIGTERM).expect("it runs");
    ended(&mut child);
    drop(pty);
}

#[test]
fn without_a_terminal_it_refuses_and_names_what_programs_use() {
    let stage = Stage::without_sidecar("");
    let refused = |command: &mut Command| {
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(" agents --json") && output.stdout.is_empty(), "{said}");
    };
    refused(&mut stage.command(&["top"]));
    refused(&mut stage.command(&["--json", "top"]));
    for term in ["dumb", ""] {
        let pty = openpty(None, None).expect("a terminal");
        let end = || Stdio::from(pty.slave.try_clone().expect("a descriptor"));
        let mut command = stage.command(&["top"]);
        command.env("TERM", term).stdin(end()).stdout(end()).stderr(Stdio::piped());
        let output = command.spawn().and_then(Child::wait_with_output).expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains("can't draw on this terminal"), "{term:?}: {said}");
    }
}

#[test]
fn it_shows_a_home_in_which_nothing_runs_and_the_sidecar_once_it_does() {
    let stage = Stage::without_sidecar("");
    let (pane, _) = stage.top();
    stage.until_shown(&pane, "no sidecar");
    stage.until_shown(&pane, "tasuki run --home");
    stage.start_sidecar();
    stage.until_shown(&pane, "alive");
    stage.keys(&pane, &["?"]);
    stage.until_shown(&pane, "this help");
    stage.keys(&pane, &["q"]);
    stage.until_shown(&pane, "No agents.");
    stage.tmux(&["resize-window", "-t", &pane, "-x", "40", "-y", "10"]);
    stage.until_shown(&pane, "0a 0h 0!");
    stage.tmux(&["resize-window", "-t", &pane, "-x", "30", "-y", "8"]);
    stage.until_shown(&pane, "too small");
}
