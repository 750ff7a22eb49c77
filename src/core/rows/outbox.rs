//! A row of the outbox: an effect that is not settled, and who waits for its end.

use super::lookup::Meeting;
use crate::core::effect::Effect;
use crate::core::id::{AgentId, HandoffId};
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// Who waits for the end of an effect. It stands beside the effect, so that nobody has to be searched for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiter {
    /// What follows is the same however it ends.
    Nobody,
    /// One of an agent's machines; which one, the effect says.
    Agent(AgentId),
    /// The present step of a handoff.
    Step(HandoffId),
    /// The publishing of a handoff's document.
    Publishing(HandoffId),
    /// A message of a handoff, by its number.
    Message(HandoffId, u32),
    /// Somebody is to be met in a pane.
    Meeting(Meeting),
}

/// An effect that is not settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    pub waiter: Waiter,
    pub effect: Effect,
}

impl Deref for Pending {
    type Target = Effect;

    fn deref(&self) -> &Effect {
        &self.effect
    }
}
