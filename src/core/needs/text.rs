//! Texts of views as the list shows them: plain, short, and safe in a command.

use crate::core::id::Slug;
use crate::core::text::{normalise, quotable};
use crate::core::time::millis;

/// The most characters of a text, without the `…` that follows a cut.
const LONGEST: usize = 399;

/// A text from a view in one line, without what drives a terminal, and of limited length.
pub(super) fn line(text: &str) -> String {
    quotable(&normalise(text), LONGEST)
}

/// The same for a text that may be empty.
pub(super) fn some_line(text: &str) -> Option<String> {
    Some(line(text)).filter(|text| !text.is_empty())
}

/// An id, if the text can be one.
pub(super) fn id(text: &str) -> Option<String> {
    const MOST: usize = 64;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (is_plain && (1..=MOST).contains(&text.len())).then(|| text.to_owned())
}

/// The beginning of an id, as commands take it.
pub(super) fn short(text: &str) -> String {
    id(text).map_or_else(|| "ID".to_owned(), |id| id.chars().take(8).collect())
}

pub(super) fn slug(text: Option<&str>) -> Option<String> {
    text.filter(|text| text.parse::<Slug>().is_ok()).map(str::to_owned)
}

pub(super) fn time(text: Option<&str>) -> Option<String> {
    text.filter(|text| millis(text).is_some()).map(str::to_owned)
}

pub(super) fn is_pane(text: &str) -> bool {
    text.strip_prefix('%').is_some_and(|number| number.parse::<u32>().is_ok())
}
