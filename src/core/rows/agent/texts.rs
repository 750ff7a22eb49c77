//! A text of ours on its way to an agent, and the turn that answers it.

use super::Purpose;
use crate::core::effect::EffectKey;
use crate::core::id::DeliveryId;
use crate::core::time::Deadline;
use serde::{Deserialize, Serialize};

/// A text on its way: from the commit that asks for it until its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Typing {
    pub delivery_id: DeliveryId,
    pub purpose: Purpose,
    /// The effect that types it; none once that is settled.
    pub effect: Option<EffectKey>,
    /// The whole text, normalised: what a receipt is compared with.
    pub expected: String,
    /// It was seen in the composer and Enter was pressed.
    pub submitted: bool,
    /// The CLI has reported it, and whether it was taken is still looked for.
    #[serde(default)]
    pub reported: Option<Reported>,
    /// Why it is not known whether it arrived.
    pub doubt: Option<String>,
    /// When the verdict falls without a receipt.
    pub deadline: Deadline,
}

/// A receipt of which it is not known yet whether the CLI took the prompt that it reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reported {
    /// What the verdict will say besides.
    pub remark: Option<String>,
}

/// A prompt of ours that was taken, whose turn has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OurTurn {
    pub purpose: Purpose,
    /// The turn id that the receipt bore.
    pub turn_id: Option<String>,
    /// That turn was open already when the receipt came: our prompt was queued, and the next turn is ours.
    pub queued: bool,
    /// It has only paused: something that it started is still running.
    pub paused: bool,
}

impl OurTurn {
    /// Whether another turn's id shows that ours has ended without a word.
    #[must_use]
    pub fn is_superseded_by(&self, turn_id: Option<&str>) -> bool {
        match (self.turn_id.as_deref(), turn_id) {
            (Some(ours), Some(other)) => !self.queued && ours != other,
            _ => false,
        }
    }

    /// Whether a turn's end with that id ends our turn (`flow.md` rule 1).
    #[must_use]
    pub fn ends_with(&self, turn_id: Option<&str>) -> bool {
        match (self.turn_id.as_deref(), turn_id) {
            (Some(ours), Some(ended)) => (ours == ended) != self.queued,
            _ => true,
        }
    }
}
