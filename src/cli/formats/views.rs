//! The files in `view/`: replaced whole after every commit that changes them.

use super::ack::AckView;
use crate::core::request::{Author, Successor};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// `view/handoffs/<handoff_id>.json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HandoffView {
    /// The format's version: 1.
    pub v: u8,
    /// The handoff's id.
    pub handoff_id: String,
    /// The outgoing agent.
    pub agent_id: String,
    /// Its persona, and the successor's.
    pub persona_slug: String,
    /// Why it was asked for.
    pub reason: String,
    /// What the document should dwell on.
    pub focus: Option<String>,
    /// What the successor has to do.
    pub tasks: Vec<String>,
    /// Who writes the document.
    pub author: Author,
    /// Who was asked to take over.
    pub successor: Successor,
    /// The document's absolute path.
    pub file_path: String,
    /// The document's size in bytes, once it is recorded.
    pub bytes: Option<u64>,
    /// SHA-256 of the document, once it is recorded.
    pub sha256: Option<String>,
    /// What the successor is briefed with, once the document is recorded.
    pub injection_prompt: Option<String>,
    /// When the document was recorded: UTC, milliseconds, `Z`.
    pub recorded_at: Option<String>,
    /// When the handoff was asked for.
    pub created_at: String,
    /// The successor, once one was asked for.
    pub successor_id: Option<String>,
    /// Successors that died before they were briefed.
    pub former_successors: Vec<String>,
    /// Where it stands.
    #[schemars(extend("enum" = ["waiting", "instructing", "writing", "recording", "ending", "starting", "priming", "briefing", "reading", "acknowledging", "done", "failed", "cancelled"]))]
    pub step: String,
    /// Every step so far; a retry adds to the list.
    pub steps: Vec<StepView>,
    /// When the step fails if nothing happens.
    pub deadline: Option<String>,
    /// The document as it grows, before it is recorded.
    pub document: Option<DocumentView>,
    /// What became of the three texts.
    pub verdicts: Verdicts,
    /// What a person should know, though nothing failed.
    pub warnings: Vec<String>,
    /// The turn in which the successor reads its document: null before it is over, `seen`, `unseen` (the successor lived, and
    /// the turn's end was not seen) or `failed`.
    #[schemars(extend("enum" = [null, "seen", "unseen", "failed"]))]
    pub read: Option<String>,
    /// Since when a dialog holds up the turn in which the successor answers its briefing; null while none does.
    pub successor_blocked_at: Option<String>,
    /// Where and why it failed; null when it has not.
    pub error: Option<StepError>,
    /// The acknowledgement; null where none is wanted.
    pub ack: Option<AckView>,
    /// The publishing; null where it was not asked for.
    pub publish: Option<PublishView>,
    /// The delivery, point by point.
    pub checklist: Vec<PointView>,
}

/// One step of a handoff.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StepView {
    /// Its name.
    pub step: String,
    /// When it began: UTC, milliseconds, `Z`.
    pub entered_at: String,
    /// When it was over; null while it runs.
    pub left_at: Option<String>,
}

/// A document that is being written.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DocumentView {
    /// Its size in bytes.
    pub bytes: u64,
    /// When that was seen: UTC, milliseconds, `Z`.
    pub at: String,
}

/// What became of the three texts of a handoff; null where none was typed yet.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Verdicts {
    /// The text that asks for the document.
    pub instruction: Option<DeliveryView>,
    /// The persona's skill.
    pub priming: Option<DeliveryView>,
    /// The record's injection prompt.
    pub briefing: Option<DeliveryView>,
}

/// What became of one typed text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeliveryView {
    /// The id in the text's last line.
    pub delivery_id: String,
    /// `delivered` needs a receipt; `unconfirmed` means that it can't be known; `not_delivered` that nothing was typed.
    #[schemars(extend("enum" = ["delivered", "unconfirmed", "not_delivered"]))]
    pub verdict: String,
    /// Why, where it is not plainly delivered.
    pub reason: Option<String>,
    /// When that was known: UTC, milliseconds, `Z`.
    pub at: String,
}

/// Where and why a handoff failed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StepError {
    /// The name of its file in `spool/errors/`.
    pub error_id: String,
    /// The step at which it stopped.
    pub step: String,
    /// A short word for programs.
    pub code: String,
    /// One sentence for people.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// One point of the delivery checklist.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PointView {
    /// What it is about, for people.
    pub point: String,
    /// When it was reached: UTC, milliseconds, `Z`.
    pub at: Option<String>,
    /// Why it was not, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The publishing of a handoff's document: a side step, which goes on after the handoff's end.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PublishView {
    /// Where it was asked for: `{"issue":"owner/repo#42"}` or `{"gist":true}`.
    pub target: Value,
    /// `gist`, where that is to be done instead of a comment that can't be made.
    pub fallback: Option<String>,
    /// `waiting` for the record, `running`, `retrying` at `next_try_at`, `published`, `failed`, or `in_doubt`: it is not
    /// known whether it is there.
    #[schemars(extend("enum" = ["waiting", "running", "retrying", "published", "failed", "in_doubt"]))]
    pub state: String,
    /// Which publication of this handoff it is, from 1; 0 before the record. It stands in the upload's mark.
    pub number: u32,
    /// Where it goes now.
    #[schemars(extend("enum" = ["issue", "gist"]))]
    pub to: String,
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

/// One try to publish.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AttemptView {
    /// Which publication it belongs to.
    pub number: u32,
    /// Where it went.
    #[schemars(extend("enum" = ["issue", "gist"]))]
    pub to: String,
    /// When it began: UTC, milliseconds, `Z`.
    pub at: String,
    /// When it had ended.
    pub ended_at: String,
    /// What went wrong; null of the one that succeeded.
    pub error: Option<AttemptErrorView>,
}

/// Why a try failed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AttemptErrorView {
    /// A short word for programs.
    pub code: String,
    /// What `gh` said, for people.
    pub message: String,
}

/// Why a document was not published.
#[derive(Debug, Serialize, JsonSchema)]
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
