//! The other authors and successors, on the real program, a real tmux server and real demo agents.

use super::support::stage::Stage;
use super::support::stage_files::delivery_ids;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;

/// The document that a handoff has recorded.
fn document(view: &Value) -> String {
    let path = view["file_path"].as_str().expect("a path");
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert_eq!(view["bytes"], text.len(), "{view:#}");
    text
}

fn successor(view: &Value) -> &str {
    view["successor_id"].as_str().unwrap_or_else(|| panic!("no successor: {view:#}"))
}

/// An agent's own process is killed, as if it had crashed.
fn crash(stage: &Stage, agent: &str) {
    for pid in stage.processes(agent) {
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it runs");
    }
    stage.until("its end is seen", || stage.agent_view(agent)["ended_at"].is_string());
}

#[test]
fn an_answer_becomes_the_document() {
    let stage = Stage::new();
    stage.faults("transcript_lag=60\nsplit_blocks");
    let agent = stage.agent("dev");
    let id = stage.hand_off_with(&agent, &json!({"author": "agent_reply", "focus": "the parser"}));
    let view = stage.until_step(&id, "done");
    let text = document(&view);
    for heading in ["Goal", "Constraints & Preferences", "Progress", "Key Decisions", "Critical Context", "Next Steps"]
    {
        assert!(text.contains(heading), "{heading}: {text}");
    }
    assert_eq!(view["warnings"], json!([]), "{view:#}");
    let asked = stage.prompts(&agent);
    let asked = asked.iter().find(|prompt| prompt.contains("Answer with a handoff document")).expect("an instruction");
    assert!(asked.starts_with("Please answer with") && asked.contains("Additional focus: the parser"), "{asked}");
    assert!(!asked.contains(view["file_path"].as_str().expect("a path")), "the agent writes no file");
    stage.check_once();
}

#[test]
fn an_answer_without_a_text_is_no_document() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("empty_answer");
    let id = stage.hand_off_with(&agent, &json!({"author": "agent_reply"}));
    stage.check_halted(&stage.until_failed(&id, "writing", "document_empty"));
    stage.faults("");
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id}));
    stage.until_step(&id, "done");
}

#[test]
fn an_answer_is_taken_from_the_event_where_there_is_no_transcript() {
    let stage = Stage::new();
    stage.faults("no_transcript");
    let agent = stage.agent("dev");
    let id = stage.hand_off_with(&agent, &json!({"author": "agent_reply"}));
    let view = stage.until_step(&id, "done");
    assert!(document(&view).contains("Next Steps"), "the last block stands in the event");
}

#[test]
fn an_agent_that_has_said_nothing_has_nothing_to_hand_off() {
    let stage = Stage::new();
    stage.persona("dev");
    let pane = super::flow::by_hand(&stage, "");
    let agent = super::flow::anonymous(&stage);
    stage.granted(&json!({"kind": "agent_register", "pane": pane, "persona_slug": "dev"}));
    let before = stage.prompts(&agent).len();
    let refused = stage.refused(&json!({
        "kind": "handoff", "agent_id": agent, "reason": "context_limit", "author": "agent_reply",
    }));
    let message = "Nothing to hand off (no messages yet)".to_owned();
    assert_eq!(refused, (409, "nothing_to_hand_off".to_owned(), message));
    assert_eq!(stage.prompts(&agent).len(), before);
}

#[test]
fn a_dead_agent_is_salvaged_from_its_transcript() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": "Mend the lexer, please."}));
    stage.until_idle(&agent);
    crash(&stage, &agent);
    let id = stage.hand_off_with(&agent, &json!({"author": "salvage"}));
    let view = stage.until_step(&id, "done");
    let text = document(&view);
    assert!(text.starts_with("# Handoff document, salvaged from a transcript"), "{text}");
    assert!(text.contains("Mend the lexer, please."), "{text}");
    assert!(view["warnings"].to_string().contains("salvaged"), "{view:#}");
    let steps = ["waiting", "recording", "ending", "starting", "priming", "briefing", "reading", "done"];
    assert_eq!(stage.steps_of(&id), steps);
    assert_eq!(stage.typed(successor(&view)), (0, 1, 1), "{}", stage.story());
    stage.check_once();
}

#[test]
fn a_dead_agent_without_a_transcript_can_be_given_a_document() {
    let stage = Stage::new();
    stage.faults("no_transcript");
    let agent = stage.agent("dev");
    crash(&stage, &agent);
    let id = stage.hand_off_with(&agent, &json!({"author": "salvage"}));
    let view = stage.until_failed(&id, "recording", "document_unsafe");
    stage.check_failure(&view);
    let path = view["file_path"].as_str().expect("a path");
    fs::write(path, "# Written by hand\n").expect("written");
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id}));
    let view = stage.until_step(&id, "done");
    assert_eq!(document(&view), "# Written by hand\n");
}

#[test]
fn a_provided_document_is_taken_as_it_stands() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let text = "# Handed over by hand\n\nThe tests of the lexer lie.\n";
    let id = stage.hand_off_with(&agent, &json!({"author": "provided", "document": {"text": text}}));
    let view = stage.until_step(&id, "done");
    assert_eq!(document(&view), text);
    assert_eq!(stage.typed(&agent), (0, 1, 0), "the outgoing agent was asked for nothing");
    let briefing = stage.prompts(successor(&view)).pop().expect("a briefing");
    assert!(briefing.contains("The tests of the lexer lie."), "its first paragraph is told: {briefing}");
}

#[test]
fn an_agent_that_dies_while_it_is_waited_for_is_handed_over_all_the_same_where_it_need_not_write() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("slow_turn=60000");
    stage.send(&json!({"kind": "agent_send", "agent_id": agent, "text": "Think."}));
    stage.until("it thinks", || stage.agent_view(&agent)["state"] == "busy");
    stage.faults("");
    let id = stage.hand_off_with(&agent, &json!({"author": "provided", "document": {"text": "# Left behind\n"}}));
    stage.until_step(&id, "waiting");
    let pid = i32::try_from(stage.agent_view(&agent)["pid"].as_i64().expect("a pid")).expect("it fits");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).expect("it lived");
    assert_eq!(document(&stage.until_step(&id, "done")), "# Left behind\n");
}

#[test]
fn a_provided_path_must_lie_inside_the_home() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let outside = stage.work_dir().join("outside.md");
    fs::write(&outside, "# Outside\n").expect("written");
    std::os::unix::fs::symlink(&outside, stage.home().join("link.md")).expect("a link");
    fs::write(stage.home().join("space.md"), " \n").expect("written");
    let request = |document: Value| json!({"kind": "handoff", "agent_id": agent, "reason": "r", "author": "provided", "document": document});
    for path in [outside.display().to_string().as_str(), "link.md", "../home/link.md", "nothing.md", "space.md"] {
        let (status, code, message) = stage.refused(&request(json!({"path": path})));
        assert_eq!((status, code.as_str()), (400, "bad_request"), "{path}: {message}");
        assert!(message.contains("document"), "{message}");
    }
    for document in [json!({}), json!({"text": "a", "path": "b"}), json!({"text": " "}), json!({"file": "x"})] {
        assert_eq!(stage.refused(&request(document.clone())).0, 400, "{document}");
    }
    let missing = json!({"kind": "handoff", "agent_id": agent, "reason": "r", "author": "provided"});
    assert_eq!(stage.refused(&missing).0, 400);
    fs::write(stage.home().join("inside.md"), "# Inside\n").expect("written");
    let id = stage.hand_off_with(&agent, &json!({"author": "provided", "document": {"path": "inside.md"}}));
    assert_eq!(document(&stage.until_step(&id, "done")), "# Inside\n");
}

/// Hands off in the same pane and checks all that must be so afterwards; gives the view.
fn in_the_same_pane(stage: &Stage, agent: &str) -> Value {
    let before = stage.agent_view(agent);
    let pids = stage.processes(agent);
    let id = stage.hand_off_with(agent, &json!({"successor": "same_pane"}));
    let view = stage.until_step(&id, "done");
    let (old, new) = (stage.agent_view(agent), stage.agent_view(successor(&view)));
    assert_eq!((&new["pane"], &new["pid"], &new["cwd"]), (&before["pane"], &before["pid"], &before["cwd"]));
    assert_eq!(stage.processes(agent), pids, "the process lives on");
    assert_eq!((&old["state"], &old["successor_id"]), (&json!("ended"), &view["successor_id"]));
    assert_eq!((&new["previous_agent_id"], &new["ended_at"]), (&json!(agent), &Value::Null));
    assert_ne!(old["session_id"], new["session_id"], "{old:#}{new:#}");
    assert!(new["session_id"].is_string(), "{new:#}");
    // Its prompts bear the environment of the process, which is the predecessor's.
    let prompts = stage.prompts(agent);
    let texts: Vec<&str> = prompts.iter().map(String::as_str).filter(|text| !delivery_ids(text).is_empty()).collect();
    let [.., instruction, priming, briefing] = texts[..] else { panic!("{texts:#?}") };
    assert!(instruction.starts_with("Please write a handoff document"), "{instruction}");
    assert!(priming.starts_with("You are the persona dev."), "{priming}");
    let document = document(&view);
    let wrapped = format!(
        "<handoff-context>\n{}\n</handoff-context>\n\nThe above is a handoff document from a previous session. \
         Use this context to continue the work seamlessly.",
        document.trim_end()
    );
    assert_eq!(view["injection_prompt"], wrapped);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    assert!(words(briefing).contains(&words(&wrapped)), "{briefing}");
    stage.check_once();
    view
}

#[test]
fn a_new_session_in_the_same_pane_takes_over() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let first = in_the_same_pane(&stage, &agent);
    // And so does the next: what the process has in its environment is two agents old by then.
    let second = stage.hand_off_with(successor(&first), &json!({"successor": "same_pane"}));
    let second = stage.until_step(&second, "done");
    assert_eq!(stage.agent_view(successor(&second))["pane"], stage.agent_view(&agent)["pane"]);
    // The end of that process is the end of the agent that lives in it.
    stage.granted(&json!({"kind": "agent_shutdown", "agent_id": successor(&second)}));
    assert!(stage.agent_view(successor(&second))["ended_at"].is_string());
}

#[test]
fn a_cli_that_tells_of_its_new_session_late_can_be_handed_off_in_its_pane() {
    let stage = Stage::new();
    let profiles = stage.home().join("data/profiles");
    fs::create_dir_all(&profiles).expect("a folder");
    let profile = include_str!("../../data/profiles/demo.toml");
    let lazy = profile.replacen("command = \"/clear\"", "command = \"/clear\"\nlazy = true", 1);
    assert_ne!(profile, lazy);
    fs::write(profiles.join("demo.toml"), lazy).expect("written");
    stage.end_sidecar(Signal::SIGTERM);
    stage.start_sidecar();
    stage.faults("lazy_clear");
    let agent = stage.agent("dev");
    in_the_same_pane(&stage, &agent);
}

#[test]
fn a_cli_without_a_command_for_a_new_session_is_refused() {
    let stage = Stage::without_sidecar("");
    let profiles = stage.home().join("data/profiles");
    fs::create_dir_all(&profiles).expect("a folder");
    let profile =
        include_str!("../../data/profiles/demo.toml").replacen("[new_session]\ncommand = \"/clear\"\n", "", 1);
    fs::write(profiles.join("demo.toml"), profile).expect("written");
    stage.start_sidecar();
    let agent = stage.agent("dev");
    let request = json!({"kind": "handoff", "agent_id": agent, "reason": "r", "successor": "same_pane"});
    let (status, code, _) = stage.refused(&request);
    assert_eq!((status, code.as_str()), (400, "same_pane_unavailable"));
}

#[test]
fn an_agent_that_runs_already_takes_over_and_is_not_primed_again() {
    let stage = Stage::new();
    let agents = stage.agents(&["dev", "dev"]);
    let (agent, other) = (&agents[0], &agents[1]);
    let id = stage.hand_off_with(agent, &json!({"successor": {"agent_id": other}}));
    let view = stage.until_step(&id, "done");
    assert_eq!(successor(&view), other);
    assert_eq!(stage.typed(other), (0, 1, 1), "{}", stage.story());
    stage.until("its process is gone", || stage.processes(agent).is_empty());
    let (old, new) = (stage.agent_view(agent), stage.agent_view(other));
    assert_eq!((&new["previous_agent_id"], &old["successor_id"]), (&json!(agent), &json!(other)));
    assert!(view["verdicts"]["priming"].is_null() && new["handoff_id"].is_null(), "{view:#}");
    stage.check_once();
}

#[test]
fn who_can_t_take_over_is_refused() {
    let stage = Stage::new();
    let agents = stage.agents(&["dev", "dev", "other"]);
    let request = |successor: &str| json!({"kind": "handoff", "agent_id": agents[0], "reason": "r", "successor": {"agent_id": successor}});
    let refused = |successor: &str| {
        let (status, code, _) = stage.refused(&request(successor));
        (status, code)
    };
    assert_eq!(refused(&agents[0]), (400, "bad_successor".to_owned()), "the outgoing agent itself");
    assert_eq!(refused(&agents[2]), (400, "bad_successor".to_owned()), "another persona");
    assert_eq!(refused("00000000-0000-4000-8000-000000000000"), (404, "no_agent".to_owned()));
    super::flow::by_hand(&stage, "");
    assert_eq!(refused(&super::flow::anonymous(&stage)), (400, "bad_successor".to_owned()), "anonymous");
    crash(&stage, &agents[1]);
    assert_eq!(refused(&agents[1]), (400, "bad_successor".to_owned()), "ended");
}

#[test]
fn another_successor_goes_on_with_the_same_record() {
    let stage = Stage::new();
    let agents = stage.agents(&["dev", "dev"]);
    let (agent, other) = (&agents[0], &agents[1]);
    stage.faults("slow_turn=3000");
    let id = stage.hand_off_with(agent, &json!({"successor": {"agent_id": other}}));
    stage.until_step(&id, "writing");
    crash(&stage, other);
    stage.faults("");
    // The agent is not ended for a successor that is dead.
    let failed = stage.until_failed(&id, "ending", "successor_failed");
    assert_eq!(stage.agent_view(agent)["state"], "idle");
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id, "successor": "new"}));
    let view = stage.until_step(&id, "done");
    assert_eq!(view["sha256"], failed["sha256"]);
    assert_ne!(successor(&view), other);
    stage.check_once();
}

#[test]
fn a_kill_at_any_step_of_the_other_ways_loses_and_doubles_nothing() {
    let ways = [
        json!({"author": "agent_reply", "successor": "same_pane"}),
        json!({"author": "provided", "document": {"text": "# Given\n"}, "successor": "same_pane"}),
        json!({"author": "salvage"}),
    ];
    for way in ways {
        let stage = Stage::new();
        let agent = stage.agent("dev");
        let id = stage.hand_off_with(&agent, &way);
        let mut last = String::new();
        let mut kills = 0;
        let view = stage.wait_for("the handoff ends over kills", || {
            let view = stage.handoff_view(&id);
            let step = view["step"].as_str().unwrap_or_default().to_owned();
            if ["done", "failed", "cancelled"].contains(&step.as_str()) {
                return Some(view);
            }
            if step != last {
                last = step;
                kills += 1;
                stage.end_sidecar(Signal::SIGKILL);
                stage.start_sidecar();
            }
            None
        });
        assert_eq!(view["step"], "done", "{view:#}\n{}", stage.story());
        assert!(kills >= 4, "{way}: {kills} kills");
        stage.check_once();
    }
}

#[test]
fn a_cancelled_handoff_is_no_failure_whoever_writes_and_the_operator_of_the_pane_is_told() {
    let (stage, told) = Stage::with_notices();
    let agent = stage.agent("dev");
    let notices = || fs::read_to_string(&told).unwrap_or_default();
    for (author, step) in [("agent_reply", "writing"), ("salvage", "waiting"), ("agent_file", "writing")] {
        stage.faults("slow_turn=60000");
        if step == "waiting" {
            stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": "Take your time."}));
        }
        let dials = json!({"author": author, "successor": "same_pane"});
        let id = stage.hand_off_with(&agent, &dials);
        stage.until_step(&id, step);
        assert_eq!(stage.granted(&json!({"kind": "handoff_cancel", "handoff_id": id}))["status"], "cancelled");
        let view = stage.until_step(&id, "cancelled");
        assert!(view["error"].is_null() && view["sha256"].is_null(), "{view:#}");
        stage.until("the operator is told", || notices().contains(&id));
        assert!(notices().contains("Handoff cancelled") && !notices().contains("failed"), "{}", notices());
        assert!(stage.errors().is_empty() && stage.is_running(&agent), "{}", stage.story());
        let old = stage.agent_view(&agent);
        assert!(old["ended_at"].is_null() && old["handoff_id"].is_null(), "{old:#}");
        // The turn goes on: a person ends it, of which no event tells, and the agent can be handed off anew.
        stage.faults("");
        let pane = old["pane"].as_str().expect("a pane");
        stage.tmux(&["send-keys", "-t", pane, "Escape"]);
    }
    let id = stage.hand_off_with(&agent, &json!({"successor": "same_pane"}));
    stage.until_step(&id, "done");
    stage.until("the operator is told", || notices().contains("New session started with handoff context"));
    stage.check_once();
}
