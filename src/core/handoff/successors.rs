//! Who takes over (SPEC 4.2): a new agent in a new window, a new session in the outgoing agent's own process, or an agent
//! that runs already.

use super::{end, flow, outcome};
use crate::core::hook::HookEvent;
use crate::core::id::{AgentId, HandoffId};
use crate::core::reply::Refused;
use crate::core::request::Successor;
use crate::core::rows::agent::{Agent, AgentState, Owner};
use crate::core::rows::handoff::Step;
use crate::core::settings::NewSession;
use crate::core::tx::Tx;
use crate::core::{life, start};

/// Whether that one can take over from this agent; the id of one that runs already. `own`: the handoff that asks, which
/// may have taken it before.
pub(crate) fn check(
    tx: &Tx<'_>,
    successor: &Successor,
    outgoing: &Agent,
    own: Option<HandoffId>,
) -> Result<Option<AgentId>, Refused> {
    match successor {
        Successor::New => Ok(None),
        Successor::SamePane => same_pane(tx, outgoing).map(|()| None),
        Successor::Existing { agent_id } => existing(tx, agent_id, outgoing, own).map(Some),
    }
}

fn same_pane(tx: &Tx<'_>, outgoing: &Agent) -> Result<(), Refused> {
    let refused = |message: String| Err(Refused::new(400, "same_pane_unavailable", message).field("successor"));
    if !outgoing.state.is_live() || outgoing.pane.is_none() {
        return refused("The agent has no pane in which a new session could begin".to_owned());
    }
    if new_session(tx, outgoing).is_none() {
        return refused(format!("Profile {} has no command for a new session", outgoing.profile));
    }
    Ok(())
}

fn new_session(tx: &Tx<'_>, agent: &Agent) -> Option<NewSession> {
    tx.state.settings.profiles.get(&agent.profile).and_then(|profile| profile.new_session)
}

fn existing(tx: &Tx<'_>, text: &str, outgoing: &Agent, own: Option<HandoffId>) -> Result<AgentId, Refused> {
    let found = text.parse().ok().and_then(|id| tx.agent(&id));
    let agent = found.ok_or_else(|| Refused::new(404, "no_agent", "Successor not found").field("successor"))?;
    let bad = |why: &str| Err(Refused::new(400, "bad_successor", format!("The successor {why}")).field("successor"));
    if agent.agent_id == outgoing.agent_id {
        return bad("is the outgoing agent itself");
    }
    if !agent.state.is_live() {
        return bad("is not active");
    }
    if agent.persona_slug.is_none() {
        return bad("has no persona");
    }
    if agent.persona_slug != outgoing.persona_slug {
        return bad("has another persona");
    }
    if agent.pane.is_none() {
        return bad("has no tmux pane");
    }
    if agent.handoff_id.is_some_and(|other| Some(other) != own) || agent.record_of.is_some() {
        let message = "The successor is in another handoff already";
        return Err(Refused::new(409, "successor_taken", message).field("successor"));
    }
    if agent.shutdown.is_some() {
        return Err(Refused::new(409, "shutting_down", "The successor is being shut down").field("successor"));
    }
    Ok(agent.agent_id)
}

/// Takes an agent that runs already for this handoff, so that nothing else is asked of it meanwhile.
pub(crate) fn reserve(tx: &mut Tx<'_>, id: HandoffId, successor_id: AgentId) {
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.successor_id = Some(successor_id);
    }
    if let Some(agent) = tx.agent_mut(&successor_id) {
        agent.handoff_id = Some(id);
    }
}

/// Brings the successor to life, or takes up again what was begun.
pub(crate) fn begin(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let deadline = handoff.deadline;
    match (&handoff.successor, handoff.successor_id) {
        (Successor::Existing { .. }, Some(successor_id)) => take_over(tx, id, &successor_id),
        (_, Some(successor_id)) => start::adopt(tx, &successor_id, id, deadline),
        (Successor::New, None) => start_new(tx, id),
        (Successor::SamePane | Successor::Existing { .. }, None) => {
            let why = "There is no agent that could take over";
            let hint = "document and record are kept; choose another: tasuki retry HANDOFF --successor new";
            end::fail(tx, id, "successor_failed", why, hint);
        }
    }
}

fn start_new(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let Some(outgoing) = tx.agent(&handoff.agent_id) else { return };
    let place = handoff.place.as_ref();
    let slug = handoff.persona_slug.clone();
    let fallback = || outgoing.tmux_session.clone().unwrap_or_else(|| format!("tasuki-{slug}"));
    let wanted = start::Wanted {
        persona: slug.clone(),
        profile: outgoing.profile.clone(),
        cwd: outgoing.cwd.clone().or_else(|| place.and_then(|place| place.cwd.clone())),
        session: place.map_or_else(fallback, |place| place.session.clone()),
        size: place.map_or(start::DEFAULT_SIZE, |place| place.size),
        previous: Some(handoff.agent_id),
    };
    let deadline = handoff.deadline;
    let successor_id = start::create(tx, wanted, Owner::Handoff(id), deadline);
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.successor_id = Some(successor_id);
    }
}

/// An agent that runs already takes over as soon as it is free.
pub(crate) fn take_over(tx: &mut Tx<'_>, id: HandoffId, successor_id: &AgentId) {
    let Some(agent) = tx.agent(successor_id) else { return };
    if !agent.state.is_live() {
        return outcome::successor_failed(tx, id, "successor_failed", "The successor has ended");
    }
    if !agent.is_free() {
        return flow::put_off(tx, id);
    }
    let Some(outgoing) = tx.handoff(&id).map(|handoff| handoff.agent_id) else { return };
    if let Some(agent) = tx.agent_mut(successor_id) {
        agent.previous_agent_id.get_or_insert(outgoing);
    }
    if let Some(agent) = tx.agent_mut(&outgoing) {
        agent.successor_id = Some(*successor_id);
    }
    outcome::successor_ready(tx, id);
}

/// The handoff in whose step `ending` this agent is to begin a new session.
fn begins_anew(tx: &Tx<'_>, agent_id: &AgentId) -> Option<HandoffId> {
    let id = tx.agent(agent_id)?.handoff_id?;
    let handoff = tx.handoff(&id)?;
    let is_asked = handoff.step == Step::Ending
        && handoff.agent_id == *agent_id
        && handoff.successor == Successor::SamePane
        && handoff.successor_id.is_none();
    is_asked.then_some(id)
}

/// The agent's session gave way to another one. Where that is what a handoff waits for, the agent has ended with it, and
/// the new session is its successor, whose id is given.
pub(crate) fn session_was_replaced(tx: &mut Tx<'_>, agent_id: &AgentId, event: &HookEvent) -> Option<AgentId> {
    let id = begins_anew(tx, agent_id)?;
    let session = &tx.agent(agent_id)?.session;
    let is_start = event.kind == crate::core::hook::HookKind::SessionStart;
    let former = if is_start { session.former.clone() } else { session.id.clone() };
    Some(live_on(tx, id, agent_id, former))
}

/// The command for a new session was submitted. A CLI that says nothing of it has obeyed: an emptied composer is all that
/// it shows. Its first receipt tells whether that is true, for it must bear another session's id.
pub(crate) fn asked_for_new_session(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(agent_id) = tx.handoff(&id).map(|handoff| handoff.agent_id) else { return };
    let is_lazy = tx.agent(&agent_id).is_some_and(|agent| new_session(tx, agent) == Some(NewSession::Lazy));
    if is_lazy && begins_anew(tx, &agent_id) == Some(id) {
        let former = tx.agent(&agent_id).and_then(|agent| agent.session.id.clone());
        live_on(tx, id, &agent_id, former);
    }
}

/// Ends the outgoing agent and makes the row of the one that lives on in its process.
fn live_on(tx: &mut Tx<'_>, id: HandoffId, outgoing: &AgentId, former: Option<String>) -> AgentId {
    let successor_id = tx.new_agent_id();
    let made = tx.agent(outgoing).map(|old| {
        let mut agent = Agent::new(successor_id, old.profile.clone(), tx.now.stamp());
        agent.persona_slug.clone_from(&old.persona_slug);
        agent.pane = old.pane;
        agent.process = old.process;
        agent.cwd.clone_from(&old.cwd);
        agent.tmux_session.clone_from(&old.tmux_session);
        agent.previous_agent_id = Some(*outgoing);
        agent.handoff_id = Some(id);
        agent.ours = old.ours;
        agent.in_place = true;
        agent.start_server = old.start_server;
        agent.hooks_seen = old.hooks_seen;
        agent.session.former = former;
        agent
    });
    if let Some(agent) = made {
        start::introduce(tx, agent);
    }
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.successor_id = Some(successor_id);
    }
    // This leaves the step `ending`, and `starting` finds the successor.
    life::end(tx, outgoing, AgentState::Ended);
    successor_id
}
