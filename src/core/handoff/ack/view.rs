//! What a dashboard reads of an acknowledgement: the field `ack` of a handoff's view.

use crate::core::rows::ack::{Ack, Due, Kind, Message, Received, priority, urgency_word};
use crate::core::rows::handoff::Handoff;
use serde_json::{Value, json};

/// The field `ack`; null where no acknowledgement is wanted.
#[must_use]
pub fn ack(handoff: &Handoff) -> Value {
    let Some(ack) = &handoff.ack else { return Value::Null };
    // What an earlier successor has said stands in `former` only.
    let of_this = |said: &&Received| Some(said.agent_id) == handoff.successor_id;
    let said = ack.received.as_ref().or(ack.former.last().filter(of_this));
    let of_last = |of: fn(&Received) -> Value| said.map_or(Value::Null, of);
    json!({
        "urgency": urgency_word(ack.urgency),
        "priority": priority(ack.urgency),
        "status": ack.standing.word(),
        "sent_at": ack.sent_at,
        "final_deadline": ack.final_deadline(),
        "next": ack.timer.map(|timer| json!({ "what": next(timer.next), "at": timer.due.stamp() })),
        "round": ack.round,
        "at": of_last(|said| json!(said.at)),
        "late": said.is_some_and(|said| said.late),
        "said": of_last(|said| json!(said.status)),
        "understanding": of_last(|said| json!(said.understanding)),
        "tasks": handoff.tasks,
        "starting_from": of_last(|said| json!(said.starting_from)),
        "checkpoint": ack.checkpoint,
        "questions": said.map(|said| said.questions.clone()).unwrap_or_default(),
        "answers": ack.answers,
        "unanswered": ack.unanswered,
        "override": ack.overridden,
        "former": ack.former,
        "former_documents": ack.former_documents,
        "reminders": of_kind(ack, Kind::Reminder),
        "escalations": of_kind(ack, Kind::Escalation),
        "messages": ack.messages.iter().map(message).collect::<Vec<_>>(),
        "reminders_sent": ack.reminders_sent(),
    })
}

fn next(next: Due) -> &'static str {
    match next {
        Due::Reminder => "reminder",
        Due::FinalReminder => "final_reminder",
        Due::Escalation => "escalation",
    }
}

fn of_kind(ack: &Ack, kind: Kind) -> Vec<Value> {
    let of = ack.messages.iter().filter(|message| message.kind == kind);
    of.map(|message| {
        json!({
            "number": message.number, "to": message.to, "due_at": message.due_at, "outcome": message.sending.word(),
            "at": message.at, "reason": message.reason,
            "reminder_number": message.json["content"].get("reminder_number"),
        })
    })
    .collect()
}

fn message(message: &Message) -> Value {
    json!({
        "number": message.number, "kind": message.kind.word(), "to": message.to, "due_at": message.due_at,
        "outcome": message.sending.word(), "at": message.at, "reason": message.reason, "message": message.json,
    })
}
