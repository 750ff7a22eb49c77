//! The journal, as others see it.

use super::words::{MaybeNull, Word, known, told, without_defaults, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    listed
    /// What a line reports.
    LineType {
        /// A step began, or the document grew.
        HandoffStep = "handoff.step",
        /// A handoff has failed.
        HandoffFailed = "handoff.failed",
        /// What an agent does.
        AgentState = "agent.state",
        /// A limit stops an agent's CLI.
        AgentLimited = "agent.limited",
        /// The verdict on a typed text.
        Delivery = "delivery",
        /// An acknowledgement was taken or overridden, its questions were answered, or a message about it was sent.
        Ack = "ack",
        /// The result of a reminder.
        Reminder = "reminder",
        /// The result of an escalation.
        Escalation = "escalation",
        /// The state of a publishing has changed.
        Publish = "publish",
        /// Something was done to a work item.
        Work = "work",
        /// A failure that halts no handoff.
        Error = "error",
        /// The operator was told of something that is not a failure.
        Notice = "notice",
    }
}

/// One line of `spool/journal.jsonl`. Ignore a last line without its newline. The first three fields are in every line;
/// which others are present depends on the type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct JournalLine {
    /// Rises by 1 from line to line, without gaps.
    pub seq: u64,
    /// When: UTC, milliseconds, `Z`.
    pub at: String,
    /// `handoff.step` (a step began, or the document grew), `handoff.failed`, `agent.state` (what an agent does; with
    /// `auto`, that its context has reached a limit of `config.toml`), `agent.limited` (a limit stops its CLI),
    /// `delivery` (the verdict on a typed text), `ack` (an acknowledgement was taken or overridden, its questions were
    /// answered, or a message about it was sent), `reminder` and `escalation` (what became of each), `publish` (the
    /// state of a publishing has changed), `work` (something was done to a work item), `error` (a failure that halts no
    /// handoff) or `notice` (the operator was told of something that is not a failure).
    pub r#type: Word<LineType>,
    /// The handoff that it is about.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "told")]
    #[schemars(with = "Option<String>")]
    pub handoff_id: MaybeNull,
    /// The work item that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_id: Option<String>,
    /// `work`: what was done: a word of the item's history, or `commented`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// `work`: the item's type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_type: Option<String>,
    /// `work`: the item that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "told")]
    #[schemars(with = "Option<String>")]
    pub parent_id: MaybeNull,
    /// `work`: the comment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment_id: Option<String>,
    /// The agent that it is about; in a handoff, the outgoing agent; `work`: the agent that has or had the item.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "told")]
    #[schemars(with = "Option<String>")]
    pub agent_id: MaybeNull,
    /// `handoff.step`: the successor, once there is one.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "told")]
    #[schemars(with = "Option<String>")]
    pub successor_id: MaybeNull,
    /// `handoff.step`: the step that began; `handoff.failed`: the step at which it stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// `handoff.step`: the size of the document that is being written, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document_bytes: Option<u64>,
    /// `agent.state`: the agent's persona.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "told")]
    #[schemars(with = "Option<String>")]
    pub persona_slug: MaybeNull,
    /// `agent.state`: what the agent does; `publish`: the state of the publishing; both in the words of their views.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// `agent.limited`: which limit, in the words of the agent's view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// `agent.limited`: when the limit ends, if the CLI says so.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "told")]
    #[schemars(with = "Option<String>")]
    pub until: MaybeNull,
    /// `delivery`: `instruction`, `priming`, `briefing`, `send`, `message`, `resume`, `work`, `exit` or
    /// `new_session`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// `delivery`: the id in the text's last line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    /// `delivery`: `delivered`, `unconfirmed` or `not_delivered`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// `agent.state` with `auto`: the share of the window that is used, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u64>,
    /// `agent.state`: `suggested` (the operator was notified), `begun` (an automatic handoff has begun) or `put_off`
    /// (it was deferred).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto: Option<String>,
    /// `delivery`: why, unless it is simply delivered; `agent.state`: why the automatic handoff was deferred; `work`:
    /// why it was done.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "told")]
    #[schemars(with = "Option<String>")]
    pub reason: MaybeNull,
    /// `ack`: the acknowledgement's status, in the words of the handoff's view; `work`: the item's status after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// `ack`: who has changed that: `successor`, `operator`, or `clarify`; `work`: an agent's id, `human`, `tasuki`, or
    /// the author of a comment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// `ack`: it came after the deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    /// `ack`, `reminder`, `escalation`: which message was sent, by its `kind` in the view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// `ack`, `reminder`, `escalation`: to whom; `publish`: `issue` or `gist`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// `ack`, `reminder`, `escalation`: what became of the message: `sent`, `unconfirmed`, `missed` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// `reminder`: 1, or 2 for the final one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reminder_number: Option<u64>,
    /// `publish`: which publication of the handoff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// `publish`: the address, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// `publish`: `redacted` or `as_is`, once the operator has decided about a document with credentials.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub publish_as: Option<String>,
    /// `handoff.failed`, `error`, `publish` that has failed: the name of the file in `spool/errors/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_id: Option<String>,
    /// `handoff.failed`, `error`, `publish`: the error code; `notice`: the notice's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// `handoff.failed`, `error`, `publish`, `notice`: the message, one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl JournalLine {
    /// A line of this type without other fields. `seq` and `at` are set when the line is written.
    #[must_use]
    pub fn new(r#type: LineType) -> Self {
        JournalLine { r#type: r#type.into(), ..JournalLine::default() }
    }

    /// A line about a handoff and its outgoing agent.
    #[must_use]
    pub fn of_handoff(r#type: LineType, handoff_id: &impl ToString, agent_id: &impl ToString) -> Self {
        let (handoff_id, agent_id) = (known(handoff_id), known(agent_id));
        JournalLine { handoff_id, agent_id, ..JournalLine::new(r#type) }
    }

    /// A line about what somebody has done to a work item.
    #[must_use]
    pub fn of_work(item_id: &impl ToString, action: &str, by: &impl ToString) -> Self {
        let (item_id, action, by) = (item_id.to_string(), action.to_owned(), by.to_string());
        JournalLine { item_id: Some(item_id), action: Some(action), by: Some(by), ..JournalLine::new(LineType::Work) }
    }
}
