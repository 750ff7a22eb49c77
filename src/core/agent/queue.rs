//! The texts that wait until their agent can take them.

use super::{cli_limits, context_usage, typing};
use crate::core::fact::Fact;
use crate::core::id::AgentId;
use crate::core::pane::Refusal;
use crate::core::reply::Refused;
use crate::core::rows::agent::{AgentState, Asker, Purpose, Queued};
use crate::core::text::wire_name;
use crate::core::tx::Tx;

/// The most texts that may wait for one agent.
pub(crate) const MAX_QUEUE: usize = 32;

/// Types the next waiting text, if the agent is free for it. If an automatic handoff may begin, that is decided first.
pub(crate) fn type_next(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id) else { return };
    if agent.queue.is_empty()
        || !agent.is_free()
        || agent.handoff_id.is_some()
        || context_usage::may_hand_off(tx, agent)
    {
        return;
    }
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    let queued = agent.queue.remove(0);
    let (first_line, purpose) = match &queued.asker {
        Asker::Request(request_id) => ("Text from the operator.", Purpose::Send(request_id.clone())),
        Asker::Message(id, number) => ("Message from tasuki about a handoff.", Purpose::Message(*id, *number)),
        Asker::Resume(()) => ("Text from the operator.", Purpose::Resume),
    };
    let text = typing::Text { first_line: first_line.to_owned(), body: queued.text.clone(), allow_busy: false };
    typing::begin(tx, agent_id, purpose, text, None);
    if let Some(typing) = tx.agent_mut(agent_id).and_then(|agent| agent.typing.as_mut()) {
        typing.queued = Some(queued);
    }
}

/// A waiting text will not be typed: the asker gets the refusal.
pub(crate) fn not_typed(tx: &mut Tx<'_>, agent_id: &AgentId, queued: Queued, refused: Refused) {
    match queued.asker {
        Asker::Request(request_id) => tx.refuse(&request_id, refused),
        Asker::Message(handoff_id, number) => {
            tx.learn(Fact::NotTyped { handoff_id, number, why: refused.message });
        }
        Asker::Resume(()) => cli_limits::not_resumed(tx, agent_id, &refused.message),
    }
}

/// Refuses texts that have waited too long. The reason follows from the agent's state. An idle agent counts as busy
/// too: something else has kept it, such as a handoff or a shutdown.
pub(crate) fn deadline_passed(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let now = tx.now;
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    let (late, waiting): (Vec<_>, Vec<_>) =
        std::mem::take(&mut agent.queue).into_iter().partition(|queued| queued.deadline.is_due(&now));
    agent.queue = waiting;
    let reason = match agent.state {
        AgentState::Blocked => Refusal::Dialog,
        AgentState::Starting => Refusal::NotReady,
        AgentState::Idle | AgentState::Busy | AgentState::Ended | AgentState::Lost => Refusal::Busy,
    };
    for queued in late {
        let refused = Refused::new(409, "refused", reason.told("Nothing was typed")).hint(reason.hint());
        not_typed(tx, agent_id, queued, refused.reason(wire_name(&reason)));
    }
}
