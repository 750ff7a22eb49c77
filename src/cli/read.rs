//! `read`: the conversation of an agent that was handed off, from its transcript. Nothing is asked of the agent, and no
//! sidecar is needed.

use super::CliSession;
use super::error::CliError;
use super::output::Tone;
use super::view::{ViewFile, said, shown};
use super::{names, past, view};
use crate::agents::transcript::Role;
use crate::agents::{MessagesBack, Profiles, SpokenMessage, TranscriptError};
use crate::contract::AgentView;
use crate::core::cut;
use crate::core::text::sanitise;
use crate::secrets::{self, Known};
use clap::Args;
use regex::Regex;
use serde_json::{Value, json};
use std::path::Path;

/// `read`.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// The handoff whose agent to read: its id, the beginning of it, or a persona (its latest handoff). Or an agent.
    pub handoff: String,
    /// Print only messages that contain all of these words, in any order; capital and small letters are the same.
    #[arg(long, value_name = "WORDS")]
    pub find: Option<String>,
    /// How many messages to print: the last ones, or the last that contain the words.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub last: u16,
}

/// How much of the end of a transcript is read for its last messages, in bytes.
const MAX_READ: u64 = 64 << 20;
/// How much of the end of a transcript is searched for words, in bytes.
const MAX_SEARCHED: u64 = 1 << 30;
/// How much of one message is printed, in bytes.
const MAX_MESSAGE: usize = 16 << 10;
/// How much is printed in all, in bytes.
const MAX_PRINTED: usize = 256 << 10;
/// The largest number of words that a search may have.
const MAX_WORDS: usize = 32;

/// One message as it is printed.
struct Printed {
    number: u64,
    role: Role,
    at: Option<String>,
    text: String,
    /// How many bytes of the message are left out.
    left_out: usize,
}

/// What was found, oldest first.
struct Conversation {
    messages: Vec<Printed>,
    /// Earlier messages were left out, because together they would be more than is printed.
    is_cut: bool,
    /// The transcript was read back to its beginning.
    is_whole: bool,
}

/// Prints the last messages of the conversation, or the last that contain the words.
///
/// # Errors
/// `no_handoff`, `no_agent`; `no_transcript` if there is nothing to read; `transcript_unread` if it can't be read.
pub fn command(session: &CliSession, args: &ReadArgs) -> Result<(), CliError> {
    session.require_views()?;
    let words = args.find.as_deref().map(words).transpose()?;
    let agent = agent(session, &args.handoff)?;
    let profiles = Profiles::load(Some(&session.home.profiles()))?;
    let Some(profile) = profiles.get(&agent.profile) else {
        return Err(CliError::refused("no_profile", format!("There is no profile {}.", shown(agent.profile.as_str()))));
    };
    let Some(path) = said(agent.transcript_path.as_deref()) else {
        let message = format!("Agent {} has reported no transcript.", shown(agent.agent_id.as_str()));
        return Err(CliError::refused("no_transcript", message).hint(ELSEWHERE));
    };
    let mut back = MessagesBack::open(profile, Path::new(path)).map_err(|error| unread(&error))?;
    let found = read(&mut back, words.as_deref(), usize::from(args.last)).map_err(|error| unread(&error))?;
    print(session, &agent, &found, words.is_some())
}

const ELSEWHERE: &str = "What it has left for its successor: tasuki handoffs show HANDOFF --document";

fn unread(error: &TranscriptError) -> CliError {
    let message = format!("{}.", sanitise(&error.to_string()));
    let is_nothing = error.is_missing() || matches!(error, TranscriptError::NoRules { .. });
    CliError::refused(if is_nothing { "no_transcript" } else { "transcript_unread" }, message).hint(ELSEWHERE)
}

/// The outgoing agent of the handoff that the text names, or the agent that the text names.
fn agent(session: &CliSession, text: &str) -> Result<ViewFile<AgentView>, CliError> {
    let home = &session.home;
    let no_agent = |id: &str| names::not_found("agent", id);
    if let Some(agent) = text.parse::<uuid::Uuid>().ok().and_then(|id| view::agent(home, &id.to_string()).transpose()) {
        return agent;
    }
    match names::handoff(home, text) {
        Ok(id) => {
            let Some(handoff) = past::handoff(home, &id)? else {
                let agent = past::agent(home, &id)?;
                return agent.ok_or_else(|| names::not_found("handoff", text));
            };
            past::agent(home, &handoff.agent_id)?.ok_or_else(|| no_agent(&handoff.agent_id))
        }
        // Without a sidecar, an unknown name has the code `no_sidecar`.
        Err(error) if matches!(error.code.as_str(), "no_handoff" | "no_sidecar") => {
            let id = names::agent(home, text).map_err(|_| error)?;
            past::agent(home, &id)?.ok_or_else(|| no_agent(text))
        }
        Err(error) => Err(error),
    }
}

/// The words of a search, each as an expression that finds it in capital and in small letters.
fn words(text: &str) -> Result<Vec<Regex>, CliError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() || words.len() > MAX_WORDS {
        return Err(CliError::usage(format!("--find needs 1 to {MAX_WORDS} words.")));
    }
    let expression = |word: &&str| Regex::new(&format!("(?i){}", regex::escape(word)));
    let all: Result<Vec<Regex>, regex::Error> = words.iter().map(expression).collect();
    all.map_err(|_| CliError::usage("A word of --find is too long."))
}

/// Reads from the end until enough is found.
fn read(back: &mut MessagesBack<'_>, words: Option<&[Regex]>, last: usize) -> Result<Conversation, TranscriptError> {
    let most = if words.is_some() { MAX_SEARCHED } else { MAX_READ };
    let (mut messages, mut room, mut is_cut) = (Vec::new(), MAX_PRINTED, false);
    while messages.len() < last {
        let Some(said) = back.before(most)? else { break };
        if words.is_some_and(|words| !words.iter().all(|word| word.is_match(&said.text))) {
            continue;
        }
        let printed = printed(said, words);
        let Some(left) = room.checked_sub(printed.text.len()) else {
            is_cut = true;
            break;
        };
        room = left;
        messages.push(printed);
    }
    let is_whole = back.is_at_beginning();
    messages.reverse();
    Ok(Conversation { messages, is_cut, is_whole })
}

/// The message without credentials and control characters. A long message is cut: to the text around the first word
/// that was found or, without a search, to its beginning and its end.
fn printed(said: SpokenMessage, words: Option<&[Regex]>) -> Printed {
    let SpokenMessage { number, role, at, text } = said;
    let text = secrets::without(sanitise(&text).trim_matches('\n'), &Known::default());
    let first = words.unwrap_or_default().iter().filter_map(|word| word.find(&text)).map(|found| found.start()).min();
    let (head, tail) = match first {
        _ if text.len() <= MAX_MESSAGE => (text.as_str(), ""),
        Some(at) => {
            let before = cut::end(&text[..at], MAX_MESSAGE / 2);
            let around = &text[at - before.len()..];
            (cut::beginning(around, MAX_MESSAGE), "")
        }
        None => (cut::beginning(&text, MAX_MESSAGE / 2), cut::end(&text, MAX_MESSAGE / 2)),
    };
    let left_out = text.len() - head.len() - tail.len();
    let text = match (left_out, tail.is_empty()) {
        (0, _) => head.to_owned(),
        (_, true) => format!("[…] {} […]", head.trim_end()),
        (_, false) => format!("{}\n[…]\n{tail}", head.trim_end()),
    };
    Printed { number, role, at, text, left_out }
}

fn print(session: &CliSession, agent: &AgentView, found: &Conversation, is_search: bool) -> Result<(), CliError> {
    let role = |role: Role| match role {
        Role::User => "user",
        Role::Assistant => "agent",
    };
    if session.out.is_json() {
        let message = |said: &Printed| json!({"number": said.number, "role": role(said.role), "at": said.at, "text": said.text, "left_out": said.left_out});
        let messages: Vec<Value> = found.messages.iter().map(message).collect();
        return session.out.document(&json!({
            "agent_id": agent.agent_id, "transcript_path": agent.transcript_path, "messages": messages,
            "cut": found.is_cut, "whole": found.is_whole,
        }));
    }
    if found.messages.is_empty() {
        session.out.note(if is_search { "No message contains these words." } else { "There is no message yet." });
    }
    for said in &found.messages {
        let at = said.at.as_deref().map(|at| format!(", {}", view::clock(at))).unwrap_or_default();
        let left_out = match said.left_out {
            0 => String::new(),
            bytes => format!(" ({bytes} bytes are left out)"),
        };
        let heading = format!("[{}] {}{at}{left_out}", said.number, role(said.role));
        session.out.line(&session.out.paint(Tone::Strong, &heading))?;
        // Indented, so that no text looks like a heading.
        said.text.lines().try_for_each(|line| session.out.line(format!("    {line}").trim_end()))?;
    }
    if found.is_cut {
        session.out.note(&format!("Earlier messages are left out: at most {} KiB are printed.", MAX_PRINTED >> 10));
    } else if is_search && !found.is_whole && found.messages.is_empty() {
        session.out.note(&format!("Only the last {} MiB of the transcript were searched.", MAX_SEARCHED >> 20));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::profile::Profile;

    fn demo() -> Profile {
        Profiles::load(None).expect("built in").get("demo").expect("a profile").clone()
    }

    fn conversation(lines: &[String], find: Option<&str>, last: usize) -> Vec<(u64, String)> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), lines.join("\n")).expect("written");
        let profile = demo();
        let mut back = MessagesBack::open(&profile, file.path()).expect("open");
        let words = find.map(|text| words(text).expect("words"));
        let found = read(&mut back, words.as_deref(), last).expect("read");
        found.messages.into_iter().map(|said| (said.number, said.text)).collect()
    }

    fn user(text: &str) -> String {
        json!({"type": "user", "message": {"content": text}}).to_string()
    }

    #[test]
    fn the_last_messages_come_oldest_first_numbered_from_the_end() {
        let lines: Vec<String> = (0..5).map(|number| user(&format!("m{number}"))).collect();
        let expected = [(2, "m3".to_owned()), (1, "m4".to_owned())];
        assert_eq!(conversation(&lines, None, 2), expected);
        assert_eq!(conversation(&lines, None, 1000).len(), 5);
    }

    #[test]
    fn words_are_found_in_any_order_and_case_and_never_taken_for_a_pattern() {
        let lines = [user("The Parser of main.rs fails"), user("PARSER only"), user("fails (parser)"), user("other")];
        let found = conversation(&lines, Some("FAILS parser"), 20);
        assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [4, 2]);
        assert_eq!(conversation(&lines, Some("(parser)"), 20).len(), 1);
        assert_eq!(conversation(&lines, Some("main.rs"), 20).len(), 1);
        assert!(conversation(&lines, Some("mainxrs"), 20).is_empty());
        assert!(words("  ").is_err() && words(&"w ".repeat(33)).is_err());
    }

    #[test]
    fn no_credential_and_nothing_that_drives_a_terminal_is_printed() {
        let token = ["ghp_q7Zk2Vx9Lm4TcR8w", "Yb3NfJ6sHd5GpA1eUoXi"].concat();
        let lines = [user(&format!("use {token}\u{1b}[2J now"))];
        let [(_, text)] = &conversation(&lines, Some("now"), 20)[..] else { panic!("one message") };
        assert!(!text.contains(&token[..12]) && text.contains("[REDACTED:") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_long_message_shows_what_surrounds_the_word_and_all_of_it_has_a_limit() {
        let long =
            format!("{}\nthe needle is here\n{}", "before words.\n".repeat(5_000), "after words.\n".repeat(5_000));
        let [(_, text)] = &conversation(&[user(&long)], Some("needle"), 20)[..] else { panic!("one message") };
        assert!(text.contains("the needle is here") && text.len() < MAX_MESSAGE + 100, "{}", text.len());
        let [(_, text)] = &conversation(&[user(&long)], None, 20)[..] else { panic!("one message") };
        assert!(text.starts_with("before") && text.ends_with("words.") && text.contains("\n[…]\n"), "{text}");
        let many: Vec<String> = (0..100).map(|_| user(&long)).collect();
        let shown: usize = conversation(&many, None, 100).iter().map(|(_, text)| text.len()).sum();
        assert!((MAX_PRINTED / 2..=MAX_PRINTED).contains(&shown), "{shown}");
    }
}
