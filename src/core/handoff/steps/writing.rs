//! Waits for the end of the turn in which the agent writes its document, then reads the document.

use super::author_turn;
use crate::contract::{JournalLine, LineType};
use crate::core::effect::Outcome;
use crate::core::fact::Fact;
use crate::core::handoff::handler::{StepHandler, fail_if_author_ended};
use crate::core::handoff::next::{Entry, Next};
use crate::core::handoff::{early, reader};
use crate::core::hook::HookEvent;
use crate::core::id::HandoffId;
use crate::core::request::Assume;
use crate::core::rows::agent::{AgentState, OurTurn, Purpose};
use crate::core::rows::handoff::{DocumentSeen, ReadReason, Step};
use crate::core::settings::Limits;
use crate::core::time::Deadline;
use crate::core::tx::Tx;

/// If the step's limit passes while the document is being read, the limit moves by this much, in milliseconds.
const READING_MS: u64 = 30_000;

pub(super) struct Writing;

impl StepHandler for Writing {
    fn limit_ms(&self, limits: &Limits) -> Option<u64> {
        Some(limits.writing_ms)
    }

    fn begin(&self, tx: &mut Tx<'_>, id: HandoffId, how: Entry) -> Next {
        match how {
            Entry::From(_) | Entry::ToRecord => {}
            Entry::Retry => reader::begin(tx, id, ReadReason::Retry { instruct_again: true }),
            Entry::AssumeDelivered => await_assumed_turn(tx, id),
        }
        Next::Stay
    }

    fn retry(&self, _tx: &mut Tx<'_>, _id: HandoffId, _assume: Option<Assume>) -> Next {
        Next::Retry(Step::Writing)
    }

    fn settled(&self, tx: &mut Tx<'_>, id: HandoffId, outcome: Outcome) -> Next {
        // Nothing is examined in this step, so the closure is never called.
        reader::settled(tx, id, outcome, |_, _, whole| Next::Record(whole))
    }

    fn learned(&self, tx: &mut Tx<'_>, id: HandoffId, fact: &Fact) -> Next {
        let Fact::OurTurnEnded { purpose: Purpose::Instruction(_), event, .. } = fact else {
            return fail_if_author_ended(tx, id, fact);
        };
        turn_ended(tx, id, event.as_deref())
    }

    fn due(&self, tx: &mut Tx<'_>, id: HandoffId) -> Next {
        let later = Deadline::after(&tx.now, READING_MS);
        let Some(handoff) = tx.handoff_mut(&id).filter(|handoff| handoff.stay.reading.is_some()) else {
            let hint = "if the document is good: tasuki accept HANDOFF; tasuki retry HANDOFF takes a document that is there, too, \
                        and otherwise instructs the agent again";
            return Next::fail("stop_never_came", "The agent did not end its turn in time", hint);
        };
        handoff.stay.deadline = Some(later);
        Next::Stay
    }
}

/// The operator says that the instruction arrived. Reads the document if the agent is idle; otherwise waits for the end
/// of its turn.
fn await_assumed_turn(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(agent_id) = tx.handoff(&id).map(|handoff| handoff.agent_id) else { return };
    if tx.agent(&agent_id).is_some_and(|agent| agent.state == AgentState::Idle) {
        return reader::begin(tx, id, ReadReason::Retry { instruct_again: false });
    }
    if let Some(agent) = tx.agent_mut(&agent_id) {
        agent.our_turn = Some(OurTurn::of(Purpose::Instruction(id)));
    }
}

/// The turn that answers the instruction has ended, with or without success.
fn turn_ended(tx: &mut Tx<'_>, id: HandoffId, event: Option<&HookEvent>) -> Next {
    let look = "look at the agent's pane, then: tasuki retry HANDOFF. If a limit of its CLI has stopped it (tasuki agents), \
                retry after the end of the limit";
    author_turn::after_turn(tx, id, event, ("The agent's turn", look)).unwrap_or_else(|| {
        reader::begin(tx, id, ReadReason::InFlow);
        early::begin(tx, id);
        Next::Stay
    })
}

pub(crate) fn document_grew(tx: &mut Tx<'_>, id: HandoffId, bytes: u64) {
    let at = tx.now.rfc3339();
    let Some(handoff) = tx.handoff(&id) else { return };
    let is_news = handoff.document.as_ref().is_none_or(|seen| seen.bytes != bytes);
    if handoff.step != Step::Writing || !is_news {
        return;
    }
    let agent_id = handoff.agent_id;
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.document = Some(DocumentSeen { bytes, at });
    }
    early::begin(tx, id);
    tx.journal(JournalLine {
        step: Some(Step::Writing.as_str().to_owned()),
        document_bytes: Some(bytes),
        ..JournalLine::of_handoff(LineType::HandoffStep, &id, &agent_id)
    });
}
