//! A dialog in the pane of an agent that is starting.

use crate::core::effect::Effect;
use crate::core::id::AgentId;
use crate::core::reply::Refused;
use crate::core::rows::agent::{AgentState, Owner};
use crate::core::time::Deadline;
use crate::core::tx::Tx;

/// The pause between two looks at such a dialog, in milliseconds.
const LOOK_AGAIN_MS: u64 = 2_000;
/// How long such a dialog may stay open before a request's start fails, in milliseconds.
const DIALOG_MS: u64 = 60 * 60_000;

/// A dialog is open in the pane of an agent that is starting, for example about trust in its folder. A handoff's start
/// fails: this returns why, and the operator answers the dialog and retries. A request's start does not fail: it
/// continues once somebody has answered the dialog. The first look that finds the dialog refuses the request, unless
/// the request has an answer already, and notifies the operator.
#[must_use]
pub(crate) fn blocked(tx: &mut Tx<'_>, agent_id: &AgentId, screen: &str) -> Option<String> {
    let (again, until) = (Deadline::after(&tx.now, LOOK_AGAIN_MS), Deadline::after(&tx.now, DIALOG_MS));
    let agent = tx.agent(agent_id)?;
    let start = agent.start.as_ref()?;
    let was_blocked = agent.state == AgentState::Blocked;
    let pane = agent.pane.map(|pane| format!(" {pane}")).unwrap_or_default();
    let owner = start.owner.clone();
    tx.set_state(agent_id, AgentState::Blocked);
    let Owner::Request(request) = owner else {
        return Some(format!(
            "A dialog is open in the new agent's pane{pane}: answer the dialog, then retry; the agent's screen ends: \
             {screen}"
        ));
    };
    if let Some(start) = tx.agent_mut(agent_id).and_then(|agent| agent.start.as_mut()) {
        start.look_again = Some(again);
        if !was_blocked {
            start.deadline = until;
        }
    }
    if !was_blocked {
        let why = format!("A dialog is open in the new agent's pane{pane}; its screen ends: {screen}");
        let hint = "answer the dialog in the pane; the agent then continues by itself";
        tx.refuse(&request, Refused::new(502, "start_failed", why.clone()).hint(hint));
        tx.notify_agent_failure(agent_id, "start_failed", &why, hint);
    }
    None
}

/// Looks again whether somebody has answered the dialog.
pub(crate) fn look_again(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let Some(pane) = agent.pane else { return };
    let profile = agent.profile.clone();
    let key = tx.effect_of(agent_id, Effect::AwaitReady { agent_id: *agent_id, pane, profile });
    if let Some(start) = tx.agent_mut(agent_id).and_then(|agent| agent.start.as_mut()) {
        start.look_again = None;
        start.effect = Some(key);
    }
}
