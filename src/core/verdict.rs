//! The end of a text's way: its verdict, written down once and told to whoever wanted the text typed.

use super::fact::{Ended, Fact};
use super::id::{AgentId, DeliveryId, RequestId};
use super::pane::{DeliveryVerdict, Refusal};
use super::reply::{Refused, Reply};
use super::rows::agent::{Primed, Purpose};
use super::text::word;
use super::tx::Tx;
use crate::contract::{DeliveryView, JournalLine, LineType, known, maybe};

/// Ends the delivery with its verdict.
pub(crate) fn finish(tx: &mut Tx<'_>, agent_id: &AgentId, ended: &Ended) {
    let Some(typing) = tx.agent_mut(agent_id).and_then(|agent| agent.typing.take()) else { return };
    if let Some(key) = typing.effect {
        tx.drop_effect(key);
    }
    decided(tx, agent_id, typing.delivery_id, &typing.purpose, ended);
}

/// Nothing was typed, and nothing will be.
pub(crate) fn refuse(tx: &mut Tx<'_>, agent_id: &AgentId, delivery_id: DeliveryId, purpose: &Purpose, reason: Refusal) {
    decided(tx, agent_id, delivery_id, purpose, &Ended::Refused(reason));
}

fn decided(tx: &mut Tx<'_>, agent_id: &AgentId, delivery_id: DeliveryId, purpose: &Purpose, ended: &Ended) {
    let verdict = ended.verdict(delivery_id, tx.now.stamp());
    tx.journal(JournalLine {
        agent_id: known(agent_id),
        handoff_id: maybe(purpose.handoff()),
        purpose: Some(purpose.word().to_owned()),
        delivery_id: Some(verdict.delivery_id.to_string()),
        verdict: Some(verdict.verdict.word().to_owned()),
        reason: Some(verdict.reason.clone()),
        ..JournalLine::new(LineType::Delivery)
    });
    if matches!((purpose, ended), (Purpose::Priming(_), Ended::Refused(_)))
        && let Some(agent) = tx.agent_mut(agent_id)
    {
        // Only the proof that nothing was typed makes another try possible.
        agent.primed = Primed::Never;
    }
    if let Purpose::Send(request) = purpose {
        return answer_send(tx, request, &verdict, ended);
    }
    let (agent_id, purpose, ended) = (*agent_id, purpose.clone(), ended.clone());
    tx.learn(Fact::Verdict { agent_id, purpose, verdict, ended });
}

/// `agent_send` answers 200 with the verdict, or 409 if nothing was typed.
fn answer_send(tx: &mut Tx<'_>, request: &RequestId, verdict: &DeliveryVerdict, ended: &Ended) {
    match ended {
        Ended::Delivered(_) | Ended::Unconfirmed(_) => {
            tx.answer(request, Reply::ok(&DeliveryView::from(verdict)));
        }
        Ended::Refused(reason) => {
            let message = format!("Nothing was typed: {}", word(reason));
            tx.refuse(request, Refused::new(409, "refused", message).hint(reason.hint()).field(word(reason)));
        }
    }
}
