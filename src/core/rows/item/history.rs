//! The history of an item: who did what, when and why. No line of it is ever changed or removed.

use super::{Action, Status, Who};
use crate::core::id::ItemId;
use serde::{Deserialize, Serialize};

/// One line of an item's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub at: String,
    pub action: Action,
    pub by: Who,
    /// The status before; none at the beginning.
    pub from: Option<Status>,
    pub to: Status,
    pub owner: Option<Who>,
    /// How long it had been in the status before, in milliseconds by the wall clock.
    pub after_ms: Option<u64>,
    pub reason: Option<String>,
    /// The names of the output's fields.
    pub output_summary: Option<Vec<String>>,
    /// What the rule said of the output.
    pub validation: Option<String>,
    /// Children that were made or withdrawn by it.
    #[serde(default)]
    pub children: Vec<ItemId>,
}

/// The part of a history entry that does not follow from the item's row.
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
