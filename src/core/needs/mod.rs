//! What waits for a person, as one list. `tasuki status`, `tasuki top`, `GET /api/needs` and tmux's status line all get
//! it from here. Each file is judged alone: an agent's view ([`AgentNeeds`]), a handoff's ([`HandoffNeeds`]), a work
//! item's ([`item`]), the sidecar's ([`sidecar()`]) and an error file ([`FailureNeed`]). [`list`] joins them, so that
//! each failure that nobody has dismissed is listed once, and a failure that is settled is not listed any more.

mod agent;
mod failure;
mod handoff;
mod text;

pub use agent::AgentNeeds;
pub use failure::{FailureNeed, halted};
pub use handoff::{HandoffNeeds, is_in_doubt};

use crate::contract::work::Status;
use crate::contract::{Health, NeedKind, NeedView, SidecarView, WorkBrief};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use text::{id, line, short, time};

/// The most error files from which a list is made. Each program that makes the list reads as many, so that all show the
/// same. If there are more, they read the newest; tmux's status line takes any.
pub const MOST_FAILURES: usize = 2_000;

/// A work item that was given to a person; none if it was not.
#[must_use]
pub fn item(seen: &WorkBrief) -> Option<NeedView> {
    let reason = seen.escalation_reason.as_deref().filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    (seen.status == Status::Escalated).then(|| NeedView {
        what: NeedKind::Escalated.into(),
        item_id: id(&seen.item_id),
        since: time(seen.escalated_at.as_deref()),
        said: line(&format!("“{}” was escalated{reason}", seen.title)),
        hint: Some(format!(
            "Do it yourself (tasuki work claim {} --human), or release it for an agent that has not escalated it.",
            short(&seen.item_id)
        )),
        command: format!("tasuki work release {} --human", short(&seen.item_id)),
        ..NeedView::default()
    })
}

/// What a sidecar that lives can't do at present; none if it can do all of its work.
#[must_use]
pub fn sidecar(seen: &SidecarView) -> Option<NeedView> {
    let problem = seen.problem.as_deref().map(|problem| format!(": {problem}")).unwrap_or_default();
    (seen.state == Health::Degraded).then(|| NeedView {
        what: NeedKind::Degraded.into(),
        said: line(&format!("The sidecar can't do all of its work{problem}")),
        command: "tasuki doctor".to_owned(),
        ..NeedView::default()
    })
}

/// A list that lacks files, because they can't be read: how many they are, and why the first of them can't.
#[must_use]
pub fn unread(count: usize, why: &str) -> NeedView {
    let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    NeedView {
        what: NeedKind::Degraded.into(),
        said: line(&format!("{files} can't be read, so this list may lack something: {why}")),
        command: "tasuki doctor".to_owned(),
        ..NeedView::default()
    }
}

/// A list that lacks failures, because there are more error files than [`MOST_FAILURES`]; none if it lacks none. A
/// handoff that has failed is listed only while its error file is known, so it may be lacking too.
#[must_use]
pub fn left_out(count: usize) -> Option<NeedView> {
    let errors = if count == 1 { "1 older error is".to_owned() } else { format!("{count} older errors are") };
    (count > 0).then(|| NeedView {
        what: NeedKind::Degraded.into(),
        said: format!("{errors} not read, so this list may lack something"),
        hint: Some("Dismiss the errors that you have dealt with: tasuki errors dismiss ID".to_owned()),
        command: format!("tasuki errors --limit {}", MOST_FAILURES + count),
        ..NeedView::default()
    })
}

/// Everything that waits for a person, the most urgent first, and of the same kind the oldest first. `others`: the
/// needs of work items, and of tasuki itself.
#[must_use]
pub fn list<'a>(
    agents: impl IntoIterator<Item = &'a AgentNeeds>,
    handoffs: impl IntoIterator<Item = &'a HandoffNeeds>,
    others: impl IntoIterator<Item = &'a NeedView>,
    failures: impl IntoIterator<Item = &'a FailureNeed>,
) -> Vec<NeedView> {
    let agents: BTreeMap<&str, &AgentNeeds> =
        agents.into_iter().map(|agent| (agent.agent_id.as_str(), agent)).collect();
    let agent_of = |id: &str| agents.get(id).copied();
    let handoffs: BTreeMap<&str, Cow<'_, HandoffNeeds>> =
        handoffs.into_iter().map(|handoff| (handoff.handoff_id.as_str(), handoff.beside(agent_of))).collect();
    let failures: BTreeMap<&str, &FailureNeed> =
        failures.into_iter().map(|failure| (failure.error_id.as_str(), failure)).collect();
    let unbriefed: BTreeMap<&str, &HandoffNeeds> =
        handoffs.values().filter_map(|handoff| Some((handoff.unbriefed()?, &**handoff))).collect();
    let of_agents = agents.values().flat_map(|agent| {
        let handoff = unbriefed.get(agent.agent_id.as_str());
        agent.needs.iter().map(move |need| handoff.map_or_else(|| need.clone(), |handoff| handoff.of_unbriefed(need)))
    });
    let of_handoffs = handoffs.values().flat_map(|one| one.needs()).filter_map(|need| still(need, &failures));
    let others = others.into_iter().filter_map(|need| still(need, &failures));
    let mut needs: Vec<NeedView> = of_agents.chain(of_handoffs).chain(others).collect();
    let listed: BTreeSet<String> = needs.iter().filter_map(|need| need.error_id.clone()).collect();
    let rest = failures.values().filter(|failure| !listed.contains(&failure.error_id));
    needs.extend(rest.filter_map(|failure| {
        let handoff = failure.handoff_id.as_deref().and_then(|id| handoffs.get(id)).map(|handoff| &**handoff);
        failure.alone(failure.agent_id.as_deref().and_then(agent_of), handoff)
    }));
    needs.sort_by_cached_key(place);
    needs
}

/// The need, unless it is a failure that somebody has dismissed.
fn still(need: &NeedView, failures: &BTreeMap<&str, &FailureNeed>) -> Option<NeedView> {
    let Some(error_id) = &need.error_id else { return Some(need.clone()) };
    let failure = failures.get(error_id.as_str())?;
    Some(NeedView { since: need.since.clone().or_else(|| failure.since()), ..need.clone() })
}

/// Its position in the list.
fn place(need: &NeedView) -> (usize, bool, String, String) {
    let rank = NeedKind::ALL.iter().position(|kind| need.what == *kind).unwrap_or(NeedKind::ALL.len());
    let ids = [&need.agent_id, &need.handoff_id, &need.item_id, &need.error_id];
    let ids: Vec<&str> = ids.into_iter().flatten().map(String::as_str).collect();
    (rank, need.since.is_none(), need.since.clone().unwrap_or_default(), ids.join(" "))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
