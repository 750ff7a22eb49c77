//! Whether the next steps say where to begin: with a command or with a file.

use super::lines::{DocumentLine, LineKind};
use super::report::FaultReport;
use super::sections::next_steps;
use super::{lines::Document, spans::spans};
use crate::contract::document::FaultCheck;

/// A section that says this in few characters says that nothing is left to do.
const NOTHING_LEFT: [&str; 6] = ["none", "nothing", "no next", "no further", "complete", "done"];
/// Longest section that may say only that, in bytes.
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

/// Whether a section is as good as empty because the work is done. An empty one is another check's fault.
fn says_nothing_is_left(lines: &&[DocumentLine<'_>]) -> bool {
    let length: usize = lines.iter().map(|line| line.text.len()).sum();
    let is_empty = lines.iter().all(|line| line.text.trim().is_empty());
    let says = |line: &DocumentLine<'_>| NOTHING_LEFT.iter().any(|word| line.lower.contains(word));
    is_empty || (length < MAX_SHORT && lines.iter().any(says))
}
