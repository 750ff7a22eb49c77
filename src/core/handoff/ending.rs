//! The step that ends the outgoing agent: its place is kept, its exit command typed, its death awaited.

use super::{Step, flow};
use crate::core::agent::AgentState;
use crate::core::decision::Tx;
use crate::core::effect::Effect;
use crate::core::id::HandoffId;
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
        (_, Some(pane)) => flow::run(tx, id, Effect::HoldPlace { pane, tag }),
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
        None => flow::enter(tx, id, Step::Starting),
    }
}

/// Types the exit command, or puts it off: another text is on its way, or the agent is in a turn.
pub(crate) fn type_exit(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let (agent_id, deadline) = (handoff.agent_id, handoff.deadline);
    let Some(agent) = tx.agent(&agent_id) else { return };
    if agent.typing.is_some() || matches!(agent.state, AgentState::Busy | AgentState::Blocked) {
        return flow::put_off(tx, id);
    }
    typing::begin_exit(tx, &agent_id, Some(id), deadline);
}
