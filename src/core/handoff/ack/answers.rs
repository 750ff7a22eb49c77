//! The request `clarify`. If the step has failed although the successor waits for an answer, the step is resumed first.
//! Either the successor could not set up its environment: by then the operator has supplied what it lacked, or the
//! answer says how to continue without it. Or nobody answered its questions in time.

use super::clarify;
use crate::core::agent::register;
use crate::core::event::RequestFacts;
use crate::core::handoff::{agents, driver};
use crate::core::id::{HandoffId, RequestId};
use crate::core::reply::Refused;
use crate::core::request::ClarifyRequest;
use crate::core::rows::ack::Standing;
use crate::core::rows::agent::Agent;
use crate::core::rows::handoff::Step;
use crate::core::tx::Tx;

/// `clarify`.
pub(crate) fn asked(tx: &mut Tx<'_>, request: &RequestId, asked: ClarifyRequest, facts: &RequestFacts) {
    let checked = clarify::check(tx, &asked, facts).and_then(|checked| {
        let is_late = tx.handoff(&checked.0).is_some_and(clarify::waits_after_failure);
        if is_late { resume(tx, checked.0).map(|()| checked) } else { Ok(checked) }
    });
    match checked {
        Err(refused) => tx.refuse(request, refused),
        Ok(checked) => clarify::begin(tx, request, asked, checked, facts),
    }
}

/// Enters the step again, and treats the successor's ACK as an open question, so that the deadlines of the step apply
/// to the answer.
fn resume(tx: &mut Tx<'_>, id: HandoffId) -> Result<(), Refused> {
    tx.connected()?;
    let successor = tx.handoff(&id).and_then(|handoff| handoff.successor_id).and_then(|id| tx.agent(&id));
    let Some(successor) = successor.filter(|agent: &&Agent| agent.is_alive()) else {
        let hint = format!("start another successor: tasuki retry {} --successor new", id.short());
        return Err(Refused::new(409, "successor_ended", "The successor that asked has ended").hint(hint));
    };
    register::check_reach(tx, successor)?;
    agents::bind_agents_and_clear_error(tx, id)?;
    driver::enter(tx, id, Step::Acknowledging);
    if let Some(ack) = tx.handoff_mut(&id).and_then(|handoff| handoff.ack.as_mut()) {
        ack.received = ack.former.pop();
        ack.standing = Standing::NeedsClarification;
    }
    Ok(())
}
