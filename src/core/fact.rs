//! What the state machines of an agent have learned. They do not call the code of handoffs and work items. News for
//! that code is queued as a fact in the [`super::tx::Tx`], and `follow.rs` passes it up.

use super::event::RequestFacts;
use super::hook::HookEvent;
use super::id::{AgentId, DeliveryId, HandoffId};
use super::pane::{DeliveryVerdict, Refusal, Verdict};
use super::persona::ProfileChoice;
use super::rows::agent::Purpose;
use super::text::wire_name;

/// One thing that was learned. Facts are handled in the order in which they were learned, and in the same commit.
#[derive(Debug)]
pub(crate) enum Fact {
    /// A text has its verdict.
    Verdict { agent_id: AgentId, purpose: Purpose, verdict: DeliveryVerdict, result: DeliveryResult },
    /// The command for a new session was submitted.
    NewSessionAsked { handoff_id: HandoffId },
    /// A text that waited for its turn will not be typed.
    NotTyped { handoff_id: HandoffId, number: u32, why: String },
    /// The turn that answers a text of tasuki's has ended. `event`: the hook event that reported the end; `None` if
    /// tasuki inferred the end.
    OurTurnEnded { agent_id: AgentId, purpose: Purpose, event: Option<Box<HookEvent>> },
    /// A turn has ended, whether it answered a text of tasuki's or not.
    AnyTurnEnded { agent_id: AgentId },
    /// The priming of a successor is over. `problem`: why it failed, if it did.
    Primed { handoff_id: HandoffId, problem: Option<String> },
    /// The successor registered and is ready.
    SuccessorReady { handoff_id: HandoffId },
    /// The start of the successor has failed.
    SuccessorFailed { handoff_id: HandoffId, code: String, why: String },
    /// A dialog waits for a person.
    Blocked { agent_id: AgentId, message: Option<String> },
    /// The dialog that was open is closed, and the turn continues.
    DialogClosed { agent_id: AgentId },
    /// Another session replaces the agent's session. `former`: the id of the replaced session, if it is known.
    SessionReplaced { agent_id: AgentId, former: Option<String> },
    /// The agent's context is so full (in percent) that a handoff is to begin automatically.
    ContextFull { agent_id: AgentId, percent: u64, facts: Box<RequestFacts> },
    /// The agent's CLI has reached a usage limit. `choice`: the CLI and model on which the agent's work is to continue.
    UsedUp { agent_id: AgentId, choice: ProfileChoice, facts: Box<RequestFacts> },
    /// An agent has ended or is lost.
    Ended { agent_id: AgentId },
}

/// What became of a text, for the state machine that asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeliveryResult {
    /// It was proved that the text arrived. The remark, if any, says what was unusual.
    Delivered(Option<String>),
    /// It is not known whether the text arrived; with the reason.
    Unconfirmed(String),
    /// Nothing was typed; the reason.
    Refused(Refusal),
}

impl DeliveryResult {
    pub(crate) fn verdict(&self, delivery_id: DeliveryId, at: String) -> DeliveryVerdict {
        let (verdict, reason) = match self {
            DeliveryResult::Delivered(remark) => (Verdict::Delivered, remark.clone()),
            DeliveryResult::Unconfirmed(reason) => (Verdict::Unconfirmed, Some(reason.clone())),
            DeliveryResult::Refused(reason) => (Verdict::NotDelivered, Some(wire_name(reason))),
        };
        DeliveryVerdict { delivery_id, verdict, reason, at }
    }
}
