//! The front matter of a document: `key: value` on lines of its own, between `---` lines at the very beginning.

use crate::core::text::{normalise, sanitise};

/// Longer values are cut, in characters.
const MAX_VALUE: usize = 600;
/// How many lines of front matter are read.
const MAX_LINES: usize = 200;

/// The value of a key, on one line. Other YAML is not read.
#[must_use]
pub fn stated(text: &str, key: &str) -> Option<String> {
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    lines.next().filter(|line| line.trim_end() == "---")?;
    let mut front = lines.take(MAX_LINES).take_while(|line| line.trim_end() != "---");
    let line = front.find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':'))?;
    let scalar = normalise(&sanitise(&scalar(line.trim())));
    let is_plain = !scalar.is_empty() && !matches!(scalar.as_str(), "|" | ">" | "|-" | ">-" | "~" | "null");
    is_plain.then(|| scalar.chars().take(MAX_VALUE).collect())
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

/// What follows the front matter of a document; the whole of it if it has none.
#[must_use]
pub fn without_front_matter(document: &str) -> &str {
    let rest = document.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    rest.map_or(document, |(_, body)| body.trim_start_matches('\n'))
}
