//! A new session in the outgoing agent's own process: the agent ends with its session, and its successor lives on in
//! its pane.

use crate::core::agent::{exit, start};
use crate::core::fact::Fact;
use crate::core::id::{AgentId, HandoffId};
use crate::core::request::Successor;
use crate::core::rows::agent::{Agent, AgentState};
use crate::core::rows::handoff::Step;
use crate::core::settings::NewSession;
use crate::core::tx::Tx;

/// How a new session of that agent's CLI begins, where its profile has a command for that.
pub(crate) fn new_session(tx: &Tx<'_>, agent: &Agent) -> Option<NewSession> {
    tx.state.settings.profiles.get(&agent.profile).and_then(|profile| profile.new_session)
}

/// Whether a new session is what that handoff waits for of this agent.
fn starts_new_session(tx: &Tx<'_>, id: HandoffId, agent_id: &AgentId) -> bool {
    tx.handoff(&id).is_some_and(|handoff| {
        handoff.step == Step::Ending
            && handoff.agent_id == *agent_id
            && handoff.successor == Successor::SamePane
            && handoff.successor_id.is_none()
    })
}

/// The command for a new session was submitted, or another session has replaced this one. If the handoff waits for
/// that, the agent has ended with it, and the new session is its successor.
///
/// A CLI that does not report new sessions has obeyed if its composer is empty. Its first receipt proves it, because
/// that has another session id.
pub(super) fn learned(tx: &mut Tx<'_>, id: HandoffId, fact: &Fact) {
    let Some(outgoing) = tx.handoff(&id).map(|handoff| handoff.agent_id) else { return };
    if !starts_new_session(tx, id, &outgoing) {
        return;
    }
    if let Fact::SessionReplaced { agent_id, former } = fact
        && *agent_id == outgoing
    {
        live_on(tx, id, &outgoing, former.clone());
    } else if let Fact::NewSessionAsked { .. } = fact {
        let Some(agent) = tx.agent(&outgoing) else { return };
        if new_session(tx, agent) == Some(NewSession::Lazy) {
            let former = agent.session.id.clone();
            live_on(tx, id, &outgoing, former);
        }
    }
}

/// Ends the outgoing agent and makes the row of the successor in its process.
fn live_on(tx: &mut Tx<'_>, id: HandoffId, outgoing: &AgentId, former: Option<String>) {
    let successor_id = tx.new_agent_id();
    let made = tx.agent(outgoing).map(|old| {
        let mut agent = Agent::new(successor_id, old.profile.clone(), tx.now.rfc3339());
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
    exit::end(tx, outgoing, AgentState::Ended);
}
