//! The `result` of a request that was carried out. There is one type for each family of request kinds; which of its
//! fields are present depends on the kind.

use super::agent::Hooks;
use super::handoff::Step;
use super::words::{MaybeNull, Word, told};
use super::work::{FailedChildView, Status};
use serde::{Deserialize, Serialize};

/// The answer to a request about a handoff.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandoffReply {
    pub status: String,
    pub handoff_id: String,
    /// For a retry: the step at which it continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Word<Step>>,
    /// The document's path. For a handoff that begins; and for answers to a successor's questions, if they came with a
    /// new version of the document.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "told")]
    pub file_path: MaybeNull,
    /// For a document that is published: its address, if it is known.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "told")]
    pub url: MaybeNull,
    /// For an ACK: whether it came after the deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    /// For a session that was opened again: the agent that it runs as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// For a session that was opened again: its pane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pane: Option<String>,
}

impl HandoffReply {
    /// A reply with a status and nothing else.
    #[must_use]
    pub fn new(handoff_id: &impl ToString, status: &str) -> Self {
        HandoffReply { status: status.to_owned(), handoff_id: handoff_id.to_string(), ..HandoffReply::default() }
    }
}

/// The answer to a request about an agent. A text that was sent is answered with its verdict instead.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentReply {
    /// The new status, where the kind has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// For a living agent: its pane.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "told")]
    pub pane: MaybeNull,
    /// For an adopted agent: whether its hooks report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Word<Hooks>>,
    /// For an agent that was ended or forgotten: when it ended.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "told")]
    pub ended_at: MaybeNull,
}

/// The answer to a request about a work item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkReply {
    pub item_id: String,
    pub status: Word<Status>,
}

/// The answer to a completion, and to a request that makes failed children again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChildrenReply {
    pub item_id: String,
    pub children: Vec<ChildReply>,
    /// The children that could not be made.
    pub failed: Vec<FailedChildView>,
    /// For a completion that was only checked: true. Nothing was made or changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked: Option<bool>,
}

/// A child that was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChildReply {
    pub item_id: String,
    /// Its type.
    pub r#type: Option<String>,
    pub title: Option<String>,
}

/// The answer to a comment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommentReply {
    pub comment_id: String,
}

/// The answer to an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportReply {
    /// `imported`.
    pub status: String,
    /// The items, in the order in which they were made: parents before their children.
    pub item_ids: Vec<String>,
}

/// The answer to the dismissal of an error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DismissReply {
    /// `dismissed`.
    pub status: String,
    pub error_id: String,
}
