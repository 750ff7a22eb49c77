//! No agent stays in a state that it can't leave: sessions outside tmux, agents behind a launcher, rows that lead
//! nowhere.

use super::support::stage::Stage;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A program whose arguments are those of an agent CLI, in no terminal.
fn session_outside() -> Child {
    let mut command = Command::new("sleep");
    command.arg0("/opt/bin/tasuki demo-agent").arg("600").stdin(Stdio::null());
    command.spawn().expect("sleep is everywhere")
}

fn event(stage: &Stage, name: &str, body: &Value) {
    stage.drop_file("events", name, body.to_string().as_bytes());
}

fn session_start(session: &str, ancestors: &[u32]) -> Value {
    json!({"v": 1, "event": "session_start", "session_id": session, "profile": "demo", "ancestors": ancestors})
}

fn state(stage: &Stage, agent: &str) -> Value {
    stage.agent_view(agent)["state"].clone()
}

fn of_session(stage: &Stage, session: &str) -> String {
    stage.wait_for("the session is seen", || {
        let views = stage.views("agents");
        let view = views.iter().find(|view| view["session_id"] == session)?;
        Some(view["agent_id"].as_str().expect("an id").to_owned())
    })
}

fn end(mut child: Child) {
    child.kill().expect("it runs");
    child.wait().expect("it has ended");
}

#[test]
fn a_session_outside_tmux_ends_when_its_process_is_killed() {
    let stage = Stage::new();
    let (seen, unseen) = (session_outside(), session_outside());
    // Between the hook and its CLI stands a shell that has ended by now.
    let mut shell = Command::new("true").spawn().expect("true is everywhere");
    shell.wait().expect("it has ended");
    event(&stage, "1.json", &session_start("seen", &[shell.id(), seen.id(), std::process::id()]));
    event(&stage, "2.json", &session_start("unseen", &[unseen.id()]));
    let (first, second) = (of_session(&stage, "seen"), of_session(&stage, "unseen"));
    assert_eq!((state(&stage, &first), state(&stage, &second)), (json!("idle"), json!("idle")));
    let pids = (stage.agent_view(&first)["pid"].clone(), stage.agent_view(&second)["pid"].clone());
    assert_eq!(pids, (json!(seen.id()), json!(unseen.id())));
    end(seen);
    stage.until("its end is seen", || state(&stage, &first) == "ended");
    stage.end_sidecar(Signal::SIGKILL);
    end(unseen);
    stage.start_sidecar();
    stage.until("an end is seen that came while nobody looked", || state(&stage, &second) == "ended");
}

/// A demo agent in a window of the user's own, started as npx starts one: the group's leader is not the CLI.
fn behind_launchers(stage: &Stage) -> String {
    let home = format!("TASUKI_HOME={}", stage.home().display());
    let line = format!("sh -c '{} demo-agent; true'; true", env!("CARGO_BIN_EXE_tasuki"));
    let args = ["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "user:", "-e", &home, "sh", "-c", &line];
    stage.tmux(&args).trim().to_owned()
}

#[test]
fn an_agent_behind_a_launcher_is_heard_although_its_start_was_not() {
    let stage = Stage::new();
    stage.persona("dev");
    stage.end_sidecar(Signal::SIGTERM);
    let pane = behind_launchers(&stage);
    stage.until("it has begun", || !stage.names("events").is_empty());
    for name in stage.names("events") {
        std::fs::remove_file(stage.spool("events").join(name)).expect("it is lost");
    }
    stage.start_sidecar();
    let answer =
        stage.granted(&json!({"kind": "agent_register", "pane": pane, "persona_slug": "dev", "profile": "demo"}));
    assert_eq!(answer["hooks"], "unseen", "{answer}");
    let agent = answer["agent_id"].as_str().expect("an id").to_owned();
    stage.tmux(&["send-keys", "-t", &pane, "hello", "Enter"]);
    stage.until("its hooks are seen", || stage.agent_view(&agent)["hooks"] == "seen");
}

#[test]
fn what_leads_nowhere_is_forgotten_and_what_runs_is_not() {
    let stage = Stage::new();
    let outside = session_outside();
    let kai = stage.agent("kai");
    event(&stage, "1.json", &session_start("runs", &[outside.id()]));
    event(&stage, "2.json", &session_start("nowhere", &[]));
    let (runs, nowhere) = (of_session(&stage, "runs"), of_session(&stage, "nowhere"));
    let forget = |agent: &str| stage.ask(&json!({"kind": "agent_forget", "agent_id": agent}));
    for agent in [&kai, &runs] {
        let answer = forget(agent);
        assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(409), &json!("process_lives")), "{answer}");
        assert_eq!(state(&stage, agent), "idle");
    }
    let panes = stage.tmux(&["list-panes", "-a"]);
    let mut command = stage.command(&["agent", "forget", &nowhere]);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    stage.until("it is lost", || state(&stage, &nowhere) == "lost");
    assert_eq!(forget(&nowhere)["error"]["code"], "not_active", "it is no more than history");
    assert_eq!(stage.tmux(&["list-panes", "-a"]), panes, "nothing is done in tmux");
    // Its process ends while the sidecar stands still, so that nobody else has seen it yet.
    stage.signal(Signal::SIGSTOP);
    end(outside);
    let asked = stage.send(&json!({"kind": "agent_forget", "agent_id": runs}));
    stage.signal(Signal::SIGCONT);
    assert_eq!(stage.result(&asked)["result"]["status"], "forgotten");
    stage.until("it has ended", || state(&stage, &runs) == "ended");
}
