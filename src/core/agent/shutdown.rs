//! Takes the requests that end an agent, or that forget an ended agent.

use super::{exit, register};
use crate::contract::reply::AgentReply;
use crate::core::event::RequestFacts;
use crate::core::id::{AgentId, RequestId};
use crate::core::reply::{Refused, Reply};
use crate::core::request::{ForgetRequest, ShutdownRequest};
use crate::core::rows::agent::AgentState;
use crate::core::tx::Tx;

/// Finds an agent that has no pane and no known process, and that no start, handoff or shutdown waits for.
fn without_pane_or_process(tx: &Tx<'_>, text: &str) -> Option<AgentId> {
    let agent = text.parse().ok().and_then(|id| tx.agent(&id))?;
    let is_waited_for = agent.start.is_some() || agent.handoff_id.is_some() || agent.shutdown.is_some();
    let is_nowhere = agent.pane.is_none() && agent.process.is_none();
    (agent.state.is_live() && is_nowhere && !is_waited_for).then_some(agent.agent_id)
}

/// Finds a reopened session in a pane. tasuki types no exit command to it, but kills the pane if it is asked to.
fn reopened(tx: &Tx<'_>, text: &str) -> Option<AgentId> {
    let agent = text.parse().ok().and_then(|id| tx.agent(&id))?;
    let is_in_a_pane = agent.state.is_live() && agent.pane.is_some() && tx.state.server.is_some();
    let is_it = agent.reopened_from.is_some() && is_in_a_pane && agent.start.is_none() && agent.shutdown.is_none();
    is_it.then_some(agent.agent_id)
}

/// `agent_shutdown`.
pub(crate) fn shutdown_asked(tx: &mut Tx<'_>, request: &RequestId, asked: &ShutdownRequest) {
    if let Some(agent_id) = without_pane_or_process(tx, &asked.agent_id).filter(|_| asked.force) {
        return exit::end_without_pane(tx, &agent_id, request);
    }
    let found = match reopened(tx, &asked.agent_id).filter(|_| asked.force) {
        Some(agent_id) => Ok(agent_id),
        None => register::addressed(tx, &asked.agent_id),
    };
    let checked = found.and_then(|agent_id| {
        let agent = tx.agent(&agent_id);
        let is_ours = agent.is_some_and(|agent| agent.ours);
        if asked.force && !is_ours {
            let message = "tasuki did not start this agent, so it does not kill it";
            return Err(Refused::new(409, "not_ours", message).hint("end the agent yourself, or ask without force"));
        }
        if !asked.force && agent.is_some_and(|agent| agent.typing.is_some()) {
            let message = "tasuki is typing a text into this agent's pane";
            return Err(Refused::new(409, "refused", message).hint("ask again in a moment").reason("busy"));
        }
        Ok(agent_id)
    });
    match checked {
        Err(refused) => tx.refuse(request, refused),
        Ok(agent_id) => exit::shut_down(tx, &agent_id, request, asked.force),
    }
}

/// `agent_forget`: notes an agent as ended if its process does not run, and as lost if its process is not known.
/// Nothing is done in tmux. tasuki refuses while the process runs, while the agent is being started, and if the process
/// can't be checked.
pub(crate) fn forget_asked(tx: &mut Tx<'_>, request: &RequestId, asked: &ForgetRequest, facts: &RequestFacts) {
    match forget_check(tx, asked, facts) {
        Err(refused) => tx.refuse(request, refused),
        Ok((agent_id, state)) => {
            exit::end(tx, &agent_id, state);
            let ended_at = tx.agent(&agent_id).and_then(|agent| agent.ended_at.clone());
            let (status, agent_id) = (Some("forgotten".to_owned()), Some(agent_id.to_string()));
            let reply = AgentReply { status, agent_id, ended_at: Some(ended_at), ..AgentReply::default() };
            tx.answer(request, Reply::ok(&reply));
        }
    }
}

fn forget_check(tx: &Tx<'_>, asked: &ForgetRequest, facts: &RequestFacts) -> Result<(AgentId, AgentState), Refused> {
    let agent = asked.agent_id.parse().ok().and_then(|id| tx.agent(&id));
    let agent = agent.ok_or_else(|| Refused::new(404, "no_agent", "Agent not found"))?;
    if !agent.state.is_live() {
        return Err(Refused::new(400, "not_active", "Agent is not active"));
    }
    let pid = agent.process.map(|process| process.pid).or(agent.pane.map(|pane| pane.pid));
    match (pid, facts.runs) {
        (None, _) if agent.start.as_ref().is_some_and(|start| start.effect.is_some()) => {
            Err(Refused::new(409, "starting", "The agent is being started")
                .hint("wait until the start has succeeded or failed"))
        }
        (None, _) => Ok((agent.agent_id, AgentState::Lost)),
        (Some(_), Some(false)) => Ok((agent.agent_id, AgentState::Ended)),
        (Some(pid), Some(true)) => {
            let hint =
                "end the agent yourself or with tasuki agent shutdown; tasuki does not forget an agent that runs";
            Err(Refused::new(409, "process_lives", format!("The agent's process {pid} is running")).hint(hint))
        }
        (Some(pid), None) => {
            let message =
                format!("tasuki could not check whether the agent's process {pid} is running; nothing was changed");
            Err(Refused::new(503, "not_seen", message).hint("try again when the system can open files again"))
        }
    }
}
