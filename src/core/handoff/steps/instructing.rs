//! Creates the folder for the document, then types the instruction.

use super::verdict;
use crate::core::agent::typing;
use crate::core::effect::{Effect, Outcome};
use crate::core::fact::{DeliveryResult, Fact};
use crate::core::handoff::handler::{StepHandler, fail_if_author_ended};
use crate::core::handoff::next::{Entry, Next};
use crate::core::handoff::{authors, row};
use crate::core::id::HandoffId;
use crate::core::pane::Refusal;
use crate::core::request::{Assume, Author};
use crate::core::rows::agent::{AgentState, Purpose};
use crate::core::rows::handoff::Step;
use crate::core::settings::Limits;
use crate::core::tx::Tx;

pub(super) struct Instructing;

impl StepHandler for Instructing {
    fn limit_ms(&self, limits: &Limits) -> Option<u64> {
        Some(limits.instructing_ms)
    }

    fn begin(&self, tx: &mut Tx<'_>, id: HandoffId, _how: Entry) -> Next {
        let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
        let persona = handoff.persona_slug.clone();
        row::run(tx, id, Effect::PrepareFolder { persona });
        Next::Stay
    }

    fn retry(&self, _tx: &mut Tx<'_>, _id: HandoffId, assume: Option<Assume>) -> Next {
        match assume {
            Some(Assume::Delivered) => Next::AssumeDelivered(Step::Writing),
            Some(Assume::NotDelivered) | None => Next::Retry(Step::Waiting),
        }
    }

    fn settled(&self, tx: &mut Tx<'_>, id: HandoffId, outcome: Outcome) -> Next {
        if outcome == Outcome::Done {
            instruct(tx, id);
        } else if let Outcome::Failed { why } = outcome {
            let message = format!("tasuki could not create the handoff folder: {why}");
            return Next::fail("not_delivered", message, "nothing was typed; fix the folder, then retry");
        }
        Next::Stay
    }

    fn learned(&self, tx: &mut Tx<'_>, id: HandoffId, fact: &Fact) -> Next {
        let Fact::Verdict { agent_id, purpose: purpose @ Purpose::Instruction(_), result, .. } = fact else {
            return fail_if_author_ended(tx, id, fact);
        };
        if *result == DeliveryResult::Refused(Refusal::Busy) {
            // The screen showed a turn that no event had reported. Nothing was typed, so wait for the end of the turn.
            tx.set_state(agent_id, AgentState::Busy);
            return Next::Enter(Step::Waiting);
        }
        verdict::follow(tx, id, purpose, result, Next::Enter(Step::Writing))
    }

    fn due(&self, _tx: &mut Tx<'_>, _id: HandoffId) -> Next {
        Next::fail("not_delivered", "The instruction was not typed in time", "look at the agent's pane, then retry")
    }
}

/// Types the instruction, once the folder exists.
fn instruct(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let first_line = match handoff.author {
        Author::AgentReply => "Please answer with a handoff document for your successor.",
        Author::AgentFile | Author::Salvage | Author::Provided => "Please write a handoff document for your successor.",
    };
    let body = authors::instruction(tx, handoff);
    let text = typing::Text { first_line: first_line.to_owned(), body, allow_busy: handoff.interrupts_turn };
    let (agent_id, deadline) = (handoff.agent_id, handoff.stay.deadline);
    typing::begin(tx, &agent_id, Purpose::Instruction(id), text, deadline);
}
