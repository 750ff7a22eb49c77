//! The acknowledgement of a handoff: its state, the ACKs that arrived, and the messages that were sent.

use crate::contract::ack::{AckStatus, Clarification, Urgency};
use crate::core::effect::EffectKey;
use crate::core::id::{AgentId, RequestId};
use crate::core::time::Deadline;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::contract::ack::{
    Due, FormerDocumentView as FormerDocument, Kind, OverrideView as Override, Sending, Standing,
};

/// Most ACKs that are kept beside the last one.
const MOST_FORMER: usize = 16;

/// The running timer of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AckTimer {
    pub next: Due,
    pub due: Deadline,
}

/// An ACK that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    pub agent_id: AgentId,
    pub understanding: String,
    pub starting_from: String,
    pub questions: Vec<String>,
    /// What the successor says that it will do.
    pub status: AckStatus,
    pub at: String,
    /// It came after the time was up.
    pub late: bool,
}

impl Received {
    /// The standing that follows from this ACK. A successor with questions is not ready, whatever its status says.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match self.status {
            AckStatus::ReadyToProceed if self.questions.is_empty() => Standing::Acknowledged,
            AckStatus::ReadyToProceed | AckStatus::NeedsClarification => Standing::NeedsClarification,
            AckStatus::EnvironmentIssue => Standing::EnvironmentIssue,
            AckStatus::Rejected => Standing::Rejected,
        }
    }
}

/// Answers whose updated document is being written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clarifying {
    /// The request, which is answered when the document is durable.
    pub request_id: RequestId,
    pub clarifications: Vec<Clarification>,
    pub file_name: String,
    /// The hash of the text that was given; none in a row of an earlier version.
    #[serde(default)]
    pub sha256: Option<String>,
    /// The document could not be checked, and is taken as it is.
    #[serde(default)]
    pub unchecked: bool,
}

/// One message of an acknowledgement: to whom, what, and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub number: u32,
    pub kind: Kind,
    /// It is typed to the successor; otherwise it goes to the orchestrator or the escalation target.
    pub to_successor: bool,
    /// The recipient, as views name it.
    pub to: String,
    pub due_at: String,
    pub sending: Sending,
    pub at: Option<String>,
    /// Why it did not arrive, or may not have.
    pub reason: Option<String>,
    /// The message as a configured command gets it.
    pub json: Value,
    /// The text to type; `None` if the message is not typed, or will not be typed any more.
    pub text: Option<String>,
    pub effect: Option<EffectKey>,
    /// When tasuki tries again to type it.
    pub again: Option<Deadline>,
    /// How often it was refused so far.
    pub refusals: u32,
}

impl Message {
    /// The number of a reminder; `None` for a message of another kind.
    #[must_use]
    pub fn reminder_number(&self) -> Option<u64> {
        self.json["content"]["reminder_number"].as_u64()
    }
}

/// All that is known of an urgent handoff's acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    pub urgency: Urgency,
    /// The time T, in milliseconds, as it was set when the present round began.
    pub limit_ms: u64,
    /// The number of the present round; 0 before the first.
    pub round: u32,
    /// When the successor was first asked for an ACK.
    pub sent_at: Option<String>,
    pub standing: Standing,
    pub timer: Option<AckTimer>,
    pub received: Option<Received>,
    /// The ACKs before it, oldest first, at most 16.
    pub former: Vec<Received>,
    pub overridden: Option<Override>,
    /// The checkpoint that the document states.
    pub checkpoint: Option<String>,
    /// The right form was already typed to the successor, because of a malformed ACK.
    pub form_typed: bool,
    pub clarifying: Option<Clarifying>,
    /// The answers that were given, oldest first. Only the last ones are kept.
    pub answers: Vec<Clarification>,
    pub unanswered: Vec<String>,
    /// Documents that an updated document has replaced.
    pub former_documents: Vec<FormerDocument>,
    /// All messages, sent or not.
    pub messages: Vec<Message>,
    pub next_message: u32,
}

impl Ack {
    /// The acknowledgement of a handoff that has just been requested.
    #[must_use]
    pub fn new(urgency: Urgency) -> Self {
        Ack {
            urgency,
            limit_ms: 0,
            round: 0,
            sent_at: None,
            standing: Standing::NotAsked,
            timer: None,
            received: None,
            former: Vec::new(),
            overridden: None,
            checkpoint: None,
            form_typed: false,
            clarifying: None,
            answers: Vec::new(),
            unanswered: Vec::new(),
            former_documents: Vec::new(),
            messages: Vec::new(),
            next_message: 1,
        }
    }

    /// Replaces the last ACK by this one; `None` only takes it away. The ACK that was there moves to `former`.
    pub(crate) fn supersede(&mut self, received: Option<Received>) {
        self.former.extend(std::mem::replace(&mut self.received, received));
        let from = self.former.len().saturating_sub(MOST_FORMER);
        self.former.drain(..from);
    }

    /// The successor's questions that the last answers have left open; none once it has sent another ACK.
    pub(crate) fn left_open(&self) -> &[String] {
        if self.received.is_none() { &self.unanswered } else { &[] }
    }

    /// The present ACK becomes a former one. What it asks stays open.
    pub(crate) fn set_aside(&mut self) {
        if let Some(received) = &self.received {
            self.unanswered.clone_from(&received.questions);
        }
        self.supersede(None);
    }

    /// How many reminders of this round may have been read.
    pub(crate) fn reminders_sent(&self) -> usize {
        let began = self.messages.iter().rposition(|message| {
            matches!(message.kind, Kind::HandoffNotice | Kind::Clarification | Kind::AskedAgain | Kind::HandoffAck)
        });
        let round = &self.messages[began.unwrap_or(0)..];
        let may_be_read = |message: &&Message| {
            message.kind == Kind::Reminder
                && matches!(message.sending, Sending::Sent | Sending::Open | Sending::Unconfirmed)
        };
        round.iter().filter(may_be_read).count()
    }

    /// The last message of this kind that does not go to the successor.
    pub(crate) fn last_to_others(&self, kind: Kind) -> Option<&Message> {
        self.messages.iter().rev().find(|message| message.kind == kind && !message.to_successor)
    }

    /// Whether a message is in flight and its outcome unknown.
    #[must_use]
    pub fn has_message_in_flight(&self) -> bool {
        self.messages.iter().any(|message| message.sending == Sending::Open)
    }

    /// Whether a message has not been sent yet.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        self.messages.iter().any(|message| message.sending == Sending::Waiting)
    }

    /// All running deadlines.
    pub fn deadlines(&self) -> impl Iterator<Item = &Deadline> {
        let tries = self.messages.iter().filter_map(|message| message.again.as_ref());
        self.timer.as_ref().map(|timer| &timer.due).into_iter().chain(tries)
    }

    /// The same deadlines, to be converted after a reboot.
    pub fn deadlines_mut(&mut self) -> impl Iterator<Item = &mut Deadline> {
        let tries = self.messages.iter_mut().filter_map(|message| message.again.as_mut());
        self.timer.as_mut().map(|timer| &mut timer.due).into_iter().chain(tries)
    }

    /// When the step fails if nothing happens, as a timestamp.
    #[must_use]
    pub fn final_deadline(&self) -> Option<String> {
        let timer = self.timer?;
        let half = self.limit_ms / 2;
        let more = match timer.next {
            Due::Reminder => 2 * half,
            Due::FinalReminder => half,
            Due::Escalation => 0,
        };
        Some(timer.due.rfc3339_after(more))
    }
}
