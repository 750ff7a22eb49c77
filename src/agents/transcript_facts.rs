//! What a transcript shows of a session as a whole: its size, its model, what the person asked for, which tools the
//! agent used. Of a long transcript only the beginning and the end are read.

use super::profile::Profile;
use super::rules::{all_fit, text_at};
use super::tool_calls::{CallReader, ToolCall};
use super::transcript::{MAX_READ, Role, TranscriptError, TranscriptMessage, TranscriptReader, is_skipped, rules};
use super::transcript_file::{TranscriptFile, lines};
use super::transcript_format::TranscriptSection;
use crate::contract::facts::{ConversationFacts, UserFacts};
use crate::core::cut;
use crate::core::hook::ContextUsage;
use crate::core::text::{bears_signature, quotable, sanitise};
use serde_json::Value;
use std::path::Path;

/// How much of a long transcript is read from its beginning, in bytes.
const MAX_HEAD: u64 = 1 << 20;
/// Longest text of a request, in bytes.
const MAX_REQUEST: usize = 4_096;
/// How many of the last requests are kept.
const MAX_REQUESTS: usize = 5;
/// Longest name of a model, in characters.
const MAX_MODEL: usize = 100;

/// What a transcript shows of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TranscriptFacts {
    /// Prompts and answers, as far as they were read.
    pub messages: u64,
    /// Only the beginning and the end were read.
    pub cut: bool,
    /// How often the CLI has summarised the conversation, as far as it was read; `None` if the profile can't tell.
    pub compactions: Option<u64>,
    /// How full the context was at the last message.
    pub context: Option<ContextUsage>,
    /// The window's size is the profile's guess by the model's name.
    pub window_is_guess: bool,
    /// The name of the model that answered last.
    pub model: Option<String>,
    /// The person's first request, at most 4 KiB of it; `None` if there is none, or if the part that was read from the
    /// beginning has none. tasuki's own texts don't count.
    pub first: Option<String>,
    /// The person's last five requests, oldest first, at most 4 KiB of each.
    pub last: Vec<String>,
    /// The last 2,000 tool calls, oldest first; `None` if the profile has no rules for them.
    pub calls: Option<Vec<ToolCall>>,
}

/// Reads at most the first 1 MiB and the last 8 MiB of a transcript.
///
/// # Errors
/// As [`super::transcript::read`].
pub fn read_facts(profile: &Profile, path: &Path) -> Result<TranscriptFacts, TranscriptError> {
    let rules = rules(profile)?;
    let mut file = TranscriptFile::open(path)?;
    let (tail, cut) = file.tail(MAX_READ)?;
    let mut facts = FactReader::new(rules);
    if cut {
        // The end of the file was read from here on.
        let before = file.size().saturating_sub(MAX_READ);
        facts.take_all(&file.head(MAX_HEAD.min(before))?);
    }
    let at_beginning = facts.said();
    facts.take_all(&tail);
    Ok(facts.finish(profile, cut.then_some(at_beginning)))
}

impl TranscriptFacts {
    /// The facts of the conversation, without session id, resume command and path, which the caller knows.
    #[must_use]
    pub fn conversation(&self) -> ConversationFacts {
        ConversationFacts {
            messages: self.messages,
            cut: self.cut,
            compactions: self.compactions,
            context_percent: self.context.as_ref().and_then(ContextUsage::percent),
            model: self.model.clone(),
            ..ConversationFacts::default()
        }
    }

    /// What the person said.
    #[must_use]
    pub fn user(&self) -> UserFacts {
        UserFacts { first: self.first.clone(), last: self.last.clone() }
    }
}

struct FactReader<'r> {
    rules: &'r TranscriptSection,
    talk: TranscriptReader<'r>,
    calls: Option<CallReader<'r>>,
    compactions: u64,
    model: Option<String>,
}

impl<'r> FactReader<'r> {
    fn new(rules: &'r TranscriptSection) -> Self {
        let calls = rules.tools.as_ref().map(CallReader::new);
        FactReader { rules, talk: TranscriptReader::new(rules), calls, compactions: 0, model: None }
    }

    fn take_all(&mut self, bytes: &[u8]) {
        lines(bytes).filter(|line| !is_skipped(self.rules, line)).for_each(|line| self.take(&line));
    }

    fn take(&mut self, line: &Value) {
        self.talk.take(line);
        if let Some(calls) = &mut self.calls {
            calls.take(line);
        }
        if !self.rules.compacted.is_empty() && all_fit(&self.rules.compacted, line) {
            self.compactions += 1;
        }
        let rule = self.rules.model.as_ref().filter(|rule| all_fit(&rule.when, line));
        if let Some(model) = rule.and_then(|rule| text_at(line, &rule.at)).filter(|model| !model.is_empty()) {
            self.model = Some(quotable(&model, MAX_MODEL).replace(['\n', '\t'], " "));
        }
    }

    /// How many messages with a text were read so far.
    fn said(&self) -> usize {
        self.talk.out.said.len()
    }

    /// `at_beginning`: if the middle was not read, how many of the messages are from before it.
    fn finish(self, profile: &Profile, at_beginning: Option<usize>) -> TranscriptFacts {
        let talk = self.talk.out;
        let request = |said: &TranscriptMessage| request(profile, said);
        let (beginning, end) = match at_beginning {
            Some(at) => talk.said.split_at(at),
            None => (&talk.said[..], &talk.said[..]),
        };
        let mut last: Vec<String> = end.iter().rev().filter_map(request).take(MAX_REQUESTS).collect();
        last.reverse();
        TranscriptFacts {
            messages: talk.messages,
            cut: at_beginning.is_some(),
            compactions: (!self.rules.compacted.is_empty()).then_some(self.compactions),
            context: talk.context,
            window_is_guess: talk.window_is_guess,
            model: self.model,
            first: beginning.iter().find_map(request),
            last,
            calls: self.calls.map(CallReader::calls),
        }
    }
}

/// What a message asks for, if it is the person's: not the agent's, and not typed by tasuki.
fn request(profile: &Profile, said: &TranscriptMessage) -> Option<String> {
    if said.role != Role::User {
        return None;
    }
    let text = profile.unwrap_prompt(&said.text);
    let without_space: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if bears_signature(&without_space) {
        return None;
    }
    let text = shortened(sanitise(&text).trim());
    (!text.is_empty()).then_some(text)
}

/// The beginning of a text that is too long.
fn shortened(text: &str) -> String {
    if text.len() <= MAX_REQUEST {
        return text.to_owned();
    }
    // 48 bytes leave room for the longest note.
    let beginning = cut::beginning(text, MAX_REQUEST - 48);
    format!("{beginning}… ({} bytes left out)", text.len() - beginning.len())
}

#[cfg(test)]
#[path = "tool_tests.rs"]
mod tests;
