//! What is due of an agent: each of its limits is put to the machine that has set it, and what follows from that comes before
//! the next.

use super::id::AgentId;
use super::rows::agent::timers::Timer;
use super::tx::Tx;
use super::{follow, idle, life, priming, queue, start, start_dialog, typing, work};

/// Ends what is due of this agent.
pub(crate) fn agent(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let now = tx.now;
    for timer in Timer::IN_ORDER {
        if tx.agent(agent_id).is_some_and(|agent| agent.is_due(timer, &now)) {
            is_due(tx, agent_id, timer);
            follow::facts(tx);
        }
    }
}

fn is_due(tx: &mut Tx<'_>, agent_id: &AgentId, timer: Timer) {
    match timer {
        Timer::Typing => typing::is_due(tx, agent_id),
        Timer::Dying => life::is_due(tx, agent_id),
        Timer::Start => {
            start::failed(tx, agent_id, "successor_failed", "The agent had not registered and become ready in time");
        }
        Timer::Priming => priming::is_over(tx, agent_id, Some("The agent did not answer its priming in time")),
        Timer::Watch => idle::watch_again(tx, agent_id),
        Timer::Unheard => {
            if let Some(state) = idle::was_silent(tx, agent_id) {
                life::end(tx, agent_id, state);
            }
        }
        Timer::Dialog => start_dialog::look_again(tx, agent_id),
        Timer::Notices => work::notices::is_due(tx, agent_id),
        Timer::Shutdown => life::shutdown_failed(tx, agent_id),
        Timer::Queued => queue::is_due(tx, agent_id),
    }
}
