//! Where a line stands in its document: under which headings, in which table or list, in which block of code.

use super::lines::{Document, DocumentLine, LineKind, list_marker};
use super::spans::head;
use std::path::Path;

/// Levels of headings: 1 to 7. Index 0 is unused.
const LEVELS: usize = 8;
/// The largest number of list items around a line, from the outermost to the innermost.
const MOST_ITEMS: usize = 4;

/// A line and the texts around it. Those texts have their ASCII letters in lower case.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// From 1.
    pub(super) number: usize,
    pub(super) kind: LineKind,
    /// The line, or the beginning of a long one.
    pub(super) text: &'a str,
    /// The same with ASCII letters in lower case.
    pub(super) lower: &'a str,
    /// The headings above the line by their level; empty where there is none.
    headings: [&'a str; LEVELS],
    /// The first row of the table in which the line is.
    pub(super) table: &'a str,
    /// The line that introduces a list or a block, such as `Commits:`.
    pub(super) intro: &'a str,
    /// The list items that contain the line, without the line itself; empty where there is none.
    items: [&'a str; MOST_ITEMS],
    /// If the line continues a sentence of the line before: the beginning of that sentence.
    pub(super) begun: &'a str,
    /// If the next line continues a sentence of this line: the part of the sentence in the next line.
    pub(super) continued: &'a str,
    /// The line before, if both lines are code of one block.
    pub(super) code_before: &'a str,
}

impl<'a> Place<'a> {
    /// Whether one of the words is in a heading above the line, or in the line that introduces it.
    pub(super) fn is_under(&self, words: &[&str]) -> bool {
        self.headings.iter().any(|heading| has_word(heading, words)) || has_word(self.intro, words)
    }

    /// The headings above the line, without that of the first level, which is the title of the document.
    pub(super) fn headings_below_title(&self) -> impl Iterator<Item = &'a str> {
        self.headings.into_iter().skip(2).filter(|heading| !heading.is_empty())
    }

    /// The texts that announce the line: the first row of its table, the line before its list, the list items that
    /// contain it, and the headings above it.
    pub(super) fn above(&self) -> impl Iterator<Item = &'a str> {
        [self.table, self.intro].into_iter().chain(self.items).chain(self.headings_below_title())
    }
}

/// The list items that can contain the next line.
#[derive(Debug, Default)]
struct Items<'a> {
    /// Indentation and text of each.
    open: Vec<(usize, &'a str)>,
}

impl<'a> Items<'a> {
    /// Takes the next line. Returns the items that contain it.
    fn take(&mut self, line: &'a str) -> [&'a str; MOST_ITEMS] {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        self.open.retain(|(other, _)| *other < indent);
        let mut items = [""; MOST_ITEMS];
        items.iter_mut().zip(&self.open).for_each(|(item, (_, text))| *item = text);
        if list_marker(text).is_some() && self.open.len() < MOST_ITEMS {
            self.open.push((indent, line));
        }
        items
    }
}

/// The lines of a document that can say something, each with the texts around it.
pub(super) fn places<'d, 'a>(document: &'d Document<'a>) -> impl Iterator<Item = Place<'a>> + use<'d, 'a> {
    let mut headings = [""; LEVELS];
    let (mut table, mut intro, mut code_before) = ("", "", "");
    let mut open = Items::default();
    document.lines.iter().enumerate().filter_map(move |(at, line)| {
        let (number, kind, lower) = (line.number, line.kind, head(line.lower));
        let mut items = [""; MOST_ITEMS];
        let before = std::mem::take(&mut code_before);
        match kind {
            LineKind::Heading(level) => {
                headings[usize::from(level).min(LEVELS - 1)..].fill("");
                headings[usize::from(level).min(LEVELS - 1)] = lower;
                (table, intro) = ("", "");
                open.open.clear();
            }
            LineKind::Text => {
                let text = lower.trim();
                items = open.take(lower);
                table = match text.starts_with('|') {
                    true if table.is_empty() => lower,
                    true => table,
                    false => "",
                };
                if list_marker(text).is_none() && table.is_empty() {
                    intro = if text.ends_with([':', '*']) { lower } else { "" };
                }
            }
            LineKind::Code => code_before = lower,
            LineKind::Blank => table = "",
            LineKind::FrontMatter | LineKind::Fence | LineKind::Unseen => {}
        }
        let says = !matches!(kind, LineKind::Blank | LineKind::Fence | LineKind::Unseen);
        says.then(|| Place {
            number,
            kind,
            text: head(line.text),
            lower,
            headings,
            table,
            intro,
            items,
            begun: begun(document, at),
            continued: continued(document, at),
            code_before: before,
        })
    })
}

/// If the line continues a sentence of the line before: the beginning of that sentence.
pub(super) fn begun<'a>(document: &Document<'a>, at: usize) -> &'a str {
    let before = at.checked_sub(1).and_then(|before| document.lines.get(before));
    let Some(before) = before.filter(|before| are_one_text(before, &document.lines[at])) else { return "" };
    let lower = head(before.lower);
    let last = sentence_ranges(lower).last().map_or("", |(from, to)| &lower[from..to]);
    if is_ended(last) { "" } else { last }
}

/// If the next line continues a sentence of this line: the part of the sentence in the next line.
fn continued<'a>(document: &Document<'a>, at: usize) -> &'a str {
    let (line, next) = (&document.lines[at], document.lines.get(at + 1));
    let Some(next) = next.filter(|next| are_one_text(line, next) && !is_ended(head(line.lower))) else { return "" };
    let lower = head(next.lower);
    sentence_ranges(lower).next().map_or("", |(from, to)| &lower[from..to])
}

/// Whether the second line continues the text of the first one.
fn are_one_text(first: &DocumentLine<'_>, second: &DocumentLine<'_>) -> bool {
    let is_text = |line: &DocumentLine<'_>| line.kind == LineKind::Text && !line.text.trim_start().starts_with('|');
    is_text(first) && is_text(second) && list_marker(second.text.trim_start()).is_none()
}

fn is_ended(sentence: &str) -> bool {
    sentence.trim_end().ends_with(['.', '!', '?', ':', ';', '|', '。'])
}

/// Where the sentences of a line begin and end.
pub(super) fn sentence_ranges(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let rest = text.get(from..).filter(|rest| !rest.is_empty())?;
        let is_end = |(at, c): &(usize, char)| {
            let next = rest[at + c.len_utf8()..].chars().next();
            matches!(c, ';' | '—' | '。') || (matches!(c, '.' | '!' | '?') && next.is_none_or(char::is_whitespace))
        };
        let length = rest.char_indices().find(is_end).map_or(rest.len(), |(at, c)| at + c.len_utf8());
        let range = (from, from + length);
        from += length;
        Some(range)
    })
}

/// Whether a text has one of the words, as a whole word. Both have ASCII letters in lower case.
pub(super) fn has_word(lower: &str, words: &[&str]) -> bool {
    if lower.is_ascii() {
        let mut all = lower.as_bytes().split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'\'');
        return all.any(|found| !found.is_empty() && words.iter().any(|word| word.as_bytes() == found));
    }
    lower.split(|c: char| !c.is_alphanumeric() && c != '\'').any(|word| words.contains(&word))
}

/// Whether a text has one of the phrases.
pub(super) fn has_phrase(lower: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| lower.contains(phrase))
}

/// Whether a line has an absolute path that is neither below nor above the working directory. Such a line speaks of
/// another repository, or of none.
pub(super) fn is_about_elsewhere(text: &str, cwd: Option<&str>) -> bool {
    let is_mark = |c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\'' | '(' | ')' | '（' | '）' | '=' | ',');
    text.split(is_mark).any(|word| {
        let word = word.trim_end_matches(['*', '.', ':', ';', '!', '?']);
        let is_below_home = word.starts_with("~/");
        let is_of_windows = word.get(1..3).is_some_and(|marks| matches!(marks, ":\\" | ":/"));
        let is_absolute = word.starts_with('/') && word.matches('/').nth(1).is_some();
        let path = Path::new(word);
        let is_ours = cwd.map(Path::new).is_some_and(|cwd| path.starts_with(cwd) || cwd.starts_with(path));
        (is_below_home || is_of_windows || is_absolute) && !is_ours
    })
}

/// Whether a word or phrase in a line says that the line is about another repository.
pub(super) fn names_other_repository(lower: &str) -> bool {
    const WORDS: [&str; 9] =
        ["repos", "repositories", "submodule", "submodules", "upstream", "fork", "vendored", "vendor", "pinned"];
    const PHRASES: [&str; 6] = ["other repo", "another repo", "second repo", "separate repo", "sister repo", "` repo"];
    has_word(lower, &WORDS) || has_phrase(lower, &PHRASES)
}
