//! Compares the document with its record, then types the briefing.

use super::verdict;
use crate::core::agent::typing;
use crate::core::effect::{ComparedDocument, Drift, Effect, Outcome};
use crate::core::fact::{DeliveryResult, Fact};
use crate::core::handoff::ack;
use crate::core::handoff::handler::{StepHandler, fail_if_successor_ended};
use crate::core::handoff::next::{Entry, Next};
use crate::core::handoff::{row, successors};
use crate::core::id::HandoffId;
use crate::core::request::Assume;
use crate::core::rows::agent::Purpose;
use crate::core::rows::handoff::{Handoff, Step};
use crate::core::settings::Limits;
use crate::core::tx::Tx;
use crate::core::work;

pub(super) struct Briefing;

impl StepHandler for Briefing {
    fn limit_ms(&self, limits: &Limits) -> Option<u64> {
        Some(limits.briefing_ms)
    }

    fn begin(&self, tx: &mut Tx<'_>, id: HandoffId, _how: Entry) -> Next {
        let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
        let Some(record) = &handoff.record else { return Next::Stay };
        let effect = Effect::CompareDocument {
            persona: handoff.persona_slug.clone(),
            file_name: handoff.file_name.clone(),
            sha256: record.sha256.clone(),
            text: None,
            drift: drift(tx, handoff),
        };
        row::run(tx, id, effect);
        Next::Stay
    }

    fn retry(&self, tx: &mut Tx<'_>, id: HandoffId, assume: Option<Assume>) -> Next {
        if let Err(next) = successors::to_retry_with(tx, id) {
            return next;
        }
        match assume {
            Some(Assume::Delivered) => Next::AssumeDelivered(Step::Reading),
            Some(Assume::NotDelivered) => {
                successors::clear_chain(tx, id);
                Next::Retry(Step::Briefing)
            }
            None => Next::Retry(Step::Briefing),
        }
    }

    fn settled(&self, tx: &mut Tx<'_>, id: HandoffId, outcome: Outcome) -> Next {
        if let Outcome::Compared { document, drift } = outcome {
            brief(tx, id, document, drift);
        } else if let Outcome::Failed { why } = outcome {
            // Whether the document has changed is unknown, or there is nothing that the successor could read.
            let message = format!("tasuki can't compare the document with its record: {why}");
            return Next::fail(
                "not_delivered",
                message,
                "nothing was typed; fix the cause, then: tasuki retry HANDOFF",
            );
        }
        Next::Stay
    }

    fn learned(&self, tx: &mut Tx<'_>, id: HandoffId, fact: &Fact) -> Next {
        if let Fact::Verdict { purpose: purpose @ Purpose::Briefing(_), result, .. } = fact {
            if let DeliveryResult::Unconfirmed(_) = result {
                // The successor may have the document, so a handoff of it must not be refused.
                successors::extend_chain(tx, id);
            }
            return verdict::follow(tx, id, purpose, result, Next::Enter(Step::Reading));
        }
        fail_if_successor_ended(tx, id, fact, "it was briefed")
    }

    fn due(&self, _tx: &mut Tx<'_>, _id: HandoffId) -> Next {
        Next::fail("not_delivered", "The briefing was not typed in time", "look at the agent's pane, then retry")
    }
}

/// The state with which the repository is compared: as tasuki saw it when it examined the document. `None` if tasuki
/// did not see the repository.
fn drift(tx: &Tx<'_>, handoff: &Handoff) -> Option<Box<Drift>> {
    let repository = handoff.examined.facts.as_ref()?.repository.clone()?;
    let cwd = tx.agent(&handoff.agent_id)?.cwd.clone()?;
    Some(Box::new(Drift { cwd, repository }))
}

/// Types the briefing. If the document was changed after it was recorded, the view and the briefing say so; if it had
/// to be written again, the view does. The briefing also says which of the work items that it names are not the
/// successor's. If the document is published by now, the briefing names its address.
fn brief(tx: &mut Tx<'_>, id: HandoffId, document: ComparedDocument, drift: Vec<String>) {
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    let (Some(record), Some(successor_id)) = (&handoff.record, handoff.successor_id) else { return };
    let mut body = record.injection_prompt.clone();
    let sha256 = record.sha256.clone();
    let first_line = format!("Here is your handoff from agent {}.", handoff.agent_id.short());
    let (deadline, url) = (handoff.stay.deadline, handoff.published_url().map(str::to_owned));
    match document {
        ComparedDocument::Same => {}
        ComparedDocument::Changed => {
            row::warn(tx, id, "the document was changed after it was recorded");
            body = format!("{body}\n\n{}", tx.state.settings.prompts.changed(&sha256));
        }
        ComparedDocument::Restored => {
            row::warn(tx, id, "the document's file was gone or empty, so tasuki wrote the recorded text again");
        }
    }
    let items = tx.handoff(&id).map(|handoff| work::transfer::not_carried(tx, handoff)).unwrap_or_default();
    let changes: Vec<String> = drift.iter().chain(&items).cloned().collect();
    if !changes.is_empty() {
        body = format!("{body}\n\n{}", tx.state.settings.prompts.drift(&changes));
    }
    if !drift.is_empty()
        && let Some(handoff) = tx.handoff_mut(&id)
    {
        handoff.examined.drift = drift;
    }
    if let Some(url) = url {
        body = format!("{body}\n\n{}", tx.state.settings.prompts.published(&url));
    }
    if let Some(how) = tx.handoff(&id).and_then(|handoff| ack::timeline::for_briefing(tx, handoff)) {
        body = format!("{body}\n\n{how}");
    }
    let text = typing::Text { first_line, body, allow_busy: false };
    typing::begin(tx, &successor_id, Purpose::Briefing(id), text, deadline);
}
