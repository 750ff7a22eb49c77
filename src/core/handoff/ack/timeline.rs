//! The deadlines of an acknowledgement: a reminder after the time T of the handoff's urgency, a final reminder after
//! T/2 more, then after another T/2 the escalation, with which the step fails. Each counts from the deadline before it.
//! While the successor waits for answers to its questions, the same deadlines apply to the answers.

use super::{content, messages};
use crate::contract::ack::Weight;
use crate::contract::{JournalLine, LineType, maybe};
use crate::core::handoff::next::Next;
use crate::core::id::HandoffId;
use crate::core::prompts::{Acknowledge, How};
use crate::core::rows::ack::{AckTimer, Due, Kind, Message, Standing};
use crate::core::rows::handoff::{Handoff, Step};
use crate::core::time::{Deadline, rfc3339};
use crate::core::tx::Tx;

/// The step begins: after `reading`, by a retry, by a late ACK that does not acknowledge, or by answers after the step
/// has failed.
pub(crate) fn begin_step(tx: &mut Tx<'_>, id: HandoffId) {
    let timestamp = tx.now.rfc3339();
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    let Some(ack) = handoff.ack.as_mut() else { return };
    ack.sent_at = Some(timestamp);
    ack.form_typed = false;
    ack.overridden = None;
    ack.set_aside();
    start_timer(tx, id, Standing::Pending);
}

/// The briefing, which contained the notice, has arrived: sends the notice to the orchestrator too. The successor has
/// asked nothing yet.
pub(crate) fn briefed(tx: &mut Tx<'_>, id: HandoffId) {
    if let Some(ack) = tx.handoff_mut(&id).and_then(|handoff| handoff.ack.as_mut()) {
        ack.unanswered.clear();
    }
    let Some(handoff) = tx.handoff(&id) else { return };
    let Some(ack) = &handoff.ack else { return };
    let notice = content::handoff_notice(tx, handoff, ack);
    let orchestrator = tx.state.settings.orchestrator.clone();
    messages::briefed(tx, id, notice.clone());
    messages::notify_target(tx, id, Kind::HandoffNotice, &orchestrator, notice);
}

/// A retry: types a message that asks the same successor again.
pub(crate) fn ask_again(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let Some(ack) = &handoff.ack else { return };
    let json = content::request(handoff, ack, "The operator asks you again to acknowledge this handoff.");
    let text = with_instructions(tx, handoff, &json);
    messages::to_successor(tx, id, Kind::AskedAgain, json, text);
}

/// A document that came with answers is published: the successor gets its address.
pub(crate) fn document_published(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let is_updated = handoff.ack.as_ref().is_some_and(|ack| !ack.former_documents.is_empty());
    let is_acknowledging = handoff.step == Step::Acknowledging;
    let Some(url) = handoff.published_url().filter(|_| is_updated && (is_acknowledging || handoff.step == Step::Done))
    else {
        return;
    };
    let json = content::document_published(handoff, url);
    let text = with_instructions(tx, handoff, &json);
    let is_address = |message: &Message| message.kind == Kind::DocumentPublished;
    messages::give_up(tx, id, is_address, "a newer address takes its place");
    messages::to_successor(tx, id, Kind::DocumentPublished, json, text);
    if !is_acknowledging {
        messages::queue_address(tx, id);
    }
}

/// Begins the time T within which an ACK is due.
pub(crate) fn start_timer(tx: &mut Tx<'_>, id: HandoffId, standing: Standing) {
    let (now, times) = (tx.now, tx.state.settings.ack);
    let Some(ack) = tx.handoff_mut(&id).and_then(|handoff| handoff.ack.as_mut()) else { return };
    ack.limit_ms = times.of(ack.urgency);
    ack.round += 1;
    ack.standing = standing;
    ack.timer = Some(AckTimer { next: Due::Reminder, due: Deadline::after(&now, ack.limit_ms) });
}

/// The handoff leaves the step: stops its timer.
pub(crate) fn stop(tx: &mut Tx<'_>, id: HandoffId) {
    if let Some(ack) = tx.handoff_mut(&id).and_then(|handoff| handoff.ack.as_mut()) {
        ack.timer = None;
    }
}

pub(crate) fn due(tx: &mut Tx<'_>, id: HandoffId) -> Next {
    messages::end_retry_pauses(tx, id);
    let now = tx.now;
    let timer = tx.handoff(&id).and_then(|handoff| handoff.ack.as_ref()).and_then(|ack| ack.timer);
    let Some(timer) = timer.filter(|timer| timer.due.is_due(&now)) else { return Next::Stay };
    match timer.next {
        Due::Reminder => remind(tx, id, timer, Due::FinalReminder),
        Due::FinalReminder => remind(tx, id, timer, Due::Escalation),
        Due::Escalation => return escalate(tx, id, timer),
    }
    Next::Stay
}

/// Sends a reminder. The next deadline counts from the one that has passed. Gives up an earlier reminder if it has not
/// been typed yet.
fn remind(tx: &mut Tx<'_>, id: HandoffId, timer: AckTimer, next: Due) {
    let now = tx.now;
    give_up_untyped_reminders(tx, id);
    let Some(ack) = tx.handoff_mut(&id).and_then(|handoff| handoff.ack.as_mut()) else { return };
    ack.timer = Some(AckTimer { next, due: timer.due.following(&now, ack.limit_ms / 2) });
    let number = if next == Due::FinalReminder { 1 } else { 2 };
    let Some(handoff) = tx.handoff(&id) else { return };
    let Some(ack) = &handoff.ack else { return };
    let asks = ack.standing == Standing::NeedsClarification;
    let json = content::reminder(handoff, ack, number, !asks);
    if asks {
        let orchestrator = tx.state.settings.orchestrator.clone();
        messages::notify_target(tx, id, Kind::Reminder, &orchestrator, json);
    } else {
        let text = with_instructions(tx, handoff, &json);
        messages::to_successor(tx, id, Kind::Reminder, json, text);
    }
    messages::set_due_time_of_last(tx, id, &timer);
}

fn give_up_untyped_reminders(tx: &mut Tx<'_>, id: HandoffId) {
    let is_reminder = |message: &Message| message.kind == Kind::Reminder;
    messages::give_up(tx, id, is_reminder, "the text could not be typed before the next one was due");
}

/// Nobody answered in time: notifies the escalation target once, and fails the step.
fn escalate(tx: &mut Tx<'_>, id: HandoffId, timer: AckTimer) -> Next {
    give_up_untyped_reminders(tx, id);
    let Some(ack) = tx.handoff_mut(&id).and_then(|handoff| handoff.ack.as_mut()) else { return Next::Stay };
    let asked = ack.received.as_ref().filter(|_| ack.standing == Standing::NeedsClarification);
    let questions = asked.map(|received| received.questions.clone()).unwrap_or_default();
    ack.standing = Standing::TimedOut;
    ack.timer = None;
    let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
    let Some(ack) = &handoff.ack else { return Next::Stay };
    let json = content::escalation(handoff, ack);
    let target = tx.state.settings.escalation.clone();
    let message = match questions.is_empty() {
        true => {
            let said = json["content"]["message"].as_str().unwrap_or_default();
            format!("{said}; it had {}", content::span(2 * ack.limit_ms))
        }
        false => format!("Nobody answered the successor's questions in time: {}", questions.join(" / ")),
    };
    messages::notify_target(tx, id, Kind::Escalation, &target, json);
    messages::set_due_time_of_last(tx, id, &timer);
    let hint = match questions.is_empty() {
        true => {
            "a late ACK is still accepted; otherwise: tasuki retry HANDOFF (with --successor new for another \
             successor), or tasuki abandon HANDOFF"
        }
        false => {
            "the successor still waits; answer it, and the handoff continues: tasuki clarify HANDOFF --answer TEXT; \
             otherwise: tasuki retry HANDOFF --successor new for another successor, or tasuki abandon HANDOFF"
        }
    };
    Next::fail("ack_timeout", message, hint)
}

/// A text for the successor's pane: the message, and the instructions for an ACK.
pub(crate) fn with_instructions(tx: &Tx<'_>, handoff: &Handoff, json: &serde_json::Value) -> String {
    format!("{}\n\n{}", content::in_words(json), how(tx, handoff))
}

fn how(tx: &Tx<'_>, handoff: &Handoff) -> String {
    let settings = &tx.state.settings;
    settings.prompts.how(&How {
        command: &settings.command,
        requests_dir: &settings.requests_dir,
        form: &content::right_form(handoff),
    })
}

/// The part of the briefing that asks for an ACK: the handoff's id, predecessor and priority, and how and until when to
/// acknowledge. `None` if the handoff wants no ACK.
pub(crate) fn for_briefing(tx: &Tx<'_>, handoff: &Handoff) -> Option<String> {
    let ack = handoff.ack.as_ref()?;
    let limit_ms = tx.state.settings.ack.of(ack.urgency);
    let until = rfc3339(tx.now.wall_ms.saturating_add(i64::try_from(limit_ms).unwrap_or(i64::MAX)));
    Some(tx.state.settings.prompts.acknowledge(&Acknowledge {
        handoff_id: &handoff.handoff_id.to_string(),
        predecessor: &handoff.name_of(&handoff.agent_id),
        reason: &handoff.reason,
        priority: Weight::from(ack.urgency).as_str(),
        within: &content::span(limit_ms),
        until: &until,
        how: &how(tx, handoff),
    }))
}

/// Writes a journal line with the standing of the acknowledgement.
pub(crate) fn journal(tx: &mut Tx<'_>, id: HandoffId, by: &str) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let Some(ack) = &handoff.ack else { return };
    let late = ack.received.as_ref().is_some_and(|received| received.late);
    let line = JournalLine {
        successor_id: maybe(handoff.successor_id),
        status: Some(ack.standing.as_str().to_owned()),
        by: Some(by.to_owned()),
        late: Some(late),
        ..JournalLine::of_handoff(LineType::Ack, &id, &handoff.agent_id)
    };
    tx.journal(line);
}
