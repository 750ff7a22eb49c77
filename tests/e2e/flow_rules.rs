//! Rules of the flow that no other test holds: what lies in the spool before a death, agents in shells, CLIs that tell
//! little, prompts that arrive otherwise than they were typed, a successor that must ask.

use super::flow::by_hand;
use super::support::stage::Stage;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;

const CLAIMED: &str = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9a0aa";

pub(crate) fn pane_of(stage: &Stage, agent: &str) -> String {
    stage.agent_view(agent)["pane"].as_str().expect("a pane").to_owned()
}

/// A fault that only this agent has, and not its successor.
fn fault_of(agent: &str, fault: &str) -> String {
    format!("{}: {fault}", &agent[..8])
}

/// A stage whose demo profile is changed.
pub(crate) fn with_profile(config: &str, from: &str, to: &str) -> Stage {
    let stage = Stage::without_sidecar(config);
    let profiles = stage.home().join("data/profiles");
    fs::create_dir_all(&profiles).expect("a folder");
    let built_in = include_str!("../../data/profiles/demo.toml");
    assert!(built_in.contains(from), "{from}");
    fs::write(profiles.join("demo.toml"), built_in.replacen(from, to, 1)).expect("a profile");
    stage.start_sidecar();
    stage
}

pub(crate) fn type_line(stage: &Stage, pane: &str, line: &str) {
    stage.tmux(&["send-keys", "-t", pane, "-l", line]);
    stage.until("it is seen", || stage.screen(pane).contains(line));
    stage.tmux(&["send-keys", "-t", pane, "Enter"]);
}

fn front(stage: &Stage, pane: &str) -> String {
    stage.tmux(&["display-message", "-p", "-t", pane, "#{pane_current_command}"]).trim().to_owned()
}

#[test]
fn a_stop_that_lies_in_the_spool_counts_before_the_death_of_its_agent() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults(&fault_of(&agent, "die_at=stopped"));
    let done = stage.until_step(&stage.hand_off(&agent), "done");
    stage.check_done(&done);
    assert!(stage.errors().is_empty(), "its end was no failure: the document was recorded before it");
}

#[test]
fn an_agent_whose_hooks_were_never_seen_is_typed_nothing() {
    let stage = Stage::new();
    stage.persona("dev");
    stage.faults("hooks_off");
    let pane = by_hand(&stage, CLAIMED);
    stage.until("it runs", || stage.screen(&pane).contains('╭'));
    let registered = stage.granted(&json!({"kind": "agent_register", "pane": pane, "persona_slug": "dev"}));
    assert_eq!(registered["hooks"], "unseen", "{registered}");
    let view = stage.until_failed(&stage.hand_off(CLAIMED), "instructing", "not_delivered");
    assert_eq!(view["verdicts"]["instruction"]["reason"], "hooks_unseen", "{view:#}");
    assert!(view["error"]["hint"].as_str().is_some_and(|hint| hint.contains("hooks")), "{view:#}");
    stage.check_halted(&view);
    assert_eq!(stage.typed(CLAIMED), (0, 0, 0));
}

#[test]
fn what_is_meant_for_an_agent_never_reaches_the_shell_that_it_was_started_from() {
    let stage = Stage::new();
    stage.persona("dev");
    let home = format!("TASUKI_HOME={}", stage.home().display());
    let id = format!("TASUKI_AGENT_ID={CLAIMED}");
    let args = ["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "user:", "-e", &home, "-e", &id, "sh"];
    let pane = stage.tmux(&args).trim().to_owned();
    stage.until("the shell waits", || !stage.screen(&pane).trim().is_empty());
    type_line(&stage, &pane, concat!("'", env!("CARGO_BIN_EXE_tasuki"), "' demo-agent"));
    stage.until("it is seen", || stage.agent_view(CLAIMED)["state"] == "idle");
    stage.granted(&json!({"kind": "agent_register", "pane": pane, "persona_slug": "dev"}));
    let pid = i32::try_from(stage.agent_view(CLAIMED)["pid"].as_i64().expect("a pid")).expect("it fits");
    let shell = stage.tmux(&["display-message", "-p", "-t", &pane, "#{pane_pid}"]);
    assert_ne!(pid.to_string(), shell.trim(), "the agent is the program in the shell, not the shell");
    // C-z, as it were: the shell comes to the front, and the agent has not ended.
    kill(Pid::from_raw(pid), Signal::SIGSTOP).expect("it is there");
    stage.until("the shell is in front", || front(&stage, &pane) == "sh");
    let view = stage.until_failed(&stage.hand_off(CLAIMED), "instructing", "not_delivered");
    assert_eq!(view["verdicts"]["instruction"]["reason"], "bare_shell", "{view:#}");
    assert_eq!(stage.agent_view(CLAIMED)["ended_at"], Value::Null);
    // It dies, and its pane lives on with the shell in it.
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it is there");
    stage.until("its end is seen", || stage.agent_view(CLAIMED)["state"] == "ended");
    let provided = json!({"author": "provided", "document": {"text": "# Work\n"}});
    let id = stage.hand_off_with(CLAIMED, &provided);
    let done = stage.until_step(&id, "done");
    assert_eq!(stage.typed(done["successor_id"].as_str().expect("an id")), (0, 1, 1));
    assert_ne!(pane_of(&stage, done["successor_id"].as_str().expect("an id")), pane);
    let screen = stage.screen(&pane);
    assert!(!screen.contains("tasuki delivery") && !screen.contains("/exit"), "{screen}");
}

#[test]
fn an_agent_that_leaves_its_shell_behind_has_not_made_room() {
    let stage = Stage::with_config("[limits]\nending = \"3s\"\n");
    stage.faults("dev: in_shell");
    let agent = stage.agent("dev");
    stage.faults("");
    let view = stage.until_failed(&stage.hand_off(&agent), "ending", "did_not_exit");
    stage.check_failure(&view);
    assert!(view["successor_id"].is_null(), "nothing is started beside it");
    let pane = pane_of(&stage, &agent);
    assert_eq!(front(&stage, &pane), "sh");
    assert!(!stage.screen(&pane).contains("not found"), "the shell was given nothing: {}", stage.screen(&pane));
    type_line(&stage, &pane, "exit");
    stage.until("its end is seen", || stage.agent_view(&agent)["ended_at"].is_string());
    let id = view["handoff_id"].as_str().expect("an id");
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id}));
    stage.check_done(&stage.until_step(id, "done"));
}

#[test]
fn without_turn_ids_a_running_turn_is_waited_for_even_when_asked_not_to() {
    let stage = with_profile("", "turn_id = \"/prompt_id\"\n", "");
    let agent = stage.agent("dev");
    stage.faults("slow_turn=2000");
    let pane = pane_of(&stage, &agent);
    type_line(&stage, &pane, "a long piece of work");
    stage.until("it works", || stage.agent_view(&agent)["state"] == "busy");
    let id = stage.hand_off_with(&agent, &json!({"now": true}));
    assert_eq!(stage.steps_of(&id), ["waiting"], "whose Stop comes next could not be told");
    stage.faults("");
    let done = stage.until_step(&id, "done");
    stage.check_done(&done);
    let document = fs::read_to_string(done["file_path"].as_str().expect("a path")).expect("the document");
    assert!(document.contains("a long piece of work"), "{document}");
}

#[test]
fn a_cli_that_tells_of_its_session_only_with_the_first_prompt_is_handed_off() {
    let stage = with_profile("", "starts_at_launch = true", "starts_at_launch = false");
    stage.faults("lazy_start");
    let agent = stage.agent("dev");
    let done = stage.until_step(&stage.hand_off(&agent), "done");
    stage.check_done(&done);
    let successor = stage.agent_view(done["successor_id"].as_str().expect("an id"));
    assert!(successor["registered_at"].is_string() && successor["session_id"].is_string(), "{successor:#}");
}

#[test]
fn a_prompt_that_arrived_with_more_or_with_less_is_said_to_have() {
    let stage = Stage::new();
    let agents = stage.agents(&["merged", "short"]);
    stage.faults(&format!("{}\n{}", fault_of(&agents[0], "merge=and also"), fault_of(&agents[1], "cut")));
    let handoffs: Vec<String> = agents.iter().map(|agent| stage.hand_off(agent)).collect();
    let done = stage.until_step(&handoffs[0], "done");
    stage.check_done(&done);
    assert_eq!(done["warnings"], json!(["instruction: merged_draft"]));
    let failed = stage.until_failed(&handoffs[1], "instructing", "unconfirmed");
    stage.check_halted(&failed);
    assert_eq!(failed["verdicts"]["instruction"]["reason"], "partial", "{failed:#}");
    assert_eq!(stage.typed(&agents[1]), (1, 1, 0), "it is not typed again");
}

/// Hands an agent off to a successor that shows a dialog when it reads the document. Returns handoff and successor.
fn hand_off_to_one_that_asks(stage: &Stage) -> (String, String) {
    let agent = stage.agent("dev");
    let id = stage.hand_off(&agent);
    stage.until_recorded(&id);
    stage.faults("dialog_on_read");
    let read = stage.until_step(&id, "reading");
    let successor = read["successor_id"].as_str().expect("an id").to_owned();
    (id, successor)
}

#[test]
fn a_successor_that_must_ask_whether_it_may_read_is_shown_in_the_handoff() {
    let stage = Stage::new();
    let (id, successor) = hand_off_to_one_that_asks(&stage);
    stage.until("it is blocked", || stage.agent_view(&successor)["state"] == "blocked");
    let is_shown = || stage.handoff_view(&id)["successor_blocked_at"].is_string();
    stage.until("the handoff says so", is_shown);
    stage.crash_and_restart();
    assert!(is_shown(), "a restart forgets it not");
    stage.faults("");
    stage.tmux(&["send-keys", "-t", &pane_of(&stage, &successor), "Enter"]);
    stage.until("it goes on", || stage.agent_view(&successor)["state"] == "idle");
    stage.until("the handoff says so", || stage.handoff_view(&id)["successor_blocked_at"].is_null());
    stage.check_done(&stage.until_step(&id, "done"));
}

/// Nobody has answered the dialog, and the handoff is over without it.
#[test]
fn a_successor_that_dies_at_a_dialog_is_not_said_to_wait_for_an_answer() {
    let stage = Stage::with_config("[limits]\nreading = \"4s\"\n");
    let (id, successor) = hand_off_to_one_that_asks(&stage);
    stage.until("the handoff says so", || stage.handoff_view(&id)["successor_blocked_at"].is_string());
    let done = stage.until_step(&id, "done");
    assert!(done["read"] == "unseen" && done["successor_blocked_at"].is_string(), "{done:#}");
    stage.tmux(&["kill-pane", "-t", &pane_of(&stage, &successor)]);
    stage.until("it is seen to be gone", || !stage.agent_view(&successor)["ended_at"].is_null());
    stage.until("the handoff says so", || stage.handoff_view(&id)["successor_blocked_at"].is_null());
}

/// A pane of the user's own with a shell in it, in which a person starts agents.
fn shell(stage: &Stage) -> String {
    let home = format!("TASUKI_HOME={}", stage.home().display());
    let args = ["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "user:", "-e", &home, "sh"];
    let pane = stage.tmux(&args).trim().to_owned();
    stage.until("the shell waits", || !stage.screen(&pane).trim().is_empty());
    pane
}

/// Starts the demo agent in a shell.
fn start_by_hand(stage: &Stage, pane: &str) {
    type_line(stage, pane, concat!("'", env!("CARGO_BIN_EXE_tasuki"), "' demo-agent"));
    stage.until("it waits for a prompt", || stage.screen(pane).contains('╭'));
}

/// Quits it again, as a person does.
fn quit(stage: &Stage, pane: &str) {
    type_line(stage, pane, "/exit");
    stage.until("the shell is back", || front(stage, pane) == "sh");
}

#[test]
fn an_agent_that_was_started_again_while_nobody_looked_is_seen_and_the_shell_of_another_is_not() {
    let stage = Stage::new();
    stage.persona("dev");
    let (known, unknown, left) = (shell(&stage), shell(&stage), shell(&stage));
    start_by_hand(&stage, &known);
    let agents =
        || -> Vec<Value> { stage.views("agents").into_iter().filter(|view| view["ended_at"].is_null()).collect() };
    stage.until("it is seen", || agents().len() == 1);
    let first = agents().remove(0);
    stage.end_sidecar(Signal::SIGTERM);
    quit(&stage, &known);
    start_by_hand(&stage, &unknown);
    quit(&stage, &unknown);
    start_by_hand(&stage, &left);
    quit(&stage, &left);
    for pane in [&known, &unknown] {
        start_by_hand(&stage, pane);
    }
    stage.start_sidecar();
    let panes = || -> Vec<String> {
        let mut panes: Vec<String> =
            agents().iter().map(|view| view["pane"].as_str().unwrap_or("none").to_owned()).collect();
        panes.sort();
        panes
    };
    let mut wanted = vec![known, unknown];
    wanted.sort();
    stage.until("both are seen", || {
        panes() == wanted && agents().iter().all(|view| view["agent_id"] != first["agent_id"])
    });
    for view in agents() {
        let pid = i32::try_from(view["pid"].as_i64().expect("a pid")).expect("it fits");
        let pane = view["pane"].as_str().expect("a pane");
        let shell = stage.tmux(&["display-message", "-p", "-t", pane, "#{pane_pid}"]);
        assert_ne!(pid.to_string(), shell.trim(), "the agent is not the shell: {view}");
        type_line(&stage, pane, "hello");
        let id = view["agent_id"].as_str().expect("an id").to_owned();
        stage.until("its own hooks are heard", || stage.agent_view(&id)["state_since"] != view["state_since"]);
    }
}

#[test]
fn whoever_asks_for_a_handoff_after_one_has_failed_is_told_what_to_do_about_that() {
    let stage = Stage::with_config("[limits]\nending = \"3s\"\n");
    stage.faults("dev: in_shell");
    let agent = stage.agent("dev");
    stage.faults("");
    let view = stage.until_failed(&stage.hand_off(&agent), "ending", "did_not_exit");
    let answer = stage.ask(&json!({"kind": "handoff", "agent_id": agent, "reason": "again"}));
    assert_eq!(answer["error"]["code"], "handoff_in_progress", "{answer}");
    let short = &view["handoff_id"].as_str().expect("an id")[..8];
    let hint = answer["error"]["hint"].as_str().expect("a hint");
    assert!(hint.contains("has failed") && hint.contains(&format!("tasuki retry {short}")), "{answer}");
}

#[test]
fn an_agent_that_starts_together_with_its_tmux_server_is_found_in_its_pane() {
    let stage = Stage::new();
    stage.persona("dev");
    for is_noticed in [false, true] {
        stage.until("a server is known", || stage.sidecar_view()["tmux"].is_object());
        stage.tmux(&["kill-server"]);
        if is_noticed {
            stage.until("it is known that no server answers", || stage.sidecar_view()["tmux"].is_null());
        }
        let home = format!("TASUKI_HOME={}", stage.home().display());
        let agent = concat!("exec '", env!("CARGO_BIN_EXE_tasuki"), "' demo-agent");
        let session = ["new-session", "-d", "-s", "user", "-x", "120", "-y", "40", "-e", &home, agent];
        // The server that ends may still take the first line.
        stage.until("a new server runs", || {
            stage.tmux(&session);
            !stage.tmux(&["list-panes", "-a"]).is_empty()
        });
        let living = || stage.views("agents").into_iter().filter(|view| view["ended_at"].is_null());
        stage.until("it is in its pane", || living().any(|view| view["pane"] == "%0" && view["state"] == "idle"));
        stage.until("it is alone", || living().count() == 1);
    }
}
