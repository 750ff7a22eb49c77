//! The deadlines of an agent. A deadline that has passed goes to the state machine that set it. The facts that follow
//! are handled before the next deadline.

use super::agent::{alerts, cli_limits, exit, idle, priming, queue, start, start_dialog, typing};
use super::id::AgentId;
use super::rows::agent::timers::AgentTimer;
use super::tx::Tx;
use super::{follow, work};

/// Handles each deadline of this agent that has passed.
pub(crate) fn agent(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let now = tx.now;
    let mut last = None;
    while let Some(timer) = tx.agent(agent_id).and_then(|agent| agent.next_due(last, &now)) {
        passed(tx, agent_id, timer);
        follow::facts(tx);
        last = Some(timer);
    }
}

fn passed(tx: &mut Tx<'_>, agent_id: &AgentId, timer: AgentTimer) {
    match timer {
        AgentTimer::Typing => typing::deadline_passed(tx, agent_id),
        AgentTimer::PendingExit => exit::pending_exit_due(tx, agent_id),
        AgentTimer::Start => start::deadline_passed(tx, agent_id),
        AgentTimer::Priming => priming::finish(tx, agent_id, Some("The agent did not answer its priming in time")),
        AgentTimer::Watch => idle::watch_again(tx, agent_id),
        AgentTimer::Silence => {
            if let Some(state) = idle::silence_elapsed(tx, agent_id) {
                exit::end(tx, agent_id, state);
            }
        }
        AgentTimer::Dialog => start_dialog::look_again(tx, agent_id),
        AgentTimer::OpenDialog => alerts::dialog_due(tx, agent_id),
        AgentTimer::Notices => work::notices::end_pause(tx, agent_id),
        AgentTimer::Shutdown => exit::shutdown_deadline_passed(tx, agent_id),
        AgentTimer::Resume => cli_limits::resume(tx, agent_id),
        AgentTimer::Queued => queue::deadline_passed(tx, agent_id),
        AgentTimer::MayWaitAgain => {}
    }
}
