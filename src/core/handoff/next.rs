//! What a step returns: what happens next. The driver carries it out.

use crate::core::rows::handoff::Step;

/// What happens next.
#[derive(Debug)]
pub(crate) enum Next {
    Stay,
    Enter(Step),
    /// Enters a step because of a retry.
    Retry(Step),
    /// Enters the step that follows the delivery of a text, because the operator says that the text arrived although
    /// its step has failed. (After a text that asks for a repair, `checking` enters itself.)
    AssumeDelivered(Step),
    /// Records this document. What follows is up to `recording`.
    Record(DocumentText),
    /// Defers the step's text until the agent that gets it is free. The step's deadline stays.
    Defer,
    Fail(StepFailure),
}

/// How a step is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// From another step.
    From(Step),
    /// By a retry of this step.
    Retry,
    /// By a retry, because the operator says that the text of the failed step arrived.
    AssumeDelivered,
    /// To record a document; nothing is left to read or examine.
    ToRecord,
}

/// A document that was read, as it will be recorded.
#[derive(Debug)]
pub(crate) struct DocumentText {
    pub(crate) text: String,
    pub(crate) sha256: String,
    /// What views and the briefing get instead of the text, if the text holds credentials or could not be searched for
    /// them.
    pub(crate) redacted: Option<String>,
}

/// Why a step fails. The driver replaces `HANDOFF` in the hint by the handoff's short id.
#[derive(Debug)]
pub(crate) struct StepFailure {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Next {
    /// The step fails with this error code, message and hint.
    pub(crate) fn fail(code: &str, message: impl Into<String>, hint: &str) -> Next {
        Next::Fail(StepFailure { code: code.to_owned(), message: message.into(), hint: hint.to_owned() })
    }
}
