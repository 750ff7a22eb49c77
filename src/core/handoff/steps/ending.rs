//! Ends the outgoing agent: keeps its tmux session alive with a placeholder window, types its exit command, and waits
//! until its process is dead.

use crate::contract::handoff::Author;
use crate::core::agent::{cli_limits, exit, typing};
use crate::core::effect::{Effect, Outcome};
use crate::core::fact::{DeliveryResult, Fact};
use crate::core::handoff::handler::{EndedAgent, HINT_NEW_SUCCESSOR, StepHandler, ended_agent};
use crate::core::handoff::next::{Entry, Next};
use crate::core::handoff::{in_place, row, successors};
use crate::core::id::{AgentId, HandoffId};
use crate::core::pane::Refusal;
use crate::core::request::{Assume, Successor};
use crate::core::rows::agent::{Agent, AgentState, Purpose};
use crate::core::rows::handoff::{Handoff, OutgoingSession, Step};
use crate::core::settings::Limits;
use crate::core::tx::Tx;

const HINT_CANNOT_START: &str = "document and record are kept; remove the cause, then: tasuki retry HANDOFF, or with \
                                 --profile NAME for another CLI. To work in another directory, start the successor \
                                 yourself (tasuki agent create PERSONA --cwd DIR), then: tasuki retry HANDOFF \
                                 --successor AGENT";

pub(super) struct Ending;

impl StepHandler for Ending {
    fn limit_ms(&self, limits: &Limits) -> Option<u64> {
        Some(limits.ending_ms)
    }

    /// The placeholder window comes first, because the agent's exit may close its tmux session.
    fn begin(&self, tx: &mut Tx<'_>, id: HandoffId, _how: Entry) -> Next {
        let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
        let tag = handoff.placeholder_tag();
        let Some(agent) = tx.agent(&handoff.agent_id) else { return Next::Stay };
        match (agent.state, agent.pane) {
            (AgentState::Ended, _) => Next::Enter(Step::Starting),
            // Nobody would be left to take over.
            _ if has_dead_successor(tx, handoff) => {
                let message = "The successor has ended, so tasuki has not ended the outgoing agent";
                Next::fail("successor_failed", message, HINT_NEW_SUCCESSOR)
            }
            // Nothing can be typed without a pane: wait for the end of the agent's process, if the process is known.
            (AgentState::Lost, _) | (_, None) => await_death(tx, id),
            // Only a successor in a new window needs the tmux session.
            (_, Some(pane)) if handoff.successor == Successor::New => {
                let (profile, cwd) = (successors::chosen_profile(handoff, agent).to_owned(), agent.cwd.clone());
                row::run(tx, id, Effect::HoldPlaceholder { pane, tag, profile, cwd });
                Next::Stay
            }
            (_, Some(_)) => type_exit(tx, id),
        }
    }

    fn retry(&self, _tx: &mut Tx<'_>, _id: HandoffId, _assume: Option<Assume>) -> Next {
        Next::Retry(Step::Ending)
    }

    fn settled(&self, tx: &mut Tx<'_>, id: HandoffId, outcome: Outcome) -> Next {
        if let Outcome::Placeholder(place) = outcome {
            if let Some(handoff) = tx.handoff_mut(&id) {
                handoff.successor_window = place;
            }
            type_exit(tx, id)
        } else if let Outcome::CannotStart { why } = outcome {
            let message = format!("The successor can't be started, so tasuki has not ended the outgoing agent: {why}");
            Next::fail("successor_failed", message, HINT_CANNOT_START)
        } else if let Outcome::Failed { .. } = outcome {
            type_exit(tx, id)
        } else if outcome == Outcome::Done {
            // The effect was `AwaitDeath`: the agent, whose pane is gone, is dead.
            let Some(agent_id) = tx.handoff(&id).map(|handoff| handoff.agent_id) else { return Next::Stay };
            tx.set_state(&agent_id, AgentState::Ended);
            Next::Enter(Step::Starting)
        } else {
            Next::Stay
        }
    }

    fn learned(&self, tx: &mut Tx<'_>, id: HandoffId, fact: &Fact) -> Next {
        if let Fact::Verdict { purpose, result, .. } = fact {
            return after_command_verdict(tx, id, purpose, result);
        }
        in_place::learned(tx, id, fact);
        match ended_agent(tx, id, fact) {
            Some(EndedAgent { is_outgoing: true, is_lost: false }) => Next::Enter(Step::Starting),
            Some(EndedAgent { is_outgoing: true, is_lost: true }) => await_death(tx, id),
            Some(_) | None => Next::Stay,
        }
    }

    fn types_to(&self, handoff: &Handoff) -> Option<AgentId> {
        Some(handoff.agent_id)
    }

    fn type_deferred(&self, tx: &mut Tx<'_>, id: HandoffId) -> Next {
        type_exit(tx, id)
    }

    fn due(&self, tx: &mut Tx<'_>, id: HandoffId) -> Next {
        let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
        let is_in_place = handoff.successor == Successor::SamePane;
        let agent = tx.agent(&handoff.agent_id);
        let process = agent.and_then(|agent| agent.process);
        let pid = process.map_or_else(String::new, |process| format!(" (process {})", process.pid));
        let command = if is_in_place { "command for a new session" } else { "exit command" };
        let message = if handoff.stay.deferred {
            format!("The agent did not end its turn in time, so tasuki has not typed its {command}{pid}")
        } else if agent.is_some_and(|agent| agent.state == AgentState::Lost || agent.pane.is_none()) {
            format!("The agent's pane is gone, and its process did not end in time{pid}")
        } else if is_in_place {
            "The agent did not begin a new session after its command for a new session".to_owned()
        } else {
            format!("The agent did not end after its exit command{pid}")
        };
        let hint = match is_in_place {
            true => "look at the agent's pane, then: tasuki retry HANDOFF, or with --successor new",
            false => "end the agent yourself, then retry; the record is kept",
        };
        Next::fail("did_not_exit", message, hint)
    }
}

/// Whether the handoff goes to an agent that already ran, and that agent has ended.
fn has_dead_successor(tx: &Tx<'_>, handoff: &Handoff) -> bool {
    let is_existing = matches!(handoff.successor, Successor::Existing { .. });
    let successor = handoff.successor_id.and_then(|id| tx.agent(&id));
    is_existing && !successor.is_some_and(Agent::is_alive)
}

/// The outgoing agent's pane is gone: waits until its process is dead, if the process is known.
fn await_death(tx: &mut Tx<'_>, id: HandoffId) -> Next {
    row::stop(tx, id);
    let agent = tx.handoff(&id).and_then(|handoff| tx.agent(&handoff.agent_id));
    if let Some(process) = agent.and_then(|agent| agent.process) {
        row::run(tx, id, Effect::AwaitDeath { process });
        return Next::Stay;
    }
    if agent.is_some_and(|agent| agent.state.is_live()) {
        row::warn(tx, id, OutgoingSession::NOT_ENDED);
        if let Some(handoff) = tx.handoff_mut(&id) {
            handoff.session.may_still_run = true;
        }
    }
    Next::Enter(Step::Starting)
}

/// Types the exit command or the command for a new session. Defers it while another text is being typed or the agent is
/// in a turn.
fn type_exit(tx: &mut Tx<'_>, id: HandoffId) -> Next {
    let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
    let (agent_id, deadline) = (handoff.agent_id, handoff.stay.deadline);
    let Some(agent) = tx.agent(&agent_id) else { return Next::Stay };
    if agent.typing.is_none() && agent.state.is_in_a_turn() && ends_by_force(tx, handoff, agent) {
        return kill(tx, agent_id);
    }
    if agent.typing.is_some() || agent.state.is_in_a_turn() {
        return Next::Defer;
    }
    let purpose = match handoff.successor {
        Successor::SamePane => Purpose::NewSession(id),
        Successor::New | Successor::Existing { .. } => Purpose::Exit(Some(id)),
    };
    typing::begin_command(tx, &agent_id, purpose, deadline);
    Next::Stay
}

/// Whether the agent may be ended although a turn runs or a dialog is open: its CLI is still used up, so the turn only
/// waits and the dialog is about the limit. Its work was taken from the transcript. tasuki has started it, and a new
/// agent in a new window takes over.
fn ends_by_force(tx: &Tx<'_>, handoff: &Handoff, agent: &Agent) -> bool {
    let is_for_limit = handoff.after_limit && handoff.author == Author::Salvage;
    is_for_limit && agent.ours && handoff.successor == Successor::New && cli_limits::is_used_up(agent, tx.now.wall_ms)
}

/// Kills the agent's pane. If its process does not end, the step fails at its limit.
fn kill(tx: &mut Tx<'_>, agent_id: AgentId) -> Next {
    exit::kill_pane(tx, &agent_id);
    Next::Stay
}

fn after_command_verdict(tx: &mut Tx<'_>, id: HandoffId, purpose: &Purpose, result: &DeliveryResult) -> Next {
    let DeliveryResult::Refused(reason) = result else { return Next::Stay };
    let Some(agent_id) = tx.handoff(&id).map(|handoff| handoff.agent_id) else { return Next::Stay };
    let may_kill = matches!(reason, Refusal::Busy | Refusal::Dialog)
        && tx.handoff(&id).zip(tx.agent(&agent_id)).is_some_and(|(handoff, agent)| ends_by_force(tx, handoff, agent));
    if may_kill {
        return kill(tx, agent_id);
    }
    if *reason == Refusal::Busy {
        tx.set_state(&agent_id, AgentState::Busy);
        return Next::Defer;
    }
    if matches!(reason, Refusal::PaneGone | Refusal::PaneDead | Refusal::PaneChanged | Refusal::AgentEnded) {
        return Next::Stay; // Wait until the process ends, or until the limit.
    }
    let what = if matches!(purpose, Purpose::Exit(_)) { "exit command" } else { "command for a new session" };
    Next::fail("did_not_exit", reason.told(&format!("The {what} was not typed")), reason.hint())
}
