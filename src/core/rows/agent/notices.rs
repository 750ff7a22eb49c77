//! What is remembered of an agent's notices about work items.

use crate::core::time::Deadline;
use serde::{Deserialize, Serialize};

/// What is remembered of an agent's notices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Notices {
    /// So many in a row were left without a claim.
    pub unanswered: u32,
    /// So many in a row came to nothing: they could not be typed, or their turn failed.
    #[serde(default)]
    pub failed: u32,
    /// It is not told of anything before this.
    pub not_before: Option<Deadline>,
}
