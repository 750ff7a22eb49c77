//! Ends an agent that was started early as a successor and is not needed any more. Nothing was typed to it.

use super::{exit, start};
use crate::core::effect::{EffectKey, Started};
use crate::core::id::AgentId;
use crate::core::rows::agent::{AgentState, Owner, Start};
use crate::core::time::Deadline;
use crate::core::tx::Tx;

/// Kills the agent's pane. If its window is still being made, the pane is killed as soon as it is there. The agent's
/// end is then noticed in the usual way, but nobody is told of it.
pub(crate) fn end(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let deadline = Deadline::after(&tx.now, tx.state.settings.limits.starting_ms);
    let Some(agent) = tx.agent(agent_id).filter(|agent| agent.state.is_live()) else { return };
    let key = if agent.pane.is_some() {
        start::take(tx, agent_id);
        exit::kill_pane(tx, agent_id)
    } else {
        agent.start.as_ref().and_then(|start| start.effect)
    };
    match key {
        Some(key) => {
            // The row's start is kept as a marker. Its effect now kills the pane, or still makes the window. Its
            // deadline is the time within which the agent must end.
            if let Some(agent) = tx.agent_mut(agent_id) {
                agent.start = Some(Start::begun(Owner::Nobody, key, deadline));
            }
        }
        // It was never seen alive.
        None => exit::abandon_start(tx, agent_id),
    }
}

/// Whether the agent is a successor that is not needed any more.
pub(crate) fn is_unwanted(tx: &Tx<'_>, agent_id: &AgentId) -> bool {
    let start = tx.agent(agent_id).and_then(|agent| agent.start.as_ref());
    start.is_some_and(|start| start.owner == Owner::Nobody)
}

/// Takes the outcome of `Effect::Start`. If this returns a state, the caller must end the agent in that state.
#[must_use]
pub(crate) fn started(tx: &mut Tx<'_>, agent_id: &AgentId, key: EffectKey, started: Started) -> Option<AgentState> {
    let agent = tx.agent_mut(agent_id)?;
    agent.start.as_ref().filter(|start| start.effect == Some(key))?;
    match started {
        Started::Running { pane, process } => {
            agent.pane = Some(pane);
            agent.start_server = Some(pane.server);
            agent.process = process;
            end(tx, agent_id);
            None
        }
        Started::Died | Started::Failed { .. } => Some(AgentState::Ended),
        Started::Unknown { why } => {
            start::failed(tx, agent_id, "successor_failed", &why);
            Some(AgentState::Lost)
        }
        Started::NoTmux => {
            start::failed(tx, agent_id, "no_tmux", "no tmux server answers");
            Some(AgentState::Lost)
        }
    }
}
