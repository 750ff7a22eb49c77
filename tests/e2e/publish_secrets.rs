//! A document that holds a credential is not published until the operator says how.

use super::publish::{ISSUE, Play};
use super::support::stage::Stage;
use super::support::stage_files::{holding_keys, planted_keys, shown_keys};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;

/// Two keys.
fn keys() -> [String; 2] {
    let [one, other, ..] = planted_keys();
    [one, other]
}

fn document() -> String {
    let [one, other] = keys();
    format!("# Work\n\nThe tests need {one}.\n\nPush with {other} as password.\n")
}

/// A handoff whose publishing is held.
fn held(play: &Play) -> (String, Value) {
    let id = play.hand_off(&document(), &json!({"issue": ISSUE}));
    let view = play.until(&id, "held");
    (id, view)
}

#[test]
fn a_document_with_credentials_is_held_and_nobody_is_shown_more_than_their_ends() {
    let Some(play) = Play::new() else { return };
    let (id, view) = held(&play);
    let error = &view["publish"]["error"];
    assert_eq!(error["code"], "secrets_found", "{view:#}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("line 3 github-pat (…UoXi), line 5 gitlab-pat (…2gSh)"), "{message}");
    assert!(error["hint"].as_str().expect("a hint").contains("--redacted"), "{error}");
    assert_eq!(view["publish"]["copy_path"], Value::Null, "{view:#}");
    play.never_two(0, 0);
    // Asked for without a decision, it stays held.
    let answer = play.stage.ask(&json!({"kind": "publish", "handoff_id": id}));
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(409), &json!("secrets_found")), "{answer}");
    play.stage.until_step(&id, "done");
    let home = play.stage.home();
    for folder in ["spool/errors", "spool/results"] {
        assert_eq!(holding_keys(&home.join(folder)), [] as [&str; 0]);
    }
    let journal = fs::read_to_string(home.join("spool/journal.jsonl")).expect("a journal");
    let log = fs::read_to_string(play.stage.log_file()).expect("a log");
    for key in keys() {
        assert!(!journal.contains(&key) && !log.contains(&key), "{key}");
    }
}

#[test]
fn the_operator_publishes_it_redacted_or_as_it_is() {
    let Some(play) = Play::new() else { return };
    let (id, _) = held(&play);
    play.stage.granted(&json!({"kind": "publish", "handoff_id": id, "as": "redacted"}));
    let view = play.until(&id, "published");
    let comments = play.github.comments();
    assert!(comments[0].contains("The tests need [REDACTED:github-pat]."), "{comments:?}");
    assert!(comments[0].contains("Push with [REDACTED:gitlab-pat] as password."), "{comments:?}");
    let copy = fs::read_to_string(view["publish"]["copy_path"].as_str().expect("a copy")).expect("readable");
    assert!(keys().iter().all(|key| !copy.contains(key)), "{copy}");
    let told = play.stage.journal();
    let last = told.iter().rev().find(|line| line["type"] == "publish").expect("a line");
    assert_eq!((&last["state"], &last["as"]), (&json!("published"), &json!("redacted")));
    let answer = play.stage.ask(&json!({"kind": "publish", "handoff_id": id, "as": "as_is"}));
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(409), &json!("not_held")), "{answer}");
    play.never_two(1, 0);

    let Some(play) = Play::new() else { return };
    let (id, _) = held(&play);
    play.github.may_hold_keys();
    let output = play.github.command(&play.stage, &["publish", &id, "--as-is", "--wait"]).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let comments = play.github.comments();
    assert!(keys().iter().all(|key| comments[0].contains(key)), "{comments:?}");
    let told = play.stage.journal();
    assert!(told.iter().any(|line| line["type"] == "publish" && line["as"] == "as_is"), "{told:?}");
}

#[test]
fn what_the_operator_allows_is_published_without_a_question() {
    let allow = "[publish]\nallow = [\"^ghp_\", \"^glpat-\"]\n";
    let Some(play) = Play::with_config(allow) else { return };
    // Keys of its own, because those that every test searches for may be shown here too.
    let allowed = keys().iter().fold(document(), |text, key| {
        let (prefix, rest) = key.split_at(if key.starts_with("ghp_") { 4 } else { 6 });
        text.replace(key, &format!("{prefix}{}", rest.chars().rev().collect::<String>()))
    });
    let id = play.hand_off(&allowed, &json!({"issue": ISSUE}));
    play.until(&id, "published");
    play.never_two(1, 0);
}

#[test]
fn a_value_of_the_agents_environment_stays_out_also_after_the_agent_has_ended() {
    let Some(play) = Play::new() else { return };
    let value = "corr3ct-Horse_77x";
    play.stage.tmux(&["set-environment", "-g", "MY_API_KEY", value]);
    let agent = play.stage.agent("second");
    // Its successor, which lives on, does not have it.
    play.stage.tmux(&["set-environment", "-g", "-u", "MY_API_KEY"]);
    let id = play.stage.hand_off_with(
        &agent,
        &json!({"author": "provided", "document": {"text": format!("Used {value} here.\n")}, "publish": {"issue": ISSUE}}),
    );
    play.until(&id, "held");
    play.stage.until_step(&id, "done");
    // A sidecar that was there before keeps the environments that it has read.
    play.stage.end_sidecar(Signal::SIGKILL);
    play.github.start_sidecar(&play.stage);
    play.stage.granted(&json!({"kind": "publish", "handoff_id": id, "as": "redacted"}));
    play.until(&id, "published");
    let comments = play.github.comments();
    assert!(comments[0].contains("Used [REDACTED:environment:MY_API_KEY] here."), "{comments:?}");
}

/// An agent that ended before the sidecar started: nobody can read its environment any more.
#[test]
fn a_document_that_cant_be_searched_for_the_agents_environment_is_held() {
    let Some(play) = Play::new() else { return };
    let value = "corr3ct-Horse_77x";
    play.stage.tmux(&["set-environment", "-g", "MY_API_KEY", value]);
    let agent = play.stage.agent("second");
    for pid in play.stage.processes(&agent) {
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it runs");
    }
    play.stage.until("it has ended", || play.stage.agent_view(&agent)["ended_at"].is_string());
    play.stage.end_sidecar(Signal::SIGKILL);
    play.github.start_sidecar(&play.stage);
    // A key that is none of the planted ones.
    let [key, _] = keys();
    let key = format!("ghp_{}", key.trim_start_matches("ghp_").chars().rev().collect::<String>());
    let document = json!({"text": format!("Used {value} here, and {key}.\n")});
    let id = play
        .stage
        .hand_off_with(&agent, &json!({"author": "provided", "document": document, "publish": {"issue": ISSUE}}));
    let view = play.until(&id, "held");
    let error = &view["publish"]["error"];
    assert_eq!(error["code"], "secrets_found", "{view:#}");
    assert!(error["message"].as_str().is_some_and(|said| said.contains("was not searched for the values")), "{error}");
    assert!(error["hint"].as_str().is_some_and(|said| said.contains("--as-is")), "{error}");
    assert!(!view.to_string().contains(value), "{view:#}");
    play.never_two(0, 0);
    // What nobody knows can't be taken out.
    let answer = play.stage.ask(&json!({"kind": "publish", "handoff_id": id, "as": "redacted"}));
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(409), &json!("secrets_found")), "{answer}");
    play.stage.granted(&json!({"kind": "publish", "handoff_id": id, "as": "as_is"}));
    play.until(&id, "published");
    play.never_two(1, 0);
    // At another place the same holds, although the search has found the key.
    for more in [json!({}), json!({"as": "redacted"})] {
        let mut elsewhere = json!({"kind": "publish", "handoff_id": id, "to": {"gist": true}});
        elsewhere.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        let answer = play.stage.ask(&elsewhere);
        let error = play.until(&id, "held")["publish"]["error"].clone();
        assert!(
            error["message"].as_str().is_some_and(|said| said.contains("was not searched for the values")),
            "{error}"
        );
        assert!(error["hint"].as_str().is_some_and(|said| !said.contains("--redacted")), "{error} {answer}");
    }
    play.never_two(1, 0);
}

/// `POSTGRES_PASSWORD=postgres`: what people and agents say keeps the word. Only what is published is searched for it.
#[test]
fn a_value_that_is_a_word_of_any_text_holds_only_the_publishing() {
    let Some(play) = Play::new() else { return };
    play.stage.tmux(&["set-environment", "-g", "POSTGRES_PASSWORD", "postgres"]);
    let agent = play.stage.agent("second");
    play.stage.tmux(&["set-environment", "-gu", "POSTGRES_PASSWORD"]);
    let text = "# Work\n\nThe login is postgres.\n";
    let asked = json!({"author": "provided", "document": {"text": text}, "focus": "the postgresql migration of postgres",
        "publish": {"issue": ISSUE}});
    let id = play.stage.hand_off_with(&agent, &asked);
    let view = play.until(&id, "held");
    let said = view["publish"]["error"]["message"].as_str().unwrap_or_default();
    assert!(said.contains("environment:POSTGRES_PASSWORD"), "{view:#}");
    let done = play.stage.until_step(&id, "done");
    assert_eq!(done["focus"], asked["focus"], "{done:#}");
    assert!(
        done["faults"].as_array().is_none_or(|faults| faults.iter().all(|fault| fault["check"] != "secrets")),
        "{done:#}"
    );
    play.never_two(0, 0);
}

/// The values of a predecessor's environment stay credentials in the documents after it.
#[test]
fn a_value_of_a_predecessors_environment_stays_out_of_what_follows() {
    let Some(play) = Play::new() else { return };
    let value = "corr3ct-Horse_77x";
    play.stage.tmux(&["set-environment", "-g", "MY_PASSWORD", value]);
    let agent = play.stage.agent("second");
    play.stage.tmux(&["set-environment", "-gu", "MY_PASSWORD"]);
    let provided = |text: String| json!({"author": "provided", "document": {"text": text}});
    let first =
        play.stage.hand_off_with(&agent, &provided(format!("# Work\n\n## Rules\n\nAlways log in with {value}.\n")));
    let successor = play.stage.until_step(&first, "done")["successor_id"].as_str().expect("a successor").to_owned();
    play.stage.until_idle(&successor);
    let mut asked = provided(format!("# Work\n\nThe login is {value}.\n"));
    asked["publish"] = json!({"issue": ISSUE});
    asked["reason"] = json!(format!("rotate {value}"));
    let second = play.stage.hand_off_with(&successor, &asked);
    let view = play.until(&second, "held");
    assert!(!view.to_string().contains(value), "{view:#}");
    let done = play.stage.until_step(&second, "done");
    assert!(!done.to_string().contains(value), "{done:#}");
    play.never_two(0, 0);
}

/// What briefings, notices and views say of work items.
#[test]
fn a_credential_in_a_title_or_a_reason_of_a_work_item_is_shown_to_nobody() {
    let stage = Stage::new();
    let (sm, dev) = (stage.clerk(1, "sm", "scrum_master"), stage.clerk(2, "dev", "developer"));
    let [key, _] = keys();
    let prd = stage.item_of("prd", &format!("Plan with {key}"));
    stage.claim(&prd, &sm);
    let children = json!([{"type": "story", "title": format!("Log in with {key}")}]);
    let story = stage.complete(&prd, &sm, &json!({"stories": [1]}), &children).remove(0);
    assert_eq!(stage.item(&story)["title"], "Log in with [REDACTED:github-pat]");
    for kind in ["work_release", "work_escalate"] {
        stage.claim(&story, &dev);
        stage.granted(&json!({"kind": kind, "item_id": story, "agent_id": dev, "reason": format!("{key} is refused")}));
    }
    assert_eq!(stage.item(&story)["escalation_reason"], "[REDACTED:github-pat] is refused");
    let imported = json!({"type": "story", "title": format!("Rotate {key}")});
    stage.granted(&json!({"kind": "work_import", "items": [imported]}));
    assert_eq!(shown_keys(&stage.home()), [] as [&str; 0]);
}
