//! What is due of an agent: each of its limits is put to the machine that has set it, and what follows from that comes before
//! the next.

use super::id::AgentId;
use super::time::Deadline;
use super::tx::Tx;
use super::{follow, idle, life, priming, queue, start, start_dialog, typing, work};

/// Ends what is due of this agent.
pub(crate) fn agent(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let now = tx.now;
    let due = |deadline: Option<&Deadline>| deadline.is_some_and(|deadline| deadline.is_due(&now));
    typing::deadline(tx, agent_id);
    follow::facts(tx);
    let Some(agent) = tx.agent(agent_id) else { return };
    if let Some(dying) = agent.dying.filter(|dying| dying.due.is_due(&now)) {
        life::judge(tx, agent_id, dying);
        follow::facts(tx);
    }
    let Some(agent) = tx.agent(agent_id) else { return };
    if due(agent.start.as_ref().map(|start| &start.deadline)) {
        start::failed(tx, agent_id, "successor_failed", "The agent had not registered and become ready in time");
        follow::facts(tx);
    }
    let Some(agent) = tx.agent(agent_id) else { return };
    if due(agent.priming_deadline.as_ref()) {
        priming::is_over(tx, agent_id, Some("The agent did not answer its priming in time"));
        follow::facts(tx);
    }
    if let Some(state) = idle::deadline(tx, agent_id) {
        life::end(tx, agent_id, state);
    }
    follow::facts(tx);
    start_dialog::look_again(tx, agent_id);
    work::notices::deadline(tx, agent_id);
    let Some(agent) = tx.agent(agent_id) else { return };
    if due(agent.shutdown.as_ref().map(|shutdown| &shutdown.deadline)) {
        life::shutdown_failed(tx, agent_id);
    }
    queue::deadline(tx, agent_id);
    follow::facts(tx);
}
