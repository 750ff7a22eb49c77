//! Checks sentences that say that everything is committed or pushed against the state of the repository.

use super::asked::{PROGRESS, has_stem};
use super::branches::looks_like_a_branch;
use super::changed::Changed;
use super::claims::{CommitLookup, Lookups};
use super::lines::{Document, LineKind, list_marker};
use super::places::{Place, has_phrase, is_about_elsewhere, places, sentence_ranges};
use super::report::{FaultReport, quote};
use super::sections::is_about_next_steps;
use super::spans::spans;
use super::status_claims::{CLEAN, PARTS, PUSHED, PUSHED_SOMETHING, StatusClaim, says_pushed};
use crate::contract::document::FaultCheck;
use crate::contract::facts::RepositoryFacts;
use std::collections::BTreeSet;

/// The largest number of sentences that are named for each claim.
const MOST_SENTENCES: usize = 3;
/// The largest number of lines that are looked at.
const MOST_LINES: usize = 1_000;

/// Reports sentences that contradict the state of the repository.
pub(super) fn check(
    document: &Document<'_>,
    repository: &RepositoryFacts,
    changed: &Changed<'_>,
    report: &mut FaultReport,
) {
    let unpushed = unpushed(repository);
    // If there is a remote, "committed and pushed" may be true of an earlier commit.
    let has_remote = repository.remote.is_some() || repository.upstream.is_some();
    let never_pushed = unpushed.clone().filter(|_| !has_remote && repository.head_on_remote == Some(false));
    let denied = [(dirty(changed), &CLEAN), (unpushed, &PUSHED), (never_pushed, &PUSHED_SOMETHING)];
    let mut named: BTreeSet<(usize, String)> = BTreeSet::new();
    for (is, claim) in denied {
        let Some(is) = is else { continue };
        for (line, sentence) in sentences(document, repository, report, claim) {
            if named.insert((line, is.clone())) {
                report.fix(FaultCheck::Repository, Some(line), &quote(sentence), &is);
            }
        }
    }
}

/// Reports sentences that say of a commit that it was pushed, although no branch of a remote has it.
pub(super) fn check_pushed(document: &Document<'_>, lookups: &Lookups, report: &mut FaultReport) {
    let is_local = |found: &CommitLookup| matches!(found, CommitLookup::Known { on_remote: false, .. });
    let local = lookups.commits.iter().filter(|(_, found)| is_local(found));
    let local: Vec<&str> = local.map(|(hash, _)| hash.as_str()).collect();
    let mut found = Vec::new();
    for line in places(document).take(MOST_LINES) {
        if !speaks_of_now(&line, report) || is_about_elsewhere(line.text, None) {
            continue;
        }
        for (from, to) in sentence_ranges(line.lower) {
            let (sentence, lower) = (&line.text[from..to], &line.lower[from..to]);
            let Some(hash) = local.iter().find(|hash| has_word(sentence, hash)) else { continue };
            if says_pushed(lower.trim()) {
                found.push((line.number, quote(sentence.trim()), format!("commit {hash} is on no branch of a remote")));
                break;
            }
        }
    }
    report.alike(FaultCheck::Repository, "commits that are on no branch of a remote", found);
}

fn has_word(sentence: &str, word: &str) -> bool {
    sentence.split(|c: char| !c.is_ascii_alphanumeric()).any(|found| found == word)
}

/// If files are changed: the finding that says so.
fn dirty(changed: &Changed<'_>) -> Option<String> {
    let first = changed.paths.first()?;
    let count = changed.paths.len();
    let others = if count == 1 { String::new() } else { format!(" and {} more", count - 1) };
    Some(format!("git status lists {first}{others}"))
}

/// If the remote lacks commits: the finding that says so. A branch may be pushed under another name. So the upstream
/// counts only if tasuki does not know whether HEAD is on a remote.
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

/// The sentences that make this claim about this repository and its branch, each with its line. Of each line, only the
/// first such sentence counts.
fn sentences<'a>(
    document: &Document<'a>,
    repository: &RepositoryFacts,
    report: &FaultReport,
    claim: &StatusClaim,
) -> Vec<(usize, &'a str)> {
    let may_say = |line: &Place<'_>| {
        // A table row with more cells than a name and a value can't be read as a sentence.
        let is_row = line.text.trim_start().starts_with('|') && line.text.matches('|').count() > 3;
        !is_row && has_phrase(line.lower, &PARTS) && speaks_of_now(line, report)
    };
    let branch = repository.branch.as_deref();
    let lines = places(document).filter(may_say);
    let found = lines.take(MOST_LINES).filter_map(|line| {
        let (text, lower) = (line.text, line.lower);
        let says_so = |from: usize, to: usize| {
            let begun = if from == 0 { line.begun } else { "" };
            claim.is_in(&format!("{begun} {}", &lower[from..to])) && (begun.is_empty() || !claim.is_in(begun))
        };
        let (from, to) = sentence_ranges(lower).find(|(from, to)| says_so(*from, *to))?;
        let is_ours = !is_about_elsewhere(text, Some(&repository.root)) && !names_other_branch(&text[from..to], branch);
        is_ours.then(|| (line.number, text[from..to].trim()))
    });
    found.take(MOST_SENTENCES).collect()
}

/// Whether a line is text about the present state, and may be quoted.
fn speaks_of_now(line: &Place<'_>, report: &FaultReport) -> bool {
    let is_text = matches!(line.kind, LineKind::Text | LineKind::Heading(_)) && !report.hides(line.number);
    // Of the next steps only the steps themselves: a sentence after them may say how things are.
    let is_step = list_marker(line.text.trim_start()).is_some();
    let is_ahead = |heading| is_step && is_about_next_steps(heading) && !has_stem(heading, PROGRESS);
    let is_at_another_time = |heading| is_about_the_past(heading) || is_ahead(heading);
    is_text && !line.lower.contains("[ ]") && !line.headings_below_title().any(is_at_another_time)
}

/// Whether a heading is about an earlier session: its state may have changed since.
fn is_about_the_past(heading: &str) -> bool {
    const PARTS: [&str; 11] = [
        "previous",
        "earlier",
        "prior ",
        "history",
        "last session",
        "past ",
        "changelog",
        "session log",
        "timeline",
        "older",
        "archive",
    ];
    has_phrase(heading, &PARTS)
}

/// Whether a sentence names branches in backticks, and the current branch is not among them.
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
