//! One rule, and all rules together.

use crate::core::id::Slug;
use crate::core::rows::item::Status;
use crate::core::text::quotable;
use std::collections::{BTreeMap, BTreeSet};

/// The largest number of characters of an error's message.
const MAX_QUOTED: usize = 400;
/// The role of the operator.
pub const HUMAN: &str = "human";

/// Why a text can't be read as rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct RulesError {
    /// Where, from 1.
    pub line: usize,
    /// Where in the line, from 1.
    pub column: usize,
    /// What is wrong there; names the key.
    pub message: String,
}

/// A type of JSON values that a rule can demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    String,
    Number,
    Integer,
    Boolean,
    Array,
    Object,
}

/// Why the completion of an item is undone by rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureRule {
    /// Nobody has claimed a child in time.
    TimedOut,
    /// An agent that had claimed a child has ended.
    Gone,
    /// An agent that had claimed a child has given it back.
    Refused,
}

/// The rule of one item type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Roles that may claim it; [`HUMAN`] is the operator.
    pub processed_by: Vec<String>,
    pub output: String,
    /// Types of the children that its completion may make.
    pub creates: Vec<String>,
    /// JSON pointers into the output: something must be there, and not null.
    pub all: Vec<String>,
    /// One of these must hold something.
    pub any: Vec<String>,
    /// Each of these must hold something.
    pub non_empty: Vec<String>,
    /// Such a field, if present, must have this type.
    pub values: BTreeMap<String, ValueType>,
    pub next_status: Status,
    /// The operator is notified of its completion.
    pub ask_human: bool,
    /// How long its children may wait to be claimed, in milliseconds.
    pub taken_within_ms: Option<u64>,
    pub rollback_on: BTreeSet<FailureRule>,
}

impl Rule {
    /// Whether an agent with these roles processes items of this type.
    #[must_use]
    pub fn is_for(&self, roles: &BTreeSet<&str>) -> bool {
        self.processed_by.iter().any(|role| role != HUMAN && roles.contains(role.as_str()))
    }

    /// Whether a person may process items of this type.
    #[must_use]
    pub fn allows_people(&self) -> bool {
        self.processed_by.iter().any(|role| role == HUMAN)
    }
}

/// The rules of all item types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    pub types: BTreeMap<String, Rule>,
    /// The personas of each role, as far as the rules name them.
    pub roles: BTreeMap<String, BTreeSet<Slug>>,
}

/// An error at this place of a text.
pub(super) fn error_at(text: &str, span: Option<std::ops::Range<usize>>, message: &str) -> RulesError {
    let start = span.map_or(0, |span| span.start).min(text.len());
    let before = &text.as_bytes()[..start];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let in_line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let column = String::from_utf8_lossy(in_line).chars().count() + 1;
    RulesError { line, column, message: quotable(message.trim(), MAX_QUOTED) }
}
