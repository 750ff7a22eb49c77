//! Types the persona's skill, and waits for the end of the turn that answers it.

use super::verdict::{self, HINT_DOUBT};
use crate::core::agent::priming;
use crate::core::fact::Fact;
use crate::core::handoff::handler::{StepHandler, fail_if_successor_ended};
use crate::core::handoff::next::{Entry, Next};
use crate::core::handoff::{row, successors};
use crate::core::id::HandoffId;
use crate::core::request::Assume;
use crate::core::rows::agent::{Primed, Purpose};
use crate::core::rows::handoff::Step;
use crate::core::settings::Limits;
use crate::core::tx::Tx;

pub(super) struct Priming;

impl StepHandler for Priming {
    fn limit_ms(&self, limits: &Limits) -> Option<u64> {
        Some(limits.priming_ms)
    }

    fn begin(&self, tx: &mut Tx<'_>, id: HandoffId, _how: Entry) -> Next {
        let Some(successor_id) = tx.handoff(&id).and_then(|handoff| handoff.successor_id) else { return Next::Stay };
        match tx.agent(&successor_id).map(|agent| &agent.primed) {
            Some(Primed::Done) => Next::Enter(Step::Briefing),
            Some(Primed::Begun) => failed("It is not known whether the successor was primed"),
            Some(Primed::Never | Primed::Reading { .. }) | None => {
                priming::begin(tx, &successor_id);
                Next::Stay
            }
        }
    }

    /// Stops reading the skill, unless the agent's own start primes it: the skill would still be typed.
    fn leave(&self, tx: &mut Tx<'_>, id: HandoffId) {
        let Some(successor_id) = tx.handoff(&id).and_then(|handoff| handoff.successor_id) else { return };
        let Some(agent) = tx.agent(&successor_id).filter(|agent| agent.priming_deadline.is_none()) else { return };
        let Primed::Reading { effect } = agent.primed else { return };
        tx.drop_effect(effect);
        if let Some(agent) = tx.agent_mut(&successor_id) {
            agent.primed = Primed::Never;
        }
    }

    fn retry(&self, tx: &mut Tx<'_>, id: HandoffId, assume: Option<Assume>) -> Next {
        let successor_id = match successors::to_retry_with(tx, id) {
            Ok(successor_id) => successor_id,
            Err(next) => return next,
        };
        let Some(agent) = tx.agent_mut(&successor_id) else { return Next::Stay };
        match assume {
            Some(Assume::Delivered) => {
                agent.primed = Primed::Done;
                return Next::AssumeDelivered(Step::Briefing);
            }
            Some(Assume::NotDelivered) => agent.primed = Primed::Never,
            None => {}
        }
        Next::Retry(Step::Priming)
    }

    fn leaves_doubt(&self, code: &str) -> bool {
        matches!(code, "unconfirmed" | "priming_failed")
    }

    fn learned(&self, tx: &mut Tx<'_>, id: HandoffId, fact: &Fact) -> Next {
        if let Fact::Verdict { purpose: purpose @ Purpose::Priming(_), result, .. } = fact {
            // The step ends with the turn that answers the priming.
            return verdict::follow(tx, id, purpose, result, Next::Stay);
        }
        if let Fact::OurTurnEnded { purpose: Purpose::Priming(_), event: None, .. } = fact {
            row::warn(tx, id, "stop_inferred");
        }
        if let Fact::Primed { problem, .. } = fact {
            return problem.as_deref().map_or(Next::Enter(Step::Briefing), |why| not_primed(tx, id, why));
        }
        fail_if_successor_ended(tx, id, fact, "it was briefed")
    }

    fn due(&self, tx: &mut Tx<'_>, id: HandoffId) -> Next {
        let message = match is_typed(tx, id) {
            true => "The successor did not answer its priming in time",
            false => "The priming was not typed in time",
        };
        not_primed(tx, id, message)
    }
}

/// Whether the priming may have been typed. If it was not, the persona could not be read, or the text still waits.
fn is_typed(tx: &Tx<'_>, id: HandoffId) -> bool {
    let successor = tx.handoff(&id).and_then(|handoff| handoff.successor_id).and_then(|id| tx.agent(&id));
    successor.is_some_and(|agent| matches!(agent.primed, Primed::Begun | Primed::Done))
}

fn not_primed(tx: &Tx<'_>, id: HandoffId, why: &str) -> Next {
    if is_typed(tx, id) {
        return failed(why);
    }
    let hint =
        "nothing was typed; look at the persona's skill.md and at the successor's pane, then: tasuki retry HANDOFF";
    Next::fail("not_delivered", why, hint)
}

fn failed(why: &str) -> Next {
    Next::fail("priming_failed", why, &format!("look at the successor's pane; {HINT_DOUBT}"))
}
