//! The words in braces that a profile's texts may contain: what replaces each, and where each is allowed.

use super::format::LaunchSection;
use crate::core::text::sha256;

/// The prefix of a placeholder for the path of one of the profile's own files.
pub(super) const FILE: &str = "file:";
/// The prefix of a placeholder for one of the profile's own texts, filled in.
pub(super) const TEXT: &str = "text:";
/// The names that may be used in braces in one of `launch.files`: they have the same value for all agents of a profile.
const FILE_NAMES: [&str; 3] = ["home", "program", "profile"];
/// The names that may be used in braces in `launch.model`.
const MODEL_NAMES: [&str; 1] = ["model"];
/// The names that may be used in braces in the rest of `launch`.
const NAMES: [&str; 9] =
    ["home", "program", "agent_id", "creation", "persona", "handoffs", "cwd", "previous", "profile"];

impl LaunchSection {
    /// One of the section's own files or texts.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.files.get(name).or_else(|| self.texts.get(name)).map(String::as_str)
    }

    /// The first fault that serde can't find: the key, and what is wrong with it.
    pub(super) fn fault(&self) -> Option<(&'static str, String)> {
        let unknown = |text: &String, allowed: &[&str]| unknown_placeholder(text, allowed, self);
        if self.argv.first().is_none_or(String::is_empty) {
            return Some(("launch.argv", "must name a program".into()));
        }
        if let Some(name) = self.argv.iter().chain(self.env.values()).find_map(|text| unknown(text, &NAMES)) {
            return Some(("launch", format!("there is no placeholder {{{name}}}")));
        }
        if !self.model.is_empty() {
            if let Some(name) = self.model.iter().find_map(|text| unknown_plain(text, &MODEL_NAMES)) {
                return Some(("launch.model", format!("there is no placeholder {{{name}}} here")));
            }
            if !self.model.iter().any(|text| text.contains("{model}")) {
                return Some(("launch.model", "must have {model} in one of its words".into()));
            }
        }
        // The section's own texts and files may not contain each other.
        if let Some(name) = self.texts.values().find_map(|text| unknown_plain(text, &NAMES)) {
            return Some(("launch.texts", format!("there is no placeholder {{{name}}} here")));
        }
        if let Some(name) = self.files.values().find_map(|text| unknown_plain(text, &FILE_NAMES)) {
            return Some(("launch.files", format!("there is no placeholder {{{name}}} here")));
        }
        if self.files.keys().any(|name| !is_file_name(name)) {
            return Some((
                "launch.files",
                "a file name may hold only a-z, 0-9, _, - and ., and must begin with a letter".into(),
            ));
        }
        let is_variable = |name: &String| {
            !name.is_empty()
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                && !name.as_bytes()[0].is_ascii_digit()
        };
        if !self.unset.iter().chain(self.env.keys()).all(is_variable) {
            return Some(("launch", "a variable name may hold only letters, digits and _".into()));
        }
        None
    }
}

fn is_file_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-.".contains(&b))
}

/// One placeholder: the text before it, its name, its filters, the text after it.
struct Hole<'t> {
    before: &'t str,
    name: &'t str,
    filters: &'t str,
    after: &'t str,
}

/// The first `{word}` or `{word:filter}` of small letters, or one of the profile's own texts or files; other braces,
/// such as those of JSON or of a script, are plain text.
fn next_hole(text: &str) -> Option<Hole<'_>> {
    text.match_indices('{').find_map(|(at, _)| {
        let (inside, after) = text[at + 1..].split_once('}')?;
        let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let own = [FILE, TEXT].iter().find(|prefix| inside.starts_with(**prefix)).map_or(0, |prefix| prefix.len());
        let end = inside[own..].find(':').map_or(inside.len(), |at| own + at);
        let (name, filters) = (&inside[..end], inside[end..].trim_start_matches(':'));
        let is_named = if own > 0 { is_file_name(&name[own..]) } else { is_word(name) };
        let is_filter = |word: &str| word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        (is_named && filters.split(':').all(is_filter)).then(|| Hole { before: &text[..at], name, filters, after })
    })
}

pub(super) fn fill(text: &str, value: impl Fn(&str) -> String) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(hole) = next_hole(rest) {
        filled.push_str(hole.before);
        let filters = hole.filters.split(':').filter(|filter| !filter.is_empty());
        filled.push_str(&filters.fold(value(hole.name), |text, filter| match filter {
            "json" => json_inside(&text),
            "sha256" => sha256(text.as_bytes()),
            _ => shell_word(&text),
        }));
        rest = hole.after;
    }
    filled.push_str(rest);
    filled
}

/// The first placeholder in a text that tasuki does not know, if there is one.
fn unknown_placeholder(text: &str, names: &[&str], section: &LaunchSection) -> Option<String> {
    let has_own = |name: &str| {
        name.strip_prefix(TEXT).is_some_and(|name| section.texts.contains_key(name))
            || name.strip_prefix(FILE).is_some_and(|name| section.files.contains_key(name))
    };
    first_unknown(text, |name| names.contains(&name) || has_own(name))
}

/// As [`unknown_placeholder`], where the profile's own texts and files are not allowed.
fn unknown_plain(text: &str, names: &[&str]) -> Option<String> {
    first_unknown(text, |name| names.contains(&name))
}

/// The first placeholder in a text whose name or filter is not known.
pub(super) fn first_unknown(text: &str, is_known: impl Fn(&str) -> bool) -> Option<String> {
    let mut rest = text;
    while let Some(hole) = next_hole(rest) {
        let filters_known = hole.filters.split(':').all(|filter| matches!(filter, "" | "json" | "sh" | "sha256"));
        if !is_known(hole.name) || !filters_known {
            return Some([hole.name, hole.filters].join(":").trim_end_matches(':').to_owned());
        }
        rest = hole.after;
    }
    None
}

fn json_inside(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_words_in_braces_are_placeholders() {
        assert_eq!(fill("{\"a\":{}} {x}{y:sh}", |name| format!("<{name}'>")), "{\"a\":{}} <x'>'<y'\\''>'");
        assert_eq!(unknown_plain("{home} {\"a\":1} {program:sh:json}", &NAMES), None);
        assert_eq!(unknown_plain("{home} {hom}", &NAMES).as_deref(), Some("hom"));
        assert_eq!(unknown_plain("{home:html}", &NAMES).as_deref(), Some("home:html"));
        assert_eq!(unknown_plain("{file:x.ts} {cwd}", &FILE_NAMES).as_deref(), Some("file:x.ts"));
    }
}
