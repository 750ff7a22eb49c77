//! What the operator is told of an agent outside a handoff: a dialog that nobody answers, and turns that fail. `exit`
//! reports an agent that dies. Only agents with a persona count: tasuki leaves anonymous agents alone. A dialog within
//! a handoff is told at once, and is only looked at here.

use crate::contract::NoticeCode;
use crate::core::effect::Effect;
use crate::core::id::AgentId;
use crate::core::notice::OperatorNotice;
use crate::core::rows::agent::{Agent, AgentState, OpenDialog};
use crate::core::time::Deadline;
use crate::core::tx::Tx;
use serde_json::json;

/// The pause between two looks at a dialog that stays open, in milliseconds.
const DIALOG_PAUSE_MS: u64 = 60_000;

/// A dialog has opened outside a handoff. The operator is told only if it is still open after `notify.blocked_after`:
/// a person in front of the agent answers it before that.
pub(crate) fn dialog_opened(tx: &mut Tx<'_>, agent_id: &AgentId, message: Option<&str>) {
    let after_ms = tx.state.settings.notify.blocked_after_ms;
    note(tx, agent_id, after_ms, false, message);
}

/// The operator was told at once of a dialog within a handoff. tasuki looks whether it is still open, because another
/// dialog of the same turn is news.
pub(crate) fn dialog_told(tx: &mut Tx<'_>, agent_id: &AgentId, message: Option<&str>) {
    note(tx, agent_id, DIALOG_PAUSE_MS, true, message);
}

fn note(tx: &mut Tx<'_>, agent_id: &AgentId, after_ms: u64, is_told: bool, message: Option<&str>) {
    let due = Some(Deadline::after(&tx.now, after_ms));
    // `start_dialog` handles a dialog of an agent that is starting.
    let counts = |agent: &&mut Agent| {
        agent.persona_slug.is_some() && agent.state == AgentState::Blocked && agent.start.is_none()
    };
    let Some(agent) = tx.agent_mut(agent_id).filter(counts) else { return };
    let message = message.map(str::to_owned);
    agent.alerts.dialog = Some(OpenDialog { due, look: None, is_told, is_seen: false, message });
}

/// It is time to look at a dialog, and perhaps to tell the operator of it. No event says that somebody has answered a
/// dialog, so tasuki looks at the screen, if the profile says how a dialog looks.
pub(crate) fn dialog_due(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let knows_dialogs = tx.state.settings.profiles.get(&agent.profile).is_some_and(|profile| profile.shows_dialogs);
    let Some(pane) = agent.pane.filter(|_| knows_dialogs) else { return tell_of_dialog(tx, agent_id) };
    let profile = agent.profile.clone();
    let key = tx.effect_of(agent_id, Effect::AwaitIdle { agent_id: *agent_id, pane, profile, brief: true });
    if let Some(dialog) = tx.agent_mut(agent_id).and_then(|agent| agent.alerts.dialog.as_mut()) {
        (dialog.due, dialog.look) = (None, Some(key));
    }
}

/// Whether an event reports another dialog although one was open. If the operator was told of that one, and a look has
/// found it open since, other words mean that it is answered. The same words are taken for the same dialog, because
/// CLIs repeat them. Within a handoff, where the operator is told at once, other words may be a repetition too (Claude
/// Code reports each dialog a second time after six seconds); there, the idle watch soon sees that a dialog is closed.
pub(crate) fn is_another_dialog(agent: &Agent, message: Option<&str>) -> bool {
    let is_known = |dialog: &OpenDialog| dialog.is_told && dialog.is_seen && dialog.look.is_none();
    let dialog = agent.alerts.dialog.as_ref().filter(|dialog| is_known(dialog) && agent.handoff_id.is_none());
    dialog.is_some_and(|dialog| dialog.message.as_deref() != message)
}

/// Takes the result of the look that [`dialog_due`] has begun. The operator is told once of each dialog. As long as the
/// agent counts as blocked, tasuki looks again later.
pub(crate) fn dialog_looked_at(tx: &mut Tx<'_>, agent_id: &AgentId, is_open: bool) {
    let again = Deadline::after(&tx.now, DIALOG_PAUSE_MS);
    if is_open {
        tell_of_dialog(tx, agent_id);
    }
    if let Some(dialog) = tx.agent_mut(agent_id).and_then(|agent| agent.alerts.dialog.as_mut()) {
        (dialog.due, dialog.look) = (Some(again), None);
        dialog.is_seen |= is_open;
    }
}

/// Tells the operator of the open dialog, unless that was done before.
fn tell_of_dialog(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    let Some(dialog) = agent.alerts.dialog.as_mut() else { return };
    let was_told = dialog.is_told;
    (dialog.due, dialog.look, dialog.is_told, dialog.is_seen) = (None, None, true, true);
    if was_told {
        return;
    }
    let said = dialog.message.as_ref().map_or_else(String::new, |message| format!(": {message}"));
    let place = agent.pane.map_or_else(String::new, |pane| format!(" in pane {pane}"));
    let message = format!("Agent {} waits at a dialog{place}{said}", named(agent));
    let handoff_id = agent.handoff_id;
    let details = json!({ "persona_slug": agent.persona_slug, "pane": agent.pane.map(|pane| pane.to_string()) });
    let notice = OperatorNotice::new(NoticeCode::AgentBlocked, message).hint("answer the dialog in the agent's pane");
    tx.notify_operator(OperatorNotice { handoff_id, ..notice.agent(*agent_id).details(details) });
}

/// A turn has ended in an error. The operator is told once, until a turn of the agent succeeds. Within a handoff, the
/// handoff says what follows from it. If the profile says how limits show, `cli_limits` first looks for one. If it
/// finds a limit, the operator is told of the limit instead. `is_ours`: whether it was the turn of a text that tasuki
/// has typed.
pub(crate) fn turn_failed(tx: &mut Tx<'_>, agent_id: &AgentId, said: Option<&str>, is_ours: bool) {
    // If hooks are installed twice, they report this end a second time, after the handoff has failed and released the
    // agent. The second report must not be news.
    if is_ours && let Some(agent) = tx.agent_mut(agent_id).filter(|agent| agent.handoff_id.is_some()) {
        agent.alerts.told_of_failure = true;
        return;
    }
    let is_news = |agent: &&mut Agent| {
        let is_alone = agent.handoff_id.is_none() && agent.start.is_none() && agent.shutdown.is_none();
        agent.persona_slug.is_some() && is_alone && !agent.alerts.told_of_failure
    };
    let Some(agent) = tx.agent_mut(agent_id).filter(is_news) else { return };
    agent.alerts.pending_failure = Some(said.unwrap_or_default().to_owned());
    let profile = agent.profile.clone();
    if !tx.state.settings.profiles.get(&profile).is_some_and(|profile| profile.shows_limits) {
        no_limit_found(tx, agent_id);
    }
}

/// No limit has ended the turn that failed: the operator is told of the turn.
pub(crate) fn no_limit_found(tx: &mut Tx<'_>, agent_id: &AgentId) {
    if tx.agent(agent_id).is_none_or(|agent| agent.alerts.pending_failure.is_none()) {
        return;
    }
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    let said = agent.alerts.pending_failure.take().filter(|said| !said.is_empty());
    agent.alerts.told_of_failure = true;
    let said = said.map_or_else(String::new, |said| format!(": {said}"));
    let message = format!("A turn of agent {} ended in an error{said}", named(agent));
    let hint = format!(
        "look at the agent's pane; once the cause is gone, tell it to continue: tasuki send {} TEXT",
        agent_id.short()
    );
    tx.notify_agent_failure(agent_id, NoticeCode::TurnFailed.as_str(), &message, &hint);
}

/// A turn has ended well: the next failure is news again.
pub(crate) fn turn_succeeded(tx: &mut Tx<'_>, agent_id: &AgentId) {
    if tx.agent(agent_id).is_some_and(|agent| agent.alerts.told_of_failure || agent.alerts.pending_failure.is_some())
        && let Some(agent) = tx.agent_mut(agent_id)
    {
        agent.alerts.told_of_failure = false;
        agent.alerts.pending_failure = None;
    }
}

/// An agent as messages name it: by the beginning of its id, and its persona.
pub(crate) fn named(agent: &Agent) -> String {
    let slug = agent.persona_slug.as_ref().map_or_else(String::new, |slug| format!(" ({slug})"));
    agent.agent_id.short() + &slug
}
