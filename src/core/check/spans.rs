//! Code within a line: what is between backticks.

/// Of each line, only so many bytes are searched. No sentence is longer.
const MAX_LINE: usize = 8 * 1024;
/// The largest number of backticks that can begin a text between backticks.
const MAX_BACKTICKS: usize = 3;

/// A text between backticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InlineCode<'a> {
    /// Where the first backtick is, in bytes from the line's beginning.
    pub(super) start: usize,
    /// The byte after the last backtick.
    pub(super) end: usize,
    pub(super) code: &'a str,
}

/// The part of a line that is searched: its first [`MAX_LINE`] bytes, cut between two characters.
pub(super) fn head(line: &str) -> &str {
    if line.len() <= MAX_LINE {
        return line;
    }
    let end = (0..=MAX_LINE).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    &line[..end]
}

/// The texts between backticks. A text ends at the next run of as many backticks as it began with.
pub(super) fn spans(line: &str) -> impl Iterator<Item = InlineCode<'_>> {
    let line = head(line);
    let mut at = 0;
    // For each number of backticks: the position after which the line has no run of exactly that many.
    let mut none_from = [usize::MAX; MAX_BACKTICKS + 1];
    std::iter::from_fn(move || {
        loop {
            let start = at + line[at..].find('`')?;
            let marks = run(line, start);
            let inside = start + marks;
            at = inside;
            if marks > MAX_BACKTICKS || none_from[marks] <= inside {
                continue;
            }
            match end_of(line, inside, marks) {
                Some(end) => {
                    at = end + marks;
                    return Some(InlineCode { start, end: at, code: line[inside..end].trim() });
                }
                None => none_from[marks] = inside,
            }
        }
    })
}

/// A text without what is between backticks.
pub(super) fn without_code(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut from = 0;
    for span in spans(text) {
        plain.push_str(&text[from..span.start]);
        from = span.end;
    }
    plain.push_str(&text[from..]);
    plain
}

/// How many backticks stand side by side from this position on.
fn run(line: &str, at: usize) -> usize {
    line.as_bytes()[at..].iter().take_while(|byte| **byte == b'`').count()
}

/// Where the next run of exactly that many backticks begins.
fn end_of(line: &str, from: usize, marks: usize) -> Option<usize> {
    let mut at = from;
    while let Some(found) = line[at..].find('`') {
        let length = run(line, at + found);
        if length == marks {
            return Some(at + found);
        }
        at += found + length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_at_as_many_backticks_as_it_began_with() {
        for (line, expected) in [
            ("a `b` c `d e`", vec!["b", "d e"]),
            ("``a ` b`` and `c`", vec!["a ` b", "c"]),
            ("an open ` one", vec![]),
            ("``a` b `c`", vec!["b"]),
            ("````a```` `b`", vec!["b"]),
            ("`ä` `日本`", vec!["ä", "日本"]),
            ("``", vec![]),
        ] {
            let found: Vec<&str> = spans(line).map(|span| span.code).collect();
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn only_the_beginning_of_a_long_line_is_searched() {
        let line = format!("`a` {} `b`", "ä".repeat(MAX_LINE));
        assert_eq!(spans(&line).count(), 1);
        assert_eq!(spans(&"`".repeat(1 << 20)).count(), 0);
    }
}
