//! The front matter of a document: `key: value` on lines of its own, between `---` lines at the very beginning.

use crate::core::text::{normalise, sanitise};

/// Longest value, in characters. The rest is cut off.
const MAX_VALUE: usize = 600;
/// The largest number of lines of front matter, with the lines of dashes around it.
const MAX_LINES: usize = 200;

/// The front matter with the lines of dashes around it, and the text after it. None if the document does not begin with
/// a line of dashes, or if no other such line follows within [`MAX_LINES`]. A byte order mark before it is left out;
/// empty lines before it belong to it.
fn split(document: &str) -> Option<(&str, &str)> {
    let text = document.strip_prefix('\u{feff}').unwrap_or(document);
    let mut end = 0;
    let mut has_begun = false;
    for line in text.split_inclusive('\n').take(MAX_LINES) {
        end += line.len();
        let is_dashes = line.trim_end() == "---";
        if has_begun && is_dashes {
            // After an empty line, dashes may also be a line across the page.
            let second = text[..end].lines().filter(|line| !line.trim().is_empty()).nth(1);
            let is_yaml = !text.starts_with(['\r', '\n', ' ']) || second.is_some_and(|line| line.contains(':'));
            return is_yaml.then(|| text.split_at(end));
        }
        if !has_begun && !is_dashes && !line.trim().is_empty() {
            return None;
        }
        has_begun |= is_dashes;
    }
    None
}

/// How many lines the front matter has, with the lines of dashes around it.
pub(super) fn front_matter_lines(document: &str) -> usize {
    split(document).map_or(0, |(front, _)| front.lines().count())
}

/// The value of a key in the front matter: on the line of the key, or on the lines below it that are indented or belong
/// to a list. Other YAML is not read.
#[must_use]
pub fn front_matter_value(text: &str, key: &str) -> Option<String> {
    let mut front = split(text)?.0.lines();
    let line = front.find_map(|line| value(line, key))?;
    let on_line = scalar(line.trim());
    let scalar = match on_line.as_str() {
        "" | "|" | ">" | "|-" | ">-" => {
            let below = front.take_while(|line| line.starts_with([' ', '\t']) || line.starts_with("- "));
            below.map(|line| line.trim().trim_start_matches("- ")).collect::<Vec<_>>().join("\n")
        }
        _ => on_line,
    };
    let scalar = normalise(&sanitise(&scalar));
    let is_plain = !scalar.is_empty() && !matches!(scalar.as_str(), "~" | "null");
    is_plain.then(|| scalar.chars().take(MAX_VALUE).collect())
}

/// What a line of the front matter says of this key, in capitals or not. None if it has another key.
pub(super) fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (found, rest) = line.split_at_checked(key.len())?;
    found.eq_ignore_ascii_case(key).then_some(rest)?.trim_start().strip_prefix(':')
}

/// A value without quotation marks and without the comment after it.
fn scalar(text: &str) -> String {
    for mark in ['"', '\''] {
        if let Some(inside) = text.strip_prefix(mark).and_then(|rest| rest.split_once(mark)) {
            return inside.0.to_owned();
        }
    }
    text.split_once(" #").map_or(text, |(before, _)| before).trim_end().to_owned()
}

/// The document without its front matter and the empty lines after that.
#[must_use]
pub fn without_front_matter(document: &str) -> &str {
    split(document).map_or(document, |(_, body)| body.trim_start_matches(['\r', '\n']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::check::lines::{LineKind, read};

    fn lines_of_front_matter(text: &str) -> usize {
        read(text, text).lines.iter().filter(|line| line.kind == LineKind::FrontMatter).count()
    }

    #[test]
    fn all_readers_find_the_same_front_matter() {
        let plain = "---\nverified: none\ncheckpoint: x\n---\n\nBody.\n";
        let with_blanks = plain.replace("---\n", "---  \n");
        for text in [plain, &plain.replace('\n', "\r\n"), &format!("\u{feff}{plain}"), &with_blanks] {
            assert_eq!(front_matter_value(text, "checkpoint").as_deref(), Some("x"), "{text:?}");
            assert_eq!(without_front_matter(text).trim_end(), "Body.", "{text:?}");
            assert_eq!(lines_of_front_matter(text), 4, "{text:?}");
        }
        let after_a_blank = format!("\n{plain}");
        assert_eq!(front_matter_value(&after_a_blank, "checkpoint").as_deref(), Some("x"));
        assert_eq!(without_front_matter(&after_a_blank).trim_end(), "Body.");
        assert_eq!(without_front_matter("---\ncheckpoint: x\n---"), "");
    }

    #[test]
    fn without_an_end_there_is_no_front_matter() {
        let open = "---\ncheckpoint: x\n\nBody.\n";
        let late = format!("---\ncheckpoint: x\n{}---\nBody.\n", "a: b\n".repeat(MAX_LINES));
        let later = "Body.\n---\ncheckpoint: x\n---\n";
        let across = "\n---\n# Title\ncheckpoint: x\n\n---\nBody.\n";
        for text in [open, &late, later, across, "", "---", "---\n"] {
            assert_eq!(front_matter_value(text, "checkpoint"), None, "{text:?}");
            assert_eq!(without_front_matter(text), text);
            assert_eq!(lines_of_front_matter(text), 0, "{text:?}");
        }
    }
}
