//! Whether a document is whole: its fences close, nothing says that a part was left out, and it does not end in the
//! middle of a sentence.

use super::lines::{BOLD, Document, DocumentLine, LineKind, list_marker};
use super::places::has_word;
use super::report::{FaultReport, quote};
use super::spans::{head, without_code};
use crate::contract::document::FaultCheck;

/// Longest note in brackets that says that something was left out, in bytes.
const MAX_NOTE: usize = 60;
/// Words that can't be the last of a sentence.
const CONTINUES: [&str; 20] = [
    "the", "an", "and", "or", "because", "although", "whereas", "my", "your", "our", "their", "whose", "than", "via",
    "into", "must", "should", "would", "shall", "cannot",
];
/// A last line with fewer words may be a name or a signature.
const FEWEST_WORDS: usize = 4;
/// A line with more words is a sentence.
const WORDS_OF_A_SENTENCE: usize = 8;
/// With fewer paragraphs and items, nobody can tell whether the author puts a mark at the end of sentences.
const FEWEST_ENDS: usize = 5;
/// The author is taken to do so if at most one in so many paragraphs and items has no such mark.
const OPEN_ONE_IN: usize = 10;
/// The largest number of lines of the last paragraph that are looked at.
const MOST_LINES: usize = 20;

pub(super) fn check(text: &str, document: &Document<'_>, report: &mut FaultReport) {
    if let Some(line) = document.open_fence {
        report.fix(FaultCheck::Whole, Some(line), "a code block begins here", "its fence never closes");
    }
    let is_text = |line: &&DocumentLine<'_>| matches!(line.kind, LineKind::Text | LineKind::Heading(BOLD));
    let notes = document.lines.iter().filter(is_text).filter(|line| is_note_of_a_cut(line.lower));
    if let Some(line) = notes.into_iter().next() {
        let said = if report.hides(line.number) { String::new() } else { quote(line.text) };
        report.fix(FaultCheck::Whole, Some(line.number), &said, "a part of the document is left out");
    }
    if document.open_fence.is_some() || document.is_cut {
        return;
    }
    let Some(last) = document.lines.iter().rposition(|line| line.kind != LineKind::Blank) else { return };
    let line = document.lines[last];
    let is = match line.kind {
        LineKind::Text => left_open(&document.lines[..=last]).or_else(|| cut_short(text, document, last)),
        LineKind::Heading(1..BOLD) if !has_word(line.lower, &["end", "eof", "fin"]) => {
            Some("nothing is under its last heading")
        }
        LineKind::Heading(_)
        | LineKind::FrontMatter
        | LineKind::Fence
        | LineKind::Code
        | LineKind::Unseen
        | LineKind::Blank => None,
    };
    if let Some(is) = is {
        let said = if report.hides(line.number) { "the last line".to_owned() } else { quote(tail(line.text)) };
        report.fix(FaultCheck::Whole, Some(line.number), &format!("the document ends with {said}"), is);
    }
}

/// Whether a line says that something was left out: in brackets that are alone in the line, or with `[truncated]` at
/// the line's end.
fn is_note_of_a_cut(lower: &str) -> bool {
    let text = lower.trim_matches(|c: char| c.is_whitespace() || matches!(c, '.' | '…' | '*' | '_' | '-' | '>'));
    let Some(open) = text.rfind(['[', '(', '<']).filter(|_| text.ends_with([']', ')', '>'])) else { return false };
    let note = &text[open..];
    let is_alone = open == 0 || note.starts_with("[trunc");
    let names_the_rest = ["rest", "remain", "content", "document", "section"].iter().any(|word| note.contains(word));
    let says_so = note.contains("truncated")
        || (names_the_rest && ["omitted", "unchanged", "cut off"].iter().any(|word| note.contains(word)));
    is_alone && says_so && note.len() < MAX_NOTE
}

/// What is still open at the end of the lines. The last line is text.
fn left_open(lines: &[DocumentLine<'_>]) -> Option<&'static str> {
    let last = lines.last()?.text.trim();
    if list_marker(last).is_some_and(|rest| matches!(rest.trim(), "" | "[ ]" | "[x]")) {
        return Some("nothing is in its last item");
    }
    if is_cut_row(lines) {
        return Some("a table ends in the middle of a row");
    }
    let paragraph = paragraph(lines);
    if head(&paragraph).len() < paragraph.len() {
        return None;
    }
    let plain = without_code(&paragraph);
    if plain.contains('`') {
        return Some("its last backtick opens code that never closes");
    }
    let begins_bold = |(at, _): &(usize, &str)| {
        !plain[..*at].ends_with(char::is_alphanumeric) && plain[at + 2..].starts_with(|c: char| !c.is_whitespace())
    };
    if plain.matches("**").count() % 2 == 1 && plain.rmatch_indices("**").next().is_some_and(|last| begins_bold(&last))
    {
        return Some("its bold text never closes");
    }
    let opens = plain.rfind(['(', '[']).filter(|at| !plain[*at..].contains([')', ']']));
    if opens.is_some_and(|at| !plain[..at].ends_with([':', ';'])) {
        return Some("its last bracket never closes");
    }
    if last.ends_with(',') {
        return Some("the sentence has no end");
    }
    let words = last.split_whitespace().count();
    let word = last.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    (words >= FEWEST_WORDS && CONTINUES.contains(&word)).then_some("the sentence has no end")
}

/// Whether the last line breaks off: in the middle of a word that the document has elsewhere in full, or in a sentence
/// without a mark at its end, if nearly all other sentences have one. If a newline ends the document, it does not break
/// off.
fn cut_short(text: &str, document: &Document<'_>, last: usize) -> Option<&'static str> {
    let line = document.lines[last];
    let trimmed = line.lower.trim_end();
    if text.ends_with('\n') || !trimmed.ends_with(char::is_alphanumeric) {
        return None;
    }
    let words = trimmed.split_whitespace().count();
    let word = trimmed.rsplit(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default();
    if words >= FEWEST_WORDS && word.len() > 1 && is_only_a_beginning(word, &document.lines[..last]) {
        return Some("it ends in the middle of a word");
    }
    let ends = || document.lines[..last].iter().zip(&document.lines[1..]).filter(|(line, next)| is_end(line, next));
    let (all, open) = (ends().count(), ends().filter(|(line, _)| !is_closed(line.text)).count());
    let is_long = words >= WORDS_OF_A_SENTENCE;
    (is_long && all >= FEWEST_ENDS && OPEN_ONE_IN * open <= all).then_some("the last sentence has no end")
}

/// Whether a line is the last one of a paragraph or of an item, and has a sentence in it.
fn is_end(line: &DocumentLine<'_>, next: &DocumentLine<'_>) -> bool {
    let is_last = next.kind != LineKind::Text || list_marker(next.text.trim_start()).is_some();
    is_last && line.kind == LineKind::Text && line.text.split_whitespace().nth(WORDS_OF_A_SENTENCE).is_some()
}

fn is_closed(text: &str) -> bool {
    !text.trim_end().ends_with(char::is_alphanumeric)
}

/// Whether no line has the word, but a line has a longer word that begins with it.
fn is_only_a_beginning(word: &str, lines: &[DocumentLine<'_>]) -> bool {
    let mut is_beginning = false;
    for line in lines {
        for (at, _) in line.lower.match_indices(word) {
            let is_start = !line.lower[..at].ends_with(char::is_alphanumeric);
            let more = line.lower[at + word.len()..].chars().take_while(|c| c.is_alphanumeric()).take(2).count();
            if is_start && more == 0 {
                return false;
            }
            // One letter more may be a plural.
            is_beginning |= is_start && more == 2;
        }
    }
    is_beginning
}

/// Whether the last line is a row of a table without a `|` at its end, while the row before it has one.
fn is_cut_row(lines: &[DocumentLine<'_>]) -> bool {
    let row = |line: &DocumentLine<'_>| {
        let text = line.text.trim();
        text.starts_with('|').then(|| text.len() > 1 && text.ends_with('|'))
    };
    let mut last = lines.iter().rev().map(row);
    last.next().flatten() == Some(false) && last.next().flatten() == Some(true)
}

/// The last paragraph, on one line. Of a list only its last item, and of a table only its last row.
fn paragraph(lines: &[DocumentLine<'_>]) -> String {
    let mut last: Vec<&str> = Vec::new();
    for line in lines.iter().rev().take(MOST_LINES) {
        let begins_an_item = list_marker(line.text.trim_start()).is_some();
        if line.kind != LineKind::Text {
            break;
        }
        last.push(line.text);
        if begins_an_item || line.text.trim_start().starts_with('|') {
            break;
        }
    }
    last.reverse();
    last.join(" ")
}

/// The end of a line.
fn tail(text: &str) -> &str {
    const MAX_TAIL: usize = 60;
    let text = text.trim();
    let from = text.char_indices().rev().nth(MAX_TAIL).map_or(0, |(at, _)| at);
    &text[from..]
}

#[cfg(test)]
#[path = "whole_tests.rs"]
mod tests;
