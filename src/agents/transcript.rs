//! Reads the CLI's own transcript: the conversation, and how full the context is.
//!
//! Only the file's end is read, and a line that is too long or not JSON is skipped. The file lags behind the events by
//! some ten milliseconds and may split one message over several lines, so a caller that needs the last message reads
//! again until it is there.

use super::profile::Profile;
use super::rules::{all_fit, fits, text_at};
use super::transcript_file::{TranscriptFile, lines};
use super::transcript_format::{ContextUsageRule, MessageRule, TranscriptSection};
use crate::core::hook::ContextUsage;
use serde_json::Value;
use std::collections::VecDeque;
use std::path::Path;

pub use super::transcript_file::TranscriptError;
pub use super::transcript_format::Role;

/// How much of a transcript is read, from its end, in bytes.
pub const MAX_READ: u64 = 8 << 20;
/// How much of it is read for the context usage alone, or to look for a prompt, in bytes.
pub(super) const MAX_TAIL_READ: u64 = 1 << 20;
/// How far back the message that a line continues is searched for, in messages: a tool's result may stand between the
/// lines of one message.
const MAX_BACK: usize = 64;

/// One message of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptMessage {
    pub role: Role,
    /// The CLI's id of it, where it has one.
    pub id: Option<String>,
    /// Its text blocks, joined by newlines.
    pub text: String,
}

/// What could be read of a transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The messages that have text, oldest first.
    pub said: Vec<TranscriptMessage>,
    /// How many messages were seen, those without text included.
    pub messages: u64,
    /// How full the context was at the last message.
    pub context: Option<ContextUsage>,
    /// The window's size is the profile's guess by the model's name.
    pub window_is_guess: bool,
    /// Only the tail was read; there is more before it.
    pub cut: bool,
    /// The last message is the agent's and has no text yet: it only thinks or uses tools so far.
    silent_end: bool,
}

/// Reads the last 8 MiB of a transcript.
///
/// # Errors
/// When the profile has no rules for it, or the file is missing, can't be read, is a link or not a regular file, or
/// belongs to another user.
pub fn read(profile: &Profile, path: &Path) -> Result<Transcript, TranscriptError> {
    let rules = rules(profile)?;
    let (bytes, cut) = TranscriptFile::open(path)?.tail(MAX_READ)?;
    let mut reader = TranscriptReader::new(rules);
    lines(&bytes).filter(|line| !is_skipped(rules, line)).for_each(|line| reader.take(&line));
    Ok(Transcript { cut, ..reader.out })
}

/// Reads only how full the context is, from the last 1 MiB; and whether the window's size is a guess.
///
/// # Errors
/// As [`read`].
pub fn read_context_usage(profile: &Profile, path: &Path) -> Result<Option<(ContextUsage, bool)>, TranscriptError> {
    let rules = rules(profile)?;
    let Some(rule) = &rules.context else { return Ok(None) };
    let (bytes, _) = TranscriptFile::open(path)?.tail(MAX_TAIL_READ)?;
    Ok(lines(&bytes).rev().filter(|line| !is_skipped(rules, line)).find_map(|line| measure(rule, &line)))
}

/// Whether the last 1 MiB has a message of the user's with this mark.
///
/// # Errors
/// As [`read`].
pub fn holds_prompt(profile: &Profile, path: &Path, mark: &str) -> Result<bool, TranscriptError> {
    let rules = rules(profile)?;
    let (bytes, _) = TranscriptFile::open(path)?.tail(MAX_TAIL_READ)?;
    // The caller asks often, so only lines that contain the mark are parsed.
    let may_be = |line: &&[u8]| std::str::from_utf8(line).is_ok_and(|line| line.contains(mark));
    let is_it = |line: &Value| {
        let rule = rules.messages.iter().find(|rule| all_fit(&rule.when, line));
        let texts = rule.filter(|rule| rule.role == Role::User).map(|rule| rule.texts(line)).unwrap_or_default();
        texts.iter().any(|text| text.contains(mark))
    };
    let marked = bytes.split(|byte| *byte == b'\n').filter(may_be).flat_map(lines);
    Ok(marked.filter(|line| !is_skipped(rules, line)).any(|line| is_it(&line)))
}

impl Transcript {
    /// The text of the agent's last message, if it comes after the user's last one and is not still without text.
    #[must_use]
    pub fn last_reply(&self) -> Option<&str> {
        let last = self.said.last().filter(|said| said.role == Role::Assistant && !self.silent_end)?;
        Some(&last.text)
    }
}

pub(super) fn rules(profile: &Profile) -> Result<&TranscriptSection, TranscriptError> {
    let rules = profile.file.transcript.as_ref();
    rules.ok_or_else(|| TranscriptError::NoRules { profile: profile.name.clone() })
}

/// Whether the profile leaves the line out.
pub(super) fn is_skipped(rules: &TranscriptSection, line: &Value) -> bool {
    rules.skip.iter().any(|when| fits(Some(when), line))
}

/// The context usage that a line reports; none if it reports none, or no tokens, as a CLI's own error message does. A
/// guessed window that is smaller than what is used is ignored.
fn measure(rule: &ContextUsageRule, line: &Value) -> Option<(ContextUsage, bool)> {
    if !all_fit(&rule.when, line) {
        return None;
    }
    let numbers = rule.used.iter().filter_map(|at| at.find(line)?.as_u64());
    let used = numbers.fold(0_u64, u64::saturating_add);
    let told = rule.window.as_ref().and_then(|at| at.find(line)?.as_u64()).filter(|window| *window > 0);
    let model = rule.model.as_ref().and_then(|at| text_at(line, at)).unwrap_or_default();
    let guess = || rule.windows.iter().find(|window| window.model.regex().is_match(&model)).map(|window| window.tokens);
    let window = told.or_else(|| guess().filter(|window| *window >= used));
    (used > 0).then_some((ContextUsage { used, window }, told.is_none() && window.is_some()))
}

/// A line of a message.
pub(super) struct SpokenLine<'v> {
    pub(super) rule: &'v MessageRule,
    /// The message's id, where it has one.
    pub(super) id: Option<String>,
    /// Its texts, without those that the CLI itself has put among a person's words.
    pub(super) texts: Vec<&'v str>,
}

/// Reads a line as a part of a message; `None` if it is none. A user's line that has only noise or a tool's result is
/// not part of a message.
pub(super) fn spoken<'v>(rules: &'v TranscriptSection, line: &'v Value) -> Option<SpokenLine<'v>> {
    let rule = rules.messages.iter().find(|rule| all_fit(&rule.when, line))?;
    let is_noise = |text: &str| rules.skip_texts.iter().any(|pattern| pattern.regex().is_match(text));
    let texts = rule.texts(line).into_iter().filter(|text| !text.trim().is_empty() && !is_noise(text));
    let texts: Vec<&str> = texts.collect();
    if texts.is_empty() && rule.role == Role::User {
        return None;
    }
    Some(SpokenLine { rule, id: rule.id.as_ref().and_then(|at| text_at(line, at)), texts })
}

/// A message that was begun: later lines may add to it.
struct Begun {
    role: Role,
    id: Option<String>,
    /// Its place in `said`, once it has text.
    place: Option<usize>,
}

/// Puts the lines of a transcript together to a conversation.
pub(super) struct TranscriptReader<'r> {
    rules: &'r TranscriptSection,
    begun: VecDeque<Begun>,
    pub(super) out: Transcript,
}

impl<'r> TranscriptReader<'r> {
    pub(super) fn new(rules: &'r TranscriptSection) -> Self {
        TranscriptReader { rules, begun: VecDeque::new(), out: Transcript::default() }
    }

    /// Reads a line that is not skipped.
    pub(super) fn take(&mut self, line: &Value) {
        if let Some((usage, guess)) = self.rules.context.as_ref().and_then(|rule| measure(rule, line)) {
            self.out.context = Some(usage);
            self.out.window_is_guess = guess;
        }
        if let Some(spoken) = spoken(self.rules, line) {
            self.message(&spoken);
        }
    }

    fn message(&mut self, spoken: &SpokenLine<'_>) {
        let SpokenLine { rule, id, texts } = spoken;
        let at = self.begin(rule.role, id.clone());
        if texts.is_empty() {
            self.out.silent_end = rule.role == Role::Assistant && self.begun[at].place.is_none();
            return;
        }
        let text = texts.join("\n");
        let begun = &mut self.begun[at];
        match begun.place {
            Some(place) if rule.whole => self.out.said[place].text = text,
            Some(place) => {
                let said = &mut self.out.said[place].text;
                said.push('\n');
                said.push_str(&text);
            }
            None => {
                begun.place = Some(self.out.said.len());
                self.out.said.push(TranscriptMessage { role: begun.role, id: begun.id.clone(), text });
            }
        }
        self.out.silent_end = false;
    }

    /// The place, in `begun`, of the message that a line belongs to; begins a new message if there is none.
    fn begin(&mut self, role: Role, id: Option<String>) -> usize {
        let same = |begun: &Begun| begun.role == role && begun.id == id;
        if let Some(at) = id.as_ref().and_then(|_| self.begun.iter().rposition(same)) {
            return at;
        }
        self.out.messages += 1;
        if self.begun.len() == MAX_BACK {
            self.begun.pop_front();
        }
        self.begun.push_back(Begun { role, id, place: None });
        self.begun.len() - 1
    }
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
