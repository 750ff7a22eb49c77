//! Adds the record. For authors that need no agent, this step first writes and reads the document. A document that was
//! not checked in the step before is examined here, for its facts and warnings.

use crate::core::effect::Outcome;
use crate::core::handoff::handler::StepHandler;
use crate::core::handoff::next::{Entry, Next};
use crate::core::handoff::{authors, examination, reader, row};
use crate::core::id::HandoffId;
use crate::core::request::Assume;
use crate::core::rows::handoff::{ReadReason, Step};
use crate::core::tx::Tx;

pub(super) struct Recording;

impl StepHandler for Recording {
    fn begin(&self, tx: &mut Tx<'_>, id: HandoffId, how: Entry) -> Next {
        let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
        match how {
            // The operator who retries has seen the file, so a file that differs from the provided text does not fail
            // the step now.
            Entry::Retry => reader::begin(tx, id, ReadReason::Retry { instruct_again: false }),
            Entry::ToRecord => {}
            Entry::From(_) | Entry::AssumeDelivered => {
                let is_read = handoff.examined.sha256.is_some();
                if is_read {
                    examination::begin(tx, id);
                } else if authors::needs_no_agent(handoff.author) && handoff.record.is_none() {
                    reader::begin(tx, id, ReadReason::InFlow);
                }
            }
        }
        Next::Stay
    }

    fn retry(&self, _tx: &mut Tx<'_>, _id: HandoffId, _assume: Option<Assume>) -> Next {
        Next::Retry(Step::Recording)
    }

    fn recorded(&self) -> Next {
        Next::Enter(Step::Ending)
    }

    fn settled(&self, tx: &mut Tx<'_>, id: HandoffId, outcome: Outcome) -> Next {
        if let Outcome::Failed { why } = &outcome
            && tx.handoff(&id).is_some_and(examination::needs_person_unexamined)
        {
            row::warn(tx, id, &reader::not_checked(why));
            return Next::Enter(Step::Checking);
        }
        reader::settled(tx, id, outcome, |tx, id, whole| {
            if tx.handoff(&id).is_some_and(examination::needs_person) {
                // The handoff waits for the person in `checking`.
                Next::Enter(Step::Checking)
            } else if reader::restore_finished(tx, id) {
                Next::Stay
            } else {
                Next::Record(whole)
            }
        })
    }
}
