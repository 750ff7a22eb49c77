//! Sends the messages of an acknowledgement and records what became of each. A message to the successor is typed once,
//! when the agent is free. The orchestrator and the escalation target get theirs as the configuration says: as a
//! notification of the operator, by a command, or typed into an agent.

use super::content;
use crate::contract::{JournalLine, LineType, maybe};
use crate::core::agent::queue;
use crate::core::agent::typing::{self, Text};
use crate::core::effect::{Effect, Notice, NotifyPlan, Outcome};
use crate::core::fact::DeliveryResult;
use crate::core::id::{AgentId, HandoffId};
use crate::core::pane::Refusal;
use crate::core::rows::ack::{AckTimer, Kind, Message, Sending};
use crate::core::rows::agent::{AgentState, Asker, Purpose, Queued};
use crate::core::rows::handoff::Step;
use crate::core::rows::outbox::Waiter;
use crate::core::settings::Target;
use crate::core::text::wire_name;
use crate::core::time::Deadline;
use crate::core::tx::{Failure, Tx};
use serde_json::{Value, json};

/// The most messages that a handoff keeps; the oldest finished ones are dropped.
const MOST_MESSAGES: usize = 100;
/// The first pause before a refused text is tried again, and the longest, in milliseconds.
const PAUSE_MS: (u64, u64) = (2_000, 60_000);

/// Adds a message to the handoff's row; returns its number.
fn note(tx: &mut Tx<'_>, id: HandoffId, message: Message) -> Option<u32> {
    let ack = tx.handoff_mut(&id)?.ack.as_mut()?;
    let number = ack.next_message;
    ack.next_message += 1;
    ack.messages.push(Message { number, ..message });
    if ack.messages.len() > MOST_MESSAGES {
        let settled = |message: &Message| !matches!(message.sending, Sending::Waiting | Sending::Open);
        if let Some(oldest) = ack.messages.iter().position(settled) {
            ack.messages.remove(oldest);
        }
    }
    Some(number)
}

fn message(tx: &Tx<'_>, kind: Kind, to: String, json: Value) -> Message {
    Message {
        number: 0,
        kind,
        to_successor: false,
        to,
        due_at: tx.now.rfc3339(),
        sending: Sending::Open,
        at: None,
        reason: None,
        json,
        text: None,
        effect: None,
        again: None,
        refusals: 0,
    }
}

/// Adds a message to the successor; [`type_next_message`] types it.
pub(crate) fn to_successor(tx: &mut Tx<'_>, id: HandoffId, kind: Kind, json: Value, text: String) {
    let to = json["to"].as_str().unwrap_or_default().to_owned();
    let message = message(tx, kind, to, json);
    note(tx, id, Message { to_successor: true, sending: Sending::Waiting, text: Some(text), ..message });
}

/// Notes when the last message was due: at the deadline that caused it, which may have passed some time ago.
pub(crate) fn set_due_time_of_last(tx: &mut Tx<'_>, id: HandoffId, timer: &AckTimer) {
    let ack = tx.handoff_mut(&id).and_then(|handoff| handoff.ack.as_mut());
    if let Some(message) = ack.and_then(|ack| ack.messages.last_mut()) {
        message.due_at = timer.due.rfc3339();
    }
}

/// Adds the notice of the handoff as a message that is already sent, because it was a part of the briefing.
pub(crate) fn briefed(tx: &mut Tx<'_>, id: HandoffId, json: Value) {
    let to = json["to"].as_str().unwrap_or_default().to_owned();
    let (message, at) = (message(tx, Kind::HandoffNotice, to, json), Some(tx.now.rfc3339()));
    note(tx, id, Message { to_successor: true, sending: Sending::Sent, at, ..message });
}

/// Sends a message to the orchestrator or the escalation target.
pub(crate) fn notify_target(tx: &mut Tx<'_>, id: HandoffId, kind: Kind, target: &Target, mut json: Value) {
    json["to"] = json!(target.name());
    let message = message(tx, kind, target.name(), json.clone());
    let Some(number) = note(tx, id, message) else { return };
    match target {
        Target::Operator => notify(tx, id, number, None, json),
        Target::Command(command) => notify(tx, id, number, Some(command.clone()), json),
        Target::Agent(who) => {
            if let Err(why) = queue(tx, id, number, who, &json) {
                settle(tx, id, number, Sending::Failed, Some(&why));
            }
        }
    }
}

fn notify(tx: &mut Tx<'_>, handoff_id: HandoffId, number: u32, command: Option<Vec<String>>, json: Value) {
    let Some(kind) = find(tx, handoff_id, number).map(|message| message.kind) else { return };
    let notice = match (&command, tx.handoff(&handoff_id)) {
        (None, Some(handoff)) => {
            let record = content::for_operator(handoff, kind, json).record(&tx.now);
            Notice { error_id: None, text: format!("tasuki: {}", record.notice), json: json!(record) }
        }
        (Some(_), _) | (None, None) => {
            Notice { error_id: None, text: format!("tasuki: {}", content::in_one_line(&json)), json }
        }
    };
    let effect = tx.effect(
        Waiter::Message(handoff_id, number),
        Effect::Notify(NotifyPlan { handoff_id, number, command, notice }),
    );
    if let Some(message) = find(tx, handoff_id, number) {
        message.effect = Some(effect);
    }
}

/// Queues the text for another agent until that agent is idle, with the usual limit for queued texts.
fn queue(tx: &mut Tx<'_>, id: HandoffId, number: u32, who: &str, json: &Value) -> Result<(), String> {
    let agent_id = addressee(tx, id, who)?;
    let deadline = Deadline::after(&tx.now, tx.state.settings.limits.waiting_ms);
    let agent = tx.agent_mut(&agent_id).ok_or_else(|| "there is no such agent".to_owned())?;
    if agent.queue.len() >= queue::MAX_QUEUE {
        return Err("too many texts already wait for that agent".to_owned());
    }
    agent.queue.push(Queued { asker: Asker::Message(id, number), text: content::in_words(json), deadline });
    Ok(())
}

/// The live agent that a target names by id or persona. The two agents of the handoff itself do not count.
pub(super) fn addressee(tx: &Tx<'_>, id: HandoffId, who: &str) -> Result<AgentId, String> {
    let handoff = tx.handoff(&id);
    let own = |agent_id: &AgentId| {
        handoff.is_some_and(|handoff| handoff.agent_id == *agent_id || handoff.successor_id == Some(*agent_id))
    };
    let named = |agent_id: &AgentId| {
        let agent = tx.agent(agent_id)?;
        let fits = agent_id.to_string() == who || agent.persona_slug.as_ref().is_some_and(|slug| slug.as_str() == who);
        (fits && agent.state.is_live() && agent.persona_slug.is_some() && !own(agent_id)).then_some(*agent_id)
    };
    let found: Vec<AgentId> = tx.agent_ids().iter().filter_map(named).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(format!("no agent {who} is running")),
        _ => Err(format!("{} agents {who} are running: name one by its id", found.len())),
    }
}

fn find<'t>(tx: &'t mut Tx<'_>, id: HandoffId, number: u32) -> Option<&'t mut Message> {
    let ack = tx.handoff_mut(&id)?.ack.as_mut()?;
    ack.messages.iter_mut().find(|message| message.number == number)
}

/// Types the next message that waits for the successor, if the successor is free. Called after each change of the
/// successor.
pub(crate) fn type_next_message(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id).filter(|handoff| handoff.step == Step::Acknowledging) else { return };
    let (Some(ack), Some(successor_id)) = (&handoff.ack, handoff.successor_id) else { return };
    let is_next = |message: &&Message| message.sending == Sending::Waiting && message.again.is_none();
    let Some(number) = ack.messages.iter().find(is_next).map(|message| message.number) else { return };
    if !tx.agent(&successor_id).is_some_and(|agent| agent.is_free() && agent.handoff_id == Some(id)) {
        return;
    }
    let Some(message) = find(tx, id, number) else { return };
    message.sending = Sending::Open;
    let body = message.text.clone().unwrap_or_default();
    let text = Text { first_line: "Message from tasuki about your handoff.".to_owned(), body, allow_busy: false };
    typing::begin(tx, &successor_id, Purpose::Message(id, number), text, None);
}

pub(crate) fn verdict(tx: &mut Tx<'_>, id: HandoffId, number: u32, agent_id: &AgentId, result: &DeliveryResult) {
    match result {
        DeliveryResult::Delivered(remark) => settle(tx, id, number, Sending::Sent, remark.as_deref()),
        DeliveryResult::Unconfirmed(reason) => settle(tx, id, number, Sending::Unconfirmed, Some(reason)),
        DeliveryResult::Refused(reason) => refused(tx, id, number, agent_id, *reason),
    }
}

/// Nothing was typed. If the reason is temporary, a message to the successor is tried again, after a growing pause.
fn refused(tx: &mut Tx<'_>, id: HandoffId, number: u32, agent_id: &AgentId, reason: Refusal) {
    let is_acknowledging = tx.handoff(&id).is_some_and(|handoff| handoff.step == Step::Acknowledging);
    let now = tx.now;
    let Some(message) = find(tx, id, number) else { return };
    if !message.to_successor || !is_temporary(reason) {
        return settle(tx, id, number, Sending::Failed, Some(&wire_name(&reason)));
    }
    if !is_acknowledging {
        return settle(tx, id, number, Sending::Missed, Some(&wire_name(&reason)));
    }
    let pause = (PAUSE_MS.0 << message.refusals.min(8)).min(PAUSE_MS.1);
    message.refusals = message.refusals.saturating_add(1);
    message.sending = Sending::Waiting;
    message.reason = Some(wire_name(&reason));
    if reason == Refusal::Busy {
        // The successor's screen showed a turn that no event had reported. The message waits for the end of that turn.
        return tx.set_state(agent_id, AgentState::Busy);
    }
    message.again = Some(Deadline::after(&now, pause));
}

/// Whether the reason why nothing was typed is temporary.
fn is_temporary(reason: Refusal) -> bool {
    matches!(
        reason,
        Refusal::Busy
            | Refusal::Dialog
            | Refusal::Draft
            | Refusal::NotReady
            | Refusal::BareShell
            | Refusal::InputOff
            | Refusal::CopyMode
            | Refusal::NoTmux
    )
}

pub(crate) fn end_retry_pauses(tx: &mut Tx<'_>, id: HandoffId) {
    let now = tx.now;
    let is_due = |message: &Message| message.again.is_some_and(|again| again.is_due(&now));
    let any =
        tx.handoff(&id).and_then(|handoff| handoff.ack.as_ref()).is_some_and(|ack| ack.messages.iter().any(is_due));
    if !any {
        return;
    }
    let Some(ack) = tx.handoff_mut(&id).and_then(|handoff| handoff.ack.as_mut()) else { return };
    ack.messages.iter_mut().filter(|message| is_due(message)).for_each(|message| message.again = None);
}

/// The outcome of the effect that notified the operator or ran the target's command.
pub(crate) fn notified(tx: &mut Tx<'_>, id: HandoffId, number: u32, outcome: Outcome) {
    let why = if let Outcome::Failed { why } = outcome { Some(why) } else { None };
    let sending = if why.is_some() { Sending::Failed } else { Sending::Sent };
    settle(tx, id, number, sending, why.as_deref());
}

/// A message that waited for its agent will not be typed. If it was for the successor, that is not a failure: the
/// successor is at work by then.
pub(crate) fn not_typed(tx: &mut Tx<'_>, id: HandoffId, number: u32, why: &str) {
    let is_for_successor = find(tx, id, number).is_some_and(|message| message.to_successor);
    let sending = if is_for_successor { Sending::Missed } else { Sending::Failed };
    settle(tx, id, number, sending, Some(why));
}

/// The handoff is done: queues the address of the updated document, if one waits, until the successor is idle. Other
/// messages that wait are given up when the handoff leaves its step.
pub(crate) fn queue_address(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let (Some(ack), Some(successor_id)) = (&handoff.ack, handoff.successor_id) else { return };
    let is_address =
        |message: &&Message| message.kind == Kind::DocumentPublished && message.sending == Sending::Waiting;
    let Some(message) = ack.messages.iter().rfind(is_address) else { return };
    let (number, text) = (message.number, content::in_words(&message.json));
    let deadline = Deadline::after(&tx.now, tx.state.settings.limits.waiting_ms);
    let agent = tx.agent(&successor_id).filter(|agent| agent.state.is_live() && agent.queue.len() < queue::MAX_QUEUE);
    if agent.is_none() {
        return settle(tx, id, number, Sending::Missed, Some("the successor can't take it any more"));
    }
    if let Some(agent) = tx.agent_mut(&successor_id) {
        agent.queue.push(Queued { asker: Asker::Message(id, number), text, deadline });
    }
    if let Some(message) = find(tx, id, number) {
        (message.sending, message.text, message.again) = (Sending::Open, None, None);
    }
}

/// Gives up messages that wait for the successor.
pub(crate) fn give_up(tx: &mut Tx<'_>, id: HandoffId, which: impl Fn(&Message) -> bool, why: &str) {
    let Some(ack) = tx.handoff(&id).and_then(|handoff| handoff.ack.as_ref()) else { return };
    let waits = |message: &&Message| message.sending == Sending::Waiting && which(message);
    let numbers: Vec<u32> = ack.messages.iter().filter(waits).map(|message| message.number).collect();
    for number in numbers {
        settle(tx, id, number, Sending::Missed, Some(why));
    }
}

/// Finishes a message: notes what became of it, writes a journal line, and notifies the operator if it failed.
fn settle(tx: &mut Tx<'_>, id: HandoffId, number: u32, sending: Sending, reason: Option<&str>) {
    let timestamp = tx.now.rfc3339();
    let Some(message) = find(tx, id, number) else { return };
    if !matches!(message.sending, Sending::Waiting | Sending::Open) {
        return;
    }
    message.sending = sending;
    message.at = Some(timestamp);
    message.reason = reason.map(str::to_owned);
    message.effect = None;
    message.again = None;
    message.text = None;
    let message = message.clone();
    let Some(handoff) = tx.handoff(&id) else { return };
    let kind = match message.kind {
        Kind::Reminder => LineType::Reminder,
        Kind::Escalation => LineType::Escalation,
        Kind::HandoffNotice
        | Kind::Form
        | Kind::Clarification
        | Kind::DocumentPublished
        | Kind::AskedAgain
        | Kind::HandoffAck
        | Kind::HandoffComplete => LineType::Ack,
    };
    let line = JournalLine {
        successor_id: maybe(handoff.successor_id),
        notice: Some(message.kind.as_str().to_owned()),
        to: Some(message.to.clone()),
        outcome: Some(sending.as_str().to_owned()),
        reason: maybe(reason),
        reminder_number: message.reminder_number(),
        ..JournalLine::of_handoff(kind, &id, &handoff.agent_id)
    };
    tx.journal(line);
    if sending == Sending::Failed {
        report_failed(tx, id, &message);
    }
}

/// Reports a failed message as an error of its own. The handoff does not fail.
fn report_failed(tx: &mut Tx<'_>, id: HandoffId, message: &Message) {
    let agent_id = tx.handoff(&id).map(|handoff| handoff.agent_id);
    let why = message.reason.clone().unwrap_or_default();
    let what = match message.kind {
        Kind::Escalation => "The escalation",
        Kind::Reminder => "A reminder",
        Kind::HandoffNotice
        | Kind::Form
        | Kind::Clarification
        | Kind::DocumentPublished
        | Kind::AskedAgain
        | Kind::HandoffAck
        | Kind::HandoffComplete => "A message",
    };
    let code = if message.kind == Kind::Escalation { "escalation_failed" } else { "message_failed" };
    let hint = if message.to_successor {
        "look at the successor's pane, and tell the successor yourself"
    } else {
        "tell the recipient yourself, and correct [escalation] in config.toml for the next time"
    };
    tx.notify_error(Failure {
        code: code.to_owned(),
        message: format!(
            "{what} about handoff {} did not reach {} ({}): {why}",
            id.short(),
            message.to,
            message.kind.as_str()
        ),
        hint: hint.to_owned(),
        handoff_id: Some(id),
        agent_id,
        step: None,
    });
}
