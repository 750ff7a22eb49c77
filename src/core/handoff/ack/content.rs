//! What the messages say: JSON with `to`, `subject`, `priority` and `content`, and the same as plain text for a pane or
//! a person.

use super::checkpoint;
use crate::contract::NoticeCode;
use crate::contract::ack::Weight;
use crate::core::notice::OperatorNotice;
use crate::core::request::{Clarification, form};
use crate::core::rows::ack::{Ack, Kind, Received};
use crate::core::rows::handoff::Handoff;
use crate::core::text::{quotable, sanitise};
use crate::core::tx::Tx;
use serde_json::{Value, json};

fn successor_name(handoff: &Handoff) -> String {
    handoff.successor_id.map_or_else(String::new, |id| handoff.name_of(&id))
}

/// A duration in words, such as "5 minutes".
#[must_use]
pub(crate) fn span(ms: u64) -> String {
    let plural = |n: u64, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    match ms {
        _ if ms >= 60_000 && ms.is_multiple_of(60_000) => plural(ms / 60_000, "minute"),
        _ if ms.is_multiple_of(1_000) => plural(ms / 1_000, "second"),
        _ => format!("{}.{} seconds", ms / 1_000, ms % 1_000 / 100),
    }
}

/// The address of the published document, or else the path of the file.
fn url(handoff: &Handoff) -> &str {
    handoff.published_url().unwrap_or(&handoff.file_path)
}

/// The form that this handoff's ACK must have, as text.
pub(crate) fn right_form(handoff: &Handoff) -> String {
    let agent_id = handoff.successor_id.map_or_else(String::new, |id| id.to_string());
    form(&handoff.handoff_id.to_string(), &agent_id)
}

/// The notice of the handoff, which asks for the ACK.
pub(crate) fn handoff_notice(tx: &Tx<'_>, handoff: &Handoff, ack: &Ack) -> Value {
    let predecessor = handoff.name_of(&handoff.agent_id);
    let session = tx.agent(&handoff.agent_id).and_then(|agent| agent.tmux_session.clone());
    let within = span(ack.limit_ms);
    json!({
        "to": successor_name(handoff),
        "subject": format!("[HANDOFF] Agent Replacement - You are replacing {predecessor}"),
        "priority": Weight::from(ack.urgency),
        "content": {
            "type": "replacement_handoff",
            "message": format!(
                "You are replacing {predecessor} due to {}. Full handoff document with all context is available at the URL below. \
                 Please ACK within {within} and confirm you understand the requirements.",
                handoff.reason
            ),
            "handoff_id": handoff.handoff_id,
            "handoff_url": url(handoff),
            "failed_agent": { "id": handoff.agent_id, "session": session },
            "tasks": handoff.tasks,
            "urgency": ack.urgency,
            "ack_required_within": within,
        },
    })
}

/// The message about an ACK to the orchestrator. If the successor starts from another point than the document says, the
/// message names both points.
pub(crate) fn handoff_ack(handoff: &Handoff, received: &Received) -> Value {
    let mut json = json!({
        "to": "",
        "subject": format!("[ACK] Handoff {} Received", handoff.handoff_id),
        "priority": "high",
        "content": {
            "type": "handoff_ack",
            "message": "Handoff received and reviewed",
            "handoff_id": handoff.handoff_id,
            "agent_id": received.agent_id,
            "understanding": received.understanding,
            "starting_from": received.starting_from,
            "questions": received.questions,
            "status": received.status,
            "late": received.late,
        },
    });
    if let Some(documented) = handoff.ack.as_ref().and_then(|ack| checkpoint::other_than(ack, received)) {
        json["content"]["documented_checkpoint"] = json!(documented);
    }
    json
}

/// A reminder. With `to_successor` it tells the successor that its ACK is missing; without, it tells the orchestrator
/// that questions are open.
pub(crate) fn reminder(handoff: &Handoff, ack: &Ack, reminder_number: u8, to_successor: bool) -> Value {
    let (what, message) = match to_successor {
        true => (
            "ACK Required for Handoff",
            "You have not acknowledged the replacement handoff. Please ACK immediately or indicate if you cannot accept this task.",
        ),
        false => ("Questions Open in Handoff", "The replacement agent waits for answers to its questions."),
    };
    let mut json = json!({
        "to": if to_successor { successor_name(handoff) } else { String::new() },
        "subject": format!("[REMINDER] {what} {}", handoff.handoff_id),
        "priority": "urgent",
        "content": {
            "type": "handoff_reminder",
            "message": message,
            "handoff_id": handoff.handoff_id,
            "original_sent": ack.sent_at,
            "reminder_number": reminder_number,
            "final_deadline": ack.final_deadline(),
        },
    });
    if let Some(received) = ack.received.as_ref().filter(|_| !to_successor) {
        json["content"]["questions"] = json!(received.questions);
    }
    json
}

/// The answers to the successor's questions, with the path of the document if it was updated.
pub(crate) fn clarification(handoff: &Handoff, answers: &[Clarification], is_updated: bool) -> Value {
    let path = is_updated.then_some(handoff.file_path.as_str());
    clarifies(handoff, "Answers to your questions about the handoff", answers, path)
}

/// The message with the address at which an updated document is published.
pub(crate) fn document_published(handoff: &Handoff, url: &str) -> Value {
    clarifies(handoff, "The updated handoff document is published now", &[], Some(url))
}

fn clarifies(handoff: &Handoff, message: &str, answers: &[Clarification], updated: Option<&str>) -> Value {
    json!({
        "to": successor_name(handoff),
        "subject": format!("[CLARIFICATION] Re: Handoff {}", handoff.handoff_id),
        "priority": "high",
        "content": {
            "type": "handoff_clarification",
            "message": message,
            "handoff_id": handoff.handoff_id,
            "clarifications": answers,
            "updated_handoff_url": updated,
        },
    })
}

/// The escalation: nobody answered in time.
pub(crate) fn escalation(handoff: &Handoff, ack: &Ack) -> Value {
    let sent = ack.reminders_sent();
    let reminders = if sent == 1 { "1 reminder".to_owned() } else { format!("{sent} reminders") };
    let open = ack.received.as_ref().map(|received| received.questions.clone()).unwrap_or_default();
    // `EOA` is the prefix that subjects have in the protocol from which these messages come; programs match it.
    let (subject, message, action) = match open.is_empty() {
        true => (
            "[EOA-ESCALATE] Replacement Agent Not Responding",
            format!("Replacement agent has not acknowledged handoff after {reminders}"),
            "provide_alternative_agent",
        ),
        false => (
            "[EOA-ESCALATE] Replacement Agent Waits For Answers",
            format!("The replacement agent's questions were not answered after {reminders}"),
            "answer_questions",
        ),
    };
    json!({
        "to": "",
        "subject": subject,
        "priority": "urgent",
        "content": {
            "type": "escalation",
            "message": message,
            "failed_agent": handoff.name_of(&handoff.agent_id),
            "replacement_agent": successor_name(handoff),
            "handoff_id": handoff.handoff_id,
            "reminders_sent": sent,
            "tasks_affected": handoff.tasks,
            "questions": open,
            "action_required": action,
        },
    })
}

/// The message that the handoff is complete.
pub(crate) fn handoff_complete(handoff: &Handoff, ack: &Ack) -> Value {
    let received = ack.received.as_ref();
    json!({
        "to": "",
        "subject": format!("[HANDOFF] Handoff {} Complete", handoff.handoff_id),
        "priority": Weight::from(ack.urgency),
        "content": {
            "type": "handoff_complete",
            "message": format!(
                "{} has taken over from {}", successor_name(handoff), handoff.name_of(&handoff.agent_id)
            ),
            "handoff_id": handoff.handoff_id,
            "replacement_agent": successor_name(handoff),
            "replacement_status": ack.standing.as_str(),
            "understanding": received.map(|received| received.understanding.as_str()),
            "starting_from": received.map(|received| received.starting_from.as_str()),
            "late": received.is_some_and(|received| received.late),
            "override_reason": ack.overridden.as_ref().map(|by| by.reason.as_str()),
        },
    })
}

/// A request to acknowledge, with the form of an ACK and this message.
pub(crate) fn request(handoff: &Handoff, ack: &Ack, message: &str) -> Value {
    json!({
        "to": successor_name(handoff),
        "subject": format!("[ACK] Acknowledge Handoff {}", handoff.handoff_id),
        "priority": Weight::from(ack.urgency),
        "content": {
            "type": "handoff_ack_template",
            "message": message,
            "handoff_id": handoff.handoff_id,
            "final_deadline": ack.final_deadline(),
            "form": right_form(handoff),
        },
    })
}

pub(crate) fn in_one_line(json: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = format!("{}: {}", text(&json["subject"]), text(&json["content"]["message"]));
    let questions: Vec<String> = strings(&json["content"]["questions"]);
    let more = if questions.is_empty() { String::new() } else { format!(" Questions: {}", questions.join(" / ")) };
    quotable(&(line + &more), 500).replace(['\n', '\t'], " ")
}

/// A message to the operator, with a code and, where there is something to do, a hint.
pub(crate) fn for_operator(handoff: &Handoff, kind: Kind, json: Value) -> OperatorNotice {
    let short = handoff.handoff_id.short();
    let answer = format!(
        "tasuki handoffs show {short} prints the questions; to answer them: tasuki clarify {short} --answer TEXT"
    );
    let (code, hint) = match kind {
        Kind::HandoffAck | Kind::Reminder => (NoticeCode::QuestionOpen, answer),
        Kind::Escalation if strings(&json["content"]["questions"]).is_empty() => {
            (NoticeCode::Escalation, String::new())
        }
        Kind::Escalation => (NoticeCode::Escalation, answer),
        Kind::HandoffComplete => (NoticeCode::HandoffComplete, String::new()),
        // All but the first go to successors only.
        Kind::HandoffNotice | Kind::Form | Kind::Clarification | Kind::AskedAgain | Kind::DocumentPublished => {
            (NoticeCode::HandoffNotice, String::new())
        }
    };
    let notice = OperatorNotice::new(code, in_one_line(&json)).hint(hint).handoff(handoff.handoff_id).details(json);
    OperatorNotice { agent_id: handoff.successor_id, ..notice }
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// A message as plain text for a pane: subject, message, and the other fields.
pub(crate) fn in_words(json: &Value) -> String {
    let mut lines = Vec::new();
    lines.extend(json["subject"].as_str().map(str::to_owned));
    lines.extend(json["content"]["message"].as_str().map(str::to_owned));
    lines.push(String::new());
    for (name, value) in json["content"].as_object().into_iter().flatten() {
        if matches!(name.as_str(), "type" | "message") {
            continue;
        }
        let shown = match value {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            Value::Array(items) if items.is_empty() => continue,
            Value::Array(items) if items.iter().all(Value::is_string) => {
                strings(value).iter().map(|item| format!("\n- {item}")).collect()
            }
            Value::Array(items) => items.iter().map(pair).collect(),
            Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
        };
        lines.push(format!("{name}: {}", sanitise(&shown)));
    }
    lines.join("\n")
}

fn pair(item: &Value) -> String {
    let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
    format!("\n- Question: {}\n  Answer: {}", text("question"), text("answer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_people_say_them() {
        let said: Vec<String> = [300_000, 60_000, 90_000, 1_000, 1_500].map(span).into();
        assert_eq!(said, ["5 minutes", "1 minute", "90 seconds", "1 second", "1.5 seconds"]);
    }

    #[test]
    fn a_message_is_said_in_words() {
        let json = json!({"subject": "[S] x", "content": {"type": "t", "message": "M", "tasks": ["a", "b"], "none": null,
            "clarifications": [{"question": "Q?", "answer": "A"}]}});
        let text = in_words(&json);
        assert!(text.starts_with("[S] x\nM\n") && text.contains("tasks: \n- a\n- b"), "{text}");
        assert!(text.contains("- Question: Q?\n  Answer: A") && !text.contains("none"), "{text}");
        assert_eq!(in_one_line(&json), "[S] x: M");
    }
}
