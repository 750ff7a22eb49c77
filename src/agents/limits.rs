//! Finds the limit that stops an agent's CLI, by the profile's rules: in what an event said, in the transcript, on the
//! screen.

use super::limit_format::{LimitText, LimitsSection};
use super::profile::Profile;
use super::reset_time::{self, ReadingTime};
use super::rules::{all_fit, text_at};
use super::transcript::{TranscriptError, is_skipped};
use super::transcript_file::{TranscriptFile, lines};
use super::transcript_format::Role;
use crate::core::effect::LimitFound;
use crate::core::text::sanitise;
use crate::secrets::{self, Known};
use serde_json::Value;
use std::path::Path;

/// How much of a transcript is read for this, from its end, in bytes.
const MAX_TAIL: u64 = 256 * 1024;
/// The largest number of lines of a screen that are searched.
const SCREEN_LINES: usize = 20;
/// The largest number of characters that are kept of what the CLI says.
const MAX_SAID: usize = 300;

/// What the end of a transcript says of the last turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TranscriptEnd {
    /// The turn was ended by a limit.
    Limited {
        found: LimitFound,
        /// The limit's end is a number or a date of the transcript's own, and was not read from words.
        is_exact: bool,
    },
    /// It was answered, or has failed for another reason.
    NotLimited,
    /// Nothing: the last word is the user's, or there is none.
    Unknown,
}

impl Profile {
    /// The limit that an event's own words report.
    #[must_use]
    pub fn limit_in_event(&self, said: &str, clock: &ReadingTime) -> Option<LimitFound> {
        let section = self.file.limits.as_ref()?;
        let rule = section.texts.iter().find(|rule| rule.when.is_empty() && rule.pattern.regex().is_match(said))?;
        Some(found(rule, said, None, clock))
    }

    /// The limit that the last lines of a screen show. `screen` is plain text.
    #[must_use]
    pub fn limit_on_screen(&self, screen: &str, clock: &ReadingTime) -> Option<LimitFound> {
        let section = self.file.limits.as_ref()?;
        let filled: Vec<&str> = screen.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        let last = filled[filled.len().saturating_sub(SCREEN_LINES)..].join("\n");
        // An earlier limit may stand above the last one.
        let seen = section.screen.iter().find_map(|rule| Some((rule, rule.pattern.regex().find_iter(&last).last()?)));
        let (rule, place) = seen?;
        // The time at which the limit ends may stand in the next line.
        let from = last[..place.start()].rfind('\n').map_or(0, |at| at + 1);
        let after = last[place.end()..].split_inclusive('\n').take(2).map(str::len).sum::<usize>();
        let said = last[from..place.end() + after].replace(is_border, " ");
        Some(LimitFound { on_screen: true, ..found(rule, &said, None, clock) })
    }

    /// Whether a limit has ended the last turn of a transcript.
    ///
    /// # Errors
    /// The transcript can't be read.
    pub fn limit_in_transcript(&self, path: &Path, clock: &ReadingTime) -> Result<TranscriptEnd, TranscriptError> {
        let Some(section) = self.file.limits.as_ref().filter(|section| !section.lines.is_empty()) else {
            return Ok(TranscriptEnd::Unknown);
        };
        let (bytes, _) = TranscriptFile::open(path)?.tail(MAX_TAIL)?;
        let end = lines(&bytes).rev().find_map(|line| self.end_in_line(section, &line, clock));
        Ok(end.unwrap_or(TranscriptEnd::Unknown))
    }

    /// What a line says of the last turn; none if it says nothing of that.
    fn end_in_line(&self, section: &LimitsSection, line: &Value, clock: &ReadingTime) -> Option<TranscriptEnd> {
        if let Some(report) = section.lines.iter().find(|report| all_fit(&report.when, line)) {
            let said = text_at(line, &report.text)?;
            let fits = |rule: &&LimitText| rule.pattern.regex().is_match(&said) && all_fit(&rule.when, line);
            let until = report.until.iter().find_map(|at| reset_time::of_value(at.find(line)?));
            return Some(section.texts.iter().find(fits).map_or(TranscriptEnd::NotLimited, |rule| {
                TranscriptEnd::Limited { found: found(rule, &said, until, clock), is_exact: until.is_some() }
            }));
        }
        let rules = self.file.transcript.as_ref()?;
        let message = rules.messages.iter().find(|rule| all_fit(&rule.when, line))?;
        if is_skipped(rules, line) {
            return None;
        }
        Some(match message.role {
            Role::Assistant => TranscriptEnd::NotLimited,
            Role::User => TranscriptEnd::Unknown,
        })
    }
}

/// Whether a character draws the border of a dialog.
fn is_border(character: char) -> bool {
    ('\u{2500}'..='\u{257f}').contains(&character)
}

fn found(rule: &LimitText, said: &str, until_ms: Option<i64>, clock: &ReadingTime) -> LimitFound {
    // A screen may break a sentence anywhere, also just before the time that it names.
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let until_ms = until_ms.or_else(|| reset_time::in_text(&words, clock));
    let words = secrets::without(&sanitise(&words), &Known::default());
    LimitFound { kind: rule.kind, until_ms, said: words.chars().take(MAX_SAID).collect(), on_screen: false }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
