//! Binds agents to a handoff, and releases them.

use crate::contract::NoticeCode;
use crate::core::effect::Effect;
use crate::core::id::{AgentId, HandoffId};
use crate::core::notice::OperatorNotice;
use crate::core::reply::Refused;
use crate::core::request::Successor;
use crate::core::rows::agent::Agent;
use crate::core::rows::handoff::{Handoff, Step};
use crate::core::rows::outbox::Waiter;
use crate::core::tx::Tx;
use crate::core::work;
use serde_json::json;

/// Prepares a failed handoff for another try: binds its agents again, and clears its error and the deadline of the step
/// `waiting`.
pub(crate) fn bind_agents_and_clear_error(tx: &mut Tx<'_>, id: HandoffId) -> Result<(), Refused> {
    bind_agents(tx, id)?;
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.error = None;
        handoff.wait_until = None;
    }
    Ok(())
}

/// Binds both agents to the handoff, so that their rows stay in memory, even if an agent has ended. Refuses if one of
/// them is in another handoff, or if the outgoing agent is being shut down.
pub(crate) fn bind_agents(tx: &mut Tx<'_>, id: HandoffId) -> Result<(), Refused> {
    let Some(handoff) = tx.handoff(&id) else { return Ok(()) };
    let (agent_id, successor_id) = (handoff.agent_id, handoff.successor_id);
    check_free(tx, id, &agent_id)?;
    if let Some(other) = successor_id.and_then(|successor_id| other_handoff(tx, id, &successor_id)) {
        return Err(in_another(tx, &other, "this handoff's successor"));
    }
    for agent_id in [Some(agent_id), successor_id].into_iter().flatten() {
        if let Some(agent) = tx.agent_mut(&agent_id) {
            agent.handoff_id = Some(id);
        }
    }
    Ok(())
}

/// Refuses if the outgoing agent is in another handoff, or is being shut down.
pub(crate) fn check_free(tx: &Tx<'_>, id: HandoffId, agent_id: &AgentId) -> Result<(), Refused> {
    if let Some(other) = other_handoff(tx, id, agent_id) {
        return Err(in_another(tx, &other, "this agent"));
    }
    if tx.agent(agent_id).is_some_and(|agent| agent.shutdown.is_some()) {
        return Err(Refused::new(409, "shutting_down", "The agent is being shut down"));
    }
    Ok(())
}

/// The other handoff that this agent is in, or that has recorded its document.
fn other_handoff(tx: &Tx<'_>, id: HandoffId, agent_id: &AgentId) -> Option<HandoffId> {
    let agent = tx.agent(agent_id)?;
    [agent.handoff_id, agent.recorded_in].into_iter().flatten().find(|other| *other != id)
}

/// The 409 answer if an agent of a handoff is in another one. An agent stays in the handoff that has recorded its
/// document, so that handoff may be over.
fn in_another(tx: &Tx<'_>, other: &HandoffId, whose: &str) -> Refused {
    let is_over = tx.handoff(other).is_none_or(|handoff| handoff.step.is_end());
    let what = if is_over { "has its document" } else { "is in progress" };
    Refused { message: format!("Another handoff of {whose} {what}"), ..in_progress(tx, other) }
}

/// The 409 answer if the agent is in this handoff already. The hint names the handoff and says what to do.
pub(super) fn in_progress(tx: &Tx<'_>, id: &HandoffId) -> Refused {
    let short = id.short();
    let step = tx.handoff(id).map_or("over", |handoff| handoff.step.as_str());
    let hint = match step {
        "failed" => format!("that handoff has failed: tasuki retry {short}, or tasuki abandon {short}"),
        "done" | "over" => {
            format!("the agent was handed off already: hand off its successor; see: tasuki handoffs show {short}")
        }
        _ => format!("that handoff is in step {step}; follow it with: tasuki handoffs follow {short}"),
    };
    Refused::new(409, "handoff_in_progress", "Handoff already in progress").hint(hint)
}

/// The handoff is over: releases both agents and the work items that it holds, and removes the store's copy of the
/// document; the file stays.
pub(crate) fn release(tx: &mut Tx<'_>, id: HandoffId) {
    release_agents(tx, id);
    if tx.handoff(&id).is_some_and(|handoff| handoff.record.is_some()) {
        tx.out.documents.insert(id, None);
    }
    work::transfer::release(tx, id);
    notify_in_place(tx, id);
}

/// Notifies the operator if the successor is, or was to be, a new session in the same pane, because old and new session
/// look alike there.
fn notify_in_place(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id).filter(|handoff| handoff.successor == Successor::SamePane) else { return };
    let is_done = handoff.step == Step::Done;
    let (code, message) = match is_done {
        true => (NoticeCode::SessionReplaced, "New session started with handoff context"),
        false => (NoticeCode::HandoffCancelled, "Handoff cancelled"),
    };
    let details = json!({ "successor_id": handoff.successor_id });
    tx.notify_operator(OperatorNotice::new(code, message).agent(handoff.agent_id).handoff(id).details(details));
}

pub(crate) fn release_agents(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    for agent_id in [Some(handoff.agent_id), handoff.successor_id].into_iter().flatten() {
        release_agent(tx, &agent_id, id);
    }
}

fn release_agent(tx: &mut Tx<'_>, agent_id: &AgentId, id: HandoffId) {
    if tx.agent(agent_id).is_none_or(|agent| !agent.is_held_in(&id)) {
        return;
    }
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.leave(&id);
        agent.our_turn.take_if(|turn| turn.purpose.handoff() == Some(id));
    }
}

/// The handoff has failed at this step and released its agents. A successor that it has started, and that can't have
/// got the document, remembers that. An agent that ran before has its own work.
pub(super) fn note_unbriefed(tx: &mut Tx<'_>, id: HandoffId, step: Step) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let is_unbriefed = matches!(step, Step::Starting | Step::Priming | Step::Briefing);
    if matches!(handoff.successor, Successor::Existing { .. }) || !is_unbriefed {
        return;
    }
    let successor = handoff.successor_id.and_then(|id| tx.agent_mut(&id));
    if let Some(agent) = successor.filter(|agent| !agent.chain.holds(&id)) {
        agent.unbriefed_in = Some(id);
    }
}

/// Removes the placeholder window, because the successor has its own window or the handoff has failed. The window may
/// exist even if the outcome of its effect never arrived, because a running effect cannot be undone.
pub(crate) fn drop_placeholder(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let tag = handoff.placeholder_tag();
    tx.effect(Waiter::Nobody, Effect::DropPlaceholder { tag });
}

/// The failed handoff that has started this agent as its successor, and whose document has not reached it. A handoff of
/// this agent, or one to it, would leave that document behind: all that it knows is its persona's skill.
pub(super) fn unbriefed_in<'t>(tx: &'t Tx<'_>, agent: &Agent) -> Option<&'t Handoff> {
    let id = tx.agent(&agent.previous_agent_id?)?.recorded_in?;
    let handoff = tx.handoff(&id)?;
    let is_its =
        handoff.successor_id == Some(agent.agent_id) && !matches!(handoff.successor, Successor::Existing { .. });
    (is_its && handoff.step == Step::Failed && !agent.chain.holds(&id)).then_some(handoff)
}

/// The refusal of a handoff of such a successor.
pub(super) fn is_unbriefed(handoff: &Handoff) -> Refused {
    let short = handoff.handoff_id.short();
    let message = format!("The agent has not got its predecessor's document: handoff {short} has failed before that");
    let hint = format!(
        "give the document to another successor: tasuki retry {short} --successor new (with --profile NAME for another \
         CLI); or close that handoff first: tasuki abandon {short}"
    );
    Refused::new(409, "handoff_in_progress", message).hint(hint)
}
