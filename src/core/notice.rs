//! A notice to the operator. All notices have the same fields, among them a code.

use super::id::{AgentId, HandoffId};
use super::text::sentence;
use super::time::Now;
use crate::contract::{NoticeCode, NoticeRecord};
use serde_json::{Map, Value};

/// A notice that does not report a failure. `Tx::notify_operator` sends it by every configured channel. A failure of an
/// agent goes through `Tx::notify_agent_failure` instead, which also leaves an error file.
#[derive(Debug, Clone)]
pub(crate) struct OperatorNotice {
    pub(crate) code: NoticeCode,
    /// One sentence, without a full stop.
    pub(crate) message: String,
    /// What to do; may be empty.
    pub(crate) hint: String,
    pub(crate) agent_id: Option<AgentId>,
    pub(crate) handoff_id: Option<HandoffId>,
    /// Further fields for a configured command: an object, or null.
    pub(crate) details: Value,
}

impl OperatorNotice {
    /// A notice with only its code and message.
    pub(crate) fn new(code: NoticeCode, message: impl Into<String>) -> Self {
        let (message, hint) = (message.into(), String::new());
        OperatorNotice { code, message, hint, agent_id: None, handoff_id: None, details: Value::Null }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        OperatorNotice { hint: hint.into(), ..self }
    }

    pub(crate) fn agent(self, agent_id: AgentId) -> Self {
        OperatorNotice { agent_id: Some(agent_id), ..self }
    }

    pub(crate) fn handoff(self, handoff_id: HandoffId) -> Self {
        OperatorNotice { handoff_id: Some(handoff_id), ..self }
    }

    pub(crate) fn details(self, details: Value) -> Self {
        OperatorNotice { details, ..self }
    }

    /// The notice as a configured command gets it.
    pub(crate) fn record(self, now: &Now) -> NoticeRecord {
        let hint = sentence(&self.hint);
        let notice = if hint.is_empty() { self.message.clone() } else { format!("{}. {hint}", self.message) };
        let details = if let Value::Object(details) = self.details { details } else { Map::new() };
        NoticeRecord {
            v: 1,
            at: now.rfc3339(),
            code: self.code.into(),
            message: self.message,
            hint,
            notice,
            agent_id: self.agent_id.map(|id| id.to_string()),
            handoff_id: self.handoff_id.map(|id| id.to_string()),
            details,
        }
    }
}
