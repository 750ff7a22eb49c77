//! Work items: typed handoffs between roles, validated and undoable (SPEC section 7).
//!
//! `rules` says who processes which type and what an output must hold, `output` and `children` judge by them; `ask` serves
//! create, claim, release, escalate and comment, `complete` the completion and what goes with it, `rollback` its undoing,
//! `import` what comes from elsewhere; `carry` follows the life of agents and handoffs, `notices` tells agents and the
//! operator, `watch` undoes what nobody has taken; `items` keeps the open ones with what must be found fast.

pub(crate) mod ask;
pub(crate) mod carry;
pub(crate) mod children;
pub(crate) mod complete;
mod history;
pub(crate) mod import;
pub mod items;
pub mod notices;
pub mod output;
mod pencil;
pub(crate) mod rollback;
pub mod rules;
pub(crate) mod watch;

#[cfg(test)]
mod tests;

use super::decision::{Failure, Tx};
use super::id::{AgentId, HandoffId, InvalidId, ItemId};
use super::pane::Verdict;
use super::time::{Deadline, Now};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::str::FromStr;

pub(crate) use history::Note;
pub use history::{Action, Entry};

/// Where an item stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It waits for somebody of its role.
    Ready,
    /// Somebody has it.
    Claimed,
    /// It is finished.
    Done,
    /// Only a person can go on with it.
    Escalated,
    /// The completion that made it was undone.
    Withdrawn,
}

impl Status {
    /// The contract's word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Status::Ready => "ready",
            Status::Claimed => "claimed",
            Status::Done => "done",
            Status::Escalated => "escalated",
            Status::Withdrawn => "withdrawn",
        }
    }
}

/// How much an item matters: of several that wait, those that matter more are told first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// When there is nothing else.
    Low,
    /// As most.
    #[default]
    Normal,
    /// Before most.
    High,
    /// Before all.
    Urgent,
}

impl Priority {
    /// The contract's word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Priority::Low => "low",
            Priority::Normal => "normal",
            Priority::High => "high",
            Priority::Urgent => "urgent",
        }
    }
}

/// Who does something to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Who {
    /// The operator: `human`.
    Human,
    /// tasuki itself, because of what has happened to an agent or a handoff.
    Tasuki,
    /// An agent.
    Agent(AgentId),
}

impl Who {
    /// The agent, if it is one.
    #[must_use]
    pub fn agent(self) -> Option<AgentId> {
        match self {
            Who::Agent(id) => Some(id),
            Who::Human | Who::Tasuki => None,
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Human => f.write_str("human"),
            Who::Tasuki => f.write_str("tasuki"),
            Who::Agent(id) => id.fmt(f),
        }
    }
}

impl From<Who> for String {
    fn from(who: Who) -> String {
        who.to_string()
    }
}

impl FromStr for Who {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        match text {
            "human" => Ok(Who::Human),
            "tasuki" => Ok(Who::Tasuki),
            other => other.parse().map(Who::Agent),
        }
    }
}

impl TryFrom<String> for Who {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

/// What somebody has said of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// Its id.
    pub comment_id: String,
    /// When.
    pub at: String,
    /// Who, in their own words.
    pub author: String,
    /// What.
    pub text: String,
    /// tasuki has written it.
    #[serde(default)]
    pub system: bool,
}

/// A child that a partial completion could not make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedChild {
    /// Its place in the list that was asked for.
    pub index: usize,
    /// As it was asked for.
    pub asked: Value,
    /// What is wrong with it.
    pub errors: Vec<super::reply::Fault>,
}

/// The last completion, as far as its undoing needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// Whose item it was.
    pub owner: Who,
    /// The children that it made, and those that were made later in place of failed ones.
    pub children: Vec<ItemId>,
    /// What the item held before.
    pub output_before: Option<Value>,
    /// The same.
    pub completed_before: Option<(String, Who)>,
    /// The same.
    pub failed_before: Vec<FailedChild>,
}

/// A completion whose children are to be taken, or else it is undone (`rollback_on` in the rules).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// When somebody must have taken every child; none if there is no such limit, or it is past.
    pub deadline: Option<Deadline>,
}

/// An agent that was told of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Which.
    pub agent_id: AgentId,
    /// When that was known.
    pub at: String,
    /// Whether the notice has arrived; none for one that need not be told, for it has given the item back.
    pub verdict: Option<Verdict>,
    /// How often it was tried.
    pub tries: u8,
}

/// One item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Its id.
    pub item_id: ItemId,
    /// Its type, which has a rule.
    #[serde(rename = "type")]
    pub kind: String,
    /// In one line.
    pub title: String,
    /// In full.
    pub description: Option<String>,
    /// Where it stands.
    pub status: Status,
    /// Since when, by the wall clock, in milliseconds since 1970.
    pub since_ms: i64,
    /// The item at the root of its tree; its own id if it is that.
    pub project_id: ItemId,
    /// The item that it belongs to.
    pub parent_id: Option<ItemId>,
    /// Those that belong to it and were not withdrawn.
    pub children: Vec<ItemId>,
    /// How much it matters.
    pub priority: Priority,
    /// Where it stands among all items, by the time at which it was made.
    pub order: u64,
    /// Who has it.
    pub claimed_by: Option<Who>,
    /// The handoff of its owner that keeps it for the successor.
    pub held_by: Option<HandoffId>,
    /// What came of it.
    pub output: Option<Value>,
    /// What came of its parent.
    pub parent_output: Option<Value>,
    /// Whatever its maker has added.
    pub metadata: Map<String, Value>,
    /// Children that could not be made.
    pub failed_children: Vec<FailedChild>,
    /// What was said of it.
    pub comments: Vec<Comment>,
    /// What was done to it.
    pub history: Vec<Entry>,
    /// When it was made.
    pub created_at: String,
    /// By whom.
    pub created_by: Who,
    /// When it was completed.
    pub completed_at: Option<String>,
    /// By whom.
    pub completed_by: Option<Who>,
    /// When it was escalated last.
    pub escalated_at: Option<String>,
    /// Why.
    pub escalation_reason: Option<String>,
    /// Agents that have escalated it: they can't claim it back.
    pub escalated_by: Vec<AgentId>,
    /// What undoing its completion takes.
    pub completion: Option<Completion>,
    /// Its completion is undone if nobody takes what it made.
    pub watch: Option<Watch>,
    /// The agent that is being told of it, or was told last and may claim it.
    pub offered_to: Option<AgentId>,
    /// Agents that were told of it since it became ready.
    pub told: Vec<Told>,
}

impl Item {
    /// Nothing can happen to it without its being named.
    #[must_use]
    pub fn is_past(&self) -> bool {
        matches!(self.status, Status::Done | Status::Withdrawn) && self.watch.is_none()
    }

    /// Somebody waits for it, or has it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.status, Status::Ready | Status::Claimed | Status::Escalated)
    }

    /// Changes status and owner, and writes that down.
    pub(crate) fn enter(&mut self, now: &Now, status: Status, owner: Option<Who>, note: Note) {
        let from = if self.history.is_empty() { None } else { Some(self.status) };
        let after = u64::try_from(now.wall_ms.saturating_sub(self.since_ms)).unwrap_or(0);
        self.history.push(Entry {
            at: now.stamp(),
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
            self.told.clear();
        }
    }
}

/// The rules have changed, or can't be used: that is told, and the old ones stay in force.
pub(crate) fn rules_read(tx: &mut Tx<'_>, rules: Result<Box<rules::Rules>, String>) {
    match rules {
        Ok(rules) => tx.out.rules = Some(*rules),
        Err(why) => tx.tell_error(Failure {
            code: "bad_rules".to_owned(),
            message: format!("The rules for work items can't be used: {why}"),
            hint: "the old rules stay in force; mend the file, then: tasuki rules check".to_owned(),
            handoff_id: None,
            agent_id: None,
            step: None,
        }),
    }
}
