//! Decides which items an agent or the operator is notified of. An idle agent that has the role and no item is notified
//! of one item, the oldest of the most important ones. If it does not claim the item within that turn, the next agent
//! is notified. A person is notified if the rule names only `human`, and if no agent could process the item.

use super::items::plays;
use crate::contract::NoticeCode;
use crate::core::agent::typing::{self, Text};
use crate::core::fact::DeliveryResult;
use crate::core::id::{AgentId, ItemId};
use crate::core::notice::OperatorNotice;
use crate::core::pane::DeliveryVerdict;
use crate::core::prompts::WorkNotice;
use crate::core::rows::agent::{Agent, Purpose};
use crate::core::rows::item::{Item, NotifiedAgent, Status, Who};
use crate::core::text::{normalise, quotable};
use crate::core::time::Deadline;
use crate::core::tx::Tx;
use serde_json::json;

/// Notices in a row that an agent may leave without claiming anything: after that it is left alone until it claims.
const MOST_UNANSWERED: u32 = 8;
/// How often one agent's notice of one item is tried while nothing could be typed.
const MOST_TRIES: u8 = 5;
/// The pause after a notice that could not be typed, in milliseconds.
const PAUSE_MS: u64 = 60_000;
/// Most agents that are notified of one item before an agent claims it.
const MOST_TOLD: usize = 32;
/// Most characters of a description that a notice shows.
const MAX_SHOWN: usize = 4_000;
/// Most items that one notice to the operator names.
const MOST_NAMED: usize = 10;

/// Tells an agent of the next item, if it is free for it.
pub(crate) fn drain_queue(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let item = tx.agent(agent_id).filter(|agent| is_free_for_work(tx, agent)).and_then(|agent| next_for(tx, agent));
    let Some(item) = item else { return };
    let id = item.item_id;
    let text = Text { first_line: "A work item waits for you.".to_owned(), body: body(tx, item), allow_busy: false };
    if let Some(item) = tx.item_mut(&id) {
        item.offered_to = Some(*agent_id);
    }
    typing::begin(tx, agent_id, Purpose::Work(id), text, None);
}

/// Whether something has become ready, somebody is free again, or who plays which role has changed: agents may be told
/// that were not before.
pub(crate) fn is_news(tx: &Tx<'_>) -> bool {
    let waits = |item: &Item| item.status == Status::Ready && item.offered_to.is_none();
    let owner_before = |item: &Item| tx.state.items.get(&item.item_id).and_then(|before| before.claimed_by);
    let frees = |item: &Item| item.claimed_by.is_none() && owner_before(item).is_some();
    let answers = matches!(tx.out.server, Some(Some(_)));
    let is_news = tx.out.items.values().any(|item| waits(item) || frees(item));
    is_news || answers || tx.out.rules.is_some() || tx.out.roles.is_some()
}

fn is_free_for_work(tx: &Tx<'_>, agent: &Agent) -> bool {
    agent.is_free()
        && agent.pane.is_some()
        && agent.handoff_id.is_none()
        && agent.queue.is_empty()
        && agent.notices.not_before.is_none()
        && agent.notices.unanswered < MOST_UNANSWERED
        && tx.state.server.is_some()
        && tx.items_claimed_by(&agent.agent_id).is_empty()
}

/// The item that this agent is notified of next.
fn next_for<'t>(tx: &'t Tx<'_>, agent: &Agent) -> Option<&'t Item> {
    let slug = agent.persona_slug.as_ref()?;
    let rules = tx.rules();
    let roles = rules.roles_of(slug, tx.role_of(slug));
    let new = tx.out.items.values();
    let kinds: Vec<&str> = rules.types_for(&roles).collect();
    let old = kinds.iter().flat_map(|kind| {
        let mut turns = tx.state.items.waiting(kind).filter_map(|item| tx.item(&item.item_id));
        turns.find(|item| may_notify(item, agent))
    });
    let mut found: Vec<&Item> = old.chain(new.filter(|item| kinds.contains(&item.kind.as_str()))).collect();
    found.retain(|item| may_notify(item, agent));
    found.into_iter().min_by_key(|item| (std::cmp::Reverse(item.priority), item.order))
}

fn may_notify(item: &Item, agent: &Agent) -> bool {
    let id = agent.agent_id;
    let told = item.notified.iter().find(|told| told.agent_id == id);
    let is_news = told.is_none_or(|told| told.tries > 0 && told.tries < MOST_TRIES);
    item.status == Status::Ready
        && item.offered_to.is_none()
        && is_news
        && item.notified.len() < MOST_TOLD
        && !item.escalated_by.contains(&id)
}

fn body(tx: &Tx<'_>, item: &Item) -> String {
    let rule = tx.rules().types.get(&item.kind);
    let needs = rule.map(|rule| {
        let all = rule.all.iter().chain(&rule.non_empty).map(|pointer| pointer.trim_start_matches('/').to_owned());
        let any: Vec<&str> = rule.any.iter().map(|pointer| pointer.trim_start_matches('/')).collect();
        let any = Some(any.join(" or ")).filter(|text| !text.is_empty());
        all.chain(any).filter(|text| !text.is_empty()).collect::<Vec<_>>()
    });
    tx.state.settings.prompts.work(&WorkNotice {
        item_id: &item.item_id.to_string(),
        kind: &item.kind,
        priority: item.priority.as_str(),
        title: &line(&item.title),
        description: item.description.as_deref().map(|text| quotable(text, MAX_SHOWN)).as_deref(),
        needs: &needs.unwrap_or_default(),
        creates: rule.map_or(&[], |rule| rule.creates.as_slice()),
    })
}

pub(super) fn line(title: &str) -> String {
    normalise(&quotable(title, 200))
}

pub(crate) fn verdict(
    tx: &mut Tx<'_>,
    agent_id: &AgentId,
    id: ItemId,
    verdict: &DeliveryVerdict,
    result: &DeliveryResult,
) {
    let pause = Deadline::after(&tx.now, PAUSE_MS);
    let was_typed = !matches!(result, DeliveryResult::Refused(_));
    if !was_typed && let Some(agent) = tx.agent_mut(agent_id) {
        agent.notices.not_before = Some(pause);
    }
    if tx.item(&id).is_none_or(|item| item.offered_to != Some(*agent_id)) {
        return;
    }
    let Some(item) = tx.item_mut(&id) else { return };
    if !was_typed {
        item.offered_to = None;
    }
    let before = item.notified.iter().position(|told| told.agent_id == *agent_id).map(|at| item.notified.remove(at));
    let tries = if was_typed { 0 } else { before.map_or(0, |told| told.tries) + 1 };
    item.notified.push(NotifiedAgent {
        agent_id: *agent_id,
        at: verdict.at.clone(),
        verdict: Some(verdict.verdict),
        tries,
    });
}

/// The turn that answers a notice is over. If the agent has not claimed the item by now, the next agent is notified.
pub(crate) fn turn_over(tx: &mut Tx<'_>, agent_id: &AgentId, id: ItemId) {
    if tx.item(&id).is_none_or(|item| item.offered_to != Some(*agent_id)) {
        return;
    }
    let Some(item) = tx.item_mut(&id) else { return };
    item.offered_to = None;
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.notices.unanswered += 1;
    }
}

/// The pause after a notice that could not be typed is over.
pub(crate) fn is_due(tx: &mut Tx<'_>, agent_id: &AgentId) {
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.notices.not_before = None;
    }
}

pub(crate) fn claimed(tx: &mut Tx<'_>, who: Who) {
    let Some(id) = who.agent() else { return };
    // Only a row that is changed is written.
    let counts = tx.agent(&id).is_some_and(|agent| agent.notices.unanswered > 0);
    if counts && let Some(agent) = tx.agent_mut(&id) {
        agent.notices.unanswered = 0;
    }
}

/// After a completion: the operator is notified if the rule says so, and of the new items that wait for a person.
pub(crate) fn completed(tx: &mut Tx<'_>, id: ItemId, children: &[ItemId]) {
    let Some(item) = tx.item(&id) else { return };
    let asks = tx.rules().types.get(&item.kind).is_some_and(|rule| rule.ask_human);
    if asks {
        let details = json!({ "item_id": id, "status": item.status.as_str(), "children": children });
        let message = format!("Work item {} ({}) is completed: {}", id.short(), item.kind, line(&item.title));
        tx.notify_operator(OperatorNotice::new(NoticeCode::WorkCompleted, message).details(details));
    }
    to_people(tx, children);
}

/// Notifies the operator of ready items that no living agent could process.
pub(crate) fn to_people(tx: &mut Tx<'_>, ids: &[ItemId]) {
    let waits = |id: &&ItemId| tx.item(id).is_some_and(|item| item.status == Status::Ready && needs_a_person(tx, item));
    let waiting: Vec<ItemId> = ids.iter().filter(waits).copied().collect();
    if waiting.is_empty() {
        return;
    }
    let about = |id: &ItemId| tx.item(id).map(|item| format!("{} ({}): {}", id.short(), item.kind, line(&item.title)));
    let mut named: Vec<String> = waiting.iter().take(MOST_NAMED).filter_map(about).collect();
    if waiting.len() > MOST_NAMED {
        named.push(format!("and {} more", waiting.len() - MOST_NAMED));
    }
    let verb = if waiting.len() == 1 { "A work item waits" } else { "Work items wait" };
    let message = format!("{verb} for a person: {}", named.join("; "));
    let shown: Vec<&ItemId> = waiting.iter().take(1_000).collect();
    tx.notify_operator(OperatorNotice::new(NoticeCode::WorkWaiting, message).details(json!({ "item_ids": shown })));
}

fn needs_a_person(tx: &Tx<'_>, item: &Item) -> bool {
    let Some(rule) = tx.rules().types.get(&item.kind).filter(|rule| rule.allows_people()) else { return false };
    rule.is_human_only()
        || !tx
            .agent_ids()
            .iter()
            .any(|id| tx.agent(id).is_some_and(|agent| agent.state.is_live() && plays(tx, agent, rule)))
}

pub(crate) fn escalated(tx: &mut Tx<'_>, item: &Item, who: Who, reason: &str) {
    let id = item.item_id;
    let message =
        format!("Work item {} ({}) was escalated: {}: {}", id.short(), item.kind, line(&item.title), line(reason));
    let notice = OperatorNotice::new(NoticeCode::WorkEscalated, message);
    let details = json!({ "item_id": id, "reason": reason });
    tx.notify_operator(OperatorNotice { agent_id: who.agent(), ..notice.details(details) });
}
