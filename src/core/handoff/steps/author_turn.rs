//! What follows from the end of a turn in which the author writes or repairs its document, for the step that asked it.

use crate::core::handoff::next::Next;
use crate::core::handoff::row;
use crate::core::hook::{HookEvent, HookKind};
use crate::core::id::HandoffId;
use crate::core::request::Author;
use crate::core::tx::Tx;

/// The failure or the wait that follows; `None` if the document is to be read. `what` begins the message of a failure,
/// such as "The agent's turn". Without an event, tasuki inferred the end: from the screen, or from the id of another
/// turn.
pub(super) fn after_turn(
    tx: &mut Tx<'_>,
    id: HandoffId,
    event: Option<&HookEvent>,
    (what, hint): (&str, &str),
) -> Option<Next> {
    let Some(handoff) = tx.handoff_mut(&id) else { return Some(Next::Stay) };
    let is_being_read = handoff.stay.reading.is_some();
    let Some(event) = event else {
        if is_being_read {
            return Some(Next::Stay);
        }
        row::warn(tx, id, "stop_inferred");
        return None;
    };
    if handoff.author == Author::AgentReply {
        handoff.last_text.clone_from(&event.last_text);
    }
    if is_being_read {
        handoff.stay.stopped_meanwhile = true;
        return Some(Next::Stay);
    }
    match event.kind {
        HookKind::StopFailure => {
            let said = event.message.as_ref().map_or_else(String::new, |message| format!(": {message}"));
            Some(Next::fail("agent_failed", format!("{what} ended in an error{said}"), hint))
        }
        HookKind::Interrupted => Some(Next::fail("agent_failed", format!("{what} was interrupted"), hint)),
        HookKind::SessionStart
        | HookKind::PromptSubmit
        | HookKind::Stop
        | HookKind::Blocked
        | HookKind::Notification
        | HookKind::Context
        | HookKind::SessionEnd => None,
    }
}
