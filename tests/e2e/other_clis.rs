//! Handoffs to a successor on another CLI, or with another model.

use super::support::processes;
use super::support::stage::Stage;
use serde_json::json;
use std::fs;
use std::path::PathBuf;

#[test]
fn a_successor_can_have_another_profile_and_model() {
    let stage = Stage::without_sidecar("");
    let profiles = stage.home().join("data/profiles");
    fs::create_dir_all(&profiles).expect("a folder");
    fs::write(profiles.join("second.toml"), include_str!("../../data/profiles/demo.toml")).expect("written");
    stage.start_sidecar();
    let agent = stage.agent("dev");
    let persona = stage.home().join("data/personas/dev/persona.toml");
    fs::write(&persona, "fallbacks = [{ profile = \"second\", model = \"m2\" }]\n").expect("written");
    let first = stage.hand_off_with(&agent, &json!({"model": "provider/m1[1m]"}));
    let view = stage.until_step(&first, "done");
    let second = view["successor_id"].as_str().expect("a successor").to_owned();
    assert_eq!((&view["successor_profile"], &view["successor_model"]), (&json!("demo"), &json!("provider/m1[1m]")));
    assert_eq!(stage.agent_view(&second)["model"], "provider/m1[1m]");
    let words = |agent: &str| stage.processes(agent).iter().map(|pid| command_line(*pid)).collect::<String>();
    assert!(words(&second).contains("demo-agent --model provider/m1[1m]"), "{}", words(&second));
    let next = stage.hand_off_with(&second, &json!({"profile": "second"}));
    let view = stage.until_step(&next, "done");
    let third = view["successor_id"].as_str().expect("a successor");
    assert_eq!((&view["successor_profile"], &view["successor_model"]), (&json!("second"), &json!("m2")));
    let seen = stage.agent_view(third);
    assert_eq!(
        (&seen["profile"], &seen["model"], &seen["previous_agent_id"]),
        (&json!("second"), &json!("m2"), &json!(second))
    );
    assert!(words(third).contains("demo-agent --model m2"), "{}", words(third));
    stage.check_once();
}

/// The arguments of a process, with blanks between.
fn command_line(pid: i32) -> String {
    u32::try_from(pid).map(|pid| processes::words(pid).join(" ")).unwrap_or_default()
}

/// Seconds since 1970.
fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs()
}

/// A stage on which the work of an agent at a usage limit goes to the profile `second`, and the file in which notices
/// arrive. The agent has answered one text, so that its transcript holds a conversation.
fn handed_off_at_a_limit() -> (Stage, String, PathBuf) {
    let stage = Stage::without_sidecar("");
    let told = stage.work_dir().join("told");
    let command = format!("command = [\"/bin/sh\", \"-c\", 'cat >>\"$0\"', \"{}\"]", told.display());
    let config = format!("[limits]\non_usage_limit = \"hand_off\"\n[notify]\n{command}\n");
    fs::write(stage.home().join("config.toml"), config).expect("a configuration");
    let profiles = stage.home().join("data/profiles");
    fs::create_dir_all(&profiles).expect("a folder");
    let demo = include_str!("../../data/profiles/demo.toml");
    let absent = demo.replace("\"{program}\", \"demo-agent\"", "\"no-such-cli\"");
    assert_ne!(absent, demo);
    for (name, profile) in [("second", demo), ("third", demo), ("absent", &absent)] {
        fs::write(profiles.join(format!("{name}.toml")), profile).expect("written");
    }
    stage.start_sidecar();
    let agent = stage.agent("dev");
    let persona = stage.home().join("data/personas/dev/persona.toml");
    let fallbacks = "fallbacks = [{ profile = \"demo\" }, { profile = \"absent\" }, { profile = \"second\" }]\n";
    fs::write(&persona, fallbacks).expect("written");
    stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": "Remember the number 41."}));
    stage.until("it has answered", || stage.agent_view(&agent)["state"] == "idle");
    (stage, agent, told)
}

/// The limit is found in the turn in which the document was to be written. By then the failed handoff is history.
#[test]
fn a_handoff_that_a_usage_limit_has_failed_is_followed_by_one_to_the_fallback() {
    let (stage, agent, told) = handed_off_at_a_limit();
    stage.faults(&format!("{agent}: usage_limit={}", now() + 7_200));
    let failed = stage.hand_off(&agent);
    stage.until_failed(&failed, "writing", "agent_failed");
    stage.until("another one has begun", || stage.agent_view(&agent)["handoff_id"].is_string());
    let next = stage.agent_view(&agent)["handoff_id"].as_str().expect("an id").to_owned();
    let view = stage.until_step(&next, "done");
    let how = [&view["author"], &view["reason"], &view["successor_profile"]];
    assert_eq!(how, [&json!("salvage"), &json!("usage_limit"), &json!("second")]);
    let is_told = fs::read_to_string(&told).is_ok_and(|told| told.contains("hands its work off to second"));
    assert!(is_told && next != failed, "{}", stage.story());
    stage.check_once();
}

#[test]
fn an_agent_at_its_usage_limit_is_shown_and_told_of_and_its_work_goes_to_the_fallback_that_is_left() {
    let (stage, agent, told) = handed_off_at_a_limit();
    let until = now() + 7_200;
    stage.faults(&format!("usage_limit={until}"));
    stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": "Continue."}));
    stage.until("its limit is shown", || stage.agent_view(&agent)["limited"]["kind"] == "usage_limit");
    stage.faults("");
    let limited = stage.agent_view(&agent)["limited"].clone();
    let ends = chrono::DateTime::parse_from_rfc3339(limited["until"].as_str().expect("a time")).expect("a time");
    assert_eq!(u64::try_from(ends.timestamp()).expect("after 1970"), until, "{limited}");
    assert!(limited["said"].as_str().is_some_and(|said| said.starts_with("Usage limit reached")), "{limited}");
    stage.until("its handoff has begun", || !stage.agent_view(&agent)["handoff_id"].is_null());
    let id = stage.agent_view(&agent)["handoff_id"].as_str().expect("an id").to_owned();
    let view = stage.until_step(&id, "done");
    assert_eq!((&view["author"], &view["reason"]), (&json!("salvage"), &json!("usage_limit")));
    assert_eq!(view["successor_profile"], "second", "the first is used up, the second is not installed");
    let lines = stage.journal();
    let limits = lines.iter().filter(|line| line["type"] == "agent.limited").count();
    assert_eq!(limits, 1, "{lines:?}");
    // The successor reaches its limit too: nothing is left, so nothing is handed off.
    let second = view["successor_id"].as_str().expect("a successor").to_owned();
    stage.until("it is free", || stage.agent_view(&second)["state"] == "idle");
    stage.faults(&format!("usage_limit={until}"));
    stage.granted(&json!({"kind": "agent_send", "agent_id": second, "text": "Continue."}));
    stage.until("its limit is shown", || !stage.agent_view(&second)["limited"].is_null());
    let is_told = |what: &str| fs::read_to_string(&told).is_ok_and(|told| told.contains(what));
    stage.until("the limit has led to nothing", || is_told("absent can't be started: no-such-cli is not installed"));
    assert!(is_told("\"code\":\"agent_limited\"") && is_told("hands its work off to second"));
    assert!(stage.agent_view(&second)["handoff_id"].is_null());
    stage.check_once();
}
