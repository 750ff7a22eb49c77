//! Finds credentials in a text, and takes them out. tasuki publishes no document that holds one unless the operator
//! says so.
//!
//! What is found is described by its kind, its line and, if it is long, its last four characters, and by nothing else.

mod rules;

use regex::Regex;
use rules::RULES;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

/// The prefix of [`Credential::kind`] if the credential is a variable's value.
pub const ENVIRONMENT: &str = "environment:";
/// The most searches of one text. Before each further search, tasuki takes out what the last one found.
const MOST_SEARCHES: usize = 8;
/// The shortest value of an environment variable that counts as a credential, in bytes.
const SHORTEST_VALUE: usize = 8;
/// Endings of variable names: the value counts as a credential even if it is only a word or a number. It must still be
/// long enough, and not the path of a file on this machine; see [`is_secret`].
const ENDINGS: [&str; 8] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "PWD"];
/// Names with such an ending that mean something else; `PWD` is the working directory.
const OTHERS: [&str; 4] = ["ASKPASS", "BYPASS", "COMPASS", "OLDPWD"];
/// A dummy such as `<your token>` is shorter than this, in bytes; a longer text in brackets may be a credential.
const LONG_KEY: usize = 100;
/// Replaces a text from which not all credentials could be taken out.
const WITHHELD: &str = "(left out: it holds a credential)";
/// A credential of at least this many characters is told apart from others by its last four.
const LONG: usize = 16;

/// A credential in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The id of the rule that found it, such as `github-pat`; for a variable's value, [`ENVIRONMENT`] and the
    /// variable's name.
    pub kind: String,
    /// From 1.
    pub line: usize,
    /// The last four characters; empty if it is short.
    pub last: String,
    /// Where it is in the text.
    pub bytes: Range<usize>,
}

/// What, besides the rules, decides whether something in a text is a credential.
#[derive(Debug, Default)]
pub struct Known<'a> {
    /// The agent's own environment.
    pub environment: &'a [(String, String)],
    /// The operator's expressions; a credential that one of them matches does not count.
    pub allowed: &'a [Regex],
}

/// The credentials in a text, in the order in which they are in it. Of several finds with the same start, the longest
/// counts; other finds that overlap count as one.
#[must_use]
pub fn find(text: &str, known: &Known<'_>) -> Vec<Credential> {
    let lower = text.to_ascii_lowercase();
    let mut found: BTreeMap<usize, (usize, String)> = BTreeMap::new();
    let mut note = |bytes: Range<usize>, kind: &str| {
        let longest = found.entry(bytes.start).or_insert_with(|| (bytes.end, kind.to_owned()));
        if bytes.end > longest.0 {
            *longest = (bytes.end, kind.to_owned());
        }
    };
    for (name, value) in known.environment.iter().filter(|(name, value)| is_secret(name, value)) {
        for (at, _) in
            text.match_indices(value.as_str()).filter(|(at, _)| !is_word(value) || stands_alone(text, *at, value))
        {
            note(at..at + value.len(), &format!("{ENVIRONMENT}{name}"));
        }
    }
    for rule in RULES.iter().filter(|rule| rule.may_match(&lower)) {
        for bytes in rule.find(text) {
            note(whole(text, bytes), rule.id());
        }
    }
    let mut secrets: Vec<Credential> = Vec::new();
    let (mut line, mut counted) = (1, 0);
    for (start, (end, kind)) in found {
        let secret = &text[start..end];
        let is_variable = kind.starts_with(ENVIRONMENT);
        if secret.is_empty()
            || (!is_variable && is_dummy(secret))
            || known.allowed.iter().any(|allowed| allowed.is_match(secret))
        {
            continue;
        }
        match secrets.last_mut().filter(|before| before.bytes.end > start) {
            Some(before) if before.bytes.end >= end => {}
            // The finds overlap: they are taken out as one.
            Some(before) => {
                before.bytes.end = end;
                before.last = last(&text[before.bytes.clone()]);
            }
            None => {
                line += text[counted..start].bytes().filter(|byte| *byte == b'\n').count();
                counted = start;
                secrets.push(Credential { kind, line, last: last(secret), bytes: start..end });
            }
        }
    }
    secrets
}

/// The text with `[REDACTED:kind]` in place of each credential; `None` if the last search still finds some.
#[must_use]
pub fn redact(text: &str, known: &Known<'_>) -> Option<String> {
    let mut text = text.to_owned();
    for _ in 0..MOST_SEARCHES {
        let secrets = find(&text, known);
        if secrets.is_empty() {
            return Some(text);
        }
        text = take_out(&text, &secrets);
    }
    None
}

/// As [`redact`], but a text from which not all credentials can be taken out is replaced as a whole.
#[must_use]
pub fn without(text: &str, known: &Known<'_>) -> String {
    redact(text, known).unwrap_or_else(|| WITHHELD.to_owned())
}

fn take_out(text: &str, secrets: &[Credential]) -> String {
    let mut redacted = String::with_capacity(text.len());
    let mut at = 0;
    for secret in secrets {
        redacted.push_str(&text[at..secret.bytes.start]);
        redacted.push_str(&format!("[REDACTED:{}]", secret.kind));
        at = secret.bytes.end;
    }
    redacted.push_str(&text[at..]);
    redacted
}

/// Extends a find to the end of its word: a rule finds only up to some length, and stops at characters that a password
/// may hold. A find that begins after a quote is extended to the closing quote. A find of several lines stays as it is.
fn whole(text: &str, bytes: Range<usize>) -> Range<usize> {
    const LONGEST_QUOTED: usize = 500;
    if text[bytes.clone()].contains('\n') {
        return bytes;
    }
    let rest = &text[bytes.end..];
    let is_key = |letter: char| letter.is_ascii_alphanumeric() || "+/_=-".contains(letter);
    let word = rest.find(|letter| !is_key(letter)).unwrap_or(rest.len());
    let quote = text[..bytes.start].chars().next_back().filter(|letter| "\"'".contains(*letter));
    // If the text was cut, the closing quote may be missing.
    let closing = |quote| rest.find([quote, '\n']).unwrap_or(rest.len());
    let quoted = quote.map(closing).filter(|end| *end <= LONGEST_QUOTED);
    bytes.start..bytes.end + quoted.unwrap_or(0).max(word)
}

/// The variables of an environment whose values count as credentials. Each value is listed in every form in which a
/// text may hold it: as it is, without the quotes and the white space around it, and line by line.
#[must_use]
pub fn values(environment: &[(String, String)]) -> Vec<(String, String)> {
    let mut found = BTreeSet::new();
    for (name, value) in environment {
        let frame = |c: char| c.is_whitespace() || matches!(c, '"' | '\'');
        let lines = value.lines().map(|line| line.trim_matches(frame)).filter(|line| line.len() >= LONG);
        let forms = [value.as_str(), value.trim_matches(frame)].into_iter().chain(lines);
        found.extend(forms.filter(|form| is_secret(name, form)).map(|form| (name.clone(), form.to_owned())));
    }
    found.into_iter().collect()
}

/// Whether a variable's name says that its value is a credential, and the value could be one.
fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let ends_so = name != "PWD"
        && ENDINGS.iter().any(|ending| name.ends_with(ending))
        && !OTHERS.iter().any(|other| name.ends_with(other));
    let says_so = ends_so
        || ["KEY", "TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL"].iter().any(|word| name.contains(word));
    if !says_so || value.len() < SHORTEST_VALUE {
        return false;
    }
    // A number or one word, as in `TOKEN_LIMIT` or `KEY_LAYOUT`, is in many documents, so it counts only if the name
    // ends in one of `ENDINGS`.
    let is_path = Path::new(value).is_absolute() && Path::new(value).exists();
    !is_path && (!is_plain(value) || ends_so)
}

/// Whether a value has only digits or only lower-case letters.
fn is_plain(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_digit()) || value.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Whether a value may be an ordinary word or number, such as `postgres`, which any text may contain. A long value is
/// more than a word.
fn is_word(value: &str) -> bool {
    value.len() < LONG && is_plain(value)
}

/// Whether a value stands alone at this place of a text, unlike `postgres` in `postgresql`.
fn stands_alone(text: &str, at: usize, value: &str) -> bool {
    let before = text[..at].chars().next_back();
    let after = text[at + value.len()..].chars().next();
    !before.into_iter().chain(after).any(|letter| letter.is_alphanumeric() || letter == '_')
}

/// Leaves out the variables whose value may be an ordinary word or number. This is for texts that stay on this machine:
/// there, redacting ordinary words would do harm. Don't call it for what is published, which can't be taken back.
#[must_use]
pub fn without_words(mut environment: Vec<(String, String)>) -> Vec<(String, String)> {
    environment.retain(|(_, value)| !is_word(value));
    environment
}

/// Whether this is a dummy in the place of a credential, such as `<token>`, `${TOKEN}` or `****`.
fn is_dummy(secret: &str) -> bool {
    let mut letters = secret.chars();
    let first = letters.next();
    let is_variable = secret.starts_with('$') && !secret.contains(|letter: char| letter.is_ascii_lowercase());
    let is_short = secret.len() < LONG_KEY && !secret.contains('\n');
    // A key whose middle is left out. Other characters than those of keys may mean a password that contains dots.
    let has_gap =
        secret.contains("...") && secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte));
    let is_gap = has_gap || secret.ends_with("...") || secret.starts_with("...");
    is_variable
        || secret.starts_with("[REDACTED:")
        || (is_short && (secret.starts_with(['<', '{']) || secret.starts_with("${") || is_gap))
        || letters.all(|letter| Some(letter) == first)
}

fn last(secret: &str) -> String {
    let count = secret.chars().count();
    // A credential of several lines is a private key, whose last line tells nothing.
    let last: String = secret.chars().skip(count.saturating_sub(4)).collect();
    if count < LONG || secret.contains('\n') || last == "----" { String::new() } else { last }
}

#[cfg(test)]
mod shape_tests;
#[cfg(test)]
mod tests;
