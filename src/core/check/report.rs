//! Collects the faults of a document. Their texts are short and have no control characters, and quote nothing from a
//! line that holds a credential.

use super::claims::FoundSecret;
use super::lines::Document;
use crate::contract::DocumentFault;
use crate::contract::document::{FaultCheck, FaultGrade};
use crate::core::text::{normalise, sanitise};
use std::collections::BTreeSet;

/// The largest number of faults that are named one by one.
pub(super) const MOST_FAULTS: usize = 50;
/// The largest number of faults of one kind that are named one by one, such as files that do not exist.
pub(super) const MOST_ALIKE: usize = 10;
/// Longest statement or finding of a fault, in characters.
const MAX_TEXT: usize = 200;
/// Longest quotation from the document, in characters.
const MAX_QUOTE: usize = 90;
/// The largest number of lines that are hidden for one private key.
const MAX_KEY: usize = 200;

/// The faults that were found so far.
#[derive(Debug)]
pub(super) struct FaultReport {
    faults: Vec<DocumentFault>,
    /// The numbers of the lines that hold a credential.
    hidden: BTreeSet<usize>,
    /// The text of these lines.
    hidden_text: String,
}

impl FaultReport {
    pub(super) fn new(document: &Document<'_>, secrets: &[FoundSecret]) -> FaultReport {
        let hidden = hidden(document, secrets);
        let lines = hidden.iter().filter_map(|line| document.lines.get(line.saturating_sub(1)));
        let hidden_text = lines.map(|line| line.text).collect::<Vec<_>>().join("\n");
        FaultReport { faults: Vec::new(), hidden, hidden_text }
    }

    /// Whether nothing may be quoted from the line.
    pub(super) fn hides(&self, line: usize) -> bool {
        self.hidden.contains(&line)
    }

    /// Whether the name is part of a line that holds a credential: the name itself may be the credential.
    pub(super) fn hides_name(&self, name: &str) -> bool {
        self.hidden_text.contains(name)
    }

    /// Adds a fault that tasuki asks the agent to repair. `statement`: what the document says or lacks. `finding`: what
    /// tasuki has found instead, or what to do.
    pub(super) fn fix(&mut self, check: FaultCheck, line: Option<usize>, statement: &str, finding: &str) {
        self.add(check, FaultGrade::Fix, line, statement, finding);
    }

    /// Adds a fault that the agent need not repair.
    pub(super) fn warn(&mut self, check: FaultCheck, line: Option<usize>, statement: &str, finding: &str) {
        self.add(check, FaultGrade::Warn, line, statement, finding);
    }

    pub(super) fn add(
        &mut self,
        check: FaultCheck,
        grade: FaultGrade,
        line: Option<usize>,
        statement: &str,
        finding: &str,
    ) {
        self.faults.push(DocumentFault {
            check: check.into(),
            grade: grade.into(),
            line: line.map(|line| line as u64),
            said: short(statement, MAX_TEXT),
            is: short(finding, MAX_TEXT),
        });
    }

    /// Adds faults of one kind. `found` holds line, statement and finding of each, in the order of their lines. The
    /// first [`MOST_ALIKE`] are named one by one, and the rest is only counted. `others` is the noun for the rest, such
    /// as "files that do not exist".
    pub(super) fn alike(&mut self, check: FaultCheck, others: &'static str, found: Vec<(usize, String, String)>) {
        let more = found.len().saturating_sub(MOST_ALIKE);
        for (number, (line, statement, finding)) in found.into_iter().enumerate() {
            if number == MOST_ALIKE {
                self.fix(check, Some(line), &format!("and {more} more {others}"), "");
                break;
            }
            self.fix(check, Some(line), &statement, &finding);
        }
    }

    /// The faults in the order of their lines, those of the whole document first. If there are more than
    /// [`MOST_FAULTS`], the least important ones are only counted, in a fault at the end.
    pub(super) fn finish(self) -> Vec<DocumentFault> {
        let mut faults = self.faults;
        let left_out = faults.len().saturating_sub(MOST_FAULTS);
        let mut last = None;
        if left_out > 0 {
            faults.sort_by_key(|fault| (fault.check != FaultCheck::Secrets, fault.grade != FaultGrade::Fix));
            let others = faults.split_off(MOST_FAULTS);
            last = others.into_iter().next().map(|first| DocumentFault {
                line: None,
                said: format!("and {left_out} more faults"),
                is: String::new(),
                ..first
            });
        }
        faults.sort_by_key(|fault| fault.line.unwrap_or(0));
        faults.extend(last);
        faults
    }
}

/// The numbers of the lines that hold a credential. For a private key, all lines to its `-----END` count.
fn hidden(document: &Document<'_>, secrets: &[FoundSecret]) -> BTreeSet<usize> {
    let mut hidden: BTreeSet<usize> = secrets.iter().map(|secret| secret.line).collect();
    for first in secrets.iter().map(|secret| secret.line) {
        let lines = document.lines.get(first.saturating_sub(1)..).unwrap_or_default();
        if !lines.first().is_some_and(|line| line.text.contains("-----BEGIN")) {
            continue;
        }
        for line in lines.iter().take(MAX_KEY) {
            hidden.insert(line.number);
            if line.text.contains("-----END") {
                break;
            }
        }
    }
    hidden
}

/// A short quotation from a document, in quotation marks and on one line.
pub(super) fn quote(text: &str) -> String {
    format!("\"{}\"", short(text, MAX_QUOTE).replace('"', "'"))
}

/// A text on one line, without control characters, at most `max` characters long.
pub(super) fn short(text: &str, max: usize) -> String {
    // This bounds the work on a long line. Characters that are removed below count too, so less than `max` may be left.
    let enough = text.char_indices().nth(4 * max).map_or(text, |(end, _)| &text[..end]);
    let plain = normalise(&sanitise(enough));
    match plain.char_indices().nth(max.saturating_sub(1)) {
        Some((end, last)) if plain.len() > end + last.len_utf8() => format!("{}…", &plain[..end]),
        _ => plain,
    }
}
