//! A successor that is started early: while its predecessor's document is read, examined and recorded, and while the
//! predecessor ends.
//!
//! It gets no text before the step `starting`. By then its start is complete or nearly complete. If the handoff stops
//! before that step, or waits for a person, the successor is ended, and the step `starting` starts another if the
//! handoff gets there.

use super::{row, successors};
use crate::core::agent::unwanted;
use crate::core::id::HandoffId;
use crate::core::request::{Author, Successor};
use crate::core::rows::agent::{Agent, AgentState};
use crate::core::rows::handoff::{Handoff, ReadReason, Step};
use crate::core::settings::StartSuccessor;
use crate::core::tx::Tx;

/// Starts the successor if the configuration says so and the successor will probably be needed: the turn that writes
/// the document is over, and the document is there.
pub(crate) fn begin(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let outgoing = tx.agent(&handoff.agent_id);
    let has_place = outgoing.is_some_and(|agent| agent.pane.is_some() && agent.state.is_live());
    let is_wanted = tx.state.settings.starting == StartSuccessor::Early
        && handoff.successor == Successor::New
        && handoff.successor_id.is_none()
        && handoff.author == Author::AgentFile
        && handoff.step == Step::Writing
        && handoff.stay.reading == Some(ReadReason::InFlow)
        && handoff.document.is_some();
    if is_wanted && has_place {
        successors::start(tx, id, None);
    }
}

/// The successor could not be started early: adds a warning. The step `starting` will look for it, and start another if
/// there is none.
pub(super) fn failed(tx: &mut Tx<'_>, id: HandoffId, why: &str) {
    if tx.handoff(&id).is_some_and(is_early) {
        row::warn(tx, id, &format!("the successor could not be started early: {why}"));
    }
}

/// Ends a successor that was started early: nobody knows when it will be needed, or whether. If somebody has typed to
/// it meanwhile, it stays as an agent of its own.
pub(super) fn discard(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id).filter(|handoff| is_early(handoff)) else { return };
    let Some(successor_id) = handoff.successor_id else { return };
    let is_untouched = |agent: &Agent| agent.prompts_and_answers == 0 && agent.state != AgentState::Busy;
    if tx.agent(&successor_id).is_none_or(is_untouched) {
        unwanted::end(tx, &successor_id);
        return successors::release(tx, id);
    }
    // What that person has typed, and the answer that they may wait for, must not be lost.
    let short = successor_id.short();
    row::warn(tx, id, &format!("somebody has typed to the successor {short} that was started early, so it still runs"));
    successors::let_go(tx, id);
}

/// Whether the handoff's successor was started before the step `starting`.
fn is_early(handoff: &Handoff) -> bool {
    let is_before = match handoff.place_in_flow() {
        Step::Waiting | Step::Instructing | Step::Writing | Step::Checking | Step::Recording | Step::Ending => true,
        Step::Cancelled => handoff.record.is_none(),
        Step::Starting | Step::Priming | Step::Briefing | Step::Reading | Step::Acknowledging => false,
        Step::Done | Step::Failed => false,
    };
    is_before && handoff.successor == Successor::New && handoff.successor_id.is_some()
}
