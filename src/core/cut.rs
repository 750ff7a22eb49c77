//! Cuts a text that is too long, but never through a credential: the search for credentials would not find the half
//! that is left, so that half would be shown.
//!
//! A credential is one ASCII word, or several lines of such words, after a word that says what it is. So [`beginning`]
//! ends between two words. [`end`] starts at a line or a sentence, because a start between any two words could separate
//! a credential from the word before it. A key of several lines is found by its last line, even if its first lines are
//! cut off.

use super::text::sanitise;

/// The beginning of a text, as far as whole words fit into `max` bytes.
#[must_use]
pub fn beginning(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let end = (0..=max).rev().find(|at| is_gap(text, *at)).unwrap_or(0);
    &text[..end]
}

/// The end of a text, as far as whole lines fit into `max` bytes. If no line fits, as far as whole sentences of the
/// last line fit; empty if none fits.
#[must_use]
pub fn end(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut places = text.len() - max..text.len();
    let line = places.clone().find(|at| text.as_bytes()[at.saturating_sub(1)] == b'\n');
    let from = line.or_else(|| places.find(|at| is_gap(text, *at) && ends_sentence(&text[..*at])));
    &text[from.unwrap_or(text.len())..]
}

/// Whether `before` ends with a sentence, or with a letter of a script that has no blanks. Then the text after it may
/// stand alone.
fn ends_sentence(before: &str) -> bool {
    let last = before.trim_end();
    last.ends_with(['.', '!', '?']) || (last.len() == before.len() && !last.ends_with(|last: char| last.is_ascii()))
}

/// As [`super::text::quotable`], but cut between two words: at most `max` characters, followed by `…`.
#[must_use]
pub fn quotable_words(text: &str, max: usize) -> String {
    let text = sanitise(text);
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", beginning(&text, end)),
        None => text,
    }
}

/// Whether a text may be cut at this byte: after white space, or between two characters that are not ASCII. Credentials
/// are ASCII, and some scripts have no blanks.
fn is_gap(text: &str, at: usize) -> bool {
    if !text.is_char_boundary(at) {
        return false;
    }
    let (before, after) = text.split_at(at);
    before.chars().next_back().is_none_or(|before| {
        before.is_whitespace() || (!before.is_ascii() && after.chars().next().is_some_and(|after| !after.is_ascii()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_that_fits_stays_whole() {
        assert_eq!((beginning("one two", 7), end("one two", 7)), ("one two", "one two"));
        assert_eq!((beginning("", 0), end("", 0), quotable_words("äö", 2).as_str()), ("", "", "äö"));
    }

    #[test]
    fn a_cut_lies_between_words() {
        assert_eq!((beginning("one two", 6), beginning("one two", 4), beginning("one two", 3)), ("one ", "one ", ""));
        assert_eq!((quotable_words("one two", 6), quotable_words("onetwo", 3)), ("one …".to_owned(), "…".to_owned()));
        assert_eq!(
            (beginning("日本語abc", 9), beginning("日本語abc", 7), end("日本語abc", 8)),
            ("日本", "日本", "語abc")
        );
        assert_eq!((end("a\nb b\nc\n", 7), end("a\nb b\ncccccc\n", 9)), ("b b\nc\n", "cccccc\n"));
    }

    #[test]
    fn an_end_within_a_line_begins_with_a_sentence() {
        let line = "x".repeat(50) + " -H Authorization : \"Basic sesame\" one two. three four five six";
        for max in 1..line.len() {
            assert_eq!(end(&line, max), if max < 19 { "" } else { "three four five six" }, "{max}");
        }
    }

    proptest! {
        #[test]
        fn a_word_is_whole_or_gone(
            before in "[a-z é日\n]{0,60}", word in "[!-~]{20}", after in "([ \n][a-z é日\n]{0,60})?", max in 0_usize..150,
        ) {
            let text = format!("{before} {word}{after}");
            let whole = |part: &str| part.contains(&word) || !(1..17).any(|at| part.contains(&word[at..at + 4]));
            prop_assert!(whole(beginning(&text, max)) && whole(end(&text, max)) && whole(&quotable_words(&text, max)));
            prop_assert!(beginning(&text, max).len() <= max && end(&text, max).len() <= max);
        }
    }
}
