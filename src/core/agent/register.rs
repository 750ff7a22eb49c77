//! Registers agents that already run, by their first event or at the operator's request; and takes the request
//! that sends a text to an agent.

use super::queue::MAX_QUEUE;
use super::{exit, start, unlocated};
use crate::contract::reply::AgentReply;
use crate::contract::{Hooks, JournalLine, maybe};
use crate::core::effect::{Effect, EffectKey};
use crate::core::event::RequestFacts;
use crate::core::hook::{HookEvent, SessionReason};
use crate::core::id::{AgentId, RequestId, Slug};
use crate::core::pane::{PaneFacts, TmuxVariable};
use crate::core::reply::{Refused, Reply};
use crate::core::request::{RegisterRequest, SendRequest, pane_number};
use crate::core::rows::agent::{Agent, AgentState, Asker, Queued, WatchState};
use crate::core::rows::lookup::PaneLookup;
use crate::core::rows::outbox::Waiter;
use crate::core::text::quotable;
use crate::core::time::Deadline;
use crate::core::tx::Tx;

/// How many more times tasuki looks up the pane of a new session if tmux does not answer. Before each such answer the
/// runner pauses for half a second, so a tmux server that has just started is found in time.
const MOST_LOOKS: u8 = 12;
/// The largest number of characters of the reason why a pane could not be looked up.
const MAX_WHY: usize = 300;

/// A session started that belongs to no known agent. tasuki looks up its pane first. If the event names no pane, the
/// event is all that is known of the agent. The event may name another tmux server than the one that answered last:
/// only the lookup shows whether that server is now the one that tasuki watches.
pub(crate) fn unknown_session(tx: &mut Tx<'_>, event: &HookEvent) {
    match event.pane {
        Some(_) => look_up_session(tx, Box::new(event.clone()), 0),
        None => register_session(tx, event, None),
    }
}

/// A session ended. If its pane is still being looked up, nothing is registered.
pub(crate) fn session_ended(tx: &mut Tx<'_>, event: &HookEvent) {
    if event.session_id.is_none() || event.reason == Some(SessionReason::Same) {
        return;
    }
    let is_its = |start: &HookEvent| (&start.session_id, &start.profile) == (&event.session_id, &event.profile);
    let looks_for =
        |waiter: &Waiter| matches!(waiter, Waiter::PaneLookup(PaneLookup::Event { event: start, .. }) if is_its(start));
    let lookups: Vec<EffectKey> =
        tx.state.outbox.iter().filter(|(_, pending)| looks_for(&pending.waiter)).map(|(key, _)| *key).collect();
    for key in lookups {
        tx.drop_effect(key);
    }
}

fn look_up_session(tx: &mut Tx<'_>, event: Box<HookEvent>, looks: u8) {
    let Some(pane) = event.pane else { return };
    let effect = Effect::Identify { pane, server_pid: event.server_pid };
    tx.effect(Waiter::PaneLookup(PaneLookup::Event { event, looks }), effect);
}

/// A pane could not be looked up: tmux did not answer, or the processes there could not be looked at. A request is
/// refused with the reason. For an event, tasuki looks again a few times, because an agent that is registered without
/// its pane could never be typed to.
pub(crate) fn not_identified(tx: &mut Tx<'_>, lookup: PaneLookup, why: &str) {
    match lookup {
        PaneLookup::Request { request_id, .. } if tx.state.server.is_none() => tx.refuse(&request_id, tx.no_tmux()),
        PaneLookup::Request { request_id, .. } => {
            let message = format!("The pane could not be looked up: {}", quotable(why, MAX_WHY));
            let hint = "nothing was registered; remove the cause, then ask again";
            tx.refuse(&request_id, Refused::new(503, "no_tmux", message).hint(hint));
        }
        PaneLookup::Event { event, looks } if looks < MOST_LOOKS => look_up_session(tx, event, looks + 1),
        PaneLookup::Event { event, .. } => register_session(tx, &event, None),
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
    let lookup = PaneLookup::Request { request_id: request.clone(), persona: asked.persona_slug, profile };
    tx.effect(Waiter::PaneLookup(lookup), Effect::Identify { pane, server_pid: None });
}

fn register_check(tx: &Tx<'_>, asked: &RegisterRequest, facts: &RequestFacts) -> Result<(), Refused> {
    if let Some(slug) = &asked.persona_slug {
        let persona = facts.persona.as_ref().filter(|(named, persona)| named == slug && persona.exists);
        let missing = || Refused::new(404, "no_persona", "Persona not found").field("persona_slug");
        let (_, persona) = persona.ok_or_else(missing)?;
        if !persona.has_skill {
            return Err(Refused::new(400, "no_skill", format!("Persona {slug} has no skill.md")));
        }
    }
    if asked.profile.as_ref().is_some_and(|profile| !tx.state.settings.profiles.contains_key(profile)) {
        return Err(Refused::new(404, "no_profile", "Profile not found").field("profile"));
    }
    let server = tx.connected()?;
    let named_pid = asked.tmux.as_deref().map(|tmux| TmuxVariable::read(tmux).map(|tmux| tmux.server_pid));
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
    let facts = facts.filter(|facts| event.is_on(&facts.pane.server));
    let has_left = facts.as_ref().is_some_and(|facts| !is_in_front(facts, event));
    if has_left && event.is_known_up_to_tmux() && event.cli().is_none() {
        // The CLI has already ended, and had no time to report that.
        return;
    }
    // An agent in another home's pane gets a row without a pane here, so nothing is typed to it. The same holds for one
    // in the background of its pane: whatever is in front there is another program.
    let facts = facts.filter(|facts| !has_left && facts.claimed_by.is_none());
    let occupant = facts.as_ref().and_then(|facts| occupant(tx, facts));
    let is_another = |agent: &Agent| agent.process.is_some_and(|process| event.is_below(&process) == Some(false));
    let occupant = occupant.filter(|id| !tx.agent(id).is_some_and(is_another));
    if let Some(agent_id) = occupant {
        if let Some(agent) = tx.agent_mut(&agent_id) {
            if let Some(facts) = facts.filter(|_| agent.pane.is_none()) {
                set_pane(agent, facts);
            }
            agent.hooks_seen = true;
            let is_next = event.reason == Some(SessionReason::Replaced) && agent.ran(event);
            if agent.session.id.is_none() {
                agent.session.id.clone_from(&event.session_id);
            } else if let Some(session) = event.session_id.as_ref().filter(|_| is_next) {
                agent.session.begin(session);
            }
        }
        return start::session_started(tx, &agent_id, event);
    }
    // Where hooks are installed in two places, each of them reports the session. If the first report has made a row
    // without a pane, the second one belongs to that row.
    let has_it = |agent: &Agent| {
        let is_session = agent.session.id.is_some() && agent.session.id == event.session_id;
        let is_profile = event.profile.as_ref() == Some(&agent.profile);
        agent.is_alive() && agent.pane.is_none() && is_session && is_profile && !is_another(agent)
    };
    let ids = if facts.is_none() { tx.agent_ids() } else { Vec::new() };
    if let Some(agent_id) = ids.into_iter().find(|id| tx.agent(id).is_some_and(has_it)) {
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

/// Whether the program in front of the pane is, as far as is known, the agent that ran the hook.
fn is_in_front(facts: &PaneFacts, event: &HookEvent) -> bool {
    !facts.bare_shell && facts.agent.is_none_or(|process| event.is_below(&process) != Some(false))
}

fn set_pane(agent: &mut Agent, facts: PaneFacts) {
    // The silence deadline that may be running is the long one of an agent without a pane, so it ends here.
    agent.idle_watch.silence = WatchState::Off;
    agent.pane = Some(facts.pane);
    agent.process = facts.agent;
    agent.cwd = Some(facts.cwd);
    agent.tmux_session = Some(facts.session_name);
}

/// The live agent that is in a pane; where there are several, the one whose process is in front.
fn occupant(tx: &Tx<'_>, facts: &PaneFacts) -> Option<AgentId> {
    let is_its_process = |agent: &Agent| agent.process.is_some() && agent.process == facts.agent;
    let lives_there = |agent: &Agent| {
        // An agent that registered while tmux did not answer has no pane yet.
        let is_it = facts.agent_id == Some(agent.agent_id) || is_its_process(agent);
        let may_be_it = agent.pane.is_none() && agent.start.is_none() && facts.claimed_by.is_none();
        agent.is_alive() && (agent.pane == Some(facts.pane) || (may_be_it && is_it))
    };
    let ids = tx.agent_ids();
    let mut there = ids.iter().filter_map(|id| tx.agent(id)).filter(|agent| lives_there(agent)).peekable();
    let first = there.peek().map(|agent| agent.agent_id);
    there.find(|agent| is_its_process(agent)).map(|agent| agent.agent_id).or(first)
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
        let had_no_pane = tx.agent(&agent_id).is_some_and(|agent| agent.pane.is_none());
        if let Some(agent) = tx.agent_mut(&agent_id).filter(|_| had_no_pane) {
            set_pane(agent, facts.clone());
            if persona.is_none() || persona == agent.persona_slug {
                return Ok(agent_id);
            }
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
pub(super) fn addressed(tx: &Tx<'_>, text: &str) -> Result<AgentId, Refused> {
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
    check_reach(tx, agent)?;
    Ok(agent.agent_id)
}

/// Refuses if tasuki can't reach a live agent: no tmux server answers, or the agent's pane is in another server. If
/// that server has ended, the agent is soon seen to be gone.
pub(crate) fn check_reach(tx: &Tx<'_>, agent: &Agent) -> Result<(), Refused> {
    let server = tx.connected()?;
    let is_seen_gone = !agent.state.is_live() || agent.pending_exit.is_some();
    match agent.pane.filter(|pane| !is_seen_gone && pane.server != server) {
        Some(_) => Err(Refused::other_server(&agent.agent_id)),
        None => Ok(()),
    }
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
