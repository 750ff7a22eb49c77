//! The delivery protocol from one end to the other: an agent is killed, what it knew is salvaged and published, its
//! successor asks, is answered, and acknowledges. All of it by the command line, all of it in the journal.

use super::publish::{ISSUE, Play};
use super::support::stage::Stage;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

fn run(stage: &Stage, args: &[&str]) -> String {
    let output = stage.command(args).output().expect("it runs");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{args:?}: {text}");
    text
}

#[test]
fn a_killed_agent_is_salvaged_published_asked_about_and_taken_over() {
    let config = "[ack]\nimmediate = \"60s\"\n[publish]\ntimeout = \"6s\"\nretry_after = [\"200ms\", \"200ms\"]\n";
    let Some(play) = Play::with_config(config) else { return };
    let (stage, agent) = (&play.stage, play.agent.as_str());
    // More than a salvaged document may hold.
    for part in 0..3 {
        let text = format!("Part {part}. {}", "The lexer lies about its tests. ".repeat(1_000));
        run(stage, &["send", agent, &text]);
        stage.until_idle(agent);
    }
    for pid in stage.processes(agent) {
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it runs");
    }
    stage.until("it has ended", || stage.agent_view(agent)["ended_at"].is_string());
    stage.faults("ack_questions");
    let asked = ["handoff", agent, "--author", "salvage", "--urgency", "immediate", "--task", "mend the lexer"];
    run(stage, &[&asked[..], &["--publish", ISSUE, "--fallback", "gist"]].concat());
    let id = stage.views("handoffs")[0]["handoff_id"].as_str().expect("an id").to_owned();
    stage.until("the successor asks", || stage.handoff_view(&id)["ack"]["status"] == "needs_clarification");
    run(stage, &["clarify", &id, "--answer", "It is main."]);
    let view = stage.until_step(&id, "done");
    assert_eq!(view["ack"]["status"], "acknowledged", "{view:#}");
    assert_ne!(view["successor_id"], agent);
    let view = play.until(&id, "published");
    assert!(view["bytes"].as_u64().is_some_and(|bytes| bytes <= 60 * 1024), "{view:#}");
    assert_eq!(view["publish"]["to"], "issue", "{view:#}");
    play.never_two(1, 0);
    let lines: Vec<_> = stage.journal().into_iter().filter(|line| line["handoff_id"] == id.as_str()).collect();
    for (kind, field, value) in [
        ("handoff.step", "step", "recording"),
        ("publish", "state", "published"),
        ("handoff.step", "step", "acknowledging"),
        ("ack", "status", "needs_clarification"),
        ("ack", "by", "clarify"),
        ("ack", "status", "acknowledged"),
        ("handoff.step", "step", "done"),
    ] {
        let is_there = lines.iter().any(|line| line["type"] == kind && line[field] == json!(value));
        assert!(is_there, "{kind} {value}: {lines:#?}");
    }
    let shown = run(stage, &["handoffs", "show", &id]);
    assert!(shown.contains("document uploaded") && shown.contains("all questions answered"), "{shown}");
}
