//! Checks sentences that say that everything is committed or pushed against the state of the repository.

use super::branches::looks_like_a_branch;
use super::changed::Changed;
use super::lines::{Document, DocumentLine, LineKind, list_marker};
use super::places::{has_phrase, is_about_elsewhere};
use super::report::{FaultReport, quote};
use super::spans::{head, spans};
use crate::contract::document::FaultCheck;
use crate::contract::facts::RepositoryFacts;
use std::collections::BTreeSet;

/// Most sentences that are named.
const MOST_SENTENCES: usize = 3;
/// Most lines that are looked at.
const MOST_LINES: usize = 1_000;

/// Two words of a sentence, with nothing between them but words that change nothing.
struct Pair {
    first: &'static [&'static str],
    then: &'static [&'static str],
}

const TREE: [&str; 9] =
    ["tree", "worktree", "directory", "copy", "checkout", "workspace", "status", "repo", "repository"];
const ALL: [&str; 3] = ["all", "everything", "fully"];

/// What says that the work tree has no changes.
const CLEAN: [Pair; 8] = [
    Pair { first: &["branch"], then: &["clean"] },
    Pair { first: &TREE, then: &["clean"] },
    Pair { first: &["clean"], then: &TREE },
    Pair { first: &ALL, then: &["committed"] },
    Pair { first: &["committed"], then: &["everything", "all"] },
    Pair { first: &["no", "nothing", "zero"], then: &["uncommitted", "unstaged"] },
    Pair { first: &["nothing"], then: &["commit"] },
    Pair { first: &["uncommitted"], then: &["none", "nothing"] },
];
/// What says that the remote has everything.
const PUSHED: [Pair; 7] = [
    Pair { first: &ALL, then: &["pushed"] },
    Pair { first: &["pushed"], then: &["everything", "all", "branch"] },
    Pair { first: &["branch", "head"], then: &["pushed"] },
    Pair { first: &["no", "nothing"], then: &["unpushed"] },
    Pair { first: &["unpushed"], then: &["none", "nothing"] },
    Pair { first: &["sync", "synced"], then: &["origin", "remote"] },
    Pair { first: &["date", "up-to-date"], then: &["origin", "remote"] },
];
/// What says that something was pushed. That may be an earlier commit, so it is only wrong if there is no remote.
const PUSHED_SOMETHING: [Pair; 2] = [
    Pair { first: &["committed"], then: &["pushed"] },
    Pair { first: &["pushed"], then: &["origin", "remote", "github"] },
];

/// Most words between the two of a pair.
const MOST_BETWEEN: usize = 8;
/// Words between the two of a pair that change nothing.
const BETWEEN: [&str; 36] = [
    "is",
    "are",
    "has",
    "have",
    "been",
    "now",
    "all",
    "fully",
    "completely",
    "already",
    "still",
    "again",
    "and",
    "&",
    "+",
    "the",
    "my",
    "of",
    "this",
    "it",
    "working",
    "work",
    "git",
    "changes",
    "files",
    "edits",
    "code",
    "commits",
    "commit",
    "tags",
    "local",
    "committed",
    "to",
    "with",
    "left",
    "feature",
];
/// Words before "clean" that make a tree one to work in, as in "from a clean tree". They do not say that this one is
/// clean.
const BEFORE_A_TREE: [&str; 8] = ["a", "the", "from", "with", "on", "in", "into", "any"];
/// Words after "committed" with which the sentence still says that all is committed. Before another word, as in "all
/// committed records", it only describes that.
const AFTER: [&str; 14] =
    ["and", "&", "+", "at", "to", "in", "as", "on", "with", "now", "already", "by", "everything", "all"];
/// Words in the same sentence that make it a wish, a condition, a question or the opposite.
const NOT_SO: [&str; 48] = [
    "not", "never", "don't", "isn't", "aren't", "wasn't", "hasn't", "haven't", "cannot", "can't", "will", "would",
    "should", "must", "need", "needs", "require", "requires", "required", "ensure", "verify", "check", "confirm",
    "make", "until", "unless", "before", "when", "once", "if", "after", "from", "start", "starts", "except", "but",
    "only", "apart", "besides", "please", "want", "tag", "tagged", "other", "another", "his", "her", "their",
];

/// Reports sentences that the state of the repository denies.
pub(super) fn check(
    document: &Document<'_>,
    repository: &RepositoryFacts,
    changed: &Changed<'_>,
    report: &mut FaultReport,
) {
    let unpushed = unpushed(repository);
    // Where there is a remote, an earlier commit may be there.
    let has_remote = repository.remote.is_some() || repository.upstream.is_some();
    let never_pushed = unpushed.clone().filter(|_| !has_remote && repository.head_on_remote == Some(false));
    let denied = [(dirty(changed), &CLEAN[..]), (unpushed, &PUSHED[..]), (never_pushed, &PUSHED_SOMETHING[..])];
    let mut named: BTreeSet<(usize, String)> = BTreeSet::new();
    for (is, pairs) in denied {
        let Some(is) = is else { continue };
        for (line, sentence) in sentences(document, repository, report, pairs) {
            if named.insert((line, is.clone())) {
                report.fix(FaultCheck::Repository, Some(line), &quote(sentence), &is);
            }
        }
    }
}

/// What git says if files are changed.
fn dirty(changed: &Changed<'_>) -> Option<String> {
    let first = changed.paths.first()?;
    let count = changed.paths.len();
    let others = if count == 1 { String::new() } else { format!(" and {} more", count - 1) };
    Some(format!("git status lists {first}{others}"))
}

/// What git says if the remote lacks commits. A branch may be pushed under another name, so it counts where HEAD is.
fn unpushed(repository: &RepositoryFacts) -> Option<String> {
    let head: String = repository.head.as_deref()?.chars().take(9).collect();
    let ahead = repository.ahead.unwrap_or_default();
    let is_unpushed = repository.head_on_remote == Some(false) || (repository.head_on_remote.is_none() && ahead > 0);
    let upstream = repository.upstream.as_deref().unwrap_or("its upstream");
    is_unpushed.then(|| match ahead {
        0 => format!("HEAD {head} is not on any branch of a remote"),
        1 => format!("HEAD {head} is 1 commit ahead of {upstream}"),
        _ => format!("HEAD {head} is {ahead} commits ahead of {upstream}"),
    })
}

/// The sentences that say such a thing of this repository and its branch, each with its line.
fn sentences<'a>(
    document: &Document<'a>,
    repository: &RepositoryFacts,
    report: &FaultReport,
    pairs: &[Pair],
) -> Vec<(usize, &'a str)> {
    let may_say = |line: &DocumentLine<'_>| {
        let is_text = matches!(line.kind, LineKind::Text | LineKind::Heading(_)) && !report.hides(line.number);
        // A row with more cells than a name and a value says nothing as a sentence.
        let is_row = line.text.trim_start().starts_with('|') && line.text.matches('|').count() > 3;
        is_text && !is_row && has_phrase(line.lower, &["clean", "commit", "push", "sync", "date"])
    };
    let branch = repository.branch.as_deref();
    let lines = document.lines.iter().enumerate().filter(|(_, line)| may_say(line));
    let found = lines.take(MOST_LINES).filter_map(|(at, line)| {
        let (text, lower) = (head(line.text), head(line.lower));
        let begun = unfinished(document, at);
        let says_so = |from: usize, to: usize| {
            let begun = if from == 0 { begun } else { "" };
            says(&format!("{begun} {}", &lower[from..to]), pairs) && (begun.is_empty() || !says(begun, pairs))
        };
        let (from, to) = sentence_ranges(lower).find(|(from, to)| says_so(*from, *to))?;
        let is_ours = !is_about_elsewhere(text, Some(&repository.root)) && !names_other_branch(&text[from..to], branch);
        is_ours.then(|| (line.number, text[from..to].trim()))
    });
    found.take(MOST_SENTENCES).collect()
}

/// The beginning of a sentence that the line continues.
fn unfinished<'a>(document: &Document<'a>, at: usize) -> &'a str {
    let before = at.checked_sub(1).map(|before| document.lines[before]).filter(|line| line.kind == LineKind::Text);
    let Some(before) = before.filter(|_| list_marker(document.lines[at].text.trim_start()).is_none()) else {
        return "";
    };
    let lower = head(before.lower);
    let last = sentence_ranges(lower).last().map_or("", |(from, to)| &lower[from..to]);
    if last.trim_end().ends_with(['.', '!', '?', ':', ';', '|']) { "" } else { last }
}

/// Where the sentences of a line begin and end.
fn sentence_ranges(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let rest = text.get(from..).filter(|rest| !rest.is_empty())?;
        let is_end = |(at, c): &(usize, char)| {
            let next = rest[at + c.len_utf8()..].chars().next();
            matches!(c, ';' | '—' | '。') || (matches!(c, '.' | '!' | '?') && next.is_none_or(char::is_whitespace))
        };
        let length = rest.char_indices().find(is_end).map_or(rest.len(), |(at, c)| at + c.len_utf8());
        let range = (from, from + length);
        from += length;
        Some(range)
    })
}

/// Whether a sentence has such a pair of words, and no word that denies it.
fn says(sentence: &str, pairs: &[Pair]) -> bool {
    let words = words(sentence);
    let is_denied = || sentence.ends_with('?') || words.iter().any(|word| NOT_SO.contains(word));
    pairs.iter().any(|pair| has_pair(&words, pair)) && !is_denied()
}

fn words(sentence: &str) -> Vec<&str> {
    let is_between = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '|' | '/' | '[' | ']');
    let trimmed = sentence
        .split(is_between)
        .map(|word| word.trim_matches(|c: char| c.is_ascii_punctuation() && c != '&' && c != '+'));
    trimmed.filter(|word| !word.is_empty()).collect()
}

fn has_pair(words: &[&str], pair: &Pair) -> bool {
    let firsts = words.iter().enumerate().filter(|(_, word)| pair.first.contains(word));
    firsts.into_iter().any(|(at, first)| {
        // A name or a hash may be between, such as in "branch feature/login pushed".
        let most_names = usize::from(matches!(*first, "branch" | "head"));
        let rest = &words[at + 1..];
        let is_between = |word: &&str, then: &str| {
            // What was clean may have changed since, but what was pushed stays so.
            BETWEEN.contains(word) || (then != "clean" && matches!(*word, "was" | "were"))
        };
        let names = |gap: usize| rest[..gap].iter().filter(|word| !is_between(word, rest[gap])).count();
        let gap = rest.iter().take(MOST_BETWEEN).position(|word| pair.then.contains(word));
        let Some(gap) = gap.filter(|gap| names(*gap) <= most_names) else { return false };
        let before = words[..at].last();
        let after = rest.get(gap + 1);
        let is_denied = words[at.saturating_sub(3)..at].iter().any(|word| matches!(*word, "no" | "nothing" | "none"));
        let is_any_tree = *first == "clean" && before.is_some_and(|word| BEFORE_A_TREE.contains(word));
        let is_part = rest[gap] == "committed" && after.is_some_and(|word| !AFTER.contains(word));
        !is_denied && !is_any_tree && !is_part
    })
}

/// Whether a sentence names a branch in backticks, and not the one on which the work is.
fn names_other_branch(sentence: &str, branch: Option<&str>) -> bool {
    let is_about_a_branch = sentence.to_ascii_lowercase().contains("branch");
    let names = spans(sentence).map(|span| span.code.strip_prefix("origin/").unwrap_or(span.code));
    let is_name = |name: &&str| looks_like_a_branch(name) || (is_about_a_branch && !name.contains([' ', '=', ':']));
    let mut names = names.filter(is_name).peekable();
    names.peek().is_some() && !names.any(|name| branch.is_none_or(|branch| name == branch))
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
