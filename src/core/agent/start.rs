//! Starts an agent: its row, its window, its registration, its readiness.

use super::{priming, reopen, start_dialog};
use crate::contract::known;
use crate::contract::reply::AgentReply;
use crate::core::effect::{Effect, EffectKey, Readiness, StartAgent, Started, SuccessorWindow};
use crate::core::event::RequestFacts;
use crate::core::fact::Fact;
use crate::core::hook::HookEvent;
use crate::core::id::{AgentId, HandoffId, RequestId, Slug};
use crate::core::pane::PaneRef;
use crate::core::reply::{Refused, Reply};
use crate::core::request::{CreateRequest, is_session_name};
use crate::core::rows::agent::{Agent, AgentState, Owner, Start};
use crate::core::settings::NewSession;
use crate::core::time::Deadline;
use crate::core::tx::Tx;

/// Columns and rows of a new agent's window, unless it gets the size of its predecessor's window.
pub(crate) const DEFAULT_SIZE: (u16, u16) = (160, 50);

/// The agent that is to be started.
pub(crate) struct NewAgent {
    pub(crate) persona: Slug,
    pub(crate) profile: String,
    pub(crate) cwd: Option<String>,
    pub(crate) session: String,
    /// The session's number, if known: it counts before the name.
    pub(crate) session_number: Option<u32>,
    /// The pane whose session it goes into, whatever that session is called by now.
    pub(crate) beside: Option<PaneRef>,
    pub(crate) size: (u16, u16),
    pub(crate) previous: Option<AgentId>,
    /// The model that it is to use; none: its CLI chooses.
    pub(crate) model: Option<String>,
}

/// `agent_create`.
pub(crate) fn create_asked(tx: &mut Tx<'_>, request: &RequestId, asked: &CreateRequest, facts: &RequestFacts) {
    match create_check(tx, asked, facts) {
        Err(refused) => tx.refuse(request, refused),
        Ok(wanted) => {
            create(tx, wanted, Owner::Request(request.clone()), None);
        }
    }
}

fn create_check(tx: &Tx<'_>, asked: &CreateRequest, facts: &RequestFacts) -> Result<NewAgent, Refused> {
    let slug = asked.persona_slug.clone();
    let persona = facts.persona.as_ref().filter(|(named, _)| *named == slug).map(|(_, persona)| persona);
    let persona = persona.filter(|persona| persona.exists).ok_or_else(|| {
        let missing = Refused::new(404, "no_persona", "Persona not found").field("persona_slug");
        missing.hint("Make one: tasuki persona new SLUG")
    })?;
    if !persona.has_skill {
        return Err(Refused::new(400, "no_skill", format!("Persona {slug} has no skill.md")));
    }
    if let Some(why) = &persona.broken {
        return Err(Refused::new(400, "bad_persona", why.clone()));
    }
    if persona.session.as_ref().is_some_and(|session| !is_session_name(session)) {
        let what = "session must be 1 to 128 letters, digits, spaces or - _ / + @";
        return Err(Refused::new(400, "bad_persona", format!("persona.toml of {slug}: {what}")));
    }
    let profile = asked.profile.clone().or_else(|| persona.profile.clone()).ok_or_else(|| {
        let hint = format!("name one: tasuki agent create {slug} --profile NAME; or set profile in persona.toml");
        Refused::bad("profile", "is required: neither the request nor persona.toml names a profile").hint(hint)
    })?;
    let profile_facts = tx.state.settings.profiles.get(&profile);
    let profile_facts =
        profile_facts.ok_or_else(|| Refused::new(404, "no_profile", "Profile not found").field("profile"))?;
    if !profile_facts.launchable {
        return Err(Refused::new(400, "not_launchable", format!("Profile {profile} has no launch line")));
    }
    let model = asked.model.clone();
    if model.is_some() && !profile_facts.takes_model {
        return Err(Refused::no_model_option(&profile));
    }
    if facts.no_cwd {
        return Err(Refused::bad("cwd", "does not exist or is not a folder"));
    }
    let previous = asked.previous_agent_id.as_deref().map(|text| find_previous(tx, text)).transpose()?;
    tx.connected()?;
    Ok(NewAgent {
        profile,
        cwd: asked.cwd.clone().or_else(|| persona.cwd.clone()),
        session: asked.session.clone().or_else(|| persona.session.clone()).unwrap_or(format!("tasuki-{slug}")),
        persona: slug,
        session_number: None,
        beside: None,
        size: DEFAULT_SIZE,
        previous,
        model,
    })
}

fn find_previous(tx: &Tx<'_>, text: &str) -> Result<AgentId, Refused> {
    let found = text.parse().ok().and_then(|id| tx.agent(&id));
    let missing = || Refused::new(404, "no_agent", "Previous agent not found").field("previous_agent_id");
    found.map(|agent| agent.agent_id).ok_or_else(missing)
}

/// Makes the agent's row and asks for its start, in one commit. Without a deadline the usual limit of a start applies.
pub(crate) fn create(tx: &mut Tx<'_>, wanted: NewAgent, owner: Owner, deadline: Option<Deadline>) -> AgentId {
    let agent_id = tx.new_agent_id();
    let mut agent = Agent::new(agent_id, wanted.profile, tx.now.rfc3339());
    agent.persona_slug = Some(wanted.persona.clone());
    agent.cwd = wanted.cwd;
    agent.tmux_session = Some(wanted.session);
    agent.previous_agent_id = wanted.previous;
    agent.model = wanted.model;
    let former = wanted.previous.and_then(|id| tx.agent(&id));
    agent.limits.used_up = former.map(|former| former.limits.used_up.clone()).unwrap_or_default();
    agent.ours = true;
    agent.start_server = tx.state.server;
    agent.handoff_id = match &owner {
        Owner::Handoff(id) => Some(*id),
        Owner::Request(_) | Owner::Reopening { .. } | Owner::Nobody => None,
    };
    let plan = agent.start_plan(wanted.persona, wanted.size);
    let plan = StartAgent { session_number: wanted.session_number, beside: wanted.beside, ..plan };
    let effect = Effect::Start(plan);
    let key = tx.effect_of(&agent_id, effect);
    let deadline = deadline.unwrap_or_else(|| Deadline::after(&tx.now, tx.state.settings.limits.starting_ms));
    agent.start = Some(Start::begun(owner, key, deadline));
    insert_row(tx, agent);
    agent_id
}

/// Stores the row of an agent that is about to start.
pub(crate) fn insert_row(tx: &mut Tx<'_>, agent: Agent) {
    tx.journal(agent.line());
    tx.out.agents.insert(agent.agent_id, agent);
}

/// Starts a successor whose row already exists: on a retry, or in its predecessor's process, see [`start_effect`].
pub(crate) fn start_from_row(tx: &mut Tx<'_>, agent_id: &AgentId, handoff: HandoffId, deadline: Option<Deadline>) {
    let place = tx.handoff(&handoff).and_then(|row| row.successor_window.as_ref());
    let Some(agent) = tx.agent(agent_id) else { return };
    let Some(effect) = start_effect(agent, place) else { return };
    // A session is reported once: after a lost report, the skill's receipt shows whether the agent takes texts.
    let runs = !agent.in_place && agent.pane.is_some() && agent.process.is_some() && agent.state.is_live();
    let registered = runs || agent.registered_at.is_some();
    let key = tx.effect_of(agent_id, effect);
    let deadline = deadline.unwrap_or_else(|| Deadline::after(&tx.now, tx.state.settings.limits.starting_ms));
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.start = Some(Start { registered, ..Start::begun(Owner::Handoff(handoff), key, deadline) });
    }
}

/// The effect with which the start of an existing row begins. `Effect::Start` first searches for a pane with the
/// agent's id, and starts nothing if there is one. An agent that is a new session in its predecessor's process runs
/// already: tasuki only waits until it takes input.
fn start_effect(agent: &Agent, place: Option<&SuccessorWindow>) -> Option<Effect> {
    if let Some(pane) = agent.pane.filter(|_| agent.in_place) {
        return Some(Effect::AwaitReady { agent_id: agent.agent_id, pane, profile: agent.profile.clone() });
    }
    let persona = agent.persona_slug.clone()?;
    let plan = agent.start_plan(persona, place.map_or(DEFAULT_SIZE, |place| place.size));
    Some(Effect::Start(StartAgent { session_number: place.and_then(|place| place.session_number), ..plan }))
}

/// Takes the outcome of `Effect::Start`: waits for readiness, or reports the failure to the owner of the start. The
/// caller must end the agent in the state that this returns.
#[must_use]
pub(crate) fn settled(tx: &mut Tx<'_>, agent_id: &AgentId, key: EffectKey, started: Started) -> Option<AgentState> {
    let agent = tx.agent_mut(agent_id)?;
    let start = agent.start.as_mut().filter(|start| start.effect == Some(key))?;
    start.effect = None;
    match started {
        Started::Running { pane, process } => {
            // The session that a hook reported is in another pane, so it is not this agent's.
            if start.reported_pane.is_some_and(|reported| reported != pane.pane) {
                start.registered = false;
            }
            agent.pane = Some(pane);
            agent.start_server = Some(pane.server);
            agent.process = process;
            let profile = agent.profile.clone();
            let ready = tx.effect_of(agent_id, Effect::AwaitReady { agent_id: *agent_id, pane, profile });
            if let Some(start) = tx.agent_mut(agent_id).and_then(|agent| agent.start.as_mut()) {
                start.effect = Some(ready);
            }
            progress(tx, agent_id);
            None
        }
        Started::Died => {
            failed(tx, agent_id, "successor_failed", "The agent ended as soon as it was started");
            Some(AgentState::Ended)
        }
        Started::Failed { why } => {
            failed(tx, agent_id, "successor_failed", &format!("The agent could not be started: {why}"));
            Some(AgentState::Ended)
        }
        Started::Unknown { why } => {
            let why = format!("It is not known whether the agent has started: {why}");
            outcome_unknown(tx, agent_id, "successor_failed", &why)
        }
        Started::NoTmux => outcome_unknown(
            tx,
            agent_id,
            "no_tmux",
            "No tmux server answers, so it is not known whether the agent has started",
        ),
    }
}

/// It is not known whether the agent was started. A handoff's retry searches for the agent. A request has no retry, so
/// its agent counts as lost.
fn outcome_unknown(tx: &mut Tx<'_>, agent_id: &AgentId, code: &str, why: &str) -> Option<AgentState> {
    let start = tx.agent(agent_id).and_then(|agent| agent.start.as_ref());
    let is_by_request = start.is_some_and(|start| !matches!(start.owner, Owner::Handoff(_)));
    let what_follows = if is_by_request {
        "tasuki counts the agent as lost"
    } else {
        "a retry looks for the agent before it starts another"
    };
    failed(tx, agent_id, code, &format!("{why}; {what_follows}"));
    is_by_request.then_some(AgentState::Lost)
}

/// The wait for a started agent's readiness has ended.
pub(crate) fn ready_settled(tx: &mut Tx<'_>, agent_id: &AgentId, key: EffectKey, readiness: Readiness) {
    let Some(start) = tx.agent_mut(agent_id).and_then(|agent| agent.start.as_mut()) else { return };
    if start.effect != Some(key) {
        return;
    }
    start.effect = None;
    let is_reopening = matches!(start.owner, Owner::Reopening { .. });
    match readiness {
        Readiness::Blocked { .. } if is_reopening => reopen::runs(tx, agent_id, AgentState::Blocked),
        Readiness::Ready | Readiness::NotReady { .. } | Readiness::AtWork { .. } if is_reopening => {
            reopen::runs(tx, agent_id, AgentState::Idle)
        }
        Readiness::Ready => {
            start.ready = true;
            progress(tx, agent_id);
        }
        Readiness::Blocked { screen } => {
            if let Some(why) = start_dialog::blocked(tx, agent_id, &screen) {
                failed(tx, agent_id, "successor_failed", &why);
            }
        }
        Readiness::NotReady { screen } | Readiness::AtWork { screen } => {
            let why = format!("The new agent was not ready for input in time; its screen ends: {screen}");
            failed(tx, agent_id, "successor_failed", &why);
        }
        // The death of the process is an event of its own, which ends the start.
        Readiness::Gone { screen } => start_dialog::pane_gone(start, screen),
    }
}

/// A hook has reported the start of a session.
pub(crate) fn session_started(tx: &mut Tx<'_>, agent_id: &AgentId, event: &HookEvent) {
    let timestamp = tx.now.rfc3339();
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    if agent.cwd.is_none() {
        agent.cwd.clone_from(&event.cwd);
    }
    let elsewhere = agent.pane.is_some_and(|pane| event.pane.is_some_and(|number| number != pane.pane));
    if elsewhere {
        return;
    }
    // This is noted even if tasuki has given up the start: a retry finds the running agent, which does not report its
    // session again.
    agent.registered_at.get_or_insert(timestamp);
    // The CLI had said that it ends, but it runs: nobody has asked for a later death.
    agent.session.closed = false;
    let Some(start) = agent.start.as_mut() else { return };
    start.registered = true;
    start.reported_pane = event.pane;
    progress(tx, agent_id);
}

/// Continues a start as far as possible. Once the agent counts as registered, the request is answered. Once it is also
/// ready, the start is over. An agent counts as registered when a hook has reported its session; if its CLI reports a
/// session only with the first prompt, as soon as it is ready.
fn progress(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let timestamp = tx.now.rfc3339();
    let Some(agent) = tx.agent(agent_id) else { return };
    let (Some(start), Some(pane)) = (agent.start.clone(), agent.pane) else { return };
    // A reopened session has started when its screen was seen, whatever the hooks report. An unwanted agent is being
    // ended.
    if matches!(start.owner, Owner::Reopening { .. } | Owner::Nobody) {
        return;
    }
    let profile = tx.state.settings.profiles.get(&agent.profile);
    let reports_late = profile.is_some_and(|profile| {
        !profile.starts_at_launch || (agent.in_place && profile.new_session == Some(NewSession::Lazy))
    });
    let counts_as_registered = start.registered || (reports_late && start.ready);
    if !counts_as_registered {
        return;
    }
    let previous = agent.previous_agent_id;
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.registered_at.get_or_insert(timestamp);
    }
    if let Some(previous) = previous
        && let Some(previous) = tx.agent_mut(&previous)
    {
        // A handoff knows who takes over; a request only says so, and changes nothing that is known.
        let known = previous.successor_id.filter(|_| !matches!(start.owner, Owner::Handoff(_)));
        previous.successor_id = known.or(Some(*agent_id));
    }
    if let Owner::Request(request) = &start.owner {
        let (agent_id, pane) = (Some(agent_id.to_string()), known(&pane));
        tx.answer(request, Reply::ok(&AgentReply { agent_id, pane, ..AgentReply::default() }));
    }
    if start.ready {
        started(tx, agent_id, &start.owner);
    }
}

/// The agent counts as registered and takes input: the start is over.
fn started(tx: &mut Tx<'_>, agent_id: &AgentId, owner: &Owner) {
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.start = None;
    }
    tx.set_state(agent_id, AgentState::Idle);
    match owner {
        Owner::Handoff(id) => tx.learn(Fact::SuccessorReady { handoff_id: *id }),
        Owner::Request(_) => {
            let deadline = Deadline::after(&tx.now, tx.state.settings.limits.priming_ms);
            if let Some(agent) = tx.agent_mut(agent_id) {
                agent.priming_deadline = Some(deadline);
            }
            priming::begin(tx, agent_id);
        }
        Owner::Reopening { .. } | Owner::Nobody => {}
    }
}

/// The time for a start is over. A reopened session with a pane counts as running.
pub(crate) fn deadline_passed(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let why = agent.start.as_ref().map(start_dialog::overdue_in_words).unwrap_or_default();
    match agent.start.as_ref().map(|start| &start.owner) {
        Some(Owner::Reopening { .. }) if agent.pane.is_some() => reopen::runs(tx, agent_id, AgentState::Idle),
        Some(Owner::Nobody) => failed(tx, agent_id, "did_not_exit", "It did not end in time"),
        Some(Owner::Reopening { .. } | Owner::Request(_) | Owner::Handoff(_)) | None => {
            failed(tx, agent_id, "successor_failed", why);
        }
    }
}

/// The agent has ended before it was ready.
pub(crate) fn agent_ended(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(start) = tx.agent(agent_id).and_then(|agent| agent.start.as_ref()) else { return };
    if start.owner == Owner::Nobody {
        take(tx, agent_id);
        return;
    }
    let why = start_dialog::end_in_words(start);
    failed(tx, agent_id, "successor_failed", &why);
}

/// Ends the start, and drops the effect that starts the agent or waits for its readiness.
pub(crate) fn take(tx: &mut Tx<'_>, agent_id: &AgentId) -> Option<Start> {
    let start = tx.agent_mut(agent_id)?.start.take()?;
    if let Some(key) = start.effect {
        tx.drop_effect(key);
    }
    Some(start)
}

/// Ends the start and reports the failure to its owner. A request gets `start_failed` where a handoff gets
/// `successor_failed`.
pub(crate) fn failed(tx: &mut Tx<'_>, agent_id: &AgentId, code: &str, why: &str) {
    let Some(start) = take(tx, agent_id) else { return };
    match &start.owner {
        Owner::Handoff(handoff_id) => {
            tx.learn(Fact::SuccessorFailed { handoff_id: *handoff_id, code: code.to_owned(), why: why.to_owned() });
        }
        Owner::Nobody => {
            let message = format!("tasuki could not end a successor that it had started early for nothing: {why}");
            tx.notify_agent_failure(agent_id, code, &message, "look whether the agent still runs, and end it yourself");
        }
        Owner::Request(request) | Owner::Reopening { request_id: request, .. } => {
            let code = if code == "successor_failed" { "start_failed" } else { code };
            let has_pane = tx.agent(agent_id).is_some_and(|agent| agent.pane.is_some());
            let has_ended = tx.agent(agent_id).is_some_and(|agent| !agent.state.is_live());
            let hint = match has_pane {
                _ if has_ended => start_dialog::hint_after_end(&start).to_owned(),
                true if matches!(start.owner, Owner::Request(_)) => priming::hint_to_send_skill(tx, agent_id),
                true => "look at the agent's pane; tasuki left the pane as it is".to_owned(),
                false => "fix the cause, then start another agent; tasuki knows no pane of this agent".to_owned(),
            };
            let is_open = tx.state.open_requests.contains_key(request);
            if is_open {
                let status = if code == "no_tmux" { 503 } else { 502 };
                tx.refuse(request, Refused::new(status, code, why).hint(hint.as_str()));
            }
            start_dialog::withdraw(tx, &start);
            tx.notify_agent_failure(agent_id, code, why, &hint);
        }
    }
}
