//! Checks the length of a document: a short one says too little, and the end of a long one may not be read.

use super::lines::Document;
use super::report::FaultReport;
use crate::contract::document::FaultCheck;

/// The largest number of lines that are read without effort.
const MOST_LINES: usize = 300;

pub(super) fn check(
    document: &Document<'_>,
    text: &str,
    (min_chars, max_bytes): (usize, usize),
    report: &mut FaultReport,
) {
    let chars: usize = document.lines.iter().filter(|line| line.is_body()).map(|line| weight(line.text)).sum();
    if chars < min_chars {
        let said = format!("the document has {chars} characters of text");
        report.fix(FaultCheck::Size, None, &said, &format!("fewer than {min_chars} say too little"));
    }
    let (bytes, lines) = (text.len(), text.lines().count());
    if bytes > max_bytes {
        let said = format!("the document has {bytes} bytes");
        report.fix(FaultCheck::Size, None, &said, &format!("what is after the first {max_bytes} may not be read"));
    } else if lines > MOST_LINES {
        let said = format!("the document has {lines} lines");
        report.warn(FaultCheck::Size, None, &said, &format!("what is after the first {MOST_LINES} may not be read"));
    }
}

/// How much a text says, in letters of an alphabet: white space says nothing, a Chinese character about as much as
/// three letters, a Japanese or Korean syllable as two.
fn weight(text: &str) -> usize {
    if text.is_ascii() {
        return text.bytes().filter(|byte| !byte.is_ascii_whitespace()).count();
    }
    text.chars().map(weight_of).sum()
}

fn weight_of(c: char) -> usize {
    match c {
        '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => 3,
        '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{1100}'..='\u{11ff}' | '\u{ac00}'..='\u{d7af}' => 2,
        _ => usize::from(!c.is_whitespace()),
    }
}

#[cfg(test)]
mod tests {
    use super::weight;

    #[test]
    fn a_character_counts_by_what_it_says() {
        for (text, expected) in
            [("", 0), (" \t", 0), ("a b", 2), ("größe", 5), ("漢字", 6), ("かな", 4), ("한글", 4), ("\u{3000}。", 1)]
        {
            assert_eq!(weight(text), expected, "{text}");
        }
    }
}
