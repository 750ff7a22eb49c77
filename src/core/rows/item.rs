//! A work item's row: the task, its status, its owner, and its history.

mod history;
mod who;

use crate::core::id::{AgentId, HandoffId, ItemId};
use crate::core::pane::Verdict;
use crate::core::reply::Fault;
use crate::core::time::{Deadline, Now};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::contract::work::{Action, CommentView as Comment, Priority, Status};
pub use history::Entry;
pub(crate) use history::Note;
pub use who::Who;

/// A child that a partial completion could not make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedChild {
    /// Its position in the request's list.
    pub index: usize,
    pub asked: Value,
    pub errors: Vec<Fault>,
}

/// What is needed to undo the last completion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    pub owner: Who,
    /// The children that it made, and those that were made later in place of failed ones.
    pub children: Vec<ItemId>,
    pub output_before: Option<Value>,
    pub completed_before: Option<(String, Who)>,
    pub failed_before: Vec<FailedChild>,
}

/// Watches a completion: it is undone if its children are not claimed in time, or are not kept (`rollback_on` in the
/// rules).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackWatch {
    /// By when somebody must have claimed every child; `None` if no such limit runs.
    pub deadline: Option<Deadline>,
}

/// An agent that was told of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotifiedAgent {
    pub agent_id: AgentId,
    pub at: String,
    /// The verdict on the notice; `None` for an agent that gets no notice, because it has given the item back.
    pub verdict: Option<Verdict>,
    /// How many tries to type the notice were refused, as far as they count towards giving up; 0 if the agent must not
    /// be notified of the item again.
    pub tries: u8,
}

/// The stored row of one work item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub item_id: ItemId,
    /// Its type, which has a rule.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub description: Option<String>,
    pub status: Status,
    /// Since when it has had this status, by the wall clock, in milliseconds since 1970.
    pub since_ms: i64,
    /// The item at the root of its tree; its own id if it is the root.
    pub project_id: ItemId,
    pub parent_id: Option<ItemId>,
    /// Its children that were not withdrawn.
    pub children: Vec<ItemId>,
    pub priority: Priority,
    /// Its position among all items, by the time at which it was made.
    pub order: u64,
    pub claimed_by: Option<Who>,
    /// The owner's handoff, while that holds the item for the successor.
    pub held_by: Option<HandoffId>,
    pub output: Option<Value>,
    /// The output of its parent.
    pub parent_output: Option<Value>,
    /// Further fields, from the request that made it.
    pub metadata: Map<String, Value>,
    /// Children that could not be made.
    pub failed_children: Vec<FailedChild>,
    pub comments: Vec<Comment>,
    pub history: Vec<Entry>,
    pub created_at: String,
    pub created_by: Who,
    pub completed_at: Option<String>,
    pub completed_by: Option<Who>,
    pub escalated_at: Option<String>,
    pub escalation_reason: Option<String>,
    /// Agents that have escalated it: they can't claim it back.
    pub escalated_by: Vec<AgentId>,
    /// What is needed to undo its completion.
    pub completion: Option<Completion>,
    /// Present while its completion may be undone because of its children.
    pub watch: Option<RollbackWatch>,
    /// The agent that is being told of it, or was told last and may claim it.
    pub offered_to: Option<AgentId>,
    /// Agents that were told of it since it became ready.
    #[serde(rename = "told")]
    pub notified: Vec<NotifiedAgent>,
}

impl Item {
    /// Its row is history: nothing happens to it any more, unless a request names it.
    #[must_use]
    pub fn is_past(&self) -> bool {
        matches!(self.status, Status::Done | Status::Withdrawn) && self.watch.is_none()
    }

    /// It is ready, claimed or escalated.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.status.is_open()
    }

    /// Changes status and owner, and adds an entry to the history.
    pub(crate) fn enter(&mut self, now: &Now, status: Status, owner: Option<Who>, note: Note) {
        let from = if self.history.is_empty() { None } else { Some(self.status) };
        let after = u64::try_from(now.wall_ms.saturating_sub(self.since_ms)).unwrap_or(0);
        self.history.push(Entry {
            at: now.rfc3339(),
            action: note.action,
            by: note.by,
            from,
            to: status,
            owner,
            after_ms: from.map(|_| after),
            reason: note.reason,
            output_summary: note.output_summary,
            validation: note.validation,
            children: note.children,
        });
        if from != Some(status) {
            self.since_ms = now.wall_ms;
        }
        self.status = status;
        self.claimed_by = owner;
        if status != Status::Ready {
            self.offered_to = None;
            self.notified.clear();
        }
    }
}
