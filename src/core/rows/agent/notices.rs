//! What is remembered of an agent's notices about work items.

use crate::core::time::Deadline;
use serde::{Deserialize, Serialize};

/// What is remembered of an agent's notices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Notices {
    /// How many notices in a row were not followed by a claim.
    pub unanswered: u32,
    /// How many notices in a row failed: they could not be typed, or their turn failed.
    #[serde(default)]
    pub failed: u32,
    /// It gets no notice before this time.
    pub not_before: Option<Deadline>,
}
