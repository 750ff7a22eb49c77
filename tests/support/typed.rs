//! Short forms for tests of typing.

use super::tmux::{Server, TestScreenReader};
use std::time::Duration;
use tasuki::core::pane::{PaneRef, Refusal, Typed};
use tasuki::tmux::{Input, Tmux, TypePlan};
use tokio_util::sync::CancellationToken;

/// The outcome of a text that was submitted, without proof.
pub(crate) const SUBMITTED: Typed = Typed::Submitted { proven: false };

/// Carries out a plan, with the tests' screen reader.
pub(crate) async fn type_it(tmux: &Tmux, plan: &TypePlan) -> Typed {
    tmux.type_text(plan, &TestScreenReader, &CancellationToken::new()).await
}

pub(crate) fn refused(reason: Refusal) -> Typed {
    Typed::Refused { reason }
}

pub(crate) fn unknown(reason: &str) -> Typed {
    Typed::Unknown { reason: reason.into() }
}

/// The mark of a pane.
pub(crate) fn mark(server: &Server, pane: &PaneRef) -> String {
    server.tmux(&["display-message", "-p", "-t", &pane.to_string(), "#{@tasuki_mark_00c0ffee}"])
}

/// Typing in pieces of so many characters, without bracketed paste and with short pauses.
pub(crate) fn typed_in_pieces(chars: usize) -> Input {
    Input::Pieces { chars, gap: Duration::from_millis(5), settle: Duration::from_millis(20) }
}
