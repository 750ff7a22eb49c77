//! Opens an ended agent's session once more, in a new process. That process becomes an agent without a persona, so
//! tasuki shows it and types nothing to it. It has an agent id of its own: what its hooks report is never taken for the
//! ended agent's, although both have the same session of the CLI.

use crate::contract::reply::HandoffReply;
use crate::core::effect::{Effect, StartAgent};
use crate::core::id::{AgentId, HandoffId, RequestId, Slug};
use crate::core::reply::Reply;
use crate::core::rows::agent::{Agent, AgentState, Owner, Start};
use crate::core::time::Deadline;
use crate::core::tx::Tx;

/// What is to be opened, and where.
pub(crate) struct Reopening {
    pub(crate) request_id: RequestId,
    pub(crate) handoff_id: HandoffId,
    /// The agent that has ended.
    pub(crate) from: AgentId,
    pub(crate) persona: Slug,
    pub(crate) profile: String,
    /// The CLI's id of the session.
    pub(crate) session_id: String,
    pub(crate) cwd: Option<String>,
    pub(crate) tmux_session: String,
    pub(crate) size: (u16, u16),
}

/// Makes the agent's row and asks for its start, in one commit. The request is answered when its screen takes input,
/// or shows a dialog.
pub(crate) fn begin(tx: &mut Tx<'_>, asked: Reopening) {
    let agent_id = tx.new_agent_id();
    let mut agent = Agent::new(agent_id, asked.profile, tx.now.rfc3339());
    agent.cwd = asked.cwd;
    agent.tmux_session = Some(asked.tmux_session);
    agent.reopened_from = Some(asked.from);
    agent.ours = true;
    agent.start_server = tx.state.server;
    let plan = StartAgent { reopens: Some(asked.session_id), ..agent.start_plan(asked.persona, asked.size) };
    let effect = Effect::Start(plan);
    let key = tx.effect_of(&agent_id, effect);
    let deadline = Deadline::after(&tx.now, tx.state.settings.limits.starting_ms);
    let owner = Owner::Reopening { request_id: asked.request_id, handoff_id: asked.handoff_id };
    agent.start = Some(Start::begun(owner, key, deadline));
    tx.journal(agent.line());
    tx.out.agents.insert(agent_id, agent);
}

/// The live agent that has reopened the session of this agent.
pub(crate) fn of(tx: &Tx<'_>, from: &AgentId) -> Option<AgentId> {
    let is_it = |agent: &Agent| agent.reopened_from == Some(*from) && agent.state.is_live();
    tx.agent_ids().into_iter().find(|id| tx.agent(id).is_some_and(is_it))
}

/// The process runs, and its screen shows this state: nothing more is waited for, because nothing will be typed.
pub(crate) fn runs(tx: &mut Tx<'_>, agent_id: &AgentId, state: AgentState) {
    let timestamp = tx.now.rfc3339();
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    let Some(Start { owner: Owner::Reopening { request_id, handoff_id }, effect, .. }) = agent.start.take() else {
        return;
    };
    agent.registered_at.get_or_insert(timestamp);
    let pane = agent.pane.map(|pane| pane.to_string());
    tx.set_state(agent_id, state);
    if let Some(key) = effect {
        tx.drop_effect(key);
    }
    let agent_id = Some(agent_id.to_string());
    tx.answer(&request_id, Reply::ok(&HandoffReply { agent_id, pane, ..HandoffReply::new(&handoff_id, "reopened") }));
}
