//! Acknowledgements on the real program, a real tmux server and real demo agents.

use super::support::stage::Stage;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Output;

const NOBODY: &str = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9afff";

/// A stage whose escalation target is a command that keeps what it is told, and where T is so many seconds.
fn stage(seconds: u32) -> (Stage, PathBuf) {
    let stage = Stage::without_sidecar("");
    let told = stage.work_dir().join("escalated");
    let script = "cat >> \"$0\"; echo >> \"$0\"";
    let config = format!(
        "[ack]\nimmediate = \"{seconds}s\"\n[escalation]\ntarget = [\"/bin/sh\", \"-c\", '{script}', \"{}\"]\n",
        told.display()
    );
    fs::write(stage.home().join("config.toml"), config).expect("a configuration");
    stage.start_sidecar();
    (stage, told)
}

fn urgent() -> Value {
    json!({"urgency": "immediate", "tasks": ["mend the flaky test"]})
}

/// What the escalation target was told, by its type.
fn told(file: &PathBuf, kind: &str) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    whole.filter(|json| json["content"]["type"] == kind).collect()
}

/// The prompts of an agent that hold this.
fn given(stage: &Stage, agent: &str, part: &str) -> Vec<String> {
    stage.prompts(agent).into_iter().filter(|prompt| prompt.contains(part)).collect()
}

fn successor(view: &Value) -> String {
    view["successor_id"].as_str().unwrap_or_else(|| panic!("no successor: {view:#}")).to_owned()
}

fn ack(handoff: &str, agent: &str) -> Value {
    json!({
        "kind": "ack", "handoff_id": handoff, "agent_id": agent, "understanding": "to mend the flaky test",
        "starting_from": "the fixture", "questions": [], "status": "ready_to_proceed",
    })
}

fn run(stage: &Stage, args: &[&str]) -> Output {
    stage.command(args).output().expect("it runs")
}

fn printed(output: &Output) -> String {
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn an_urgent_briefing_says_what_to_acknowledge_and_how() {
    let (stage, file) = stage(60);
    let agent = stage.agent("dev");
    let id = stage.hand_off_with(&agent, &urgent());
    let view = stage.until_step(&id, "done");
    let heir = successor(&view);
    let briefing = given(&stage, &heir, "Here is your handoff").remove(0);
    let program = env!("CARGO_BIN_EXE_tasuki");
    for part in [
        id.as_str(),
        &agent,
        "context_limit",
        "mend the flaky test",
        "urgent",
        "within 1 minute",
        program,
        " ack --understanding",
    ] {
        assert!(briefing.contains(part), "{part}: {briefing}");
    }
    assert!(briefing.contains(view["file_path"].as_str().expect("a path")), "{briefing}");
    let steps = stage.steps_of(&id);
    assert_eq!(steps[steps.len() - 3..], ["reading", "acknowledging", "done"]);
    let ack = &view["ack"];
    assert_eq!(
        (&ack["status"], &ack["late"], &ack["said"]),
        (&json!("acknowledged"), &json!(false), &json!("ready_to_proceed"))
    );
    assert_eq!(
        (&ack["tasks"], &ack["understanding"]),
        (&json!(["mend the flaky test"]), &json!("to continue where the document ends"))
    );
    stage.until("the target is told", || told(&file, "handoff_complete").len() == 1);
    assert_eq!(told(&file, "handoff_complete")[0]["content"]["handoff_id"], id.as_str());
    assert_eq!(stage.lines_of(&id, "ack").iter().filter(|line| line["by"] == "successor").count(), 1);
    let shown = printed(&run(&stage, &["handoffs", "show", &id]));
    for part in [
        "understanding  to continue",
        "[x] ACK handoff_id matches",
        "[ ] understanding is accurate",
        "[x] starting_from matches the documented checkpoint",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(stage.errors().is_empty(), "{}", stage.story());
    stage.check_done(&view);
}

#[test]
fn a_silent_agent_gets_two_reminders_then_one_escalation_and_its_late_ack_is_taken() {
    let (stage, file) = stage(10);
    let agent = stage.agent("dev");
    stage.faults("ack_never");
    let id = stage.hand_off_with(&agent, &urgent());
    let view = stage.until_failed(&id, "acknowledging", "ack_timeout");
    let heir = successor(&view);
    let reminders = given(&stage, &heir, "[REMINDER]");
    assert_eq!(reminders.len(), 2, "{reminders:?}\n{}", stage.story());
    for (number, text) in (1..).zip(&reminders) {
        assert!(text.contains(&format!("reminder_number: {number}")) && text.contains("final_deadline: "), "{text}");
    }
    stage.until("the target is told", || !told(&file, "escalation").is_empty());
    let escalation = &told(&file, "escalation")[0];
    assert_eq!(
        (&escalation["content"]["handoff_id"], &escalation["content"]["reminders_sent"]),
        (&json!(id), &json!(2))
    );
    stage.check_failure(&view);
    assert_eq!(stage.lines_of(&id, "reminder").len(), 2);
    stage.until("the escalation is recorded", || stage.handoff_view(&id)["ack"]["escalations"][0]["outcome"] == "sent");
    stage.until("it is journaled", || stage.lines_of(&id, "escalation").len() == 1);
    let late = stage.granted(&ack(&id, &heir));
    assert_eq!((&late["late"], &late["status"]), (&json!(true), &json!("acknowledged")));
    let done = stage.until_step(&id, "done");
    assert_eq!((&done["ack"]["late"], &done["error"]), (&json!(true), &Value::Null));
    assert_eq!(stage.granted(&ack(&id, &heir)), late, "the same again: the same answer");
    stage.until("the target is told of the end", || told(&file, "handoff_complete").len() == 1);
    assert_eq!((told(&file, "escalation").len(), stage.lines_of(&id, "escalation").len()), (1, 1));
    stage.check_once();
}

#[test]
fn killed_between_every_two_timers_each_reminder_comes_once() {
    let (stage, file) = stage(10);
    let agent = stage.agent("dev");
    stage.faults("ack_never");
    let id = stage.hand_off_with(&agent, &urgent());
    let heir = successor(&stage.until_step(&id, "acknowledging"));
    let sent = |stage: &Stage, count: usize| {
        stage.until(&format!("{count} reminders are settled"), || {
            let view = stage.handoff_view(&id);
            let of = view["ack"]["reminders"]
                .as_array()
                .map_or(0, |all| all.iter().filter(|one| one["outcome"] == "sent").count());
            of == count
        });
    };
    stage.crash_and_restart();
    sent(&stage, 1);
    stage.crash_and_restart();
    sent(&stage, 2);
    stage.crash_and_restart();
    let view = stage.until_failed(&id, "acknowledging", "ack_timeout");
    stage.crash_and_restart();
    stage.until("the target is told", || !told(&file, "escalation").is_empty());
    let reminders = given(&stage, &heir, "[REMINDER]");
    assert_eq!(reminders.len(), 2, "{reminders:?}\n{}", stage.story());
    assert!(reminders[0].contains("reminder_number: 1") && reminders[1].contains("reminder_number: 2"));
    stage.until("the escalation is journaled", || stage.lines_of(&id, "escalation").len() == 1);
    assert_eq!(stage.lines_of(&id, "reminder").len(), 2);
    stage.check_failure(&view);
}

#[test]
fn an_agent_that_is_reminded_acknowledges() {
    let (stage, _) = stage(8);
    let agent = stage.agent("dev");
    stage.faults("ack_on_reminder");
    let id = stage.hand_off_with(&agent, &urgent());
    let view = stage.until_step(&id, "done");
    assert_eq!(view["ack"]["reminders_sent"], 1, "{view:#}");
    assert_eq!(view["ack"]["late"], false);
}

#[test]
fn questions_are_answered_by_the_command_line_and_the_successor_goes_on() {
    let (stage, _) = stage(60);
    let agent = stage.agent("dev");
    stage.faults("ack_questions");
    let id = stage.hand_off_with(&agent, &urgent());
    stage.until("the successor asks", || stage.handoff_view(&id)["ack"]["status"] == "needs_clarification");
    let first = stage.handoff_view(&id);
    for (args, shown) in [
        (vec!["agents"], "asks you"),
        (vec!["handoffs"], "acknowledging: asks you"),
        (vec!["handoffs", "show", &id], " clarify "),
    ] {
        let said = printed(&run(&stage, &args));
        assert!(said.contains(shown), "{args:?}: {said}");
    }
    let few = run(&stage, &["clarify", &id, "--answer", "a", "--answer", "b"]);
    assert_eq!(few.status.code(), Some(2), "{few:?}");
    let better = stage.work_dir().join("better.md");
    fs::write(&better, "---\ncheckpoint: the end of the document\n---\n# Better\n\nMain it is.\n").expect("a document");
    let said = printed(&run(
        &stage,
        &["clarify", &id[..8], "--answer", "It is main.", "--document", better.to_str().expect("a path")],
    ));
    assert!(said.contains("the answers are being typed"), "{said}");
    let view = stage.until_step(&id, "done");
    let heir = successor(&view);
    let answers = given(&stage, &heir, "Answers to your questions");
    assert_eq!(answers.len(), 1);
    assert!(answers[0].contains("Question: Which branch is it?\n  Answer: It is main."), "{}", answers[0]);
    let path = view["file_path"].as_str().expect("a path");
    assert_ne!(view["file_path"], first["file_path"]);
    assert!(answers[0].contains(path) && fs::read_to_string(path).expect("it is there").contains("Main it is."));
    assert!(fs::metadata(first["file_path"].as_str().expect("a path")).is_ok(), "the first one is kept");
    assert_eq!(view["ack"]["former_documents"][0]["sha256"], first["sha256"]);
    assert_eq!((&view["ack"]["round"], &view["ack"]["answers"][0]["answer"]), (&json!(3), &json!("It is main.")));
}

#[test]
fn an_agent_that_refuses_fails_the_step_with_what_it_said_and_another_one_takes_over() {
    for (fault, status) in [("ack_reject", "rejected"), ("ack_environment", "environment_issue")] {
        let (stage, _) = stage(60);
        let agent = stage.agent("dev");
        stage.faults(fault);
        let id = stage.hand_off_with(&agent, &urgent());
        let view = stage.until_failed(&id, "acknowledging", "ack_rejected");
        assert!(
            view["error"]["message"].as_str().is_some_and(|text| text.contains("to continue where the document ends")),
            "{view:#}"
        );
        assert_eq!(view["ack"]["status"], status);
        stage.check_failure(&view);
        stage.faults("");
        stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id, "successor": "new"}));
        let done = stage.until_step(&id, "done");
        assert_ne!(done["successor_id"], view["successor_id"]);
        assert_eq!(
            (&done["ack"]["status"], &done["former_successors"]),
            (&json!("acknowledged"), &json!([view["successor_id"]]))
        );
    }
}

#[test]
fn only_the_briefed_successor_counts_and_only_while_it_is_waited_for() {
    let (stage, _) = stage(60);
    let agent = stage.agent("dev");
    let other = stage.agent("other");
    stage.faults("ack_never\nslow_turn=1500");
    let id = stage.hand_off_with(&agent, &urgent());
    let plain = stage.hand_off(&other);
    let refused = |request: &Value| {
        let (status, code, _) = stage.refused(request);
        (status, code)
    };
    assert_eq!(refused(&ack(&id, &agent)), (403, "not_successor".to_owned()), "there is no successor yet");
    stage.until("there is a successor", || stage.handoff_view(&id)["successor_id"].is_string());
    let heir = successor(&stage.handoff_view(&id));
    assert_eq!(refused(&ack(&id, &heir)), (409, "not_briefed".to_owned()));
    stage.until_step(&id, "acknowledging");
    assert_eq!(refused(&ack(NOBODY, &heir)), (404, "no_handoff".to_owned()));
    assert_eq!(refused(&ack(&id, &other)), (403, "not_successor".to_owned()));
    let done = stage.until_step(&plain, "done");
    assert_eq!(refused(&ack(&plain, &successor(&done))), (409, "no_ack_wanted".to_owned()));
    assert_eq!(
        refused(&json!({"kind": "ack_override", "handoff_id": plain, "reason": "x"})),
        (409, "no_ack_wanted".to_owned())
    );
    let said = printed(&run(&stage, &["ack-override", &id, "--reason", "it works, I have looked"]));
    assert!(said.contains("continues without an acknowledgement"), "{said}");
    let view = stage.until_step(&id, "done");
    assert_eq!(
        (&view["ack"]["status"], &view["ack"]["override"]["reason"]),
        (&json!("acknowledged_with_delay"), &json!("it works, I have looked"))
    );
    let (status, code, message) = stage.refused(&ack(&id, &heir));
    assert_eq!((status, code.as_str()), (409, "already_ended"));
    assert!(message.ends_with("done"), "{message}");
}

#[test]
fn a_malformed_ack_is_answered_with_the_right_form_in_the_agent_s_own_pane() {
    let (stage, _) = stage(60);
    let agent = stage.agent("dev");
    stage.faults("ack_malformed");
    let id = stage.hand_off_with(&agent, &urgent());
    let view = stage.until_step(&id, "done");
    let heir = successor(&view);
    let forms = given(&stage, &heir, "did not have the right form");
    assert_eq!(forms.len(), 1, "{}", stage.story());
    assert!(forms[0].contains(&format!("\"handoff_id\":\"{id}\"")), "{}", forms[0]);
    assert_eq!(stage.names("rejected").len(), 2, "the file and its reason");
    let mut wrong = ack(&id, &heir);
    wrong.as_object_mut().expect("an object").remove("questions");
    let answer = stage.ask(&wrong);
    assert_eq!((&answer["status"], &answer["error"]["field"]), (&json!(422), &json!("questions")), "{answer}");
}

#[test]
fn acks_for_another_twice_or_by_file_do_as_they_should() {
    for (fault, acks) in [("ack_twice", 1), ("ack_file", 1)] {
        let (stage, _) = stage(60);
        let agent = stage.agent("dev");
        stage.faults(fault);
        let id = stage.hand_off_with(&agent, &urgent());
        stage.until_step(&id, "done");
        assert_eq!(stage.lines_of(&id, "ack").iter().filter(|line| line["by"] == "successor").count(), acks, "{fault}");
        assert!(stage.names("rejected").is_empty());
    }
    let (stage, _) = stage(60);
    let agents = stage.agents(&["dev", "other"]);
    stage.faults("ack_never");
    let others = stage.hand_off_with(&agents[1], &urgent());
    stage.until_step(&others, "acknowledging");
    stage.faults(&format!("ack_other={others}"));
    let id = stage.hand_off_with(&agents[0], &urgent());
    stage.until_step(&id, "acknowledging");
    stage.until("the wrong ACK is answered", || {
        let results = stage.names("results");
        results.iter().any(|name| {
            fs::read_to_string(stage.spool("results").join(name)).is_ok_and(|text| text.contains("not_successor"))
        })
    });
    let steps = [&id, &others].map(|id| stage.handoff_view(id)["step"].clone());
    assert_eq!(steps, ["acknowledging", "acknowledging"], "neither is acknowledged");
}

#[test]
fn a_dead_agent_is_salvaged_and_its_heir_acknowledges() {
    let (stage, _) = stage(60);
    let agent = stage.agent("dev");
    stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": "Mend the test."}));
    stage.until_idle(&agent);
    for pid in stage.processes(&agent) {
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it runs");
    }
    stage.until("it has ended", || stage.agent_view(&agent)["ended_at"].is_string());
    let wait =
        ["handoff", &agent, "--author", "salvage", "--urgency", "immediate", "--task", "mend the test", "--wait"];
    let said = printed(&run(&stage, &wait));
    assert!(said.contains("acknowledging"), "{said}");
    let view = &stage.views("handoffs")[0];
    assert_eq!((&view["step"], &view["ack"]["status"]), (&json!("done"), &json!("acknowledged")));
}

#[test]
fn an_orchestrator_that_is_an_agent_is_told_in_its_pane() {
    let config = "[ack]\nimmediate = \"60s\"\n[escalation]\norchestrator = \"agent:lead\"\ntarget = \"agent:lead\"\n";
    let stage = Stage::with_config(config);
    let agents = stage.agents(&["dev", "lead"]);
    let id = stage.hand_off_with(&agents[0], &urgent());
    stage.until_step(&id, "done");
    stage.until("the lead is told of all", || {
        let told = given(&stage, &agents[1], &id);
        ["[HANDOFF] Agent Replacement", "[ACK] Handoff", "Complete"]
            .iter()
            .all(|part| told.iter().any(|text| text.contains(part)))
    });
    stage.until("that is recorded", || {
        let view = stage.handoff_view(&id);
        view["ack"]["messages"].as_array().is_some_and(|all| all.iter().all(|one| one["outcome"] == "sent"))
    });
    assert!(stage.errors().is_empty(), "{}", stage.story());
    stage.check_once();
}

#[test]
fn the_successor_s_death_ends_the_waiting() {
    let (stage, _) = stage(60);
    let agent = stage.agent("dev");
    stage.faults("ack_never");
    let id = stage.hand_off_with(&agent, &urgent());
    let heir = successor(&stage.until_step(&id, "acknowledging"));
    stage.until_idle(&heir);
    for pid in stage.processes(&heir) {
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it runs");
    }
    stage.until_failed(&id, "acknowledging", "agent_ended");
    stage.faults("");
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id}));
    let view = stage.until_step(&id, "done");
    assert_eq!(view["former_successors"], json!([heir]));
    stage.check_once();
}
