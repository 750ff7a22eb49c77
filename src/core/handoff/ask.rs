//! The operator's requests about a handoff: retry, cancel, accept, rework, abandon.

use super::next::Next;
use super::row::{already_ended_refusal, find, warn};
use super::{agents, authors, driver, reader, steps, successors};
use crate::contract::reply::HandoffReply;
use crate::core::agent::register;
use crate::core::id::{HandoffId, RequestId};
use crate::core::persona::ProfileChoice;
use crate::core::reply::{Refused, Reply};
use crate::core::request::{Assume, RetryRequest, ReworkRequest, Successor};
use crate::core::rows::agent::AgentState;
use crate::core::rows::handoff::{CheckPhase, Handoff, ReadReason, Step};
use crate::core::tx::Tx;

/// `handoff_cancel`.
pub(crate) fn cancel(tx: &mut Tx<'_>, request: &RequestId, text: &str) {
    let id = match find(tx, text) {
        Err(refused) => return tx.refuse(request, refused),
        Ok(handoff) if handoff.step.is_end() => {
            let refused = already_ended_refusal(handoff);
            return tx.refuse(request, refused);
        }
        Ok(handoff) if handoff.step.is_between_record_and_end() => {
            let message = format!("It is too late to cancel: the handoff is in step {}", handoff.step.as_str());
            return tx.refuse(
                request,
                Refused::new(409, "too_late", message).hint("the record is kept; let the handoff finish"),
            );
        }
        Ok(handoff) => handoff.handoff_id,
    };
    driver::enter(tx, id, Step::Cancelled);
    tx.answer(request, Reply::ok(&HandoffReply::new(&id, Step::Cancelled.as_str())));
}

/// `handoff_abandon`.
pub(crate) fn abandon(tx: &mut Tx<'_>, request: &RequestId, text: &str) {
    let id = match find(tx, text) {
        Err(refused) => return tx.refuse(request, refused),
        Ok(handoff) if matches!(handoff.step, Step::Done | Step::Cancelled) => {
            let refused = already_ended_refusal(handoff);
            return tx.refuse(request, refused);
        }
        Ok(handoff) if handoff.step != Step::Failed => {
            let hint = "cancel the handoff, or wait until it ends";
            let message = "Only a failed handoff can be abandoned; this one is running";
            return tx.refuse(request, Refused::new(409, "handoff_in_progress", message).hint(hint));
        }
        Ok(handoff) => handoff.handoff_id,
    };
    driver::enter(tx, id, Step::Cancelled);
    let Some(handoff) = tx.handoff(&id) else { return };
    let (agent_id, successor_id) = (handoff.agent_id, handoff.successor_id);
    if tx.agent(&agent_id).is_some_and(|agent| agent.recorded_in == Some(id))
        && let Some(agent) = tx.agent_mut(&agent_id)
    {
        agent.recorded_in = None;
    }
    if let Some(successor_id) = successor_id {
        successors::abandon_start(tx, id, &successor_id);
    }
    tx.answer(request, Reply::ok(&HandoffReply::new(&id, Step::Cancelled.as_str())));
}

/// `handoff_accept`: reads the document now, and answers the request after that.
pub(crate) fn accept(tx: &mut Tx<'_>, request: &RequestId, text: &str) {
    let id = match find(tx, text) {
        Err(refused) => return tx.refuse(request, refused),
        Ok(handoff) => match accept_check(handoff) {
            Err(refused) => return tx.refuse(request, refused),
            Ok(()) => handoff.handoff_id,
        },
    };
    if let Err(refused) = agents::bind_agents(tx, id) {
        return tx.refuse(request, refused);
    }
    reader::begin(tx, id, ReadReason::Accepted(request.clone()));
}

fn accept_check(handoff: &Handoff) -> Result<(), Refused> {
    if matches!(handoff.step, Step::Done | Step::Cancelled) {
        return Err(already_ended_refusal(handoff));
    }
    if handoff.stay.reading.is_some() {
        return Err(Refused::new(409, "already_accepted", "tasuki is already reading the document"));
    }
    if matches!(handoff.place_in_flow(), Step::Writing | Step::Checking) {
        return Ok(());
    }
    if handoff.step == Step::Failed {
        return Err(already_ended_refusal(handoff));
    }
    let message = format!("There is nothing to accept in step {}", handoff.step.as_str());
    Err(Refused::new(409, "not_writing", message)
        .hint("a document can be accepted only in the steps writing and checking, or after a failure there"))
}

/// `handoff_rework`: asks the agent to repair its document, with the operator's words.
pub(crate) fn rework(tx: &mut Tx<'_>, request: &RequestId, asked: ReworkRequest) {
    let (id, is_failed) = match find(tx, &asked.handoff_id).and_then(|handoff| rework_check(tx, handoff)) {
        Err(refused) => return tx.refuse(request, refused),
        Ok(found) => found,
    };
    if is_failed && let Err(refused) = agents::bind_agents_and_clear_error(tx, id) {
        return tx.refuse(request, refused);
    }
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.examined.note = Some(asked.note);
    }
    tx.answer(request, Reply::ok(&HandoffReply::new(&id, "reworking")));
    let next = if is_failed { Next::Retry(Step::Checking) } else { steps::checking::rework(tx, id) };
    driver::proceed(tx, id, next);
}

/// Checks that the agent can be asked: while the handoff waits for a person in `checking`, or after a failure there.
/// Returns the handoff's id, and whether the handoff has failed.
fn rework_check(tx: &Tx<'_>, handoff: &Handoff) -> Result<(HandoffId, bool), Refused> {
    if matches!(handoff.step, Step::Done | Step::Cancelled) {
        return Err(already_ended_refusal(handoff));
    }
    let is_failed = handoff.step == Step::Failed;
    let is_held = handoff.stay.checking == Some(CheckPhase::Held) && handoff.stay.reading.is_none();
    if handoff.place_in_flow() != Step::Checking || !(is_held || is_failed) {
        let message = match handoff.stay.checking {
            Some(CheckPhase::Reworking | CheckPhase::AwaitingIdle) => {
                "The agent is repairing the document already".to_owned()
            }
            Some(CheckPhase::Examining | CheckPhase::Held) | None => {
                format!("The document can't be repaired in step {}", handoff.step.as_str())
            }
        };
        return Err(Refused::new(409, "not_checking", message).hint(
            "the agent can be asked while the handoff waits for you in step checking, or after a failure there",
        ));
    }
    if authors::needs_no_agent(handoff.author) {
        let message = "No agent has written the document, so none can be asked to repair it";
        return Err(Refused::new(409, "not_checking", message).hint("change the file yourself, then accept it"));
    }
    let agent = tx.agent(&handoff.agent_id).filter(|agent| agent.state.is_live());
    register::check_reach(tx, agent.ok_or_else(|| Refused::new(400, "not_active", "Agent is not active"))?)?;
    Ok((handoff.handoff_id, is_failed))
}

/// `handoff_retry`.
pub(crate) fn retry(tx: &mut Tx<'_>, request: &RequestId, asked: &RetryRequest) {
    match retry_check(tx, asked).and_then(|id| run_retry(tx, id, asked).map(|()| id)) {
        Err(refused) => tx.refuse(request, refused),
        Ok(id) => {
            let step = tx.handoff(&id).map(|handoff| handoff.step.into());
            tx.answer(request, Reply::ok(&HandoffReply { step, ..HandoffReply::new(&id, "retrying") }));
        }
    }
}

fn retry_check(tx: &Tx<'_>, asked: &RetryRequest) -> Result<HandoffId, Refused> {
    let handoff = find(tx, &asked.handoff_id)?;
    if matches!(handoff.step, Step::Done | Step::Cancelled) {
        return Err(already_ended_refusal(handoff));
    }
    let Some(error) = handoff.error.as_ref().filter(|_| handoff.step == Step::Failed) else {
        return Err(Refused::new(409, "handoff_in_progress", "The handoff is running: there is nothing to retry"));
    };
    if matches!(handoff.stay.reading, Some(ReadReason::Accepted(_))) {
        return Err(Refused::new(409, "already_accepted", "tasuki is already accepting the document"));
    }
    let other = other_successor(asked, handoff);
    if let Some(successor) = &other {
        if !error.step.is_between_record_and_end() {
            return Err(Refused::bad(
                "successor",
                "can be changed only after the document is recorded, from step ending on",
            ));
        }
        if let Some(outgoing) = tx.agent(&handoff.agent_id) {
            successors::check(tx, successor, outgoing, Some(handoff.handoff_id))?;
            choice_of_retry(tx, asked, successor, handoff)?;
        }
    }
    if driver::leaves_doubt(error) && asked.assume.is_none() && other.is_none() {
        return Err(in_doubt_refusal(handoff, error.step));
    }
    if other.is_none() {
        if let Some(refused) = lost_successor(tx, handoff) {
            return Err(refused);
        }
        if handoff.successor == Successor::New
            && handoff.successor_id.is_none()
            && error.step.is_between_record_and_end()
        {
            check_chosen_profile(tx, handoff)?;
        }
    }
    let agent = tx.agent(&handoff.agent_id);
    let is_live = agent.is_some_and(|agent| agent.state.is_live());
    let needs_agent = !authors::needs_no_agent(handoff.author);
    if matches!(error.step, Step::Waiting | Step::Instructing) && !is_live && needs_agent {
        return Err(Refused::new(400, "not_active", "Agent is not active"));
    }
    if tx.state.server.is_none() {
        return Err(match (error.step, handoff.successor_id) {
            (Step::Starting, Some(_)) => {
                let message = "No tmux server answers, so it can't be known whether the successor was started";
                Refused::new(409, "start_in_doubt", message).hint("start tmux, then retry")
            }
            _ => tx.no_tmux(),
        });
    }
    // A successor that is let go is not needed, wherever it runs.
    let successor_id = match &other {
        Some(Successor::Existing { agent_id }) => agent_id.parse().ok(),
        Some(Successor::New | Successor::SamePane) => None,
        None => handoff.successor_id,
    };
    let agents = [Some(handoff.agent_id), successor_id].into_iter().flatten();
    agents.filter_map(|id| tx.agent(&id)).try_for_each(|agent| register::check_reach(tx, agent))?;
    Ok(handoff.handoff_id)
}

fn in_doubt_refusal(handoff: &Handoff, step: Step) -> Refused {
    let step = step.as_str();
    let message = format!("It is not known whether the agent received the text of step {step} and followed it");
    let commands = steps::HINT_DOUBT.replace("HANDOFF", &handoff.handoff_id.short());
    let hint = format!("look at the pane; {commands} (in a request: the field assume, delivered or not_delivered)");
    Refused::new(409, "in_doubt", message).hint(hint)
}

/// Refuses a plain retry if the successor's pane is gone but its process may still run. The retry would start a second
/// successor beside it.
fn lost_successor(tx: &Tx<'_>, handoff: &Handoff) -> Option<Refused> {
    let successor = handoff.successor_id.and_then(|id| tx.agent(&id))?;
    let process = successor.process.filter(|_| successor.state == AgentState::Lost)?;
    let message = format!("The successor's pane is gone, but tasuki did not see its process {} end", process.pid);
    let hint = "end that process, then retry with another successor: --successor new";
    Some(Refused::new(409, "successor_lost", message).hint(hint))
}

fn run_retry(tx: &mut Tx<'_>, id: HandoffId, asked: &RetryRequest) -> Result<(), Refused> {
    let Some(handoff) = tx.handoff(&id) else { return Ok(()) };
    let Some(error) = handoff.error.clone() else { return Ok(()) };
    // An assumption counts if it is unknown whether the text arrived, or whether the successor has read the document.
    let knows = |assume: &Assume| error.step == Step::Reading && *assume == Assume::Delivered;
    let assume = asked.assume.filter(|assume| driver::leaves_doubt(&error) || knows(assume));
    if let Some(successor) = other_successor(asked, handoff) {
        let chosen = choice_of_retry(tx, asked, &successor, handoff)?;
        agents::check_free(tx, id, &handoff.agent_id)?;
        // The former successor may be in another handoff by now, so it is let go before both agents are bound.
        change_successor(tx, id, &successor, chosen);
        agents::bind_agents_and_clear_error(tx, id)?;
        enter_with_successor(tx, id);
        return Ok(());
    }
    agents::bind_agents_and_clear_error(tx, id)?;
    successors::let_go_if_gone(tx, id, &error);
    driver::retry(tx, id, error.step, assume);
    Ok(())
}

/// The successor that a retry names; `None` if it names no successor or the present one.
fn other_successor(asked: &RetryRequest, handoff: &Handoff) -> Option<Successor> {
    let present = handoff.successor_id.map(|id| id.to_string());
    let is_present = |successor: &Successor| match successor {
        Successor::Existing { agent_id } => present.as_deref() == Some(agent_id.as_str()),
        Successor::New | Successor::SamePane => false,
    };
    asked.other_successor().filter(|successor| !is_present(successor))
}

/// The profile and the model for the other successor that a retry names. `None`: the earlier choice stays.
fn choice_of_retry(
    tx: &Tx<'_>,
    asked: &RetryRequest,
    successor: &Successor,
    handoff: &Handoff,
) -> Result<Option<ProfileChoice>, Refused> {
    let Some(outgoing) = tx.agent(&handoff.agent_id) else { return Ok(None) };
    let keeps = *successor == Successor::New && handoff.successor == Successor::New;
    let (profile, model) = (asked.profile.as_deref(), asked.model.as_deref());
    if keeps && profile.is_none() && model.is_none() {
        check_chosen_profile(tx, handoff)?;
        return Ok(None);
    }
    // A model that is named without a profile belongs to the profile that was chosen before.
    let before = Some(handoff.choice.profile.as_str()).filter(|profile| keeps && !profile.is_empty());
    successors::choice(tx, successor, (profile.or(before), model), outgoing, &[]).map(Some)
}

/// Refuses if tasuki can't start an agent of the profile that was chosen before for the successor.
fn check_chosen_profile(tx: &Tx<'_>, handoff: &Handoff) -> Result<(), Refused> {
    let Some(outgoing) = tx.agent(&handoff.agent_id) else { return Ok(()) };
    successors::launchable(tx, successors::chosen_profile(handoff, outgoing)).map(drop)
}

/// Takes another successor, also for later retries. The one before is not ended, because nobody knows what it does.
fn change_successor(tx: &mut Tx<'_>, id: HandoffId, successor: &Successor, choice: Option<ProfileChoice>) {
    let was_started = tx.handoff(&id).filter(|handoff| handoff.successor == Successor::New);
    let before = was_started.and_then(|handoff| handoff.successor_id).and_then(|id| tx.agent(&id));
    if let Some(short) = before.filter(|agent| agent.is_alive()).map(|agent| agent.agent_id.short()) {
        let what = format!(
            "the successor {short}, which another one replaces, still runs; to end it: tasuki agent shutdown {short}"
        );
        warn(tx, id, &what);
    }
    successors::let_go(tx, id);
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.successor = successor.clone();
        if let Some(choice) = choice {
            handoff.choice = choice;
        }
    }
    if let Successor::Existing { agent_id } = successor
        && let Ok(agent_id) = agent_id.parse()
    {
        successors::bind_successor(tx, id, agent_id);
    }
}

/// Continues with the successor that was taken. If the outgoing agent has not ended, the step `ending` comes first.
/// That includes an agent that has only lost its pane, because its process may still run.
fn enter_with_successor(tx: &mut Tx<'_>, id: HandoffId) {
    let outgoing = tx.handoff(&id).and_then(|handoff| tx.agent(&handoff.agent_id));
    let has_ended = outgoing.is_none_or(|agent| agent.state == AgentState::Ended);
    driver::enter(tx, id, if has_ended { Step::Starting } else { Step::Ending });
}
