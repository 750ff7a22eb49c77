//! Short of threads, processes and memory, as `short_of` is of descriptors: nobody is declared dead, nothing is lost or
//! done twice, it is told what is short where it can be, and all goes on when there is more.

use super::support::stage::Stage;
use super::support::tally;
use nix::sys::signal::Signal;
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A group of processes of our own whose number is limited; it goes with this value.
struct Few {
    folder: PathBuf,
}

impl Few {
    /// None, and the test counted as skipped, where no such group may be made.
    fn of(pid: u32) -> Option<Few> {
        let roots = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"];
        let name = format!("tasuki-test-{pid}");
        for root in roots {
            let folder = PathBuf::from(root).join(&name);
            if fs::create_dir(&folder).is_err() {
                continue;
            }
            let few = Few { folder };
            if few.folder.join("pids.max").exists() && few.write("cgroup.procs", &pid.to_string()) {
                return Some(few);
            }
        }
        tally::skip("a limit on processes: no group of them may be made here");
        None
    }

    fn write(&self, name: &str, text: &str) -> bool {
        fs::write(self.folder.join(name), text).is_ok()
    }

    fn limit(&self, most: &str) {
        assert!(self.write("pids.max", most), "the limit is set");
    }
}

impl Drop for Few {
    fn drop(&mut self) {
        // Those in it go back to where they came from, for only an empty group can be removed.
        let above = self.folder.parent().expect("a group lies in another").join("cgroup.procs");
        for pid in fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default().lines() {
            let _ = fs::write(&above, pid);
        }
        let _ = fs::remove_dir(&self.folder);
    }
}

/// No agent of the stage is said to have ended or to be lost.
fn check_all_live(stage: &Stage, agents: &[String]) {
    for agent in agents {
        let view = stage.agent_view(agent);
        let state = view["state"].as_str().unwrap_or_default();
        assert!(!matches!(state, "ended" | "lost"), "{state}: {view:#}\n{}", stage.story());
        assert!(stage.is_running(agent), "{agent} is to run");
    }
}

/// A few more heartbeats, so that whatever is done now and then was done.
fn beats(stage: &Stage, count: usize) {
    for _ in 0..count {
        let before = stage.sidecar_view()["heartbeat"].clone();
        stage.until("the heart beats", || stage.sidecar_view()["heartbeat"] != before);
    }
}

/// How often an agent was given a text.
fn typed(stage: &Stage, agent: &str, text: &str) -> usize {
    stage.prompts(agent).iter().filter(|prompt| prompt.contains(text)).count()
}

#[test]
fn without_another_thread_or_process_nothing_is_lost_and_all_goes_on_later() {
    let stage = Stage::new();
    let agents = stage.agents(&["ana", "ben"]);
    agents.iter().for_each(|agent| stage.until_idle(agent));
    let Some(few) = Few::of(stage.sidecar_pid()) else { return };
    few.limit("1");
    let text = stage.send(&json!({"kind": "agent_send", "agent_id": agents[0], "text": "While none was left."}));
    let refused = stage.send(&json!({"kind": "handoff_cancel", "handoff_id": "nothing"}));
    assert_eq!(stage.result(&refused)["error"]["code"], "no_handoff", "{}", stage.story());
    stage.until_degraded(&["no further thread or process"]);
    beats(&stage, 2);
    check_all_live(&stage, &agents);
    few.limit("max");
    stage.until_well();
    assert_eq!(stage.result(&text)["ok"], true, "{}", stage.result(&text));
    assert_eq!(typed(&stage, &agents[0], "While none was left."), 1, "once");
    stage.until("what was put away is removed", || {
        fs::read_dir(stage.home().join("state/reap")).is_ok_and(|it| it.count() == 0)
    });
    check_all_live(&stage, &agents);
    stage.check_done(&stage.until_step(&stage.hand_off(&agents[1]), "done"));
    stage.check_once();
    tally::add(tally::FAULTS, 1);
}

/// The memory that a process has mapped, in bytes.
fn mapped(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("Linux tells");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * 1024
}

#[test]
fn a_sidecar_that_gets_no_more_memory_loses_nothing() {
    let stage = Stage::new();
    let agents = stage.agents(&["ana", "ben"]);
    agents.iter().for_each(|agent| stage.until_idle(agent));
    let pid = stage.sidecar_pid();
    let limit = format!("--as={}:", mapped(pid) + 64 * 1024);
    let set = Command::new("prlimit").args(["--pid", &pid.to_string(), &limit]).status();
    if !set.is_ok_and(|status| status.success()) {
        return tally::skip("no prlimit");
    }
    // Larger than what it may have: reading it takes more than there is.
    let large = "A line that takes room.\n".repeat(30_000);
    let text =
        stage.send(&json!({"kind": "agent_send", "agent_id": agents[0], "text": format!("Read this.\n{large}")}));
    let ended = stage.ended_or("answering", || stage.names("results").contains(&format!("{text}.json")));
    check_all_live(&stage, &agents);
    if let Some(status) = ended {
        println!("it ended: {status}");
        let log = fs::read_to_string(stage.log_file()).unwrap_or_default();
        assert!(log.contains("memory"), "it says why: {status}\n{log}");
    } else {
        stage.end_sidecar(Signal::SIGKILL);
    }
    stage.start_sidecar();
    stage.until_well();
    check_all_live(&stage, &agents);
    let answer = stage.result(&text);
    let times = typed(&stage, &agents[0], "/texts/");
    assert!(times <= 1, "typed {times} times: {answer}");
    assert!(answer["ok"] == false || times == 1, "{answer}");
    stage.check_done(&stage.until_step(&stage.hand_off(&agents[1]), "done"));
    stage.check_once();
    tally::add(tally::FAULTS, 1);
}
