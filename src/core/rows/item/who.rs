//! Who acts on an item, or owns it.

use crate::core::id::{AgentId, InvalidId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Who acts on an item, or holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Who {
    /// The operator: `human`.
    Human,
    /// tasuki itself, because of what has happened to an agent or a handoff.
    Tasuki,
    Agent(AgentId),
}

impl Who {
    /// The agent's id, if it is an agent.
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
