//! Hostile text before the command line: whatever stands in a view, an error file, a configuration or a profile,
//! nothing that a terminal acts on comes out.

use crate::support::fake_sidecar::FakeHome;
use crate::support::nasty::{long_line, nasty};
use crate::support::said::{err, out};
use crate::support::tally;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use tasuki::core::text::{plain_json, sanitise, shell_word};

const KAI: &str = "11111111-1111-4111-8111-111111111111";
const MIA: &str = "22222222-2222-4222-8222-222222222222";
const HANDOFF: &str = "33333333-3333-4333-8333-333333333333";

/// Every text of a value becomes this one, but for those that say what it is.
fn spoil(value: &mut Value, text: &str) {
    match value {
        Value::String(old) => *old = text.to_owned(),
        Value::Array(items) => items.iter_mut().for_each(|item| spoil(item, text)),
        Value::Object(fields) => {
            let keep = ["agent_id", "handoff_id", "error_id", "state", "step", "previous_agent_id", "successor_id"];
            fields
                .iter_mut()
                .filter(|(name, _)| !keep.contains(&name.as_str()))
                .for_each(|(_, field)| spoil(field, text));
        }
        _ => {}
    }
}

fn views() -> Vec<(String, Value)> {
    let agent = |id: &str, previous: Option<&str>, state: &str| {
        json!({"agent_id": id, "persona_slug": "kai", "profile": "demo", "pane": "%1", "cwd": "/", "session_id": "s", "state": state,
            "previous_agent_id": previous, "successor_id": null, "handoff_id": HANDOFF, "registered_at": "x", "ended_at": "x",
            "context": {"used": 1, "window": 2, "told_by": "x"}, "warnings": ["x"], "blocked": "x", "message": "x", "primed": true})
    };
    let handoff = json!({"handoff_id": HANDOFF, "agent_id": KAI, "persona_slug": "kai", "reason": "x", "focus": "x", "file_path": "/x", "file_name": "x",
        "injection_prompt": "x", "created_at": "x", "step": "failed", "steps": [{"step": "waiting", "entered_at": "x", "left_at": "x"}],
        "deadline": "x", "verdicts": {"instruction": {"delivery_id": "x", "verdict": "x", "reason": "x", "at": "x"}, "priming": null, "briefing": null},
        "error": {"error_id": MIA, "step": "writing", "code": "x", "message": "x", "hint": "x"}, "warnings": ["x"], "successor_id": MIA, "tasks": ["x"]});
    let error = json!({"v": 1, "error_id": MIA, "at": "x", "code": "x", "message": "x", "hint": "x", "handoff_id": HANDOFF, "agent_id": KAI, "step": "x"});
    vec![
        (format!("view/agents/{KAI}.json"), agent(KAI, None, "ended")),
        (format!("view/agents/{MIA}.json"), agent(MIA, Some(KAI), "idle")),
        (format!("view/handoffs/{HANDOFF}.json"), handoff),
        (format!("spool/errors/{MIA}.json"), error),
    ]
}

#[test]
fn nothing_that_a_terminal_acts_on_comes_out_of_any_command() {
    let home = FakeHome::new();
    home.beat(0);
    let commands: [&[&str]; 12] = [
        &["status"],
        &["agents"],
        &["handoffs"],
        &["handoffs", "show", HANDOFF],
        &["lineage", KAI],
        &["lineage", "kai"],
        &["errors"],
        &["statusline", "--agent", KAI],
        &["send", "--timeout", "1ms", "kai", "x"],
        &["retry", "--timeout", "1ms", HANDOFF],
        &["doctor"],
        &["no\u{1b}[31m\u{9b}such\u{202e}"],
    ];
    let mut texts = nasty(&home.path().join("trap"));
    texts.push(long_line());
    if !tally::is_long() {
        // All at once, which a hundred commands are enough for.
        texts = vec![texts.join(" "), texts.join("\n")];
    }
    for text in texts {
        for (name, mut view) in views() {
            spoil(&mut view, &text);
            home.write(&name, &view);
        }
        home.beat(0);
        for command in commands {
            for json in [&[][..], &["--json"]] {
                let output = home.run(&[command, json].concat());
                for printed in [out(&output), err(&output)] {
                    assert_eq!(sanitise(&printed), printed, "{command:?} {json:?} with {text:?}");
                }
                tally::add(tally::INPUTS, 1);
            }
        }
    }
    assert!(!home.path().join("trap").exists());
}

#[test]
fn a_wrong_configuration_or_profile_is_told_in_plain_words() {
    let home = FakeHome::new();
    fs::create_dir_all(home.path().join("data/profiles")).expect("made");
    let quoted = |text: &str| plain_json(&json!(text).to_string()).into_owned();
    for text in nasty(&home.path().join("trap")) {
        let files = [
            ("config.toml", format!("{} = 1\n", quoted(&text))),
            ("config.toml", format!("[limits]\nwaiting = {}\n", quoted(&text))),
            ("config.toml", format!("[notify]\n{} = 1\n", quoted(&text))),
            ("config.toml", format!("[x\n{text}")),
            ("data/profiles/mine.toml", format!("{} = 1\n", quoted(&text))),
            ("data/profiles/mine.toml", format!("title = \"x\"\ndetect = {}\n", quoted(&format!("({text}")))),
            ("data/profiles/mine.toml", format!("[x\n{text}")),
        ];
        for (name, content) in files {
            fs::write(home.path().join(name), &content).expect("written");
            let output = home.run(&["run", "--tmux", "/nowhere/at/all"]);
            let said = err(&output);
            assert_eq!(output.status.code(), Some(78), "{content:?}: {said}");
            assert!(said.contains(name) && said.contains("line") && sanitise(&said) == said, "{content:?}: {said:?}");
            fs::remove_file(home.path().join(name)).expect("removed");
            tally::add(tally::INPUTS, 1);
        }
    }
    for name in ["X.toml", "a b.toml", "x\u{1b}[31m.toml", "-x.toml", "x;.toml"] {
        let path = home.path().join("data/profiles").join(name);
        fs::write(&path, "title = \"x\"\n").expect("written");
        let output = home.run(&["run", "--tmux", "/nowhere/at/all"]);
        let said = err(&output);
        fs::remove_file(&path).expect("removed");
        assert_eq!(output.status.code(), Some(78), "{name:?}: {said}");
        assert_eq!(sanitise(&said), said, "{name:?}");
    }
}

/// What agents are told to run is read by a shell: the program's path and the home's, whatever they are called.
#[test]
fn a_word_for_a_shell_is_one_word_whatever_stands_in_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let words = nasty(&dir.path().join("trap")).into_iter().filter(|word| !word.contains('\0'));
    for word in words.chain(["", "a b", "it's", "$HOME", "a;b", "~", "-x", "*"].map(str::to_owned)) {
        let script = format!("printf '<%s>' {}", shell_word(&word));
        let output = Command::new("sh").args(["-c", &script]).current_dir(dir.path()).output().expect("a shell");
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("<{word}>"), "{script}");
        tally::add(tally::INPUTS, 1);
    }
    assert!(!dir.path().join("trap").exists());
}
