//! Decides which items an agent is notified of. An idle agent that has the role and no item is notified of one item,
//! the oldest of the most important ones. If it does not claim the item within the turn that answers the notice, the
//! next agent is notified. An agent whose completion was undone is notified that it has the item again.

use super::items::line;
use super::judge::Judge;
use crate::contract::LimitKind;
use crate::core::agent::context_usage;
use crate::core::agent::typing::{self, Text};
use crate::core::fact::DeliveryResult;
use crate::core::hook::{HookEvent, HookKind};
use crate::core::id::{AgentId, ItemId};
use crate::core::pane::{DeliveryVerdict, Refusal};
use crate::core::prompts::WorkNotice;
use crate::core::rows::agent::{Agent, Limited, LookCause, Purpose};
use crate::core::rows::item::{Action, Item, NotifiedAgent, Status, Who};
use crate::core::text::quotable;
use crate::core::time::Deadline;
use crate::core::tx::Tx;

/// How many notices in a row an agent gets without claiming anything. After that it gets none until it claims an item.
const MOST_UNANSWERED: u32 = 8;
/// How often the notice of one item is tried with one agent before tasuki gives up. Only a refusal for a reason that
/// can't pass while the agent lives makes tasuki give up; refusals for other reasons never raise the count above this
/// number minus one.
const MOST_TRIES: u8 = 5;
/// The pause after a notice that could not be typed, or whose turn failed, in milliseconds.
const PAUSE_MS: u64 = 60_000;
/// After so many failed notices of an agent in a row, the pause is [`LONG_PAUSE_MS`] instead of [`PAUSE_MS`].
const MOST_SOON: u32 = 5;
/// The long pause, in milliseconds.
const LONG_PAUSE_MS: u64 = 600_000;
/// A limit counts as ended this long after the time that the CLI has named for its end, in milliseconds: clocks differ,
/// and a CLI may continue by itself.
const AFTER_LIMIT_MS: u64 = 180_000;
/// How many agents are notified of one item before an agent claims it.
const MOST_TOLD: usize = 32;
/// How many characters of a description a notice shows.
const MAX_SHOWN: usize = 4_000;

/// Tells an agent of the next item, if the agent is free and no other text waits to be typed to it.
pub(crate) fn offer_next(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id).filter(|agent| is_free_for_work(tx, agent)) else { return };
    let Some(id) = next_for(tx, agent).map(|item| item.item_id) else { return };
    if agent.limits.limited.is_some() && !limit_has_ended(tx, agent_id) {
        return;
    }
    let Some(item) = tx.item(&id) else { return };
    let first_line =
        if is_undone(item) { "Your completion of a work item was undone." } else { "A work item waits for you." };
    let text = Text { first_line: first_line.to_owned(), body: body(tx, item), allow_busy: false };
    if let Some(item) = tx.item_mut(&id) {
        item.offered_to = Some(*agent_id);
    }
    typing::begin(tx, agent_id, Purpose::Work(id), text, None);
}

/// Whether agents that this decision has not touched may be told of an item now: an item has become ready, its owner
/// has finished it or given it up, its completion was undone, tmux answers again, or rules or roles have changed.
pub(crate) fn is_news(tx: &Tx<'_>) -> bool {
    let waits = |item: &Item| item.status == Status::Ready && item.offered_to.is_none();
    let owner_before = |item: &Item| tx.state.items.get(&item.item_id).and_then(|before| before.claimed_by);
    let frees = |item: &Item| item.claimed_by.is_none() && owner_before(item).is_some();
    let answers = matches!(tx.out.server, Some(Some(_)));
    let somebody_was_told = |item: &Item| item.offered_to.is_some() || !item.notified.is_empty();
    let comes_back = |item: &Item| is_undone(item) && !somebody_was_told(item);
    let is_news = tx.out.items.values().any(|item| waits(item) || frees(item) || comes_back(item));
    is_news || answers || tx.out.rules.is_some() || tx.out.roles.is_some()
}

fn is_free_for_work(tx: &Tx<'_>, agent: &Agent) -> bool {
    let connected = tx.out.server.unwrap_or(tx.state.server);
    agent.is_free()
        && agent.pane.map(|pane| pane.server).is_some_and(|server| Some(server) == connected)
        && agent.handoff_id.is_none()
        // A document that is recorded would not tell of the new work; a successor first gets its document.
        && agent.recorded_in.is_none()
        && agent.unbriefed_in.is_none()
        && agent.queue.is_empty()
        // If an automatic handoff may begin, that is decided first: the item may be told to another agent.
        && !context_usage::may_hand_off(tx, agent)
        && agent.notices.not_before.is_none()
        // After a limit, the agent is first told to continue.
        && agent.limits.resume_at.is_none()
        && (agent.limits.looking.is_none() || agent.limits.cause == LookCause::Sign)
}

/// Whether the limit of a free agent's CLI has ended, judged by the time that the CLI has named. If it has not ended,
/// tasuki looks again after a pause. If the CLI has named no time, an overload counts as ended after the long pause; of
/// any other limit, only a successful turn shows that it has ended.
fn limit_has_ended(tx: &mut Tx<'_>, agent_id: &AgentId) -> bool {
    let now = tx.now;
    let limited = tx.agent(agent_id).and_then(|agent| agent.limits.limited.as_ref());
    // A service that is overloaded recovers by itself, and names no time.
    let recovers_ms = |limited: &Limited| {
        let is_overloaded = limited.kind == LimitKind::Overloaded;
        is_overloaded.then_some(limited.since_ms.saturating_add_unsigned(LONG_PAUSE_MS))
    };
    let named_ms = |limited: &Limited| Some(limited.until_ms?.saturating_add_unsigned(AFTER_LIMIT_MS));
    let until_ms = limited.and_then(|limited| named_ms(limited).or_else(|| recovers_ms(limited)));
    let Some(until_ms) = until_ms else { return false };
    let left = u64::try_from(until_ms.saturating_sub(now.wall_ms)).unwrap_or(0);
    if left > 0
        && let Some(agent) = tx.agent_mut(agent_id)
    {
        // The limit may end earlier than the CLI has said, so the pause is never longer than the long pause.
        agent.notices.not_before = Some(Deadline::after(&now, left.min(LONG_PAUSE_MS)));
    }
    left == 0
}

/// The item that this agent is notified of next.
fn next_for<'t>(tx: &'t Tx<'_>, agent: &Agent) -> Option<&'t Item> {
    let own = tx.items_claimed_by(&agent.agent_id);
    if !own.is_empty() {
        let own = own.iter().filter_map(|id| tx.item(id));
        return own.into_iter().find(|item| is_undone(item) && may_be_told(item, &agent.agent_id));
    }
    if agent.notices.unanswered >= MOST_UNANSWERED {
        return None;
    }
    let judge = Judge::now(tx);
    let new = tx.out.items.values();
    let kinds: Vec<&str> = judge.rules.types_for(&judge.roles_of(agent)).collect();
    let old = kinds.iter().flat_map(|kind| {
        let mut waiting = tx.state.items.waiting(kind).filter_map(|item| tx.item(&item.item_id));
        waiting.find(|item| may_notify(item, agent))
    });
    let mut found: Vec<&Item> = old.chain(new.filter(|item| kinds.contains(&item.kind.as_str()))).collect();
    found.retain(|item| may_notify(item, agent));
    found.into_iter().min_by_key(|item| (std::cmp::Reverse(item.priority), item.order))
}

fn may_notify(item: &Item, agent: &Agent) -> bool {
    item.status == Status::Ready
        && may_be_told(item, &agent.agent_id)
        && (item.notified.len() < MOST_TOLD || item.notified.iter().any(|told| told.agent_id == agent.agent_id))
        && !item.escalated_by.contains(&agent.agent_id)
}

/// Whether no agent is being told of the item, and this agent may be told of it: it has had no notice of the item, has
/// not given the item back, and the typing of the notice has not failed too often.
fn may_be_told(item: &Item, id: &AgentId) -> bool {
    let told = item.notified.iter().find(|told| told.agent_id == *id);
    item.offered_to.is_none() && told.is_none_or(|told| told.tries > 0 && told.tries < MOST_TRIES)
}

/// Whether the item's completion was undone, and its owner has done nothing with the item since.
fn is_undone(item: &Item) -> bool {
    item.status == Status::Claimed && item.history.last().is_some_and(|entry| entry.action == Action::RolledBack)
}

fn body(tx: &Tx<'_>, item: &Item) -> String {
    let rule = tx.rules().types.get(&item.kind);
    let needs = rule.map(|rule| {
        let all = rule.all.iter().chain(&rule.non_empty).map(|pointer| pointer.trim_start_matches('/').to_owned());
        let any: Vec<&str> = rule.any.iter().map(|pointer| pointer.trim_start_matches('/')).collect();
        let any = Some(any.join(" or ")).filter(|text| !text.is_empty());
        all.chain(any).filter(|text| !text.is_empty()).collect::<Vec<_>>()
    });
    let undone = item.history.last().filter(|_| is_undone(item));
    let undone = undone.map(|entry| quotable(entry.reason.as_deref().unwrap_or("no reason was given"), MAX_SHOWN));
    tx.state.settings.prompts.work(&WorkNotice {
        item_id: &item.item_id.to_string(),
        kind: &item.kind,
        priority: item.priority.as_str(),
        title: &line(&item.title),
        description: item.description.as_deref().map(|text| quotable(text, MAX_SHOWN)).as_deref(),
        needs: &needs.unwrap_or_default(),
        creates: rule.map_or(&[], |rule| rule.creates.as_slice()),
        undone: undone.as_deref(),
    })
}

pub(crate) fn verdict(
    tx: &mut Tx<'_>,
    agent_id: &AgentId,
    id: ItemId,
    verdict: &DeliveryVerdict,
    result: &DeliveryResult,
) {
    let refusal = if let DeliveryResult::Refused(reason) = result { Some(*reason) } else { None };
    if refusal.is_some() {
        pause(tx, agent_id);
    }
    if tx.item(&id).is_none_or(|item| item.offered_to != Some(*agent_id)) {
        return;
    }
    let our_turn = tx.agent(agent_id).and_then(|agent| agent.our_turn.as_ref());
    // The end of the turn that answers the notice frees the item for the next agent. Without such a turn, it is freed
    // now.
    let has_turn = our_turn.is_some_and(|turn| turn.purpose == Purpose::Work(id));
    let Some(item) = tx.item_mut(&id) else { return };
    if !has_turn {
        item.offered_to = None;
    }
    // An agent that reports nothing would otherwise get the notices of all items, one after the other.
    let is_unanswered = !has_turn && refusal.is_none() && item.status == Status::Ready;
    let before = item.notified.iter().position(|told| told.agent_id == *agent_id).map(|at| item.notified.remove(at));
    let failed = before.map_or(0, |told| told.tries).saturating_add(1);
    // A notice that may have arrived is never typed again.
    let tries = refusal.map_or(0, |reason| if lasts(reason) { failed } else { failed.min(MOST_TRIES - 1) });
    item.notified.push(NotifiedAgent {
        agent_id: *agent_id,
        at: verdict.at.clone(),
        verdict: Some(verdict.verdict),
        tries,
    });
    if is_unanswered && let Some(agent) = tx.agent_mut(agent_id) {
        agent.notices.unanswered += 1;
    }
}

/// Whether the reason why nothing was typed lasts as long as the agent. Any other reason may pass at any time: a person
/// may send their draft after an hour.
fn lasts(reason: Refusal) -> bool {
    matches!(
        reason,
        Refusal::PaneGone
            | Refusal::PaneChanged
            | Refusal::PaneDead
            | Refusal::PaneClaimed
            | Refusal::AgentEnded
            | Refusal::BadText
    )
}

/// A notice could not be typed, or its turn has failed: the agent gets no other notice for a while.
fn pause(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let now = tx.now;
    let Some(agent) = tx.agent_mut(agent_id).filter(|agent| agent.state.is_live()) else { return };
    agent.notices.failed = agent.notices.failed.saturating_add(1);
    let pause_ms = if agent.notices.failed <= MOST_SOON { PAUSE_MS } else { LONG_PAUSE_MS };
    agent.notices.not_before = Some(Deadline::after(&now, pause_ms));
}

/// The turn that answers a notice is over; `event` says how, if one came. If the agent has not claimed the item by now,
/// the next agent is notified. A turn that has failed or was interrupted answers nothing: the agent is notified again.
pub(crate) fn turn_over(tx: &mut Tx<'_>, agent_id: &AgentId, id: ItemId, event: Option<&HookEvent>) {
    if tx.item(&id).is_none_or(|item| item.offered_to != Some(*agent_id)) {
        return;
    }
    let has_failed = event.is_some_and(|event| matches!(event.kind, HookKind::StopFailure | HookKind::Interrupted));
    let Some(item) = tx.item_mut(&id) else { return };
    item.offered_to = None;
    if has_failed {
        item.notified.retain(|told| told.agent_id != *agent_id);
        return pause(tx, agent_id);
    }
    let is_unclaimed = item.status == Status::Ready;
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.notices.failed = 0;
        agent.notices.unanswered += u32::from(is_unclaimed);
    }
}

/// The pause before the agent's next notice is over.
pub(crate) fn end_pause(tx: &mut Tx<'_>, agent_id: &AgentId) {
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.notices.not_before = None;
    }
}

pub(crate) fn claimed(tx: &mut Tx<'_>, who: Who) {
    let Some(id) = who.agent() else { return };
    // `agent_mut` would write the row even without a change.
    let counts = tx.agent(&id).is_some_and(|agent| agent.notices.unanswered > 0 || agent.notices.failed > 0);
    if counts && let Some(agent) = tx.agent_mut(&id) {
        (agent.notices.unanswered, agent.notices.failed) = (0, 0);
    }
}
