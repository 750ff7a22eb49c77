//! What was done to an item: who, what, when, why. No line of it is ever changed or taken away.

use super::{Status, Who};
use crate::core::id::ItemId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was done to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It was made.
    Created,
    /// It came from elsewhere.
    Imported,
    /// Somebody took it.
    Claimed,
    /// Its owner's handoff has a record, and keeps it for the successor.
    Held,
    /// The successor has it.
    CarriedOver,
    /// It was given back, or its owner has ended.
    Released,
    /// Its output was accepted and handed on.
    Completed,
    /// Children that had failed were made.
    ChildrenCreated,
    /// A person must go on with it.
    Escalated,
    /// Its completion was undone.
    RolledBack,
    /// The completion that made it was undone.
    Withdrawn,
}

/// One line of an item's history. None is ever changed or taken away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When.
    pub at: String,
    /// What.
    pub action: Action,
    /// By whom.
    pub by: Who,
    /// The status before; none at the beginning.
    pub from: Option<Status>,
    /// The status after.
    pub to: Status,
    /// Who has it from then on.
    pub owner: Option<Who>,
    /// How long it had been in the status before, in milliseconds by the wall clock.
    pub after_ms: Option<u64>,
    /// Why.
    pub reason: Option<String>,
    /// The names of the output's fields.
    pub output_summary: Option<Vec<String>>,
    /// What the rule said of the output.
    pub validation: Option<String>,
    /// Children that were made or withdrawn by it.
    #[serde(default)]
    pub children: Vec<ItemId>,
}

/// A history entry's own part: what changes besides the status.
#[derive(Debug, Clone)]
pub(crate) struct Note {
    pub(crate) action: Action,
    pub(crate) by: Who,
    pub(crate) reason: Option<String>,
    pub(crate) output_summary: Option<Vec<String>>,
    pub(crate) validation: Option<String>,
    pub(crate) children: Vec<ItemId>,
}

impl Note {
    pub(crate) fn new(action: Action, by: Who, reason: Option<String>) -> Self {
        Note { action, by, reason, output_summary: None, validation: None, children: Vec::new() }
    }
}
