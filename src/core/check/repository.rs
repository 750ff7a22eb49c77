//! Checks what a document says of its repository against what git says: commits, branches and files that do not exist.

use super::claims::{CommitLookup, Lookups, PathLookup};
use super::extract::{Mention, Mentions};
use super::paths::first_folder;
use super::report::{FaultReport, quote};
use crate::contract::document::FaultCheck;
use std::collections::BTreeMap;

/// The longest text before a name in a quotation, in bytes.
const AROUND: usize = 40;

/// Reports what the document names and git does not have.
pub(super) fn check(mentions: &Mentions<'_>, lookups: &Lookups, report: &mut FaultReport) {
    let found = wrong(&mentions.commits, report, unknown_commits(mentions, lookups), |hash| {
        format!("git knows no commit {hash}")
    });
    report.alike(FaultCheck::Repository, "commits that git does not know", found);

    let absent = |name: &str, mention: &Mention<'_>| mention.is_current && lookups.branches.get(name) == Some(&false);
    let is = |name: &str| format!("there is no branch {name}, here or at a remote");
    let found = wrong(&mentions.branches, report, absent, is);
    report.alike(FaultCheck::Repository, "branches that do not exist", found);

    let is = |path: &str| format!("{path} exists neither here nor in git");
    let found = wrong(&mentions.paths, report, |path, _| is_missing(path, mentions, lookups), is);
    report.alike(FaultCheck::Paths, "files that do not exist", found);
}

/// Which unknown commits are faults. A document may name commits of another repository, or commits that were rebased
/// since, so not every unknown hash is a fault. It is a fault if the document says that the work stands there. If the
/// document speaks of only one repository, and at least half of its hashes are unknown, all of these are faults.
fn unknown_commits(mentions: &Mentions<'_>, lookups: &Lookups) -> impl Fn(&str, &Mention<'_>) -> bool {
    let is_unknown = |hash: &str| lookups.commits.get(hash) == Some(&CommitLookup::Missing);
    let unknown = mentions.commits.keys().filter(|hash| is_unknown(hash)).count();
    let are_most = !mentions.names_several_repositories && 2 * unknown >= mentions.commits.len();
    move |hash, mention| is_unknown(hash) && (are_most || mention.is_current)
}

/// Whether a file is missing. If the document speaks of several repositories, a path whose first folder is missing too
/// belongs to another repository.
fn is_missing(path: &str, mentions: &Mentions<'_>, lookups: &Lookups) -> bool {
    let is = |path: &str| lookups.paths.get(path) == Some(&PathLookup::Missing);
    is(path) && !(mentions.names_several_repositories && first_folder(path).is_some_and(is))
}

/// The wrong names, each with line, quotation and finding, in the order of their lines. A name that is in a line with a
/// credential is left out.
fn wrong(
    mentions: &BTreeMap<&str, Mention<'_>>,
    report: &FaultReport,
    is_wrong: impl Fn(&str, &Mention<'_>) -> bool,
    is: impl Fn(&str) -> String,
) -> Vec<(usize, String, String)> {
    let mut found: Vec<(&str, &Mention<'_>)> = mentions
        .iter()
        .filter(|(name, mention)| is_wrong(name, mention) && !report.hides(mention.line) && !report.hides_name(name))
        .map(|(name, mention)| (*name, mention))
        .collect();
    found.sort_by_key(|(_, mention)| (mention.line, mention.at));
    found.into_iter().map(|(name, mention)| (mention.line, quote(around(mention)), is(name))).collect()
}

/// The line, from a few words before the name on.
fn around<'a>(mention: &Mention<'a>) -> &'a str {
    let text = mention.text;
    let is_blank = |at: &usize| text.as_bytes()[*at].is_ascii_whitespace();
    let from = mention.at.saturating_sub(AROUND);
    let from = if from == 0 { 0 } else { (from..mention.at).find(is_blank).map_or(mention.at, |at| at + 1) };
    text.get(from..).unwrap_or(text)
}
