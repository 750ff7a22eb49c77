//! Watches the screen of an agent whose turn somebody waits for: an interrupt or an API error may end it without any
//! event (`flow.md` rule 8).

use super::agent::{Agent, AgentState, Purpose};
use super::decision::Tx;
use super::effect::{Effect, EffectKey, Readiness};
use super::handoff::{self, Step};
use super::id::AgentId;
use super::priming;

/// Begins to watch, or stops, as things stand. Called whenever the agent has changed.
pub(crate) fn mind(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id) else { return };
    match (agent.probe, agent.pane.filter(|_| is_waited_for(tx, agent))) {
        (None, Some(pane)) => {
            let profile = agent.profile.clone();
            let key = tx.effect(Effect::AwaitIdle { agent_id: *agent_id, pane, profile });
            set(tx, agent_id, Some(key));
        }
        (Some(key), None) => {
            tx.drop_effect(key);
            set(tx, agent_id, None);
        }
        (None, None) | (Some(_), Some(_)) => {}
    }
}

fn set(tx: &mut Tx<'_>, agent_id: &AgentId, probe: Option<EffectKey>) {
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.probe = probe;
    }
}

/// Whether anybody waits for the end of a turn that this agent seems to be in.
fn is_waited_for(tx: &Tx<'_>, agent: &Agent) -> bool {
    // An agent whose start was given up may have become ready since.
    let seems_busy = matches!(agent.state, AgentState::Busy | AgentState::Blocked | AgentState::Starting);
    if !seems_busy || agent.typing.is_some() || agent.start.is_some() || agent.dying.is_some() {
        return false;
    }
    let answers_us = agent
        .our_turn
        .as_ref()
        .is_some_and(|turn| !turn.paused && matches!(turn.purpose, Purpose::Instruction(_) | Purpose::Priming(_)));
    let handoff = agent.handoff_id.and_then(|id| tx.handoff(&id));
    let holds_up = handoff
        .is_some_and(|handoff| handoff.waits || (handoff.step == Step::Waiting && handoff.agent_id == agent.agent_id));
    answers_us || holds_up || !agent.queue.is_empty()
}

/// The watch has ended.
pub(crate) fn seen(tx: &mut Tx<'_>, agent_id: &AgentId, key: EffectKey, readiness: &Readiness) {
    let Some(agent) = tx.agent_mut(agent_id).filter(|agent| agent.probe == Some(key)) else { return };
    agent.probe = None;
    match readiness {
        Readiness::Ready => is_idle(tx, agent_id),
        Readiness::Blocked { .. } => blocked(tx, agent_id, None),
        Readiness::NotReady { .. } | Readiness::Gone { .. } => {}
    }
}

/// The screen has been idle for a while: the turn is over, although no event said so.
fn is_idle(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    agent.open_turn = None;
    let ours = agent.our_turn.take();
    tx.set_state(agent_id, AgentState::Idle);
    infer_end(tx, agent_id, ours.as_ref().map(|turn| &turn.purpose));
}

/// Our prompt's turn has ended without an event: it is taken for a Stop, and said to be inferred.
pub(crate) fn infer_end(tx: &mut Tx<'_>, agent_id: &AgentId, purpose: Option<&Purpose>) {
    match purpose {
        Some(Purpose::Instruction(id)) => handoff::outcome::turn_inferred(tx, *id),
        Some(Purpose::Priming(handoff)) => {
            if let Some(id) = handoff {
                handoff::outcome::warn(tx, *id, "stop_inferred");
            }
            priming::is_over(tx, agent_id, None);
        }
        Some(Purpose::Briefing(_) | Purpose::Send(_) | Purpose::Exit(_) | Purpose::NewSession(_)) | None => {}
    }
}

/// A dialog waits for a person. Within a handoff that is told at once.
pub(crate) fn blocked(tx: &mut Tx<'_>, agent_id: &AgentId, message: Option<&str>) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let was_blocked = agent.state == AgentState::Blocked;
    let handoff = agent.handoff_id.and_then(|id| tx.handoff(&id)).cloned();
    if agent.start.is_none() {
        tx.set_state(agent_id, AgentState::Blocked);
    }
    if let Some(handoff) = handoff.filter(|_| !was_blocked) {
        handoff::outcome::blocked(tx, &handoff, agent_id, message);
    }
}
