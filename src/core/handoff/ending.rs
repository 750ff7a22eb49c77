//! The step that ends the outgoing agent: its place is kept, its exit command typed, its death awaited.

use super::{flow, outcome};
use crate::core::effect::Effect;
use crate::core::id::HandoffId;
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
