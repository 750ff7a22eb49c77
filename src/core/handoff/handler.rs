//! The trait of a step, with a method for each thing that may happen, and helpers for agents that have ended.

use super::authors;
use super::next::{Entry, Next};
use crate::core::effect::Outcome;
use crate::core::fact::Fact;
use crate::core::id::{AgentId, HandoffId};
use crate::core::request::{Assume, Successor};
use crate::core::rows::agent::AgentState;
use crate::core::rows::handoff::Handoff;
use crate::core::settings::Limits;
use crate::core::tx::Tx;

/// The hint for a handoff whose successor has ended, if a plain retry starts another.
const HINT_ANOTHER_SUCCESSOR: &str = "document and record are kept; to start another successor: tasuki retry HANDOFF";
/// The hint if a plain retry would find nobody to take over.
pub(super) const HINT_NEW_SUCCESSOR: &str =
    "document and record are kept; start another successor: tasuki retry HANDOFF --successor new";

/// A step of a handoff: what it does when something happens, and what follows. Most default methods do nothing.
pub(super) trait StepHandler {
    /// Its time limit in milliseconds. `None` if the step does not wait, or has deadlines of its own.
    fn limit_ms(&self, _limits: &Limits) -> Option<u64> {
        None
    }

    /// The handoff has entered this step.
    fn begin(&self, tx: &mut Tx<'_>, id: HandoffId, how: Entry) -> Next;

    /// The handoff leaves this step. The driver cancels the step's effect and its texts; this method stops what else
    /// the step has started, such as timers.
    fn leave(&self, _tx: &mut Tx<'_>, _id: HandoffId) {}

    /// The outcome of the effect that the step waited for.
    fn settled(&self, _tx: &mut Tx<'_>, _id: HandoffId, _outcome: Outcome) -> Next {
        Next::Stay
    }

    /// A state machine of one of the handoff's agents has learned a fact.
    fn learned(&self, _tx: &mut Tx<'_>, _id: HandoffId, _fact: &Fact) -> Next {
        Next::Stay
    }

    /// The successor has sent an ACK, well-formed or not, or the missing ACK was overridden. Either way, the briefing
    /// counts as read.
    fn successor_heard(&self, _tx: &mut Tx<'_>, _id: HandoffId) -> Next {
        Next::Stay
    }

    /// The step may be able to continue, because this decision has changed the handoff or an agent that is bound to it.
    /// Not called while a text of the step is deferred.
    fn run_ready(&self, _tx: &mut Tx<'_>, _id: HandoffId) -> Next {
        Next::Stay
    }

    /// What follows once the record is added to the decision. The driver asks only `recording`.
    fn recorded(&self) -> Next {
        Next::Stay
    }

    /// The agent to which this step types. A deferred text of the step waits until that agent is free.
    fn types_to(&self, handoff: &Handoff) -> Option<AgentId> {
        handoff.successor_id
    }

    /// A deferred text can be typed now. By default the step begins again.
    fn type_deferred(&self, tx: &mut Tx<'_>, id: HandoffId) -> Next {
        let Some(step) = tx.handoff(&id).map(|handoff| handoff.step) else { return Next::Stay };
        self.begin(tx, id, Entry::From(step))
    }

    /// The step has failed, and the operator retries it. `assume`: whether the step's text arrived, as the operator
    /// says; `None` if there is no doubt about it.
    fn retry(&self, tx: &mut Tx<'_>, id: HandoffId, assume: Option<Assume>) -> Next;

    /// Whether a failure with this code means that the step's text may have arrived, or may not.
    fn leaves_doubt(&self, code: &str) -> bool {
        code == "unconfirmed"
    }

    /// The step's time limit has passed.
    fn due(&self, _tx: &mut Tx<'_>, _id: HandoffId) -> Next {
        Next::Stay
    }
}

/// One of the handoff's two agents, which has ended or is lost.
pub(super) struct EndedAgent {
    /// Whether it is the outgoing agent; otherwise it is the successor.
    pub(super) is_outgoing: bool,
    /// Whether its pane is gone and tasuki did not see it end.
    pub(super) is_lost: bool,
}

/// The agent that has ended, if the fact reports an end.
pub(super) fn ended_agent(tx: &Tx<'_>, id: HandoffId, fact: &Fact) -> Option<EndedAgent> {
    let Fact::Ended { agent_id } = fact else { return None };
    let is_lost = tx.agent(agent_id).is_some_and(|agent| agent.state == AgentState::Lost);
    Some(EndedAgent { is_outgoing: tx.handoff(&id)?.agent_id == *agent_id, is_lost })
}

/// The hint for a handoff whose successor has ended. A retry starts another by itself only if the successor was to be a
/// new agent.
pub(super) fn hint_successor_ended(tx: &Tx<'_>, id: HandoffId) -> &'static str {
    if starts_new_agents(tx, id) { HINT_ANOTHER_SUCCESSOR } else { HINT_NEW_SUCCESSOR }
}

/// Whether tasuki starts a new agent where the handoff has no successor.
pub(super) fn starts_new_agents(tx: &Tx<'_>, id: HandoffId) -> bool {
    tx.handoff(&id).is_some_and(|handoff| handoff.successor == Successor::New)
}

/// Fails the handoff if the successor has ended. `what` completes "The successor has ended before …".
pub(super) fn fail_if_successor_ended(tx: &Tx<'_>, id: HandoffId, fact: &Fact, what: &str) -> Next {
    match ended_agent(tx, id, fact) {
        Some(EndedAgent { is_outgoing: false, .. }) => {
            let message = format!("The successor has ended before {what}");
            Next::fail("agent_ended", message, hint_successor_ended(tx, id))
        }
        Some(_) | None => Next::Stay,
    }
}

/// Fails the handoff if the outgoing agent has ended before its document was recorded.
pub(super) fn fail_if_author_ended(tx: &Tx<'_>, id: HandoffId, fact: &Fact) -> Next {
    match ended_agent(tx, id, fact) {
        Some(EndedAgent { is_outgoing: true, is_lost: true }) => {
            let message = "The agent's pane is gone, and tasuki did not see the agent end";
            let salvage = authors::to_salvage(tx, id);
            Next::fail("pane_gone", message, &format!("{salvage}; or start a new agent"))
        }
        Some(EndedAgent { is_outgoing: true, is_lost: false }) => authors::author_ended(tx, id),
        Some(_) | None => Next::Stay,
    }
}
