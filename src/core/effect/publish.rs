//! The effects of publishing, and their results.

use super::examine::EnvironmentSearch;
use crate::core::id::{HandoffId, Slug};
use crate::core::pane::Process;
use crate::core::request::{PublishAs, PublishTarget};
use serde::{Deserialize, Serialize};

/// A copy of the recorded document, kept beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyPlan {
    pub persona: Slug,
    /// The copy's name, without its time and extension.
    pub stem: String,
    /// The time in the copy's name, in milliseconds since 1970 UTC. If that name is taken, the next free second is
    /// used.
    pub wall_ms: i64,
    /// The document's file name. If `text` is `None`, this file is copied, provided that it is still the recorded
    /// document.
    pub document: String,
    /// SHA-256 of what is copied, hexadecimal.
    pub sha256: String,
    pub text: Option<String>,
    /// The agent's process. The document is searched for values of its environment.
    #[serde(default)]
    pub process: Option<Process>,
    /// What an earlier search for such values has found.
    #[serde(default)]
    pub environment: EnvironmentSearch,
    /// What an earlier search of the same document found. The agent, and so its environment, may be gone since.
    #[serde(default)]
    pub found: Vec<SecretFound>,
    /// That search could not read the agent's environment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unsearched: bool,
    /// The operator's regular expressions. A text that matches one of them does not count as a credential.
    #[serde(default)]
    pub allow: Vec<String>,
    /// What the operator said about a document that holds credentials; `None` until the operator was asked.
    #[serde(default)]
    pub publish_as: Option<PublishAs>,
}

/// A credential in a document. It is never described by more than this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretFound {
    /// The rule that found it, such as `github-pat`.
    pub kind: String,
    /// Its line, from 1.
    pub line: usize,
    /// Its last four characters; empty if it is short.
    pub last: String,
    /// Where it begins and ends in the document, in bytes.
    pub start: usize,
    pub end: usize,
}

/// One upload, or one search for an upload by its mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishPlan {
    /// The handoff; its id is part of the mark by which the upload is found again.
    pub handoff_id: HandoffId,
    /// The number of this publication; part of the mark too.
    pub number: u32,
    pub target: PublishTarget,
    /// The persona whose folder holds the copy.
    pub persona: Slug,
    pub file_name: String,
    /// The document's name, in case the copy is gone.
    pub document: String,
    /// SHA-256, hexadecimal, of the copy, and of the document if that is used instead.
    pub sha256: String,
    /// The description of a gist.
    pub description: String,
    /// How long one call of `gh` may take, in milliseconds.
    pub limit_ms: u64,
    /// Search for the mark first: an earlier attempt may have been stored.
    pub look_first: bool,
    /// Upload if the search finds nothing; otherwise only search.
    pub post: bool,
    /// An earlier attempt may still be in flight: the server gets time before the search.
    #[serde(rename = "open")]
    pub may_be_in_flight: bool,
    /// Upload even if the search gives no answer.
    pub insist: bool,
    /// Nothing of this publication was sent before this time, by the wall clock in milliseconds since 1970 UTC; `None`
    /// if that time is not known.
    #[serde(default)]
    pub since_ms: Option<i64>,
}

/// The result of a call for publishing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Posted {
    Done {
        /// Its address; `None` if `gh` has not printed an address of the expected form.
        url: Option<String>,
        /// It is a comment in a repository that everybody can read.
        #[serde(default)]
        is_public: bool,
    },
    /// The search found nothing, and nothing was uploaded.
    NotThere,
    Failed(PublishFault),
}

/// Why a document was not published, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PublishFault {
    pub code: String,
    pub message: String,
    /// Something that was sent, now or earlier, may have been stored.
    pub maybe_stored: bool,
    /// The network or the server is at fault: another try may succeed.
    #[serde(rename = "again")]
    pub is_retryable: bool,
    /// The server does not accept this document.
    pub refused: bool,
}
