//! Documents are held against the world while their author still lives.

use super::support::stage::Stage;
use super::support::stage_files::{holding_keys, planted_keys};
use super::support::steps::STEPS;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

fn git(folder: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(args);
    let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("git runs");
    assert!(output.status.success(), "git {args:?}: {output:?}");
}

/// A repository with one commit in the agents' folder.
fn with_repository(stage: &Stage) {
    let folder = stage.work_dir();
    git(&folder, &["init", "-q", "-b", "main"]);
    fs::write(folder.join("readme.md"), "# Work\n").expect("written");
    git(&folder, &["add", "readme.md"]);
    git(&folder, &["commit", "-q", "-m", "begin"]);
}

/// How often an agent was asked to repair its document.
fn reworks(stage: &Stage, agent: &str) -> usize {
    stage.prompts(agent).iter().filter(|prompt| prompt.starts_with("Please repair your handoff document.")).count()
}

fn faults(view: &Value) -> Vec<String> {
    let check = |fault: &Value| fault["check"].as_str().expect("a word").to_owned();
    view["faults"].as_array().expect("a list").iter().map(check).collect()
}

/// A handoff of an agent whose document has this flaw, until the handoff is done.
fn repaired(stage: &Stage, flaw: &str, options: &Value) -> Value {
    let agent = stage.agent("dev");
    stage.faults(&format!("flaw={flaw}"));
    let id = stage.hand_off_with(&agent, options);
    let view = stage.until_step(&id, "done");
    assert_eq!((&view["reworks"], reworks(stage, &agent)), (&json!(1), 1), "{flaw}: {view:#}");
    let left = view["faults"].as_array().expect("a list");
    assert!(left.iter().all(|fault| fault["grade"] == "warn"), "{flaw}: {view:#}");
    stage.check_once();
    view
}

#[test]
fn a_document_with_a_flaw_is_repaired_once_by_its_author() {
    let stage = Stage::new();
    with_repository(&stage);
    fs::write(stage.work_dir().join("new.rs"), "fn new() {}\n").expect("written");
    for flaw in ["headings", "claims", "missing_file", "fence", "secrets"] {
        let view = repaired(&stage, flaw, &json!({}));
        assert_eq!(stage.steps_of(view["handoff_id"].as_str().expect("an id")), STEPS);
    }
}

#[test]
fn a_document_that_is_long_or_names_no_beginning_is_repaired_too() {
    let stage = Stage::new();
    repaired(&stage, "long", &json!({}));
    let stage = Stage::new();
    repaired(&stage, "no_checkpoint", &json!({"urgency": "prepare"}));
}

#[test]
fn what_the_faults_are_is_shown_and_said_to_the_agent() {
    let stage = Stage::new();
    with_repository(&stage);
    fs::write(stage.work_dir().join("new.rs"), "fn new() {}\n").expect("written");
    let agent = stage.agent("dev");
    stage.faults("flaw=claims\nflaw_stays");
    let id = stage.hand_off_with(&agent, &json!({}));
    let view = stage.until_step(&id, "done");
    assert!(faults(&view).contains(&"repository".to_owned()), "{view:#}");
    let prompts = stage.prompts(&agent);
    let asked = prompts.iter().find(|prompt| prompt.starts_with("Please repair")).expect("asked");
    assert!(asked.contains("deadbee"), "{asked}");
    // What is left is told, and stops nothing.
    assert!(view["warnings"].as_array().is_some_and(|warnings| !warnings.is_empty()), "{view:#}");
    assert_eq!((&view["reworks"], reworks(&stage, &agent)), (&json!(1), 1));
    let facts = &view["facts"]["repository"];
    assert_eq!((&facts["branch"], &facts["changed"]), (&json!("main"), &json!(1)), "{facts:#}");
    let path = view["facts_path"].as_str().expect("a path");
    let beside: Value = serde_json::from_slice(&fs::read(path).expect("it is there")).expect("JSON");
    assert_eq!(beside, view["facts"]);
    let briefing = stage.prompts(view["successor_id"].as_str().expect("an id"));
    let briefing = briefing.iter().find(|prompt| prompt.starts_with("Here is your handoff")).expect("briefed");
    assert!(briefing.contains(&path.replace(".json", ".md")) && briefing.len() < 2_500, "{briefing}");
}

#[test]
fn a_killed_sidecar_asks_the_agent_once() {
    for point in 0..4 {
        let stage = Stage::new();
        let agent = stage.agent("dev");
        stage.faults("flaw=headings\nslow_turn=700");
        let id = stage.hand_off_with(&agent, &json!({}));
        stage.until_step(&id, "checking");
        let is_asked = || reworks(&stage, &agent) == 1;
        match point {
            0 => {}
            1 => stage.until("it is being asked", || stage.handoff_view(&id)["reworks"] == 1),
            2 => stage.until("it is asked", is_asked),
            _ => {
                stage.until("it is asked", is_asked);
                stage.until_idle(&agent);
            }
        }
        stage.crash_and_restart();
        let view = stage.until_step(&id, "done");
        assert_eq!((&view["reworks"], reworks(&stage, &agent)), (&json!(1), 1), "point {point}: {view:#}");
        assert_eq!(view["faults"], json!([]), "point {point}: {view:#}");
        stage.check_once();
    }
}

#[test]
fn a_document_is_only_warned_of_or_not_checked_if_that_is_wanted() {
    let stage = Stage::with_config("[document]\ncheck = \"warn\"\n");
    let agent = stage.agent("dev");
    stage.faults("flaw=fence");
    let id = stage.hand_off_with(&agent, &json!({}));
    let view = stage.until_step(&id, "done");
    assert_eq!((faults(&view), &view["reworks"]), (vec!["whole".to_owned()], &json!(0)), "{view:#}");
    let next = view["successor_id"].as_str().expect("an id").to_owned();
    stage.until_idle(&next);
    let id = stage.hand_off_with(&next, &json!({"check": "off"}));
    let view = stage.until_step(&id, "done");
    assert_eq!((&view["faults"], &view["warnings"]), (&json!([]), &json!([])));
    assert!(!stage.steps_of(&id).contains(&"checking".to_owned()) && view["facts"].is_object(), "{view:#}");
}

/// A handoff that waits for a person.
fn held(stage: &Stage, faults: &str, options: &Value) -> (String, String) {
    let agent = stage.agent("dev");
    stage.faults(faults);
    let id = stage.hand_off_with(&agent, options);
    stage.until("it waits for a person", || stage.handoff_view(&id)["held_since"].is_string());
    (agent, id)
}

#[test]
fn a_held_document_waits_for_a_person_who_accepts_it() {
    let (stage, told) = Stage::with_notices();
    let (agent, id) = held(&stage, "flaw=fence", &json!({"check": "hold"}));
    let view = stage.handoff_view(&id);
    assert_eq!((&view["step"], &view["deadline"]), (&json!("checking"), &Value::Null), "{view:#}");
    stage.until("the operator is told", || fs::read_to_string(&told).is_ok_and(|told| told.contains("document_held")));
    stage.crash_and_restart();
    assert!(stage.handoff_view(&id)["held_since"].is_string());
    stage.granted(&json!({"kind": "handoff_accept", "handoff_id": id}));
    let view = stage.until_step(&id, "done");
    assert_eq!((faults(&view), reworks(&stage, &agent)), (vec!["whole".to_owned()], 0), "{view:#}");
    let lines = stage.lines_of(&id, "handoff.step");
    assert_eq!(lines.iter().filter(|line| line["code"] == "document_held").count(), 1, "{lines:#?}");
}

#[test]
fn a_person_asks_for_another_rework_with_words_of_their_own_or_cancels() {
    let stage = Stage::new();
    let (agent, id) = held(&stage, "", &json!({"review": true}));
    assert_eq!(faults(&stage.handoff_view(&id)), [] as [&str; 0]);
    stage.granted(&json!({"kind": "handoff_rework", "handoff_id": id, "note": "Name the ticket."}));
    stage.until("it is asked", || reworks(&stage, &agent) == 1);
    assert!(stage.prompts(&agent).last().is_some_and(|prompt| prompt.contains("Name the ticket.")));
    stage.until("it waits again", || stage.handoff_view(&id)["held_since"].is_string());
    let refused = stage.refused(&json!({"kind": "handoff_rework", "handoff_id": id, "note": " "}));
    assert_eq!(refused.0, 400);
    stage.granted(&json!({"kind": "handoff_cancel", "handoff_id": id}));
    stage.until_step(&id, "cancelled");
    let refused = stage.refused(&json!({"kind": "handoff_rework", "handoff_id": id, "note": "once more"}));
    assert_eq!((refused.0, refused.1.as_str()), (409, "already_ended"));
}

#[test]
fn an_agent_that_dies_or_fails_while_it_repairs_leaves_a_document_that_can_be_accepted() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("flaw=fence\nslow_turn=3000");
    let id = stage.hand_off_with(&agent, &json!({}));
    stage.until("it is asked", || reworks(&stage, &agent) == 1);
    for pid in stage.processes(&agent) {
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it runs");
    }
    let view = stage.until_failed(&id, "checking", "agent_ended");
    stage.check_failure(&view);
    stage.faults("");
    stage.granted(&json!({"kind": "handoff_accept", "handoff_id": id}));
    let view = stage.until_step(&id, "done");
    assert_eq!(faults(&view), ["whole"], "{view:#}");

    let agent = stage.agent("second");
    stage.faults("flaw=fence\nslow_turn=700");
    let id = stage.hand_off_with(&agent, &json!({}));
    stage.until("it is instructed", || stage.handoff_view(&id)["verdicts"]["instruction"].is_object());
    stage.faults("fail_turn");
    let view = stage.until_failed(&id, "checking", "agent_failed");
    stage.check_failure(&view);
    stage.faults("");
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id}));
    let view = stage.until_step(&id, "done");
    assert_eq!(reworks(&stage, &agent), 1, "a retry asks no second time: {view:#}");
}

#[test]
fn a_credential_is_shown_to_nobody_beyond_the_document() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.faults("flaw=secrets\nflaw_stays");
    let id = stage.hand_off_with(&agent, &json!({"successor": "same_pane"}));
    let view = stage.until_step(&id, "done");
    assert_eq!(faults(&view), ["secrets", "secrets"], "{view:#}");
    let path = view["file_path"].as_str().expect("a path");
    let text = fs::read_to_string(path).expect("readable");
    let token = text.split_whitespace().find(|word| word.starts_with("ghp_")).expect("a token").to_owned();
    let end = &token[token.len() - 4..];
    assert!(view["faults"].to_string().contains(end), "{view:#}");
    let holds = |text: &str| text.contains(&token[..token.len() - 4]);
    assert!(!holds(&view.to_string()), "the view: {view:#}");
    let journal = fs::read_to_string(stage.home().join("spool/journal.jsonl")).expect("readable");
    assert!(!holds(&journal), "the journal");
    assert!(!holds(&fs::read_to_string(stage.log_file()).expect("readable")), "the log");
    assert!(planted_keys().contains(&token), "every test searches for it: {token}");
    for folder in ["view", "spool/results", "spool/errors"] {
        assert_eq!(holding_keys(&stage.home().join(folder)), [] as [&str; 0]);
    }
    let beside = fs::read_to_string(view["facts_path"].as_str().expect("a path")).expect("readable");
    assert!(!holds(&beside), "the facts: {beside}");
    // The new session in the same pane gets the document's text, without what it should not have held.
    let prompts = stage.prompts(&agent);
    let context = prompts.iter().find(|prompt| prompt.contains("<handoff-context>")).expect("a context");
    assert!(!holds(context) && context.contains("[REDACTED:"), "{context}");
}

#[test]
fn a_chain_of_handoffs_knows_its_generation_and_passes_rules_on() {
    let stage = Stage::new();
    let first = stage.agent("dev");
    let rule = "You must never force-push, said Mia.";
    let text = format!("---\ncheckpoint: step one\n---\n# Work\n\n## Rules\n\n- {rule}\n");
    let id = stage.hand_off_with(&first, &json!({"author": "provided", "document": {"text": text}}));
    let one = stage.until_step(&id, "done");
    assert_eq!((&one["generation"], &one["earlier"]), (&json!(1), &json!([])));
    let mut agent = one["successor_id"].as_str().expect("an id").to_owned();
    let mut earlier = vec![one["file_path"].clone()];
    for generation in 2..=3 {
        stage.until_idle(&agent);
        let id = stage.hand_off_with(&agent, &json!({}));
        let view = stage.until_step(&id, "done");
        assert_eq!(view["generation"], generation, "{view:#}");
        let paths: Vec<Value> =
            view["earlier"].as_array().expect("a list").iter().map(|earlier| earlier["file_path"].clone()).collect();
        assert_eq!(paths, earlier, "{view:#}");
        assert_eq!(view["earlier"][0]["checkpoint"], "step one");
        assert_eq!(view["facts"]["chain"]["rules"], json!([rule]), "{view:#}");
        agent = view["successor_id"].as_str().expect("an id").to_owned();
        earlier.push(view["file_path"].clone());
    }
    let briefing = stage.prompts(&agent);
    let briefing = briefing.iter().find(|prompt| prompt.starts_with("Here is your handoff")).expect("briefed");
    assert!(briefing.contains("This is handoff 3 of a chain."), "{briefing}");
}

#[test]
fn what_changes_after_the_record_is_said_at_the_briefing() {
    let stage = Stage::new();
    with_repository(&stage);
    let agent = stage.agent("dev");
    let id = stage.hand_off_with(&agent, &json!({}));
    stage.until("it is recorded", || stage.handoff_view(&id)["recorded_at"].is_string());
    fs::write(stage.work_dir().join("later.rs"), "fn later() {}\n").expect("written");
    git(&stage.work_dir(), &["add", "later.rs"]);
    git(&stage.work_dir(), &["commit", "-q", "-m", "later"]);
    let view = stage.until_step(&id, "done");
    assert!(view["drift"].to_string().contains("HEAD"), "{view:#}");
    let prompts = stage.prompts(view["successor_id"].as_str().expect("an id"));
    let briefing = prompts.iter().find(|prompt| prompt.starts_with("Here is your handoff")).expect("briefed");
    assert!(briefing.contains("Since the document was recorded"), "{briefing}");
}

#[test]
fn nobody_is_asked_to_repair_what_no_agent_has_written() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let [token, ..] = planted_keys();
    let text = format!("# Work\n\nPush with {token}.\n");
    let id = stage.hand_off_with(&agent, &json!({"author": "provided", "document": {"text": text}}));
    let view = stage.until_step(&id, "done");
    let found = ["sections", "size", "secrets"].map(str::to_owned);
    assert!(found.iter().all(|check| faults(&view).contains(check)) && reworks(&stage, &agent) == 0, "{view:#}");
    assert_eq!(view["warnings"].as_array().map(Vec::len), view["faults"].as_array().map(Vec::len), "{view:#}");
    assert!(!stage.steps_of(&id).contains(&"checking".to_owned()));
    let next = view["successor_id"].as_str().expect("an id").to_owned();
    stage.until_idle(&next);
    let id = stage.hand_off_with(&next, &json!({"author": "salvage", "review": true}));
    stage.until("it waits for a person", || stage.handoff_view(&id)["held_since"].is_string());
    let refused = stage.refused(&json!({"kind": "handoff_rework", "handoff_id": id, "note": "more"}));
    assert_eq!((refused.0, refused.1.as_str()), (409, "not_checking"));
    stage.granted(&json!({"kind": "handoff_accept", "handoff_id": id}));
    stage.until_step(&id, "done");
}

#[test]
fn a_document_that_no_agent_has_written_is_held_for_its_faults_too() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let text = format!("# H\n```\nno sections, and a fence that never closes\n{}\n", "x".repeat(70_000));
    let asked = json!({"author": "provided", "check": "hold", "document": {"text": text}});
    let id = stage.hand_off_with(&agent, &asked);
    stage.until("it waits for a person", || stage.handoff_view(&id)["held_since"].is_string());
    let found = faults(&stage.handoff_view(&id));
    assert!(["sections", "size", "whole"].iter().all(|check| found.iter().any(|found| found == check)), "{found:?}");
    stage.granted(&json!({"kind": "handoff_accept", "handoff_id": id}));
    let view = stage.until_step(&id, "done");
    assert!(view["warnings"].to_string().contains("no section about next steps"), "{view:#}");
}

/// The agent is asked to repair its document, and leaves an empty one: what it wrote before is not lost.
#[test]
fn a_document_that_is_emptied_when_it_is_to_be_repaired_is_put_back() {
    for author in ["agent_file", "agent_reply"] {
        let stage = Stage::new();
        let agent = stage.agent("dev");
        let id = stage.hand_off_with(&agent, &json!({"review": true, "author": author}));
        stage.until("it waits for a person", || stage.handoff_view(&id)["held_since"].is_string());
        let path = stage.handoff_view(&id)["file_path"].as_str().expect("a path").to_owned();
        let first = fs::read_to_string(&path).expect("readable");
        stage.faults(if author == "agent_file" { "write_empty" } else { "empty_answer" });
        stage.granted(&json!({"kind": "handoff_rework", "handoff_id": id, "note": "say more"}));
        stage.until("it waits again", || {
            let view = stage.handoff_view(&id);
            view["reworks"] == 1 && view["held_since"].is_string() || view["step"] == "failed"
        });
        let view = stage.handoff_view(&id);
        assert_eq!(
            (&view["step"], fs::read_to_string(&path).expect("readable")),
            (&json!("checking"), first),
            "{view:#}"
        );
        assert!(view["warnings"].to_string().contains("tasuki kept the one before"), "{view:#}");
        stage.granted(&json!({"kind": "handoff_accept", "handoff_id": id}));
        stage.until_step(&id, "done");
    }
}

/// The limit of the step is the agent's: it begins when the agent is asked. What was not typed is not counted.
#[test]
fn a_rework_that_waits_for_the_agents_turn_has_asked_nobody() {
    let stage = Stage::with_config("[limits]\nchecking = \"2s\"\n");
    let agent = stage.agent("dev");
    let id = stage.hand_off_with(&agent, &json!({"review": true}));
    stage.until("it waits for a person", || stage.handoff_view(&id)["held_since"].is_string());
    stage.faults("never_stops");
    let pane = stage.agent_view(&agent)["pane"].as_str().expect("a pane").to_owned();
    stage.tmux(&["send-keys", "-t", &pane, "Think about it.", "Enter"]);
    stage.until("the agent is busy", || stage.agent_view(&agent)["state"] == "busy");
    stage.granted(&json!({"kind": "handoff_rework", "handoff_id": id, "note": "say more"}));
    let view = stage.until_step(&id, "failed");
    assert_eq!((&view["error"]["code"], &view["reworks"]), (&json!("stop_never_came"), &json!(0)), "{view:#}");
    assert!(view["error"]["message"].as_str().is_some_and(|said| said.contains("could not ask it")), "{view:#}");
}

/// An agent that has ended takes its environment with it; what is a credential there stays one.
#[test]
fn a_value_of_the_environment_is_found_also_after_the_agent_has_ended() {
    let stage = Stage::new();
    let value = "corr3ct-Horse_77x";
    stage.tmux(&["set-environment", "-g", "MY_API_KEY", value]);
    let agent = stage.agent("dev");
    for pid in stage.processes(&agent) {
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it runs");
    }
    stage.until("it has ended", || stage.agent_view(&agent)["ended_at"].is_string());
    let text = format!("Used {value} here.\n");
    let id = stage.hand_off_with(&agent, &json!({"author": "provided", "document": {"text": text}}));
    let view = stage.until_step(&id, "done");
    assert!(faults(&view).contains(&"secrets".to_owned()), "{view:#}");
    assert!(!view.to_string().contains(value), "{view:#}");
}
