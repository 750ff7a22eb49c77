//! Where an item stands, how much it matters, and who does something to it.

use crate::core::id::{AgentId, InvalidId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

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
