//! Reads a conversation from the end of its transcript: the last message first, and no more of the file than is wanted.
//! A transcript may have hundreds of megabytes, and most readers want the last few messages.

use super::profile::Profile;
use super::tool_calls::time;
use super::transcript::{Role, TranscriptError, is_skipped, rules, spoken};
use super::transcript_file::{LinesBack, TranscriptFile, lines};
use super::transcript_format::TranscriptSection;
use crate::core::text::normalise;
use std::path::Path;

/// The largest number of bytes of one message that are kept: of a longer one its beginning is left out.
const MAX_MESSAGE: usize = 2 << 20;

/// One message with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpokenMessage {
    /// Counted from the end: the last message is 1.
    pub number: u64,
    pub role: Role,
    /// When it was begun: UTC, milliseconds, `Z`; `None` if the transcript does not say.
    pub at: Option<String>,
    /// Its text blocks, joined by newlines.
    pub text: String,
}

/// A conversation that is read from its end.
pub struct MessagesBack<'p> {
    profile: &'p Profile,
    rules: &'p TranscriptSection,
    lines: LinesBack,
    begun: Option<Begun>,
    found: u64,
}

/// A message, as far as its lines have been read; the last line came first.
struct Begun {
    role: Role,
    id: Option<String>,
    at: Option<String>,
    /// The texts of its lines, the last first.
    texts: Vec<String>,
    bytes: usize,
}

/// One line of a message.
struct MessageLine {
    role: Role,
    id: Option<String>,
    at: Option<String>,
    text: Option<String>,
    /// The line has the whole message so far.
    whole: bool,
}

impl<'p> MessagesBack<'p> {
    /// Opens a transcript. Nothing of it is read yet.
    ///
    /// # Errors
    /// As [`super::transcript::read`].
    pub fn open(profile: &'p Profile, path: &Path) -> Result<Self, TranscriptError> {
        let rules = rules(profile)?;
        let lines = LinesBack::new(TranscriptFile::open(path)?);
        Ok(MessagesBack { profile, rules, lines, begun: None, found: 0 })
    }

    /// The message before those that were returned already; `None` at the beginning of the file, or once `most` bytes
    /// of it were read.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn before(&mut self, most: u64) -> Result<Option<SpokenMessage>, TranscriptError> {
        while let Some(line) = self.lines.before(most)? {
            let Some(line) = self.read(&line) else { continue };
            match &mut self.begun {
                Some(begun) if begun.id.is_some() && begun.id == line.id && begun.role == line.role => begun.take(line),
                _ => {
                    let before = self.begun.replace(Begun::new(line));
                    if let Some(message) = before.and_then(|begun| self.finished(begun)) {
                        return Ok(Some(message));
                    }
                }
            }
        }
        // What stands before the part that was read may belong to the message that was begun.
        let begun = self.begun.take_if(|_| self.lines.is_over());
        Ok(begun.and_then(|begun| self.finished(begun)))
    }

    /// Whether everything was read, back to the beginning of the file.
    #[must_use]
    pub fn is_at_beginning(&self) -> bool {
        self.lines.is_over()
    }

    /// How much of the file was read, in bytes.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.lines.bytes_read()
    }

    fn read(&self, line: &[u8]) -> Option<MessageLine> {
        let line = lines(line).next().filter(|line| !is_skipped(self.rules, line))?;
        let message = spoken(self.rules, &line)?;
        let text = (!message.texts.is_empty()).then(|| message.texts.join("\n"));
        let at = self.rules.time.as_ref().and_then(|at| time(at.find(&line)?));
        Some(MessageLine { role: message.rule.role, id: message.id, at, text, whole: message.rule.whole })
    }

    /// The message, if it has a text.
    fn finished(&mut self, begun: Begun) -> Option<SpokenMessage> {
        let texts: Vec<&str> = begun.texts.iter().rev().map(String::as_str).collect();
        let text = match begun.role {
            Role::User => self.profile.unwrap_prompt(&texts.join("\n")),
            Role::Assistant => texts.join("\n"),
        };
        if normalise(&text).is_empty() {
            return None;
        }
        self.found += 1;
        Some(SpokenMessage { number: self.found, role: begun.role, at: begun.at, text })
    }
}

impl Begun {
    fn new(line: MessageLine) -> Self {
        let mut begun = Begun { role: line.role, id: line.id.clone(), at: None, texts: Vec::new(), bytes: 0 };
        begun.take(line);
        begun
    }

    /// Adds the line before those that were read.
    fn take(&mut self, line: MessageLine) {
        self.at = line.at.or_else(|| self.at.take());
        let is_replaced = line.whole && !self.texts.is_empty();
        let Some(text) = line.text.filter(|_| !is_replaced) else { return };
        self.bytes += text.len();
        if self.bytes <= MAX_MESSAGE || self.texts.is_empty() {
            self.texts.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{profile, user, without_rules, written};
    use super::super::transcript;
    use super::*;
    use serde_json::{Value, json};
    use std::io::{Seek, SeekFrom, Write};

    fn all(name: &str, path: &Path) -> Vec<SpokenMessage> {
        let profile = profile(name);
        let mut back = MessagesBack::open(&profile, path).expect("open");
        std::iter::from_fn(|| back.before(u64::MAX).expect("readable")).collect()
    }

    fn block(id: &str, block: &Value) -> Value {
        json!({"type":"assistant","message":{"id":id,"content":[block]}})
    }

    fn text(text: &str) -> Value {
        json!({"type":"text","text":text})
    }

    /// Each real transcript has the same messages, read from either side.
    #[test]
    fn a_real_conversation_is_the_same_from_its_end() {
        let cases = [
            ("claude", include_str!("../../tests/transcripts/claude/turn.jsonl")),
            ("claude", include_str!("../../tests/transcripts/claude/tools.jsonl")),
            ("codex", include_str!("../../tests/transcripts/codex/turn.jsonl")),
            ("codex", include_str!("../../tests/transcripts/codex/tools.jsonl")),
            ("gemini", include_str!("../../tests/transcripts/gemini/tools.jsonl")),
            ("pi", include_str!("../../tests/transcripts/pi/turn.jsonl")),
            ("pi", include_str!("../../tests/transcripts/pi/tools.jsonl")),
        ];
        for (name, lines) in cases {
            let file = written(lines);
            let forward = transcript::read(&profile(name), file.path()).expect("read").said;
            let mut back = all(name, file.path());
            assert_eq!(
                back.iter().map(|said| said.number).collect::<Vec<_>>(),
                (1..=back.len() as u64).collect::<Vec<_>>()
            );
            back.reverse();
            let same = back.iter().map(|said| (said.role, said.text.clone()));
            let expected = forward.iter().map(|said| (said.role, said.text.clone()));
            assert_eq!(same.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{name}");
            if lines.contains("\"timestamp\":\"2026-") && name != "claude" {
                assert!(back.iter().all(|said| said.at.as_ref().is_some_and(|at| at.starts_with("2026-"))), "{back:?}");
            }
        }
    }

    #[test]
    fn lines_of_one_message_are_put_together_whatever_stands_between() {
        let lines = [
            user("go"),
            block("m1", &json!({"type":"thinking","thinking":"hm"})),
            block("m1", &text("one")),
            block("m1", &json!({"type":"tool_use"})),
            json!({"type":"user","message":{"content":[{"type":"tool_result","content":"ok"}]}}),
            block("m1", &text("two")),
            block("m2", &json!({"type":"tool_use"})),
            block("m3", &text("three")),
        ];
        let file = written(&lines.iter().map(|line| format!("{line}\n")).collect::<String>());
        let texts: Vec<String> = all("demo", file.path()).into_iter().map(|said| said.text).collect();
        assert_eq!(texts, ["three", "one\ntwo", "go"]);
    }

    #[test]
    fn a_file_of_any_size_is_read_from_its_end_and_no_more_than_wanted() {
        let mut file = written("");
        file.as_file_mut().set_len(500 << 20).expect("sparse");
        file.seek(SeekFrom::End(0)).expect("sought");
        writeln!(file).expect("written");
        for number in 0..100 {
            writeln!(file, "{}", user(&format!("message {number}"))).expect("written");
        }
        let demo = profile("demo");
        let mut back = MessagesBack::open(&demo, file.path()).expect("open");
        let texts: Vec<String> =
            (0..20).map(|_| back.before(u64::MAX).expect("readable").expect("there is one").text).collect();
        assert_eq!((texts[0].as_str(), texts[19].as_str()), ("message 99", "message 80"));
        assert!(back.bytes_read() <= 1 << 20, "{}", back.bytes_read());
        let mut back = MessagesBack::open(&demo, file.path()).expect("open");
        let found = std::iter::from_fn(|| back.before(4 << 20).expect("readable")).count();
        assert!(found >= 99 && back.bytes_read() <= 5 << 20 && !back.is_at_beginning(), "{found}");
    }

    #[test]
    fn a_line_that_is_too_long_or_broken_is_skipped() {
        let long = user(&"x".repeat(3 << 20));
        let lines = format!("{}\n{long}\nnot json\n\n{}\n{{\"type\":\"us", user("before"), user("after"));
        let texts: Vec<String> = all("demo", written(&lines).path()).into_iter().map(|said| said.text).collect();
        assert_eq!(texts, ["after", "before"]);
        assert!(all("demo", written("").path()).is_empty());
        assert!(all("demo", written(&format!("{long}\n")).path()).is_empty());
        assert_eq!(all("demo", written(&user("alone").to_string()).path()).len(), 1);
    }

    #[test]
    fn no_link_is_followed() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = written(&user("hello").to_string());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(file.path(), &link).expect("a link");
        let demo = profile("demo");
        assert!(MessagesBack::open(&demo, &link).is_err());
        let gone = MessagesBack::open(&demo, &dir.path().join("gone")).err().expect("an error");
        assert!(gone.is_missing());
        assert!(matches!(
            MessagesBack::open(&without_rules(), file.path()).err().expect("an error"),
            TranscriptError::NoRules { .. }
        ));
    }
}
