//! The three kinds of successor: a new agent in a new window, a new session in the outgoing agent's own process, or an
//! agent that already runs.

use super::agents;
use super::in_place;
use super::next::Next;
use crate::contract::facts::EarlierDocument;
use crate::core::agent::{exit, start};
use crate::core::id::{AgentId, HandoffId};
use crate::core::persona::ProfileChoice;
use crate::core::reply::Refused;
use crate::core::request::Successor;
use crate::core::rows::agent::{Agent, Owner};
use crate::core::rows::chain::Chain;
use crate::core::rows::handoff::{Handoff, HandoffError, Step};
use crate::core::settings::ProfileFacts;
use crate::core::time::Deadline;
use crate::core::tx::Tx;

/// Checks that the requested successor can take over from this agent. Returns its id if it already runs. `own`: the
/// handoff itself, to which the successor may be bound already.
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

/// The profile and the model of the successor. `asked`: those that the request names; they count only for a new agent.
/// `fallbacks`: the persona's other profiles; such an entry may name a model for its profile. A new agent must be one
/// that tasuki can start: otherwise the outgoing agent would end, and nobody would take over.
pub(super) fn choice(
    tx: &Tx<'_>,
    successor: &Successor,
    asked: (Option<&str>, Option<&str>),
    outgoing: &Agent,
    fallbacks: &[ProfileChoice],
) -> Result<ProfileChoice, Refused> {
    let (profile, model) = match (successor, asked) {
        (Successor::SamePane, _) => return Ok(outgoing.choice()),
        (Successor::Existing { agent_id }, _) => {
            let agent = agent_id.parse().ok().and_then(|id| tx.agent(&id));
            return Ok(agent.map(Agent::choice).unwrap_or_default());
        }
        (Successor::New, (profile, model)) => (profile.unwrap_or(&outgoing.profile), model),
    };
    let facts = launchable(tx, profile)?;
    if model.is_some() && !facts.takes_model {
        return Err(Refused::no_model_option(profile));
    }
    let usual = || {
        if profile == outgoing.profile {
            return outgoing.model.clone();
        }
        fallbacks.iter().find(|choice| choice.profile == profile).and_then(|choice| choice.model.clone())
    };
    let model = model.map(str::to_owned).or_else(usual).filter(|_| facts.takes_model);
    Ok(ProfileChoice { profile: profile.to_owned(), model })
}

/// The facts of a profile by which tasuki can start an agent.
pub(super) fn launchable<'s>(tx: &Tx<'s>, profile: &str) -> Result<&'s ProfileFacts, Refused> {
    let known = &tx.state.settings.profiles;
    let names = |all: bool| {
        let names = known.iter().filter(|(_, facts)| all || facts.launchable).map(|(name, _)| name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let Some(facts) = known.get(profile) else {
        return Err(Refused::new(400, "no_profile", format!("There is no profile {profile}"))
            .field("profile")
            .hint(format!("name another profile: --profile NAME; the profiles are {}", names(true))));
    };
    if !facts.launchable {
        let message = format!("Profile {profile} has no launch line, so tasuki can't start a successor");
        let hint = format!(
            "nothing was changed; name a profile that tasuki can start: --profile NAME ({}), or give the profile a \
             table [launch]",
            names(false)
        );
        return Err(Refused::new(400, "not_launchable", message).field("profile").hint(hint));
    }
    Ok(facts)
}

fn same_pane(tx: &Tx<'_>, outgoing: &Agent) -> Result<(), Refused> {
    let refused = |message: String| Err(Refused::new(400, "same_pane_unavailable", message).field("successor"));
    if !outgoing.state.is_live() || outgoing.pane.is_none() {
        return refused("The agent has no pane in which a new session could begin".to_owned());
    }
    if in_place::new_session(tx, outgoing).is_none() {
        return refused(format!("Profile {} has no command for a new session", outgoing.profile));
    }
    Ok(())
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
        return bad("has a different persona");
    }
    if agent.pane.is_none() {
        return bad("has no tmux pane");
    }
    if agent.handoff_id.is_some_and(|other| Some(other) != own) || agent.recorded_in.is_some() {
        let message = "The successor is already in another handoff";
        return Err(Refused::new(409, "successor_taken", message).field("successor"));
    }
    if let Some(other) = agents::unbriefed_in(tx, agent).filter(|other| Some(other.handoff_id) != own) {
        let refused = agents::is_unbriefed(other);
        return Err(Refused { code: "successor_taken".to_owned(), ..refused }.field("successor"));
    }
    if agent.shutdown.is_some() {
        return Err(Refused::new(409, "shutting_down", "The successor is being shut down").field("successor"));
    }
    Ok(agent.agent_id)
}

/// Binds a running agent to this handoff, so that no other handoff can use it.
pub(crate) fn bind_successor(tx: &mut Tx<'_>, id: HandoffId, successor_id: AgentId) {
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.successor_id = Some(successor_id);
    }
    if let Some(agent) = tx.agent_mut(&successor_id) {
        agent.handoff_id = Some(id);
    }
}

/// Lets the successor go if the handoff has failed because the successor was gone. tasuki may not have heard of its end
/// yet, and the retry would type to it again.
pub(super) fn let_go_if_gone(tx: &mut Tx<'_>, id: HandoffId, error: &HandoffError) {
    let was_its = matches!(error.step, Step::Priming | Step::Briefing | Step::Reading | Step::Acknowledging);
    if was_its && matches!(error.code.as_str(), "pane_gone" | "agent_ended") {
        let_go(tx, id);
    }
}

/// The successor to which a retry types. If it is dead, releases it and returns `Err` with what follows: the step that
/// starts another successor. It counts as dead as soon as its process is dead, even if tasuki still waits for its last
/// hooks.
pub(super) fn to_retry_with(tx: &mut Tx<'_>, id: HandoffId) -> Result<AgentId, Next> {
    let successor = tx.handoff(&id).and_then(|handoff| handoff.successor_id).and_then(|id| tx.agent(&id));
    match successor {
        Some(agent) if agent.is_alive() => Ok(agent.agent_id),
        _ => {
            let_go(tx, id);
            Err(Next::Enter(Step::Starting))
        }
    }
}

/// Releases a successor that is dead, or whose start was begun in an earlier tmux server, so that a new one is started.
/// A successor whose pane was not seen to be gone is kept, whatever server answers now: it may live in another one.
pub(super) fn release_unless_adoptable(tx: &mut Tx<'_>, id: HandoffId) {
    let successor_id = tx.handoff(&id).and_then(|handoff| handoff.successor_id);
    let server = tx.state.server;
    let can_be_adopted = |agent: &Agent| {
        let agent_server = agent.pane.map(|pane| pane.server).or(agent.start_server);
        let may_live_elsewhere = agent.pane.is_some() && agent.pending_exit.is_none();
        agent.is_alive() && (agent_server == server || may_live_elsewhere)
    };
    if successor_id.is_some_and(|id| !tx.agent(&id).is_some_and(can_be_adopted)) {
        let_go(tx, id);
    }
}

/// Lets the successor go: gives up its start, and releases it, so that another can be chosen or started.
pub(super) fn let_go(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(former) = tx.handoff(&id).and_then(|handoff| handoff.successor_id) else { return };
    abandon_start(tx, id, &former);
    release(tx, id);
}

/// Gives up the successor's start, unless the start belongs to another request: an existing agent that was named as the
/// successor may still be starting for its `agent_create`.
pub(super) fn abandon_start(tx: &mut Tx<'_>, id: HandoffId, successor_id: &AgentId) {
    let start = tx.agent(successor_id).and_then(|agent| agent.start.as_ref());
    if start.is_none_or(|start| start.owner == Owner::Handoff(id)) {
        exit::abandon_start(tx, successor_id);
    }
}

/// Releases the successor. Its id is kept in `former_successors`.
pub(super) fn release(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    let Some(former) = handoff.successor_id.take() else { return };
    handoff.former_successors.push(former);
    handoff.successor_blocked_at = None;
    let outgoing = handoff.agent_id;
    if tx.agent(&former).is_some_and(|agent| agent.is_held_in(&id))
        && let Some(agent) = tx.agent_mut(&former)
    {
        agent.leave(&id);
    }
    if tx.agent(&outgoing).is_some_and(|agent| agent.successor_id == Some(former))
        && let Some(agent) = tx.agent_mut(&outgoing)
    {
        agent.successor_id = None;
    }
}

/// The profile that was chosen for the successor. The row of an earlier version has no field `choice`.
pub(super) fn chosen_profile<'h>(handoff: &'h Handoff, outgoing: &'h Agent) -> &'h str {
    Some(handoff.choice.profile.as_str()).filter(|profile| !profile.is_empty()).unwrap_or(&outgoing.profile)
}

/// Starts a new agent as the successor. Without a deadline the usual limit of a start applies.
pub(super) fn start(tx: &mut Tx<'_>, id: HandoffId, deadline: Option<Deadline>) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let Some(outgoing) = tx.agent(&handoff.agent_id) else { return };
    let place = handoff.successor_window.as_ref();
    let slug = handoff.persona_slug.clone();
    let fallback = || outgoing.tmux_session.clone().unwrap_or_else(|| format!("tasuki-{slug}"));
    let profile = chosen_profile(handoff, outgoing).to_owned();
    let wanted = start::NewAgent {
        persona: slug.clone(),
        profile,
        cwd: outgoing.cwd.clone().or_else(|| place.and_then(|place| place.cwd.clone())),
        session: place.map_or_else(fallback, |place| place.session.clone()),
        session_number: place.and_then(|place| place.session_number),
        // Without a noted place, the outgoing agent may still run: the new window goes into the session of its pane.
        beside: outgoing.pane.filter(|_| place.is_none() && outgoing.state.is_live()),
        size: place.map_or(start::DEFAULT_SIZE, |place| place.size),
        previous: Some(handoff.agent_id),
        model: handoff.choice.model.clone(),
    };
    let successor_id = start::create(tx, wanted, Owner::Handoff(id), deadline);
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.successor_id = Some(successor_id);
    }
}

/// Adds the document to the successor's chain of handoffs. Called as soon as the document may have reached it.
pub(crate) fn extend_chain(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let chain = handoff.chain.after(EarlierDocument {
        handoff_id: id.to_string(),
        file_path: handoff.file_path.clone(),
        checkpoint: handoff.checkpoint.clone(),
    });
    let Some(successor_id) = handoff.successor_id else { return };
    if let Some(agent) = tx.agent_mut(&successor_id) {
        agent.chain = chain;
    }
}

/// The document has not reached the successor after all. An agent that runs already keeps its chain: what it was before
/// is not known.
pub(super) fn clear_chain(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id).filter(|handoff| !matches!(handoff.successor, Successor::Existing { .. }))
    else {
        return;
    };
    if let Some(agent) = handoff.successor_id.and_then(|successor_id| tx.agent_mut(&successor_id)) {
        agent.chain = Chain::default();
    }
}
