//! Items from elsewhere, in the form of their views: all of them or none. Parents may come in the same request, in any
//! order. An agent that had claimed an item elsewhere does not exist here, so a claimed item becomes ready.

use super::children::pointer_to;
use super::items::{self, find};
use super::people;
use crate::contract::reply::ImportReply;
use crate::core::id::{ItemId, RequestId};
use crate::core::reply::{Fault, Refused, Reply};
use crate::core::request::work::{MAX_DESCRIPTION, MAX_METADATA, MAX_OUTPUT, MAX_TITLE, WorkImportRequest, size};
use crate::core::rows::item::{Action, Comment, Entry, Item, Note, Priority, Status, Who};
use crate::core::tx::Tx;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How many entries of history, and how many comments, an item may bring.
const MAX_ENTRIES: usize = 2_000;
/// How many faults a refusal lists.
const MOST_FAULTS: usize = 100;

/// An item as a view shows it. Three kinds of fields are ignored: those that follow from others, those that concern
/// only the agents of the home that exported the item, and `failed_children`, because only the home in which the
/// completion was made can make them again.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Imported {
    #[serde(rename = "v")]
    _v: Option<IgnoredAny>,
    item_id: Option<ItemId>,
    #[serde(rename = "type")]
    kind: String,
    title: String,
    description: Option<String>,
    status: Option<Status>,
    parent_id: Option<ItemId>,
    priority: Option<Priority>,
    metadata: Option<Map<String, Value>>,
    output: Option<Value>,
    comments: Option<Vec<Comment>>,
    history: Option<Vec<Entry>>,
    created_at: Option<String>,
    created_by: Option<Who>,
    completed_at: Option<String>,
    completed_by: Option<Who>,
    escalated_at: Option<String>,
    escalation_reason: Option<String>,
    #[serde(rename = "project_id")]
    _project_id: Option<IgnoredAny>,
    #[serde(rename = "children")]
    _children: Option<IgnoredAny>,
    #[serde(rename = "parent_output")]
    _parent_output: Option<IgnoredAny>,
    #[serde(rename = "claimed_by")]
    _claimed_by: Option<IgnoredAny>,
    #[serde(rename = "claimed_at")]
    _claimed_at: Option<IgnoredAny>,
    #[serde(rename = "held_by")]
    _held_by: Option<IgnoredAny>,
    #[serde(rename = "failed_children")]
    _failed_children: Option<IgnoredAny>,
    #[serde(rename = "told")]
    _told: Option<IgnoredAny>,
}

impl Imported {
    /// Whether the item is ready or escalated once it is imported.
    fn is_open(&self) -> bool {
        self.status.is_none_or(Status::is_open)
    }

    fn is_withdrawn(&self) -> bool {
        self.status == Some(Status::Withdrawn)
    }
}

/// `work_import`.
pub(crate) fn asked(tx: &mut Tx<'_>, request: &RequestId, asked: &WorkImportRequest) {
    let checked = read(tx, &asked.items).and_then(|items| {
        let opened = items.values().filter(|(_, imported)| imported.is_open()).count();
        items::room_for(tx, opened)?;
        in_order(tx, items)
    });
    match checked {
        Err(refused) => tx.refuse(request, refused),
        Ok(items) => {
            let ids: Vec<ItemId> = items.into_iter().map(|(id, imported)| take(tx, id, imported)).collect();
            people::to_people(tx, &ids);
            let item_ids = ids.iter().map(ToString::to_string).collect();
            tx.answer(request, Reply::ok(&ImportReply { status: "imported".to_owned(), item_ids }));
        }
    }
}

fn read(tx: &mut Tx<'_>, items: &[Value]) -> Result<BTreeMap<ItemId, (usize, Imported)>, Refused> {
    let (mut found, mut faults) = (BTreeMap::new(), Vec::new());
    for (index, value) in items.iter().enumerate() {
        let at = |pointer: &str, message: String| Fault::new(format!("/items/{index}{pointer}"), message);
        let imported = match serde_path_to_error::deserialize::<_, Imported>(value) {
            Ok(imported) => imported,
            Err(error) => {
                faults.push(at(&pointer_to(error.path()), error.inner().to_string()));
                continue;
            }
        };
        faults.extend(bounds(&imported).map(|(pointer, message)| at(pointer, message.to_owned())));
        if !tx.rules().types.contains_key(&imported.kind) {
            faults.push(at("/type", format!("there is no rule for the type {}", imported.kind)));
        }
        let id = imported.item_id.unwrap_or_else(|| tx.new_item_id());
        if tx.item(&id).is_some() {
            let message = format!("An item {id} already exists");
            return Err(Refused::new(409, "exists", message).hint("nothing was imported").field("item_id"));
        }
        if found.insert(id, (index, imported)).is_some() {
            faults.push(at("/item_id", "appears twice".to_owned()));
        }
    }
    if faults.is_empty() {
        return Ok(found);
    }
    faults.truncate(MOST_FAULTS);
    let no_rule = faults.iter().all(|fault| fault.message.starts_with("there is no rule"));
    let code = if no_rule { "no_rule" } else { "bad_items" };
    let first = faults.first().map_or_else(String::new, |fault| format!("{}: {}", fault.pointer, fault.message));
    Err(Refused::new(422, code, format!("Items can't be imported: {first}"))
        .hint("nothing was imported")
        .faults(faults))
}

fn bounds(imported: &Imported) -> Option<(&'static str, &'static str)> {
    let longer = |text: &Option<String>, most: usize| text.as_ref().is_some_and(|text| text.len() > most);
    let many = |count: Option<usize>| count.is_some_and(|count| count > MAX_ENTRIES);
    if imported.title.trim().is_empty() || imported.title.len() > MAX_TITLE {
        return Some(("/title", "must have from 1 to 500 bytes"));
    }
    if longer(&imported.description, MAX_DESCRIPTION) {
        return Some(("/description", "is too long"));
    }
    if imported.metadata.as_ref().is_some_and(|fields| size(fields) > MAX_METADATA) {
        return Some(("/metadata", "is too large"));
    }
    if imported.output.as_ref().is_some_and(|output| size(output) > MAX_OUTPUT) {
        return Some(("/output", "is too large"));
    }
    if many(imported.history.as_ref().map(Vec::len)) {
        return Some(("/history", "may have at most 2000 entries"));
    }
    if many(imported.comments.as_ref().map(Vec::len)) {
        return Some(("/comments", "may have at most 2000 entries"));
    }
    None
}

/// Checks parents and types, and puts parents before their children.
fn in_order(tx: &Tx<'_>, mut items: BTreeMap<ItemId, (usize, Imported)>) -> Result<Vec<(ItemId, Imported)>, Refused> {
    let mut below: BTreeMap<ItemId, Vec<ItemId>> = BTreeMap::new();
    let mut next = Vec::new();
    let mut more: BTreeMap<ItemId, usize> = BTreeMap::new();
    for (id, (index, imported)) in &items {
        match imported.parent_id {
            Some(parent) if items.contains_key(&parent) => below.entry(parent).or_default().push(*id),
            _ => next.push(*id),
        }
        let Some(parent_id) = imported.parent_id else { continue };
        let parent = Parent::of(tx, &items, parent_id).map_err(|refused| refused.field(field(*index, "parent_id")))?;
        let more = more.entry(parent_id).or_default();
        *more += usize::from(!imported.is_withdrawn());
        may_be_under(tx, &parent, *index, imported, *more)?;
    }
    let mut ordered = Vec::with_capacity(items.len());
    while let Some(id) = next.pop() {
        next.extend(below.remove(&id).unwrap_or_default());
        ordered.extend(items.remove(&id).map(|(_, imported)| (id, imported)));
    }
    let Some((index, _)) = items.values().next() else { return Ok(ordered) };
    let message = "An item is its own ancestor";
    Err(Refused::new(422, "cycle", message).hint("nothing was imported").field(field(*index, "parent_id")))
}

/// What an import looks at in the parent of an item, which comes in the same request or was there before.
struct Parent<'t> {
    kind: &'t str,
    is_withdrawn: bool,
    /// How many children it has in this home.
    children: usize,
}

impl<'t> Parent<'t> {
    fn of(tx: &'t Tx<'_>, items: &'t BTreeMap<ItemId, (usize, Imported)>, id: ItemId) -> Result<Self, Refused> {
        if let Some((_, parent)) = items.get(&id) {
            return Ok(Self { kind: &parent.kind, is_withdrawn: parent.is_withdrawn(), children: 0 });
        }
        let parent = find(tx, &id.to_string())?;
        let is_withdrawn = parent.status == Status::Withdrawn;
        Ok(Self { kind: &parent.kind, is_withdrawn, children: parent.children.len() })
    }
}

/// Checks that the item may be a child of this parent. `more`: how many children the import gives to the parent, up to
/// this one.
fn may_be_under(
    tx: &Tx<'_>,
    parent: &Parent<'_>,
    index: usize,
    imported: &Imported,
    more: usize,
) -> Result<(), Refused> {
    let rule = tx.rules().types.get(parent.kind);
    if rule.is_some_and(|rule| !rule.creates.contains(&imported.kind)) {
        let message = format!("The rule does not let {} create {}", parent.kind, imported.kind);
        return Err(Refused::new(422, "not_created", message).hint("nothing was imported").field(field(index, "type")));
    }
    let refused = |refused: Refused| refused.hint("nothing was imported").field(field(index, "parent_id"));
    if parent.is_withdrawn && !imported.is_withdrawn() {
        let message = "The parent item was withdrawn, so it can have no child that is not withdrawn";
        return Err(refused(Refused::new(409, "withdrawn", message)));
    }
    items::room_under(parent.children, more).map_err(refused)
}

fn field(index: usize, name: &str) -> String {
    format!("items[{index}].{name}")
}

fn take(tx: &mut Tx<'_>, id: ItemId, imported: Imported) -> ItemId {
    let parent: Option<Item> = imported.parent_id.and_then(|parent| tx.item(&parent)).cloned();
    let status = match imported.status.unwrap_or(Status::Ready) {
        Status::Claimed => Status::Ready,
        status @ (Status::Ready | Status::Done | Status::Escalated | Status::Withdrawn) => status,
    };
    let mut item = items::blank(id, &tx.now, tx.out.next_seq);
    item.project_id = parent.as_ref().map_or(id, |parent| parent.project_id);
    item.parent_id = imported.parent_id;
    item.parent_output = parent.as_ref().and_then(|parent| parent.output.clone());
    item.kind = imported.kind;
    item.title = imported.title;
    item.description = imported.description;
    item.priority = imported.priority.unwrap_or_default();
    item.metadata = imported.metadata.unwrap_or_default();
    item.output = imported.output;
    item.comments = imported.comments.unwrap_or_default();
    item.history = imported.history.unwrap_or_default();
    item.created_at = imported.created_at.unwrap_or(item.created_at);
    item.created_by = imported.created_by.unwrap_or(Who::Human);
    item.completed_at = imported.completed_at;
    item.completed_by = imported.completed_by;
    item.escalated_at = imported.escalated_at;
    item.escalation_reason = imported.escalation_reason;
    item.status = item.history.last().map_or(item.status, |entry| entry.to);
    item.enter(&tx.now, status, None, Note::new(Action::Imported, Who::Human, None));
    items::put(tx, item);
    let parent = parent.filter(|_| status != Status::Withdrawn);
    if let Some(parent) = parent.and_then(|parent| tx.item_mut(&parent.item_id)) {
        parent.children.push(id);
    }
    id
}
