//! Runs the checks that apply to a document. They depend on its author.

use super::claims::{FoundSecret, Lookups};
use super::extract::mentions;
use super::lines::{Document, read};
use super::report::FaultReport;
use super::{changed, checkpoint, copy, next_step, repository, sections, size, status, whole};
use crate::contract::document::FaultCheck;
use crate::contract::handoff::Author;
use crate::contract::{DocumentFault, Facts};

/// All that a document is checked against.
#[derive(Debug)]
pub struct CheckInput<'a> {
    pub text: &'a str,
    pub author: Author,
    /// An acknowledgement is wanted, so the document must say where to begin.
    pub is_urgent: bool,
    /// The agent's working directory, the same as for [`super::claims()`].
    pub cwd: Option<&'a str>,
    /// The document's absolute path. Changed files in its folder do not count as the agent's work.
    pub document_path: Option<&'a str>,
    pub facts: &'a Facts,
    pub lookups: &'a Lookups,
    /// The document of the agent's predecessor, if there is one.
    pub predecessor: Option<&'a str>,
    /// The text that asked the agent for the document.
    pub instruction: &'a str,
    pub secrets: &'a [FoundSecret],
    /// Fewest characters of text that the document must have; `size.rs` says how they are counted.
    pub min_chars: usize,
    /// The largest number of bytes that the document may have.
    pub max_bytes: usize,
}

/// The faults of a document, in the order of its lines. tasuki writes a salvaged document itself: it has a form of its
/// own, and quotes what was true at other times.
#[must_use]
pub fn faults(input: &CheckInput<'_>) -> Vec<DocumentFault> {
    let lower = input.text.to_ascii_lowercase();
    let document = read(input.text, &lower);
    let mut report = FaultReport::new(&document, input.secrets);
    secrets(input.secrets, &mut report);
    match input.author {
        Author::AgentFile | Author::AgentReply | Author::Provided => {
            form(input, &document, &mut report);
            check_claims(input, &document, &mut report);
        }
        Author::Salvage => wholeness(input, &document, &mut report),
    }
    report.finish()
}

fn secrets(found: &[FoundSecret], report: &mut FaultReport) {
    for secret in found {
        let last: String = secret.last.chars().skip(secret.last.chars().count().saturating_sub(4)).collect();
        let ends = if last.is_empty() { String::new() } else { format!(", ends in {last}") };
        let is = "the document is read by others: leave the credential out, and say where it is kept";
        report.fix(FaultCheck::Secrets, Some(secret.line), &format!("a credential ({}{ends})", secret.kind), is);
    }
}

/// Checks what tasuki asks of a document that is written for a successor.
fn form(input: &CheckInput<'_>, document: &Document<'_>, report: &mut FaultReport) {
    sections::check(document, input.author, report);
    wholeness(input, document, report);
    copy::check(document, input.predecessor, input.instruction, report);
    next_step::check(document, report);
    if input.is_urgent {
        checkpoint::check_urgent(input.text, report);
    }
    checkpoint::check_stale(document, input.lookups, input.facts.repository.as_ref(), report);
    if let Some(repository) = &input.facts.repository {
        let changed = changed::changed(repository, input.document_path);
        changed::check(document, &changed, input.facts.actions.as_ref(), report);
    }
}

/// Checks that the document says enough, can be read to its end, and is whole.
fn wholeness(input: &CheckInput<'_>, document: &Document<'_>, report: &mut FaultReport) {
    size::check(document, input.text, (input.min_chars, input.max_bytes), report);
    whole::check(input.text, document, report);
}

/// Checks what the document says of its repository.
fn check_claims(input: &CheckInput<'_>, document: &Document<'_>, report: &mut FaultReport) {
    let mentions = mentions(document, input.cwd);
    repository::check(&mentions, input.lookups, report);
    status::check_pushed(document, input.lookups, report);
    if let Some(repository) = &input.facts.repository {
        status::check(document, repository, &changed::changed(repository, input.document_path), report);
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
