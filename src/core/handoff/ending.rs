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

/// Types the exit command, or first waits for the end of a turn that the agent is in.
pub(crate) fn type_exit(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let (agent_id, deadline) = (handoff.agent_id, handoff.deadline);
    let Some(agent) = tx.agent(&agent_id) else { return };
    let waits = agent.typing.is_some();
    let (state, pane, profile) = (agent.state, agent.pane, agent.profile.clone());
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.exit_waits = waits;
    }
    match (state, pane) {
        _ if waits => {}
        (AgentState::Busy | AgentState::Blocked, Some(pane)) => {
            flow::run(tx, id, Effect::AwaitIdle { agent_id, pane, profile });
        }
        _ => typing::begin_exit(tx, &agent_id, Some(id), deadline),
    }
}

/// In `ending`: types the exit command as soon as no other text is on its way. Called again whenever the agent changes.
pub(crate) fn exit_when_free(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let is_free = tx.agent(&handoff.agent_id).is_some_and(|agent| agent.typing.is_none());
    if handoff.step == Step::Ending && handoff.exit_waits && is_free {
        type_exit(tx, id);
    }
}
