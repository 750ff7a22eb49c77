//! How many columns a character takes. An approximation that is right for what people write; the block is painted with
//! automatic wrapping off, so that where it is wrong a line is only cut.

/// 0, 1 or 2 columns.
pub(super) fn of_char(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036f | 0x200b..=0x200f | 0x20d0..=0x20ff | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// The columns of a text.
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
        assert_eq!(cut("a漢漢", 4), "a漢");
        assert_eq!(wrap("漢漢a\n\nb", 4), ["漢漢", "a", "", "b"]);
    }
}
