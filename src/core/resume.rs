//! The command that opens a session of an agent CLI again, made from the template in the CLI's profile.

use super::settings::Settings;
use super::text::shell_word;

/// What stands for the session's id in a template.
pub const PLACEHOLDER: &str = "{session_id}";
/// Longest session id that is put into a command.
const MAX_ID: usize = 128;

/// Program and arguments that open this session again. `None` if the template is empty, or if the id is not 1 to 128
/// ASCII letters, digits, `-`, `_` and `.`, beginning with a letter or digit.
#[must_use]
pub fn words(template: &[String], session_id: &str) -> Option<Vec<String>> {
    if template.is_empty() || !is_plain(session_id) {
        return None;
    }
    Some(template.iter().map(|word| word.replace(PLACEHOLDER, session_id)).collect())
}

/// The same as one line, quoted for a shell.
#[must_use]
pub fn command(template: &[String], session_id: &str) -> Option<String> {
    let words = words(template, session_id)?;
    Some(words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "))
}

/// The command for a session of this profile; `None` if there is no such profile, or no session is known.
#[must_use]
pub fn command_of(settings: &Settings, profile: &str, session_id: Option<&str>) -> Option<String> {
    command(&settings.profiles.get(profile)?.resume, session_id?)
}

fn is_plain(id: &str) -> bool {
    id.len() <= MAX_ID
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}
