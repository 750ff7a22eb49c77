//! A text that is being typed to an agent, and the turn that answers it.

use super::{Phase, Purpose, Queued};
use crate::core::id::DeliveryId;
use crate::core::time::Deadline;
use serde::{Deserialize, Serialize};

/// A text on its way: from the commit that asks for it until its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Typing {
    pub delivery_id: DeliveryId,
    pub purpose: Purpose,
    /// The whole text, normalised: what a receipt is compared with.
    pub expected: String,
    #[serde(flatten)]
    pub phase: Phase,
    /// When the verdict is given even if no further news has come.
    pub deadline: Deadline,
    /// What it was while it waited. It waits again if the screen shows a turn that no event has reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<Queued>,
}

/// A prompt of ours that was taken, whose turn has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OurTurn {
    pub purpose: Purpose,
    /// The turn id in the receipt.
    pub turn_id: Option<String>,
    /// That turn was open already when the receipt came: our prompt was queued, and the next turn is ours.
    pub queued: bool,
    /// It has only paused: something that it started is still running.
    pub paused: bool,
}

impl OurTurn {
    /// The turn that answers a text, with nothing else known yet.
    #[must_use]
    pub fn of(purpose: Purpose) -> Self {
        OurTurn { purpose, turn_id: None, queued: false, paused: false }
    }

    /// Whether an event with this turn id shows that our turn has ended without a report.
    #[must_use]
    pub fn is_superseded_by(&self, turn_id: Option<&str>) -> bool {
        match (self.turn_id.as_deref(), turn_id) {
            (Some(ours), Some(other)) => !self.queued && ours != other,
            _ => false,
        }
    }

    /// Whether the end of the turn with this id is the end of our turn. It may be the end of an older turn, if our text
    /// was queued behind that one.
    #[must_use]
    pub fn ends_with(&self, turn_id: Option<&str>) -> bool {
        match (self.turn_id.as_deref(), turn_id) {
            (Some(ours), Some(ended)) => (ours == ended) != self.queued,
            _ => true,
        }
    }
}
