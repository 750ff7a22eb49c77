//! Finds names of branches in a document. A name counts only where the text calls it a branch.

use super::lines::LineKind;
use super::places::{Place, has_phrase, has_word, is_about_elsewhere, names_other_repository};
use super::spans::{InlineCode, spans, without_code};

/// Longest name that is looked up, in bytes.
const MAX_NAME: usize = 100;
/// The largest number of words in backticks of one line that are looked at.
const MOST_IN_LINE: usize = 50;
/// Longest label before a name, in bytes, such as `Branch / commit:`.
const MAX_LABEL: usize = 40;
/// The word "branch" in the languages that agents write most.
const BRANCH: [&str; 6] = ["branch", "ブランチ", "分支", "브랜치", "ветка", "Ветка"];

/// Words in a line that say that a branch is gone, does not exist yet, is elsewhere, or is only an example.
const NOT_THERE: [&str; 54] = [
    "delete",
    "deleted",
    "deleting",
    "prune",
    "pruned",
    "remove",
    "removed",
    "merged",
    "squash",
    "squashed",
    "archived",
    "rename",
    "renamed",
    "will",
    "create",
    "creates",
    "cut",
    "new",
    "stale",
    "old",
    "former",
    "formerly",
    "historical",
    "was",
    "gone",
    "never",
    "no",
    "not",
    "doesn't",
    "missing",
    "example",
    "template",
    "convention",
    "pattern",
    "naming",
    "planned",
    "future",
    "would",
    "should",
    "could",
    "repos",
    "neuer",
    "neuen",
    "neue",
    "submodule",
    "upstream",
    "fork",
    "if",
    "else",
    "closed",
    "laptop",
    "her",
    "his",
    "their",
];
/// Words that stand in the place of a name, such as "none", and conditions of a program, as in "the `else` branch".
const NO_NAMES: [&str; 37] = [
    "head", "detached", "none", "n/a", "na", "tbd", "unknown", "yes", "new", "current", "feature", "remote", "local",
    "default", "this", "same", "name", "branch", "if", "else", "true", "false", "null", "some", "ok", "err", "match",
    "then", "when", "case", "try", "catch", "git", "no", "not", "a", "the",
];

/// Whether a line speaks of a branch.
pub(super) fn may_name(place: &Place<'_>) -> bool {
    matches!(place.kind, LineKind::Text | LineKind::Heading(_) | LineKind::FrontMatter)
        && has_phrase(place.lower, &BRANCH)
}

/// The names of branches in a line, each with the byte at which it, or the backtick before it, begins.
pub(super) fn in_line<'a>(place: &Place<'a>, cwd: Option<&str>) -> Vec<(usize, &'a str)> {
    let (text, lower) = (place.text, place.lower);
    /// Commands and words for branches that are made or gone.
    const PHRASES: [&str; 9] = [
        "git checkout -b",
        "git switch -c",
        "push -u",
        "commit to branch",
        "open a pr",
        "open pr",
        "e.g.",
        "pull request",
        "gelöscht",
    ];
    let is_example = has_phrase(lower, &PHRASES);
    let is_elsewhere = has_word(&without_code(lower), &NOT_THERE) || names_other_repository(lower);
    if is_example || is_elsewhere || is_about_elsewhere(text, cwd) {
        return Vec::new();
    }
    let named = spans(text).take(MOST_IN_LINE).filter(|span| is_called_branch(lower, span) && is_name(span.code));
    let mut found: Vec<(usize, &'a str)> = named.map(|span| (span.start, span.code)).collect();
    found.extend(labelled(text, lower).filter(|(_, name)| found.iter().all(|(_, other)| other != name)));
    found.iter_mut().for_each(|(_, name)| *name = name.strip_prefix("origin/").unwrap_or(name));
    found
}

/// Whether a line says on which branch the work is.
pub(super) fn is_current(place: &Place<'_>) -> bool {
    has_phrase(place.lower, &["current branch", "on branch", "working branch", "active branch"])
}

/// Whether the word before a name in backticks is "branch", or the word after it. In the second case the name must also
/// look like that of a branch, unlike `else` in "the `else` branch".
fn is_called_branch(lower: &str, span: &InlineCode<'_>) -> bool {
    let before = lower[..span.start].trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '('));
    let before = [" is", " named", " called"].iter().find_map(|word| before.strip_suffix(word)).unwrap_or(before);
    let after = lower[span.end..].trim_start_matches([' ', '*']);
    let is_before = BRANCH.iter().any(|word| before.ends_with(word));
    let is_after = after.starts_with("branch") && !after.starts_with("branche") && !after.starts_with("branchi");
    is_before || (is_after && looks_like_a_branch(span.code))
}

/// The name after a label at the line's beginning, such as `**Branch:** main`, or in a row `| Branch | main |`.
fn labelled<'a>(text: &'a str, lower: &str) -> Option<(usize, &'a str)> {
    let colon = lower.char_indices().skip(1).find(|(_, c)| matches!(c, ':' | '：' | '|'));
    let (at, mark) = colon.filter(|(at, _)| *at < MAX_LABEL)?;
    let label = lower[..at].trim_matches(|c: char| !c.is_alphanumeric());
    let words = label.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let is_label = BRANCH.contains(&label.split([' ', '_', '/']).next_back()?)
        || BRANCH.contains(&label.split([' ', '/']).next()?);
    if !is_label || words.count() > 3 {
        return None;
    }
    let rest = &text[at + mark.len_utf8()..];
    let value = rest.trim_start_matches(['*', ' ', '\t', '`', '"', '\'']);
    // Only backticks around the value count, not those around a later word.
    let is_code = rest[..rest.len() - value.len()].ends_with('`');
    let is_end =
        |c: char| c.is_whitespace() || matches!(c, '`' | ',' | '(' | '|' | '*' | '@' | '"' | '\'' | '（' | '，');
    let end = value.find(is_end).unwrap_or(value.len());
    let name = &value[..end];
    let after = value[end..].trim_start_matches(['`', '*', '"', '\'', ' ']);
    let is_whole = after.is_empty() || after.starts_with(|c: char| !c.is_alphanumeric()) || is_code;
    (is_whole && is_name(name) && (is_code || looks_like_a_branch(name))).then(|| (text.len() - value.len(), name))
}

/// Whether a name can be that of a branch: git allows it, and it does not look like a version, a hash or a placeholder.
fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '.' | '+' | '#');
    let is_odd = name.contains("..") || name.contains("//") || has_phrase(name, &["xxx", "yyyy", "nnn"]);
    let is_version =
        name.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'v' | b'.')) && name.contains('.');
    let is_hash = name.len() >= 7 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    !name.is_empty()
        && name.len() <= MAX_NAME
        && name.chars().all(is_allowed)
        && name.starts_with(char::is_alphanumeric)
        && !name.ends_with(['/', '.', '-'])
        && name.contains(char::is_alphabetic)
        && !is_odd
        && !is_version
        && !is_hash
        && !name.to_ascii_lowercase().split(['/', '-']).all(|part| NO_NAMES.contains(&part))
}

/// Whether a name can hardly be anything else than a branch.
pub(super) fn looks_like_a_branch(name: &str) -> bool {
    const USUAL: [&str; 8] = ["main", "master", "develop", "dev", "trunk", "staging", "production", "gh-pages"];
    USUAL.contains(&name) || ((name.contains('/') || name.contains('-')) && !super::paths::is_like_a_file(name))
}
