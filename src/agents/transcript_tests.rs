//! Transcripts as each CLI writes them, and broken ones.

use super::super::testing::{is_whole_or_gone, profile, token, user, without_rules, written};
use super::super::transcript_file::MAX_LINE;
use super::*;
use serde_json::json;

fn read_as(name: &str, lines: &str) -> Transcript {
    read(&profile(name), written(lines).path()).expect("read")
}

fn demo(lines: &[Value]) -> Transcript {
    read_as("demo", &lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

fn agent(id: &str, block: &Value) -> Value {
    json!({"type":"assistant","message":{"id":id,"content":[block]}})
}

fn text(text: &str) -> Value {
    json!({"type":"text","text":text})
}

const PROMPT: &str = "\nwith the goal, the state and the next steps.\nThen stop.";

/// A turn with a tool, as each CLI has written it: prompt, tool, result, answer.
#[test]
fn a_real_turn_of_each_cli_is_read() {
    let cases = [
        ("claude", include_str!("../../tests/transcripts/claude/turn.jsonl"), 13_793, Some(1_000_000), 3),
        ("codex", include_str!("../../tests/transcripts/codex/turn.jsonl"), 12_311, Some(190_000), 2),
        ("pi", include_str!("../../tests/transcripts/pi/turn.jsonl"), 1_570, None, 3),
    ];
    for (name, lines, used, window, messages) in cases {
        let found = read_as(name, lines);
        assert_eq!(found.said.len(), 2, "{name}: {:?}", found.said);
        assert!(found.said[0].role == Role::User && found.said[0].text.ends_with(PROMPT), "{name}");
        assert!(found.last_reply().is_some_and(|text| text.starts_with("HANDOFF WRITTEN /home/me/")), "{name}");
        assert_eq!(found.context, Some(ContextUsage { used, window }), "{name}");
        assert_eq!((found.messages, found.cut, found.window_is_guess), (messages, false, name == "claude"), "{name}");
        let usage = read_context_usage(&profile(name), written(lines).path()).expect("read");
        assert_eq!(usage, Some((ContextUsage { used, window }, name == "claude")), "{name}");
    }
}

#[test]
fn lines_with_one_id_are_one_message_though_a_result_stands_between() {
    let found = demo(&[
        user("go"),
        agent("m1", &json!({"type":"thinking","thinking":"hm"})),
        agent("m1", &text("one")),
        agent("m1", &json!({"type":"tool_use"})),
        json!({"type":"user","message":{"content":[{"type":"tool_result","content":"ok"}]}}),
        agent("m1", &text("two")),
        agent("m2", &text("three")),
    ]);
    let texts: Vec<&str> = found.said.iter().map(|said| said.text.as_str()).collect();
    assert_eq!(texts, ["go", "one\ntwo", "three"]);
    assert_eq!(found.messages, 3);
    assert_eq!(found.last_reply(), Some("three"));
}

#[test]
fn a_reply_counts_only_after_the_last_prompt_and_once_it_has_text() {
    let mut lines = vec![user("first"), agent("m1", &text("old"))];
    assert_eq!(demo(&lines).last_reply(), Some("old"));
    lines.push(user("second"));
    assert_eq!(demo(&lines).last_reply(), None);
    lines.push(agent("m2", &text("I'll look")));
    lines.push(agent("m3", &json!({"type":"thinking","thinking":"hm"})));
    assert_eq!(demo(&lines).last_reply(), None);
    lines.push(agent("m3", &text("new")));
    assert_eq!(demo(&lines).last_reply(), Some("new"));
}

#[test]
fn texts_that_the_cli_adds_to_a_message_are_left_out() {
    let found = read_as(
        "claude",
        &[
            json!({"type":"user","isMeta":true,"message":{"content":"Caveat: …"}}),
            json!({"type":"user","message":{"content":"<command-name>/clear</command-name>"}}),
            json!({"type":"user","message":{"content":[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":"mine"}]}}),
            json!({"type":"assistant","isSidechain":true,"message":{"id":"s","content":[{"type":"text","text":"sub"}],"usage":{"input_tokens":9}}}),
            json!({"type":"assistant","isApiErrorMessage":true,"message":{"id":"e","model":"<synthetic>","content":[{"type":"text","text":"API Error"}]}}),
        ]
        .iter()
        .map(|line| format!("{line}\n"))
        .collect::<String>(),
    );
    assert_eq!(found.said, [TranscriptMessage { role: Role::User, id: None, text: "mine".to_owned() }]);
    assert_eq!((found.messages, found.context), (1, None));
}

#[test]
fn unreadable_lines_are_skipped() {
    let long = agent("m0", &text(&"x".repeat(MAX_LINE)));
    let deep = "[".repeat(100_000);
    let lines =
        format!("\n\u{0}\u{1}\nnull\n[1]\n{{\"type\":\"user\"\n{deep}\n{long}\n{}\n{{\"type\":\"assi", user("hi"));
    let found = read_as("demo", &lines);
    assert_eq!((found.said.len(), found.messages), (1, 1));
}

#[test]
fn only_the_tail_of_a_long_transcript_is_read() {
    let filler = format!("{}\n", user(&"y".repeat(1000)));
    let count = usize::try_from(MAX_READ).expect("small") / filler.len() + 10;
    let lines = filler.repeat(count) + &agent("m", &text("end")).to_string();
    let found = read_as("demo", &lines);
    assert!(found.cut && found.said.len() < count && found.said.len() > count - 20);
    assert!(found.said.iter().all(|said| said.text.len() == 1000 || said.text == "end"));
    assert_eq!(found.last_reply(), Some("end"));
}

#[test]
fn a_link_a_pipe_a_folder_and_a_missing_file_are_refused_at_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("real"), "").expect("written");
    std::os::unix::fs::symlink(at("real"), at("link")).expect("linked");
    nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    let demo = profile("demo");
    assert!(read(&demo, &at("real")).is_ok());
    for name in ["link", "pipe", "."] {
        let error = read(&demo, &at(name)).expect_err("refused");
        assert!(matches!(error, TranscriptError::Unfit { .. }) && !error.is_missing(), "{error}");
    }
    assert!(read(&demo, &at("none")).expect_err("refused").is_missing());
    assert!(read(&demo, Path::new("real")).is_err());
    assert!(matches!(read(&without_rules(), &at("real")), Err(TranscriptError::NoRules { .. })));
}

#[test]
fn the_last_line_with_tokens_counts_and_the_model_gives_the_window() {
    let line = |model: &str, used: u64| json!({"type":"assistant","message":{"id":"m","model":model,"content":"x","usage":{"input_tokens":used,"cache_read_input_tokens":5}}});
    let usage =
        |lines: &[Value]| read_as("claude", &lines.iter().map(|line| format!("{line}\n")).collect::<String>()).context;
    assert_eq!(usage(&[line("x[1m]", 10)]), Some(ContextUsage { used: 15, window: Some(1_000_000) }));
    assert_eq!(usage(&[line("claude-opus-4-1", 10)]).and_then(|usage| usage.window), Some(200_000));
    assert_eq!(usage(&[line("claude-opus-4-1", 300_000)]).map(|usage| usage.window), Some(None));
    assert_eq!(usage(&[line("x", 10), json!({"type":"assistant","message":{}})]).map(|usage| usage.used), Some(15));
}

#[test]
fn a_salvage_holds_the_latest_messages_that_fit() {
    let mut lines: Vec<Value> = (0..50).map(|n| user(&format!("message {n}"))).collect();
    lines.push(agent("m", &text("the ```` end\u{1b}[31m\n```\n# not a heading\n~~~")));
    let salvage = demo(&lines).salvage(400);
    assert!(salvage.len() <= 400 && salvage.ends_with("~~~\n~~~~\n\n"), "{salvage}");
    assert!(salvage.contains("### Agent\n\n~~~~text\nthe ```` end[31m\n"), "{salvage}");
    assert!(salvage.starts_with("### User\n\n```text\nmessage 4"), "{salvage}");
    assert!(!salvage.contains("message 40\n") && salvage.find("message 48") < salvage.find("message 49"));
}

#[test]
fn the_middle_of_a_long_message_is_left_out() {
    let long = format!("begin {} end", "é".repeat(5000));
    let found = demo(&[user("a question"), agent("m", &text(&long))]);
    let salvage = found.salvage(1000);
    assert!(salvage.len() <= 1000 && salvage.contains("begin é") && salvage.contains("é end"), "{}", salvage.len());
    assert!(salvage.contains("are left out here") && salvage.contains("a question"));
    assert_eq!(demo(&[]).salvage(1000), "");
}

#[test]
fn no_token_is_cut_in_two_where_the_middle_is_left_out() {
    for before in 0..300 {
        let long = format!("{} {} {}", "x ".repeat(before), token(), "y ".repeat(300 - before));
        let salvage = demo(&[agent("m", &text(&long))]).salvage(1000);
        assert!(is_whole_or_gone(&salvage) && salvage.contains("left out here"), "{before}: {salvage}");
    }
}

/// As JavaScript writes a text that it has cut inside an emoji.
#[test]
fn a_reply_that_ends_in_half_an_emoji_is_read() {
    let lines = format!("{}\n", agent("m1", &text("all done HALF"))).replace("HALF", "\\ud83d");
    let found = read_as("demo", &format!("{}\n{lines}", user("go")));
    assert_eq!(found.last_reply(), Some("all done \u{fffd}"));
}
