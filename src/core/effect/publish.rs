//! What publishing asks of the runner, and what comes of it.

use crate::core::id::{HandoffId, Slug};
use crate::core::request::PublishTarget;
use serde::{Deserialize, Serialize};

/// A copy of the recorded document, kept beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyPlan {
    pub persona: Slug,
    /// The copy's name, less its time and its ending.
    pub stem: String,
    /// Its time, milliseconds since 1970 UTC; if that name is taken, the next free second.
    pub wall_ms: i64,
    /// The document's name in that folder: copied where the text is not given, if it is still the recorded one.
    pub document: String,
    /// SHA-256 of what is copied, hexadecimal.
    pub sha256: String,
    pub text: Option<String>,
}

/// One call for publishing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishPlan {
    /// Of which handoff; in the mark by which the upload is known again.
    pub handoff_id: HandoffId,
    /// Which publication of it; in the mark too.
    pub number: u32,
    pub target: PublishTarget,
    /// In whose folder the copy lies.
    pub persona: Slug,
    pub file_name: String,
    /// The document's name, for the case that the copy is gone.
    pub document: String,
    /// SHA-256 of both, hexadecimal.
    pub sha256: String,
    /// What a gist says of itself.
    pub description: String,
    /// How long one call of `gh` may take, in milliseconds.
    pub limit_ms: u64,
    /// Look for the mark first: a former try may have been stored.
    pub look_first: bool,
    /// Post it if it is not there; else only look.
    pub post: bool,
    /// A former try may be on its way still: the server is given time before the look.
    pub open: bool,
    /// Post it also where the look tells nothing.
    pub insist: bool,
    /// Before this wall clock reading, in milliseconds since 1970 UTC, nothing of it was sent; none where that is not known.
    #[serde(default)]
    pub since_ms: Option<i64>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Posted {
    Done {
        /// Its address; none where `gh` told none that fits.
        url: Option<String>,
    },
    /// It was only looked for, and it is not there.
    NotThere,
    /// It failed, or can't be known.
    Failed(PublishFault),
}

/// Why a document was not published, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PublishFault {
    pub code: String,
    pub message: String,
    /// Something that was sent, now or before, may have been stored.
    pub maybe_stored: bool,
    /// The network or the server is at fault: another try may succeed.
    pub again: bool,
    /// This document is not taken there.
    pub refused: bool,
}
