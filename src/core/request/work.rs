//! Requests about work items (SPEC section 7), and the bounds of what they may bring.

use super::asked::{Asked, Needs, not_empty, optional};
use crate::contract::work::Priority;
use crate::core::reply::Refused;
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

impl Asked for WorkCreateAsked {
    fn check(&self) -> Result<(), Refused> {
        not_empty("type", &self.kind, 64)?;
        not_empty("title", &self.title, MAX_TITLE)?;
        optional("description", self.description.as_deref(), MAX_DESCRIPTION)?;
        optional("parent_id", self.parent_id.as_deref(), 128)?;
        metadata(self.metadata.as_ref())
    }

    fn needs(&self) -> Needs<'_> {
        Needs { items: self.parent_id.as_deref().into_iter().collect(), rules: true, ..Needs::default() }
    }
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

impl Asked for WorkClaimAsked {
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

impl Asked for WorkCompleteAsked {
    fn check(&self) -> Result<(), Refused> {
        named(&self.item_id, &self.agent_id)?;
        let bytes = size(&self.output);
        if bytes > MAX_OUTPUT {
            return Err(too_large(
                "output",
                &format!("has {bytes} bytes, more than {MAX_OUTPUT}: put what is large in a file, and name that"),
            ));
        }
        few_children(self.children.len())?;
        if bytes.saturating_mul(self.children.len()) > MAX_COPIED {
            let what = "is too large for so many children, each of which carries it: put it in a file, and name that";
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

impl Asked for WorkRetryAsked {
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
pub struct WorkReleaseAsked {
    /// Which.
    pub item_id: String,
    /// Who gives it back; only `human` releases an escalated one.
    pub agent_id: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

impl Asked for WorkReleaseAsked {
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
pub struct WorkEscalateAsked {
    /// Which.
    pub item_id: String,
    /// Whose it is.
    pub agent_id: String,
    /// Why.
    pub reason: String,
}

impl Asked for WorkEscalateAsked {
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
pub struct WorkRollbackAsked {
    /// Which.
    pub item_id: String,
    /// Why.
    pub reason: String,
}

impl Asked for WorkRollbackAsked {
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
pub struct WorkCommentAsked {
    /// Which.
    pub item_id: String,
    /// Who says it.
    pub author: String,
    /// What.
    pub text: String,
}

impl Asked for WorkCommentAsked {
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
pub struct WorkImportAsked {
    /// The items, in the form of their views; `type` and `title` are enough.
    pub items: Vec<Value>,
}

impl Asked for WorkImportAsked {
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

/// An item, and who asks.
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
