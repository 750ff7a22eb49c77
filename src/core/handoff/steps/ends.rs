//! The three ends of a handoff: done, failed, cancelled.

use crate::core::effect::Outcome;
use crate::core::handoff::handler::StepHandler;
use crate::core::handoff::next::{Entry, Next};
use crate::core::handoff::{agents, early, reader};
use crate::core::id::HandoffId;
use crate::core::request::Assume;
use crate::core::tx::Tx;

/// Done or cancelled: nothing follows any more.
pub(super) struct Ended;

impl StepHandler for Ended {
    fn begin(&self, tx: &mut Tx<'_>, id: HandoffId, _how: Entry) -> Next {
        early::discard(tx, id);
        agents::release(tx, id);
        Next::Stay
    }

    fn retry(&self, _tx: &mut Tx<'_>, _id: HandoffId, _assume: Option<Assume>) -> Next {
        Next::Stay
    }
}

/// Failed: the operator may retry, accept the document as it is, or abandon the handoff.
pub(super) struct Failed;

impl StepHandler for Failed {
    fn begin(&self, _tx: &mut Tx<'_>, _id: HandoffId, _how: Entry) -> Next {
        Next::Stay
    }

    fn retry(&self, _tx: &mut Tx<'_>, _id: HandoffId, _assume: Option<Assume>) -> Next {
        Next::Stay
    }

    fn settled(&self, tx: &mut Tx<'_>, id: HandoffId, outcome: Outcome) -> Next {
        // Nothing is examined in this step, so the closure is never called.
        reader::settled(tx, id, outcome, |_, _, whole| Next::Record(whole))
    }
}
