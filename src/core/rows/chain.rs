//! The handoffs that an agent's work has passed through.

use crate::contract::facts::EarlierDocument;
use crate::core::id::HandoffId;
use serde::{Deserialize, Serialize};

/// The most documents that are kept of a chain.
const MOST_EARLIER: usize = 20;

/// The handoffs by which an agent's work has come to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Chain {
    /// How many handoffs there were.
    pub generation: u64,
    /// The documents of the last handoffs, oldest first.
    pub earlier: Vec<EarlierDocument>,
}

impl Chain {
    /// The chain of an agent that is briefed with this document.
    #[must_use]
    pub fn after(&self, document: EarlierDocument) -> Chain {
        let from = (self.earlier.len() + 1).saturating_sub(MOST_EARLIER);
        let earlier = self.earlier[from..].iter().cloned().chain([document]).collect();
        Chain { generation: self.generation + 1, earlier }
    }

    /// Whether the document of this handoff is in it.
    #[must_use]
    pub fn holds(&self, id: &HandoffId) -> bool {
        let id = id.to_string();
        self.earlier.iter().any(|earlier| earlier.handoff_id == id)
    }
}
