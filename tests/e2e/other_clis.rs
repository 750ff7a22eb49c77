//! Handoffs to a successor on another CLI, or with another model.

use super::support::stage::Stage;
use serde_json::json;
use std::fs;

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
    fs::read(format!("/proc/{pid}/cmdline"))
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .unwrap_or_default()
}
