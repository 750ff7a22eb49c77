//! Commits the record. For authors that need no agent, this step first writes and reads the document.

use crate::core::effect::Outcome;
use crate::core::handoff::handler::StepHandler;
use crate::core::handoff::next::{Entry, Next};
use crate::core::handoff::{authors, reader};
use crate::core::id::HandoffId;
use crate::core::request::Assume;
use crate::core::rows::handoff::{ReadReason, Step};
use crate::core::tx::Tx;

pub(super) struct Recording;

impl StepHandler for Recording {
    fn begin(&self, tx: &mut Tx<'_>, id: HandoffId, how: Entry) -> Next {
        if how == Entry::Retry {
            // The operator who retries has seen the document, so it is accepted as it is.
            reader::begin(tx, id, ReadReason::Retry { instruct_again: false });
            return Next::Stay;
        }
        let handoff = tx.handoff(&id);
        if handoff.is_some_and(|handoff| authors::needs_no_agent(handoff.author) && handoff.record.is_none()) {
            reader::begin(tx, id, ReadReason::AtStop);
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
        reader::settled(tx, id, outcome)
    }
}
