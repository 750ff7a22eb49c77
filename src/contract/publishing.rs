//! The publishing of a handoff's document, as others see it.

use super::words::{Word, without_defaults, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

words! {
    listed
    /// The state of the publishing. It never delays the handoff.
    PublishState {
        /// Waits for the record.
        Waiting = "waiting",
        /// The local copy is being written, or `gh` runs.
        Running = "running",
        /// Waits for the next try.
        Retrying = "retrying",
        /// The document is published.
        Published = "published",
        /// The document is not published; the operator may ask again.
        Failed = "failed",
        /// The document holds what looks like a credential; nothing was sent, and the operator decides.
        Held = "held",
        /// It is not known whether the document was stored; the operator decides.
        InDoubt = "in_doubt",
    }
}

words! {
    listed
    /// Where a document goes.
    Destination {
        /// Onto an issue, as a comment.
        Issue = "issue",
        /// Into a secret gist.
        Gist = "gist",
    }
}

/// The publishing of a handoff's document: a side step, which may continue after the handoff's end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct PublishView {
    /// The destination that was requested: `{"issue":"owner/repo#42"}` or `{"gist":true}`.
    #[schemars(with = "Value")]
    pub target: TargetView,
    /// `gist`, if the document goes into a gist when the comment can't be made.
    #[schemars(with = "Option<String>")]
    pub fallback: Option<Word<Destination>>,
    /// `waiting` for the record, `running`, `retrying` at `next_try_at`, `published`, `failed`, `held` because the
    /// document seems to hold a credential, or `in_doubt`: it is not known whether the document was stored.
    pub state: Word<PublishState>,
    /// The number of this publication of the handoff, from 1; 0 before the record. The upload's mark contains it.
    pub number: u32,
    /// The destination now.
    pub to: Word<Destination>,
    /// Its address, once it is known.
    pub url: Option<String>,
    /// Addresses of earlier publications of this handoff.
    pub former_urls: Vec<String>,
    /// The copy beside the document, from which it is published.
    pub copy_path: Option<String>,
    /// The tries, the latest last; at most 50.
    pub attempts: Vec<AttemptView>,
    /// When the next try is due: UTC, milliseconds, `Z`.
    pub next_try_at: Option<String>,
    /// Why it failed, or what is in doubt.
    pub error: Option<PublishErrorView>,
}

/// Where a document is to be published: one of the two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issue: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gist: Option<bool>,
}

/// One try to publish.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct AttemptView {
    /// Which publication it belongs to.
    pub number: u32,
    /// Where it went.
    pub to: Word<Destination>,
    /// When it began: UTC, milliseconds, `Z`.
    pub at: String,
    /// When it ended.
    pub ended_at: String,
    /// What went wrong; null if the try succeeded.
    pub error: Option<AttemptErrorView>,
}

/// Why a try failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct AttemptErrorView {
    /// The error code.
    pub code: String,
    /// What `gh` said.
    pub message: String,
}

/// Why a document was not published.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct PublishErrorView {
    /// The name of its file in `spool/errors/`.
    pub error_id: String,
    /// The error code.
    pub code: String,
    /// The message: one sentence.
    pub message: String,
    /// What to do.
    pub hint: String,
}
