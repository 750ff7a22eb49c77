//! What a step wants to happen next. A step returns it and does not move its handoff; the driver does.

use crate::core::rows::handoff::Step;

/// What follows from what a step was told.
#[derive(Debug)]
pub(crate) enum Next {
    Stay,
    Enter(Step),
    /// A retry takes up the step that has failed.
    Again(Step),
    /// A person vouches for the text that this step waits to be obeyed.
    Vouched(Step),
    /// This is the document: it is recorded, then the outgoing agent is ended.
    Record(Whole),
    /// The step's text is deferred until its agent is free; the step's limit keeps running.
    Defer,
    Fail(Halt),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    From(Step),
    /// A retry, because the step has failed.
    Again,
    /// By a retry, because a person says that the text before it has arrived.
    Vouched,
}

#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) text: String,
    pub(crate) sha256: String,
}

/// Why a handoff halts. `HANDOFF` in the hint is replaced by the handoff's id.
#[derive(Debug)]
pub(crate) struct Halt {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Next {
    /// The handoff fails with this error code, message and hint.
    pub(crate) fn fail(code: &str, message: impl Into<String>, hint: &str) -> Next {
        Next::Fail(Halt { code: code.to_owned(), message: message.into(), hint: hint.to_owned() })
    }
}
