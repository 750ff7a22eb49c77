//! The publishing of a handoff's document, as others see it.

use super::words::{Word, without_defaults, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

words! {
    listed
    /// The state of the publishing. It never delays the handoff.
    PublishState {
        /// For the record.
        Waiting = "waiting",
        /// The local copy is being written, or `gh` runs.
        Running = "running",
        /// For the next try.
        Retrying = "retrying",
        /// It is there.
        Published = "published",
        /// It is not there; it may be asked for again.
        Failed = "failed",
        /// Nobody knows whether it was stored; the operator decides.
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

/// The publishing of a handoff's document: a side step, which goes on after the handoff's end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct PublishView {
    /// Where it was asked for: `{"issue":"owner/repo#42"}` or `{"gist":true}`.
    #[schemars(with = "Value")]
    pub target: TargetView,
    /// `gist`, where that is to be done instead of a comment that can't be made.
    #[schemars(with = "Option<String>")]
    pub fallback: Option<Word<Destination>>,
    /// `waiting` for the record, `running`, `retrying` at `next_try_at`, `published`, `failed`, or `in_doubt`: it is not
    /// known whether it is there.
    pub state: Word<PublishState>,
    /// Which publication of this handoff it is, from 1; 0 before the record. It stands in the upload's mark.
    pub number: u32,
    /// Where it goes now.
    pub to: Word<Destination>,
    /// Its address, once it is known.
    pub url: Option<String>,
    /// Addresses of earlier documents of this handoff.
    pub former_urls: Vec<String>,
    /// The copy beside the document, from which it is published.
    pub copy_path: Option<String>,
    /// What was tried, the latest last; at most 50.
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
    /// When it had ended.
    pub ended_at: String,
    /// What went wrong; null of the one that succeeded.
    pub error: Option<AttemptErrorView>,
}

/// Why a try failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct AttemptErrorView {
    /// A short word for programs.
    pub code: String,
    /// What `gh` said, for people.
    pub message: String,
}

/// Why a document was not published.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct PublishErrorView {
    /// The name of its file in `spool/errors/`.
    pub error_id: String,
    /// A short word for programs.
    pub code: String,
    /// One sentence for people.
    pub message: String,
    /// What to do.
    pub hint: String,
}
