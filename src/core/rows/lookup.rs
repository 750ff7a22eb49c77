//! Requests without an answer, and panes that are being looked up: rows that need no agent's row.

use crate::core::hook::HookEvent;
use crate::core::id::{RequestId, Slug};
use serde::{Deserialize, Serialize};

/// A request that was taken and is not answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRequest {
    pub kind: String,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
}

/// Why a pane is being looked up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaneLookup {
    /// A session started there that belongs to no agent we know.
    Event {
        event: Box<HookEvent>,
        /// How often the pane was looked up before.
        looks: u8,
    },
    Request {
        request_id: RequestId,
        persona: Option<Slug>,
        profile: Option<String>,
    },
}
