//! What happens to items when their agent ends. If the agent's handoff has a record, the handoff holds them for the
//! successor until it is over, and the successor gets them as soon as it is ready to be primed. If the handoff fails
//! after its successor got the document, and is left as it is, the successor's end releases them. All other items are
//! released, too.

use super::{ask, items, people, watch};
use crate::core::id::{AgentId, HandoffId, ItemId};
use crate::core::rows::handoff::Handoff;
use crate::core::rows::item::{Action, Item, Note, Status, Who};
use crate::core::tx::Tx;
use std::collections::BTreeMap;

/// How many items a briefing names one by one.
const MOST_NAMED: usize = 50;

/// The agent has ended or is lost.
pub(crate) fn agent_ended(tx: &mut Tx<'_>, agent_id: &AgentId) {
    for id in tx.items_offered_to(agent_id) {
        if let Some(item) = tx.item_mut(&id) {
            item.offered_to = None;
        }
    }
    let ids = tx.items_claimed_by(agent_id);
    let items = ids.iter().filter_map(|id| tx.item(id)).filter(|item| is_free_at_end(tx, agent_id, item));
    let items = items.cloned().collect();
    let mut ready = give_back(tx, items);
    // If a handoff is in progress, either its successor takes over, or its end notifies people of what is left.
    if tx.agent(agent_id).is_some_and(|agent| agent.handoff_id.is_none()) {
        ready.extend(people::left_by(tx, agent_id));
    }
    people::to_people(tx, &ready);
}

/// Whether the end of this owner releases the item: no handoff holds it, or its handoff has failed after the owner got
/// the document. (A handoff that is not in memory is over or has failed.)
fn is_free_at_end(tx: &Tx<'_>, owner: &AgentId, item: &Item) -> bool {
    let Some(handoff) = item.held_by else { return true };
    let is_briefed = tx.agent(owner).is_some_and(|agent| agent.chain.holds(&handoff));
    is_briefed && tx.handoff(&handoff).is_none_or(|handoff| handoff.step.is_end())
}

/// Gives back the items of owners that have ended; returns their ids. All items are made ready before tasuki looks at
/// their parents. Several may be children of one parent, whose completion can be undone only if all its children are
/// free.
fn give_back(tx: &mut Tx<'_>, items: Vec<Item>) -> Vec<ItemId> {
    let ids = items.iter().map(|item| item.item_id).collect();
    let mut children_of: BTreeMap<ItemId, Vec<ItemId>> = BTreeMap::new();
    for item in items {
        if let Some(parent) = item.parent_id {
            children_of.entry(parent).or_default().push(item.item_id);
        }
        ask::make_ready(tx, item, Who::Tasuki, Some("its owner has ended".to_owned()));
    }
    for (parent, children) in children_of {
        watch::children_given_back(tx, Some(parent), &children, Who::Tasuki);
    }
    ids
}

/// Holds the agent's items for the successor, so that the agent's end does not release them. Called in each
/// decision that makes the record or renews it. An item that the agent claims after the last of these is not named in
/// the briefing, so it is released.
pub(crate) fn hold(tx: &mut Tx<'_>, handoff: HandoffId) {
    let Some(agent_id) = tx.handoff(&handoff).map(|handoff| handoff.agent_id) else { return };
    for id in tx.items_claimed_by(&agent_id) {
        let item = tx.item(&id).filter(|item| item.held_by != Some(handoff)).cloned();
        let Some(mut item) = item else { continue };
        item.held_by = Some(handoff);
        let (status, owner) = (item.status, item.claimed_by);
        item.enter(&tx.now, status, owner, Note::new(Action::Held, Who::Tasuki, None));
        items::put(tx, item);
    }
}

/// What the successor has to do: the tasks of the handoff, and the items that the handoff holds or is about to hold,
/// which the successor will own. Also returns the items that are named there.
pub(crate) fn tasks(tx: &Tx<'_>, handoff: &Handoff) -> (Vec<String>, Vec<ItemId>) {
    let mut tasks = handoff.tasks.clone();
    let mut items = held(tx, handoff.handoff_id);
    let own = tx.items_claimed_by(&handoff.agent_id);
    items.extend(own.into_iter().filter(|id| !items.contains(id)).collect::<Vec<_>>());
    let more = items.len().saturating_sub(MOST_NAMED);
    items.truncate(MOST_NAMED);
    let named = items.iter().filter_map(|id| tx.item(id));
    tasks.extend(named.map(|item| {
        let title = items::line(&item.title);
        format!("Work item {} ({}), which is yours now: {title}", item.item_id, item.kind)
    }));
    if more > 0 {
        tasks.push(format!("And {more} more work items: tasuki work list"));
    }
    (tasks, items)
}

/// What the briefing says of items that it names as the successor's, and that the successor does not have: since the
/// record, they were completed, withdrawn, released or escalated.
pub(crate) fn not_carried(tx: &Tx<'_>, handoff: &Handoff) -> Vec<String> {
    let named = handoff.record.iter().flat_map(|record| &record.items);
    let owner = handoff.successor_id.map(Who::Agent);
    let gone = named.filter(|id| tx.item(id).is_none_or(|item| item.claimed_by.is_none() || item.claimed_by != owner));
    let said = gone.map(|id| {
        // An item that is not in the working set is closed.
        let item = tx.item(id);
        let status = item.map_or("closed", |item| item.status.as_str());
        let owner = item.and_then(|item| item.claimed_by).map_or_else(String::new, |owner| format!(" by {owner}"));
        format!("Work item {id} is not yours: it is {status}{owner}")
    });
    said.collect()
}

/// The items that a handoff holds, whichever of its agents owns them now.
fn held(tx: &Tx<'_>, handoff: HandoffId) -> Vec<ItemId> {
    let Some(row) = tx.handoff(&handoff) else { return Vec::new() };
    let owners = row.former_successors.iter().copied().chain([row.agent_id]).chain(row.successor_id);
    let ids = owners.flat_map(|owner| tx.items_claimed_by(&owner));
    ids.filter(|id| tx.item(id).is_some_and(|item| item.held_by == Some(handoff))).collect()
}

/// The successor is ready to be primed: it becomes the owner of the handoff's items. They stay held until the handoff
/// is over, so that none is released if the successor dies before its briefing.
pub(crate) fn transfer(tx: &mut Tx<'_>, handoff: HandoffId) {
    let Some(successor) = tx.handoff(&handoff).and_then(|handoff| handoff.successor_id) else { return };
    let owner = Who::Agent(successor);
    for id in held(tx, handoff) {
        let item = tx.item(&id).filter(|item| item.claimed_by != Some(owner)).cloned();
        if let Some(mut item) = item {
            item.enter(&tx.now, Status::Claimed, Some(owner), Note::new(Action::CarriedOver, Who::Tasuki, None));
            items::put(tx, item);
        }
    }
}

/// The handoff is over: its items are not held any more. Gives back those whose owner has ended.
pub(crate) fn release(tx: &mut Tx<'_>, handoff: HandoffId) {
    let mut orphans = Vec::new();
    for id in held(tx, handoff) {
        let Some(item) = tx.item_mut(&id) else { continue };
        item.held_by = None;
        let item = item.clone();
        if item.claimed_by.and_then(Who::agent).is_none_or(|owner| has_ended(tx, &owner)) {
            orphans.push(item);
        }
    }
    let mut ready = give_back(tx, orphans);
    let row = tx.handoff(&handoff);
    let agents = row.map(|row| [Some(row.agent_id), row.successor_id]).into_iter().flatten().flatten();
    let ended: Vec<AgentId> = agents.filter(|id| has_ended(tx, id)).collect();
    ready.extend(ended.iter().flat_map(|id| people::left_by(tx, id)));
    people::to_people(tx, &ready);
}

fn has_ended(tx: &Tx<'_>, id: &AgentId) -> bool {
    tx.agent(id).is_none_or(|agent| !agent.state.is_live())
}
