//! Receives the successor's ACK, and the operator's override.

use super::{checkpoint, content, messages, timeline};
use crate::contract::reply::HandoffReply;
use crate::core::handoff::row::{self, find};
use crate::core::handoff::{agents, driver};
use crate::core::id::{AgentId, HandoffId, RequestId};
use crate::core::reply::{Refused, Reply};
use crate::core::request::{AckRequest, MalformedAck, OverrideRequest};
use crate::core::rows::ack::{Ack, Kind, Message, Override, Received, Standing};
use crate::core::rows::handoff::{Handoff, Step};
use crate::core::settings::Target;
use crate::core::text::{normalise, quotable};
use crate::core::tx::Tx;

/// The most characters that a failure quotes from an ACK.
const MAX_QUOTED: usize = 600;

enum CheckedAck {
    /// The same ACK was received before. It gets the same answer.
    Again(HandoffReply),
    New {
        id: HandoffId,
        agent_id: AgentId,
        late: bool,
    },
}

/// `ack`.
pub(crate) fn asked(tx: &mut Tx<'_>, request: &RequestId, asked: &AckRequest) {
    match check(tx, asked) {
        Err(refused) => tx.refuse(request, refused),
        Ok(CheckedAck::Again(answer)) => tx.answer(request, Reply::ok(&answer)),
        Ok(CheckedAck::New { id, agent_id, late }) => {
            let received = Received {
                agent_id,
                understanding: asked.understanding.clone(),
                starting_from: asked.starting_from.clone(),
                questions: asked.questions.clone(),
                status: asked.status,
                at: tx.now.rfc3339(),
                late,
            };
            match receive(tx, id, &received) {
                Err(refused) => tx.refuse(request, refused),
                Ok(answer) => tx.answer(request, Reply::ok(&answer)),
            }
        }
    }
}

/// Checks an ACK in a fixed order, because the first failed check gives the answer: the handoff exists, the sender is
/// its successor, the handoff wants an ACK, and the successor is briefed.
fn check(tx: &Tx<'_>, asked: &AckRequest) -> Result<CheckedAck, Refused> {
    let handoff = find(tx, &asked.handoff_id)?;
    let agent_id = asked.agent_id.parse::<AgentId>().ok().filter(|id| handoff.successor_id == Some(*id));
    let Some(agent_id) = agent_id else {
        let message = "Only the successor that was briefed can acknowledge this handoff";
        let hint = "run tasuki ack in the successor's own pane, or give its agent_id";
        return Err(Refused::new(403, "not_successor", message).hint(hint).field("agent_id"));
    };
    let ack = wanted(handoff, "continue with the work")?;
    if let Some(received) = ack.received.as_ref().filter(|received| is_same(received, agent_id, asked)) {
        return Ok(CheckedAck::Again(answer(handoff, received)));
    }
    let late = check_time(handoff, |step| {
        let message = format!("The briefing has not arrived yet: the handoff is in step {}", step.as_str());
        Refused::new(409, "not_briefed", message).hint("acknowledge when you have read the briefing")
    })?;
    Ok(CheckedAck::New { id: handoff.handoff_id, agent_id, late })
}

/// Whether an ACK that arrives now is late. Refuses it if the handoff has ended, or with `early` if the successor is
/// not briefed yet.
fn check_time(handoff: &Handoff, early: impl FnOnce(Step) -> Refused) -> Result<bool, Refused> {
    let step = handoff.step;
    if step.hears_successor() {
        Ok(false)
    } else if step == Step::Failed && timed_out(handoff) {
        Ok(true)
    } else if step.is_end() {
        Err(row::already_ended_refusal(handoff))
    } else {
        Err(early(step))
    }
}

fn wanted<'h>(handoff: &'h Handoff, hint: &str) -> Result<&'h Ack, Refused> {
    let message = "The handoff asks for no acknowledgement: it has no urgency";
    handoff.ack.as_ref().ok_or_else(|| Refused::new(409, "no_ack_wanted", message).hint(hint))
}

fn timed_out(handoff: &Handoff) -> bool {
    handoff.error.as_ref().is_some_and(|error| error.code == "ack_timeout")
}

fn is_same(received: &Received, agent_id: AgentId, asked: &AckRequest) -> bool {
    received.agent_id == agent_id
        && received.understanding == asked.understanding
        && received.starting_from == asked.starting_from
        && received.questions == asked.questions
        && received.status == asked.status
}

fn answer(handoff: &Handoff, received: &Received) -> HandoffReply {
    let reply = HandoffReply::new(&handoff.handoff_id, received.standing().as_str());
    HandoffReply { late: Some(received.late), ..reply }
}

fn receive(tx: &mut Tx<'_>, id: HandoffId, received: &Received) -> Result<HandoffReply, Refused> {
    let standing = received.standing();
    driver::successor_heard(tx, id);
    // A late ACK that acknowledges ends the handoff; any other late ACK resumes it.
    if received.late && standing != Standing::Acknowledged {
        agents::bind_agents_and_clear_error(tx, id)?;
        driver::enter(tx, id, Step::Acknowledging);
    }
    let answer = {
        let Some(handoff) = tx.handoff_mut(&id) else { return Ok(HandoffReply::default()) };
        let answer = answer(handoff, received);
        if let Some(ack) = handoff.ack.as_mut() {
            ack.supersede(Some(received.clone()));
            ack.standing = standing;
        }
        answer
    };
    timeline::journal(tx, id, "successor");
    checkpoint::compare(tx, id, received);
    forward(tx, id, received, standing);
    match standing {
        Standing::Acknowledged => complete(tx, id),
        Standing::NeedsClarification => {
            let why = "the successor has answered";
            let is_void = |message: &Message| !matches!(message.kind, Kind::Clarification | Kind::DocumentPublished);
            messages::give_up(tx, id, is_void, why);
            timeline::start_timer(tx, id, Standing::NeedsClarification);
        }
        Standing::EnvironmentIssue
        | Standing::Rejected
        // An ACK never has the following standings.
        | Standing::NotAsked
        | Standing::Pending
        | Standing::AcknowledgedWithDelay
        | Standing::TimedOut => refuse_task(tx, id, received, standing),
    }
    Ok(answer)
}

/// Sends the ACK to the orchestrator. If that is the operator, only questions are sent: the operator is notified of the
/// step's end anyway.
fn forward(tx: &mut Tx<'_>, id: HandoffId, received: &Received, standing: Standing) {
    let orchestrator = tx.state.settings.orchestrator.clone();
    let is_operator = orchestrator == Target::Operator;
    if is_operator && standing != Standing::NeedsClarification {
        return;
    }
    let Some(handoff) = tx.handoff(&id) else { return };
    let json = content::handoff_ack(handoff, received);
    messages::notify_target(tx, id, Kind::HandoffAck, &orchestrator, json);
}

/// Ends the handoff, and notifies the escalation target.
fn complete(tx: &mut Tx<'_>, id: HandoffId) {
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.error = None;
    }
    messages::queue_address(tx, id);
    driver::enter(tx, id, Step::Done);
    let Some(handoff) = tx.handoff(&id) else { return };
    let Some(ack) = &handoff.ack else { return };
    let json = content::handoff_complete(handoff, ack);
    let target = tx.state.settings.escalation.clone();
    messages::notify_target(tx, id, Kind::HandoffComplete, &target, json);
}

/// The successor can't or won't do the work: the step fails with what the ACK says.
fn refuse_task(tx: &mut Tx<'_>, id: HandoffId, received: &Received, standing: Standing) {
    let said = std::iter::once(&received.understanding).chain(&received.questions);
    let said = quotable(&said.map(|text| normalise(text)).collect::<Vec<_>>().join(" / "), MAX_QUOTED);
    let (what, hint) = if standing == Standing::EnvironmentIssue {
        (
            "The successor can't set up its environment",
            "fix what the successor names, then tell it: tasuki clarify HANDOFF --answer TEXT; or start another \
             successor: tasuki retry HANDOFF --successor new",
        )
    } else {
        ("The successor has rejected the handoff", "start another successor: tasuki retry HANDOFF --successor new")
    };
    driver::fail(tx, id, "ack_rejected", format!("{what}: {said}"), hint);
}

/// An ACK without the right form: shows the form to the successor, once each time the step begins.
pub(crate) fn malformed(tx: &mut Tx<'_>, asked: &MalformedAck) {
    let id = asked.handoff_id.as_deref().and_then(|text| text.parse::<HandoffId>().ok());
    let by_agent = |tx: &Tx<'_>| {
        let agent_id = asked.agent_id.as_deref()?.parse::<AgentId>().ok()?;
        tx.agent(&agent_id)?.handoff_id
    };
    let Some(id) = id.or_else(|| by_agent(tx)) else { return };
    let Some(handoff) = tx.handoff(&id).filter(|handoff| handoff.step.hears_successor()) else { return };
    if handoff.ack.as_ref().is_none_or(|ack| ack.form_typed) {
        return;
    }
    let is_other = asked.agent_id.as_ref().is_some_and(|text| text.parse().ok() != handoff.successor_id);
    if is_other {
        return;
    }
    driver::successor_heard(tx, id);
    let Some(handoff) = tx.handoff(&id) else { return };
    let Some(ack) = &handoff.ack else { return };
    let json =
        content::request(handoff, ack, "Your acknowledgement did not have the right form, and was not accepted.");
    let text = timeline::with_instructions(tx, handoff, &json);
    if let Some(ack) = tx.handoff_mut(&id).and_then(|handoff| handoff.ack.as_mut()) {
        ack.form_typed = true;
    }
    messages::to_successor(tx, id, Kind::Form, json, text);
}

/// `ack_override`: continues as if the successor had acknowledged.
pub(crate) fn overridden(tx: &mut Tx<'_>, request: &RequestId, asked: &OverrideRequest) {
    match override_check(tx, asked) {
        Err(refused) => tx.refuse(request, refused),
        Ok((id, agent_id)) => {
            driver::successor_heard(tx, id);
            let at = tx.now.rfc3339();
            if let Some(ack) = tx.handoff_mut(&id).and_then(|handoff| handoff.ack.as_mut()) {
                let by = agent_id.map_or_else(|| "operator".to_owned(), |agent_id| agent_id.to_string());
                ack.overridden = Some(Override { reason: asked.reason.clone(), by, at });
                ack.standing = Standing::AcknowledgedWithDelay;
            }
            timeline::journal(tx, id, if agent_id.is_some() { "orchestrator" } else { "operator" });
            complete(tx, id);
            let status = Standing::AcknowledgedWithDelay.as_str();
            tx.answer(request, Reply::ok(&HandoffReply::new(&id, status)));
        }
    }
}

/// Checks an override. Returns the handoff's id, and the orchestrator's id if the orchestrator is an agent and has sent
/// the override.
fn override_check(tx: &Tx<'_>, asked: &OverrideRequest) -> Result<(HandoffId, Option<AgentId>), Refused> {
    let handoff = find(tx, &asked.handoff_id)?;
    let agent_id = asked.agent_id.as_deref().map(|text| orchestrating(tx, handoff.handoff_id, text)).transpose()?;
    wanted(handoff, "there is nothing to override: this handoff waits for no acknowledgement")?;
    check_time(handoff, |step| {
        let message = format!("The handoff does not wait for an acknowledgement in step {}", step.as_str());
        Refused::new(409, "not_acknowledging", message).hint("wait until the successor is briefed")
    })?;
    Ok((handoff.handoff_id, agent_id))
}

/// The agent that wants to override, if it is the orchestrator of this handoff. The two agents of the handoff never
/// are.
fn orchestrating(tx: &Tx<'_>, id: HandoffId, text: &str) -> Result<AgentId, Refused> {
    let agent_id = match &tx.state.settings.orchestrator {
        Target::Agent(who) => messages::addressee(tx, id, who).ok(),
        Target::Operator | Target::Command(_) => None,
    };
    agent_id.filter(|agent_id| text.parse().ok() == Some(*agent_id)).ok_or_else(|| {
        let message = "Only the operator, or the agent that escalation.orchestrator names, can override";
        let hint = "leave it to the operator, who runs tasuki ack-override outside an agent's pane or with --human";
        Refused::new(403, "not_orchestrator", message).hint(hint).field("agent_id")
    })
}
