//! The working set: everything that can still change, in memory, rebuilt from the store at start. Ended agents and
//! handoffs are history; the sidecar loads a row of history into this state before it decides an event that names it.

use super::decision::Decision;
use super::effect::EffectKey;
use super::id::{AgentId, HandoffId, ItemId, RequestId, Slug};
use super::pane::ServerId;
use super::rows::agent::Agent;
use super::rows::handoff::Handoff;
use super::rows::item::Item;
use super::rows::items::Items;
use super::rows::lookup::OpenRequest;
use super::rows::outbox::Pending;
use super::settings::Settings;
use super::time::{Deadline, Now};
use std::collections::BTreeMap;

/// The working set: all rows that the core may need, in memory.
#[derive(Debug, Clone, Default)]
pub struct State {
    pub agents: BTreeMap<AgentId, Agent>,
    pub handoffs: BTreeMap<HandoffId, Handoff>,
    /// Work items that are not done, and those that an event names.
    pub items: Items,
    pub open_requests: BTreeMap<RequestId, OpenRequest>,
    /// Effects that are not settled.
    pub outbox: BTreeMap<EffectKey, Pending>,
    pub next_effect: u64,
    /// The next journal line's number.
    pub next_seq: u64,
    /// The tmux server that answers now. Not durable.
    pub server: Option<ServerId>,
    /// Why tasuki can't use tmux, if the operator has to do something about it. Not durable.
    pub tmux_problem: Option<String>,
    /// Limits and profiles. Not durable.
    pub settings: Settings,
    /// The roles that personas give themselves in `persona.toml`. Not durable.
    pub roles: BTreeMap<Slug, String>,
}

impl State {
    /// Applies a decision. The next event of the same batch is decided on the new state, before the commit. If the
    /// commit fails, the state is discarded and loaded again from the store.
    pub fn apply(&mut self, decision: &Decision) {
        for agent in decision.agents.values() {
            self.agents.insert(agent.agent_id, agent.clone());
        }
        for handoff in decision.handoffs.values() {
            self.handoffs.insert(handoff.handoff_id, handoff.clone());
        }
        for item in decision.items.values() {
            self.items.insert(item.clone());
        }
        for (id, open) in &decision.opened {
            self.open_requests.insert(id.clone(), open.clone());
        }
        for answer in &decision.answers {
            self.open_requests.remove(&answer.request_id);
        }
        for (key, pending) in &decision.effects {
            self.outbox.insert(*key, pending.clone());
        }
        for key in &decision.dropped {
            self.outbox.remove(key);
        }
        self.next_effect = self.next_effect.max(decision.next_effect);
        self.next_seq = self.next_seq.max(decision.next_seq);
        if let Some(server) = decision.server {
            self.server = server;
        }
        if let Some(rules) = &decision.rules {
            self.settings.rules.clone_from(rules);
        }
        if let Some(roles) = &decision.roles {
            self.roles.clone_from(roles);
        }
    }

    /// Removes the rows of this decision that are history now. The store keeps them.
    pub fn evict_past(&mut self, decision: &Decision) {
        for id in decision.agents.keys() {
            if self.agents.get(id).is_some_and(Agent::is_past) {
                self.agents.remove(id);
            }
        }
        for id in decision.handoffs.keys() {
            if self.handoffs.get(id).is_some_and(Handoff::is_past) {
                self.handoffs.remove(id);
            }
        }
        self.evict_items(decision.items.keys());
    }

    /// Removes those of these items that are history.
    pub fn evict_items<'i>(&mut self, ids: impl IntoIterator<Item = &'i ItemId>) {
        for id in ids {
            if self.items.get(id).is_some_and(Item::is_past) {
                self.items.remove(id);
            }
        }
    }

    fn deadlines(&self) -> impl Iterator<Item = &Deadline> {
        let of_agents = self.agents.values().flat_map(Agent::deadlines);
        let of_handoffs = self.handoffs.values().flat_map(Handoff::deadlines);
        of_agents.chain(of_handoffs).chain(self.items.limits().map(|(_, deadline)| deadline))
    }

    /// Milliseconds until the next deadline; none if no deadline runs.
    #[must_use]
    pub fn next_deadline_ms(&self, now: &Now) -> Option<u64> {
        self.deadlines().map(|deadline| deadline.remaining_ms(now)).min()
    }

    /// Converts every deadline to the present boot. Called once after a restart.
    pub fn rebase(&mut self, now: &Now) {
        let of_agents = self.agents.values_mut().flat_map(Agent::deadlines_mut);
        let of_handoffs = self.handoffs.values_mut().flat_map(Handoff::deadlines_mut);
        for deadline in of_agents.chain(of_handoffs) {
            *deadline = deadline.rebased(now);
        }
        self.items.rebase(now);
    }
}
