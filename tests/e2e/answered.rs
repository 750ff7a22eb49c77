//! The heartbeat proves that requests are answered: what stands still or never ends is told, holds up nobody else, and
//! ends.

use crate::support::stage::Stage;
use crate::support::tally;
use nix::sys::signal::Signal;
use serde_json::json;
use std::fs;

/// The operator's own command stops itself, as a program does that wants a terminal.
const STOPS: &str = "[notify]\ncommand = [\"sh\", \"-c\", \"echo $$ >>\\\"$0\\\"; kill -STOP $$\", \"FILE\"]\n";

#[test]
fn a_command_that_was_stopped_and_never_ends_is_told_and_holds_nobody_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pids");
    let stage = Stage::with_config(&STOPS.replace("FILE", &file.display().to_string()));
    let agent = stage.agent("kai");
    let [pid] = stage.processes(&agent)[..] else { panic!("{}", stage.story()) };
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL).expect("it runs");
    let helper = stage.wait_for("the command runs and was stopped", || {
        let pid: u32 = fs::read_to_string(&file).ok()?.trim().parse().ok()?;
        tasuki::process::is_stopped(pid).then_some(pid)
    });
    stage.all_answered(&[stage.send_cheap()]);
    stage.until_degraded(&["took more than 10 s and was stopped"]);
    stage.until("it is ended with its group", || !tasuki::process::exists(helper));
    stage.all_answered(&[stage.send_cheap()]);
    stage.agent("mia");
    tally::add(tally::FAULTS, 1);
}

/// A tmux client that stands still: the effects that ask it end, and the sidecar answers meanwhile.
#[test]
fn a_tmux_server_that_stands_still_keeps_nobody_from_an_answer() {
    let stage = Stage::new();
    let agent = stage.agent("kai");
    let server: i32 = stage.tmux(&["display-message", "-p", "#{pid}"]).trim().parse().expect("a pid");
    let server = nix::unistd::Pid::from_raw(server);
    nix::sys::signal::kill(server, Signal::SIGSTOP).expect("our own server");
    let text = stage.send(&json!({"kind": "agent_send", "agent_id": agent, "text": "hello"}));
    stage.all_answered(&[stage.send_cheap()]);
    let answer = stage.result(&text);
    nix::sys::signal::kill(server, Signal::SIGCONT).expect("our own server");
    assert!(answer["status"].as_u64().is_some(), "{answer}");
    stage.until_well();
    tally::add(tally::FAULTS, 1);
}
