//! The successor reads its document. The step ends when the successor's turn ends, when its transcript shows that it
//! has read the document, when it sends an ACK, or at the time limit if it lives. If the turn fails or the successor
//! dies before that, the step fails: the successor has not taken over the work.

use crate::core::agent::context_usage;
use crate::core::effect::{Effect, Outcome};
use crate::core::fact::Fact;
use crate::core::handoff::handler::{
    EndedAgent, HINT_NEW_SUCCESSOR, StepHandler, ended_agent, hint_successor_ended, starts_new_agents,
};
use crate::core::handoff::next::{Entry, Next};
use crate::core::handoff::{row, successors};
use crate::core::hook::{HookEvent, HookKind};
use crate::core::id::{AgentId, HandoffId};
use crate::core::request::Assume;
use crate::core::rows::agent::{AgentState, OurTurn, Purpose};
use crate::core::rows::handoff::{Read, Step};
use crate::core::settings::Limits;
use crate::core::tx::Tx;

pub(super) struct Reading;

impl StepHandler for Reading {
    fn limit_ms(&self, limits: &Limits) -> Option<u64> {
        Some(limits.reading_ms)
    }

    /// The briefing arrived: waits for the end of the turn that answers it.
    fn begin(&self, tx: &mut Tx<'_>, id: HandoffId, _how: Entry) -> Next {
        let now = tx.now;
        successors::extend_chain(tx, id);
        let Some(handoff) = tx.handoff_mut(&id) else { return Next::Stay };
        handoff.read = None;
        let (outgoing, Some(successor_id)) = (handoff.agent_id, handoff.successor_id) else { return Next::Stay };
        let Some(agent) = tx.agent_mut(&successor_id) else { return Next::Stay };
        agent.previous_agent_id.get_or_insert(outgoing);
        if tx.agent(&outgoing).is_some_and(|agent| agent.successor_id != Some(successor_id))
            && let Some(agent) = tx.agent_mut(&outgoing)
        {
            agent.successor_id = Some(successor_id);
        }
        let Some(agent) = tx.agent_mut(&successor_id) else { return Next::Stay };
        let is_ours = agent.our_turn.as_ref().is_some_and(|turn| turn.purpose == Purpose::Briefing(id));
        if !is_ours && agent.state == AgentState::Idle {
            // The operator says that the briefing arrived. Its turn is over, and how it ended is unknown.
            return leave_reading(tx, id, Read::Unseen);
        }
        agent.answering = Some(id);
        context_usage::briefed(&now, agent);
        agent.our_turn.get_or_insert_with(|| OurTurn::of(Purpose::Briefing(id)));
        await_read(tx, id, &successor_id);
        Next::Stay
    }

    fn settled(&self, tx: &mut Tx<'_>, id: HandoffId, outcome: Outcome) -> Next {
        // If the watch has failed, the end of the turn still ends the step.
        if outcome == Outcome::Done { leave_reading(tx, id, Read::Seen) } else { Next::Stay }
    }

    fn retry(&self, tx: &mut Tx<'_>, id: HandoffId, assume: Option<Assume>) -> Next {
        if let Err(next) = successors::to_retry_with(tx, id) {
            return next;
        }
        match assume {
            // The operator says that the successor has what it needs.
            Some(Assume::Delivered) => Next::AssumeDelivered(Step::Reading),
            // The turn has failed: the same successor is briefed again.
            Some(Assume::NotDelivered) | None => Next::Retry(Step::Briefing),
        }
    }

    fn learned(&self, tx: &mut Tx<'_>, id: HandoffId, fact: &Fact) -> Next {
        if let Fact::OurTurnEnded { purpose: Purpose::Briefing(_), event, .. } = fact {
            return turn_ended(tx, id, event.as_deref());
        }
        if let Fact::SessionReplaced { agent_id, .. } = fact
            && let Some(handoff) = tx.handoff_mut(&id)
            && handoff.successor_id.as_ref() == Some(agent_id)
        {
            handoff.stay.session_replaced = true;
        }
        match ended_agent(tx, id, fact) {
            Some(EndedAgent { is_outgoing: false, .. }) => successor_ended(tx, id),
            Some(_) | None => Next::Stay,
        }
    }

    fn successor_heard(&self, tx: &mut Tx<'_>, id: HandoffId) -> Next {
        leave_reading(tx, id, Read::Seen)
    }

    /// A successor that lives has probably begun its work, so this is not a failure.
    fn due(&self, tx: &mut Tx<'_>, id: HandoffId) -> Next {
        if let Some(failed) = session_lost(tx, id) {
            return failed;
        }
        let successor = tx.handoff(&id).and_then(|handoff| handoff.successor_id).and_then(|id| tx.agent(&id));
        if successor.is_some_and(|agent| agent.state.is_live() && agent.pending_exit.is_none()) {
            leave_reading(tx, id, Read::Unseen)
        } else {
            successor_ended(tx, id)
        }
    }
}

/// Watches the successor's transcript for its own call of a tool that reads the document, if the profile says how such
/// calls look. The end of this turn may come late: a good successor continues to work in the turn in which it reads.
fn await_read(tx: &mut Tx<'_>, id: HandoffId, successor_id: &AgentId) {
    let Some(agent) = tx.agent(successor_id) else { return };
    let sees = tx.state.settings.profiles.get(&agent.profile).is_some_and(|profile| profile.reports_tools);
    let (Some(path), true) = (agent.transcript_path.clone(), sees) else { return };
    let (profile, agent_id) = (agent.profile.clone(), *successor_id);
    let Some(document) = tx.handoff(&id).map(|handoff| handoff.file_path.clone()) else { return };
    row::run(tx, id, Effect::AwaitRead { agent_id, profile, path, document });
}

/// The turn has ended. Without an event, tasuki inferred the end from the screen or from the id of another turn; an
/// inferred end counts as a success.
fn turn_ended(tx: &mut Tx<'_>, id: HandoffId, event: Option<&HookEvent>) -> Next {
    let Some(event) = event else {
        if let Some(failed) = session_lost(tx, id) {
            return failed;
        }
        row::warn(tx, id, "stop_inferred");
        return leave_reading(tx, id, Read::Seen);
    };
    let said = event.message.as_ref().map_or_else(String::new, |message| format!(": {message}"));
    match event.kind {
        HookKind::StopFailure => {
            failed(tx, id, &format!("The successor's turn ended in an error while it was to read its document{said}"))
        }
        HookKind::Interrupted => {
            failed(tx, id, "The successor's turn was interrupted while it was to read its document")
        }
        HookKind::SessionStart
        | HookKind::PromptSubmit
        | HookKind::Stop
        | HookKind::Blocked
        | HookKind::Notification
        | HookKind::Context
        | HookKind::SessionEnd => leave_reading(tx, id, Read::Seen),
    }
}

/// The failure if another session has replaced the successor's, and no event has reported the end of the turn since: a
/// person has begun a new session, which knows nothing of that turn.
fn session_lost(tx: &mut Tx<'_>, id: HandoffId) -> Option<Next> {
    let is_lost = tx.handoff(&id).is_some_and(|handoff| handoff.stay.session_replaced);
    let why =
        "Another session has replaced the successor's before the document was read; it has neither skill nor document";
    is_lost.then(|| failed_with(tx, id, why, HINT_NEW_SUCCESSOR))
}

/// The successor has ended or is lost.
fn successor_ended(tx: &mut Tx<'_>, id: HandoffId) -> Next {
    let hint = hint_successor_ended(tx, id);
    failed_with(tx, id, "The successor has ended while it was to read its document", hint)
}

/// Notes what is known of the turn, and enters the next step.
fn leave_reading(tx: &mut Tx<'_>, id: HandoffId, read: Read) -> Next {
    let Some(handoff) = tx.handoff_mut(&id) else { return Next::Stay };
    handoff.read = Some(read);
    Next::Enter(if handoff.ack.is_some() { Step::Acknowledging } else { Step::Done })
}

/// The turn has failed. The successor probably lives.
fn failed(tx: &mut Tx<'_>, id: HandoffId, why: &str) -> Next {
    let hint = if starts_new_agents(tx, id) {
        "document and record are kept; tasuki retry HANDOFF briefs the successor again, or starts another if it has \
         ended; tasuki retry HANDOFF --successor new always starts another"
    } else {
        "document and record are kept; tasuki retry HANDOFF briefs the successor again; tasuki retry HANDOFF \
         --successor new starts another"
    };
    failed_with(tx, id, why, hint)
}

fn failed_with(tx: &mut Tx<'_>, id: HandoffId, why: &str, hint: &str) -> Next {
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.read = Some(Read::Failed);
    }
    Next::fail("successor_failed", why, hint)
}
