//! The requests about a single item: create, claim, release, escalate, comment.

use super::items::{New, actor, closed, find, make, may_have, owned, put, room_for, room_under, rule, stands};
use super::judge::Judge;
use super::{notices, people, watch};
use crate::contract::JournalLine;
use crate::contract::reply::CommentReply;
use crate::core::id::RequestId;
use crate::core::reply::{Refused, Reply};
use crate::core::request::work::{
    WorkClaimRequest, WorkCommentRequest, WorkCreateRequest, WorkEscalateRequest, WorkReleaseRequest,
};
use crate::core::rows::item::{Action, Comment, Item, Note, NotifiedAgent, Status, Who};
use crate::core::tx::Tx;

/// An item with this many entries in its history can't be claimed. Apart from this check, only an import looks at the
/// history's length, so an item that was claimed can always be completed, released or escalated.
const MAX_HISTORY: usize = 2_000;
/// An item with this many comments takes no further one by request. An import may bring more, and tasuki itself adds
/// one at each escalation.
const MAX_COMMENTS: usize = 1_000;

/// `work_create`.
pub(crate) fn create(tx: &mut Tx<'_>, request: &RequestId, asked: WorkCreateRequest) {
    match create_check(tx, &asked) {
        Err(refused) => tx.refuse(request, refused),
        Ok((by, parent)) => {
            let inherited = parent.as_ref().map(|parent| parent.priority).unwrap_or_default();
            let new = New {
                kind: asked.kind,
                title: asked.title,
                description: asked.description,
                priority: asked.priority.unwrap_or(inherited),
                metadata: asked.metadata.unwrap_or_default(),
                parent_output: parent.as_ref().and_then(|parent| parent.output.clone()),
                by,
            };
            let id = make(tx, new, parent.as_ref());
            if let Some(parent) = parent.and_then(|parent| tx.item_mut(&parent.item_id)) {
                parent.children.push(id);
            }
            people::to_people(tx, &[id]);
            tx.answer(request, stands(&id, Status::Ready));
        }
    }
}

/// Checks the request, and returns the creator and the parent. An agent can create only children of an item that it has
/// claimed.
fn create_check(tx: &Tx<'_>, asked: &WorkCreateRequest) -> Result<(Who, Option<Item>), Refused> {
    let who = asked.agent_id.as_deref().map_or(Ok(Who::Human), |text| actor(tx, text))?;
    rule(tx, &asked.kind)?;
    room_for(tx, 1)?;
    let Some(parent) = &asked.parent_id else {
        let message = "An agent can create only children of an item that it has claimed";
        let refused = || Refused::new(403, "not_owner", message).field("parent_id");
        return if who == Who::Human { Ok((who, None)) } else { Err(refused()) };
    };
    let parent = find(tx, parent).map_err(|refused| refused.field("parent_id"))?;
    may_have(tx, parent, &asked.kind)?;
    if parent.status == Status::Withdrawn {
        return Err(Refused::new(409, "withdrawn", "The parent item was withdrawn").field("parent_id"));
    }
    if who != Who::Human {
        owned(parent, who).map_err(|refused| refused.field("parent_id"))?;
    }
    room_under(parent.children.len(), 1)?;
    Ok((who, Some(parent.clone())))
}

/// `work_claim`.
pub(crate) fn claim(tx: &mut Tx<'_>, request: &RequestId, asked: &WorkClaimRequest) {
    let checked = find(tx, &asked.item_id).cloned().and_then(|item| {
        let who = actor(tx, &asked.agent_id)?;
        claim_check(tx, &item, who).map(|is_new_claim| (item, who, is_new_claim))
    });
    match checked {
        Err(refused) => tx.refuse(request, refused),
        Ok((mut item, who, is_new_claim)) => {
            if is_new_claim {
                item.enter(&tx.now, Status::Claimed, Some(who), Note::new(Action::Claimed, who, None));
                let parent = item.parent_id;
                put(tx, item);
                watch::child_taken(tx, parent);
                notices::claimed(tx, who);
            }
            tx.answer(request, stands(&asked.item_id, Status::Claimed));
        }
    }
}

/// Checks that the item may be claimed. Returns false if the claimer has it already.
fn claim_check(tx: &Tx<'_>, item: &Item, who: Who) -> Result<bool, Refused> {
    let rule = rule(tx, &item.kind)?;
    match (item.status, item.claimed_by) {
        (Status::Claimed, Some(owner)) if owner == who => return Ok(false),
        (Status::Claimed, owner) => {
            let name = owner.map_or_else(String::new, |owner| format!(" by {owner}"));
            return Err(Refused::new(409, "already_claimed", format!("The item is already claimed{name}")));
        }
        (Status::Escalated, _) if who != Who::Human => {
            let message = "The item was escalated: only a person can continue it";
            return Err(Refused::new(409, "escalated", message).hint("work on something else"));
        }
        (Status::Done | Status::Withdrawn, _) => return Err(closed(item)),
        (Status::Ready | Status::Escalated, _) => {}
    }
    if item.history.len() >= MAX_HISTORY {
        let message = format!("The item was claimed and given back too often: it has {MAX_HISTORY} history entries");
        return Err(Refused::new(429, "too_many", message).hint("create a new item"));
    }
    if who.agent().is_some_and(|agent| item.escalated_by.contains(&agent)) {
        let message = "The agent has escalated this item, so the agent can't claim it again";
        return Err(
            Refused::new(403, "escalated_before", message).hint("leave the item to another agent or to a person")
        );
    }
    let fits = match who {
        Who::Human => item.escalated_at.is_some() || item.status == Status::Escalated || rule.allows_people(),
        Who::Tasuki => false,
        Who::Agent(agent) => tx.agent(&agent).is_some_and(|agent| Judge::now(tx).plays(agent, rule)),
    };
    if fits {
        return Ok(true);
    }
    let message = format!("Items of type {} are processed by {}", item.kind, rule.processed_by.join(" or "));
    Err(Refused::new(403, "wrong_role", message)
        .hint("a persona's role is set in its persona.toml or in data/rules.toml"))
}

/// `work_release`.
pub(crate) fn release(tx: &mut Tx<'_>, request: &RequestId, asked: &WorkReleaseRequest) {
    match find(tx, &asked.item_id).cloned().and_then(|item| release_check(tx, &item, asked).map(|who| (item, who))) {
        Err(refused) => tx.refuse(request, refused),
        Ok((item, who)) => {
            let id = item.item_id;
            give_back(tx, item, who, asked.reason.clone());
            // If the parent's rule says so, the release has undone the parent's completion, and so withdrawn the item.
            let status = tx.item(&id).map_or(Status::Ready, |item| item.status);
            tx.answer(request, stands(&asked.item_id, status));
        }
    }
}

fn release_check(tx: &Tx<'_>, item: &Item, asked: &WorkReleaseRequest) -> Result<Who, Refused> {
    let who = asked.agent_id.as_deref().map(|text| actor(tx, text)).transpose()?;
    match item.status {
        Status::Claimed => match (who, item.claimed_by) {
            (None | Some(Who::Human), _) => Ok(Who::Human),
            (Some(who), _) => owned(item, who).map(|()| who),
        },
        Status::Escalated if who == Some(Who::Human) => Ok(Who::Human),
        Status::Escalated => {
            let message = "The item was escalated: only a person can release it";
            Err(Refused::new(403, "not_owner", message).hint("a person releases it with \"agent_id\":\"human\""))
        }
        Status::Done | Status::Withdrawn => Err(closed(item)),
        Status::Ready => Err(Refused::new(409, "not_claimed", "Nobody has claimed the item")),
    }
}

/// Makes an item ready again. If the rule of its parent says so, that undoes the parent's completion; the operator may
/// be notified.
fn give_back(tx: &mut Tx<'_>, item: Item, who: Who, reason: Option<String>) {
    let (id, parent) = (item.item_id, item.parent_id);
    make_ready(tx, item, who, reason);
    watch::children_given_back(tx, parent, &[id], who);
    people::to_people(tx, &[id]);
}

/// Makes an item ready again. If its owner gives it back, that agent is not notified of it again.
pub(super) fn make_ready(tx: &mut Tx<'_>, mut item: Item, who: Who, reason: Option<String>) {
    let refuser = who.agent().filter(|_| item.claimed_by == Some(who));
    item.held_by = None;
    item.offered_to = None;
    item.notified.clear();
    item.enter(&tx.now, Status::Ready, None, Note::new(Action::Released, who, reason));
    item.notified.extend(refuser.map(|agent_id| NotifiedAgent {
        agent_id,
        at: tx.now.rfc3339(),
        verdict: None,
        tries: 0,
    }));
    put(tx, item);
}

/// `work_escalate`.
pub(crate) fn escalate(tx: &mut Tx<'_>, request: &RequestId, asked: &WorkEscalateRequest) {
    let checked = find(tx, &asked.item_id).cloned().and_then(|item| {
        let who = actor(tx, &asked.agent_id)?;
        owned(&item, who).map(|()| (item, who))
    });
    match checked {
        Err(refused) => tx.refuse(request, refused),
        Ok((mut item, who)) => {
            item.held_by = None;
            mark_escalated(tx, &mut item, who, &asked.reason);
            let note = Note::new(Action::Escalated, who, Some(asked.reason.clone()));
            item.enter(&tx.now, Status::Escalated, None, note);
            put(tx, item);
            tx.answer(request, stands(&asked.item_id, Status::Escalated));
        }
    }
}

/// Notes an escalation on the item, adds a comment, and notifies the operator. The caller sets the status.
pub(crate) fn mark_escalated(tx: &mut Tx<'_>, item: &mut Item, who: Who, reason: &str) {
    item.escalated_at = Some(tx.now.rfc3339());
    item.escalation_reason = Some(reason.to_owned());
    if let Some(agent) = who.agent().filter(|agent| !item.escalated_by.contains(agent)) {
        item.escalated_by.push(agent);
    }
    let comment = Comment {
        comment_id: tx.new_item_id().to_string(),
        at: tx.now.rfc3339(),
        author: who.to_string(),
        text: format!("**Escalated to human**: {reason}"),
        system: true,
    };
    item.comments.push(comment);
    people::escalated(tx, item, who, reason);
}

/// `work_comment`.
pub(crate) fn comment(tx: &mut Tx<'_>, request: &RequestId, asked: WorkCommentRequest) {
    let checked = find(tx, &asked.item_id).and_then(|item| match item.comments.len() {
        0..MAX_COMMENTS => Ok(item.item_id),
        _ => Err(Refused::new(429, "too_many", format!("An item may have at most {MAX_COMMENTS} comments"))),
    });
    match checked {
        Err(refused) => tx.refuse(request, refused),
        Ok(id) => {
            let comment_id = tx.new_item_id().to_string();
            let line = JournalLine::of_work(&id, "commented", &asked.author);
            let line = JournalLine { comment_id: Some(comment_id.clone()), ..line };
            let (at, author, text) = (tx.now.rfc3339(), asked.author, asked.text);
            let comment = Comment { comment_id: comment_id.clone(), at, author, text, system: false };
            if let Some(item) = tx.item_mut(&id) {
                item.comments.push(comment);
            }
            tx.journal(line);
            tx.answer(request, Reply::ok(&CommentReply { comment_id }));
        }
    }
}
