//! `lineage`: who came before and after an agent, as a small tree.

use super::CliSession;
use super::error::CliError;
use super::output::Tone;
use super::remote::names::Named;
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
    /// Agent id or a unique prefix, persona, pane such as `%3`, `.` for the agent in this pane, or `kai@b` for an agent on
    /// the host b.
    pub agent: String,
}

/// How many handoffs are searched for those that led to the agents.
const MOST_HANDOFFS: usize = 1_000;

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
    let mut agents: Vec<ViewFile<AgentView>> = view::all(&session.home.agent_views())?;
    if !agents.iter().any(|agent| agent.agent_id == id) {
        agents.extend(past::agent(&session.home, &id)?);
    }
    let members = members(&id, &agents);
    if members.iter().all(|member| member.view.is_none()) {
        return Err(names::not_found("agent", &args.agent));
    }
    print(session, &id, &members)
}

/// The lineage of an agent on another host, as far as that host knows it.
fn on_host(session: &CliSession, host: &HostName, id: &str) -> Result<(), CliError> {
    let agents = remote::views::lineage(session, host, id)?;
    let members = members(id, &agents);
    // Programs get the agents' views only. People see the agents, even where the host shows no handoffs.
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
    // Programs get the agents' views only.
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
        return session.out.document(&json!({"agent_id": id, "lineage": agents}));
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

/// The handoffs that led to agents, by the agent. A predecessor's view names the handoff that has recorded it. Other
/// handoffs, such as abandoned ones, are searched for: a handoff's view last changed soon after its successor registered,
/// so views from about that time are read first, and mostly no others.
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
            // This handoff led to another agent, which then need not be searched for.
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
        .map(|line| sanitise(&line))
}

/// Who succeeded whom.
#[derive(Debug)]
pub(crate) struct Links<'a> {
    previous: BTreeMap<&'a str, &'a str>,
    children: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Links<'a> {
    /// Links of agents in the order of their registration, each with its predecessor.
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

/// The first ancestor of an agent and everyone who came after it, in depth-first order.
#[must_use]
pub fn members(id: &str, agents: &[ViewFile<AgentView>]) -> Vec<LineageMember> {
    let by_id: BTreeMap<&str, &ViewFile<AgentView>> =
        agents.iter().filter_map(|agent| Some((said(agent.agent_id.as_str())?, agent))).collect();
    let mut ordered: Vec<(&str, &ViewFile<AgentView>)> = by_id.iter().map(|(id, agent)| (*id, *agent)).collect();
    ordered.sort_by_key(|(_, agent)| view::shown(agent.registered_at.as_deref()));
    let links = Links::new(ordered.iter().map(|(id, agent)| (*id, previous(agent))));
    let member = |(id, depth): (&str, usize)| LineageMember {
        id: id.to_owned(),
        depth,
        view: by_id.get(id).map(|view| (*view).clone()),
    };
    links.below(links.first(id)).into_iter().map(member).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(id: &str, previous: Option<&str>, at: u32) -> ViewFile<AgentView> {
        let view = json!({"agent_id": id, "previous_agent_id": previous, "registered_at": format!("2026-01-01T00:00:{at:02}Z")});
        ViewFile::read(view.to_string().into_bytes()).expect("JSON").expect("an object")
    }

    fn tree(id: &str, agents: &[ViewFile<AgentView>]) -> Vec<(String, usize)> {
        members(id, agents).into_iter().map(|member| (member.id, member.depth)).collect()
    }

    #[test]
    fn a_lineage_is_the_same_from_each_of_its_members() {
        let agents = [agent("c", Some("b"), 3), agent("a", None, 1), agent("b", Some("a"), 2), agent("x", None, 4)];
        let expected = [("a".to_owned(), 0), ("b".to_owned(), 1), ("c".to_owned(), 2)];
        for id in ["a", "b", "c"] {
            assert_eq!(tree(id, &agents), expected, "{id}");
        }
    }

    #[test]
    fn several_successors_stand_in_the_order_in_which_they_came() {
        let agents = [agent("a", None, 1), agent("z", Some("a"), 2), agent("b", Some("a"), 3)];
        assert_eq!(tree("a", &agents), [("a".to_owned(), 0), ("z".to_owned(), 1), ("b".to_owned(), 1)]);
    }

    #[test]
    fn the_handoff_by_which_an_agent_came_is_found_whenever_its_view_has_changed() {
        let dir = tempfile::tempdir().expect("a folder");
        let write = |name: &str, successor: Option<&str>| {
            let view = json!({"handoff_id": name, "successor_id": successor});
            std::fs::write(dir.path().join(format!("{name}.json")), view.to_string()).expect("written");
        };
        let agents =
            [agent("a", None, 1), agent("b", Some("a"), 2), agent("c", Some("b"), 3), agent("d", Some("c"), 4)];
        // All views have changed long after the agents registered, in another order.
        for (name, successor) in [("h3", Some("c")), ("h1", None), ("h2", Some("b")), ("h4", Some("nobody"))] {
            write(name, successor);
        }
        let members = members("a", &agents);
        let found = handoffs(dir.path(), &members).expect("readable");
        let by: Vec<(&str, String)> = found.iter().map(|(id, handoff)| (*id, handoff.handoff_id.clone())).collect();
        assert_eq!(by, [("b", "h2".to_owned()), ("c", "h3".to_owned())]);
    }

    #[test]
    fn the_handoff_that_a_predecessor_names_is_believed_only_if_it_led_to_the_agent() {
        let dir = tempfile::tempdir().expect("a folder");
        let id = |number: u128| uuid::Uuid::from_u128(number).to_string();
        let write = |number: u128, successor: &str| {
            let view = json!({"handoff_id": id(number), "successor_id": successor});
            std::fs::write(dir.path().join(format!("{}.json", id(number))), view.to_string()).expect("written");
        };
        for (number, successor) in [(1, "b"), (2, "nobody"), (3, "c")] {
            write(number, successor);
        }
        let recorded = |agent: ViewFile<AgentView>, handoff: &str| {
            let mut view = agent.json();
            view["recorded_in"] = json!(handoff);
            ViewFile::read(view.to_string().into_bytes()).expect("JSON").expect("an object")
        };
        let agents = [
            recorded(agent("a", None, 1), &id(1)),
            recorded(agent("b", Some("a"), 2), &id(2)),
            recorded(agent("c", Some("b"), 3), "../3"),
        ];
        let members = members("a", &agents);
        let found = handoffs(dir.path(), &members).expect("readable");
        let by: Vec<(&str, String)> = found.iter().map(|(id, handoff)| (*id, handoff.handoff_id.clone())).collect();
        assert_eq!(by, [("b", id(1)), ("c", id(3))]);
    }

    #[test]
    fn a_circle_ends_and_a_missing_ancestor_is_still_named() {
        let circle = [agent("a", Some("b"), 1), agent("b", Some("a"), 2)];
        assert_eq!(tree("a", &circle).len(), 2);
        let orphan = [agent("b", Some("gone"), 2)];
        assert_eq!(tree("b", &orphan), [("gone".to_owned(), 0), ("b".to_owned(), 1)]);
    }
}
