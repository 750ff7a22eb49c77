//! Agents of which nothing is known but what they say of themselves: no pane, no process. Nobody sees them end, so there
//! are only so many of them.

use super::agent::{Agent, AgentState};
use super::decision::Tx;
use super::id::AgentId;
use super::life;

/// The most of them that live at once.
pub(crate) const MOST: usize = 256;

/// Whether it is one; nothing waits for it, and nothing is on its way to it.
fn is_one(agent: &Agent) -> bool {
    let is_bare = agent.pane.is_none() && agent.process.is_none() && agent.start.is_none();
    is_bare && agent.state.is_live() && agent.handoff_id.is_none() && agent.queue.is_empty()
}

/// Before one more is registered: if there is no room, the one that came first is lost, those without a persona before
/// all others.
pub(crate) fn make_room(tx: &mut Tx<'_>) {
    let known: Vec<(bool, Option<String>, AgentId)> = tx
        .agent_ids()
        .into_iter()
        .filter_map(|id| tx.agent(&id).filter(|agent| is_one(agent)))
        .map(|agent| (agent.persona_slug.is_some(), agent.registered_at.clone(), agent.agent_id))
        .collect();
    if known.len() < MOST {
        return;
    }
    if let Some((.., first)) = known.into_iter().min() {
        life::end(tx, &first, AgentState::Lost);
    }
}
