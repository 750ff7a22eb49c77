//! Where a line stands in its document: under which headings, in which table or list, in which block of code.

use super::lines::{Document, LineKind, list_marker};
use super::spans::head;
use std::path::Path;

/// Levels of headings, and none.
const LEVELS: usize = 8;

/// A line, and what stands above it. What stands above has its ASCII letters in lower case.
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
    /// The line before, if both are code of one block.
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
}

/// The lines of a document that can say something, with what is above them.
pub(super) fn places<'d, 'a>(document: &'d Document<'a>) -> impl Iterator<Item = Place<'a>> + use<'d, 'a> {
    let mut headings = [""; LEVELS];
    let (mut table, mut intro, mut code_before) = ("", "", "");
    document.lines.iter().filter_map(move |line| {
        let (number, kind, lower) = (line.number, line.kind, head(line.lower));
        let before = std::mem::take(&mut code_before);
        match kind {
            LineKind::Heading(level) => {
                headings[usize::from(level).min(LEVELS - 1)..].fill("");
                headings[usize::from(level).min(LEVELS - 1)] = lower;
                (table, intro) = ("", "");
            }
            LineKind::Text => {
                let text = lower.trim();
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
        says.then(|| Place { number, kind, text: head(line.text), lower, headings, table, intro, code_before: before })
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

/// Whether a line has an absolute path that has nothing to do with the working directory: then it speaks of another
/// repository, or of none.
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

/// Whether a line speaks of another repository by a word.
pub(super) fn names_other_repository(lower: &str) -> bool {
    const WORDS: [&str; 9] =
        ["repos", "repositories", "submodule", "submodules", "upstream", "fork", "vendored", "vendor", "pinned"];
    const PHRASES: [&str; 6] = ["other repo", "another repo", "second repo", "separate repo", "sister repo", "` repo"];
    has_word(lower, &WORDS) || has_phrase(lower, &PHRASES)
}
