//! Agents of which nothing is known but what they say of themselves: no pane, no process. Nobody sees them end, so there
//! are only so many of them, and one that has said nothing for long is lost. Where a hook names the processes above it,
//! the CLI is found among them, and watched like any other.

use super::hook::HookEvent;
use super::id::AgentId;
use super::pane::Process;
use super::rows::agent::Agent;
use super::tx::Tx;

/// The most of them that live at once.
pub(crate) const MOST: usize = 256;

/// So long such an agent may say nothing, in milliseconds: a week.
pub(crate) const SILENT_MS: u64 = 7 * 24 * 60 * 60_000;

/// Whether it is one; nothing waits for it, and nothing is on its way to it.
pub(crate) fn is_one(agent: &Agent) -> bool {
    let is_bare = agent.pane.is_none() && agent.process.is_none() && agent.start.is_none();
    is_bare && agent.state.is_live() && agent.handoff_id.is_none() && agent.queue.is_empty()
}

/// Before one more is registered: if there is no room, which one gives way. It is the one that came first, those without a
/// persona before all others.
pub(crate) fn gives_way(tx: &Tx<'_>) -> Option<AgentId> {
    let known: Vec<(bool, Option<String>, AgentId)> = tx
        .agent_ids()
        .into_iter()
        .filter_map(|id| tx.agent(&id).filter(|agent| is_one(agent)))
        .map(|agent| (agent.persona_slug.is_some(), agent.registered_at.clone(), agent.agent_id))
        .collect();
    if known.len() < MOST {
        return None;
    }
    known.into_iter().min().map(|(.., first)| first)
}

/// The process of an agent that is met without a pane: the CLI above the hook, unless that is another agent's.
pub(crate) fn process_of(tx: &Tx<'_>, event: &HookEvent) -> Option<Process> {
    let process = event.cli()?.process;
    let is_its = |id: &AgentId| tx.agent(id).is_some_and(|row| row.state.is_live() && row.process == Some(process));
    (!tx.agent_ids().iter().any(is_its)).then_some(process)
}

/// An agent that was met without its process reports: its process may be known by this event.
pub(crate) fn find_process(tx: &mut Tx<'_>, agent_id: &AgentId, event: &HookEvent) {
    let process = tx.agent(agent_id).filter(|agent| is_one(agent)).and_then(|_| process_of(tx, event));
    if let Some(process) = process
        && let Some(agent) = tx.agent_mut(agent_id)
    {
        agent.process = Some(process);
    }
}
