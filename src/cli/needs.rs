//! Reads the files from which [`crate::core::needs`] makes the list of what waits for a person. These are the views of
//! agents and of open work items, the error files, the views of the handoffs that an agent or an error file names, and
//! the view of a sidecar that lives.

use super::client::Pulse;
use super::error::CliError;
use super::unread::Unread;
use super::view::{self, ViewFile};
use super::work::read as items;
use crate::config::Home;
use crate::contract::{AgentView, ErrorFile, HandoffView, NeedView, WorkBrief};
use crate::core::id::HandoffId;
use crate::core::needs::{self, AgentNeeds, FailureNeed, HandoffNeeds};
use std::collections::BTreeSet;

/// What waits for a person, and how many agents, handoffs and failures there are.
#[derive(Debug, Default)]
pub struct Overview {
    /// The list, the most urgent first. If a file can't be read, an entry says that the list may lack something.
    pub needs: Vec<NeedView>,
    /// How many agents live.
    pub agents: usize,
    /// How many handoffs run.
    pub handoffs: usize,
    /// How many failures nobody has dismissed.
    pub errors: usize,
    /// The files that can't be read.
    pub unread: Unread,
}

/// Reads the overview.
///
/// # Errors
/// When a folder can't be read.
pub fn read(home: &Home) -> Result<Overview, CliError> {
    let mut unread = Unread::default();
    let agents: Vec<ViewFile<AgentView>> = view::all(&home.agent_views(), &mut unread)?;
    let errors: Vec<ViewFile<ErrorFile>> = view::latest(&home.errors(), needs::MOST_FAILURES, &mut unread)?;
    let is_full = errors.len() >= needs::MOST_FAILURES;
    let left_out = if is_full { view::stems(&home.errors())?.len().saturating_sub(errors.len()) } else { 0 };
    // The view of an agent names its running handoff, even if the agent has ended.
    let of_agents = agents.iter().filter_map(|agent| agent.handoff_id.as_deref());
    let of_errors = errors.iter().filter_map(|error| error.handoff_id.as_deref());
    let ids = of_agents.chain(of_errors).chain(agents.iter().filter_map(|agent| before(agent, &agents)));
    let ids: BTreeSet<HandoffId> = ids.filter_map(|id| id.parse().ok()).collect();
    let view = |id: &HandoffId| unread.note(view::handoff(home, &id.to_string()));
    let handoffs: Vec<ViewFile<HandoffView>> = ids.iter().filter_map(view).collect();
    let open: Vec<(String, WorkBrief)> = items::views(home, &items::open_ids(home)?, &mut unread);
    let judged: Vec<AgentNeeds> = agents.iter().map(|agent| AgentNeeds::of(agent)).collect();
    let of_handoffs: Vec<HandoffNeeds> = handoffs.iter().map(|handoff| HandoffNeeds::of(handoff)).collect();
    let of_items = open.iter().filter_map(|(_, item)| needs::item(item));
    let of_unread = unread.first().map(|(count, why)| needs::unread(count, why));
    let others: Vec<NeedView> =
        of_items.chain(of_sidecar(home)?).chain(of_unread).chain(needs::left_out(left_out)).collect();
    let failures: Vec<FailureNeed> = errors.iter().map(|error| FailureNeed::of(error)).collect();
    let is_running = |handoff: &&ViewFile<HandoffView>| handoff.step.known().is_some_and(|step| !step.is_end());
    Ok(Overview {
        needs: needs::list(&judged, &of_handoffs, &others, &failures),
        agents: judged.iter().filter(|agent| agent.is_living()).count(),
        handoffs: handoffs.iter().filter(is_running).count(),
        errors: errors.len() + left_out,
        unread,
    })
}

/// The handoff by which an agent that could be handed off has got its work. If that handoff has failed before the agent
/// was briefed, it needs something else than another handoff.
fn before<'a>(agent: &AgentView, agents: &'a [ViewFile<AgentView>]) -> Option<&'a str> {
    let may_be = agent.is_living() && (agent.limited.is_some() || agent.handoff_suggested);
    let previous = agent.previous_agent_id.as_deref().filter(|_| may_be)?;
    agents.iter().find(|known| known.agent_id == previous)?.recorded_in.as_deref()
}

/// What the sidecar can't do at present. The view of a sidecar that was killed says nothing about the present.
fn of_sidecar(home: &Home) -> Result<Option<NeedView>, CliError> {
    if !Pulse::new(home).is_alive() {
        return Ok(None);
    }
    Ok(view::sidecar(home)?.and_then(|seen| needs::sidecar(&seen)))
}
