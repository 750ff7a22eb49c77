//! Every kind of request in one table, in the contract's order: its wire name and its body.

use super::body::body;
use super::request_body::{Needs, RequestBody, not_empty};
use super::{ack, agent, handoff, publish, work};
use crate::core::reply::Refused;
use schemars::{JsonSchema, Schema, schema_for};
use serde::Deserialize;

macro_rules! requests {
    ($($(#[$about:meta])* $variant:ident($body:ty) = $kind:literal,)+) => {
        /// A request that has been read and has passed every check that needs no state.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Request {
            $($(#[$about])* $variant($body),)+
        }

        /// The kinds that this version carries out.
        pub const KINDS: [&str; [$($kind),+].len()] = [$($kind),+];

        impl Request {
            /// Reads the fields of a kind; `None` if the kind is not known.
            pub(super) fn read(kind: &str, bytes: &[u8]) -> Option<Result<Request, Refused>> {
                Some(match kind {
                    $($kind => body::<$body>(bytes).map(Request::$variant),)+
                    _ => return None,
                })
            }

            /// Its fields.
            fn asked(&self) -> &dyn RequestBody {
                match self {
                    $(Request::$variant(asked) => asked,)+
                }
            }
        }

        /// The schema of each kind's own fields.
        #[must_use]
        pub fn schemas() -> Vec<(&'static str, Schema)> {
            vec![$(($kind, schema_for!($body))),+]
        }
    };
}

requests! {
    /// Hand an agent off.
    Handoff(handoff::HandoffRequest) = "handoff",
    /// Continue at the step that failed.
    HandoffRetry(handoff::RetryRequest) = "handoff_retry",
    /// Close a failed handoff for good.
    HandoffAbandon(handoff::HandoffNamed) = "handoff_abandon",
    /// Stop a handoff before its agent ends.
    HandoffCancel(handoff::HandoffNamed) = "handoff_cancel",
    /// Take the document as it is now.
    HandoffAccept(handoff::HandoffNamed) = "handoff_accept",
    /// Ask the agent once more to repair its document.
    HandoffRework(handoff::ReworkRequest) = "handoff_rework",
    /// Reopen the session of the outgoing agent, beside its successor.
    HandoffReopen(handoff::HandoffNamed) = "handoff_reopen",
    /// Start an agent.
    AgentCreate(agent::CreateRequest) = "agent_create",
    /// Adopt a pane.
    AgentRegister(agent::RegisterRequest) = "agent_register",
    /// End an agent.
    AgentShutdown(agent::ShutdownRequest) = "agent_shutdown",
    /// Forget an agent whose process does not run.
    AgentForget(agent::ForgetRequest) = "agent_forget",
    /// Type a text.
    AgentSend(agent::SendRequest) = "agent_send",
    /// A successor acknowledges.
    Ack(ack::AckRequest) = "ack",
    /// Answer a successor's questions.
    Clarify(ack::ClarifyRequest) = "clarify",
    /// Continue without a successor's ACK.
    AckOverride(ack::OverrideRequest) = "ack_override",
    /// Publish a document now.
    Publish(publish::PublishNow) = "publish",
    /// Make a work item.
    WorkCreate(work::WorkCreateRequest) = "work_create",
    /// Take a work item.
    WorkClaim(work::WorkClaimRequest) = "work_claim",
    /// Hand over the result of a work item.
    WorkComplete(work::WorkCompleteRequest) = "work_complete",
    /// Make children that a completion could not make.
    WorkRetryChildren(work::WorkRetryRequest) = "work_retry_children",
    /// Give a work item back.
    WorkRelease(work::WorkReleaseRequest) = "work_release",
    /// Leave a work item to a person.
    WorkEscalate(work::WorkEscalateRequest) = "work_escalate",
    /// Undo a completion.
    WorkRollback(work::WorkRollbackRequest) = "work_rollback",
    /// Comment on a work item.
    WorkComment(work::WorkCommentRequest) = "work_comment",
    /// Take work items from elsewhere.
    WorkImport(work::WorkImportRequest) = "work_import",
    /// Delete an error file.
    ErrorDismiss(DismissRequest) = "error_dismiss",
}

impl RequestBody for Request {
    fn check(&self) -> Result<(), Refused> {
        self.asked().check()
    }

    fn needs(&self) -> Needs<'_> {
        self.asked().needs()
    }
}

/// `error_dismiss`: delete an error file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DismissAsked")]
pub struct DismissRequest {
    /// Which.
    pub error_id: String,
}

impl RequestBody for DismissRequest {
    fn check(&self) -> Result<(), Refused> {
        not_empty("error_id", &self.error_id, 128)
    }

    fn needs(&self) -> Needs<'_> {
        Needs { error: Some(&self.error_id), ..Needs::default() }
    }
}
