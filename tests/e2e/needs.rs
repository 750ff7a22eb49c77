//! What waits for a person, over a real sidecar and a real pane: everything that shows the list shows the same.

use super::support::schema::{faults, of};
use super::support::stage::Stage;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;

/// The exit code of `tasuki status --json`, and the list.
fn status(stage: &Stage) -> (Option<i32>, Vec<Value>) {
    let output = stage.command(&["status", "--json"]).output().expect("it runs");
    let list: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), list.as_array().cloned().unwrap_or_default())
}

fn line(stage: &Stage) -> String {
    stage.tmux(&["show-option", "-gqv", "@tasuki_status"]).trim().to_owned()
}

#[test]
fn a_dialog_and_a_failure_wait_until_somebody_has_dealt_with_them() {
    let stage = Stage::new();
    let agents = stage.agents(&["kai", "mia"]);
    assert_eq!(status(&stage), (Some(0), vec![]));
    stage.faults("kai: dialog_on_write\nmia: write_never\n");
    let [asks, fails] = [&agents[0], &agents[1]].map(|agent| stage.hand_off(agent));
    stage.until("it is blocked", || stage.agent_view(&agents[0])["state"] == "blocked");
    stage.until_failed(&fails, "writing", "document_missing");
    let (code, list) = status(&stage);
    assert_eq!((code, list.len()), (Some(10), 2), "{list:#?}");
    list.iter().for_each(|need| assert_eq!(faults(&of("need"), need), [] as [String; 0], "{need}"));
    let blocked = stage.agent_view(&agents[0]);
    let pane = blocked["pane"].as_str().expect("a pane").to_owned();
    assert_eq!((&list[0]["what"], &list[0]["agent_id"]), (&json!("dialog"), &json!(agents[0])));
    assert_eq!(list[0]["command"], format!("tmux switch-client -t {pane}"));
    assert!(list[0]["since"].is_string() && list[0]["since"] == blocked["state_since"], "{list:#?}");
    assert_eq!((&list[1]["what"], &list[1]["handoff_id"]), (&json!("failed"), &json!(fails)));
    stage.until("the line counts the same", || line(&stage).ends_with(" · needs you: 2"));
    stage.crash_and_restart();
    assert_eq!(status(&stage), (Some(10), list.clone()));
    stage.until("a new sidecar counts the same", || line(&stage).ends_with(" · needs you: 2"));

    stage.tmux(&["send-keys", "-t", &pane, "Enter"]);
    stage.until_step(&asks, "done");
    assert_eq!(status(&stage), (Some(10), vec![list[1].clone()]));
    // The command that is shown settles it.
    stage.faults("");
    let command = list[1]["command"].as_str().expect("a command").strip_prefix("tasuki ").expect("one of ours");
    let output = stage.command(&command.split(' ').collect::<Vec<_>>()).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    stage.until_step(&fails, "done");
    assert_eq!(status(&stage), (Some(0), vec![]), "its error file is still there: {:?}", stage.errors());
    stage.until("the line counts nothing", || !line(&stage).contains("needs you"));
}

/// The sidecar was started again without the name of the tmux server that its agents are in.
#[test]
fn agents_out_of_reach_are_no_quiet_night() {
    let stage = Stage::new();
    stage.agent("dev");
    stage.end_sidecar(Signal::SIGTERM);
    let output = stage.command(&["status"]).output().expect("it runs");
    let hint = format!("--tmux {}", stage.socket().display());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(69) && said.contains(&hint), "the hint names the server: {said}");
    let elsewhere = stage.home().join("no-server");
    let mut command = stage.command(&["run", "--tmux"]);
    let log = fs::File::create(stage.home().join("elsewhere.log")).expect("a log");
    command.arg(&elsewhere).stdout(Stdio::null()).stderr(log);
    stage.adopt(command.spawn().expect("it starts"));
    stage.until_beating();
    stage.until_degraded(&["can't reach 1 living agent", "--tmux"]);
    let (code, list) = status(&stage);
    assert_eq!((code, list.len(), &list[0]["what"]), (Some(10), 1, &json!("degraded")), "{list:#?}");
    stage.end_sidecar(Signal::SIGTERM);
    stage.start_sidecar();
    let socket = stage.socket().display().to_string();
    stage.until("the view names the server", || stage.sidecar_view()["tmux"]["socket"] == socket);
    stage.until_well();
    assert_eq!(status(&stage).0, Some(0));
}

/// A sidecar that can't use tmux does not look well, even if it has no agents yet, and its answers say why.
#[test]
fn a_sidecar_that_cannot_use_tmux_says_why_everywhere() {
    let stage = Stage::without_sidecar("");
    stage.persona("kai");
    let create = json!({"kind": "agent_create", "persona_slug": "kai"});
    let is_told = |why: &str| {
        stage.until_degraded(&[why]);
        let (code, list) = status(&stage);
        assert_eq!((code, list.len(), &list[0]["what"]), (Some(10), 1, &json!("degraded")), "{list:#?}");
        assert!(list[0]["said"].as_str().is_some_and(|said| said.contains(why)), "{list:#?}");
        let answer = stage.ask(&create);
        let error = &answer["error"];
        assert_eq!((&answer["status"], &error["code"]), (&json!(503), &json!("no_tmux")), "{answer}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(why)), "{answer}");
        assert!(error["hint"].as_str().is_some_and(|hint| !hint.contains("start tmux")), "{answer}");
    };
    // A service whose PATH has no tmux.
    let empty = stage.work_dir().join("bin");
    fs::create_dir(&empty).expect("a folder");
    stage.spawn_sidecar_by(&["/usr/bin/env", &format!("PATH={}", empty.display())], "debug");
    stage.until_beating();
    is_told("tmux can't be run");
    stage.end_sidecar(Signal::SIGTERM);
    stage.tmux(&["set-option", "-s", "command-alias[100]", "set-option=set-option -q"]);
    stage.start_sidecar();
    is_told("redefines set-option");
    stage.tmux(&["set-option", "-s", "-u", "command-alias[100]"]);
    stage.until_well();
    stage.granted(&create);
    stage.tmux(&["kill-server"]);
    stage.until("nothing is wrong with a server that just does not run", || {
        stage.refused(&create).2 == "No tmux server answers" && stage.sidecar_view()["problem"].is_null()
    });
}
