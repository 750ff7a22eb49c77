//! Binds agents to a handoff, and releases them.

use crate::contract::NoticeCode;
use crate::core::effect::Effect;
use crate::core::id::{AgentId, HandoffId};
use crate::core::notice::OperatorNotice;
use crate::core::reply::Refused;
use crate::core::request::Successor;
use crate::core::rows::handoff::Step;
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
    if successor_id.is_some_and(|successor_id| is_in_another(tx, id, &successor_id)) {
        return Err(in_another());
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
    if is_in_another(tx, id, agent_id) {
        return Err(in_another());
    }
    if tx.agent(agent_id).is_some_and(|agent| agent.shutdown.is_some()) {
        return Err(Refused::new(409, "shutting_down", "The agent is being shut down"));
    }
    Ok(())
}

fn is_in_another(tx: &Tx<'_>, id: HandoffId, agent_id: &AgentId) -> bool {
    let is_other = |handoff: Option<HandoffId>| handoff.is_some_and(|other| other != id);
    tx.agent(agent_id).is_some_and(|agent| is_other(agent.handoff_id) || is_other(agent.recorded_in))
}

fn in_another() -> Refused {
    Refused::new(409, "handoff_in_progress", "Another handoff of this agent is in progress")
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
    if tx.agent(agent_id).is_none_or(|agent| agent.handoff_id != Some(id)) {
        return;
    }
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.handoff_id = None;
        agent.our_turn.take_if(|turn| turn.purpose.handoff() == Some(id));
    }
}

/// Removes the placeholder window, because the successor has its own window or the handoff has failed. The window may
/// exist even if the outcome of its effect never arrived, because a running effect cannot be undone.
pub(crate) fn drop_placeholder(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let tag = handoff.placeholder_tag();
    tx.effect(Waiter::Nobody, Effect::DropPlaceholder { tag });
}
