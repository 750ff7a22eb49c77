//! `kill -9` at any instant: of the sidecar, of the tmux server; and ordered ends in the middle. Nothing is typed
//! twice, nobody has two successors, and each handoff ends as the contract says.

use super::support::random::Random;
use super::support::stage::Stage;
use super::support::tally::{self, is_long};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Rounds in the normal gate, and in the long suite.
const ROUNDS: (u32, u32) = (12, 300);
/// Handoffs that one stage carries before it is built anew: old agents' rows should not slow the last rounds down.
const ROUNDS_OF_A_STAGE: u32 = 30;
/// A handoff that is left alone takes about this long, in milliseconds.
const HANDOFF_MS: u64 = 3_500;
/// The largest number of kills in one handoff.
const MOST_KILLS: u64 = 4;
/// Limits that end a handoff in doubt soon enough.
const LIMITS: &str = "[limits]\ninstructing = \"8s\"\nwriting = \"20s\"\nending = \"10s\"\nstarting = \"20s\"\npriming = \"12s\"\nbriefing = \"8s\"\n";

/// Kills and restarts the sidecar at random instants until the handoff has ended; gives its view and the kills.
fn torment(stage: &Stage, id: &str, random: &mut Random) -> (Value, u64) {
    let kills = 1 + random.below(MOST_KILLS);
    for _ in 0..kills {
        let pause = Duration::from_millis(random.below(HANDOFF_MS / kills));
        let until = Instant::now() + pause;
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        stage.end_sidecar(Signal::SIGKILL);
        stage.start_sidecar();
    }
    (stage.until_ended(id), kills)
}

#[test]
fn kill_9_of_the_sidecar_at_random_instants() {
    let rounds = if is_long() { ROUNDS.1 } else { ROUNDS.0 };
    let mut random = Random::from_env();
    let (mut ends, mut all_kills): (BTreeMap<String, u32>, u64) = (BTreeMap::new(), 0);
    let mut stage = Stage::with_config(LIMITS);
    let mut agent = stage.agent("dev");
    for round in 0..rounds {
        if round > 0 && round % ROUNDS_OF_A_STAGE == 0 {
            stage = Stage::with_config(LIMITS);
            agent = stage.agent("dev");
        }
        // The request itself is dropped first, so that its intake is among what is interrupted.
        let request = stage.send(&json!({"kind": "handoff", "agent_id": agent, "reason": "context_limit"}));
        if random.below(10) < 3 {
            std::thread::sleep(Duration::from_millis(random.below(30)));
            stage.crash_and_restart();
            all_kills += 1;
        }
        let answer = stage.result(&request);
        let id = answer["result"]["handoff_id"].as_str().unwrap_or_else(|| panic!("{answer}\n{}", stage.story()));
        let (view, kills) = torment(&stage, id, &mut random);
        all_kills += kills;
        stage.check_crashed(&view);
        let end = match view["step"].as_str() {
            Some("failed") => format!("{}: {}", view["error"]["step"], view["error"]["code"]),
            _ => "done".to_owned(),
        };
        println!("round {round}: {kills} kills, {end}");
        *ends.entry(end).or_default() += 1;
        agent = next_agent(&stage, &view);
    }
    println!("seed {}, {rounds} rounds, {all_kills} kills: {ends:?}", random.seed);
    tally::add(tally::DEATHS, all_kills);
    tally::add(tally::REQUESTS, u64::from(rounds));
    tally::none_lost_none_twice("handoffs and texts", &[], &[]);
    assert!(ends.get("done").copied().unwrap_or(0) * 2 >= rounds, "most handoffs are carried through: {ends:?}");
}

/// The agent that the next round hands off: the successor, or a new one where a person would have to decide.
fn next_agent(stage: &Stage, view: &Value) -> String {
    if view["step"] == "done" {
        let successor = view["successor_id"].as_str().expect("an id").to_owned();
        stage.until_idle(&successor);
        return successor;
    }
    let id = &view["handoff_id"];
    stage.granted(&json!({"kind": "handoff_abandon", "handoff_id": id}));
    stage.agent("dev")
}

#[test]
fn an_ordered_end_in_the_middle_loses_nothing() {
    let stage = Stage::with_config(LIMITS);
    let mut agent = stage.agent("dev");
    for step in ["instructing", "writing", "starting", "priming"] {
        let id = stage.hand_off(&agent);
        stage.until("the step is reached", || stage.steps_of(&id).iter().any(|entered| entered == step));
        let status = stage.end_sidecar(Signal::SIGTERM);
        assert!(status.success(), "{status}");
        assert!(!stage.home().join("view/sidecar.json").exists(), "an ordered end takes the heartbeat away");
        stage.start_sidecar();
        let view = stage.until_ended(&id);
        stage.check_crashed(&view);
        if step == "writing" || step == "starting" {
            assert_eq!(view["step"], "done", "{view:#}\n{}", stage.story());
        }
        agent = next_agent(&stage, &view);
    }
}

#[test]
fn what_happens_while_no_sidecar_runs_is_taken_up() {
    let stage = Stage::with_config(LIMITS);
    let agent = stage.agent("dev");
    let id = stage.hand_off(&agent);
    stage.until_step(&id, "writing");
    stage.end_sidecar(Signal::SIGKILL);
    stage.until("the agent ends its turn", || !stage.names("events").is_empty());
    let request = stage.send(&json!({"kind": "handoff_cancel", "handoff_id": "nothing"}));
    stage.start_sidecar();
    assert_eq!(stage.result(&request)["error"]["code"], "no_handoff");
    stage.check_done(&stage.until_step(&id, "done"));
}

#[test]
fn a_sidecar_that_stood_still_takes_events_before_deadlines() {
    let stage = Stage::with_config("[limits]\nwriting = \"6s\"\n");
    let agent = stage.agent("dev");
    stage.faults("slow_turn=1500");
    let id = stage.hand_off(&agent);
    stage.until_step(&id, "writing");
    stage.faults("");
    stage.signal(Signal::SIGSTOP);
    stage.until("the agent ends its turn", || !stage.names("events").is_empty());
    // The limit passes while nobody looks.
    std::thread::sleep(Duration::from_millis(6_500));
    stage.signal(Signal::SIGCONT);
    stage.check_done(&stage.until_step(&id, "done"));
}

#[test]
fn kill_9_of_the_tmux_server_in_the_middle() {
    for step in ["instructing", "writing", "starting", "priming"] {
        let stage = Stage::with_config(LIMITS);
        let agent = stage.agent("dev");
        if step == "writing" {
            stage.faults("slow_turn=1500");
        }
        let id = stage.hand_off(&agent);
        stage.until("the step is reached", || stage.steps_of(&id).iter().any(|entered| entered == step));
        let pid = stage.tmux(&["display-message", "-p", "#{pid}"]);
        let pid: i32 = pid.trim().parse().expect("the server's pid");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL).expect("it is there");
        let view = stage.until_ended(&id);
        stage.check_crashed(&view);
        assert_eq!(view["step"], "failed", "{view:#}");
        stage.start_tmux();
        if view["recorded_at"].is_string() {
            let done = retry_until_done(&stage, &id);
            assert_eq!(done["sha256"], view["sha256"]);
            assert_eq!(stage.processes(done["successor_id"].as_str().expect("an id")).len(), 1);
            stage.check_once();
        }
    }
}

/// Retries as a person would, who may be quicker than the sidecar in seeing that the agents are gone, and that there is
/// a server again. Each such retry fails for that reason, and no other.
fn retry_until_done(stage: &Stage, id: &str) -> Value {
    let retry = json!({"kind": "handoff_retry", "handoff_id": id});
    stage.wait_for("it goes on in a new server", || {
        let answer = stage.ask(&retry);
        if answer["ok"] != true {
            let code = answer["error"]["code"].as_str().unwrap_or_default();
            assert!(["no_tmux", "start_in_doubt"].contains(&code), "{answer}\n{}", stage.story());
            std::thread::sleep(Duration::from_millis(200));
            return None;
        }
        let view = stage.until_ended(id);
        let code = view["error"]["code"].as_str().unwrap_or_default().to_owned();
        let too_quick = ["no_tmux", "not_delivered", "pane_gone", "successor_failed", "agent_ended"];
        assert!(view["step"] == "done" || too_quick.contains(&code.as_str()), "{view:#}\n{}", stage.story());
        (view["step"] == "done").then_some(view)
    })
}

#[test]
fn a_second_sidecar_on_the_same_home_says_who_has_it() {
    let stage = Stage::new();
    let socket = stage.socket().display().to_string();
    let second = stage.command(&["run", "--tmux", &socket]).output().expect("it runs");
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(75), "{said}");
    assert!(said.contains(&stage.sidecar_pid().to_string()), "{said}");
    let agent = stage.agent("dev");
    assert!(stage.is_running(&agent), "the first one goes on");
}

/// The sidecar was started again with another tmux server than its agents', for example without `--tmux`. It can do
/// nothing for them there, and must do nothing to them either.
#[test]
fn agents_of_another_tmux_server_than_the_sidecars_are_left_as_they_are() {
    let stage = Stage::new();
    let agents = stage.agents(&["dev", "ops"]);
    stage.faults("slow_turn=2500");
    let id = stage.hand_off(&agents[0]);
    stage.until_step(&id, "writing");
    stage.end_sidecar(Signal::SIGTERM);
    let other = stage.home().join("other");
    let tmux = |args: &[&str]| {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&other).args(["-f", "/dev/null"]).args(args);
        Stage::make_own(&mut command);
        assert!(command.stdin(Stdio::null()).status().expect("tmux runs").success());
    };
    tmux(&["new-session", "-d", "exec sleep 300"]);
    let start_elsewhere = || {
        let log = fs::File::create(stage.home().join("elsewhere.log")).expect("a log");
        let mut command = stage.command(&["run", "--tmux"]);
        stage.adopt(command.arg(&other).stdout(Stdio::null()).stderr(log).spawn().expect("it starts"));
        stage.until_beating();
    };
    start_elsewhere();
    stage.until_degraded(&["can't reach 2 living agents", "another one", "--tmux"]);
    let failed = stage.until_failed(&id, "ending", "did_not_exit");
    let said = failed["error"]["message"].as_str().expect("a message");
    assert!(said.contains("not connected to the tmux server of the agent's pane"), "{said}");
    let (status, code, hint) = stage.refused(&json!({"kind": "handoff", "agent_id": agents[1], "reason": "r"}));
    assert_eq!((status, code.as_str()), (503, "no_tmux"), "{hint}");
    let retry = json!({"kind": "handoff_retry", "handoff_id": id});
    assert_eq!(stage.refused(&retry).1, "no_tmux");
    // A death is told two seconds after it was seen.
    std::thread::sleep(Duration::from_millis(2_500));
    for agent in &agents {
        let view = stage.agent_view(agent);
        assert!(view["state"] == "idle" && view["ended_at"].is_null() && stage.is_running(agent), "{view:#}");
    }
    assert_eq!(stage.errors().len(), 1, "nobody is said to have died: {:?}", stage.errors());
    stage.end_sidecar(Signal::SIGTERM);
    stage.faults("");
    stage.start_sidecar();
    let socket = stage.socket().display().to_string();
    stage.until("the view names the server", || stage.sidecar_view()["tmux"]["socket"] == socket);
    stage.until_well();
    stage.granted(&retry);
    let done = stage.until_step(&id, "done");
    let next = stage.hand_off(&agents[1]);
    stage.check_done(&stage.until_step(&next, "done"));
    stage.check_once();
    // Now the server really ends while nobody looks, and so do its agents.
    stage.end_sidecar(Signal::SIGTERM);
    stage.tmux(&["kill-server"]);
    start_elsewhere();
    let successor = done["successor_id"].as_str().expect("an id");
    stage.until("it is seen to be gone", || !stage.agent_view(successor)["ended_at"].is_null());
    stage.until_well();
    tmux(&["kill-server"]);
}
