//! Options that take a text of one's own, such as `--focus`. The text may begin with `-`, as a list does.

/// The value of such an option. A word that looks like an option is refused: most likely, the text was forgotten, and
/// the next option would be taken in its place.
///
/// # Errors
/// The text is a single word that begins with `--`.
pub(super) fn free_text(text: &str) -> Result<String, String> {
    let is_option = text.strip_prefix("--").is_some_and(|name| name.starts_with(|letter: char| letter.is_alphabetic()));
    if is_option && !text.contains(char::is_whitespace) {
        return Err("this looks like an option, not like the text".to_owned());
    }
    Ok(text.to_owned())
}
