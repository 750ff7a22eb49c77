//! Watches the screen of an agent whose turn somebody waits for: an interrupt or an API error may end it without any
//! event (`flow.md` rule 8). Where nobody waits, a long silence is worth one look, so that no view says `busy` for ever.

use super::effect::{Effect, EffectKey, Readiness};
use super::fact::Fact;
use super::id::{AgentId, HandoffId};
use super::rows::ack::Ack;
use super::rows::agent::{Agent, AgentState, Purpose};
use super::rows::handoff::Step;
use super::time::Deadline;
use super::tx::Tx;
use super::{priming, strangers};

/// After so long without an event of a turn for whose end nobody waits, its agent's screen is looked at, in milliseconds.
const UNHEARD_MS: u64 = 10 * 60_000;
/// A watch that ended without the end of the turn is begun again after such a pause, in milliseconds.
const LOOK_AGAIN_MS: u64 = 2_000;

/// Begins to watch, or stops, as things stand. Called whenever the agent has changed.
pub(crate) fn mind(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let look_again = agent.look_again.is_some();
    match (agent.probe, agent.pane.filter(|_| is_waited_for(tx, agent))) {
        (None, Some(_)) if look_again => {}
        (None, Some(pane)) => {
            let profile = agent.profile.clone();
            let key = tx.effect_of(agent_id, Effect::AwaitIdle { agent_id: *agent_id, pane, profile, brief: false });
            set(tx, agent_id, Some(key));
        }
        (Some(key), None) => {
            tx.drop_effect(key);
            set(tx, agent_id, None);
        }
        (None, None) if look_again => not_before(tx, agent_id, None),
        (None, None) | (Some(_), Some(_)) => {}
    }
    listen(tx, agent_id);
}

/// Begins to count the silence of an agent that is in a turn, or of which nothing is known but what it says; or stops. Each
/// event of its own begins it anew.
fn listen(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let is_stranger = strangers::is_one(agent);
    let fresh = Deadline::after(&tx.now, if is_stranger { strangers::SILENT_MS } else { UNHEARD_MS });
    // A dialog that was left by Esc is told of by nobody either.
    let is_unheard = is_stranger || (agent.state.is_in_a_turn() && agent.pane.is_some() && agent.probe.is_none());
    let counts = is_unheard && agent.glance.is_none() && agent.start.is_none() && agent.dying.is_none();
    if counts != agent.unheard.is_some()
        && let Some(agent) = tx.agent_mut(agent_id)
    {
        agent.unheard = counts.then_some(fresh);
    }
}

/// It is time to watch it again.
pub(crate) fn watch_again(tx: &mut Tx<'_>, agent_id: &AgentId) {
    not_before(tx, agent_id, None);
}

/// It was silent for long: its screen is looked at, once; what has no screen is lost, which is what is given.
#[must_use]
pub(crate) fn was_silent(tx: &mut Tx<'_>, agent_id: &AgentId) -> Option<AgentState> {
    let agent = tx.agent(agent_id)?;
    if strangers::is_one(agent) {
        return Some(AgentState::Lost);
    }
    let pane = agent.pane?;
    let profile = agent.profile.clone();
    let key = tx.effect_of(agent_id, Effect::AwaitIdle { agent_id: *agent_id, pane, profile, brief: true });
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.unheard = None;
        agent.glance = Some(key);
    }
    None
}

/// It was heard of, or is no more: the silence is over, and a look at it would tell what is old.
pub(crate) fn forget(tx: &mut Tx<'_>, agent_id: &AgentId) {
    if !tx.agent(agent_id).is_some_and(|agent| agent.unheard.is_some() || agent.glance.is_some()) {
        return;
    }
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    agent.unheard = None;
    if let Some(key) = agent.glance.take() {
        tx.drop_effect(key);
    }
}

/// Says when the screen is watched again at the earliest.
fn not_before(tx: &mut Tx<'_>, agent_id: &AgentId, due: Option<Deadline>) {
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.look_again = due;
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
    let seems_busy = agent.state.is_in_a_turn() || agent.state == AgentState::Starting;
    // A prompt of ours that was submitted into a running turn gets the next one, or was steered into that very turn: then
    // no further end is ever reported, and only the screen tells.
    let may_be_over = agent.state == AgentState::Idle && agent.our_turn.as_ref().is_some_and(|turn| turn.queued);
    if !(seems_busy || may_be_over) || agent.typing.is_some() || agent.start.is_some() || agent.dying.is_some() {
        return false;
    }
    // Without its profile nobody knows what its screen says.
    if !tx.state.settings.profiles.contains_key(&agent.profile) {
        return false;
    }
    let is_step = |id: &HandoffId, step| tx.handoff(id).is_some_and(|handoff| handoff.step == step);
    let answers_us = agent.our_turn.as_ref().is_some_and(|turn| match &turn.purpose {
        _ if turn.paused => false,
        Purpose::Instruction(_) | Purpose::Priming(_) => true,
        Purpose::Briefing(id) => is_step(id, Step::Reading),
        Purpose::Send(_) | Purpose::Work(_) | Purpose::Exit(_) | Purpose::NewSession(_) | Purpose::Message(..) => false,
    });
    let handoff = agent.handoff_id.and_then(|id| tx.handoff(&id));
    let holds_up = handoff.is_some_and(|handoff| {
        let is_told = handoff.step == Step::Acknowledging && handoff.ack.as_ref().is_some_and(Ack::has_waiting);
        let is_waiting = handoff.step == Step::Waiting && handoff.agent_id == agent.agent_id;
        handoff.stay.waits || is_waiting || (is_told && handoff.successor_id == Some(agent.agent_id))
    });
    may_be_over || answers_us || holds_up || !agent.queue.is_empty()
}

/// The watch has ended.
pub(crate) fn seen(tx: &mut Tx<'_>, agent_id: &AgentId, key: EffectKey, readiness: &Readiness) {
    let again = Deadline::after(&tx.now, LOOK_AGAIN_MS);
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    if agent.glance == Some(key) {
        agent.glance = None;
    } else if agent.probe == Some(key) {
        agent.probe = None;
        // No server, no pane, or a dialog that lies there still: the next look would end as soon.
        agent.look_again = Some(again).filter(|_| *readiness != Readiness::Ready);
    } else {
        return;
    }
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
    tx.learn(Fact::TurnOver { agent_id: *agent_id });
    infer_end(tx, agent_id, ours.as_ref().map(|turn| &turn.purpose));
}

/// Another session has begun in the agent's process: a turn or a dialog of the one before has ended with that. But a
/// prompt of ours may be answered on in the new session; whether its turn is over is seen on the screen, as always.
pub(crate) fn session_was_replaced(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let is_over = |agent: &Agent| agent.start.is_none() && agent.our_turn.is_none() && agent.state.is_in_a_turn();
    if tx.agent(agent_id).is_some_and(is_over) {
        is_idle(tx, agent_id);
    }
}

/// Our prompt's turn has ended without an event: it is taken for a Stop, and said to be inferred.
pub(crate) fn infer_end(tx: &mut Tx<'_>, agent_id: &AgentId, purpose: Option<&Purpose>) {
    let Some(purpose) = purpose else { return };
    tx.learn(Fact::TurnEnded { agent_id: *agent_id, purpose: purpose.clone(), event: None });
    if let Purpose::Priming(_) = purpose {
        priming::is_over(tx, agent_id, None);
    }
}

/// A dialog waits for a person. Within a handoff that is told at once.
pub(crate) fn blocked(tx: &mut Tx<'_>, agent_id: &AgentId, message: Option<&str>) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let was_blocked = agent.state == AgentState::Blocked;
    if agent.start.is_none() {
        tx.set_state(agent_id, AgentState::Blocked);
    }
    if !was_blocked {
        tx.learn(Fact::Blocked { agent_id: *agent_id, message: message.map(str::to_owned) });
    }
}
