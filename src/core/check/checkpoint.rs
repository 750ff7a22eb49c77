//! Checks two lines in the front matter of a document: where to begin, and what was verified last.

use super::claims::{CommitLookup, Lookups};
use super::front_matter::{front_matter_value, value};
use super::lines::{Document, LineKind};
use super::report::FaultReport;
use crate::contract::document::FaultCheck;
use crate::contract::facts::RepositoryFacts;

/// What the instruction says behind the colons, to be replaced by the agent's own words.
const AS_ASKED: [&str; 2] =
    ["where your successor begins, in one line", "the last check that you ran, its result and its commit; or none"];

/// Reports an urgent document without a checkpoint, or without what was verified last.
pub(super) fn check_urgent(text: &str, report: &mut FaultReport) {
    let said = |key: &str| front_matter_value(text, key).filter(|value| !AS_ASKED.contains(&value.as_str()));
    if said("checkpoint").or_else(|| said("starting_from")).is_none() {
        let is = "the successor must acknowledge where it begins: put `checkpoint: …` between `---` lines at the top";
        report.fix(FaultCheck::Checkpoint, None, "the document states no checkpoint", is);
    }
    if said("verified").is_none() {
        let is = "put `verified: …` between `---` lines at the top: the last check, its result and its commit, or none";
        report.fix(FaultCheck::Verified, None, "the document does not state what was verified last", is);
    }
}

/// Reports a verification that was done at another commit than HEAD, if files differ between the two commits.
pub(super) fn check_stale(
    document: &Document<'_>,
    lookups: &Lookups,
    repository: Option<&RepositoryFacts>,
    report: &mut FaultReport,
) {
    let front = document.lines.iter().take_while(|line| line.kind == LineKind::FrontMatter);
    let Some(line) = front.into_iter().find(|line| value(line.lower, "verified").is_some()) else { return };
    let Some(head) = repository.and_then(|repository| repository.head.as_deref()) else { return };
    let words = line.text.split(|c: char| !c.is_ascii_alphanumeric());
    let stale = words.filter(|word| word.len() >= 7).find(|word| match lookups.commits.get(*word) {
        Some(CommitLookup::Known { hash, differs_from_head, .. }) => *differs_from_head && hash != head,
        Some(CommitLookup::Missing) | None => false,
    });
    if let Some(stale) = stale.filter(|_| !report.hides(line.number)) {
        let head: String = head.chars().take(9).collect();
        let is = format!("stale: HEAD is {head}, and files differ since");
        report.warn(FaultCheck::Verified, Some(line.number), &format!("verified at {stale}"), &is);
    }
}
