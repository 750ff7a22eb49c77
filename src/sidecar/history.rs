//! Loads rows of history that an event names into the working set while the event is decided, and removes them
//! afterwards.

use crate::core::effect::{Effect, Outcome};
use crate::core::event::Event;
use crate::core::hook::HookKind;
use crate::core::id::{AgentId, HandoffId, ItemId};
use crate::core::request::{Needs, PersonaOf, Request, RequestBody};
use crate::core::rows::agent::Agent;
use crate::core::rows::handoff::Handoff;
use crate::core::rows::lookup::PaneLookup;
use crate::core::rows::outbox::Waiter;
use crate::core::state::State;
use crate::store::{Error, Store};
use std::collections::BTreeSet;

/// Rows of history that were put into the working set for this batch.
#[derive(Debug, Default)]
pub(super) struct History {
    agents: Vec<AgentId>,
    handoffs: Vec<HandoffId>,
    items: Vec<ItemId>,
}

impl History {
    /// Looks rows up in this store, and puts them into this working set.
    pub(super) fn loader<'a>(&'a mut self, store: &'a Store, state: &'a mut State) -> HistoryLoader<'a> {
        HistoryLoader { loaded: self, store, state }
    }

    /// Removes the loaded rows from the working set again, unless they are no longer history.
    pub(super) fn evict(&mut self, state: &mut State) {
        for id in std::mem::take(&mut self.agents) {
            if state.agents.get(&id).is_some_and(Agent::is_past) {
                state.agents.remove(&id);
            }
        }
        for id in std::mem::take(&mut self.handoffs) {
            if state.handoffs.get(&id).is_some_and(Handoff::is_past) {
                state.handoffs.remove(&id);
            }
        }
        state.evict_items(&std::mem::take(&mut self.items));
    }
}

/// What a lookup needs: the store that it reads, and the working set that it fills.
pub(super) struct HistoryLoader<'a> {
    loaded: &'a mut History,
    store: &'a Store,
    state: &'a mut State,
}

impl HistoryLoader<'_> {
    /// Loads the agent or the handoff whose persona, or whose persona's role, must be read from the disk for this
    /// request.
    ///
    /// # Errors
    /// The store can't be read.
    pub(super) fn load_for_needs(&mut self, needs: &Needs<'_>) -> Result<(), Error> {
        needs.role_in.map_or(Ok(()), |id| self.load_handoff(id))?;
        match needs.persona {
            Some(PersonaOf::Agent(id)) => self.load_agent_text(id),
            Some(PersonaOf::Handoff(id)) => self.load_handoff(id),
            Some(PersonaOf::Named(_)) | None => Ok(()),
        }
    }

    /// Puts rows of history that an event names into the working set.
    ///
    /// # Errors
    /// The store can't be read. Then the event must not be decided as if the row did not exist.
    pub(super) fn load_history(&mut self, event: &Event) -> Result<(), Error> {
        match event {
            Event::Request(arrived) => match &arrived.read.request {
                Ok(request) => self.load_request(request),
                // An ACK of the wrong form is answered within its handoff, too.
                Err(_) => match arrived.read.malformed.as_ref().and_then(|ack| ack.handoff_id.as_ref()) {
                    Some(id) => self.load_handoff(id),
                    None => Ok(()),
                },
            },
            Event::Hook(event) if event.kind == HookKind::SessionStart => {
                if let Some(id) = event.agent_id {
                    self.load_agent(id)?;
                }
                self.load_predecessors()
            }
            Event::Settled { key, outcome } => {
                self.load_predecessors()?;
                self.load_briefed(|agent| agent.watches_by(*key))?;
                // The agent may be handed off now, unless a handoff has its record, or that of its predecessor. After a
                // handoff that a usage limit has failed, it may be handed off once more.
                match self.state.outbox.get(key).map(|pending| &pending.effect) {
                    Some(Effect::CheckAutoHandoff { agent_id, .. }) => self.load_records(*agent_id)?,
                    Some(Effect::ReadLimit { agent_id, .. }) => self.load_limited(*agent_id)?,
                    _ => {}
                }
                let Outcome::Pane(facts) = outcome else { return Ok(()) };
                let named = match self.state.outbox.get(key).map(|pending| &pending.waiter) {
                    Some(Waiter::PaneLookup(PaneLookup::Event { event, .. })) => event.agent_id,
                    _ => None,
                };
                let in_pane = facts.as_ref().and_then(|facts| facts.agent_id);
                [named, in_pane].into_iter().flatten().try_for_each(|id| self.load_agent(id))
            }
            Event::Hook(event) if event.kind != HookKind::Context => {
                let in_pane = |agent: &Agent| agent.pane.is_some_and(|pane| Some(pane.pane) == event.pane);
                self.load_briefed(|agent| event.agent_id == Some(agent.agent_id) || in_pane(agent))
            }
            // The end of an agent is decided with its last deadline, or at once.
            Event::AgentExit { agent_id, .. } => self.load_briefed(|agent| agent.agent_id == *agent_id),
            Event::Deadlines => self.load_briefed(|agent| agent.pending_exit.is_some() || agent.pane.is_none()),
            _ => Ok(()),
        }
    }

    fn load_request(&mut self, request: &Request) -> Result<(), Error> {
        let needs = request.needs();
        needs.agents.iter().try_for_each(|agent_id| self.load_agent_text(agent_id))?;
        let named: Vec<AgentId> = needs.agents.iter().filter_map(|agent_id| agent_id.parse().ok()).collect();
        self.load_briefed(|agent| named.contains(&agent.agent_id))?;
        needs.handoff.map_or(Ok(()), |id| self.load_handoff(id))?;
        needs.record_of.and_then(|id| id.parse().ok()).map_or(Ok(()), |id| self.load_records(id))?;
        let of_handoff = needs.handoff.and_then(|id| Some(self.state.handoffs.get(&id.parse().ok()?)?.agent_id));
        of_handoff.map_or(Ok(()), |id| self.load_record(id))?;
        let items: BTreeSet<ItemId> = needs.items.into_iter().filter_map(|id| id.parse().ok()).collect();
        items.into_iter().try_for_each(|id| self.load_item(id))
    }

    /// Loads the handoff that has a record of this agent, and the one that has a record of its predecessor.
    fn load_records(&mut self, id: AgentId) -> Result<(), Error> {
        self.load_record(id)?;
        let Some(previous) = self.state.agents.get(&id).and_then(|agent| agent.previous_agent_id) else {
            return Ok(());
        };
        self.load_agent(previous)?;
        self.load_record(previous)
    }

    fn load_record(&mut self, id: AgentId) -> Result<(), Error> {
        let recorded_in = self.state.agents.get(&id).and_then(|agent| agent.recorded_in);
        recorded_in.map_or(Ok(()), |id| self.load_handoff(&id.to_string()))
    }

    /// Loads the handoff in which the agent was when a limit stopped it.
    fn load_limited(&mut self, id: AgentId) -> Result<(), Error> {
        let stopped_in = self.state.agents.get(&id).and_then(|agent| agent.limits.in_handoff_id);
        stopped_in.map_or(Ok(()), |id| self.load_handoff(&id.to_string()))
    }

    /// Loads the handoffs whose briefing these agents are answering. The view of the handoff shows what happens in that
    /// turn, and its row may be history by then.
    fn load_briefed(&mut self, is_it: impl Fn(&Agent) -> bool) -> Result<(), Error> {
        let of = self.state.agents.values().filter(|agent| is_it(agent));
        let ids: Vec<HandoffId> = of.filter_map(|agent| agent.answering).collect();
        ids.into_iter().try_for_each(|id| self.load_handoff(&id.to_string()))
    }

    /// Loads the predecessors of agents that are starting: when an agent registers, it is written into its
    /// predecessor's row, which may be history.
    fn load_predecessors(&mut self) -> Result<(), Error> {
        let starting = self.state.agents.values().filter(|agent| agent.start.is_some());
        let wanted: Vec<AgentId> = starting.filter_map(|agent| agent.previous_agent_id).collect();
        wanted.into_iter().try_for_each(|id| self.load_agent(id))
    }

    fn load_agent_text(&mut self, text: &str) -> Result<(), Error> {
        match text.parse() {
            Ok(id) => self.load_agent(id),
            Err(_) => Ok(()),
        }
    }

    fn load_agent(&mut self, id: AgentId) -> Result<(), Error> {
        if !self.state.agents.contains_key(&id)
            && let Some(agent) = self.store.past_agent(&id)?
        {
            self.state.agents.insert(id, agent);
            self.loaded.agents.push(id);
        }
        Ok(())
    }

    fn load_handoff(&mut self, text: &str) -> Result<(), Error> {
        let Ok(id) = text.parse::<HandoffId>() else { return Ok(()) };
        if !self.state.handoffs.contains_key(&id)
            && let Some(handoff) = self.store.past_handoff(&id)?
        {
            self.state.handoffs.insert(id, handoff);
            self.loaded.handoffs.push(id);
        }
        let Some(handoff) = self.state.handoffs.get(&id) else { return Ok(()) };
        let agents = [Some(handoff.agent_id), handoff.successor_id];
        agents.into_iter().flatten().try_for_each(|agent_id| self.load_agent(agent_id))
    }

    fn load_item(&mut self, id: ItemId) -> Result<(), Error> {
        if !self.state.items.contains(&id)
            && let Some(item) = self.store.past_item(&id)?
        {
            self.state.items.insert(item);
            self.loaded.items.push(id);
        }
        Ok(())
    }
}
