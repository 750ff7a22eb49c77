//! A work item, as others see it.

use super::answer::Fault;
use super::handoff::Verdict;
use super::words::{Word, without_defaults, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

words! {
    /// Where an item stands.
    #[derive(JsonSchema)]
    Status {
        /// It waits for an agent of its role.
        Ready = "ready",
        /// Somebody has it.
        Claimed = "claimed",
        /// It is finished.
        Done = "done",
        /// Only a person can continue it.
        Escalated = "escalated",
        /// The completion that made it was undone.
        Withdrawn = "withdrawn",
    }
}

impl Status {
    /// It waits to be processed, or somebody has it.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Status::Ready | Status::Claimed | Status::Escalated)
    }
}

words! {
    /// How much an item matters: agents are notified of the more important items first.
    #[derive(Default, JsonSchema)]
    Priority {
        /// When there is nothing else.
        Low = "low",
        /// As most.
        #[default]
        Normal = "normal",
        /// Before most.
        High = "high",
        /// Before all.
        Urgent = "urgent",
    }
}

words! {
    /// What was done to an item.
    #[derive(JsonSchema)]
    Action {
        /// It was made.
        Created = "created",
        /// It came from elsewhere.
        Imported = "imported",
        /// Somebody took it.
        Claimed = "claimed",
        /// Its owner's handoff has a record and reserves it for the successor.
        Held = "held",
        /// The successor has it.
        CarriedOver = "carried_over",
        /// It was given back, or its owner has ended.
        Released = "released",
        /// Its output was accepted.
        Completed = "completed",
        /// Children that could not be made before were made.
        ChildrenCreated = "children_created",
        /// A person must continue it.
        Escalated = "escalated",
        /// Its completion was undone.
        RolledBack = "rolled_back",
        /// The completion that made it was undone.
        Withdrawn = "withdrawn",
    }
}

/// `view/work/<item_id>.json`. An item that is not done also has an empty file, `view/work/open/<item_id>`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
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
    pub status: Word<Status>,
    /// The item at the root of its tree; its own id if it is the root.
    pub project_id: String,
    /// The item that it belongs to.
    pub parent_id: Option<String>,
    /// The items that belong to it, without withdrawn ones.
    pub children: Vec<String>,
    /// How much it matters.
    pub priority: Word<Priority>,
    /// Who has it: an agent's id, or `human`.
    pub claimed_by: Option<String>,
    /// Since when: UTC, milliseconds, `Z`.
    pub claimed_at: Option<String>,
    /// The handoff of its owner that reserves it for the successor.
    pub held_by: Option<String>,
    /// Its result.
    pub output: Option<Value>,
    /// Its parent's result.
    pub parent_output: Option<Value>,
    /// Further fields from its creator.
    pub metadata: Map<String, Value>,
    /// Children that a partial completion could not make.
    pub failed_children: Vec<FailedChildView>,
    /// Comments on it.
    pub comments: Vec<CommentView>,
    /// Everything that was ever done to it.
    pub history: Vec<EntryView>,
    /// Agents that were notified of it since it became ready.
    pub told: Vec<ToldView>,
    /// When it was made: UTC, milliseconds, `Z`.
    pub created_at: String,
    /// Who created its project: an agent's id, or `human`. Who made the item itself is in its history.
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct FailedChildView {
    /// Its index in the list that was requested, from 0.
    pub index: u64,
    /// Its type, if it had one.
    pub r#type: Option<String>,
    /// Its title, if it had one.
    pub title: Option<String>,
    /// What is wrong with it.
    pub errors: Vec<Fault>,
}

/// A comment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct CommentView {
    /// Its id.
    pub comment_id: String,
    /// When: UTC, milliseconds, `Z`.
    pub at: String,
    /// Who wrote it, as they named themselves.
    pub author: String,
    /// What.
    pub text: String,
    /// tasuki has written it.
    pub system: bool,
}

/// One line of an item's history.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct EntryView {
    /// When: UTC, milliseconds, `Z`.
    pub at: String,
    /// What.
    pub action: Word<Action>,
    /// By whom: an agent's id, `human`, or `tasuki`.
    pub by: String,
    /// The status before; null at the beginning.
    pub from: Option<Word<Status>>,
    /// The status after.
    pub to: Word<Status>,
    /// Who has it from then on.
    pub owner: Option<String>,
    /// How long it had been in the status before, in milliseconds.
    pub after_ms: Option<u64>,
    /// Why.
    pub reason: Option<String>,
    /// The names of the output's fields.
    pub output_summary: Option<Vec<String>>,
    /// The rule's verdict on the output.
    pub validation: Option<String>,
    /// Children that were made or withdrawn by it.
    pub children: Vec<String>,
}

/// An agent that was notified.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ToldView {
    /// Which.
    pub agent_id: String,
    /// When: UTC, milliseconds, `Z`.
    pub at: String,
    /// Whether the notice has arrived; null for an agent that has given the item back and is not notified again.
    pub verdict: Option<Word<Verdict>>,
}

/// The part of an item's view that a list shows, for readers of very many items.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WorkBrief {
    pub item_id: String,
    /// Its type.
    pub r#type: String,
    pub title: String,
    pub status: Word<Status>,
    pub priority: Word<Priority>,
    /// The item that it belongs to.
    pub parent_id: Option<String>,
    /// The items that belong to it.
    #[serde(default)]
    pub children: Vec<String>,
    pub claimed_by: Option<String>,
    pub created_at: String,
    /// When it was escalated last.
    #[serde(default)]
    pub escalated_at: Option<String>,
    /// Why.
    #[serde(default)]
    pub escalation_reason: Option<String>,
}

impl From<WorkView> for WorkBrief {
    fn from(view: WorkView) -> Self {
        WorkBrief {
            item_id: view.item_id,
            r#type: view.r#type,
            title: view.title,
            status: view.status,
            priority: view.priority,
            parent_id: view.parent_id,
            children: view.children,
            claimed_by: view.claimed_by,
            created_at: view.created_at,
            escalated_at: view.escalated_at,
            escalation_reason: view.escalation_reason,
        }
    }
}

/// The part of an item's view from which statistics are computed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WorkPast {
    /// Its type.
    pub r#type: String,
    pub status: Word<Status>,
    /// What was done to it.
    #[serde(default)]
    pub history: Vec<EntryView>,
}

impl WorkBrief {
    /// Whether it is not done. The mark in `view/work/open` is removed only after the view was written, so for a moment
    /// the marks name items that are already done.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.status.known().is_some_and(Status::is_open)
    }

    /// Its position in a list: more important items first, then older ones.
    #[must_use]
    pub fn place(&self) -> (usize, String, String) {
        let rank = Priority::ALL.iter().rev().position(|known| self.priority == *known);
        (rank.unwrap_or(Priority::ALL.len()), self.created_at.clone(), self.item_id.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::text;

    #[test]
    fn lists_and_figures_read_fields_that_the_view_has() {
        let told =
            ToldView { agent_id: "a".to_owned(), verdict: Some(Verdict::Delivered.into()), ..ToldView::default() };
        let entry = EntryView {
            action: Action::Claimed.into(),
            from: Some(Status::Ready.into()),
            to: Status::Claimed.into(),
            after_ms: Some(7),
            ..EntryView::default()
        };
        let view = WorkView {
            item_id: "i".to_owned(),
            r#type: "bug".to_owned(),
            title: "t".to_owned(),
            status: Status::Claimed.into(),
            priority: Priority::High.into(),
            parent_id: Some("p".to_owned()),
            children: vec!["c".to_owned()],
            claimed_by: Some("a".to_owned()),
            created_at: "2026".to_owned(),
            history: vec![entry],
            told: vec![told],
            ..WorkView::default()
        };
        let written = text(&view);
        assert_eq!(serde_json::from_str::<WorkView>(&written).expect("a view"), view);
        let brief: WorkBrief = serde_json::from_str(&written).expect("a part of it");
        assert_eq!(WorkBrief::from(view.clone()), brief);
        assert_eq!((brief.is_open(), brief.place()), (true, (1, "2026".to_owned(), "i".to_owned())));
        assert_eq!((brief.r#type, brief.title, brief.parent_id), (view.r#type.clone(), view.title, view.parent_id));
        assert_eq!((brief.children, brief.claimed_by), (view.children, view.claimed_by));
        let past: WorkPast = serde_json::from_str(&written).expect("a part of it");
        assert_eq!((past.r#type, past.status, past.history), (view.r#type, view.status, view.history));
    }
}
