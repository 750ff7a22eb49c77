//! What an agent's machines have learned. They know nothing of handoffs and work items, so what concerns these rises as
//! a fact, through a queue of the decision that is being written.

use super::event::RequestFacts;
use super::hook::HookEvent;
use super::id::{AgentId, DeliveryId, HandoffId};
use super::pane::{DeliveryVerdict, Refusal, Verdict};
use super::persona::ProfileChoice;
use super::rows::agent::Purpose;
use super::text::wire_name;

/// What was learned. It is acted on in the order in which it was learned, and in the same commit.
#[derive(Debug)]
pub(crate) enum Fact {
    /// A text has its verdict.
    Verdict { agent_id: AgentId, purpose: Purpose, verdict: DeliveryVerdict, result: DeliveryResult },
    /// The command for a new session was submitted.
    NewSessionAsked { handoff_id: HandoffId },
    /// A text that waited for its turn will not be typed.
    NotTyped { handoff_id: HandoffId, number: u32, why: String },
    /// The turn that answers a text of ours has ended; with the event that said so, if there was one.
    OurTurnEnded { agent_id: AgentId, purpose: Purpose, event: Option<Box<HookEvent>> },
    /// A turn has ended, whosever it was.
    AnyTurnEnded { agent_id: AgentId },
    /// The priming of a successor is over: well, or not.
    Primed { handoff_id: HandoffId, problem: Option<String> },
    /// The successor registered and is ready.
    SuccessorReady { handoff_id: HandoffId },
    /// The successor did not come to life.
    SuccessorFailed { handoff_id: HandoffId, code: String, why: String },
    /// A dialog waits for a person.
    Blocked { agent_id: AgentId, message: Option<String> },
    /// An agent's session gives way to another one; the id of the one before, where that is known.
    SessionReplaced { agent_id: AgentId, former: Option<String> },
    /// So much of its context is used, in percent, that it is to be handed off by itself.
    ContextFull { agent_id: AgentId, percent: u64, facts: Box<RequestFacts> },
    /// Its CLI has reached a usage limit: its work is to continue on that other one.
    UsedUp { agent_id: AgentId, choice: ProfileChoice, facts: Box<RequestFacts> },
    /// An agent has ended or is lost.
    Ended { agent_id: AgentId },
}

/// What became of a text, for the state machine that asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeliveryResult {
    /// A receipt came; with a remark, if there is one.
    Delivered(Option<String>),
    /// The text may or may not have been typed; the reason in words.
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
