//! Agents that can't be started, or that wait for their user: the operator learns what the matter is, and nothing is
//! typed.

use super::support::stage::Stage;
use serde_json::{Value, json};
use std::fs;

/// A home with a profile of its own: the demo agent's, with another launch line.
fn stage(launch: &str) -> Stage {
    let stage = Stage::without_sidecar("");
    let text = include_str!("../../data/profiles/demo.toml");
    let mine = text.replacen("argv = [\"{program}\", \"demo-agent\"]", launch, 1);
    assert_ne!(mine, text, "the launch line is another one");
    let profiles = stage.home().join("data/profiles");
    fs::create_dir_all(&profiles).expect("a folder");
    fs::write(profiles.join("mine.toml"), mine).expect("a profile");
    stage.start_sidecar();
    stage.persona("dev");
    stage
}

fn create(stage: &Stage) -> Value {
    stage.ask(&json!({"kind": "agent_create", "persona_slug": "dev", "profile": "mine"}))
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_default()
}

#[test]
fn a_program_that_is_not_installed_is_named() {
    let stage = stage("argv = [\"no-such-program-of-anybody\", \"--flag\"]");
    let answer = create(&stage);
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(502), &json!("start_failed")), "{answer}");
    assert!(message(&answer).contains("no-such-program-of-anybody is not installed"), "{answer}");
    assert_eq!(stage.errors().len(), 1);
}

#[test]
fn a_path_to_no_program_is_named() {
    let stage = stage("argv = [\"/no/such/program\"]");
    let answer = create(&stage);
    assert!(message(&answer).contains("there is no program /no/such/program"), "{answer}");
}

#[test]
fn what_an_agent_said_before_it_ended_is_told() {
    let stage = stage("argv = [\"sh\", \"-c\", \"echo the licence has expired; sleep 1\"]");
    let answer = create(&stage);
    assert_eq!(answer["error"]["code"], "start_failed", "{answer}");
    assert!(message(&answer).contains("the licence has expired"), "{answer}");
}

#[test]
fn a_dialog_at_the_start_is_told_with_what_it_shows() {
    let stage = stage("argv = [\"{program}\", \"demo-agent\"]\nenv = { MINE = \"1\" }");
    stage.faults("dialog");
    create(&stage);
    stage.until("the operator is told", || !stage.errors().is_empty());
    let error = stage.errors().remove(0);
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("A dialog is open") && message.contains("1. Yes"), "{error}");
    let agent = error["agent_id"].as_str().expect("an id");
    let pane = stage.agent_view(agent)["pane"].as_str().expect("a pane").to_owned();
    assert!(message.contains(&pane), "it says where: {error}");
    stage.faults("");
    stage.tmux(&["send-keys", "-t", &pane, "Enter"]);
    stage.until("it goes on by itself, and learns its skill", || stage.agent_view(agent)["primed"] == true);
    stage.until_idle(agent);
    assert_eq!((stage.typed(agent), stage.errors().len()), ((0, 1, 0), 1), "it is told once");
}

/// As Claude Code does when its user does not trust the folder: the answer "No" ends it.
#[test]
fn a_dialog_at_the_start_that_is_answered_with_no_leaves_one_failure_which_says_so() {
    let shows = "echo ' ❯ 1. Yes'; echo '   2. No'; echo ' Enter to choose'; read answer";
    let stage = stage(&format!("argv = [\"sh\", \"-c\", \"{shows}\"]"));
    create(&stage);
    stage.until("the operator is told", || !stage.errors().is_empty());
    let first = stage.errors().remove(0);
    assert!(first["message"].as_str().is_some_and(|message| message.contains("A dialog is open")), "{first}");
    let agent = first["agent_id"].as_str().expect("an id");
    let pane = stage.agent_view(agent)["pane"].as_str().expect("a pane").to_owned();
    stage.tmux(&["send-keys", "-t", &pane, "2", "Enter"]);
    stage.until("it has ended", || stage.agent_view(agent)["state"] == "ended");
    stage.until("the first failure is withdrawn", || !stage.errors().contains(&first));
    let [error] = &stage.errors()[..] else { panic!("one failure: {:?}", stage.errors()) };
    let message = error["message"].as_str().expect("a message");
    let is_right = message.starts_with("The agent ended at a dialog in its pane") && message.contains("2. No");
    assert!(is_right && error["code"] == "start_failed", "{error}");
}

#[test]
fn files_of_a_launch_line_are_there_before_the_start() {
    let launch = "argv = [\"sh\", \"-c\", \"cat $0; exec \\\"$1\\\" demo-agent\", \"{file:note.txt}\", \"{program}\"]\n\
        [launch.files]\n\"note.txt\" = \"from {home}\"";
    let stage = stage(launch);
    let answer = create(&stage);
    assert_eq!(answer["ok"], true, "{answer}");
    let path = stage.home().join("state/launch/mine/note.txt");
    assert_eq!(fs::read_to_string(path).expect("the file"), format!("from {}", stage.home().display()));
}

/// As npx and some version managers do it: other processes stand between the pane's and the CLI.
#[test]
fn an_agent_behind_wrappers_is_handed_off() {
    let launch = "argv = [\"python3\", \"{file:run.py}\", \"python3\", \"{file:run.py}\", \"{program}\", \"demo-agent\"]\n\
        [launch.files]\n\"run.py\" = 'import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))'";
    let stage = stage(launch);
    let answer = create(&stage);
    assert_eq!(answer["ok"], true, "{answer}");
    let agent = answer["result"]["agent_id"].as_str().expect("an id").to_owned();
    stage.until_idle(&agent);
    let view = stage.until_ended(&stage.hand_off_with(&agent, &json!({"successor": "same_pane"})));
    assert_eq!(view["step"], "done", "{view}");
    let successor = view["successor_id"].as_str().expect("a successor");
    stage.until_idle(successor);
    let view = stage.until_ended(&stage.hand_off(successor));
    assert_eq!(view["step"], "done", "{view}");
}
