//! Undoes a completion that leads nowhere: not all of its children are claimed in time, or an agent that claimed one
//! ends or gives it back. tasuki does this only if the rule says so, and only while none of the children is in use.

use super::{items, rollback};
use crate::contract::NoticeCode;
use crate::core::id::ItemId;
use crate::core::notice::OperatorNotice;
use crate::core::rows::item::{Item, RollbackWatch, Status, Who};
use crate::core::rules::{FailureRule, Rule};
use crate::core::time::Deadline;
use crate::core::tx::Tx;
use serde_json::json;

/// Begins to watch the children that a completion has made, if the rule says so.
pub(crate) fn begin(tx: &Tx<'_>, item: &mut Item) {
    let made = item.completion.as_ref().is_some_and(|completion| !completion.children.is_empty());
    let rule = tx.rules().types.get(&item.kind).filter(|rule| made && !rule.rollback_on.is_empty());
    item.watch = rule.map(|rule| RollbackWatch { deadline: deadline(tx, rule) });
}

/// By when somebody must have claimed every child, if the rule says so.
fn deadline(tx: &Tx<'_>, rule: &Rule) -> Option<Deadline> {
    let limit = rule.taken_within_ms.filter(|_| rule.rollback_on.contains(&FailureRule::TimedOut));
    limit.map(|limit| Deadline::after(&tx.now, limit))
}

/// Children were made in place of those that the completion could not make: somebody must claim them in time as well.
/// If they are the first that the completion has made, this begins to watch it.
pub(crate) fn children_added(tx: &mut Tx<'_>, mut item: Item, are_first: bool) {
    if are_first {
        begin(tx, &mut item);
    }
    let id = item.item_id;
    items::put(tx, item);
    wait_again(tx, Some(id));
}

/// Whether the item's completion has made this child. Others were created or imported under the item, and do not count.
fn has_made(item: &Item, child: &ItemId) -> bool {
    item.completion.as_ref().is_some_and(|completion| completion.children.contains(child))
}

/// The parent, if its completion is watched.
fn watched<'t>(tx: &'t Tx<'_>, parent: Option<ItemId>) -> Option<&'t Item> {
    parent.and_then(|id| tx.item(&id)).filter(|item| item.watch.is_some())
}

fn rule_of<'t>(tx: &'t Tx<'_>, item: &Item) -> Option<&'t Rule> {
    tx.rules().types.get(&item.kind)
}

fn waits(tx: &Tx<'_>, item: &Item) -> bool {
    let children = item.completion.iter().flat_map(|completion| &completion.children);
    children.filter_map(|id| tx.item(id)).any(|child| child.status == Status::Ready)
}

/// A child was claimed. Once no child waits, the deadline is removed. It begins again if a child is given back.
pub(crate) fn child_taken(tx: &mut Tx<'_>, parent: Option<ItemId>) {
    let Some(item) = watched(tx, parent) else { return };
    let (id, all_taken) = (item.item_id, !waits(tx, item));
    if all_taken && let Some(watch) = tx.item_mut(&id).and_then(|item| item.watch.as_mut()) {
        watch.deadline = None;
    }
}

/// A child that the completion has made was completed itself, with whatever next status: the parent's completion is not
/// undone by rule any more.
pub(crate) fn child_finished(tx: &mut Tx<'_>, parent: Option<ItemId>, child: &ItemId) {
    let Some(id) = watched(tx, parent).filter(|item| has_made(item, child)).map(|item| item.item_id) else { return };
    if let Some(item) = tx.item_mut(&id) {
        item.watch = None;
    }
}

/// Children of one parent are ready again. If the parent's completion is not undone because of that, somebody must
/// claim each child in time, as at first.
pub(crate) fn children_given_back(tx: &mut Tx<'_>, parent: Option<ItemId>, children: &[ItemId], by: Who) {
    let failure = match by {
        Who::Human => None,
        Who::Tasuki => Some(FailureRule::Gone),
        Who::Agent(_) => Some(FailureRule::Refused),
    };
    let made = |item: &&Item| children.iter().any(|child| has_made(item, child));
    let Some(item) = watched(tx, parent).filter(made).cloned() else { return };
    let undoes = |failure: &FailureRule| rule_of(tx, &item).is_some_and(|rule| rule.rollback_on.contains(failure));
    if let Some(failure) = failure.filter(undoes) {
        fail(tx, item, failure);
    }
    wait_again(tx, parent);
}

/// If a child waits and no deadline runs, begins a new one.
fn wait_again(tx: &mut Tx<'_>, parent: Option<ItemId>) {
    let Some(item) = watched(tx, parent).filter(|item| waits(tx, item)) else { return };
    let (id, deadline) = (item.item_id, rule_of(tx, item).and_then(|rule| deadline(tx, rule)));
    if let Some(watch) = tx.item_mut(&id).and_then(|item| item.watch.as_mut()) {
        watch.deadline = watch.deadline.or(deadline);
    }
}

pub(crate) fn due(tx: &mut Tx<'_>) {
    let now = tx.now;
    let due: Vec<ItemId> =
        tx.state.items.limits().filter(|(_, deadline)| deadline.is_due(&now)).map(|(id, _)| *id).collect();
    for id in due {
        if let Some(watch) = tx.item_mut(&id).and_then(|item| item.watch.as_mut()) {
            watch.deadline = None;
        }
        let item = tx.item(&id).filter(|item| waits(tx, item)).cloned();
        if let Some(item) = item {
            fail(tx, item, FailureRule::TimedOut);
        }
    }
}

fn fail(tx: &mut Tx<'_>, item: Item, failure: FailureRule) {
    let why = match failure {
        FailureRule::TimedOut => "not all of its children were claimed in time",
        FailureRule::Gone => "an agent that claimed one of its children has ended",
        FailureRule::Refused => "an agent that claimed one of its children has given it back",
    };
    let (id, title) = (item.item_id, crate::core::text::quotable(&item.title, 100));
    let (what, status) = match rollback::check(tx, &item) {
        Ok(()) => ("was undone", rollback::undo(tx, item, Who::Tasuki, why)),
        // A completion may leave its item ready for others.
        Err(_) if item.status == Status::Claimed => {
            ("can't be undone, because the item itself was claimed again", item.status)
        }
        Err(_) => ("can't be undone, because some of its children are in use", item.status),
    };
    let message = format!("The completion of work item {} ({title}) {what}: {why}", id.short());
    let details = json!({ "item_id": id, "status": status.as_str(), "reason": why });
    tx.notify_operator(OperatorNotice::new(NoticeCode::WorkRolledBack, message).details(details));
}
