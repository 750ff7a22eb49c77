//! `tasuki read`: the conversation of an agent that was handed off, as people and their successors see it.

use crate::support::fake_sidecar::FakeHome;
use crate::support::said::{err, out};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

const HANDOFF: &str = "11111111-1111-4111-8111-111111111111";
const AGENT: &str = "22222222-2222-4222-8222-222222222222";

/// A home with a handoff, whose agent had this profile and this conversation.
struct Read {
    home: FakeHome,
    transcript: PathBuf,
}

impl Read {
    fn new(profile: &str, lines: &str) -> Self {
        let home = FakeHome::new();
        home.beat(0);
        let transcript = home.path().join("t.jsonl");
        fs::write(&transcript, lines).expect("written");
        let read = Read { home, transcript };
        let handoff =
            json!({"handoff_id": HANDOFF, "agent_id": AGENT, "persona_slug": "kai", "step": "done", "steps": []});
        read.home.write(&format!("view/handoffs/{HANDOFF}.json"), &handoff);
        read.agent(profile, &json!(read.transcript));
        read
    }

    fn agent(&self, profile: &str, transcript: &Value) {
        let agent = json!({"agent_id": AGENT, "profile": profile, "persona_slug": "kai", "state": "ended",
            "ended_at": "2026-11-21T20:00:00.000Z", "transcript_path": transcript});
        self.home.write(&format!("view/agents/{AGENT}.json"), &agent);
    }

    fn said(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let output = self.home.run(&[&["read"], args].concat());
        (output.status.code(), out(&output), err(&output))
    }
}

#[test]
fn the_end_of_a_conversation_is_printed_by_handoff_and_by_agent() {
    let read = Read::new("claude", include_str!("../transcripts/claude/tools.jsonl"));
    let (code, text, _) = read.said(&["11111111", "--last", "2"]);
    assert_eq!(code, Some(0), "{text}");
    let headings: Vec<&str> = text.lines().filter(|line| !line.starts_with("    ") && !line.is_empty()).collect();
    assert!(headings.len() == 2 && headings[0].starts_with("[2] ") && headings[1].starts_with("[1] "), "{text}");
    assert!(headings[1].contains("2026-11-24"), "{text}");
    for name in [AGENT, "2222"] {
        assert_eq!(read.said(&[name, "--last", "2"]).1, text, "{name}");
    }
    let (_, found, _) = read.said(&["1111", "--find", "PREDECESSOR left"]);
    assert!(found.contains("] user, 2026-11-24") && found.contains("    Your predecessor left this."), "{found}");
    let (code, none, note) = read.said(&["1111", "--find", "zebra"]);
    assert!(code == Some(0) && none.is_empty() && note.contains("No message contains"), "{note}");
    let (_, json, _) = read.said(&["1111", "--find", "predecessor", "--json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&json["agent_id"], &json["whole"], &json["messages"][0]["role"]),
        (&json!(AGENT), &json!(true), &json!("user"))
    );
}

#[test]
fn an_agent_is_found_by_every_name_without_a_sidecar() {
    let read = Read::new("claude", include_str!("../transcripts/claude/tools.jsonl"));
    let agent = json!({"agent_id": AGENT, "profile": "claude", "persona_slug": "kai", "state": "idle", "pane": "%7",
        "transcript_path": read.transcript});
    read.home.write(&format!("view/agents/{AGENT}.json"), &agent);
    read.home.beat(3_600);
    let (_, text, _) = read.said(&["11111111", "--last", "2"]);
    assert!(text.contains("[1] "), "{text}");
    for name in [AGENT, "2222", "%7"] {
        let (code, same, said) = read.said(&[name, "--last", "2"]);
        assert_eq!((code, &same), (Some(0), &text), "{name}: {said}");
    }
    let (code, _, said) = read.said(&["ffff"]);
    assert!(code == Some(69) && said.contains("Handoff not found: \"ffff\"") && said.contains("no_sidecar"), "{said}");
}

#[test]
fn what_is_printed_holds_no_credential_and_drives_no_terminal() {
    let token = ["ghp_q7Zk2Vx9Lm4TcR8w", "Yb3NfJ6sHd5GpA1eUoXi"].concat();
    let line = |text: &str| json!({"type": "user", "message": {"content": text}}).to_string();
    let read = Read::new("demo", &line(&format!("use {token}\u{1b}[2J\n[1] agent, a heading")));
    for args in [&["1111"][..], &["1111", "--json"], &["1111", "--find", "use"]] {
        let (code, text, _) = read.said(args);
        assert!(code == Some(0) && text.contains("[REDACTED:") && !text.contains(&token[..12]), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(!text.lines().any(|line| line.starts_with("[1] agent")), "{text}");
    }
}

#[test]
fn where_there_is_nothing_to_read_that_is_said() {
    let read = Read::new("claude", "");
    assert!(read.said(&["1111"]).2.contains("There is no message yet."));
    fs::remove_file(&read.transcript).expect("removed");
    let (code, _, text) = read.said(&["1111"]);
    assert!(code == Some(1) && text.contains("(no_transcript)") && text.contains("t.jsonl"), "{text}");
    symlink("/etc/passwd", &read.transcript).expect("a link");
    let (code, _, text) = read.said(&["1111"]);
    assert!(code == Some(1) && text.contains("is a link") && text.contains("(transcript_unread)"), "{text}");
    read.agent("claude", &Value::Null);
    assert!(read.said(&["1111"]).2.contains("has reported no transcript"));
    let demo = include_str!("../../data/profiles/demo.toml");
    let (without, _) = demo.split_once("\n[transcript]").expect("a section");
    let profiles = read.home.path().join("data/profiles");
    fs::create_dir_all(&profiles).expect("a folder");
    fs::write(profiles.join("mute.toml"), without).expect("written");
    read.agent("mute", &json!(read.transcript));
    let (_, _, text) = read.said(&["1111"]);
    assert!(text.contains("mute does not say how to read a transcript"), "{text}");
    read.agent("nobody", &json!(read.transcript));
    assert!(read.said(&["1111"]).2.contains("There is no profile nobody."));
    let (code, _, text) = read.said(&["ffff"]);
    assert!(code == Some(1) && text.contains("Handoff not found: \"ffff\""), "{text}");
    assert_eq!(read.said(&["1111", "--last", "0"]).0, Some(2));
    assert_eq!(read.said(&["1111", "--find", " "]).0, Some(2));
}
