//! What follows from the verdict on a text, for the step that typed it.

use crate::core::fact::DeliveryResult;
use crate::core::handoff::handler::hint_successor_ended;
use crate::core::handoff::next::Next;
use crate::core::id::HandoffId;
use crate::core::pane::Refusal;
use crate::core::rows::agent::{AgentState, Purpose};
use crate::core::tx::Tx;

/// What the operator says after a look at the pane. Each command can be pasted as it is. `delivered|not-delivered`
/// can't be: to a shell it is the first of the two, and a pipe.
pub(crate) const HINT_DOUBT: &str = "if the text is there: tasuki retry HANDOFF --assume delivered; otherwise: \
                                     tasuki retry HANDOFF --assume not-delivered";

/// What follows from a verdict: `arrived` if the text was delivered.
pub(super) fn follow(
    tx: &mut Tx<'_>,
    id: HandoffId,
    purpose: &Purpose,
    result: &DeliveryResult,
    arrived: Next,
) -> Next {
    match result {
        DeliveryResult::Delivered(remark) => {
            if let (Some(remark), Some(handoff)) = (remark, tx.handoff_mut(&id)) {
                handoff.warnings.push(format!("{}: {remark}", purpose.as_str()));
            }
            arrived
        }
        DeliveryResult::Unconfirmed(reason) => {
            let message = format!("It is not known whether the {} arrived ({reason})", purpose.as_str());
            Next::fail("unconfirmed", message, &format!("look at the agent's pane; {HINT_DOUBT}"))
        }
        DeliveryResult::Refused(Refusal::Busy) => defer(tx, id),
        DeliveryResult::Refused(reason) => refused(tx, id, purpose, *reason),
    }
}

/// The successor's screen showed a turn: defers the text until the turn has ended.
fn defer(tx: &mut Tx<'_>, id: HandoffId) -> Next {
    let Some(successor_id) = tx.handoff(&id).and_then(|handoff| handoff.successor_id) else { return Next::Stay };
    tx.set_state(&successor_id, AgentState::Busy);
    Next::Defer
}

fn refused(tx: &Tx<'_>, id: HandoffId, purpose: &Purpose, reason: Refusal) -> Next {
    let code = match reason {
        Refusal::PaneGone => "pane_gone",
        Refusal::AgentEnded => "agent_ended",
        Refusal::PaneChanged
        | Refusal::PaneDead
        | Refusal::PaneClaimed
        | Refusal::BareShell
        | Refusal::Dialog
        | Refusal::Draft
        | Refusal::Busy
        | Refusal::NotReady
        | Refusal::InputOff
        | Refusal::CopyMode
        | Refusal::CookedMode
        | Refusal::NoTmux
        | Refusal::HooksUnseen
        | Refusal::BadText
        | Refusal::TextFile => "not_delivered",
    };
    let message = reason.told(&format!("The {} was not typed", purpose.as_str()));
    // The hint of these refusals is for the outgoing agent; a dead successor needs another one.
    let is_gone = matches!(reason, Refusal::PaneGone | Refusal::PaneDead | Refusal::AgentEnded);
    let is_successor = !matches!(purpose, Purpose::Instruction(_));
    let hint = if is_gone && is_successor { hint_successor_ended(tx, id) } else { reason.hint() };
    Next::fail(code, message, hint)
}
