//! Agents known only by their own events, without a pane or a process. Nothing shows their end, so their number is
//! limited, and an agent that is silent for long counts as lost. If a hook names its parent processes, tasuki finds the
//! CLI among them and watches that process like any other.

use crate::core::hook::HookEvent;
use crate::core::id::AgentId;
use crate::core::pane::Process;
use crate::core::rows::agent::Agent;
use crate::core::tx::Tx;

/// The most such agents that may live at once.
pub(crate) const MAX_UNLOCATED: usize = 256;

/// How long such an agent may be silent, in milliseconds: a week.
pub(crate) const SILENCE_LIMIT_MS: u64 = 7 * 24 * 60 * 60_000;

/// Whether the agent is live and known only by its own events, and no start, handoff or queued text waits for it.
pub(crate) fn is_unlocated(agent: &Agent) -> bool {
    let is_bare = agent.pane.is_none() && agent.process.is_none() && agent.start.is_none();
    is_bare && agent.state.is_live() && agent.handoff_id.is_none() && agent.queue.is_empty()
}

/// Called before another such agent is registered. Returns the agent that must make room for it if the limit is
/// reached: the oldest without a persona, or else the oldest.
pub(crate) fn first_to_drop(tx: &Tx<'_>) -> Option<AgentId> {
    let unlocated: Vec<(bool, Option<String>, AgentId)> = tx
        .agent_ids()
        .into_iter()
        .filter_map(|id| tx.agent(&id).filter(|agent| is_unlocated(agent)))
        .map(|agent| (agent.persona_slug.is_some(), agent.registered_at.clone(), agent.agent_id))
        .collect();
    if unlocated.len() < MAX_UNLOCATED {
        return None;
    }
    unlocated.into_iter().min().map(|(.., first)| first)
}

/// The process of an agent that registers without a pane: the CLI among the hook's parent processes, unless another
/// agent has that process.
pub(crate) fn process_of(tx: &Tx<'_>, event: &HookEvent) -> Option<Process> {
    let process = event.cli()?.process;
    let has_it = |id: &AgentId| tx.agent(id).is_some_and(|row| row.state.is_live() && row.process == Some(process));
    (!tx.agent_ids().iter().any(has_it)).then_some(process)
}

/// Takes the process of an unlocated agent from an event of that agent, if the event names it.
pub(crate) fn find_process(tx: &mut Tx<'_>, agent_id: &AgentId, event: &HookEvent) {
    let process = tx.agent(agent_id).filter(|agent| is_unlocated(agent)).and_then(|_| process_of(tx, event));
    if let Some(process) = process
        && let Some(agent) = tx.agent_mut(agent_id)
    {
        agent.process = Some(process);
    }
}
