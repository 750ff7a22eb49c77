//! Waits for the successor's acknowledgement, where one is wanted.

use crate::core::effect::Outcome;
use crate::core::fact::Fact;
use crate::core::handoff::ack::{clarify, messages, timeline};
use crate::core::handoff::handler::{StepHandler, fail_if_successor_ended};
use crate::core::handoff::next::{Entry, Next};
use crate::core::handoff::successors;
use crate::core::id::HandoffId;
use crate::core::request::Assume;
use crate::core::rows::handoff::Step;
use crate::core::tx::Tx;

pub(super) struct Acknowledging;

impl StepHandler for Acknowledging {
    fn begin(&self, tx: &mut Tx<'_>, id: HandoffId, how: Entry) -> Next {
        timeline::begin_step(tx, id);
        match how {
            Entry::From(Step::Reading) => timeline::briefed(tx, id),
            Entry::Retry => timeline::ask_again(tx, id),
            Entry::From(_) | Entry::AssumeDelivered | Entry::ToRecord => {}
        }
        Next::Stay
    }

    fn retry(&self, tx: &mut Tx<'_>, id: HandoffId, _assume: Option<Assume>) -> Next {
        successors::to_retry_with(tx, id).err().unwrap_or(Next::Retry(Step::Acknowledging))
    }

    /// Stops the timers, and gives up the messages that wait for the successor.
    fn leave(&self, tx: &mut Tx<'_>, id: HandoffId) {
        timeline::stop(tx, id);
        clarify::leave(tx, id);
        messages::give_up(tx, id, |_| true, "the handoff moved on before the text could be typed");
    }

    fn settled(&self, tx: &mut Tx<'_>, id: HandoffId, outcome: Outcome) -> Next {
        clarify::settled(tx, id, outcome);
        Next::Stay
    }

    fn learned(&self, tx: &mut Tx<'_>, id: HandoffId, fact: &Fact) -> Next {
        fail_if_successor_ended(tx, id, fact, "it acknowledged")
    }

    fn run_ready(&self, tx: &mut Tx<'_>, id: HandoffId) -> Next {
        messages::type_next_message(tx, id);
        Next::Stay
    }
}
