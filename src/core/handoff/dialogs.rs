//! Dialogs that wait for a person: during a handoff, and in the turn in which the successor reads its briefing.

use crate::contract::NoticeCode;
use crate::core::id::{AgentId, HandoffId};
use crate::core::notice::OperatorNotice;
use crate::core::rows::handoff::Handoff;
use crate::core::tx::Tx;
use serde_json::json;

/// The briefed successor shows a dialog, for example because the document is outside its working folder and needs a
/// permission. Notes it in the handoff's view and notifies the operator.
pub(crate) fn successor_blocked(tx: &mut Tx<'_>, id: HandoffId, agent_id: &AgentId, message: Option<&str>) {
    let timestamp = tx.now.rfc3339();
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    if handoff.successor_id == Some(*agent_id) {
        handoff.successor_blocked_at = Some(timestamp);
    }
    let handoff = handoff.clone();
    blocked(tx, &handoff, agent_id, message);
}

/// A turn of this agent has ended, or the agent itself. If the agent was answering a briefing, it has finished, and no
/// dialog blocks it.
pub(crate) fn successor_turn_ended(tx: &mut Tx<'_>, agent_id: &AgentId) {
    if tx.agent(agent_id).is_none_or(|agent| agent.answering.is_none()) {
        return;
    }
    successor_dialog_closed(tx, agent_id);
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.answering = None;
    }
}

/// The dialog of a successor that answers its briefing is closed. Its handoff's view says so.
pub(crate) fn successor_dialog_closed(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(id) = tx.agent(agent_id).and_then(|agent| agent.answering) else { return };
    // The handoff may have another successor by now.
    let is_its = |handoff: &Handoff| handoff.successor_id == Some(*agent_id) && handoff.successor_blocked_at.is_some();
    if tx.handoff(&id).is_some_and(is_its)
        && let Some(handoff) = tx.handoff_mut(&id)
    {
        handoff.successor_blocked_at = None;
    }
}

/// Notifies the operator at once of a dialog within a handoff.
pub(crate) fn blocked(tx: &mut Tx<'_>, handoff: &Handoff, agent_id: &AgentId, message: Option<&str>) {
    let said = message.map_or_else(String::new, |message| format!(": {message}"));
    let step = handoff.step.as_str();
    let message = format!("Agent {} waits for you in the handoff's step {step}{said}", agent_id.short());
    let notice = OperatorNotice::new(NoticeCode::AgentBlocked, message).hint("answer the dialog in the agent's pane");
    tx.notify_operator(notice.agent(*agent_id).handoff(handoff.handoff_id).details(json!({ "step": step })));
}
