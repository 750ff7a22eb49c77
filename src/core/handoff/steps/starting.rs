//! Starts the successor, or continues a start that was begun before.

use crate::core::agent::start;
use crate::core::fact::Fact;
use crate::core::handoff::handler::{EndedAgent, HINT_NEW_SUCCESSOR, StepHandler, ended_agent};
use crate::core::handoff::next::{Entry, Next};
use crate::core::handoff::{agents, row, successors};
use crate::core::id::{AgentId, HandoffId};
use crate::core::request::{Assume, Successor};
use crate::core::rows::agent::Agent;
use crate::core::rows::handoff::{Handoff, Step};
use crate::core::settings::Limits;
use crate::core::tx::Tx;
use crate::core::work;

pub(super) struct Starting;

impl StepHandler for Starting {
    fn limit_ms(&self, limits: &Limits) -> Option<u64> {
        Some(limits.starting_ms)
    }

    fn begin(&self, tx: &mut Tx<'_>, id: HandoffId, how: Entry) -> Next {
        let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
        match (&handoff.successor, handoff.successor_id) {
            (Successor::Existing { .. }, Some(successor_id)) => return take_over(tx, id, &successor_id),
            (Successor::New, Some(successor_id)) if how == Entry::From(Step::Ending) => {
                return continue_early(tx, id, &successor_id);
            }
            (_, Some(_)) | (Successor::New, None) => start_or_look(tx, id),
            (Successor::SamePane | Successor::Existing { .. }, None) => {
                let message = "There is no successor left to take over";
                return Next::fail("successor_failed", message, HINT_NEW_SUCCESSOR);
            }
        }
        Next::Stay
    }

    fn retry(&self, tx: &mut Tx<'_>, id: HandoffId, _assume: Option<Assume>) -> Next {
        successors::release_unless_adoptable(tx, id);
        Next::Retry(Step::Starting)
    }

    fn learned(&self, tx: &mut Tx<'_>, id: HandoffId, fact: &Fact) -> Next {
        if let Fact::SuccessorReady { .. } = fact {
            return ready(tx, id);
        }
        if let Fact::SuccessorFailed { code, why, .. } = fact {
            return failed(tx, id, code, why);
        }
        // If tasuki starts the successor, `SuccessorFailed` reports its end.
        let is_existing = |successor: &Successor| matches!(successor, Successor::Existing { .. });
        let existing = tx.handoff(&id).is_some_and(|handoff| is_existing(&handoff.successor));
        match ended_agent(tx, id, fact) {
            Some(EndedAgent { is_outgoing: false, .. }) if existing => {
                failed(tx, id, "successor_failed", "The successor has ended before it could take over")
            }
            Some(_) | None => Next::Stay,
        }
    }

    fn due(&self, tx: &mut Tx<'_>, id: HandoffId) -> Next {
        failed(tx, id, "successor_failed", "The successor was not ready in time")
    }
}

/// Continues with a successor that was started early. If it is ready, it is primed next. If its start still runs, waits
/// for that. Otherwise looks for the successor, or starts another, as a retry does.
fn continue_early(tx: &mut Tx<'_>, id: HandoffId, successor_id: &AgentId) -> Next {
    let Some(agent) = tx.agent(successor_id) else { return Next::Stay };
    let is_alive = agent.is_alive();
    if is_alive && agent.start.is_some() {
        return Next::Stay;
    }
    if agent.is_free() && agent.registered_at.is_some() {
        return ready(tx, id);
    }
    if !is_alive {
        row::warn(tx, id, "the successor that was started early has ended, so tasuki started another");
    }
    successors::release_unless_adoptable(tx, id);
    start_or_look(tx, id);
    Next::Stay
}

/// Starts the successor, or looks for the one that was started before.
fn start_or_look(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let deadline = handoff.stay.deadline;
    match handoff.successor_id {
        Some(successor_id) => start::start_from_row(tx, &successor_id, id, deadline),
        None => successors::start(tx, id, deadline),
    }
}

/// A successor that already runs takes over as soon as it is free.
fn take_over(tx: &mut Tx<'_>, id: HandoffId, successor_id: &AgentId) -> Next {
    let Some(agent) = tx.agent(successor_id) else { return Next::Stay };
    if !agent.state.is_live() {
        return failed(tx, id, "successor_failed", "The successor has ended");
    }
    if !agent.is_free() {
        return Next::Defer;
    }
    // It becomes the outgoing agent's descendant only when it is briefed.
    ready(tx, id)
}

fn ready(tx: &mut Tx<'_>, id: HandoffId) -> Next {
    agents::drop_placeholder(tx, id);
    work::transfer::transfer(tx, id);
    Next::Enter(Step::Priming)
}

/// The failure if the successor could not be started or did not register.
fn failed(tx: &Tx<'_>, id: HandoffId, code: &str, why: &str) -> Next {
    let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
    let hint = match &handoff.successor {
        // An agent that tasuki did not start is not started again.
        Successor::Existing { .. } => HINT_NEW_SUCCESSOR,
        // Neither is a session whose process has ended.
        Successor::SamePane if !has_living_successor(tx, handoff) => HINT_NEW_SUCCESSOR,
        Successor::New | Successor::SamePane => {
            "document and record are kept; fix the cause, then: tasuki retry HANDOFF"
        }
    };
    Next::fail(code, why, hint)
}

fn has_living_successor(tx: &Tx<'_>, handoff: &Handoff) -> bool {
    handoff.successor_id.and_then(|id| tx.agent(&id)).is_some_and(Agent::is_alive)
}
