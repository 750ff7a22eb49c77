//! Waits until the agent can take the instruction. If no agent is to write the document, waits until the agent is free
//! or has ended.

use crate::core::fact::Fact;
use crate::core::handoff::authors;
use crate::core::handoff::handler::{EndedAgent, StepHandler, ended_agent, fail_if_author_ended};
use crate::core::handoff::next::{Entry, Next};
use crate::core::id::HandoffId;
use crate::core::request::Assume;
use crate::core::rows::agent::{Agent, AgentState};
use crate::core::rows::handoff::Step;
use crate::core::settings::Limits;
use crate::core::tx::Tx;

pub(super) struct Waiting;

impl StepHandler for Waiting {
    fn limit_ms(&self, limits: &Limits) -> Option<u64> {
        Some(limits.waiting_ms)
    }

    fn begin(&self, tx: &mut Tx<'_>, id: HandoffId, _how: Entry) -> Next {
        let Some(handoff) = tx.handoff_mut(&id) else { return Next::Stay };
        // The first deadline stays, even if the instruction found a busy agent and the handoff returned to this step.
        handoff.stay.deadline = handoff.wait_until.or(handoff.stay.deadline);
        handoff.wait_until = handoff.stay.deadline;
        self.run_ready(tx, id)
    }

    fn retry(&self, _tx: &mut Tx<'_>, _id: HandoffId, _assume: Option<Assume>) -> Next {
        Next::Retry(Step::Waiting)
    }

    fn run_ready(&self, tx: &mut Tx<'_>, id: HandoffId) -> Next {
        let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
        let Some(agent) = tx.agent(&handoff.agent_id) else { return Next::Stay };
        let needs_agent = !authors::needs_no_agent(handoff.author);
        if !needs_agent && (agent.is_free() || handoff.interrupts_turn || !agent.state.is_live()) {
            Next::Enter(Step::Recording)
        } else if needs_agent && (agent.is_free() || (handoff.interrupts_turn && can_be_interrupted(tx, agent))) {
            Next::Enter(Step::Instructing)
        } else {
            Next::Stay
        }
    }

    fn learned(&self, tx: &mut Tx<'_>, id: HandoffId, fact: &Fact) -> Next {
        let needs_none = tx.handoff(&id).is_some_and(|handoff| authors::needs_no_agent(handoff.author));
        match ended_agent(tx, id, fact) {
            // This author does not need the agent to be alive.
            Some(EndedAgent { is_outgoing: true, .. }) if needs_none => Next::Enter(Step::Recording),
            Some(_) | None => fail_if_author_ended(tx, id, fact),
        }
    }

    fn due(&self, tx: &mut Tx<'_>, id: HandoffId) -> Next {
        let handoff = tx.handoff(&id);
        let agent = handoff.and_then(|handoff| tx.agent(&handoff.agent_id));
        if agent.is_some_and(|agent| agent.state == AgentState::Starting) {
            let hint = "look at the agent's pane: tasuki does not see there that the agent waits for input; when it does, \
                        tasuki retry HANDOFF";
            return Next::fail("agent_busy", "The agent did not become ready before the time limit", hint);
        }
        let hint = match handoff.is_some_and(|handoff| handoff.interrupts_turn) {
            true => "wait until the agent's turn has ended, then: tasuki retry HANDOFF",
            false => "tasuki retry HANDOFF, or begin it again with --now",
        };
        Next::fail("agent_busy", "The agent stayed busy until the time limit", hint)
    }
}

/// Whether an instruction may be typed during a running turn. That needs turn ids, which show later which turn a Stop
/// ended.
fn can_be_interrupted(tx: &Tx<'_>, agent: &Agent) -> bool {
    let knows_turns = tx.state.settings.profiles.get(&agent.profile).is_some_and(|profile| profile.turn_ids);
    agent.state == AgentState::Busy && agent.typing.is_none() && agent.our_turn.is_none() && knows_turns
}
