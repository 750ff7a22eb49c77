//! The publishing of a handoff's document: its part of the handoff's row, and of the handoff's view.

use crate::contract::publishing::{Destination, PublishErrorView, PublishView, TargetView};
use crate::core::effect::{EffectKey, SecretFound};
use crate::core::id::ErrorId;
use crate::core::request::{PublishAs, PublishTarget};
use crate::core::time::Deadline;
use serde::{Deserialize, Serialize};

pub use crate::contract::publishing::{AttemptErrorView as AttemptError, AttemptView as Attempt, PublishState};

/// Why `gh` is called next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To upload, after a search if an earlier upload may exist.
    Post,
    /// Only to search for an earlier upload: another upload could be a second one, or could not succeed.
    Look,
}

/// The copy of the document that is published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copy {
    /// The file's name beside the document; none until it is written.
    pub file_name: Option<String>,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
    /// The sender, as in the file's name: `<slug>-<first 8 of the id>`.
    pub from: String,
    pub to: String,
}

/// Why it failed, or what is in doubt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishError {
    /// The file in `errors/`.
    pub error_id: ErrorId,
    pub code: String,
    pub message: String,
    pub hint: String,
}

/// The publishing of one handoff's document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publishing {
    /// Where the document is to be published.
    pub target: PublishTarget,
    /// Publish the document as a gist if it can't be published on the issue.
    pub fallback: bool,
    pub state: PublishState,
    /// Which publication of this handoff this is, from 1; 0 before the record.
    pub number: u32,
    /// The fallback is in force: the document is published as a gist.
    pub as_gist: bool,
    pub url: Option<String>,
    /// Addresses of earlier publications of this handoff.
    pub former_urls: Vec<String>,
    /// What was tried, the latest last; bounded.
    pub attempts: Vec<Attempt>,
    /// How many tries of this publication failed because of the network, since a person last asked for it.
    pub failures: u32,
    /// Something that was sent may have been stored without our knowing.
    #[serde(rename = "open")]
    pub maybe_stored: bool,
    /// Why `gh` is called now or next.
    pub purpose: Purpose,
    pub due: Option<Deadline>,
    pub effect: Option<EffectKey>,
    pub began_at: Option<String>,
    /// When the first try of this publication began, by the wall clock in milliseconds since 1970 UTC.
    #[serde(default)]
    pub first_try_ms: Option<i64>,
    /// The credentials in a document that is or was held.
    #[serde(default)]
    pub secrets: Vec<SecretFound>,
    /// The document is held also because it was not searched for the values of the agent's environment.
    #[serde(default)]
    pub is_unsearched: bool,
    /// What the operator said about a document that holds credentials.
    #[serde(default)]
    pub publish_as: Option<PublishAs>,
    /// The copy that is published; `None` before the document is recorded.
    pub copy: Option<Copy>,
    /// Why it failed; `None` after a person has asked for it again.
    pub error: Option<PublishError>,
}

impl Publishing {
    /// Publishing that was requested, before anything was done.
    #[must_use]
    pub fn new(target: PublishTarget, fallback: bool) -> Self {
        Publishing {
            target,
            fallback,
            state: PublishState::Waiting,
            number: 0,
            as_gist: false,
            url: None,
            former_urls: Vec::new(),
            attempts: Vec::new(),
            failures: 0,
            maybe_stored: false,
            purpose: Purpose::Post,
            due: None,
            effect: None,
            began_at: None,
            first_try_ms: None,
            secrets: Vec::new(),
            is_unsearched: false,
            publish_as: None,
            copy: None,
            error: None,
        }
    }

    /// A call to `gh` runs, or tasuki will try again by itself.
    #[must_use]
    pub fn is_active(&self) -> bool {
        matches!(self.state, PublishState::Running | PublishState::Retrying)
    }

    /// Where the document goes with the next call: the target, or the gist that replaces it.
    #[must_use]
    pub fn destination(&self) -> PublishTarget {
        match &self.target {
            PublishTarget::Issue(issue) if self.as_gist => PublishTarget::Gist { host: issue.host.clone() },
            PublishTarget::Issue(_) | PublishTarget::Gist { .. } => self.target.clone(),
        }
    }

    /// The copy's path, once it is written: it is beside the document.
    fn copy_path(&self, document: &str) -> Option<String> {
        let name = self.copy.as_ref()?.file_name.as_ref()?;
        let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
        Some(format!("{folder}/{name}"))
    }

    /// Its part of the handoff's view; `document` is the document's path.
    #[must_use]
    pub fn view(&self, document: &str) -> PublishView {
        let target = match &self.target {
            PublishTarget::Issue(issue) => TargetView { issue: Some(issue.to_string()), gist: None },
            PublishTarget::Gist { .. } => TargetView { issue: None, gist: Some(true) },
        };
        PublishView {
            target,
            fallback: self.fallback.then_some(Destination::Gist.into()),
            state: self.state.into(),
            number: self.number,
            to: self.destination().way().into(),
            url: self.url.clone(),
            former_urls: self.former_urls.clone(),
            copy_path: self.copy_path(document),
            attempts: self.attempts.clone(),
            next_try_at: self.due.map(|due| due.rfc3339()),
            error: self.error.as_ref().map(PublishErrorView::from),
        }
    }
}

impl From<&PublishError> for PublishErrorView {
    fn from(error: &PublishError) -> Self {
        PublishErrorView {
            error_id: error.error_id.to_string(),
            code: error.code.clone(),
            message: error.message.clone(),
            hint: error.hint.clone(),
        }
    }
}
