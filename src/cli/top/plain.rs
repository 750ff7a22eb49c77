//! Makes texts from outside safe for the screen: one line, bounded, no control characters, and no character
//! whose width terminals disagree about.

use crate::core::text::{normalise, quotable};
use ratatui::text::Span;
use std::time::Duration;

/// The largest number of characters of one text that are kept.
const MOST: usize = 400;
/// The largest number of combining marks on one character that are kept.
const MOST_MARKS: usize = 2;

/// The text in one line. Characters that join or modify emoji are removed: terminals disagree about the width of the
/// result, and would displace everything after it in the row.
#[must_use]
pub fn plain(text: &str) -> String {
    calm(&normalise(&quotable(text, MOST)))
}

/// The same text with every blank kept, for columns that were aligned with blanks.
#[must_use]
pub fn aligned(text: &str) -> String {
    calm(&quotable(text, MOST).replace(['\n', '\t'], " "))
}

fn calm(line: &str) -> String {
    if line.is_ascii() {
        return line.to_owned();
    }
    let mut marks = 0;
    let mut kept = String::with_capacity(line.len());
    for c in line.chars().filter(|c| !changes_emoji(*c)) {
        marks = if width(c.encode_utf8(&mut [0; 4])) == 0 { marks + 1 } else { 0 };
        if marks <= MOST_MARKS && !(marks > 0 && kept.is_empty()) {
            kept.push(c);
        }
    }
    kept
}

/// Whether it joins or modifies emoji, or is an invisible character about whose width terminals disagree too.
fn changes_emoji(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2064}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0000}'..='\u{e01ef}')
}

/// How many columns of the terminal a text takes.
#[must_use]
pub fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// A length of time as a running clock shows it: `0:07`, `12:30`, `1:02:03`; with days if there are any.
#[must_use]
pub fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes, seconds) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{seconds:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days} d {hours} h"),
    }
}

/// The time from one moment to another, both in milliseconds since 1970; zero if the clock was set back.
#[must_use]
pub fn between(from_ms: i64, to_ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(to_ms.saturating_sub(from_ms)).unwrap_or(0))
}

/// The beginning of a text that fits into `columns`, with `sign` at its end if the text was cut.
#[must_use]
pub fn cut(text: &str, columns: usize, sign: &str) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(width(sign));
    let mut used = 0;
    let mut kept = String::new();
    for part in Span::raw(text).styled_graphemes(ratatui::style::Style::new()) {
        used += width(part.symbol);
        if used > room {
            break;
        }
        kept.push_str(part.symbol);
    }
    if columns >= width(sign) {
        kept.push_str(sign);
    }
    kept
}

/// A text in rows of at most so many columns, and at most `most` rows. It is broken between words where that is
/// possible, and later rows are indented as the first is.
#[must_use]
pub fn wrap(text: &str, columns: usize, most: usize) -> Vec<String> {
    let columns = columns.max(2);
    let indent: String = text.chars().take_while(|c| *c == ' ').take(columns / 2).collect();
    let mut rows = Vec::new();
    let mut rest = text.to_owned();
    while width(&rest) > columns && rows.len() < most {
        let piece = cut(&rest, columns, "");
        // Break at a blank only if something other than blanks comes before it.
        let space = piece.rfind(' ').filter(|at| !piece[..*at].trim().is_empty());
        // A character that is wider than a row is skipped.
        let least = rest.chars().next().map_or(0, char::len_utf8);
        let end = if rest[piece.len()..].starts_with(' ') { piece.len() } else { space.unwrap_or(piece.len()) };
        rows.push(rest[..end].trim_end().to_owned());
        rest = format!("{indent}{}", rest[end.max(least)..].trim_start());
        if rest.trim().is_empty() {
            return rows;
        }
    }
    rows.push(rest);
    rows.truncate(most);
    rows
}

/// As [`wrap`], with `sign` at the end of the last row if the text does not fit into `most` rows.
#[must_use]
pub fn wrap_or_cut(text: &str, columns: usize, most: usize, sign: &str) -> Vec<String> {
    let mut rows = wrap(text, columns, most + 1);
    if rows.len() > most
        && let (Some(rest), Some(last)) = (rows.pop(), rows.last_mut())
    {
        *last = cut(&format!("{last} {}", rest.trim_start()), columns, sign);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_one_plain_bounded_line() {
        assert_eq!(plain("a\u{1b}[2J\nb\tc\u{202e}d\u{9b}"), "a[2J b cd");
        assert_eq!(plain(&"x".repeat(5_000)).chars().count(), MOST + 1);
        assert_eq!(plain("e\u{301}\u{302}\u{303}\u{304}f"), "e\u{301}\u{302}f");
        assert_eq!(plain("\u{301}\u{301}a"), "a");
        assert_eq!(plain("👩\u{200d}👩\u{200d}👧 👍\u{1f3fd}"), "👩👩👧 👍");
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("漢字かな", 5, "…"), "漢字…");
        assert_eq!(cut("漢字", 4, "…"), "漢字");
        assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 2, "…"), "e\u{301}…");
        assert_eq!(cut("abc", 0, "…"), "");
    }

    #[test]
    fn rows_break_between_words_and_long_words_anywhere() {
        assert_eq!(wrap("  one two three", 9, 9), ["  one two", "  three"]);
        assert_eq!(wrap("  a    bc de", 10, 9), ["  a    bc", "  de"]);
        assert_eq!(wrap("漢字漢字漢字 x", 4, 9), ["漢字", "漢字", "漢字", "x"]);
        assert_eq!(wrap("abcdefgh", 3, 2), ["abc", "def"]);
        assert_eq!(wrap("", 10, 5), [""]);
        assert_eq!(wrap_or_cut("abc def ghi", 5, 2, "…"), ["abc", "def …"]);
        assert_eq!(wrap_or_cut("abcdefgh", 3, 2, "…"), ["abc", "de…"]);
        assert_eq!(wrap_or_cut("abc def", 5, 2, "…"), ["abc", "def"]);
        for columns in 0..12 {
            let rows = wrap("漢字 a漢 bb\u{301}cdefghij  k", columns, 50);
            assert!(rows.iter().all(|row| width(row) <= columns.max(2)), "{columns}: {rows:?}");
        }
    }

    #[test]
    fn clocks_read_like_clocks() {
        let shown = [7, 750, 3_723, 90_000].map(|seconds| clock(Duration::from_secs(seconds)));
        assert_eq!(shown, ["0:07", "12:30", "1:02:03", "1 d 1 h"]);
        assert_eq!(between(5_000, 2_000), Duration::ZERO);
    }
}
