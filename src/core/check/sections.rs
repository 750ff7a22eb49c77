//! The sections that were asked for: which are missing, and which have nothing but a placeholder.

use super::asked::{Asked, NEXT, OF_FILE, OF_REPLY, STEPS, asked, has_stem};
use super::lines::{BOLD, Document, DocumentLine, LineKind, list_marker};
use super::report::FaultReport;
use super::spans::head;
use crate::contract::document::FaultCheck;
use crate::contract::handoff::Author;

/// The largest number of headings of one section.
const MOST_HEADINGS: usize = 100;
/// Longest label before a text in the same line: in bytes, and in words.
const MAX_LABEL: usize = 60;
const MOST_WORDS: usize = 5;

/// Reports missing sections, and sections that say nothing.
pub(super) fn check(document: &Document<'_>, author: Author, report: &mut FaultReport) {
    for section in missing(document, author) {
        report.fix(FaultCheck::Sections, None, &section.missing(), "");
    }
    for section in asked(author) {
        let headings = section.headings(document);
        let Some(first) = headings.first().map(|at| document.lines[*at].number) else { continue };
        if headings.into_iter().all(|at| section.is_empty(document, at)) {
            report.fix(FaultCheck::Sections, Some(first), &format!("the section about {} is empty", section.about), "");
        }
    }
}

/// The sections for which the document has no heading. A line such as `**Blockers:** none`, `Files modified:` or
/// `6. Next steps` counts as a heading too, and so do other words: good documents use them, and the agent must repair
/// its document for each section that is reported as missing.
fn missing(document: &Document<'_>, author: Author) -> impl Iterator<Item = &'static Asked> {
    let mut missing: Vec<&'static Asked> = asked(author).iter().collect();
    for line in &document.lines {
        let is_like_a_heading = match line.kind {
            LineKind::Heading(_) => true,
            LineKind::Text => is_label(line.lower),
            LineKind::FrontMatter | LineKind::Fence | LineKind::Code | LineKind::Unseen | LineKind::Blank => continue,
        };
        if missing.is_empty() {
            break;
        }
        let bare = if is_like_a_heading { line.lower } else { bare(head(line.lower)) };
        let label = if is_like_a_heading { Some(line.lower) } else { label(bare) };
        missing.retain(|asked| {
            let is_it = bare.starts_with(asked.heading) || label.is_some_and(|label| asked.is_headed_by(label));
            !is_it
        });
    }
    missing.into_iter()
}

/// The lines of each section about the next steps, without the heading. If there are such sections, but none has the
/// heading that was asked for, sections such as "Tasks" are added.
pub(super) fn next_steps<'d, 'a>(document: &'d Document<'a>) -> Vec<&'d [DocumentLine<'a>]> {
    let mut headings = NEXT.headings(document);
    let is_asked = |at: &usize| bare(document.lines[*at].lower).starts_with(NEXT.heading);
    if !headings.is_empty() && !headings.iter().any(is_asked) {
        headings.extend(STEPS.headings(document));
    }
    headings.into_iter().map(|at| below(document, at)).collect()
}

/// Whether a heading announces work that is not done yet.
pub(super) fn is_about_next_steps(lower: &str) -> bool {
    has_stem(lower, NEXT.stems)
}

impl Asked {
    fn missing(&self) -> String {
        format!("the document has no section about {}", self.about)
    }

    /// Whether a heading may begin this section. If it begins with the heading of another section that was asked for,
    /// only the words after that count.
    fn is_headed_by(&self, lower: &str) -> bool {
        let bare = bare(lower);
        let is_of_file = OF_FILE.iter().any(|it| it.heading == self.heading);
        let all = if is_of_file { &OF_FILE } else { &OF_REPLY };
        let other = all.iter().map(|it| it.heading).find(|it| *it != self.heading && bare.starts_with(it));
        match other {
            Some(other) if !bare.starts_with(self.heading) => has_stem(&bare[other.len()..], self.stems),
            _ => has_stem(bare, self.stems),
        }
    }

    /// The indices of this section's headings: the headings as they were asked for. If the document has none of these,
    /// then the headings with one of the stems, except the document's title and lines that are only bold.
    fn headings(&self, document: &Document<'_>) -> Vec<usize> {
        let headings = || document.lines.iter().enumerate().filter(|(_, line)| line.level().is_some());
        let asked = headings().filter(|(_, line)| bare(line.lower).starts_with(self.heading));
        let asked: Vec<usize> = asked.map(|(at, _)| at).take(MOST_HEADINGS).collect();
        if !asked.is_empty() {
            return asked;
        }
        let title = title(document);
        let is_like_it = |(at, line): &(usize, &DocumentLine<'_>)| {
            Some(*at) != title && line.level() != Some(BOLD) && self.is_headed_by(line.lower)
        };
        headings().filter(is_like_it).map(|(at, _)| at).take(MOST_HEADINGS).collect()
    }

    /// Whether neither a heading nor the text under it says anything.
    fn is_empty(&self, document: &Document<'_>, at: usize) -> bool {
        let heading = document.lines[at].lower;
        let after_colon = heading.split_once([':', '—', '–']).is_some_and(|(_, rest)| !self.says_nothing(rest));
        let says_none = ["none", "nothing", "(no ", "empty"].iter().any(|word| heading.contains(word));
        !after_colon && !says_none && below(document, at).iter().all(|line| self.is_nothing(line))
    }

    /// Whether a line in the section says nothing. A subheading says something, unless it is exactly the heading of a
    /// section that an instruction asks for.
    fn is_nothing(&self, line: &DocumentLine<'_>) -> bool {
        match line.kind {
            LineKind::FrontMatter | LineKind::Fence | LineKind::Unseen | LineKind::Blank => true,
            LineKind::Heading(_) => OF_FILE.iter().chain(&OF_REPLY).any(|other| bare(line.lower) == other.heading),
            LineKind::Code => line.text.trim().is_empty(),
            LineKind::Text => self.says_nothing(line.lower),
        }
    }

    /// Whether a text is a placeholder, or has only punctuation.
    fn says_nothing(&self, lower: &str) -> bool {
        let text = bare(lower);
        let text = text.strip_prefix("todo:").or_else(|| text.strip_prefix("tbd:")).unwrap_or(text).trim();
        let is_bracketed = |open: char, close: char| text.starts_with(open) && text.ends_with(close);
        let is_note = is_bracketed('(', ')') && ["fill", "todo", "tbd"].iter().any(|word| text.contains(word));
        let is_template = is_note
            || (is_bracketed('[', ']') && !text.contains("]("))
            || (is_bracketed('<', '>') && !text.contains("://"))
            || is_bracketed('{', '}');
        text.chars().all(|c| c.is_ascii_punctuation() || c.is_whitespace() || c == '…' || c == '—' || c == '–')
            || UNFILLED.contains(&text)
            || is_template
            || (!self.may_be_none && NOT_APPLICABLE.contains(&text))
    }
}

/// Placeholders for a text that is not written yet.
const UNFILLED: [&str; 26] = [
    "todo",
    "tbd",
    "tba",
    "tbc",
    "to do",
    "xxx",
    "placeholder",
    "pending",
    "fill in",
    "fill this in",
    "fill me in",
    "to be added",
    "to be completed",
    "to be decided",
    "to be determined",
    "to be done",
    "to be filled",
    "to be filled in",
    "to be written",
    "coming soon",
    "describe here",
    "add here",
    "write here",
    "your text here",
    "text goes here",
    "lorem ipsum",
];

/// Texts that count as a placeholder in a section that always has something to say.
const NOT_APPLICABLE: [&str; 3] = ["n/a", "na", "not applicable"];

/// The index of the document's title: its first heading, if that is the only one of the first level.
fn title(document: &Document<'_>) -> Option<usize> {
    let mut first_level = document.lines.iter().enumerate().filter(|(_, line)| line.level() == Some(1));
    let title = first_level.next().filter(|_| first_level.next().is_none()).map(|(at, _)| at)?;
    let first = document.lines.iter().position(|line| line.level().is_some());
    (first == Some(title)).then_some(title)
}

/// The lines below a heading, up to the next heading of the same or a higher level.
fn below<'d, 'a>(document: &'d Document<'a>, at: usize) -> &'d [DocumentLine<'a>] {
    let level = document.lines[at].level().unwrap_or_default();
    let rest = &document.lines[at + 1..];
    let end = rest.iter().position(|line| line.level().is_some_and(|other| other <= level));
    &rest[..end.unwrap_or(rest.len())]
}

/// Whether a line names the text after it: it begins with bold letters or `#`, or ends with a colon.
fn is_label(lower: &str) -> bool {
    let lower = lower.trim();
    let lower = list_marker(lower).map_or(lower, str::trim_start);
    lower.len() < 100 && (lower.starts_with("**") || lower.ends_with(':') || lower.starts_with('#'))
}

/// What stands before the colon of a line that says something after it, such as "state" in `State: it works`.
fn label(bare: &str) -> Option<&str> {
    let at = bare.find([':', '：']).filter(|at| (1..=MAX_LABEL).contains(at))?;
    let (label, rest) = (&bare[..at], bare[at..].trim_start_matches([':', '：', '*']));
    let is_label = !label.contains(['`', '/', '(', '"']) && label.split_whitespace().count() <= MOST_WORDS;
    let says_something = rest.starts_with(char::is_whitespace) || bare[at..].starts_with('：');
    let is_placeholder = || UNFILLED.contains(&self::bare(rest)) || self::bare(rest).is_empty();
    (is_label && says_something && !is_placeholder()).then_some(label)
}

/// A text without the marks of headings, lists, tasks, quotations and emphasis around it.
fn bare(lower: &str) -> &str {
    let mut text = lower.trim();
    for _ in 0..8 {
        let before = text;
        text = text.trim_start_matches(['#', '>', '*', '_', '`', ' ', '\t']);
        text = list_marker(text).unwrap_or(text).trim_start();
        text = ["[ ]", "[x]", "☐", "☑"].iter().find_map(|mark| text.strip_prefix(mark)).unwrap_or(text).trim_start();
        if text.len() == before.len() {
            break;
        }
    }
    text.trim_end_matches(['*', '_', '`', '.', ':', ';', '!', '…', ' ', '\t'])
}

#[cfg(test)]
#[path = "sections_tests.rs"]
mod tests;
