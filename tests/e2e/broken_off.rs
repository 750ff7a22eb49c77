//! Commands that wait for an agent, and are broken off by Ctrl-C: they say what becomes of their request.

use super::support::stage::Stage;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};

const TEXT: &str = "Begin with the tests.";

/// An agent with an open dialog: whatever is sent to it waits.
fn blocked(stage: &Stage) -> String {
    let agent = stage.agent("dev");
    stage.faults("dialog_on_write");
    let notes = stage.work_dir().join("notes.md");
    let text = format!("Please write your notes to `{}` now.", notes.display());
    let verdict = stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": text}));
    assert_eq!(verdict["verdict"], "delivered", "{verdict}");
    stage.until("it is blocked", || stage.agent_view(&agent)["state"] == "blocked");
    agent
}

fn close_dialog(stage: &Stage, agent: &str) {
    let pane = stage.agent_view(agent)["pane"].as_str().expect("a pane").to_owned();
    stage.tmux(&["send-keys", "-t", &pane, "Enter"]);
}

/// A command of which both outputs are kept.
fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

/// Sends the signal and returns the exit code and what the command has said on standard error.
fn end(mut child: Child, signal: Signal) -> (Option<i32>, String) {
    kill(Pid::from_raw(i32::try_from(child.id()).expect("an id")), signal).expect("it runs");
    let mut said = String::new();
    child.stderr.take().expect("kept").read_to_string(&mut said).expect("text");
    (child.wait().expect("it ends").code(), said)
}

/// Waits until the command has said that the text waits.
fn until_waiting(child: &mut Child) {
    let mut said = Vec::new();
    let (stderr, mut byte) = (child.stderr.as_mut().expect("kept"), [0]);
    while !said.ends_with(b"answer it there") {
        assert_eq!(stderr.read(&mut byte).expect("it is read"), 1, "{}", String::from_utf8_lossy(&said));
        said.push(byte[0]);
    }
}

fn times_typed(stage: &Stage, agent: &str) -> usize {
    stage.prompts(agent).iter().filter(|prompt| prompt.contains(TEXT)).count()
}

/// The same command, run by `nohup`.
pub(crate) fn under_nohup(command: &Command) -> Command {
    let mut under = Command::new("nohup");
    under.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => under.env(name, value),
            None => under.env_remove(name),
        };
    }
    under
}

#[test]
fn a_send_that_is_broken_off_says_that_its_text_is_still_typed() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGQUIT] {
        let stage = Stage::new();
        let agent = blocked(&stage);
        let mut child = spawn(&mut stage.command(&["send", &agent, TEXT]));
        until_waiting(&mut child);
        let (code, said) = end(child, signal);
        assert_eq!(code, Some(130), "{signal}: {said}");
        let answer = said.split("the answer will be ").nth(1).and_then(|rest| rest.split(".json").next());
        let answer = stage.home().join(format!("{}.json", answer.expect(&said)));
        assert!(said.contains("Interrupted. The sidecar picked up the request and may still carry it out"), "{said}");
        assert!(!answer.exists(), "nothing is decided yet");
        close_dialog(&stage, &agent);
        stage.until("it is answered where the message said", || answer.exists());
        let answer: Value = serde_json::from_slice(&fs::read(&answer).expect("it is there")).expect("JSON");
        assert_eq!(answer["result"]["verdict"], "delivered", "{answer}");
        assert_eq!(times_typed(&stage, &agent), 1, "{}", stage.story());
    }
}

#[test]
fn a_send_that_no_sidecar_has_taken_is_withdrawn() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.until_idle(&agent);
    stage.signal(Signal::SIGSTOP);
    let child = spawn(&mut stage.command(&["--json", "send", &agent, TEXT]));
    stage.until("the request is there", || stage.names("requests").iter().any(|name| name.starts_with("cli-")));
    let (code, said) = end(child, Signal::SIGINT);
    assert_eq!(stage.names("requests"), [] as [String; 0]);
    stage.signal(Signal::SIGCONT);
    let error: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((code, &error["error"]["code"]), (Some(130), &json!("interrupted")), "{said}");
    assert!(error["error"]["message"].to_string().contains("Interrupted. The request was withdrawn."), "{said}");
    stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": "the next one"}));
    assert_eq!(times_typed(&stage, &agent), 0, "{}", stage.story());
}

#[test]
fn a_send_under_nohup_outlives_its_terminal() {
    let stage = Stage::new();
    let agent = blocked(&stage);
    let mut child = spawn(&mut under_nohup(&stage.command(&["send", &agent, TEXT])));
    until_waiting(&mut child);
    kill(Pid::from_raw(i32::try_from(child.id()).expect("an id")), Signal::SIGHUP).expect("it runs");
    close_dialog(&stage, &agent);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    assert_eq!((String::from_utf8_lossy(&output.stdout).trim(), times_typed(&stage, &agent)), ("delivered", 1));
}
