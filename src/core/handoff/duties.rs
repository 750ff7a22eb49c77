//! What every step may be notified of, and the defaults for most of them.

use super::authors;
use super::next::{Entry, Next};
use crate::core::effect::Outcome;
use crate::core::fact::Fact;
use crate::core::id::{AgentId, HandoffId};
use crate::core::request::Assume;
use crate::core::rows::agent::AgentState;
use crate::core::rows::handoff::Handoff;
use crate::core::settings::Limits;
use crate::core::tx::Tx;

/// For a handoff whose successor is gone.
pub(super) const ANOTHER: &str = "document and record are kept; to start another successor: tasuki retry HANDOFF";

/// What a step does when it is notified of something. The defaults do nothing.
pub(super) trait Duties {
    /// Its time limit in milliseconds; none for a step that does not wait, or that keeps its own time.
    fn limit_ms(&self, _limits: &Limits) -> Option<u64> {
        None
    }

    /// The handoff has entered this step.
    fn begin(&self, tx: &mut Tx<'_>, id: HandoffId, how: Entry) -> Next;

    /// It is being left: what it alone has set going is stopped.
    fn leave(&self, _tx: &mut Tx<'_>, _id: HandoffId) {}

    /// The effect that it waited for has ended.
    fn settled(&self, _tx: &mut Tx<'_>, _id: HandoffId, _outcome: Outcome) -> Next {
        Next::Stay
    }

    /// A machine of one of the handoff's agents has learned something.
    fn learned(&self, _tx: &mut Tx<'_>, _id: HandoffId, _fact: &Fact) -> Next {
        Next::Stay
    }

    /// The successor, or the operator for it, speaks of the handoff: it has read.
    fn answered(&self, _tx: &mut Tx<'_>, _id: HandoffId) -> Next {
        Next::Stay
    }

    /// One of the handoff's agents has changed.
    fn run_ready(&self, _tx: &mut Tx<'_>, _id: HandoffId) -> Next {
        Next::Stay
    }

    /// The record was committed: what follows. Asked of `recording` alone.
    fn recorded(&self) -> Next {
        Next::Stay
    }

    /// The agent into whose pane the step types, if it types.
    fn types_to(&self, handoff: &Handoff) -> Option<AgentId> {
        handoff.successor_id
    }

    /// The text that the step deferred can be typed now: the step begins again.
    fn resume(&self, tx: &mut Tx<'_>, id: HandoffId) -> Next {
        let Some(step) = tx.handoff(&id).map(|handoff| handoff.step) else { return Next::Stay };
        self.begin(tx, id, Entry::From(step))
    }

    /// The step has failed, and a person asks to retry it. `assume`: what they say about the delivery of its text, if
    /// that is in doubt.
    fn retry(&self, tx: &mut Tx<'_>, id: HandoffId, assume: Option<Assume>) -> Next;

    /// Whether a failure with this code leaves it unknown if the step's text arrived.
    fn leaves_doubt(&self, code: &str) -> bool {
        code == "unconfirmed"
    }

    /// The step's time limit has passed.
    fn due(&self, _tx: &mut Tx<'_>, _id: HandoffId) -> Next {
        Next::Stay
    }
}

/// One of the two agents has ended or is lost.
pub(super) struct LostAgent {
    /// The outgoing agent ended; otherwise the successor did.
    pub(super) outgoing: bool,
    /// Its pane is gone, and its end was not seen.
    pub(super) lost: bool,
}

/// Which of the two agents has ended, if that is what was learned.
pub(super) fn gone(tx: &Tx<'_>, id: HandoffId, fact: &Fact) -> Option<LostAgent> {
    let Fact::Ended { agent_id } = fact else { return None };
    let lost = tx.agent(agent_id).is_some_and(|agent| agent.state == AgentState::Lost);
    Some(LostAgent { outgoing: tx.handoff(&id)?.agent_id == *agent_id, lost })
}

/// The successor has ended in a step that types to it or waits for its word.
pub(super) fn without_successor(tx: &Tx<'_>, id: HandoffId, fact: &Fact, what: &str) -> Next {
    match gone(tx, id, fact) {
        Some(LostAgent { outgoing: false, .. }) => {
            Next::fail("agent_ended", format!("The successor has ended before {what}"), ANOTHER)
        }
        Some(_) | None => Next::Stay,
    }
}

/// The outgoing agent has ended before its document was recorded.
pub(super) fn without_author(tx: &Tx<'_>, id: HandoffId, fact: &Fact) -> Next {
    match gone(tx, id, fact) {
        Some(LostAgent { outgoing: true, lost: true }) => {
            let message = "The agent's pane is gone, and tasuki did not see the agent end";
            Next::fail("pane_gone", message, "hand the agent off with author salvage, or start a new agent")
        }
        Some(LostAgent { outgoing: true, lost: false }) => authors::has_ended(),
        Some(_) | None => Next::Stay,
    }
}
