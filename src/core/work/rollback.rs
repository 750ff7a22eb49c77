//! Undoes a completion: withdraws the children that it made, and restores the item's output and owner as they were
//! before; the item is ready if the owner has ended. The comment, time and reason of an escalation stay.

use super::items::{self, find};
use super::people;
use crate::core::id::{ItemId, RequestId};
use crate::core::reply::Refused;
use crate::core::request::work::WorkRollbackRequest;
use crate::core::rows::item::{Action, Item, Note, Status, Who};
use crate::core::tx::Tx;

/// How many children a refusal lists.
const MOST_LISTED: usize = 20;

/// `work_rollback`.
pub(crate) fn asked(tx: &mut Tx<'_>, request: &RequestId, asked: &WorkRollbackRequest) {
    let checked = find(tx, &asked.item_id).cloned().and_then(|item| check(tx, &item).map(|()| item));
    match checked {
        Err(refused) => tx.refuse(request, refused),
        Ok(item) => {
            let id = item.item_id;
            let status = undo(tx, item, Who::Human, &asked.reason);
            tx.answer(request, items::stands(&id, status));
        }
    }
}

/// Whether the completion can be undone: the item is not claimed again and not withdrawn, and each child is ready and
/// without output or children of its own.
pub(crate) fn check(tx: &Tx<'_>, item: &Item) -> Result<(), Refused> {
    let completion = item.completion.as_ref().filter(|_| item.status != Status::Claimed);
    let Some(completion) = completion.filter(|_| item.status != Status::Withdrawn) else {
        let message = format!("There is no completion to undo: the item is {}", item.status.as_str());
        return Err(Refused::new(409, "not_done", message));
    };
    let taken: Vec<ItemId> = completion.children.iter().filter(|id| !is_free(tx, id)).copied().collect();
    if taken.is_empty() {
        return Ok(());
    }
    let mut listed: Vec<String> = taken.iter().take(MOST_LISTED).map(|id| describe(tx, id)).collect();
    if taken.len() > MOST_LISTED {
        listed.push(format!("and {} more", taken.len() - MOST_LISTED));
    }
    let message = format!("Some children of the item are already in use: {}", listed.join(", "));
    let faults = taken.iter().map(|id| crate::core::reply::Fault::new(id.to_string(), describe(tx, id))).collect();
    Err(Refused::new(409, "children_taken", message).hint("nothing was changed").faults(faults))
}

/// Whether an item is ready and nothing depends on it. An item that is not in the working set is closed.
fn is_free(tx: &Tx<'_>, id: &ItemId) -> bool {
    tx.item(id)
        .is_some_and(|child| child.status == Status::Ready && child.children.is_empty() && child.output.is_none())
}

fn describe(tx: &Tx<'_>, id: &ItemId) -> String {
    let child = tx.item(id);
    let owner = child.and_then(|child| child.claimed_by).map_or_else(String::new, |owner| format!(" by {owner}"));
    let status =
        child.map_or("done", |child| if child.status == Status::Ready { "in use" } else { child.status.as_str() });
    format!("{id} ({status}{owner})")
}

/// Undoes a completion for which [`check`] has passed. Returns the item's status.
pub(crate) fn undo(tx: &mut Tx<'_>, mut item: Item, by: Who, reason: &str) -> Status {
    let Some(completion) = item.completion.take() else { return item.status };
    for id in &completion.children {
        withdraw(tx, *id, by, reason);
    }
    item.children.retain(|id| !completion.children.contains(id));
    item.failed_children = completion.failed_before;
    item.watch = None;
    item.output = completion.output_before;
    (item.completed_at, item.completed_by) = completion.completed_before.unzip();
    let lives = match completion.owner {
        Who::Human => true,
        Who::Tasuki => false,
        Who::Agent(agent) => tx.agent(&agent).is_some_and(|agent| agent.state.is_live()),
    };
    let (status, owner) = if lives { (Status::Claimed, Some(completion.owner)) } else { (Status::Ready, None) };
    let id = item.item_id;
    let note = Note { children: completion.children, ..Note::new(Action::RolledBack, by, Some(reason.to_owned())) };
    item.enter(&tx.now, status, owner, note);
    items::put(tx, item);
    if status == Status::Ready {
        people::to_people(tx, &[id]);
    }
    status
}

fn withdraw(tx: &mut Tx<'_>, id: ItemId, by: Who, reason: &str) {
    let Some(mut child) = tx.item(&id).cloned() else { return };
    let note = Note::new(Action::Withdrawn, by, Some(reason.to_owned()));
    child.enter(&tx.now, Status::Withdrawn, None, note);
    items::put(tx, child);
}
