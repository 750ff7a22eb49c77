//! Tool calls as each CLI writes them, and the facts of whole sessions.

use super::super::actions::{TESTS, actions};
use super::super::reading::has_read;
use super::super::testing::{is_whole_or_gone, profile, token, user, without_rules, written};
use super::super::tool_calls::ToolKind;
use super::*;
use serde_json::json;
use std::io::{Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

const DOCUMENT: &str = "/home/me/handoffs/20261121T200000-6f1c3a52.md";
const FIX: &str = "Please make the fix: two() is missing, and the tests should pass.";
const COMMIT: &str = "git add -A && git -c user.name=me -c user.email=me@localhost commit -qm 'add two(); cargo test passes' \
    && git push origin main";

fn facts(name: &str, lines: &str) -> TranscriptFacts {
    read_facts(&profile(name), written(lines).path()).expect("read")
}

fn demo(lines: &[Value]) -> TranscriptFacts {
    facts("demo", &lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

fn call(id: &str, name: &str, input: &Value) -> Value {
    json!({"type": "assistant", "message": {"id": format!("m{id}"), "content": [
        {"type": "tool_use", "id": id, "name": name, "input": input}]}})
}

fn result(id: &str, text: &str, is_error: bool) -> Value {
    json!({"type": "user", "message": {"content": [
        {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error}]}})
}

/// Each call as one line: what, on what, exit status or whether it failed, the last line printed.
fn told(facts: &TranscriptFacts) -> Vec<String> {
    let line = |call: &ToolCall| {
        let kind = match call.kind {
            ToolKind::Write => "write",
            ToolKind::Read => "read",
            ToolKind::Command => "run",
        };
        let end = match (call.exit, call.failed) {
            (Some(exit), _) => exit.to_string(),
            (None, Some(true)) => "failed".to_owned(),
            (None, Some(false)) => "ok".to_owned(),
            (None, None) => "?".to_owned(),
        };
        let printed = call.printed.as_deref().and_then(|text| text.trim_end().lines().next_back()).unwrap_or_default();
        format!("{kind} {} | {end} | {printed}", call.target)
    };
    facts.calls.iter().flatten().map(line).collect()
}

const CLAUDE: &str = include_str!("../../tests/transcripts/claude/tools.jsonl");
const CODEX: &str = include_str!("../../tests/transcripts/codex/tools.jsonl");
const CODEX_DIRECT: &str = include_str!("../../tests/transcripts/codex/tools_direct.jsonl");
const GEMINI: &str = include_str!("../../tests/transcripts/gemini/tools.jsonl");
const OPENCODE: &str = include_str!("../../tests/transcripts/opencode/tools.jsonl");
const PI: &str = include_str!("../../tests/transcripts/pi/tools.jsonl");
/// The sessions of all CLIs.
const SESSIONS: [(&str, &str); 6] = [
    ("claude", CLAUDE),
    ("codex", CODEX),
    ("codex", CODEX_DIRECT),
    ("gemini", GEMINI),
    ("opencode", OPENCODE),
    ("pi", PI),
];

#[test]
fn the_tool_calls_of_claude_code_are_read() {
    assert_eq!(
        told(&facts("claude", CLAUDE)),
        [
            format!("read {DOCUMENT} | ok | "),
            "run cargo test | 101 | error[E0425]: cannot find function `two`".to_owned(),
            "read /home/me/project/src/none.rs | failed | ".to_owned(),
            "read /home/me/project/src/lib.rs | ok | ".to_owned(),
            "write /home/me/project/src/lib.rs | ok | ".to_owned(),
            "write /home/me/project/src/other.rs | failed | ".to_owned(),
            "write /home/me/project/notes.md | ok | ".to_owned(),
            "run cargo test 2>&1 | tail -5 | ok | test result: ok. 1 passed; 0 failed".to_owned(),
            format!("run {COMMIT} | ok |  * [new branch]      main -> main"),
            "run sleep 30 | ok | Command running in background with ID: b1. You will be notified when it completes."
                .to_owned(),
        ]
    );
}

#[test]
fn the_tool_calls_of_codex_are_read_in_both_of_its_modes() {
    let script = told(&facts("codex", CODEX));
    assert_eq!(
        script,
        [
            format!("run cat '{DOCUMENT}' | 0 | # Handoff"),
            "run cargo test | 101 | error[E0425]: cannot find function `two`".to_owned(),
            "write /home/me/project/notes.md | ok | ".to_owned(),
            "write /home/me/project/src/lib.rs | ok | ".to_owned(),
            "write /home/me/project/src/old.rs | ok | ".to_owned(),
            "write /home/me/project/src/new.rs | ok | ".to_owned(),
            "run cargo test 2>&1 | tail -5 | 0 | test result: ok. 1 passed; 0 failed".to_owned(),
            format!("run {COMMIT} | 0 |  * [new branch]      main -> main"),
            "run sleep 2; echo late; exit 4 | 4 | late".to_owned(),
        ]
    );
    let direct = told(&facts("codex", CODEX_DIRECT));
    let short: Vec<&str> =
        direct.iter().map(|line| line.rsplit_once("\n*** End Patch").map_or(&**line, |(_, end)| end)).collect();
    assert_eq!(
        short,
        [
            &*format!("run cat '{DOCUMENT}' | 0 | # Handoff"),
            "run cargo test | 101 | error[E0425]: cannot find function `two`",
            "\nEOF | 0 | M src/new.rs",
            "write src/lib.rs | ok | ",
            "write src/old.rs | ok | ",
            "write src/new.rs | ok | ",
            "write notes.md | ok | ",
            "\nEOF | failed | apply_patch verification failed: Failed to read file to update /home/me/project/src/other.rs: No such file or directory (os error 2)",
            "write src/other.rs | failed | ",
            "run cargo test 2>&1 | tail -5 | 0 | test result: ok. 1 passed; 0 failed",
            "run sleep 2; echo late; exit 4 | 4 | late",
            &*format!("run {COMMIT} | 0 |  * [new branch]      main -> main"),
        ]
    );
}

#[test]
fn the_tool_calls_of_gemini_cli_and_pi_are_read() {
    let lib = |name: &str| if name == "gemini" { "/home/me/project/src/lib.rs" } else { "src/lib.rs" };
    let other = |name: &str| if name == "gemini" { "/home/me/project/src/other.rs" } else { "src/other.rs" };
    for (name, lines) in [("gemini", GEMINI), ("pi", PI)] {
        let expected = [
            format!("read {DOCUMENT} | ok | "),
            "run cargo test | 101 | error[E0425]: cannot find function `two`".to_owned(),
            "read src/none.rs | failed | ".to_owned(),
            format!("write {} | ok | ", lib(name)),
            format!("write {} | failed | ", other(name)),
            "write /home/me/project/notes.md | ok | ".to_owned(),
            "run cargo test 2>&1 | tail -5 | ok | test result: ok. 1 passed; 0 failed".to_owned(),
            format!("run {COMMIT} | ok |  * [new branch]      main -> main"),
        ];
        assert_eq!(told(&facts(name, lines)), expected, "{name}");
    }
}

#[test]
fn the_tool_calls_of_opencode_are_read() {
    assert_eq!(
        told(&facts("opencode", OPENCODE)),
        [
            format!("read {DOCUMENT} | ok | "),
            "run cargo test | 101 | error[E0425]: cannot find function `two`".to_owned(),
            "read /home/me/project/src/none.rs | failed | ".to_owned(),
            "read /home/me/project/src/lib.rs | ok | ".to_owned(),
            "write /home/me/project/src/lib.rs | ok | ".to_owned(),
            "write /home/me/project/src/other.rs | failed | ".to_owned(),
            "write /home/me/project/notes.md | ok | ".to_owned(),
            "run cargo test 2>&1 | tail -5 | 0 | test result: ok. 1 passed; 0 failed".to_owned(),
            format!("run {COMMIT} | 0 |  * [new branch]      main -> main"),
        ]
    );
}

/// Each fixture is one session: a text of tasuki's, a task, a compaction, thanks.
#[test]
fn a_session_is_known_by_its_model_its_requests_and_its_size() {
    for (name, lines, model, window) in [
        ("claude", CLAUDE, "claude-opus-5-5", Some(1_000_000)),
        ("codex", CODEX, "gpt-6-sol", Some(190_000)),
        ("gemini", GEMINI, "gemini-2.5-pro", Some(1_048_576)),
        ("opencode", OPENCODE, "scripted-model", Some(200_000)),
        ("pi", PI, "scripted-model", None),
    ] {
        let found = facts(name, lines);
        assert_eq!(found.first.as_deref(), Some(FIX), "{name}");
        assert_eq!(found.last, [FIX, "Thank you."], "{name}");
        assert_eq!((found.model.as_deref(), found.compactions, found.cut), (Some(model), Some(1), false), "{name}");
        assert_eq!(found.context.and_then(|usage| usage.window), window, "{name}");
        let read = super::super::transcript::read(&profile(name), written(lines).path()).expect("read");
        assert_eq!(read.last_reply(), Some("You are welcome."), "{name}");
        assert!(read.said.iter().all(|said| said.text.matches("Next: ").count() <= 1), "{name}: {:?}", read.said);
        assert_eq!((found.messages, found.conversation().model), (read.messages, found.model.clone()), "{name}");
        assert!(
            found
                .calls
                .iter()
                .flatten()
                .all(|call| call.at.as_ref().is_some_and(|at| at.starts_with("2026-11-24T23:"))),
            "{name}"
        );
    }
}

#[test]
fn the_facts_of_each_session_name_its_files_its_last_test_and_its_push() {
    for (name, lines) in SESSIONS {
        let found = actions(&facts(name, lines).calls.expect("calls"), &TESTS);
        let test = found.last_test.expect("a test");
        assert_eq!((test.command.as_str(), test.failed), ("cargo test 2>&1 | tail -5", Some(false)), "{name}");
        assert!(test.printed.is_some_and(|text| text.ends_with("test result: ok. 1 passed; 0 failed")), "{name}");
        assert_eq!(found.sent.iter().map(|sent| sent.command.as_str()).collect::<Vec<_>>(), [COMMIT], "{name}");
        let has = |end: &str| found.files.iter().any(|file| file.path.ends_with(end));
        assert!(has("src/lib.rs") && has("notes.md") && !has("other.rs"), "{name}: {:?}", found.files);
        assert!(found.commands.iter().any(|command| command.exit == Some(101)), "{name}");
    }
}

#[test]
fn a_document_is_read_once_a_call_names_it() {
    let document = Path::new(DOCUMENT);
    for (name, lines) in SESSIONS {
        let read =
            |lines: &str, document: &Path| has_read(&profile(name), written(lines).path(), document).expect("read");
        assert!(read(lines, document), "{name}");
        assert!(!read(lines, Path::new("/home/me/handoffs/20261121T200000-6f1c3a53.md")), "{name}");
        let before: String =
            lines.lines().take_while(|line| !line.contains(FIX)).map(|line| format!("{line}\n")).collect();
        assert!(
            before.contains(DOCUMENT) && !read(&before, document),
            "{name}: the briefing's text alone proves nothing"
        );
    }
    let without = has_read(&without_rules(), written(CLAUDE).path(), document);
    assert!(matches!(without, Err(TranscriptError::NoRules { .. })));
}

#[test]
fn a_result_belongs_to_the_call_with_its_id() {
    let found = demo(&[
        user("go"),
        call("a", "Bash", &json!({"command": "one"})),
        call("b", "Bash", &json!({"command": "two"})),
        call("b", "Bash", &json!({"command": "two"})),
        result("b", "second", true),
        result("a", "first", false),
        result("a", "first again", true),
        result("x", "whose?", true),
        call("c", "Unknown", &json!({"command": "three"})),
        call("d", "Write", &json!({"path": "elsewhere"})),
        call("e", "Bash", &json!({"command": "four"})),
    ]);
    assert_eq!(told(&found), ["run one | ok | first", "run two | failed | second", "run four | ? | "]);
    assert_eq!((found.first.as_deref(), found.last.len()), (Some("go"), 1));
}

#[test]
fn no_token_is_cut_in_two() {
    let token = token();
    for before in (MAX_REQUEST - 60 - token.len())..MAX_REQUEST {
        let request = format!("{}{token} {}", " x".repeat(before).split_at(before).0, "y ".repeat(100));
        let printed =
            format!("{}{token} {}", "z ".repeat(100), " x".repeat(before).split_at(before).0).replace(' ', "\n");
        let lines = [
            user(&format!("go {request}")),
            call("a", "Bash", &json!({"command": "one"})),
            result("a", &printed, false),
        ];
        let found = demo(&lines);
        let printed = found.calls.as_ref().and_then(|calls| calls[0].printed.as_deref()).expect("printed");
        for text in [&found.last[0], printed] {
            assert!(
                text.len() > MAX_REQUEST / 2 && text.len() <= MAX_REQUEST && is_whole_or_gone(text),
                "{before}: {text}"
            );
        }
    }
}

#[test]
fn texts_of_tasuki_and_of_the_cli_are_not_the_persons() {
    let ours = "Your skill follows.\n# Skill\n(tasuki delivery 5f2a9c81d0e3.)";
    let wrapped = format!("<pasted_content id=\"d675\">\n{ours}\n</pasted_content id=\"d675\">");
    let mine = "<pasted_content id=\"d675\">\nmy log\n</pasted_content id=\"d675\">";
    let long = "é".repeat(5_000);
    let mut lines = vec![user(ours), user(&wrapped), user(mine)];
    lines.extend((0..6).map(|n| user(&format!("request {n}\u{1b}[31m"))));
    lines.push(user(&long));
    let found = demo(&lines);
    assert_eq!(found.first.as_deref(), Some("my log"));
    assert_eq!(found.last[..4], ["request 2[31m", "request 3[31m", "request 4[31m", "request 5[31m"]);
    let cut = &found.last[4];
    assert!(cut.len() <= MAX_REQUEST && cut.starts_with("éé") && cut.ends_with("… (5952 bytes left out)"), "{cut}");
    let noise = |text: &str| json!({"type": "user", "message": {"content": text}});
    let summary = json!({"type": "user", "isCompactSummary": true, "message": {"content": "This session continues."}});
    let lines = [
        noise("<task-notification>\n<task-id>1</task-id>"),
        noise("[Request interrupted by user for tool use]"),
        summary,
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(
        facts("claude", &lines),
        TranscriptFacts { compactions: Some(0), calls: Some(vec![]), ..TranscriptFacts::default() }
    );
}

/// A file of 2 GiB takes no more time and memory than its beginning and its end.
#[test]
fn of_a_huge_transcript_the_beginning_and_the_end_are_read() {
    let mut file = written(&format!("{}\n{}\n", user("the first"), call("a", "Write", &json!({"file_path": "/w/a"}))));
    file.as_file_mut().seek(SeekFrom::Start(2 << 30)).expect("moved");
    let filler = format!("\n{}", call("b", "Write", &json!({"file_path": "/w/b"}))).repeat(3);
    let long = user(&"x".repeat(1 << 20));
    write!(file, "{filler}\n{long}\n{}\n{{\"type\":\"user\",\"mess", user("the last")).expect("written");
    let began = Instant::now();
    let found = read_facts(&profile("demo"), file.path()).expect("read");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!((found.first.as_deref(), found.cut), (Some("the first"), true));
    assert_eq!(found.last, ["the last"]);
    assert_eq!(told(&found), ["write /w/a | ? | ", "write /w/b | ? | "]);
    assert!(!has_read(&profile("demo"), file.path(), Path::new("/w/b")).expect("read"));
}

#[test]
fn a_first_request_that_was_not_read_is_not_another_one() {
    let long = format!("{}\n", user(&"y".repeat(900_000)));
    let ours = format!("{}\n", user("Hello.\n(tasuki delivery 5f2a9c81d0e3.)"));
    let found = facts("demo", &format!("{ours}{}{}\n", long.repeat(10).replace("user", "none"), user("the last")));
    assert_eq!((found.first, found.cut), (None, true));
    assert_eq!(found.last, ["the last"]);
}

#[test]
fn only_the_last_calls_are_kept_and_a_version_never_seen_has_none() {
    let lines: Vec<Value> =
        (0..2_500).map(|n| call(&n.to_string(), "Bash", &json!({"command": format!("echo {n}")}))).collect();
    let calls = demo(&lines).calls.expect("calls");
    assert_eq!((calls.len(), calls[0].target.as_str()), (2_000, "echo 500"));
    let strange = [
        json!({"type": "assistant", "message": {"content": {"tool_use": {"id": 1}}}}),
        json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": {"a": 1}, "name": ["Bash"], "input": 7}]}}),
        json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Bash", "input": {"command": {"x": 1}}}]}}),
        json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": null, "content": {"x": 1}}]}}),
        json!({"type": "message", "message": 1}),
    ];
    assert_eq!(demo(&strange).calls, Some(vec![]));
    let cut = format!("{}\n{}", user("go"), &call("a", "Bash", &json!({"command": "x"})).to_string()[..60]);
    assert_eq!(facts("demo", &cut).calls, Some(vec![]));
}

/// The rules of another CLI: one line for each call, JSON in a text, files in a list, results without an id.
#[test]
fn another_clis_calls_are_read_by_its_own_rules() {
    let rules = r#"
        [[transcript.tools.calls]]
        when = [{ at = "/kind", is = ["call"] }]
        name = "/tool"
        input = "/with"
        time = "/ms"
        [[transcript.tools.results]]
        when = [{ at = "/kind", is = ["done"] }]
        exit = "/status"
        text = "/out"
        [[transcript.tools.uses]]
        names = ["look"]
        kind = "read"
        at = ["/files"]
        [[transcript.tools.uses]]
        names = ["sh"]
        kind = "command"
        at = ["/argv"]
        [[transcript.tools.uses]]
        names = ["patch"]
        kind = "write"
        pattern = '(?m)^\+\+\+ b/(?<path>.+)$'
    "#;
    let text =
        include_str!("../../data/profiles/demo.toml").split("\n[[transcript.tools.calls]]").next().expect("before");
    let wren = Profile::parse("wren", Path::new("wren.toml"), &format!("{text}\n{rules}")).expect("a profile");
    let lines = [
        json!({"kind": "call", "tool": "look", "with": "{\"files\": [\"a.rs\", \"b.rs\"]}", "ms": 1_795_313_887_085_u64}),
        json!({"kind": "call", "tool": "sh", "with": {"argv": ["make", "test"]}}),
        json!({"kind": "done", "status": "2", "out": "no rule"}),
        json!({"kind": "call", "tool": "patch", "with": "--- a/x\n+++ b/x\n@@\n--- a/y z\n+++ b/y z\n"}),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let found = read_facts(&wren, written(&lines).path()).expect("read");
    assert_eq!(
        told(&found),
        ["read a.rs | ? | ", "read b.rs | ? | ", "run make test | 2 | no rule", "write x | ? | ", "write y z | ? | "]
    );
    let calls = found.calls.expect("calls");
    assert_eq!(calls[0].at.as_deref(), Some("2026-11-22T02:18:07.085Z"));
    for (right, wrong, message) in
        [("(?<path>", "(?<file>", "named `path`"), ("kind = \"read\"", "kind = \"reads\"", "reads")]
    {
        let text = format!("{text}\n{}", rules.replacen(right, wrong, 1));
        let error = Profile::parse("wren", Path::new("wren.toml"), &text).expect_err("must be refused").to_string();
        assert!(error.contains(message), "{error}");
    }
    let text = format!("{text}\n{}", rules.replacen("exit = \"/status\"", "pattern = 'x'", 1));
    let error = Profile::parse("wren", Path::new("wren.toml"), &text).expect_err("must be refused").to_string();
    assert!(error.contains("named `exit`, `printed` or `failed`"), "{error}");
}
