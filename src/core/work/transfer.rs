//! Items follow the life of their agent. When an agent ends, its items are released, unless its handoff has a record:
//! then the handoff reserves them until the successor has registered.

use super::{ask, items, notices};
use crate::core::id::{AgentId, HandoffId, ItemId};
use crate::core::rows::item::{Action, Note, Status, Who};
use crate::core::tx::Tx;

/// Most items that a briefing names one by one.
const MOST_NAMED: usize = 50;

/// The agent has ended or is lost.
pub(crate) fn agent_ended(tx: &mut Tx<'_>, agent_id: &AgentId) {
    for id in tx.items_offered_to(agent_id) {
        if let Some(item) = tx.item_mut(&id) {
            item.offered_to = None;
        }
    }
    for id in tx.items_claimed_by(agent_id) {
        let item = tx.item(&id).filter(|item| item.held_by.is_none()).cloned();
        if let Some(item) = item {
            ask::give_back(tx, item, Who::Tasuki, Some("its owner has ended".to_owned()));
        }
    }
}

/// The record is about to be committed: from now on the agent's end releases nothing.
pub(crate) fn reserve(tx: &mut Tx<'_>, handoff: HandoffId) {
    let Some(agent_id) = tx.handoff(&handoff).map(|handoff| handoff.agent_id) else { return };
    for id in tx.items_claimed_by(&agent_id) {
        let Some(mut item) = tx.item(&id).cloned() else { continue };
        item.held_by = Some(handoff);
        let (status, owner) = (item.status, item.claimed_by);
        item.enter(&tx.now, status, owner, Note::new(Action::Held, Who::Tasuki, None));
        items::put(tx, item);
    }
}

/// What the successor has to do: the handoff's tasks, and the items that it will have.
pub(crate) fn tasks(tx: &Tx<'_>, agent_id: &AgentId, asked: &[String]) -> Vec<String> {
    let mut tasks = asked.to_vec();
    let items = tx.items_claimed_by(agent_id);
    let named = items.iter().take(MOST_NAMED).filter_map(|id| tx.item(id));
    tasks.extend(named.map(|item| {
        let title = notices::line(&item.title);
        format!("Work item {} ({}), which is yours now: {title}", item.item_id, item.kind)
    }));
    if items.len() > MOST_NAMED {
        tasks.push(format!("And {} more work items: tasuki work list", items.len() - MOST_NAMED));
    }
    tasks
}

/// The items that a handoff reserves, whichever of its agents owns them now.
fn reserved(tx: &Tx<'_>, handoff: HandoffId) -> Vec<ItemId> {
    let Some(row) = tx.handoff(&handoff) else { return Vec::new() };
    let owners = row.former_successors.iter().copied().chain([row.agent_id]).chain(row.successor_id);
    let ids = owners.flat_map(|owner| tx.items_claimed_by(&owner));
    ids.filter(|id| tx.item(id).is_some_and(|item| item.held_by == Some(handoff))).collect()
}

/// The successor has registered and owns the handoff's items. They stay reserved until the handoff is over, so that a
/// successor that dies before its briefing loses nothing.
pub(crate) fn transfer(tx: &mut Tx<'_>, handoff: HandoffId) {
    let Some(successor) = tx.handoff(&handoff).and_then(|handoff| handoff.successor_id) else { return };
    let owner = Who::Agent(successor);
    for id in reserved(tx, handoff) {
        let item = tx.item(&id).filter(|item| item.claimed_by != Some(owner)).cloned();
        if let Some(mut item) = item {
            item.enter(&tx.now, Status::Claimed, Some(owner), Note::new(Action::CarriedOver, Who::Tasuki, None));
            items::put(tx, item);
        }
    }
}

/// The handoff is over: its agents' lives count again.
pub(crate) fn release(tx: &mut Tx<'_>, handoff: HandoffId) {
    for id in reserved(tx, handoff) {
        let Some(item) = tx.item_mut(&id) else { continue };
        item.held_by = None;
        let item = item.clone();
        let owner = item.claimed_by.and_then(Who::agent);
        if !owner.and_then(|id| tx.agent(&id)).is_some_and(|agent| agent.state.is_live()) {
            ask::give_back(tx, item, Who::Tasuki, Some("its owner has ended".to_owned()));
        }
    }
}
