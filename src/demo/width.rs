//! How many columns a text takes, and the parts of it that fit.

use unicode_width::UnicodeWidthChar as _;

/// 0, 1 or 2 columns; a control character takes none.
pub(super) fn of_char(c: char) -> usize {
    c.width().unwrap_or_default()
}

/// The columns of a text, counted character by character as in [`cut`] and [`wrap`]. A variation selector, which makes
/// the character before it an emoji, adds nothing.
pub(super) fn of(text: &str) -> usize {
    text.chars().map(of_char).sum()
}

/// The longest beginning of a text that fits into `columns`.
pub(super) fn cut(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += of_char(c);
        if used > columns {
            return &text[..at];
        }
    }
    text
}

/// A text in rows of at most `columns` each; newlines begin rows too.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    let mut used = 0;
    for c in text.chars() {
        let takes = if c == '\n' { 0 } else { of_char(c) };
        if c == '\n' || used + takes > columns.max(2) {
            rows.push(String::new());
            used = 0;
        }
        if let (Some(row), true) = (rows.last_mut(), c != '\n') {
            row.push(c);
            used += takes;
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(of("a漢é"), 4);
        assert_eq!((of("⚠️⚠️"), cut("⚠️⚠️", 2)), (2, "⚠️⚠️"));
        assert_eq!(cut("a漢漢", 4), "a漢");
        assert_eq!(wrap("漢漢a\n\nb", 4), ["漢漢", "a", "", "b"]);
    }
}
