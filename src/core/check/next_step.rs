//! Whether the next steps say where to begin: with a command or with a file.

use super::lines::{DocumentLine, LineKind};
use super::report::FaultReport;
use super::sections::next_steps;
use super::{lines::Document, spans::spans};
use crate::contract::document::FaultCheck;

/// Words after "no" that say that nothing is left to do, as in "no further steps".
const NO_MORE: [&str; 5] = ["next", "further", "more", "remaining", "open"];
/// Words that say so if they stand alone or after one of [`ALL`].
const DONE: [&str; 4] = ["done", "complete", "completed", "finished"];
/// Words before "done" that make it a report, as in "all done". "Get the parser done" is an order.
const ALL: [&str; 8] = ["all", "everything", "is", "are", "task", "tasks", "work", "now"];
/// Words before "done" that make it a condition, as in "once that is done".
const IF: [&str; 8] = ["when", "once", "until", "if", "after", "before", "not", "make"];
/// A section of so many bytes or more does not only say that nothing is left.
const MAX_SHORT: usize = 200;

pub(super) fn check(document: &Document<'_>, report: &mut FaultReport) {
    let sections = next_steps(document);
    let begins_somewhere = |lines: &&[DocumentLine<'_>]| lines.iter().any(names_a_place);
    if sections.is_empty() || sections.iter().any(|lines| begins_somewhere(lines) || says_nothing_is_left(lines)) {
        return;
    }
    let line = sections.first().and_then(|lines| lines.first()).map(|line| line.number.saturating_sub(1));
    let is = "the successor is told neither a command nor a file to begin with";
    report.warn(FaultCheck::NextStep, line, "the section about next steps names no command and no path", is);
}

/// Whether a line has a command or a path: code, or a word like `src/main.rs` without backticks.
fn names_a_place(line: &DocumentLine<'_>) -> bool {
    match line.kind {
        LineKind::Code => !line.text.trim().is_empty(),
        LineKind::Text | LineKind::Heading(_) => {
            spans(line.text).next().is_some() || line.text.split_whitespace().any(super::paths::is_like_a_file)
        }
        LineKind::FrontMatter | LineKind::Fence | LineKind::Unseen | LineKind::Blank => false,
    }
}

/// Whether a section says that nothing is left to do, or is empty. Another check reports an empty section.
fn says_nothing_is_left(lines: &&[DocumentLine<'_>]) -> bool {
    let length: usize = lines.iter().map(|line| line.text.len()).sum();
    let is_empty = lines.iter().all(|line| line.text.trim().is_empty());
    let says = |line: &DocumentLine<'_>| line.lower.split(['.', ';', ',', '!', '(']).any(says_so);
    is_empty || (length < MAX_SHORT && lines.iter().any(says))
}

/// Whether a part of a sentence says that nothing is left to do. "Complete the parser" does not.
fn says_so(part: &str) -> bool {
    let words: Vec<&str> = part.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let has = |list: &[&str], words: &[&str]| words.iter().any(|word| list.contains(word));
    let says_none = |(at, word): (usize, &&str)| {
        let next = words.get(at + 1);
        let is_report = || words.len() == 1 || has(&ALL, &words[..at]);
        *word == "nothing"
            || (*word == "none" && next != Some(&"of"))
            || (*word == "no" && next.is_some_and(|next| NO_MORE.contains(next)))
            || (DONE.contains(word) && is_report() && !has(&IF, &words[..at]))
    };
    words.iter().enumerate().any(says_none)
}
