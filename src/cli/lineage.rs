//! `lineage`: who came before and after an agent, as a small tree.

use super::CliSession;
use super::client::Pulse;
use super::error::CliError;
use super::output::Tone;
use super::remote::names::Named;
use super::unread::Unread;
use super::view::{ViewFile, said};
use super::{names, past, remote, view};
use crate::contract::{AgentView, HandoffView};
use crate::core::host::HostName;
use crate::core::id::HandoffId;
use crate::core::text::sanitise;
use crate::core::time::millis;
use clap::Args;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::str::FromStr;

/// One agent.
#[derive(Debug, Args)]
pub struct AgentName {
    /// Agent id or a unique prefix, persona, pane such as `%3`, `.` for the agent in this pane, or `kai@b` for an agent
    /// on the host b.
    pub agent: String,
}

/// The most views of handoffs that are read to find the handoffs that led to the agents.
const MOST_HANDOFFS: usize = 1_000;

/// How often the sidecar is asked for views: each time, it may take 5 s to answer.
const MOST_ROUNDS: usize = 6;
/// The most views that it is asked for at once: it handles no more.
const MOST_ASKED: usize = 100;

/// One agent of a lineage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineageMember {
    pub id: String,
    /// How many generations below the first ancestor.
    pub depth: usize,
    /// Its view; none if only another agent's view names it.
    pub view: Option<ViewFile<AgentView>>,
}

/// Shows an agent's lineage.
///
/// # Errors
/// When the agent is not known or the views can't be read.
pub fn command(session: &CliSession, args: &AgentName) -> Result<(), CliError> {
    let named = remote::names::agent(&session.home, &args.agent);
    if let Ok(Named { id, host: Some(host) }) = &named {
        return on_host(session, host, id);
    }
    session.require_views()?;
    let id = named?.id;
    let mut unread = Unread::default();
    let mut agents: Vec<ViewFile<AgentView>> = view::all(&session.home.agent_views(), &mut unread)?;
    session.warn(&unread);
    let asked = add_old(session, &id, &mut agents)?;
    let members = members(&id, &agents);
    if members.iter().all(|member| member.view.is_none()) {
        return Err(names::not_found("agent", &args.agent));
    }
    print(session, &id, &members)?;
    note_missing(session, &members, &asked);
    Ok(())
}

/// Adds the agents of a lineage whose views were removed for their age, and returns the ids that were asked for. A view
/// names its neighbours only, so the sidecar is asked several times, and each time for all that are missing.
fn add_old(
    session: &CliSession,
    id: &str,
    agents: &mut Vec<ViewFile<AgentView>>,
) -> Result<BTreeSet<String>, CliError> {
    let mut asked = BTreeSet::new();
    for _ in 0..MOST_ROUNDS {
        let missing = members(id, agents).into_iter().filter(|member| member.view.is_none()).map(|member| member.id);
        let missing: Vec<String> = missing.filter(|id| !asked.contains(id)).take(MOST_ASKED).collect();
        if missing.is_empty() {
            break;
        }
        if asked.is_empty() {
            session.out.note("Some views were removed for their age; asking the sidecar to write them again.");
        }
        let found = past::agents(&session.home, &missing)?;
        asked.extend(missing);
        if found.is_empty() {
            break;
        }
        agents.extend(found);
    }
    Ok(asked)
}

/// Names the agents that are shown by their ids alone, and says why.
fn note_missing(session: &CliSession, members: &[LineageMember], asked: &BTreeSet<String>) {
    let missing: Vec<&str> =
        members.iter().filter(|member| member.view.is_none()).map(|member| member.id.as_str()).collect();
    if missing.is_empty() {
        return;
    }
    let runs = Pulse::new(&session.home).is_alive();
    for id in missing {
        let why = match (runs, asked.contains(id)) {
            (false, _) => "its view was removed for its age, and no sidecar runs that could write it again",
            (true, true) => "the sidecar does not know it",
            (true, false) => "its view was removed for its age. Run the command again to see more of the chain",
        };
        let id = sanitise(id);
        session.out.note(&format!("Agent {id} is shown by its id alone, and agents beyond it may be missing: {why}."));
    }
}

/// The lineage of an agent on another host, as far as that host knows it.
fn on_host(session: &CliSession, host: &HostName, id: &str) -> Result<(), CliError> {
    let agents = remote::views::lineage(session, host, id)?;
    let members = members(id, &agents);
    // JSON holds the agents' views only. A person sees the agents even if the host does not show its handoffs.
    let came = match session.out.is_json() {
        true => Vec::new(),
        false => remote::views::handoffs(session, host).unwrap_or_default(),
    };
    let by_successor = |handoff: ViewFile<HandoffView>| {
        let member = members.iter().find(|member| handoff.successor_id.as_ref() == Some(&member.id))?;
        Some((member.id.as_str(), handoff))
    };
    let came: BTreeMap<&str, ViewFile<HandoffView>> = came.into_iter().filter_map(by_successor).collect();
    print_with(session, id, &members, &came)
}

/// Prints a lineage of this host and marks the requested agent.
pub(crate) fn print(session: &CliSession, id: &str, members: &[LineageMember]) -> Result<(), CliError> {
    // JSON holds the agents' views only.
    let handoffs = match session.out.is_json() {
        true => BTreeMap::new(),
        false => handoffs(&session.home.handoff_views(), members)?,
    };
    print_with(session, id, members, &handoffs)
}

/// Prints a lineage with the handoffs that led to its agents.
fn print_with(
    session: &CliSession,
    id: &str,
    members: &[LineageMember],
    handoffs: &BTreeMap<&str, ViewFile<HandoffView>>,
) -> Result<(), CliError> {
    if session.out.is_json() {
        let agents: Vec<Value> = members.iter().filter_map(|member| member.view.as_ref().map(ViewFile::json)).collect();
        // Agents without a view are known by their ids alone, and more agents may be beyond them.
        let missing: Vec<&str> =
            members.iter().filter(|member| member.view.is_none()).map(|member| member.id.as_str()).collect();
        return session.out.document(&json!({"agent_id": id, "lineage": agents, "missing": missing}));
    }
    let short = names::short(members.iter().map(|member| member.id.as_str()));
    for member in members {
        let own = member.id == id;
        let tone = if own { Tone::Strong } else { Tone::Plain };
        let shown = short.get(&member.id).map_or(member.id.as_str(), String::as_str);
        let line = session.out.paint(tone, &line(member, shown));
        session.out.line(&format!("{line}{}", if own { "  <- the agent that you named" } else { "" }))?;
        for line in handoffs.get(member.id.as_str()).map(|handoff| came_by(member, handoff)).into_iter().flatten() {
            session.out.line(&session.out.paint(Tone::Faint, &line))?;
        }
    }
    Ok(())
}

/// For each agent, the handoff that led to it. Most are named by a predecessor's view, as the handoff that recorded the
/// predecessor's document. Other handoffs, such as abandoned ones, are searched for. A handoff's view mostly changes
/// for the last time soon after its successor has registered, so the search begins with the views that changed nearest
/// to that time.
fn handoffs<'m>(
    folder: &Path,
    members: &'m [LineageMember],
) -> Result<BTreeMap<&'m str, ViewFile<HandoffView>>, CliError> {
    let came = members.iter().filter(|member| member.view.as_ref().is_some_and(|agent| previous(agent).is_some()));
    let mut missing: BTreeMap<&str, i64> = came.map(|member| (member.id.as_str(), registered_ms(member))).collect();
    let mut found = BTreeMap::new();
    let recorded = members.iter().filter_map(|member| said(member.view.as_ref()?.recorded_in.as_deref()));
    for name in recorded.filter(|name| HandoffId::from_str(name).is_ok()) {
        let Some(handoff) = read(folder, name) else { continue };
        let successor = handoff.successor_id.as_deref();
        let came = missing.keys().copied().find(|agent| Some(*agent) == successor);
        if let Some(agent) = came {
            missing.remove(agent);
            found.insert(agent, handoff);
        }
    }
    if missing.is_empty() {
        return Ok(found);
    }
    let mut left: BTreeSet<(i64, String)> = view::by_change(folder)?.into_iter().collect();
    let mut looked = 0;
    while let Some((agent, at)) = missing.pop_first() {
        while let Some(next) = nearest(&left, at).filter(|_| looked < MOST_HANDOFFS) {
            left.remove(&next);
            looked += 1;
            let Some(handoff) = read(folder, &next.1) else { continue };
            let Some(successor) = said(handoff.successor_id.as_deref()) else { continue };
            if successor == agent {
                found.insert(agent, handoff);
                break;
            }
            // This handoff led to another agent of the lineage: that agent's handoff need not be searched for.
            let other = missing.keys().find(|other| **other == successor).copied();
            if let Some(other) = other.filter(|other| missing.remove(other).is_some()) {
                found.insert(other, handoff);
            }
        }
    }
    Ok(found)
}

fn read(folder: &Path, handoff: &str) -> Option<ViewFile<HandoffView>> {
    view::read(&folder.join(format!("{handoff}.json"))).ok().flatten()
}

/// When an agent was registered, in milliseconds since 1970.
fn registered_ms(member: &LineageMember) -> i64 {
    registered_at(member).and_then(millis).unwrap_or(i64::MAX)
}

fn registered_at(member: &LineageMember) -> Option<&str> {
    member.view.as_ref().and_then(|agent| said(agent.registered_at.as_deref()))
}

/// The view that changed nearest to that time.
fn nearest(left: &BTreeSet<(i64, String)>, at_ms: i64) -> Option<(i64, String)> {
    let from = (at_ms, String::new());
    let around = [left.range(from.clone()..).next(), left.range(..from).next_back()];
    around.into_iter().flatten().min_by_key(|(changed_ms, _)| changed_ms.abs_diff(at_ms)).cloned()
}

fn indent(member: &LineageMember) -> String {
    "   ".repeat(member.depth.min(40).saturating_sub(1))
}

fn line(member: &LineageMember, shown: &str) -> String {
    let branch = if member.depth == 0 { String::new() } else { format!("{}└─ ", indent(member)) };
    let agent = member.view.as_ref();
    let persona = agent.and_then(|agent| agent.persona_slug.as_deref());
    let (state, pane) = (agent.map(|agent| agent.state.as_str()), agent.and_then(|agent| agent.pane.as_deref()));
    let model = agent.and_then(|agent| said(agent.model.as_deref())).map(|model| format!(" ({model})"));
    let profile = view::shown(agent.map(|agent| agent.profile.as_str())) + &model.unwrap_or_default();
    let about = format!("{}  {profile}  {}  {}", view::shown(persona), view::shown(state), view::shown(pane));
    let when = registered_at(member).map(|at| format!("since {}", view::clock(at))).unwrap_or_default();
    sanitise(format!("{branch}{shown}  {about}  {when}").trim_end())
}

/// The handoff that led to an agent, and the path of its document.
fn came_by(member: &LineageMember, handoff: &HandoffView) -> [String; 2] {
    let id: String = view::shown(handoff.handoff_id.as_str()).chars().take(8).collect();
    let space = if member.depth == 0 { String::new() } else { indent(member) + "   " };
    let [step, reason, path] = [handoff.step.as_str(), &handoff.reason, &handoff.file_path].map(view::shown);
    [format!("{space}by handoff {id} ({step}): {reason}"), format!("{space}document {path}")]
        .map(|line| sanitise(&line).replace(['\n', '\t'], " "))
}

/// Who succeeded whom.
#[derive(Debug)]
pub(crate) struct Links<'a> {
    previous: BTreeMap<&'a str, &'a str>,
    children: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Links<'a> {
    /// Links agents, given in the order of their registration and each with its predecessor.
    pub(crate) fn new(agents: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> Self {
        let mut links = Links { previous: BTreeMap::new(), children: BTreeMap::new() };
        for (id, previous) in agents {
            if let Some(previous) = previous {
                links.previous.insert(id, previous);
                links.children.entry(previous).or_default().push(id);
            }
        }
        links
    }

    /// The first ancestor of an agent. Each agent is visited once, so even a circle, which no sidecar writes, ends.
    pub(crate) fn first(&self, id: &'a str) -> &'a str {
        let mut first = id;
        let mut climbed = BTreeSet::from([first]);
        while let Some(parent) = self.previous.get(first).filter(|parent| !climbed.contains(*parent)) {
            climbed.insert(parent);
            first = parent;
        }
        first
    }

    /// An agent and everyone who came after it, each with its depth, in depth-first order.
    pub(crate) fn below(&self, first: &'a str) -> Vec<(&'a str, usize)> {
        let mut met = BTreeSet::new();
        let mut open = vec![(first, 0)];
        let mut found = Vec::new();
        while let Some((next, depth)) = open.pop() {
            if !met.insert(next) {
                continue;
            }
            found.push((next, depth));
            let children = self.children.get(next).map(Vec::as_slice).unwrap_or_default();
            open.extend(children.iter().rev().map(|child| (*child, depth + 1)));
        }
        found
    }
}

/// The agent's predecessor.
fn previous(agent: &AgentView) -> Option<&str> {
    said(agent.previous_agent_id.as_deref())
}

/// The agent's successor.
fn successor(agent: &AgentView) -> Option<&str> {
    said(agent.successor_id.as_deref())
}

/// The first ancestor of an agent and everyone who came after it, in depth-first order.
#[must_use]
pub fn members(id: &str, agents: &[ViewFile<AgentView>]) -> Vec<LineageMember> {
    let by_id: BTreeMap<&str, &ViewFile<AgentView>> =
        agents.iter().filter_map(|agent| Some((said(agent.agent_id.as_str())?, agent))).collect();
    let mut ordered: Vec<(&str, &ViewFile<AgentView>)> = by_id.iter().map(|(id, agent)| (*id, *agent)).collect();
    ordered.sort_by_key(|(_, agent)| view::shown(agent.registered_at.as_deref()));
    // A successor without a view is known only from its predecessor's view. A successor with a view names its
    // predecessor.
    let gone = ordered.iter().filter_map(|(id, agent)| Some((successor(agent)?, Some(*id))));
    let gone = gone.filter(|(successor, _)| !by_id.contains_key(successor));
    let links = Links::new(ordered.iter().map(|(id, agent)| (*id, previous(agent))).chain(gone));
    let member = |(id, depth): (&str, usize)| LineageMember {
        id: id.to_owned(),
        depth,
        view: by_id.get(id).map(|view| (*view).clone()),
    };
    links.below(links.first(id)).into_iter().map(member).collect()
}

#[cfg(test)]
#[path = "lineage_tests.rs"]
mod tests;
