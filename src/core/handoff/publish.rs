//! Where the document is published.

use super::Handoff;
use crate::core::decision::Tx;
use crate::core::id::HandoffId;

/// Begins to publish the present document, where the handoff asks for it.
pub(crate) fn begin(_tx: &mut Tx<'_>, _id: HandoffId) {}

/// Where it is published, once that is known.
pub(crate) fn url(_handoff: &Handoff) -> Option<&str> {
    None
}
