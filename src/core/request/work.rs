//! Requests about work items, and how long each of their fields may be.

use super::request_body::{Needs, RequestBody, not_empty, optional};
use crate::contract::work::Priority;
use crate::core::reply::Refused;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Longest title, in bytes.
pub const MAX_TITLE: usize = 500;
/// Longest description, in bytes.
pub const MAX_DESCRIPTION: usize = 64 * 1024;
/// The largest metadata, in bytes of JSON.
pub const MAX_METADATA: usize = 64 * 1024;
/// Largest output, in bytes of JSON.
pub const MAX_OUTPUT: usize = 256 * 1024;
/// The largest number of children of one completion.
pub const MAX_CHILDREN: usize = 256;
/// The largest product of an output's size, in bytes of JSON, and the number of children: each child holds a copy of
/// its parent's output.
pub const MAX_COPIED: usize = 16 * 1024 * 1024;
/// Longest reason and comment, in bytes.
const MAX_REASON: usize = 16 * 1024;
/// The largest number of items that one import brings.
const MAX_IMPORTED: usize = 10_000;

/// `work_create`: make an item.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WorkCreateAsked")]
pub struct WorkCreateRequest {
    /// Its type, which must have a rule.
    #[serde(rename = "type")]
    pub kind: String,
    /// In one line.
    pub title: String,
    /// In full.
    pub description: Option<String>,
    /// The item that it belongs to, whose rule must allow the type.
    pub parent_id: Option<String>,
    /// Who makes it: an agent, which must have claimed the parent, or `human`, the operator; absent: the operator.
    pub agent_id: Option<String>,
    /// How much it matters; absent: as much as its parent, or `normal` without a parent.
    pub priority: Option<Priority>,
    /// Further fields of your own.
    pub metadata: Option<Map<String, Value>>,
}

impl RequestBody for WorkCreateRequest {
    fn check(&self) -> Result<(), Refused> {
        not_empty("type", &self.kind, 64)?;
        not_empty("title", &self.title, MAX_TITLE)?;
        optional("description", self.description.as_deref(), MAX_DESCRIPTION)?;
        optional("parent_id", self.parent_id.as_deref(), 128)?;
        optional("agent_id", self.agent_id.as_deref(), 128)?;
        metadata(self.metadata.as_ref())
    }

    fn needs(&self) -> Needs<'_> {
        let (parent, agent) = (self.parent_id.as_deref(), self.agent_id.as_deref());
        Needs {
            items: parent.into_iter().collect(),
            agents: agent.into_iter().collect(),
            rules: true,
            ..Needs::default()
        }
    }
}

/// `work_claim`: take an item.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WorkClaimAsked")]
pub struct WorkClaimRequest {
    /// Which.
    pub item_id: String,
    /// Who; `human` is the operator.
    pub agent_id: String,
}

impl RequestBody for WorkClaimRequest {
    fn check(&self) -> Result<(), Refused> {
        named(&self.item_id, &self.agent_id)
    }

    fn needs(&self) -> Needs<'_> {
        Needs { rules: true, role_of: Some(&self.agent_id), ..of(&self.item_id, Some(&self.agent_id)) }
    }
}

/// A child that a completion makes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ChildAsked")]
pub struct ChildRequest {
    /// Its type: one of the types that the rule of the completed item creates.
    #[serde(rename = "type")]
    pub kind: String,
    /// In one line.
    pub title: String,
    /// In full.
    pub description: Option<String>,
    /// Further fields of your own.
    pub metadata: Option<Map<String, Value>>,
}

/// The status that follows a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NextStatus {
    /// It is finished.
    Done,
    /// It is ready for another round.
    Ready,
    /// A person must look at it.
    Escalated,
}

/// `work_complete`: hand over what came of an item.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WorkCompleteAsked")]
pub struct WorkCompleteRequest {
    /// Which.
    pub item_id: String,
    /// Whose it is; `human` is the operator.
    pub agent_id: String,
    /// What came of it.
    pub output: Map<String, Value>,
    /// What follows from it.
    #[serde(default)]
    #[schemars(with = "Vec<ChildRequest>")]
    pub children: Vec<Value>,
    /// Make the good children although others are bad.
    #[serde(default)]
    pub partial: bool,
    /// The status that follows; the rule's unless given.
    pub next_status: Option<NextStatus>,
    /// Only say what would be answered, and change nothing.
    #[serde(default)]
    pub check: bool,
}

impl RequestBody for WorkCompleteRequest {
    fn check(&self) -> Result<(), Refused> {
        named(&self.item_id, &self.agent_id)?;
        let bytes = size(&self.output);
        if bytes > MAX_OUTPUT {
            return Err(too_large(
                "output",
                &format!(
                    "has {bytes} bytes; at most {MAX_OUTPUT} are allowed: put large content in a file and give the \
                     file's path"
                ),
            ));
        }
        few_children(self.children.len())?;
        if bytes.saturating_mul(self.children.len()) > MAX_COPIED {
            let what = "is too large to be copied into so many children: put it in a file and give the file's path";
            return Err(too_large("output", what));
        }
        Ok(())
    }

    fn needs(&self) -> Needs<'_> {
        Needs { rules: true, ..of(&self.item_id, Some(&self.agent_id)) }
    }
}

/// `work_retry_children`: make the children that a partial completion could not make.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WorkRetryAsked")]
pub struct WorkRetryRequest {
    /// The completed item.
    pub item_id: String,
    /// Who has completed it, its successor, or `human`.
    pub agent_id: String,
    /// Replace all failed children; absent: the failed children are tried again as they were.
    #[schemars(with = "Option<Vec<ChildRequest>>")]
    pub children: Option<Vec<Value>>,
    /// Make the good ones although others are still bad.
    #[serde(default)]
    pub partial: bool,
}

impl RequestBody for WorkRetryRequest {
    fn check(&self) -> Result<(), Refused> {
        named(&self.item_id, &self.agent_id)?;
        few_children(self.children.as_ref().map_or(0, Vec::len))
    }

    fn needs(&self) -> Needs<'_> {
        Needs { rules: true, ..of(&self.item_id, Some(&self.agent_id)) }
    }
}

/// `work_release`: give an item back.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WorkReleaseAsked")]
pub struct WorkReleaseRequest {
    /// Which.
    pub item_id: String,
    /// Who gives it back; only `human` releases an escalated one.
    pub agent_id: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

impl RequestBody for WorkReleaseRequest {
    fn check(&self) -> Result<(), Refused> {
        not_empty("item_id", &self.item_id, 128)?;
        optional("agent_id", self.agent_id.as_deref(), 128)?;
        optional("reason", self.reason.as_deref(), MAX_REASON)
    }

    fn needs(&self) -> Needs<'_> {
        Needs { rules: true, ..of(&self.item_id, self.agent_id.as_deref()) }
    }
}

/// `work_escalate`: leave an item to a person.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WorkEscalateAsked")]
pub struct WorkEscalateRequest {
    /// Which.
    pub item_id: String,
    /// Whose it is.
    pub agent_id: String,
    /// Why.
    pub reason: String,
}

impl RequestBody for WorkEscalateRequest {
    fn check(&self) -> Result<(), Refused> {
        named(&self.item_id, &self.agent_id)?;
        not_empty("reason", &self.reason, MAX_REASON)
    }

    fn needs(&self) -> Needs<'_> {
        of(&self.item_id, Some(&self.agent_id))
    }
}

/// `work_rollback`: undo a completion.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WorkRollbackAsked")]
pub struct WorkRollbackRequest {
    /// Which.
    pub item_id: String,
    /// Why.
    pub reason: String,
}

impl RequestBody for WorkRollbackRequest {
    fn check(&self) -> Result<(), Refused> {
        not_empty("item_id", &self.item_id, 128)?;
        not_empty("reason", &self.reason, MAX_REASON)
    }

    fn needs(&self) -> Needs<'_> {
        of(&self.item_id, None)
    }
}

/// `work_comment`: say something of an item.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WorkCommentAsked")]
pub struct WorkCommentRequest {
    /// Which.
    pub item_id: String,
    /// Who says it.
    pub author: String,
    /// What.
    pub text: String,
}

impl RequestBody for WorkCommentRequest {
    fn check(&self) -> Result<(), Refused> {
        not_empty("item_id", &self.item_id, 128)?;
        not_empty("author", &self.author, 128)?;
        not_empty("text", &self.text, MAX_REASON)
    }

    fn needs(&self) -> Needs<'_> {
        of(&self.item_id, None)
    }
}

/// `work_import`: take items from elsewhere, all of them or none.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WorkImportAsked")]
pub struct WorkImportRequest {
    /// The items, in the form of their views; `type` and `title` are enough.
    pub items: Vec<Value>,
}

impl RequestBody for WorkImportRequest {
    fn check(&self) -> Result<(), Refused> {
        if self.items.is_empty() || self.items.len() > MAX_IMPORTED {
            return Err(Refused::bad("items", "must hold from 1 to 10000 items"));
        }
        Ok(())
    }

    fn needs(&self) -> Needs<'_> {
        let named = self.items.iter().flat_map(|item| [item.get("item_id"), item.get("parent_id")]);
        Needs { items: named.flatten().filter_map(Value::as_str).collect(), rules: true, ..Needs::default() }
    }
}

fn of<'a>(item: &'a str, agent: Option<&'a str>) -> Needs<'a> {
    Needs { agents: agent.into_iter().collect(), items: vec![item], ..Needs::default() }
}

/// The length of a value as JSON, in bytes.
pub(crate) fn size(value: &impl serde::Serialize) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |text| text.len())
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
