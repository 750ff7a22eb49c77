//! Waits until the agent can take the instruction.

use crate::core::fact::Fact;
use crate::core::handoff::authors;
use crate::core::handoff::duties::{Duties, LostAgent, gone, without_author};
use crate::core::handoff::next::{Entry, Next};
use crate::core::id::HandoffId;
use crate::core::request::Assume;
use crate::core::rows::agent::{Agent, AgentState};
use crate::core::rows::handoff::Step;
use crate::core::settings::Limits;
use crate::core::tx::Tx;

pub(super) struct Waiting;

impl Duties for Waiting {
    fn limit_ms(&self, limits: &Limits) -> Option<u64> {
        Some(limits.waiting_ms)
    }

    fn begin(&self, tx: &mut Tx<'_>, id: HandoffId, _how: Entry) -> Next {
        let Some(handoff) = tx.handoff_mut(&id) else { return Next::Stay };
        // One limit for the whole step, even if an attempt has met a busy agent and the step waits again.
        handoff.stay.deadline = handoff.wait_until.or(handoff.stay.deadline);
        handoff.wait_until = handoff.stay.deadline;
        self.run_ready(tx, id)
    }

    fn retry(&self, _tx: &mut Tx<'_>, _id: HandoffId, _assume: Option<Assume>) -> Next {
        Next::Again(Step::Waiting)
    }

    fn run_ready(&self, tx: &mut Tx<'_>, id: HandoffId) -> Next {
        let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
        let Some(agent) = tx.agent(&handoff.agent_id) else { return Next::Stay };
        let needs_agent = !authors::needs_no_agent(handoff.author);
        if !needs_agent && (agent.is_free() || handoff.now || !agent.state.is_live()) {
            Next::Enter(Step::Recording)
        } else if needs_agent && (agent.is_free() || (handoff.now && can_be_interrupted(tx, agent))) {
            Next::Enter(Step::Instructing)
        } else {
            Next::Stay
        }
    }

    fn learned(&self, tx: &mut Tx<'_>, id: HandoffId, fact: &Fact) -> Next {
        let needs_none = tx.handoff(&id).is_some_and(|handoff| authors::needs_no_agent(handoff.author));
        match gone(tx, id, fact) {
            // An agent that is not asked for the document need not live for it.
            Some(LostAgent { outgoing: true, .. }) if needs_none => Next::Enter(Step::Recording),
            Some(_) | None => without_author(tx, id, fact),
        }
    }

    fn due(&self, _tx: &mut Tx<'_>, _id: HandoffId) -> Next {
        Next::fail(
            "agent_busy",
            "The agent stayed busy until the time limit",
            "retry, or request the handoff again with now",
        )
    }
}

/// Whether an instruction may be typed into a running turn: only where turn ids tell later whose Stop it was.
fn can_be_interrupted(tx: &Tx<'_>, agent: &Agent) -> bool {
    let knows_turns = tx.state.settings.profiles.get(&agent.profile).is_some_and(|profile| profile.turn_ids);
    agent.state == AgentState::Busy && agent.typing.is_none() && agent.our_turn.is_none() && knows_turns
}
