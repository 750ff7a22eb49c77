//! A row of the outbox: an effect that is not settled, and what waits for its outcome.

use super::lookup::PaneLookup;
use crate::core::effect::Effect;
use crate::core::id::{AgentId, HandoffId};
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// What waits for the outcome of an effect. It is stored with the effect, so that no search is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiter {
    /// Nothing depends on the outcome.
    Nobody,
    /// One of an agent's state machines; the effect determines which one.
    Agent(AgentId),
    Step(HandoffId),
    Publishing(HandoffId),
    /// A message of a handoff, by its number.
    Message(HandoffId, u32),
    /// The lookup of a pane.
    #[serde(rename = "meeting")]
    PaneLookup(PaneLookup),
}

/// An effect in the outbox that is not settled yet.
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
