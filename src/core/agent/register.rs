//! Registers agents that already run, by their first event or at the operator's request; and takes the requests that
//! send a text to an agent, shut it down or forget it.

use super::queue::MAX_QUEUE;
use super::{exit, start, unlocated};
use crate::contract::reply::AgentReply;
use crate::contract::{Hooks, JournalLine, maybe};
use crate::core::effect::Effect;
use crate::core::event::RequestFacts;
use crate::core::hook::HookEvent;
use crate::core::id::{AgentId, RequestId, Slug};
use crate::core::pane::PaneFacts;
use crate::core::reply::{Refused, Reply};
use crate::core::request::{ForgetRequest, RegisterRequest, SendRequest, ShutdownRequest, pane_number};
use crate::core::rows::agent::{Agent, AgentState, Asker, Queued, WatchState};
use crate::core::rows::lookup::PaneLookup;
use crate::core::rows::outbox::Waiter;
use crate::core::time::Deadline;
use crate::core::tx::Tx;

/// How many more times tasuki looks up the pane of a new session if tmux does not answer.
const MOST_LOOKS: u8 = 12;

/// A session started that belongs to no known agent. tasuki looks up its pane first. If the event names no pane of our
/// tmux server, the event is all that is known of the agent.
pub(crate) fn unknown_session(tx: &mut Tx<'_>, event: &HookEvent) {
    // A pane number of another server means nothing in ours: such an agent gets a row without a pane, so nothing is
    // typed to it.
    let is_elsewhere = tx.state.server.is_some_and(|server| !event.is_on(&server));
    match event.pane.filter(|_| !is_elsewhere) {
        Some(pane) => look_up_pane(tx, pane, PaneLookup::Event { event: Box::new(event.clone()), looks: 0 }),
        None => {
            let agent_id = fresh_id(tx, event.agent_id);
            let profile = event.profile.clone().unwrap_or_else(|| "unknown".to_owned());
            let mut agent = Agent::new(agent_id, profile, tx.now.rfc3339());
            fill_from_event(tx, &mut agent, event);
            insert(tx, agent);
        }
    }
}

fn look_up_pane(tx: &mut Tx<'_>, pane: u32, lookup: PaneLookup) {
    tx.effect(Waiter::PaneLookup(lookup), Effect::Identify { pane });
}

/// tmux did not answer the lookup of a pane. A request is refused. For an event, tasuki looks again a few times,
/// because an agent that is registered without its pane could never be typed to.
pub(crate) fn not_identified(tx: &mut Tx<'_>, lookup: PaneLookup) {
    match lookup {
        PaneLookup::Request { request_id, .. } => tx.refuse(&request_id, Refused::no_tmux()),
        PaneLookup::Event { event, looks } => match event.pane.filter(|_| looks < MOST_LOOKS) {
            Some(pane) => look_up_pane(tx, pane, PaneLookup::Event { event, looks: looks + 1 }),
            None => register_session(tx, &event, None),
        },
    }
}

/// The agent id that the event names, unless an agent already has it.
fn fresh_id(tx: &mut Tx<'_>, named: Option<AgentId>) -> AgentId {
    named.filter(|id| tx.agent(id).is_none()).unwrap_or_else(|| tx.new_agent_id())
}

fn fill_from_event(tx: &Tx<'_>, agent: &mut Agent, event: &HookEvent) {
    agent.persona_slug.clone_from(&event.persona_slug);
    agent.session.id.clone_from(&event.session_id);
    agent.transcript_path.clone_from(&event.transcript_path);
    agent.cwd = event.cwd.clone().or_else(|| agent.cwd.clone());
    agent.process = agent.process.or_else(|| unlocated::process_of(tx, event));
    agent.hooks_seen = true;
    agent.registered_at = Some(tx.now.rfc3339());
    agent.state = AgentState::Idle;
}

/// Inserts the row of an agent that runs. If it has neither pane nor process, and there are already too many such
/// agents, another one of them counts as lost from now on.
fn insert(tx: &mut Tx<'_>, agent: Agent) {
    if agent.pane.is_none()
        && agent.process.is_none()
        && let Some(first) = unlocated::first_to_drop(tx)
    {
        exit::end(tx, &first, AgentState::Lost);
    }
    // No field `handoff_id`, which `line` writes as null.
    tx.journal(JournalLine { handoff_id: None, ..agent.line() });
    tx.out.agents.insert(agent.agent_id, agent);
}

/// `agent_register`.
pub(crate) fn register_asked(tx: &mut Tx<'_>, request: &RequestId, asked: RegisterRequest, facts: &RequestFacts) {
    if let Err(refused) = register_check(tx, &asked, facts) {
        return tx.refuse(request, refused);
    }
    let Some(pane) = pane_number(&asked.pane) else { return };
    let profile = asked.profile.or_else(|| facts.persona.as_ref().and_then(|(_, persona)| persona.profile.clone()));
    look_up_pane(tx, pane, PaneLookup::Request { request_id: request.clone(), persona: asked.persona_slug, profile });
}

fn register_check(tx: &Tx<'_>, asked: &RegisterRequest, facts: &RequestFacts) -> Result<(), Refused> {
    if let Some(slug) = &asked.persona_slug {
        let persona = facts.persona.as_ref().filter(|(named, persona)| named == slug && persona.exists);
        let (_, persona) = persona.ok_or_else(|| Refused::new(404, "no_persona", "Persona not found"))?;
        if !persona.has_skill {
            return Err(Refused::new(400, "no_skill", format!("Persona {slug} has no skill.md")));
        }
    }
    if asked.profile.as_ref().is_some_and(|profile| !tx.state.settings.profiles.contains_key(profile)) {
        return Err(Refused::new(404, "no_profile", "Profile not found").field("profile"));
    }
    let Some(server) = tx.state.server else { return Err(Refused::no_tmux()) };
    let named_pid = asked.tmux.as_deref().map(|tmux| tmux.split(',').nth(1).and_then(|pid| pid.parse::<u32>().ok()));
    if named_pid == Some(None) {
        return Err(Refused::bad("tmux", "must be the value of $TMUX: socket,pid,session"));
    }
    if named_pid.flatten().is_some_and(|pid| pid != server.pid) {
        let message = "The pane is on a different tmux server than the one that tasuki watches";
        return Err(Refused::new(404, "no_pane", message).field("tmux"));
    }
    Ok(())
}

/// Takes the result of the lookup of a pane; none if there is no such pane.
pub(crate) fn identified(tx: &mut Tx<'_>, lookup: PaneLookup, facts: Option<PaneFacts>) {
    match lookup {
        PaneLookup::Event { event, .. } => register_session(tx, &event, facts),
        PaneLookup::Request { request_id, persona, profile } => {
            match facts.ok_or_else(|| Refused::new(404, "no_pane", "No such pane").field("pane")) {
                Err(refused) => tx.refuse(&request_id, refused),
                Ok(facts) => match register_pane(tx, facts, persona, profile) {
                    Err(refused) => tx.refuse(&request_id, refused),
                    Ok(agent_id) => answer_registered(tx, &request_id, &agent_id),
                },
            }
        }
    }
}

/// Registers the agent of a session that an event has reported. A request may have registered the pane during the
/// lookup: then the event belongs to that agent.
fn register_session(tx: &mut Tx<'_>, event: &HookEvent, facts: Option<PaneFacts>) {
    // An agent in another home's pane gets a row without a pane here, so nothing is typed to it.
    let facts = facts.filter(|facts| event.is_on(&facts.pane.server) && facts.claimed_by.is_none());
    let occupant = facts.as_ref().and_then(|facts| occupant(tx, facts));
    if let Some(agent_id) = occupant {
        if let Some(agent) = tx.agent_mut(&agent_id) {
            agent.hooks_seen = true;
            if agent.session.id.is_none() {
                agent.session.id.clone_from(&event.session_id);
            }
        }
        return start::session_started(tx, &agent_id, event);
    }
    let agent_id = fresh_id(tx, event.agent_id);
    let detected = facts.as_ref().and_then(|facts| facts.profile.clone());
    let profile = event.profile.clone().or(detected).unwrap_or_else(|| "unknown".to_owned());
    let mut agent = Agent::new(agent_id, profile, tx.now.rfc3339());
    if let Some(facts) = facts {
        set_pane(&mut agent, facts);
    }
    fill_from_event(tx, &mut agent, event);
    insert(tx, agent);
}

fn set_pane(agent: &mut Agent, facts: PaneFacts) {
    // The silence deadline that may be running is the long one of an agent without a pane, so it ends here.
    agent.idle_watch.silence = WatchState::Off;
    agent.pane = Some(facts.pane);
    agent.process = facts.agent;
    agent.cwd = Some(facts.cwd);
    agent.tmux_session = Some(facts.session_name);
}

/// The live agent that is in a pane.
fn occupant(tx: &Tx<'_>, facts: &PaneFacts) -> Option<AgentId> {
    let lives_there = |id: &AgentId| {
        tx.agent(id).is_some_and(|agent| {
            // An agent that registered while tmux did not answer has no pane yet.
            let is_without_pane = agent.pane.is_none() && agent.start.is_none() && facts.agent_id == Some(*id);
            agent.is_alive() && (agent.pane == Some(facts.pane) || is_without_pane)
        })
    };
    tx.agent_ids().into_iter().find(|id| lives_there(id))
}

/// Whether the pane holds nothing but an agent that has just died: a moment later the pane closes, or its shell is back
/// in the foreground.
fn is_left_behind(tx: &Tx<'_>, facts: &PaneFacts) -> bool {
    let is_its = |agent: &Agent| agent.is_known_dead() && agent.pane == Some(facts.pane);
    let dead = tx.agent_ids().into_iter().find_map(|id| tx.agent(&id).filter(|agent| is_its(agent)));
    dead.is_some_and(|agent| facts.agent.is_none() || facts.agent == agent.process)
}

/// Registers what runs in a pane. If an agent without a persona is registered there already, it gets the persona.
fn register_pane(
    tx: &mut Tx<'_>,
    facts: PaneFacts,
    persona: Option<Slug>,
    profile: Option<String>,
) -> Result<AgentId, Refused> {
    if let Some(agent_id) = occupant(tx, &facts) {
        if let Some(agent) = tx.agent_mut(&agent_id).filter(|agent| agent.pane.is_none()) {
            set_pane(agent, facts.clone());
        }
        if tx.agent(&agent_id).is_some_and(|agent| agent.reopened_from.is_some()) {
            let message =
                format!("The pane shows the reopened session of an agent that has ended, as agent {agent_id}");
            return Err(Refused::new(409, "reopened", message).hint("tasuki types nothing to it; ask it yourself"));
        }
        let is_anonymous = tx.agent(&agent_id).is_some_and(|agent| agent.persona_slug.is_none());
        if !is_anonymous || persona.is_none() {
            let message = format!("The pane is already registered as agent {agent_id}");
            return Err(Refused::new(409, "already_registered", message));
        }
        if let Some(agent) = tx.agent_mut(&agent_id) {
            agent.persona_slug = persona;
            agent.profile = profile.or(facts.profile).unwrap_or_else(|| agent.profile.clone());
        }
        return Ok(agent_id);
    }
    if is_left_behind(tx, &facts) {
        let refused = Refused::new(404, "no_pane", "The agent in that pane has just ended");
        return Err(refused.hint("start another agent in the pane, then register the pane").field("pane"));
    }
    if let Some(home) = &facts.claimed_by {
        let message =
            format!("The pane belongs to another tasuki home, {home}, whose sidecar runs on the same tmux server");
        let hint = "use that home for this pane, or first end that home's agent or sidecar";
        return Err(Refused::new(409, "pane_claimed", message).hint(hint).field("pane"));
    }
    if facts.bare_shell {
        let message = "Only a shell is in the foreground of that pane; start the agent there first";
        return Err(Refused::new(409, "bare_shell", message));
    }
    let profile = profile
        .or_else(|| facts.profile.clone())
        .ok_or_else(|| Refused::bad("profile", "is required: no profile matches the program in that pane"))?;
    let agent_id = fresh_id(tx, facts.agent_id);
    let mut agent = Agent::new(agent_id, profile, tx.now.rfc3339());
    set_pane(&mut agent, facts);
    agent.persona_slug = persona;
    agent.registered_at = Some(tx.now.rfc3339());
    agent.state = AgentState::Idle;
    insert(tx, agent);
    Ok(agent_id)
}

fn answer_registered(tx: &mut Tx<'_>, request: &RequestId, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let reply = AgentReply {
        status: Some("registered".to_owned()),
        agent_id: Some(agent_id.to_string()),
        pane: maybe(agent.pane),
        hooks: Some(if agent.hooks_seen { Hooks::Seen } else { Hooks::Unseen }.into()),
        ..AgentReply::default()
    };
    tx.answer(request, Reply::ok(&reply));
}

/// Finds the agent that a request names, if tasuki may type to it.
fn addressed(tx: &Tx<'_>, text: &str) -> Result<AgentId, Refused> {
    let agent = text.parse().ok().and_then(|id| tx.agent(&id));
    let agent = agent.ok_or_else(|| Refused::new(404, "no_agent", "Agent not found"))?;
    if agent.state == AgentState::Ended {
        return Err(Refused::new(400, "not_active", "Agent is not active"));
    }
    if agent.persona_slug.is_none() {
        return Err(Refused::new(400, "no_persona", "Agent has no persona"));
    }
    if agent.pane.is_none() || agent.state == AgentState::Lost {
        return Err(Refused::new(400, "no_pane", "Agent has no tmux pane"));
    }
    if agent.handoff_id.is_some() {
        return Err(Refused::new(409, "handoff_in_progress", "Handoff already in progress"));
    }
    if agent.shutdown.is_some() {
        return Err(Refused::new(409, "shutting_down", "The agent is being shut down"));
    }
    if tx.state.server.is_none() {
        return Err(Refused::no_tmux());
    }
    Ok(agent.agent_id)
}

/// `agent_send`: the text waits until the agent is free, at most as long as a handoff waits for that.
pub(crate) fn send_asked(tx: &mut Tx<'_>, request: &RequestId, asked: SendRequest) {
    let agent_id = match addressed(tx, &asked.agent_id) {
        Ok(agent_id) => agent_id,
        Err(refused) => return tx.refuse(request, refused),
    };
    let deadline = Deadline::after(&tx.now, tx.state.settings.limits.waiting_ms);
    let Some(agent) = tx.agent_mut(&agent_id) else { return };
    if agent.queue.len() >= MAX_QUEUE {
        let message = format!("{MAX_QUEUE} texts already wait for this agent");
        return tx.refuse(
            request,
            Refused::new(429, "too_many", message).hint("send the text again after some of them were typed"),
        );
    }
    agent.queue.push(Queued { asker: Asker::Request(request.clone()), text: asked.text, deadline });
}

/// Finds an agent that has no pane and no known process, and that no start, handoff or shutdown waits for.
fn without_pane_or_process(tx: &Tx<'_>, text: &str) -> Option<AgentId> {
    let agent = text.parse().ok().and_then(|id| tx.agent(&id))?;
    let is_waited_for = agent.start.is_some() || agent.handoff_id.is_some() || agent.shutdown.is_some();
    let is_nowhere = agent.pane.is_none() && agent.process.is_none();
    (agent.state.is_live() && is_nowhere && !is_waited_for).then_some(agent.agent_id)
}

/// Finds a reopened session in a pane. tasuki types no exit command to it, but kills the pane if it is asked to.
fn reopened(tx: &Tx<'_>, text: &str) -> Option<AgentId> {
    let agent = text.parse().ok().and_then(|id| tx.agent(&id))?;
    let is_in_a_pane = agent.state.is_live() && agent.pane.is_some() && tx.state.server.is_some();
    let is_it = agent.reopened_from.is_some() && is_in_a_pane && agent.start.is_none() && agent.shutdown.is_none();
    is_it.then_some(agent.agent_id)
}

/// `agent_shutdown`.
pub(crate) fn shutdown_asked(tx: &mut Tx<'_>, request: &RequestId, asked: &ShutdownRequest) {
    if let Some(agent_id) = without_pane_or_process(tx, &asked.agent_id).filter(|_| asked.force) {
        return exit::end_without_pane(tx, &agent_id, request);
    }
    let found = match reopened(tx, &asked.agent_id).filter(|_| asked.force) {
        Some(agent_id) => Ok(agent_id),
        None => addressed(tx, &asked.agent_id),
    };
    let checked = found.and_then(|agent_id| {
        let agent = tx.agent(&agent_id);
        let is_ours = agent.is_some_and(|agent| agent.ours);
        if asked.force && !is_ours {
            let message = "tasuki did not start this agent, so it does not kill it";
            return Err(Refused::new(409, "not_ours", message).hint("end the agent yourself, or ask without force"));
        }
        if !asked.force && agent.is_some_and(|agent| agent.typing.is_some()) {
            let message = "tasuki is typing a text into this agent's pane";
            return Err(Refused::new(409, "refused", message).hint("ask again in a moment").reason("busy"));
        }
        Ok(agent_id)
    });
    match checked {
        Err(refused) => tx.refuse(request, refused),
        Ok(agent_id) => exit::shut_down(tx, &agent_id, request, asked.force),
    }
}

/// `agent_forget`: notes an agent as ended if its process does not run, and as lost if its process is not known.
/// Nothing is done in tmux. tasuki refuses while the process runs, while the agent is being started, and if the process
/// can't be checked.
pub(crate) fn forget_asked(tx: &mut Tx<'_>, request: &RequestId, asked: &ForgetRequest, facts: &RequestFacts) {
    match forget_check(tx, asked, facts) {
        Err(refused) => tx.refuse(request, refused),
        Ok((agent_id, state)) => {
            exit::end(tx, &agent_id, state);
            let ended_at = tx.agent(&agent_id).and_then(|agent| agent.ended_at.clone());
            let (status, agent_id) = (Some("forgotten".to_owned()), Some(agent_id.to_string()));
            let reply = AgentReply { status, agent_id, ended_at: Some(ended_at), ..AgentReply::default() };
            tx.answer(request, Reply::ok(&reply));
        }
    }
}

fn forget_check(tx: &Tx<'_>, asked: &ForgetRequest, facts: &RequestFacts) -> Result<(AgentId, AgentState), Refused> {
    let agent = asked.agent_id.parse().ok().and_then(|id| tx.agent(&id));
    let agent = agent.ok_or_else(|| Refused::new(404, "no_agent", "Agent not found"))?;
    if !agent.state.is_live() {
        return Err(Refused::new(400, "not_active", "Agent is not active"));
    }
    let pid = agent.process.map(|process| process.pid).or(agent.pane.map(|pane| pane.pid));
    match (pid, facts.runs) {
        (None, _) if agent.start.as_ref().is_some_and(|start| start.effect.is_some()) => {
            Err(Refused::new(409, "starting", "The agent is being started")
                .hint("wait until the start has succeeded or failed"))
        }
        (None, _) => Ok((agent.agent_id, AgentState::Lost)),
        (Some(_), Some(false)) => Ok((agent.agent_id, AgentState::Ended)),
        (Some(pid), Some(true)) => {
            let hint =
                "end the agent yourself or with tasuki agent shutdown; tasuki does not forget an agent that runs";
            Err(Refused::new(409, "process_lives", format!("The agent's process {pid} is running")).hint(hint))
        }
        (Some(pid), None) => {
            let message =
                format!("tasuki could not check whether the agent's process {pid} is running; nothing was changed");
            Err(Refused::new(503, "not_seen", message).hint("try again when the system can open files again"))
        }
    }
}
