//! The end of a delivery: its verdict is written to the journal once, and reported to the request, handoff or work item
//! that asked for the text.

use crate::contract::{DeliveryView, JournalLine, LineType, known, maybe};
use crate::core::fact::{DeliveryResult, Fact};
use crate::core::id::{AgentId, DeliveryId, RequestId};
use crate::core::pane::{DeliveryVerdict, Refusal};
use crate::core::reply::{Refused, Reply};
use crate::core::rows::agent::{Primed, Purpose, Typing};
use crate::core::text::wire_name;
use crate::core::tx::Tx;

/// Removes the text from the agent's row and drops its effect in the same commit.
pub(crate) fn take(tx: &mut Tx<'_>, agent_id: &AgentId) -> Option<Typing> {
    let typing = tx.agent_mut(agent_id)?.typing.take()?;
    if let Some(key) = typing.phase.effect() {
        tx.drop_effect(key);
    }
    Some(typing)
}

/// Ends the delivery with its verdict.
pub(crate) fn finish(tx: &mut Tx<'_>, agent_id: &AgentId, result: &DeliveryResult) {
    let Some(typing) = take(tx, agent_id) else { return };
    conclude(tx, agent_id, typing.delivery_id, &typing.purpose, result);
}

/// Refuses a text before anything was typed.
pub(crate) fn refuse(tx: &mut Tx<'_>, agent_id: &AgentId, delivery_id: DeliveryId, purpose: &Purpose, reason: Refusal) {
    conclude(tx, agent_id, delivery_id, purpose, &DeliveryResult::Refused(reason));
}

/// Writes the verdict to the journal and reports it. The text is no longer in its agent's row.
pub(crate) fn conclude(
    tx: &mut Tx<'_>,
    agent_id: &AgentId,
    delivery_id: DeliveryId,
    purpose: &Purpose,
    result: &DeliveryResult,
) {
    let verdict = result.verdict(delivery_id, tx.now.rfc3339());
    tx.journal(JournalLine {
        agent_id: known(agent_id),
        handoff_id: maybe(purpose.handoff()),
        purpose: Some(purpose.as_str().to_owned()),
        delivery_id: Some(verdict.delivery_id.to_string()),
        verdict: Some(verdict.verdict.as_str().to_owned()),
        reason: Some(verdict.reason.clone()),
        ..JournalLine::new(LineType::Delivery)
    });
    if matches!((purpose, result), (Purpose::Priming(_), DeliveryResult::Refused(_)))
        && let Some(agent) = tx.agent_mut(agent_id)
    {
        // Only the proof that nothing was typed makes another try possible.
        agent.primed = Primed::Never;
    }
    if let Purpose::Send(request) = purpose {
        return answer_send(tx, request, &verdict, result);
    }
    let (agent_id, purpose, result) = (*agent_id, purpose.clone(), result.clone());
    tx.learn(Fact::Verdict { agent_id, purpose, verdict, result });
}

/// `agent_send` answers 200 with the verdict, or 409 if nothing was typed.
fn answer_send(tx: &mut Tx<'_>, request: &RequestId, verdict: &DeliveryVerdict, result: &DeliveryResult) {
    match result {
        DeliveryResult::Delivered(_) | DeliveryResult::Unconfirmed(_) => {
            tx.answer(request, Reply::ok(&DeliveryView::from(verdict)));
        }
        DeliveryResult::Refused(reason) => {
            let refused = Refused::new(409, "refused", reason.told("Nothing was typed"));
            tx.refuse(request, refused.hint(reason.hint()).reason(wire_name(reason)));
        }
    }
}
