//! Offers what other hosts have, such as `kai@box`, from the rosters that the bridge has written. The bridge is not
//! asked to bring them up to date. After an error nothing is offered, and rosters that were not read within 200 ms are
//! left out.

use super::offer::{MOST_OFFERED, home, one};
use crate::cli::view::{said, shown};
use crate::cli::{hosts, view};
use crate::config::Home;
use crate::contract::HostView;
use crate::core::host::HostName;
use crate::core::id::{AgentId, Slug};
use clap_complete::CompletionCandidate;
use std::time::{Duration, Instant};

/// For how long rosters are read: a person waits at the keyboard.
const READ_FOR: Duration = Duration::from_millis(200);

/// A name from a host's roster, and its description.
pub(super) type Told = (String, String);

/// The function that lists what an argument of that name can name on a host; `None` if rosters hold no such things.
pub(super) fn told_of(argument: &str) -> Option<fn(&HostView) -> Vec<Told>> {
    match argument {
        "agent" | "previous" | "successor" => Some(agents),
        "handoff" => Some(handoffs),
        "persona" => Some(personas),
        "error" => Some(errors),
        _ => None,
    }
}

/// The candidates on other hosts that begin with what was typed. If that has an `@`, only hosts whose names begin with
/// the part after it are read.
pub(super) fn candidates(typed: &str, told: fn(&HostView) -> Vec<Told>) -> Vec<CompletionCandidate> {
    let Some(home) = home() else { return Vec::new() };
    let end = Instant::now() + READ_FOR;
    let (_, host) = typed.rsplit_once('@').unwrap_or((typed, ""));
    let hosts = others(&home).into_iter().filter(|name| name.as_str().starts_with(host));
    let rosters = hosts.take_while(|_| Instant::now() < end).filter_map(|name| {
        let roster = hosts::one(&home, &name).ok().flatten().filter(|roster| roster.authentic)?;
        Some((name, roster))
    });
    let offered = rosters.flat_map(|(name, roster)| {
        told(&roster).into_iter().map(move |(own, about)| (format!("{own}@{name}"), about)).collect::<Vec<_>>()
    });
    let wanted = offered.filter(|(name, _)| name.starts_with(typed));
    wanted.take(MOST_OFFERED).map(|(name, about)| one(&name, &about)).collect()
}

/// The names of the fleet's hosts, this one among them.
pub(super) fn names() -> Vec<CompletionCandidate> {
    let all = home().map(|home| known(&home)).unwrap_or_default();
    all.iter().take(MOST_OFFERED).map(|name| one(name.as_str(), "")).collect()
}

fn known(home: &Home) -> Vec<HostName> {
    let stems = view::stems(&home.fleet().join("hosts")).unwrap_or_default();
    stems.iter().filter_map(|stem| stem.parse().ok()).collect()
}

/// All hosts except this one; none if this home has joined no fleet.
fn others(home: &Home) -> Vec<HostName> {
    let Ok(Some(own)) = hosts::own_name(home) else { return Vec::new() };
    known(home).into_iter().filter(|name| *name != own).collect()
}

/// Agents: by persona if no other agent of that host has it, else by the beginning of the id. Invalid ids and slugs are
/// left out, because a shell writes a candidate into the command line as it is.
fn agents(host: &HostView) -> Vec<Told> {
    let is_alone = |slug: &str| host.agents.iter().filter(|one| one.persona.as_deref() == Some(slug)).count() == 1;
    let named = host.agents.iter().filter_map(|agent| {
        let id = id(&agent.agent_id)?;
        let about = format!("{id} {} {}", shown(agent.profile.as_str()), shown(agent.state.as_str()));
        let slug = agent.persona.as_deref().and_then(slug).filter(|slug| is_alone(slug));
        Some((slug.map_or(id, str::to_owned), about))
    });
    named.collect()
}

fn handoffs(host: &HostView) -> Vec<Told> {
    let named = host.handoffs.iter().filter_map(|handoff| {
        let about = format!("{} {}", shown(handoff.persona.as_deref()), shown(handoff.step.as_str()));
        Some((id(&handoff.handoff_id)?, about))
    });
    named.collect()
}

fn errors(host: &HostView) -> Vec<Told> {
    host.errors.iter().filter_map(|error| Some((id(&error.error_id)?, shown(error.code.as_str())))).collect()
}

fn personas(host: &HostView) -> Vec<Told> {
    host.personas.iter().filter_map(|persona| Some((slug(&persona.slug)?.to_owned(), String::new()))).collect()
}

/// The beginning of an id, if the text is an id.
fn id(text: &str) -> Option<String> {
    text.parse::<AgentId>().ok().map(|id| id.short())
}

fn slug(text: &str) -> Option<&str> {
    said(text).filter(|text| text.parse::<Slug>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::fleet::{HostAgent, HostHandoff};

    const ID: &str = "11111111-1111-4111-8111-111111111111";

    #[test]
    fn only_names_are_offered_whatever_a_host_tells() {
        let agent = |id: &str, persona: &str| HostAgent {
            agent_id: id.to_owned(),
            persona: Some(persona.to_owned()),
            state: "idle\u{1b}[2J".to_owned(),
            ..HostAgent::default()
        };
        let agents = vec![
            agent("$(touch /tmp/x)", "kai"),
            agent(ID, "$(touch /tmp/x)"),
            agent("22222222-1111-4111-8111-111111111111", "mia"),
            agent("33333333-1111-4111-8111-111111111111", "zoe"),
            agent("44444444-1111-4111-8111-111111111111", "zoe"),
        ];
        let handoffs = vec![HostHandoff { handoff_id: "`x`".to_owned(), ..HostHandoff::default() }];
        let host = HostView { agents, handoffs, ..HostView::default() };
        let names: Vec<String> = super::agents(&host).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["11111111", "mia", "33333333", "44444444"]);
        assert!(super::handoffs(&host).is_empty());
    }
}
