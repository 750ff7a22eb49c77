//! `handoff_reopen`: reopens the session of the outgoing agent, beside its successor, so that a person can ask that
//! agent. The handoff itself does not change.

use super::row::find;
use crate::core::agent::reopen::{self, Reopening};
use crate::core::agent::start::DEFAULT_SIZE;
use crate::core::id::RequestId;
use crate::core::reply::Refused;
use crate::core::resume;
use crate::core::rows::agent::AgentState;
use crate::core::rows::handoff::{Handoff, HandoffError, Step};
use crate::core::tx::Tx;

/// `handoff_reopen`.
pub(crate) fn asked(tx: &mut Tx<'_>, request: &RequestId, text: &str) {
    match find(tx, text).and_then(|handoff| check(tx, request, handoff)) {
        Err(refused) => tx.refuse(request, refused),
        Ok(wanted) => reopen::begin(tx, wanted),
    }
}

fn check(tx: &Tx<'_>, request: &RequestId, handoff: &Handoff) -> Result<Reopening, Refused> {
    let from = handoff.agent_id;
    let agent = tx.agent(&from).ok_or_else(|| Refused::new(404, "no_agent", "Agent not found"))?;
    if agent.state.is_live() {
        let message = format!("The agent has not ended: it is {}", agent.state.as_str());
        return Err(Refused::new(409, "not_ended", message).hint("ask it in its own pane"));
    }
    if let Some(process) = agent.process.filter(|_| agent.state == AgentState::Lost && awaits_end(handoff)) {
        let message = format!(
            "The agent has not ended: its pane is gone, and tasuki has not seen its process end (process {}); nothing \
             was opened",
            process.pid
        );
        let hint = if handoff.step == Step::Failed {
            format!("end that process yourself, then: tasuki retry {}", handoff.handoff_id.short())
        } else {
            "wait for its end, or end that process yourself".to_owned()
        };
        return Err(Refused::new(409, "not_ended", message).hint(hint.as_str()));
    }
    if let Some(open) = reopen::of(tx, &from).and_then(|id| tx.agent(&id)) {
        let pane = open.pane.map(|pane| format!(" in pane {pane}")).unwrap_or_default();
        let message = format!("The session is open already, as agent {}{pane}", open.agent_id);
        return Err(Refused::new(409, "already_open", message).hint("go to that pane"));
    }
    let session_id = handoff.session.id.clone().or_else(|| agent.session.id.clone());
    let Some(session_id) = session_id else {
        let message = "The agent's CLI has never reported the id of its session";
        let hint = format!("read what it said instead: tasuki read {}", handoff.handoff_id.short());
        return Err(no_resume(message.to_owned(), &hint));
    };
    let profile = agent.profile.clone();
    let words = tx.state.settings.profiles.get(&profile).and_then(|facts| resume::words(&facts.resume, &session_id));
    if words.is_none() {
        let message = format!("Profile {profile} has no command that opens this session again");
        return Err(no_resume(message, "add `resume` to the profile, then restart the sidecar"));
    }
    tx.connected()?;
    // The window goes into the successor's tmux session, because the person who has a question is there.
    let successor = handoff.successor_id.and_then(|id| tx.agent(&id)).filter(|agent| agent.state.is_live());
    let own = || agent.tmux_session.clone().unwrap_or_else(|| format!("tasuki-{}", handoff.persona_slug));
    Ok(Reopening {
        request_id: request.clone(),
        handoff_id: handoff.handoff_id,
        from,
        persona: handoff.persona_slug.clone(),
        profile,
        session_id,
        cwd: agent.cwd.clone(),
        tmux_session: successor.and_then(|agent| agent.tmux_session.clone()).unwrap_or_else(own),
        size: handoff.successor_window.as_ref().map_or(DEFAULT_SIZE, |window| window.size),
    })
}

/// Whether the handoff waits until its outgoing agent has ended, or has failed because that took too long.
fn awaits_end(handoff: &Handoff) -> bool {
    let is_stuck = |error: &HandoffError| error.step == Step::Ending && error.code == "did_not_exit";
    handoff.step == Step::Ending || (handoff.step == Step::Failed && handoff.error.as_ref().is_some_and(is_stuck))
}

fn no_resume(message: String, hint: &str) -> Refused {
    Refused::new(400, "no_resume", message).hint(hint)
}
