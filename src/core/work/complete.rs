//! Completes an item. First tasuki checks the owner and the rule. Then one decision does everything: it gives the item
//! its output and next status, makes the children, writes the history and queues the notices. Also makes, on request,
//! the children that a partial completion could not make.

use super::ask;
use super::children::{self, CheckedChild};
use super::items::{self, New, find};
use super::{output, people, watch};
use crate::contract::reply::{ChildReply, ChildrenReply};
use crate::contract::work::FailedChildView;
use crate::core::id::{ItemId, RequestId};
use crate::core::reply::{Fault, Refused, Reply};
use crate::core::request::work::{ChildRequest, MAX_COPIED, NextStatus, WorkCompleteRequest, WorkRetryRequest, size};
use crate::core::rows::item::{Action, Completion, FailedChild, Item, Note, Status, Who};
use crate::core::rules::Rule;
use crate::core::tx::Tx;
use serde_json::{Value, json};

/// `work_complete`.
pub(crate) fn complete(tx: &mut Tx<'_>, request: &RequestId, asked: WorkCompleteRequest) {
    match check(tx, &asked) {
        Err(refused) => tx.refuse(request, refused),
        Ok((item, _, judged)) if asked.check => only_checked(tx, request, &item, judged),
        Ok((item, who, judged)) => {
            let next = next_status(tx, &item, asked.next_status);
            let made = carry_out(tx, item, who, Value::Object(asked.output), next, judged);
            answer(tx, request, &made);
        }
    }
}

/// Gives the answer that the completion would get, but lists no children: they were not made, so they have no ids.
fn only_checked(tx: &mut Tx<'_>, request: &RequestId, item: &Item, judged: Vec<CheckedChild>) {
    let bad = |CheckedChild { index, asked, child }| Some(FailedChild { index, asked, errors: child.err()? });
    let failed: Vec<FailedChild> = judged.into_iter().filter_map(bad).collect();
    let body = json!(ChildrenReply {
        item_id: item.item_id.to_string(),
        children: Vec::new(),
        failed: failed.iter().map(FailedChildView::from).collect(),
        checked: Some(true),
    });
    tx.answer(request, if failed.is_empty() { Reply::Ok(body) } else { Reply::Partial(body) });
}

/// The children that a completion has made, and those that it could not make.
struct Made {
    item_id: ItemId,
    children: Vec<ItemId>,
    failed: Vec<FailedChild>,
}

fn check(tx: &Tx<'_>, asked: &WorkCompleteRequest) -> Result<(Item, Who, Vec<CheckedChild>), Refused> {
    let item = find(tx, &asked.item_id)?;
    let who = items::actor(tx, &asked.agent_id)?;
    items::owned(item, who)?;
    let rule = items::rule(tx, &item.kind)?;
    let members: Vec<(usize, Value)> = asked.children.iter().cloned().enumerate().collect();
    let judged = children::judge(rule, &members);
    let mut faults = output::faults(rule, &Value::Object(asked.output.clone()));
    let bad_output = !faults.is_empty();
    if bad_output || !asked.partial {
        faults.extend(judged.iter().filter_map(|judged| judged.child.as_ref().err()).flatten().cloned());
    }
    if !faults.is_empty() {
        let code = if bad_output { "bad_output" } else { "bad_children" };
        return Err(refused(code, &item.kind, faults));
    }
    items::room_for(tx, judged.len())?;
    items::room_under(item.children.len(), judged.len())?;
    Ok((item.clone(), who, judged))
}

fn refused(code: &str, kind: &str, faults: Vec<Fault>) -> Refused {
    let what = if code == "bad_output" { "output" } else { "list of children" };
    let listed: Vec<String> = faults.iter().map(|fault| format!("{}: {}", fault.pointer, fault.message)).collect();
    let message = format!("The {what} breaks the rule for {kind}: {}", listed.join("; "));
    Refused::new(422, code, message)
        .hint("nothing was changed; fix what is listed, then complete the item again")
        .faults(faults)
}

fn next_status(tx: &Tx<'_>, item: &Item, asked: Option<NextStatus>) -> Status {
    match asked {
        Some(NextStatus::Done) => Status::Done,
        Some(NextStatus::Ready) => Status::Ready,
        Some(NextStatus::Escalated) => Status::Escalated,
        None => tx.rules().types.get(&item.kind).map_or(Status::Done, |rule| rule.next_status),
    }
}

/// Carries out a checked completion.
fn carry_out(
    tx: &mut Tx<'_>,
    mut item: Item,
    who: Who,
    output: Value,
    next: Status,
    judged: Vec<CheckedChild>,
) -> Made {
    let (timestamp, id) = (tx.now.rfc3339(), item.item_id);
    let completed_before = item.completed_at.take().zip(item.completed_by.take());
    let output_before = item.output.replace(output);
    let failed_before = std::mem::take(&mut item.failed_children);
    item.completed_at = Some(timestamp);
    item.completed_by = Some(who);
    item.held_by = None;
    let (children, failed) = make_children(tx, &item, who, judged);
    let made = children.clone();
    item.completion = Some(Completion { owner: who, children: made, output_before, completed_before, failed_before });
    item.children.extend(&children);
    item.failed_children.clone_from(&failed);
    let note = Note {
        output_summary: Some(summary(&item)),
        validation: Some(verdict(failed.len())),
        children: children.clone(),
        ..Note::new(Action::Completed, who, None)
    };
    if next == Status::Escalated {
        ask::mark_escalated(tx, &mut item, Who::Tasuki, "a person must check its completion");
    }
    item.enter(&tx.now, next, None, note);
    let parent = item.parent_id;
    watch::begin(tx, &mut item);
    items::put(tx, item);
    watch::child_finished(tx, parent, &id);
    people::completed(tx, id, &children);
    Made { item_id: id, children, failed }
}

fn summary(item: &Item) -> Vec<String> {
    item.output.as_ref().and_then(Value::as_object).map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
}

fn verdict(failed: usize) -> String {
    match failed {
        0 => "passed".to_owned(),
        1 => "passed; 1 child failed".to_owned(),
        many => format!("passed; {many} children failed"),
    }
}

/// Makes the children that have no fault. The caller adds them to their parent's list.
fn make_children(
    tx: &mut Tx<'_>,
    parent: &Item,
    who: Who,
    judged: Vec<CheckedChild>,
) -> (Vec<ItemId>, Vec<FailedChild>) {
    let (mut made, mut failed) = (Vec::new(), Vec::new());
    for CheckedChild { index, asked, child } in judged {
        match child {
            Ok(ChildRequest { kind, title, description, metadata }) => {
                let new = New {
                    kind,
                    title,
                    description,
                    priority: parent.priority,
                    metadata: metadata.unwrap_or_default(),
                    parent_output: parent.output.clone(),
                    by: who,
                };
                made.push(items::make(tx, new, Some(parent)));
            }
            Err(errors) => failed.push(FailedChild { index, asked, errors }),
        }
    }
    (made, failed)
}

fn answer(tx: &mut Tx<'_>, request: &RequestId, made: &Made) {
    let child = |id: &ItemId| {
        let item = tx.item(id);
        let (kind, title) = (item.map(|item| item.kind.clone()), item.map(|item| item.title.clone()));
        ChildReply { item_id: id.to_string(), r#type: kind, title }
    };
    let body = json!(ChildrenReply {
        item_id: made.item_id.to_string(),
        children: made.children.iter().map(child).collect(),
        failed: made.failed.iter().map(FailedChildView::from).collect(),
        checked: None,
    });
    let reply = if made.failed.is_empty() { Reply::Ok(body) } else { Reply::Partial(body) };
    tx.answer(request, reply);
}

impl From<&FailedChild> for FailedChildView {
    fn from(failed: &FailedChild) -> Self {
        FailedChildView {
            index: failed.index as u64,
            r#type: children::named(&failed.asked, "type"),
            title: children::named(&failed.asked, "title"),
            errors: failed.errors.clone(),
        }
    }
}

/// `work_retry_children`.
pub(crate) fn retry(tx: &mut Tx<'_>, request: &RequestId, asked: &WorkRetryRequest) {
    match retry_check(tx, asked) {
        Err(refused) => tx.refuse(request, refused),
        Ok((item, who, judged)) => {
            let made = make_later(tx, item, who, judged);
            answer(tx, request, &made);
        }
    }
}

fn retry_check(tx: &Tx<'_>, asked: &WorkRetryRequest) -> Result<(Item, Who, Vec<CheckedChild>), Refused> {
    let item = find(tx, &asked.item_id)?;
    let who = items::actor(tx, &asked.agent_id)?;
    let Some(completed_by) = item.completed_by.filter(|_| item.completion.is_some()) else {
        return Err(Refused::new(409, "not_done", "The item is not completed").hint("complete the item first"));
    };
    let predecessor = who.agent().and_then(|id| tx.agent(&id)).and_then(|agent| agent.previous_agent_id);
    let may = who == Who::Human || who == completed_by || predecessor.map(Who::Agent) == Some(completed_by);
    if !may {
        let message = format!("The item was completed by {completed_by}, not by {who}");
        return Err(Refused::new(403, "not_owner", message));
    }
    if item.failed_children.is_empty() {
        return Err(Refused::new(409, "nothing_failed", "No child of this item has failed"));
    }
    if asked.children.as_ref().is_some_and(Vec::is_empty) {
        let hint = "leave children out to make the failed ones again as they were";
        return Err(Refused::new(400, "bad_children", "No child is named").hint(hint));
    }
    let rule: &Rule = items::rule(tx, &item.kind)?;
    let members: Vec<(usize, Value)> = match &asked.children {
        Some(children) => children.iter().cloned().enumerate().collect(),
        None => item.failed_children.iter().map(|failed| (failed.index, failed.asked.clone())).collect(),
    };
    let judged = children::judge(rule, &members);
    let faults: Vec<Fault> =
        judged.iter().filter_map(|judged| judged.child.as_ref().err()).flatten().cloned().collect();
    if !faults.is_empty() && !asked.partial {
        let hint = format!(
            "nothing was changed; correct the children, then: tasuki work retry-children {} --children FILE",
            item.item_id
        );
        return Err(refused("bad_children", &item.kind, faults).hint(hint));
    }
    let copied = item.output.as_ref().map_or(0, size).saturating_mul(judged.len());
    if copied > MAX_COPIED {
        return Err(Refused::new(
            413,
            "too_large",
            "The item's output is too large to be copied into so many children",
        ));
    }
    items::room_for(tx, judged.len())?;
    items::room_under(item.children.len(), judged.len())?;
    Ok((item.clone(), who, judged))
}

fn make_later(tx: &mut Tx<'_>, mut item: Item, who: Who, judged: Vec<CheckedChild>) -> Made {
    let (children, failed) = make_children(tx, &item, who, judged);
    item.children.extend(&children);
    let are_first = item.completion.as_ref().is_some_and(|completion| completion.children.is_empty());
    if let Some(completion) = &mut item.completion {
        completion.children.extend(&children);
    }
    item.failed_children.clone_from(&failed);
    let id = item.item_id;
    let (status, owner) = (item.status, item.claimed_by);
    let note = Note {
        validation: Some(verdict(failed.len())),
        children: children.clone(),
        ..Note::new(Action::ChildrenCreated, who, None)
    };
    item.enter(&tx.now, status, owner, note);
    watch::children_added(tx, item, are_first);
    people::to_people(tx, &children);
    Made { item_id: id, children, failed }
}
