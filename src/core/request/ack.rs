//! The request kinds of an acknowledgement: the ACK itself, the answers to its questions, and the operator's override.

use super::request_body::{DocumentRequest, Needs, PersonaOf, RequestBody, not_empty, optional};
use crate::contract::ack::{AckStatus, Clarification};
use crate::core::id::HandoffId;
use crate::core::reply::Refused;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest number of questions of one ACK, and of answers to them.
const MAX_QUESTIONS: usize = 64;
/// Longest text in an ACK or in an answer to one, in bytes.
const MAX_SAID: usize = 4 * 1024;

/// `ack`: a successor acknowledges its handoff. Every field must be there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AckAsked")]
pub struct AckRequest {
    /// Which handoff.
    pub handoff_id: String,
    /// Who acknowledges: the briefed successor.
    pub agent_id: String,
    /// The task in one line, in its own words.
    pub understanding: String,
    /// Where it continues: the checkpoint that the document states.
    pub starting_from: String,
    /// What it must know before it begins; may be empty.
    pub questions: Vec<String>,
    /// What it will do.
    pub status: AckStatus,
}

impl RequestBody for AckRequest {
    fn check(&self) -> Result<(), Refused> {
        not_empty("handoff_id", &self.handoff_id, 128)?;
        not_empty("agent_id", &self.agent_id, 128)?;
        not_empty("understanding", &self.understanding, MAX_SAID)?;
        not_empty("starting_from", &self.starting_from, MAX_SAID)?;
        if self.questions.len() > MAX_QUESTIONS {
            return Err(Refused::bad("questions", "may hold at most 64 entries"));
        }
        self.questions.iter().try_for_each(|question| not_empty("questions", question, MAX_SAID))?;
        if self.status == AckStatus::NeedsClarification && self.questions.is_empty() {
            return Err(Refused::bad(
                "questions",
                "must hold at least one question when status is needs_clarification",
            ));
        }
        Ok(())
    }

    fn needs(&self) -> Needs<'_> {
        Needs::handoff(&self.handoff_id)
    }
}

/// The right form of an ACK, for the answer to a malformed one and for the briefing.
#[must_use]
pub fn form(handoff_id: &str, agent_id: &str) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    format!(
        "{{\"v\":1,\"kind\":\"ack\",\"handoff_id\":{},\"agent_id\":{},\"understanding\":\"the task in one line\",\
         \"starting_from\":\"where you continue\",\"questions\":[],\"status\":\"ready_to_proceed\"}}",
        quoted(handoff_id),
        quoted(agent_id),
    )
}

/// What is known of an ACK that has the wrong form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedAck {
    /// The handoff that it names, if it names one.
    pub handoff_id: Option<String>,
    /// The agent that it names, if it names one.
    pub agent_id: Option<String>,
}

impl MalformedAck {
    /// What can be read of its ids.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let value: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let is_id = |text: &String| text.parse::<HandoffId>().is_ok();
        MalformedAck { handoff_id: text("handoff_id").filter(is_id), agent_id: text("agent_id").filter(is_id) }
    }

    /// The refusal of such an ACK: 422, with the right form.
    #[must_use]
    pub fn refuse(&self, refused: Refused) -> Refused {
        let id = |known: &Option<String>, what: &str| known.clone().unwrap_or_else(|| what.to_owned());
        let form = form(&id(&self.handoff_id, "the handoff's id"), &id(&self.agent_id, "your TASUKI_AGENT_ID"));
        let hint = format!(
            "status must be ready_to_proceed, needs_clarification, environment_issue or rejected; the right form is \
             {form}"
        );
        Refused { status: 422, code: "malformed_ack".to_owned(), ..refused.hint(hint) }
    }
}

/// `clarify`: answers to the questions of an ACK; the time for the next ACK starts again.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ClarifyAsked")]
pub struct ClarifyRequest {
    /// Which handoff.
    pub handoff_id: String,
    /// The answers, each with its question.
    pub clarifications: Vec<Clarification>,
    /// The handoff document, brought up to date: `{"text":…}` or `{"path":…}`. It is written beside the first one.
    pub document: Option<DocumentRequest>,
}

impl RequestBody for ClarifyRequest {
    fn check(&self) -> Result<(), Refused> {
        not_empty("handoff_id", &self.handoff_id, 128)?;
        if self.clarifications.is_empty() || self.clarifications.len() > MAX_QUESTIONS {
            return Err(Refused::bad("clarifications", "must hold 1 to 64 entries"));
        }
        for one in &self.clarifications {
            not_empty("clarifications.question", &one.question, MAX_SAID)?;
            not_empty("clarifications.answer", &one.answer, MAX_SAID)?;
        }
        self.document.as_ref().map_or(Ok(()), DocumentRequest::check)
    }

    fn needs(&self) -> Needs<'_> {
        let document = self.document.as_ref();
        let persona = document.map(|_| PersonaOf::Handoff(&self.handoff_id));
        Needs { document, persona, ..Needs::handoff(&self.handoff_id) }
    }
}

/// `ack_override`: continue as if the successor had acknowledged, with a documented reason.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OverrideAsked")]
pub struct OverrideRequest {
    /// Which handoff.
    pub handoff_id: String,
    /// Why nobody waits for an ACK any more.
    pub reason: String,
    /// The agent that decides, which must be the one that `escalation.orchestrator` names; absent: the operator.
    pub agent_id: Option<String>,
}

impl RequestBody for OverrideRequest {
    fn check(&self) -> Result<(), Refused> {
        not_empty("handoff_id", &self.handoff_id, 128)?;
        optional("agent_id", self.agent_id.as_deref(), 128)?;
        not_empty("reason", &self.reason, MAX_SAID)
    }

    fn needs(&self) -> Needs<'_> {
        Needs::handoff(&self.handoff_id)
    }
}
