//! The successor is a new session in the outgoing agent's own process and pane. When the session changes, the outgoing
//! agent counts as ended.

use crate::core::agent::{exit, start};
use crate::core::fact::Fact;
use crate::core::id::{AgentId, HandoffId};
use crate::core::request::Successor;
use crate::core::rows::agent::{Agent, AgentState};
use crate::core::rows::handoff::Step;
use crate::core::settings::NewSession;
use crate::core::tx::Tx;

/// How the agent's CLI begins a new session, if its profile has a command for that.
pub(crate) fn new_session(tx: &Tx<'_>, agent: &Agent) -> Option<NewSession> {
    tx.state.settings.profiles.get(&agent.profile).and_then(|profile| profile.new_session)
}

/// Whether the handoff waits until this agent begins a new session.
fn starts_new_session(tx: &Tx<'_>, id: HandoffId, agent_id: &AgentId) -> bool {
    tx.handoff(&id).is_some_and(|handoff| {
        handoff.step == Step::Ending
            && handoff.agent_id == *agent_id
            && handoff.successor == Successor::SamePane
            && handoff.successor_id.is_none()
    })
}

/// Handles two facts, if the handoff waits for a new session: another session has replaced the agent's, or the command
/// for a new session was submitted. The new session becomes the successor, and the outgoing agent counts as ended.
///
/// A submitted command counts only for a CLI that does not report a new session before its first prompt
/// ([`NewSession::Lazy`]). The receipt of that prompt has another session id, which proves the new session.
pub(super) fn learned(tx: &mut Tx<'_>, id: HandoffId, fact: &Fact) {
    let Some(outgoing) = tx.handoff(&id).map(|handoff| handoff.agent_id) else { return };
    if !starts_new_session(tx, id, &outgoing) {
        return;
    }
    if let Fact::SessionReplaced { agent_id, former } = fact
        && *agent_id == outgoing
    {
        make_successor(tx, id, &outgoing, former.clone());
    } else if let Fact::NewSessionAsked { .. } = fact {
        let Some(agent) = tx.agent(&outgoing) else { return };
        if new_session(tx, agent) == Some(NewSession::Lazy) {
            let former = agent.session.id.clone();
            make_successor(tx, id, &outgoing, former);
        }
    }
}

/// Ends the outgoing agent, and makes the successor's row with its pane and process.
fn make_successor(tx: &mut Tx<'_>, id: HandoffId, outgoing: &AgentId, former: Option<String>) {
    let successor_id = tx.new_agent_id();
    let made = tx.agent(outgoing).map(|old| {
        let mut agent = Agent::new(successor_id, old.profile.clone(), tx.now.rfc3339());
        agent.persona_slug.clone_from(&old.persona_slug);
        agent.model.clone_from(&old.model);
        agent.limits.used_up.clone_from(&old.limits.used_up);
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
        start::insert_row(tx, agent);
    }
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.successor_id = Some(successor_id);
    }
    // The step `ending` learns of this and enters `starting`, which finds the successor.
    exit::end(tx, outgoing, AgentState::Ended);
}
