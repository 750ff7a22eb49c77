//! The step that ends the outgoing agent: its place is kept, its exit command typed, its death awaited. And what the end of
//! either agent means to a handoff.

use super::{authors, end, flow, outcome, reading};
use crate::core::effect::Effect;
use crate::core::id::{AgentId, HandoffId};
use crate::core::request::Successor;
use crate::core::rows::agent::{AgentState, Purpose};
use crate::core::rows::handoff::Step;
use crate::core::tx::Tx;
use crate::core::typing;

/// Begins to end the outgoing agent: its place is kept first, for its end may destroy it.
pub(crate) fn begin(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let (agent_id, tag) = (handoff.agent_id, handoff.place_tag());
    let Some(agent) = tx.agent(&agent_id) else { return };
    match (agent.state, agent.pane) {
        (AgentState::Ended, _) => flow::enter(tx, id, Step::Starting),
        // Nothing can be typed any more: only the end of its process, or the limit, decides.
        (AgentState::Lost, _) | (_, None) => await_death(tx, id),
        // Only a new window needs a place.
        (_, Some(pane)) if handoff.successor == Successor::New => flow::run(tx, id, Effect::HoldPlace { pane, tag }),
        (_, Some(_)) => type_exit(tx, id),
    }
}

/// The outgoing agent's pane is gone: goes on when its process, where that is known, is dead.
pub(crate) fn await_death(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    let (agent_id, before) = (handoff.agent_id, handoff.effect.take());
    if let Some(key) = before {
        tx.drop_effect(key);
    }
    match tx.agent(&agent_id).and_then(|agent| agent.process) {
        Some(process) => flow::run(tx, id, Effect::AwaitDeath { process }),
        None => {
            if tx.agent(&agent_id).is_some_and(|agent| agent.state.is_live()) {
                outcome::warn(tx, id, "the outgoing agent has no pane and no process that is known: it was not ended");
            }
            flow::enter(tx, id, Step::Starting);
        }
    }
}

/// Types the exit command, or the one for a new session, or puts it off: another text is on its way, or the agent is in a turn.
pub(crate) fn type_exit(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let (agent_id, deadline) = (handoff.agent_id, handoff.deadline);
    let Some(agent) = tx.agent(&agent_id) else { return };
    if agent.typing.is_some() || agent.state.is_in_a_turn() {
        return flow::put_off(tx, id);
    }
    let purpose = match handoff.successor {
        Successor::SamePane => Purpose::NewSession(id),
        Successor::New | Successor::Existing { .. } => Purpose::Exit(Some(id)),
    };
    typing::begin_command(tx, &agent_id, purpose, deadline);
}

/// One of the two agents has ended or is lost.
pub(crate) fn agent_ended(tx: &mut Tx<'_>, id: HandoffId, agent_id: &AgentId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let is_outgoing = handoff.agent_id == *agent_id;
    let was_lost = tx.agent(agent_id).is_some_and(|agent| agent.state == AgentState::Lost);
    match handoff.step {
        // Whoever is not asked for the document need not live for it.
        Step::Waiting if is_outgoing && authors::needs_no_agent(handoff.author) => flow::enter(tx, id, Step::Recording),
        Step::Waiting | Step::Instructing | Step::Writing if is_outgoing => {
            if was_lost {
                let message = "The agent's pane is gone, and its end was not seen";
                end::fail(tx, id, "pane_gone", message, "hand it off with author salvage, or start anew");
            } else {
                agent_has_ended(tx, id);
            }
        }
        Step::Ending if is_outgoing && !was_lost => flow::enter(tx, id, Step::Starting),
        Step::Ending if is_outgoing => await_death(tx, id),
        Step::Starting if !is_outgoing && matches!(handoff.successor, Successor::Existing { .. }) => {
            outcome::successor_failed(tx, id, "successor_failed", "The successor has ended before it could take over");
        }
        step @ (Step::Priming | Step::Briefing | Step::Acknowledging) if !is_outgoing => {
            let what = if step == Step::Acknowledging { "it acknowledged" } else { "it was briefed" };
            let message = format!("The successor has ended before {what}");
            end::fail(tx, id, "agent_ended", message, outcome::ANOTHER);
        }
        Step::Reading if !is_outgoing => reading::ended(tx, id),
        // The other one's end is expected, or the step waits for neither.
        Step::Waiting
        | Step::Instructing
        | Step::Writing
        | Step::Recording
        | Step::Ending
        | Step::Starting
        | Step::Priming
        | Step::Briefing
        | Step::Reading
        | Step::Acknowledging
        | Step::Done
        | Step::Failed
        | Step::Cancelled => {}
    }
}

/// Before its document was recorded.
pub(super) fn agent_has_ended(tx: &mut Tx<'_>, id: HandoffId) {
    let hint = "if it wrote the document, a retry takes it; else hand the agent off with author salvage";
    end::fail(tx, id, "agent_ended", "The agent has ended before its document was recorded", hint);
}
