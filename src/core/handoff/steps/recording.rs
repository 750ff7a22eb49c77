//! Commits the record. For the authors that need no agent, the document is written and read here.

use crate::core::effect::Outcome;
use crate::core::handoff::duties::Duties;
use crate::core::handoff::next::Next;
use crate::core::handoff::{authors, reader};
use crate::core::id::HandoffId;
use crate::core::rows::handoff::{Reading, Step};
use crate::core::tx::Tx;

pub(super) struct Recording;

impl Duties for Recording {
    fn begin(&self, tx: &mut Tx<'_>, id: HandoffId, _from: Step) -> Next {
        let handoff = tx.handoff(&id);
        if handoff.is_some_and(|handoff| authors::needs_no_agent(handoff.author) && handoff.record.is_none()) {
            reader::begin(tx, id, Reading::AtStop);
        }
        Next::Stay
    }

    fn recorded(&self) -> Next {
        Next::Enter(Step::Ending)
    }

    fn settled(&self, tx: &mut Tx<'_>, id: HandoffId, outcome: Outcome) -> Next {
        reader::settled(tx, id, outcome)
    }
}
