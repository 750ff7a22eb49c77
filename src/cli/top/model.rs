//! What the screen shows: rows in their order, and the links between them. Pure.

use super::plain::plain;
pub use super::rows::{AgentRow, FailureRow, HandoffFault, HandoffRow, HostMark, SidecarStatus, WorkRow};
use crate::cli::follow::FlowEnd;
use crate::cli::lineage::Links;
use crate::cli::names;
use crate::contract::NeedView;
use crate::core::needs;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const MOST_KIN: usize = 2_000;

/// Everything that `top` shows, as it was read at one moment.
#[derive(Debug, Default)]
pub struct Model {
    pub home: String,
    /// The user's home folder, which is shown as `~`; empty if it is unknown.
    pub user: String,
    pub sidecar: SidecarStatus,
    /// All agents that were read, in the order of their registration.
    pub agents: Vec<AgentRow>,
    /// Handoffs: those that wait for a person, those that run, those that failed, the rest; the newest first.
    pub handoffs: Vec<HandoffRow>,
    /// Failures that nobody has dismissed, the newest first.
    pub failures: Vec<FailureRow>,
    /// Open work items, by priority.
    pub work: Vec<WorkRow>,
    /// The agents by descent: for each its depth in its lineage, and its index in `agents`.
    pub kin: Vec<(usize, usize)>,
    /// What keeps tasuki itself from its work; part of `needs`.
    pub of_tasuki: Vec<NeedView>,
    /// What waits for a person, the most urgent first.
    pub needs: Vec<NeedView>,
    /// What is not shown, as text; empty if everything is shown.
    pub left_out: Vec<String>,
    /// This host's own name, if the rows of other hosts are shown too.
    pub own_host: Option<String>,
    short: BTreeMap<String, String>,
}

impl Model {
    /// A model without rows, before the first read.
    #[must_use]
    pub fn new(home: &str, user: &str, sidecar: SidecarStatus) -> Self {
        Model { home: plain(home), user: plain(user), sidecar, ..Model::default() }
    }

    /// A path with `~` for the user's home folder.
    #[must_use]
    pub fn path(&self, path: &str) -> String {
        let below = path.strip_prefix(&self.user).filter(|_| self.user.len() > 1);
        match below.filter(|below| below.is_empty() || below.starts_with('/')) {
            Some(below) => format!("~{below}"),
            None => path.to_owned(),
        }
    }

    /// Sorts the rows and computes short ids.
    #[must_use]
    pub fn arranged(mut self) -> Self {
        self.agents.sort_by(|a, b| a.place().cmp(&b.place()));
        self.handoffs.sort_by(|a, b| (a.rank(), &b.created, &b.id).cmp(&(b.rank(), &a.created, &a.id)));
        self.failures.sort_by(|a, b| (&b.at, &b.id).cmp(&(&a.at, &a.id)));
        self.work.sort_by(|a, b| a.place.cmp(&b.place));
        self.kin = self.descent();
        self.needs = needs::list(
            self.agents.iter().filter(|agent| agent.host.is_none()).map(|agent| &agent.needs),
            self.handoffs.iter().filter(|handoff| handoff.host.is_none()).map(|handoff| &handoff.needs),
            self.work.iter().filter_map(|item| item.need.as_ref()).chain(&self.of_tasuki),
            self.failures.iter().map(|failure| &failure.need),
        );
        let agents = self.agents.iter().map(|agent| agent.id.as_str());
        let work = self.work.iter().map(|item| item.id.as_str());
        let ids = agents.chain(self.handoffs.iter().map(|handoff| handoff.id.as_str())).chain(work);
        self.short = names::short(ids);
        self
    }

    /// Lineages with a living agent first, then the rest, each from its first ancestor down.
    fn descent(&self) -> Vec<(usize, usize)> {
        let places: BTreeMap<&str, usize> =
            self.own_agents().map(|(place, agent)| (agent.id.as_str(), place)).collect();
        let previous = |agent: &'_ AgentRow| -> Option<&str> {
            let place = places.get(agent.previous.as_deref()?)?;
            Some(self.agents[*place].id.as_str())
        };
        let rows = self.own_agents().map(|(_, agent)| (agent.id.as_str(), previous(agent)));
        let links = Links::new(rows);
        let own = self.own_agents().map(|(_, agent)| agent);
        let (living, ended): (Vec<&AgentRow>, Vec<&AgentRow>) = own.partition(|agent| agent.living);
        let (mut kin, mut met) = (Vec::new(), BTreeSet::new());
        for agent in living.into_iter().chain(ended.into_iter().rev()) {
            if kin.len() >= MOST_KIN || met.contains(agent.id.as_str()) {
                continue;
            }
            for (id, depth) in links.below(links.first(&agent.id)) {
                met.insert(id);
                kin.extend(places.get(id).map(|place| (depth, *place)));
            }
        }
        kin.truncate(MOST_KIN);
        kin
    }

    /// The agents of this host, each with its place in `agents`.
    fn own_agents(&self) -> impl Iterator<Item = (usize, &AgentRow)> {
        self.agents.iter().enumerate().filter(|(_, agent)| agent.host.is_none())
    }

    /// The shortest unique beginning of an id.
    #[must_use]
    pub fn short<'a>(&'a self, id: &'a str) -> &'a str {
        self.short.get(id).map_or_else(|| id.get(..8).unwrap_or(id), String::as_str)
    }

    /// Agents that have not ended.
    pub fn living(&self) -> impl Iterator<Item = &AgentRow> {
        self.agents.iter().filter(|agent| agent.living)
    }

    /// Handoffs that have not ended.
    pub fn running(&self) -> impl Iterator<Item = &HandoffRow> {
        self.handoffs.iter().take_while(|handoff| handoff.is_running())
    }

    /// The agent with this id.
    #[must_use]
    pub fn agent(&self, id: &str) -> Option<&AgentRow> {
        self.agents.iter().find(|agent| agent.id == id)
    }

    /// The handoff with this id.
    #[must_use]
    pub fn handoff(&self, id: &str) -> Option<&HandoffRow> {
        self.handoffs.iter().find(|handoff| handoff.id == id)
    }

    /// Whether nothing is left to do about a failure, as the list of what waits for a person judges it: its handoff has
    /// continued, has ended or was published after all; or its agent was started or primed after all, or has a
    /// successor that continues its work.
    #[must_use]
    pub fn is_over(&self, failure: &FailureRow) -> bool {
        let handoff = failure.handoff.as_deref().and_then(|id| self.handoff(id));
        let agent = failure.agent.as_deref().filter(|_| failure.handoff.is_none()).and_then(|id| self.agent(id));
        let handoff = handoff.map(|handoff| handoff.needs.beside(|id| self.agent(id).map(|agent| &agent.needs)));
        failure.need.is_settled(agent.map(|agent| &agent.needs), handoff.as_deref())
    }

    /// Whether this handoff has continued after that failure of it, and has then failed again.
    #[must_use]
    pub fn has_failed_again(&self, handoff_id: &str, failure_id: Option<&str>) -> bool {
        let fault = self.handoff(handoff_id).and_then(|handoff| handoff.error.as_ref());
        let row = self.failures.iter().find(|row| failure_id == Some(&row.id));
        let row = row.filter(|row| row.has_halted && row.handoff.as_deref() == Some(handoff_id));
        fault.zip(row).is_some_and(|(fault, row)| fault.id != row.id)
    }

    /// The failures that somebody must deal with.
    pub fn open_failures(&self) -> impl Iterator<Item = &FailureRow> {
        self.failures.iter().filter(|failure| !self.is_over(failure))
    }

    /// The agent's current handoff, else its newest handoff that runs or has failed. Views are read one after the
    /// other, so an agent's view may name no handoff while the handoff's own view still says that it runs.
    #[must_use]
    pub fn handoff_of(&self, agent: &AgentRow) -> Option<&HandoffRow> {
        let current = agent.handoff.as_deref().and_then(|id| self.handoff(id));
        let concerns = |handoff: &&HandoffRow| {
            matches!(handoff.outcome, None | Some(FlowEnd::Failed))
                && (handoff.agent == agent.id || handoff.successor.as_deref() == Some(&agent.id))
        };
        current.or_else(|| self.handoffs.iter().find(concerns))
    }

    /// How long a drawn screen stays right if no file changes: a second if it has a running clock, else a minute,
    /// because ages are shown in minutes.
    #[must_use]
    pub fn holds_for(&self) -> Duration {
        let has_clock =
            self.running().next().is_some() || (!self.sidecar.is_alive && self.sidecar.heartbeat_ms.is_some());
        Duration::from_secs(if has_clock { 1 } else { 60 })
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
