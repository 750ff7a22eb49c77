//! The turn in which the successor reads its document. It belongs to the handoff: a successor that fails or dies in it has
//! taken nothing over (SPEC 14).

use super::{ack, end, flow, outcome};
use crate::core::hook::{HookEvent, HookKind};
use crate::core::id::HandoffId;
use crate::core::rows::agent::{AgentState, OurTurn, Purpose};
use crate::core::rows::handoff::{Read, Step};
use crate::core::tx::Tx;

/// The briefing arrived: the end of its turn is waited for.
pub(crate) fn begin(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    handoff.read = None;
    let Some(successor_id) = handoff.successor_id else { return };
    let Some(agent) = tx.agent_mut(&successor_id) else { return };
    let is_ours = agent.our_turn.as_ref().is_some_and(|turn| turn.purpose == Purpose::Briefing(id));
    if !is_ours && agent.state == AgentState::Idle {
        // A person says that the briefing arrived, and its turn is over: how it ended is not known.
        return over(tx, id, Read::Unseen);
    }
    agent.answering = Some(id);
    agent.our_turn.get_or_insert(OurTurn {
        purpose: Purpose::Briefing(id),
        turn_id: None,
        queued: false,
        paused: false,
    });
}

/// The turn has ended, one way or another.
pub(crate) fn turn_ended(tx: &mut Tx<'_>, id: HandoffId, event: &HookEvent) {
    let said = event.message.as_ref().map_or_else(String::new, |message| format!(": {message}"));
    match event.kind {
        HookKind::StopFailure => {
            failed(tx, id, &format!("The turn in which the successor reads its document ended in an error{said}"));
        }
        HookKind::Interrupted => {
            failed(tx, id, "The turn in which the successor reads its document was interrupted");
        }
        HookKind::SessionStart
        | HookKind::PromptSubmit
        | HookKind::Stop
        | HookKind::Blocked
        | HookKind::Notification
        | HookKind::Context
        | HookKind::SessionEnd => over(tx, id, Read::Seen),
    }
}

/// The turn has ended without an event.
pub(crate) fn turn_inferred(tx: &mut Tx<'_>, id: HandoffId) {
    if is_reading(tx, id) {
        outcome::warn(tx, id, "stop_inferred");
        over(tx, id, Read::Seen);
    }
}

/// The successor speaks of its handoff: it has read.
pub(crate) fn answered(tx: &mut Tx<'_>, id: HandoffId) {
    over(tx, id, Read::Seen);
}

/// The time is up. A successor that lives is busy with its work by now.
pub(crate) fn late(tx: &mut Tx<'_>, id: HandoffId) {
    let successor = tx.handoff(&id).and_then(|handoff| handoff.successor_id).and_then(|id| tx.agent(&id));
    if successor.is_some_and(|agent| agent.state.is_live() && agent.dying.is_none()) {
        over(tx, id, Read::Unseen);
    } else {
        ended(tx, id);
    }
}

/// The successor has ended or is lost.
pub(crate) fn ended(tx: &mut Tx<'_>, id: HandoffId) {
    failed(tx, id, "The successor has ended in the turn in which it was to read its document");
}

fn is_reading(tx: &Tx<'_>, id: HandoffId) -> bool {
    tx.handoff(&id).is_some_and(|handoff| handoff.step == Step::Reading)
}

fn over(tx: &mut Tx<'_>, id: HandoffId, read: Read) {
    if !is_reading(tx, id) {
        return;
    }
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    handoff.read = Some(read);
    let step = ack::after_briefing(handoff);
    flow::enter(tx, id, step);
    if step == Step::Acknowledging {
        ack::timeline::briefed(tx, id);
    }
}

fn failed(tx: &mut Tx<'_>, id: HandoffId, why: &str) {
    if !is_reading(tx, id) {
        return;
    }
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.read = Some(Read::Failed);
    }
    let hint = "document and record are kept; tasuki retry HANDOFF briefs it again, or starts another if it has ended; \
                tasuki retry HANDOFF --successor new starts another in any case";
    end::fail(tx, id, "successor_failed", why, hint);
}
