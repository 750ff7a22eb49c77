//! What several requests about work items need: the item, the sender, the rule, and whether there is room for more
//! items.

use super::children;
use crate::contract::reply::WorkReply;
use crate::contract::{JournalLine, maybe};
use crate::core::id::ItemId;
use crate::core::reply::{Refused, Reply};
use crate::core::rows::item::{Action, Item, Note, Priority, Status, Who};
use crate::core::rules::{HUMAN, Rule};
use crate::core::text::{normalise, quotable};
use crate::core::time::Now;
use crate::core::tx::Tx;
use serde_json::{Map, Value};

/// How many items may be ready, claimed or escalated at once.
pub(crate) const MAX_OPEN: usize = 100_000;
/// How many children one item may have.
pub(crate) const MAX_OF_ONE: usize = 10_000;

/// The fields of a new item.
pub(crate) struct New {
    pub(crate) kind: String,
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) priority: Priority,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) parent_output: Option<Value>,
    pub(crate) by: Who,
}

/// Finds the item that a request names.
pub(crate) fn find<'t>(tx: &'t Tx<'_>, text: &str) -> Result<&'t Item, Refused> {
    let found = text.parse::<ItemId>().ok().and_then(|id| tx.item(&id));
    found.ok_or_else(|| Refused::new(404, "no_item", "Work item not found"))
}

/// The sender of a request: the operator, or an agent that lives and has a persona.
pub(crate) fn actor(tx: &Tx<'_>, text: &str) -> Result<Who, Refused> {
    if text == HUMAN {
        return Ok(Who::Human);
    }
    let agent = text.parse().ok().and_then(|id| tx.agent(&id));
    let agent = agent.ok_or_else(|| Refused::new(404, "no_agent", "Agent not found"))?;
    if !agent.state.is_live() {
        return Err(Refused::new(400, "not_active", "Agent is not active"));
    }
    if agent.persona_slug.is_none() {
        return Err(Refused::new(400, "no_persona", "Agent has no persona"));
    }
    Ok(Who::Agent(agent.agent_id))
}

pub(crate) fn rule<'t>(tx: &'t Tx<'_>, kind: &str) -> Result<&'t Rule, Refused> {
    tx.rules().types.get(kind).ok_or_else(|| {
        Refused::new(422, "no_rule", format!("There is no rule for the type {kind}"))
            .hint("add a rule to data/rules.toml, then: tasuki rules check")
            .field("type")
    })
}

/// Checks that the parent's rule lets it create children of this type.
pub(crate) fn may_have(tx: &Tx<'_>, parent: &Item, kind: &str) -> Result<(), Refused> {
    let rule = rule(tx, &parent.kind)?;
    if rule.creates.iter().any(|created| created == kind) {
        return Ok(());
    }
    Err(Refused::new(422, "not_created", children::not_created(rule, kind)).field("type"))
}

/// Checks that this many further items may be open.
pub(crate) fn room_for(tx: &Tx<'_>, more: usize) -> Result<(), Refused> {
    if !has_room(tx.state.items.open(), more) {
        let message = format!("At most {MAX_OPEN} items may be open");
        return Err(Refused::new(429, "too_many", message).hint("complete some items, then ask again"));
    }
    Ok(())
}

/// A completion without children opens nothing, so it always has room: it is what makes room for others.
fn has_room(open: usize, more: usize) -> bool {
    more == 0 || open + more <= MAX_OPEN
}

/// Checks that a parent with this many children may have this many further ones.
pub(crate) fn room_under(children: usize, more: usize) -> Result<(), Refused> {
    if children + more > MAX_OF_ONE {
        return Err(Refused::new(429, "too_many", format!("An item may have at most {MAX_OF_ONE} children")));
    }
    Ok(())
}

/// Makes an item. A child's `created_by` is that of its parent; its history says who has made it. The caller adds the
/// child to the parent's list.
pub(crate) fn make(tx: &mut Tx<'_>, new: New, parent: Option<&Item>) -> ItemId {
    let id = tx.new_item_id();
    let mut item = blank(id, &tx.now, tx.out.next_seq);
    item.kind = new.kind;
    item.title = new.title;
    item.description = new.description;
    item.priority = new.priority;
    item.metadata = new.metadata;
    item.parent_output = new.parent_output;
    item.created_by = parent.map_or(new.by, |parent| parent.created_by);
    item.parent_id = parent.map(|parent| parent.item_id);
    item.project_id = parent.map_or(id, |parent| parent.project_id);
    item.enter(&tx.now, Status::Ready, None, Note::new(Action::Created, new.by, None));
    put(tx, item);
    id
}

/// An item that has only its id, order and times.
pub(crate) fn blank(id: ItemId, now: &Now, order: u64) -> Item {
    Item {
        item_id: id,
        kind: String::new(),
        title: String::new(),
        description: None,
        status: Status::Ready,
        since_ms: now.wall_ms,
        project_id: id,
        parent_id: None,
        children: Vec::new(),
        priority: Priority::default(),
        order,
        claimed_by: None,
        held_by: None,
        output: None,
        parent_output: None,
        metadata: Map::new(),
        failed_children: Vec::new(),
        comments: Vec::new(),
        history: Vec::new(),
        created_at: now.rfc3339(),
        created_by: Who::Human,
        completed_at: None,
        completed_by: None,
        escalated_at: None,
        escalation_reason: None,
        escalated_by: Vec::new(),
        completion: None,
        watch: None,
        offered_to: None,
        notified: Vec::new(),
    }
}

/// The answer that gives an item's present status.
pub(crate) fn stands(id: &impl ToString, status: Status) -> Reply {
    Reply::ok(&WorkReply { item_id: id.to_string(), status: status.into() })
}

/// Writes a changed item, and a journal line with the last entry of its history.
pub(crate) fn put(tx: &mut Tx<'_>, item: Item) {
    let Some(entry) = item.history.last() else { return };
    let owner = entry.owner.or(item.completed_by.filter(|_| entry.action == Action::Completed));
    let line = JournalLine {
        item_type: Some(item.kind.clone()),
        status: Some(item.status.as_str().to_owned()),
        agent_id: maybe(owner.or(Some(entry.by)).and_then(Who::agent)),
        parent_id: maybe(item.parent_id),
        reason: Some(entry.reason.clone()),
        ..JournalLine::of_work(&item.item_id, entry.action.as_str(), &entry.by)
    };
    tx.out.items.insert(item.item_id, item);
    tx.journal(line);
}

/// The title in one line.
pub(super) fn line(title: &str) -> String {
    normalise(&quotable(title, 200))
}

/// The 409 answer for a done or withdrawn item.
pub(crate) fn closed(item: &Item) -> Refused {
    let code = if item.status == Status::Withdrawn { "withdrawn" } else { "already_done" };
    Refused::new(409, code, format!("The item is {}", item.status.as_str())).hint("nothing was changed")
}

/// Refuses if `who` has not claimed the item. The refusal says in which state the item is.
pub(crate) fn owned(item: &Item, who: Who) -> Result<(), Refused> {
    match (item.status, item.claimed_by) {
        (Status::Claimed, Some(owner)) if owner == who => Ok(()),
        (Status::Claimed, Some(owner)) => {
            Err(Refused::new(403, "not_owner", format!("The item is claimed by {owner}, not by {who}")))
        }
        (Status::Done | Status::Withdrawn, _) => Err(closed(item)),
        (Status::Escalated, _) => {
            let message = "The item was escalated: a person must release or claim it first";
            Err(Refused::new(409, "escalated", message))
        }
        (Status::Ready | Status::Claimed, _) => {
            let message = "Nobody has claimed the item";
            let hint = format!("claim it first: tasuki work claim {}", item.item_id.short());
            Err(Refused::new(403, "not_owner", message).hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Undoing a completion opens its item again, whatever the number of open items.
    #[test]
    fn an_item_can_be_completed_however_many_are_open() {
        assert!(has_room(MAX_OPEN + 1, 0) && has_room(MAX_OPEN - 1, 1));
        assert!(!has_room(MAX_OPEN, 1));
    }
}
