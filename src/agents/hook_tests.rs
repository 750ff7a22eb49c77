//! The hook command, piece by piece.

use super::*;
use crate::agents::hook_format::HookRule;

const AGENT: &str = "6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa";

fn told(options: &[&str], input: &[u8]) -> Option<Value> {
    let options = HookOptions::parse(options.iter().map(OsString::from));
    let env = |name: &str| match name {
        "TASUKI_AGENT_ID" => Some(AGENT.to_owned()),
        "TMUX_PANE" => Some("%3".to_owned()),
        "TMUX" => Some("/tmp/tmux-0/default,12,0".to_owned()),
        "TASUKI_PERSONA" => Some("dev".to_owned()),
        _ => None,
    };
    event(&options, Path::new("/nowhere"), input, &HookTime { boot_ns: 1, wall_ms: 0 }, &env)
}

/// serde's own words speak of an enum of ours.
#[test]
fn a_mistyped_event_is_refused_with_the_words_that_are_allowed() {
    let wrong = |text: &str| toml::from_str::<HookRule>(text).expect_err("refused").to_string();
    let said = wrong("name = \"Stop\"\nevent = \"stopped\"\n");
    let all = "must be session_start, prompt_submit, stop, stop_failure, interrupted, blocked, notification, context, \
               session_end or ignore";
    assert!(said.contains(all), "{said}");
}

#[test]
fn an_event_has_every_field_of_the_contract() {
    let input = br#"{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt_id":"p","prompt":"hi","transcript_path":"/t"}"#;
    let event = told(&["claude"], input).expect("mapped");
    for (key, value) in [
        ("v", json!(1)),
        ("event", json!("prompt_submit")),
        ("agent_id", json!(AGENT)),
        ("pane", json!("%3")),
        ("tmux", json!("/tmp/tmux-0/default,12,0")),
        ("profile", json!("claude")),
        ("at", json!("1970-01-01T00:00:00.000Z")),
        ("text", json!("hi")),
        ("session_id", json!("s")),
        ("turn_id", json!("p")),
        ("transcript_path", json!("/t")),
        ("persona_slug", json!("dev")),
    ] {
        assert_eq!(event[key], value, "{key}");
    }
    assert_eq!(event["payload"]["prompt"], "hi");
    assert!(event["ancestors"].as_array().is_some_and(|list| !list.is_empty()));
}

#[test]
fn the_sidecar_can_read_every_event_of_the_hook() {
    let profiles = super::super::Profiles::load(None).expect("built in");
    let long = "word ".repeat(20_000);
    for payload in [
        json!({"hook_event_name":"SessionStart","source":"clear","session_id":"s"}),
        json!({"hook_event_name":"UserPromptSubmit","prompt":long}),
        json!({"hook_event_name":"Stop","background_tasks":[1],"last_assistant_message":"done"}),
        json!({"hook_event_name":"Unknown"}),
    ] {
        let event = told(&["demo"], payload.to_string().as_bytes()).expect("an event");
        super::super::read_event(event.to_string().as_bytes(), &profiles).expect("readable");
    }
}

#[test]
fn malformed_and_missing_input_leave_a_notification_that_says_so() {
    for (input, words) in [
        (&b""[..], "missing"),
        (b"\n \n", "missing"),
        (b"{\"a\":", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"\xff\xfe", "not JSON"),
        (b"{}", "names no event"),
    ] {
        let event = told(&["claude"], input).expect("an event");
        assert_eq!(event["event"], "notification", "{words}");
        assert!(event["message"].as_str().is_some_and(|text| text.contains(words)), "{event}");
    }
}

#[test]
fn a_stop_stays_a_stop_even_when_its_json_is_cut_off_or_too_long() {
    let cut = br#"{"session_id":"s","hook_event_name":"Stop","last_assistant_message":"never clo"#;
    assert_eq!(told(&["claude"], cut).expect("an event")["event"], "stop");
    let long = json!({"hook_event_name":"Stop","last_assistant_message":"x".repeat(MAX_INPUT)}).to_string();
    let event = told(&["claude"], long.as_bytes()).expect("an event");
    assert_eq!(event["event"], "stop");
    assert!(event["message"].as_str().is_some_and(|text| text.contains("1 MiB")));
}

#[test]
fn the_name_of_the_event_may_come_as_an_argument() {
    let event = told(&["claude", "--event", "Stop"], b"{}").expect("an event");
    assert_eq!(event["event"], "stop");
}

#[test]
fn an_unknown_profile_or_event_is_told_and_an_ignored_one_is_not() {
    for (profile, input) in [("nobody", "{}"), ("../x", "{}"), ("claude", r#"{"hook_event_name":"Strange"}"#)] {
        let event = told(&[profile], input.as_bytes()).expect("an event");
        assert_eq!(event["event"], "notification");
        assert!(event["message"].is_string());
    }
    assert_eq!(told(&["claude"], br#"{"hook_event_name":"SubagentStop"}"#), None);
}

#[test]
fn large_payloads_and_prompts_stay_within_their_bounds() {
    let prompt = "p ".repeat(200_000);
    let event = told(&["claude"], json!({"hook_event_name":"UserPromptSubmit","prompt":prompt}).to_string().as_bytes());
    let event = event.expect("an event");
    assert!(event.to_string().len() < MAX_PAYLOAD + 2 * MAX_TEXT);
    assert!(event["text"].as_str().is_some_and(|text| text.len() <= MAX_TEXT));
}

#[test]
fn ids_from_the_environment_are_checked() {
    let options = HookOptions::parse(["claude"].iter().map(OsString::from));
    let hook_time = HookTime { boot_ns: 1, wall_ms: 0 };
    let nonsense = |_: &str| Some("../../etc".to_owned());
    let event = event(&options, Path::new("/nowhere"), br#"{"hook_event_name":"Stop"}"#, &hook_time, &nonsense);
    let event = event.expect("an event");
    assert!(event["agent_id"].is_null() && event["pane"].is_null() && event.get("persona_slug").is_none());
}

#[test]
fn a_probe_is_known_by_its_own_member_and_lands_where_the_sidecar_never_reads() {
    let id = "5d0c0a52-1f0e-4d5b-9a57-2f64c1f6f0aa";
    let input = json!({"hook_event_name": "Stop", PROBE: id}).to_string();
    let found = probe(input.as_bytes()).expect("a probe");
    assert_eq!(probe_name(&found), format!(".probe-{id}.json"));
    assert!(is_probe(OsStr::new(&probe_name(&found))) && !is_probe(OsStr::new("probe-x.json")));
    for other in [json!({"hook_event_name": "Stop"}), json!({PROBE: "../../x"}), json!({PROBE: 1})] {
        assert_eq!(probe(other.to_string().as_bytes()), None);
    }
    assert_eq!(probe(json!({PROBE: id, "text": "x".repeat(MAX_PROBE)}).to_string().as_bytes()), None);
}

#[test]
fn the_lines_of_the_hooks_tables_say_all_that_the_profile_says_of_hooks() {
    for (name, profile) in BUILT_IN {
        let hooks = |text: &str| format!("{:?}", toml::from_str::<HooksOnly>(text).expect(name).hooks);
        assert_eq!(hooks(&hooks_tables(profile)), hooks(profile), "{name}");
        assert!(hooks_tables(profile).len() * 2 < profile.len(), "{name}: less is read");
    }
}
