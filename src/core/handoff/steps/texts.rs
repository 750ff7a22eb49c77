//! What the verdict on a text means to the step that has it typed.

use crate::core::fact::Ended;
use crate::core::handoff::duties::ANOTHER;
use crate::core::handoff::next::Next;
use crate::core::id::HandoffId;
use crate::core::pane::Refusal;
use crate::core::rows::agent::{AgentState, Purpose};
use crate::core::text::word;
use crate::core::tx::Tx;

/// `arrived` follows if the text is there.
pub(super) fn judged(tx: &mut Tx<'_>, id: HandoffId, purpose: &Purpose, ended: &Ended, arrived: Next) -> Next {
    match ended {
        Ended::Delivered(remark) => {
            if let (Some(remark), Some(handoff)) = (remark, tx.handoff_mut(&id)) {
                handoff.warnings.push(format!("{}: {remark}", purpose.word()));
            }
            arrived
        }
        Ended::Unconfirmed(reason) => {
            let message = format!("It is not known whether the {} arrived ({reason})", purpose.word());
            let hint = "look at the agent's pane, then: tasuki retry HANDOFF --assume delivered|not-delivered";
            Next::fail("unconfirmed", message, hint)
        }
        Ended::Refused(Refusal::Busy) => put_off(tx, id),
        Ended::Refused(reason) => refused(purpose, *reason),
    }
}

/// The successor's screen showed a turn: its text is typed when that has ended.
fn put_off(tx: &mut Tx<'_>, id: HandoffId) -> Next {
    let Some(successor_id) = tx.handoff(&id).and_then(|handoff| handoff.successor_id) else { return Next::Stay };
    tx.set_state(&successor_id, AgentState::Busy);
    Next::Defer
}

fn refused(purpose: &Purpose, reason: Refusal) -> Next {
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
    let message = format!("The {} was not typed: {}", purpose.word(), word(&reason));
    // What helps with the agent that writes the document is wrong for the one that takes it over.
    let is_gone = matches!(reason, Refusal::PaneGone | Refusal::PaneDead | Refusal::AgentEnded);
    let hint = if is_gone && !matches!(purpose, Purpose::Instruction(_)) { ANOTHER } else { reason.hint() };
    Next::fail(code, message, hint)
}
