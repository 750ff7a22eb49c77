//! The files in `view/work/`.

use crate::core::rows::item::{Action, Priority, Status};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// `view/work/<item_id>.json`. An item that is not done also has an empty file, `view/work/open/<item_id>`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkView {
    /// The format's version: 1.
    pub v: u8,
    /// The item's id: a random UUID.
    pub item_id: String,
    /// Its type, which has a rule in `data/rules.toml`.
    pub r#type: String,
    /// In one line.
    pub title: String,
    /// In full.
    pub description: Option<String>,
    /// Where it stands. `withdrawn`: the completion that made it was undone.
    pub status: Status,
    /// The item at the root of its tree; its own id if it is that.
    pub project_id: String,
    /// The item that it belongs to.
    pub parent_id: Option<String>,
    /// Those that belong to it, but for withdrawn ones.
    pub children: Vec<String>,
    /// How much it matters.
    pub priority: Priority,
    /// Who has it: an agent's id, or `human`.
    pub claimed_by: Option<String>,
    /// Since when: UTC, milliseconds, `Z`.
    pub claimed_at: Option<String>,
    /// The handoff of its owner that keeps it for the successor.
    pub held_by: Option<String>,
    /// What came of it.
    pub output: Option<Value>,
    /// What came of its parent.
    pub parent_output: Option<Value>,
    /// Whatever its maker has added.
    pub metadata: Map<String, Value>,
    /// Children that a partial completion could not make.
    pub failed_children: Vec<FailedChildView>,
    /// What was said of it.
    pub comments: Vec<CommentView>,
    /// What was done to it, for ever.
    pub history: Vec<EntryView>,
    /// Agents that were told of it since it became ready.
    pub told: Vec<ToldView>,
    /// When it was made: UTC, milliseconds, `Z`.
    pub created_at: String,
    /// By whom: an agent's id, or `human`.
    pub created_by: String,
    /// When it was completed.
    pub completed_at: Option<String>,
    /// By whom.
    pub completed_by: Option<String>,
    /// When it was escalated last.
    pub escalated_at: Option<String>,
    /// Why.
    pub escalation_reason: Option<String>,
}

/// A child that could not be made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FailedChildView {
    /// Its place in the list that was asked for, from 0.
    pub index: u64,
    /// Its type, if it had one.
    pub r#type: Option<String>,
    /// Its title, if it had one.
    pub title: Option<String>,
    /// What is wrong with it.
    pub errors: Vec<super::Fault>,
}

/// A comment.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CommentView {
    /// Its id.
    pub comment_id: String,
    /// When: UTC, milliseconds, `Z`.
    pub at: String,
    /// Who, in their own words.
    pub author: String,
    /// What.
    pub text: String,
    /// tasuki has written it.
    pub system: bool,
}

/// One line of an item's history.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EntryView {
    /// When: UTC, milliseconds, `Z`.
    pub at: String,
    /// What.
    pub action: Action,
    /// By whom: an agent's id, `human`, or `tasuki`.
    pub by: String,
    /// The status before; null at the beginning.
    pub from: Option<Status>,
    /// The status after.
    pub to: Status,
    /// Who has it from then on.
    pub owner: Option<String>,
    /// How long it had been in the status before, in milliseconds.
    pub after_ms: Option<u64>,
    /// Why.
    pub reason: Option<String>,
    /// The names of the output's fields.
    pub output_summary: Option<Vec<String>>,
    /// What the rule said of the output.
    pub validation: Option<String>,
    /// Children that were made or withdrawn by it.
    pub children: Vec<String>,
}

/// An agent that was told.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ToldView {
    /// Which.
    pub agent_id: String,
    /// When: UTC, milliseconds, `Z`.
    pub at: String,
    /// Whether the notice has arrived; null for an agent that has given the item back, and is not told anew.
    #[schemars(extend("enum" = ["delivered", "unconfirmed", "not_delivered", null]))]
    pub verdict: Option<String>,
}
