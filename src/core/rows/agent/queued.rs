//! Texts that wait until their agent can take them, and who asked for each.

use crate::core::id::{HandoffId, RequestId};
use crate::core::time::Deadline;
use serde::{Deserialize, Serialize};

/// Who asked for a queued text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Asker {
    /// An `agent_send`.
    #[serde(rename = "request_id")]
    Request(RequestId),
    /// A handoff whose orchestrator or escalation target this agent is: a message, by its number there.
    #[serde(rename = "message")]
    Message(HandoffId, u32),
    /// tasuki itself, after a limit of the agent's CLI has ended.
    #[serde(rename = "resume")]
    Resume(()),
}

/// A text that waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    #[serde(flatten)]
    pub asker: Asker,
    pub text: String,
    /// When it is refused because the agent has not become free for it.
    pub deadline: Deadline,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::Now;
    use serde_json::json;

    #[test]
    fn a_request_s_text_is_stored_as_it_always_was() {
        let deadline = Deadline::after(&Now { wall_ms: 0, boot: 1, boot_ms: 0 }, 5);
        let row = json!({ "request_id": "r1", "text": "hello", "deadline": deadline });
        let queued: Queued = serde_json::from_value(row.clone()).expect("a row of an older version");
        assert_eq!(queued.asker, Asker::Request("r1".parse().expect("an id")));
        assert_eq!(serde_json::to_value(&queued).expect("a row"), row);
        let message = Queued { asker: Asker::Message(HandoffId(uuid::Uuid::nil()), 3), ..queued };
        let text = serde_json::to_string(&message).expect("a row");
        assert_eq!(serde_json::from_str::<Queued>(&text).expect("a row"), message);
    }
}
