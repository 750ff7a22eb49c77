//! Requests about work items (SPEC section 7), and the bounds of what they may bring.

use super::read::{not_empty, optional};
use crate::core::reply::Refused;
use crate::core::rows::item::Priority;
use crate::core::work::children::size;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Longest title, in bytes.
pub const MAX_TITLE: usize = 500;
/// Longest description, in bytes.
pub const MAX_DESCRIPTION: usize = 64 * 1024;
/// Most metadata, in bytes of JSON.
pub const MAX_METADATA: usize = 64 * 1024;
/// Largest output, in bytes of JSON.
pub const MAX_OUTPUT: usize = 256 * 1024;
/// Most children of one completion.
pub const MAX_CHILDREN: usize = 256;
/// Largest output of a completion times the number of its children, for each of them carries it, in bytes of JSON.
pub const MAX_COPIED: usize = 16 * 1024 * 1024;
/// Longest reason and comment, in bytes.
const MAX_REASON: usize = 16 * 1024;
/// Most items that one import brings.
const MAX_IMPORTED: usize = 10_000;

/// `work_create`: make an item.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkCreateAsked {
    /// Its type, which must have a rule.
    #[serde(rename = "type")]
    pub kind: String,
    /// In one line.
    pub title: String,
    /// In full.
    pub description: Option<String>,
    /// The item that it belongs to, whose rule must allow the type.
    pub parent_id: Option<String>,
    /// How much it matters; its parent's unless given, else `normal`.
    pub priority: Option<Priority>,
    /// Whatever you want to add.
    pub metadata: Option<Map<String, Value>>,
}

/// `work_claim`: take an item.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkClaimAsked {
    /// Which.
    pub item_id: String,
    /// Who; `human` is the operator.
    pub agent_id: String,
}

/// A child that a completion makes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChildAsked {
    /// Its type: one that the rule of the completed item creates.
    #[serde(rename = "type")]
    pub kind: String,
    /// In one line.
    pub title: String,
    /// In full.
    pub description: Option<String>,
    /// Whatever you want to add.
    pub metadata: Option<Map<String, Value>>,
}

/// The status that follows a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NextStatus {
    /// It is finished.
    Done,
    /// It goes round again.
    Ready,
    /// A person must look at it.
    Escalated,
}

/// `work_complete`: hand over what came of an item.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkCompleteAsked {
    /// Which.
    pub item_id: String,
    /// Whose it is; `human` is the operator.
    pub agent_id: String,
    /// What came of it.
    pub output: Map<String, Value>,
    /// What follows from it.
    #[serde(default)]
    #[schemars(with = "Vec<ChildAsked>")]
    pub children: Vec<Value>,
    /// Make the good children although others are bad.
    #[serde(default)]
    pub partial: bool,
    /// The status that follows; the rule's unless given.
    pub next_status: Option<NextStatus>,
}

/// `work_retry_children`: make the children that a partial completion could not make.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkRetryAsked {
    /// The completed item.
    pub item_id: String,
    /// Who has completed it, its successor, or `human`.
    pub agent_id: String,
    /// In place of all that have failed; without it, those are tried again as they were.
    #[schemars(with = "Option<Vec<ChildAsked>>")]
    pub children: Option<Vec<Value>>,
    /// Make the good ones although others are still bad.
    #[serde(default)]
    pub partial: bool,
}

/// `work_release`: give an item back.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkReleaseAsked {
    /// Which.
    pub item_id: String,
    /// Who gives it back; only `human` releases an escalated one.
    pub agent_id: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// `work_escalate`: leave an item to a person.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkEscalateAsked {
    /// Which.
    pub item_id: String,
    /// Whose it is.
    pub agent_id: String,
    /// Why.
    pub reason: String,
}

/// `work_rollback`: undo a completion.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkRollbackAsked {
    /// Which.
    pub item_id: String,
    /// Why.
    pub reason: String,
}

/// `work_comment`: say something of an item.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkCommentAsked {
    /// Which.
    pub item_id: String,
    /// Who says it.
    pub author: String,
    /// What.
    pub text: String,
}

/// `work_import`: take items from elsewhere, all of them or none.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkImportAsked {
    /// The items, in the form of their views; `type` and `title` are enough.
    pub items: Vec<Value>,
}

pub(super) fn check_create(asked: &WorkCreateAsked) -> Result<(), Refused> {
    not_empty("type", &asked.kind, 64)?;
    not_empty("title", &asked.title, MAX_TITLE)?;
    optional("description", asked.description.as_deref(), MAX_DESCRIPTION)?;
    optional("parent_id", asked.parent_id.as_deref(), 128)?;
    metadata(asked.metadata.as_ref())
}

pub(super) fn check_claim(asked: &WorkClaimAsked) -> Result<(), Refused> {
    named(&asked.item_id, &asked.agent_id)
}

pub(super) fn check_complete(asked: &WorkCompleteAsked) -> Result<(), Refused> {
    named(&asked.item_id, &asked.agent_id)?;
    let bytes = size(&asked.output);
    if bytes > MAX_OUTPUT {
        return Err(too_large(
            "output",
            &format!("has {bytes} bytes, more than {MAX_OUTPUT}: put what is large in a file, and name that"),
        ));
    }
    few_children(asked.children.len())?;
    if bytes.saturating_mul(asked.children.len()) > MAX_COPIED {
        let what = "is too large for so many children, each of which carries it: put it in a file, and name that";
        return Err(too_large("output", what));
    }
    Ok(())
}

pub(super) fn check_retry(asked: &WorkRetryAsked) -> Result<(), Refused> {
    named(&asked.item_id, &asked.agent_id)?;
    few_children(asked.children.as_ref().map_or(0, Vec::len))
}

pub(super) fn check_release(asked: &WorkReleaseAsked) -> Result<(), Refused> {
    not_empty("item_id", &asked.item_id, 128)?;
    optional("agent_id", asked.agent_id.as_deref(), 128)?;
    optional("reason", asked.reason.as_deref(), MAX_REASON)
}

pub(super) fn check_escalate(asked: &WorkEscalateAsked) -> Result<(), Refused> {
    named(&asked.item_id, &asked.agent_id)?;
    not_empty("reason", &asked.reason, MAX_REASON)
}

pub(super) fn check_rollback(asked: &WorkRollbackAsked) -> Result<(), Refused> {
    not_empty("item_id", &asked.item_id, 128)?;
    not_empty("reason", &asked.reason, MAX_REASON)
}

pub(super) fn check_comment(asked: &WorkCommentAsked) -> Result<(), Refused> {
    not_empty("item_id", &asked.item_id, 128)?;
    not_empty("author", &asked.author, 128)?;
    not_empty("text", &asked.text, MAX_REASON)
}

pub(super) fn check_import(asked: &WorkImportAsked) -> Result<(), Refused> {
    if asked.items.is_empty() || asked.items.len() > MAX_IMPORTED {
        return Err(Refused::bad("items", "must hold from 1 to 10000 items"));
    }
    Ok(())
}

fn named(item_id: &str, agent_id: &str) -> Result<(), Refused> {
    not_empty("item_id", item_id, 128)?;
    not_empty("agent_id", agent_id, 128)
}

fn few_children(count: usize) -> Result<(), Refused> {
    if count > MAX_CHILDREN {
        return Err(Refused::bad("children", "may hold at most 256 entries"));
    }
    Ok(())
}

fn metadata(fields: Option<&Map<String, Value>>) -> Result<(), Refused> {
    if fields.is_some_and(|fields| size(fields) > MAX_METADATA) {
        return Err(too_large("metadata", &format!("has more than {MAX_METADATA} bytes")));
    }
    Ok(())
}

fn too_large(field: &str, what: &str) -> Refused {
    Refused::new(413, "too_large", format!("{field} {what}")).field(field)
}
