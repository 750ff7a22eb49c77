//! Fills the field `ack` of a handoff's view.

use crate::contract::AckView;
use crate::contract::ack::{MessageView, NextView, ReceivedView, SentView, Weight};
use crate::core::rows::ack::{Ack, Kind, Message, Received};
use crate::core::rows::handoff::Handoff;

/// The field `ack`; `None` if the handoff wants no acknowledgement.
#[must_use]
pub fn ack(handoff: &Handoff) -> Option<AckView> {
    let ack = handoff.ack.as_ref()?;
    // The ACKs of an earlier successor are shown in `former` only.
    let of_this = |said: &&Received| Some(said.agent_id) == handoff.successor_id;
    let said = ack.received.as_ref().or(ack.former.last().filter(of_this));
    Some(AckView {
        urgency: ack.urgency.into(),
        priority: Weight::from(ack.urgency).into(),
        status: ack.standing.into(),
        sent_at: ack.sent_at.clone(),
        final_deadline: ack.final_deadline(),
        next: ack.timer.map(|timer| NextView { what: timer.next.into(), at: timer.due.rfc3339() }),
        round: ack.round,
        at: said.map(|said| said.at.clone()),
        late: said.is_some_and(|said| said.late),
        said: said.map(|said| said.status.into()),
        understanding: said.map(|said| said.understanding.clone()),
        tasks: handoff.tasks.clone(),
        starting_from: said.map(|said| said.starting_from.clone()),
        checkpoint: ack.checkpoint.clone(),
        questions: said.map(|said| said.questions.clone()).unwrap_or_default(),
        answers: ack.answers.clone(),
        unanswered: ack.unanswered.clone(),
        r#override: ack.overridden.clone(),
        former: ack.former.iter().map(ReceivedView::from).collect(),
        former_documents: ack.former_documents.clone(),
        reminders: of_kind(ack, Kind::Reminder),
        escalations: of_kind(ack, Kind::Escalation),
        messages: ack.messages.iter().map(MessageView::from).collect(),
        reminders_sent: ack.reminders_sent() as u64,
    })
}

fn of_kind(ack: &Ack, kind: Kind) -> Vec<SentView> {
    ack.messages.iter().filter(|message| message.kind == kind).map(SentView::from).collect()
}

impl From<&Received> for ReceivedView {
    fn from(said: &Received) -> Self {
        ReceivedView {
            agent_id: said.agent_id.to_string(),
            understanding: said.understanding.clone(),
            starting_from: said.starting_from.clone(),
            questions: said.questions.clone(),
            status: said.status.into(),
            at: said.at.clone(),
            late: said.late,
        }
    }
}

impl From<&Message> for SentView {
    fn from(message: &Message) -> Self {
        SentView {
            number: message.number,
            to: message.to.clone(),
            due_at: message.due_at.clone(),
            outcome: message.sending.into(),
            at: message.at.clone(),
            reason: message.reason.clone(),
            reminder_number: message.reminder_number(),
        }
    }
}

impl From<&Message> for MessageView {
    fn from(message: &Message) -> Self {
        MessageView {
            number: message.number,
            kind: message.kind.into(),
            to: message.to.clone(),
            due_at: message.due_at.clone(),
            outcome: message.sending.into(),
            at: message.at.clone(),
            reason: message.reason.clone(),
            message: message.json.clone(),
        }
    }
}
