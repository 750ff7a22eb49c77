//! A dialog in the pane of an agent that is starting.

use crate::core::effect::Effect;
use crate::core::id::AgentId;
use crate::core::reply::Refused;
use crate::core::rows::agent::{AgentState, Owner, Start};
use crate::core::time::Deadline;
use crate::core::tx::Tx;

/// The pause between two looks at such a dialog, in milliseconds.
const LOOK_AGAIN_MS: u64 = 2_000;
/// How long such a dialog may stay open before a request's start fails, in milliseconds.
const DIALOG_MS: u64 = 60 * 60_000;
/// What to do about an agent that has ended at such a dialog.
const ENDED_HINT: &str = "start another agent, and answer its dialog so that the agent continues";

/// What to do about an agent that has ended while it was starting. Most often its pane is gone with it.
pub(super) fn hint_after_end(start: &Start) -> &'static str {
    if start.dialog_error.is_some() {
        return ENDED_HINT;
    }
    "the agent's pane has most likely closed with it: to see why the agent ends, run its command in a pane of your own; \
     then start another agent"
}

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
        screen.clone_into(&mut start.last_screen);
        if !was_blocked {
            start.deadline = until;
        }
    }
    if !was_blocked {
        let why = format!("A dialog is open in the new agent's pane{pane}; its screen ends: {screen}");
        let hint = "answer the dialog in the pane; the agent then continues by itself";
        tx.refuse(&request, Refused::new(502, "start_failed", why.clone()).hint(hint));
        let error_id = tx.notify_agent_failure(agent_id, "start_failed", &why, hint);
        if let Some(start) = tx.agent_mut(agent_id).and_then(|agent| agent.start.as_mut()) {
            start.dialog_error = Some(error_id);
        }
    }
    None
}

/// The start has failed after all. The failure that is reported now says why, so the one that asked the operator to
/// answer the dialog counts as dismissed: nobody can answer the dialog any more, or the start does not wait for it.
pub(crate) fn withdraw(tx: &mut Tx<'_>, start: &Start) {
    tx.out.dismissed.extend(start.dialog_error);
}

/// The pane of an agent that is starting is gone. `screen`: what it showed last, if it was seen since the last dialog.
pub(crate) fn pane_gone(start: &mut Start, screen: String) {
    if !screen.is_empty() {
        start.last_screen = screen;
    }
}

/// Why a start is not over in time, in words.
pub(crate) fn overdue_in_words(start: &Start) -> &'static str {
    match start.ready && !start.registered {
        true => {
            "The agent waits for input, but its hooks did not report its session in time (`tasuki doctor` checks the hooks)"
        }
        false => "The agent did not register and become ready in time",
    }
}

/// That an agent has ended before it was ready, in words.
pub(crate) fn end_in_words(start: &Start) -> String {
    let place = if start.dialog_error.is_some() { " at a dialog in its pane," } else { "" };
    match start.last_screen.as_str() {
        "" => format!("The agent ended{place} before it was ready"),
        screen => format!("The agent ended{place} before it was ready; its screen ended: {screen}"),
    }
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
