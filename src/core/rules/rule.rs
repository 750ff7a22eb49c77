//! What a rule says, and what all of them say together.

use crate::core::id::Slug;
use crate::core::rows::item::Status;
use crate::core::text::quotable;
use std::collections::{BTreeMap, BTreeSet};

/// Most characters of what is wrong that a message quotes.
const MAX_QUOTED: usize = 400;
/// The role of the operator.
pub const HUMAN: &str = "human";

/// Why a text is no rules.
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

/// A type that JSON values have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    String,
    Number,
    Integer,
    Boolean,
    Array,
    Object,
}

/// What makes a handoff to the next role fail, so that the completion is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// Nobody has taken a child in time.
    TimedOut,
    /// Who took a child has ended.
    Gone,
    /// Who took a child has given it back.
    Refused,
}

/// The rule of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Roles that may claim it, those that are told first coming first.
    pub processed_by: Vec<String>,
    /// What its output is called.
    pub output: String,
    /// Types of the children that its completion may make.
    pub creates: Vec<String>,
    /// JSON pointers into the output: something must be there, and not null.
    pub all: Vec<String>,
    /// One of these must hold something.
    pub any: Vec<String>,
    /// Each of these must hold something.
    pub non_empty: Vec<String>,
    /// What is there must be of this type.
    pub values: BTreeMap<String, ValueType>,
    /// The status after its completion.
    pub next_status: Status,
    /// The operator is told of its completion.
    pub ask_human: bool,
    /// So long its children may wait for somebody, in milliseconds.
    pub taken_within_ms: Option<u64>,
    pub rollback_on: BTreeSet<Failure>,
}

impl Rule {
    /// Whether nobody but a person processes it.
    #[must_use]
    pub fn is_for_people(&self) -> bool {
        self.processed_by.iter().all(|role| role == HUMAN)
    }

    /// Whether a person may process it.
    #[must_use]
    pub fn allows_people(&self) -> bool {
        self.processed_by.iter().any(|role| role == HUMAN)
    }
}

/// All rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    pub types: BTreeMap<String, Rule>,
    /// Personas that play a role because the rules say so, by role.
    pub roles: BTreeMap<String, BTreeSet<Slug>>,
}

/// What is wrong at that place of a text.
pub(super) fn error_at(text: &str, span: Option<std::ops::Range<usize>>, message: &str) -> RulesError {
    let start = span.map_or(0, |span| span.start).min(text.len());
    let before = &text.as_bytes()[..start];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let in_line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let column = String::from_utf8_lossy(in_line).chars().count() + 1;
    RulesError { line, column, message: quotable(message.trim(), MAX_QUOTED) }
}
