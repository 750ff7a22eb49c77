//! What an event needs besides itself: rows of history that it names, and what the disk says of a persona.

use super::Sidecar;
use crate::agents::transcript;
use crate::core::effect::Outcome;
use crate::core::event::{Event, RequestFacts};
use crate::core::hook::HookKind;
use crate::core::id::{AgentId, HandoffId, ItemId};
use crate::core::request::{Asked, DocumentAsked, PersonaOf, Request};
use crate::core::rows::agent::Agent;
use crate::core::rows::lookup::Meeting;
use crate::core::time::Now;
use crate::limits;
use crate::process::{self, Life};
use crate::runner;
use crate::spool::documents;
use crate::store::Error;
use std::collections::BTreeSet;
use std::path::Path;

impl Sidecar {
    /// Puts rows of history that an event names into the working set.
    ///
    /// # Errors
    /// The store can't be read. What is not known must not be decided as if it were not there.
    pub(super) fn page_in(&mut self, event: &Event) -> Result<(), Error> {
        match event {
            Event::Request(arrived) => match &arrived.read.request {
                Ok(request) => self.page_in_request(request),
                // An ACK that has not the right form is answered in its handoff, too.
                Err(_) => match arrived.read.malformed.as_ref().and_then(|ack| ack.handoff_id.as_ref()) {
                    Some(id) => self.page_in_handoff(id),
                    None => Ok(()),
                },
            },
            Event::Hook(event) if event.kind == HookKind::SessionStart => {
                if let Some(id) = event.agent_id {
                    self.page_in_agent(id)?;
                }
                self.page_in_predecessors()
            }
            Event::Settled { key, outcome } => {
                self.page_in_predecessors()?;
                self.page_in_briefed(|agent| agent.probe == Some(*key) || agent.glance == Some(*key))?;
                let Outcome::Pane(facts) = outcome else { return Ok(()) };
                let named = match self.state.meetings.get(key) {
                    Some(Meeting::Event { event, .. }) => event.agent_id,
                    _ => None,
                };
                let in_pane = facts.as_ref().and_then(|facts| facts.agent_id);
                [named, in_pane].into_iter().flatten().try_for_each(|id| self.page_in_agent(id))
            }
            Event::Hook(event) if event.kind != HookKind::Context => {
                let in_pane = |agent: &Agent| agent.pane.is_some_and(|pane| Some(pane.pane) == event.pane);
                self.page_in_briefed(|agent| event.agent_id == Some(agent.agent_id) || in_pane(agent))
            }
            _ => Ok(()),
        }
    }

    fn page_in_request(&mut self, request: &Request) -> Result<(), Error> {
        let needs = request.needs();
        needs.agents.into_iter().try_for_each(|agent_id| self.page_in_agent_text(agent_id))?;
        needs.handoff.into_iter().try_for_each(|handoff_id| self.page_in_handoff(handoff_id))?;
        let items: BTreeSet<ItemId> = needs.items.into_iter().filter_map(|id| id.parse().ok()).collect();
        items.into_iter().try_for_each(|id| self.page_in_item(id))
    }

    /// What happens in the turn that answers a briefing is shown in the handoff's view, whose row is history by then.
    fn page_in_briefed(&mut self, is_it: impl Fn(&Agent) -> bool) -> Result<(), Error> {
        let of = self.state.agents.values().filter(|agent| is_it(agent));
        let ids: Vec<HandoffId> = of.filter_map(|agent| agent.answering).collect();
        ids.into_iter().try_for_each(|id| self.page_in_handoff(&id.to_string()))
    }

    /// An agent that registers is written into its predecessor's row, which may be history.
    fn page_in_predecessors(&mut self) -> Result<(), Error> {
        let starting = self.state.agents.values().filter(|agent| agent.start.is_some());
        let wanted: Vec<AgentId> = starting.filter_map(|agent| agent.previous_agent_id).collect();
        wanted.into_iter().try_for_each(|id| self.page_in_agent(id))
    }

    fn page_in_agent_text(&mut self, text: &str) -> Result<(), Error> {
        match text.parse() {
            Ok(id) => self.page_in_agent(id),
            Err(_) => Ok(()),
        }
    }

    fn page_in_agent(&mut self, id: AgentId) -> Result<(), Error> {
        if !self.state.agents.contains_key(&id)
            && let Some(agent) = self.store.past_agent(&id)?
        {
            self.state.agents.insert(id, agent);
            self.pending.paged_agents.push(id);
        }
        Ok(())
    }

    fn page_in_handoff(&mut self, text: &str) -> Result<(), Error> {
        let Ok(id) = text.parse::<HandoffId>() else { return Ok(()) };
        if !self.state.handoffs.contains_key(&id)
            && let Some(handoff) = self.store.past_handoff(&id)?
        {
            self.state.handoffs.insert(id, handoff);
            self.pending.paged_handoffs.push(id);
        }
        let Some(handoff) = self.state.handoffs.get(&id) else { return Ok(()) };
        let agents = [Some(handoff.agent_id), handoff.successor_id];
        agents.into_iter().flatten().try_for_each(|agent_id| self.page_in_agent(agent_id))
    }

    /// Forgets rows of history again that did not come back to life.
    pub(super) fn evict_paged(&mut self) {
        for id in std::mem::take(&mut self.pending.paged_agents) {
            if self.state.agents.get(&id).is_some_and(crate::core::rows::agent::Agent::is_past) {
                self.state.agents.remove(&id);
            }
        }
        for id in std::mem::take(&mut self.pending.paged_handoffs) {
            if self.state.handoffs.get(&id).is_some_and(crate::core::rows::handoff::Handoff::is_past) {
                self.state.handoffs.remove(&id);
            }
        }
        self.state.evict_items(&std::mem::take(&mut self.pending.paged_items));
    }

    /// What the disk says that a request's answer depends on. What could not be looked at for a shortage is left in
    /// `pending.untold`: then the request is not to be judged yet.
    ///
    /// # Errors
    /// The store can't be read.
    pub(super) fn facts(&mut self, request: &Request, now: &Now) -> Result<RequestFacts, Error> {
        self.pending.untold = None;
        let needs = request.needs();
        self.look_before_work(&needs, now);
        let slug = match needs.persona {
            Some(PersonaOf::Agent(id)) => {
                self.page_in_agent_text(id)?;
                self.agent_named(id).and_then(|agent| agent.persona_slug.clone())
            }
            Some(PersonaOf::Handoff(id)) => {
                self.page_in_handoff(id)?;
                let handoff = id.parse().ok().and_then(|id: HandoffId| self.state.handoffs.get(&id));
                handoff.map(|handoff| handoff.persona_slug.clone())
            }
            Some(PersonaOf::Named(slug)) => Some(slug.clone()),
            None => None,
        };
        let error_known = match needs.error.and_then(|id| id.parse().ok()) {
            Some(id) => self.store.has_error(&id)?,
            None => false,
        };
        let document = self.provided_document(needs.document);
        let messages = needs.messages_of.and_then(|id| self.messages(id));
        let persona = slug.and_then(|slug| Some((slug.clone(), self.told(runner::persona_facts(&self.home, &slug))?)));
        let no_cwd = needs.cwd.is_some_and(|cwd| is_no_folder(Path::new(cwd)));
        let runs = needs.runs.and_then(|id| self.runs(id));
        Ok(RequestFacts { persona, error_known, document, messages, no_cwd, runs })
    }

    /// The agent in the working set that a request names.
    pub(super) fn agent_named(&self, id: &str) -> Option<&Agent> {
        self.state.agents.get(&id.parse::<AgentId>().ok()?)
    }

    /// Whether the process of an agent runs, or that of its pane where its own is not known.
    fn runs(&self, agent_id: &str) -> Option<bool> {
        let agent = self.agent_named(agent_id)?;
        match agent.process.map(|process| process::life(&process)) {
            Some(Life::Alive) => Some(true),
            Some(Life::Gone) => Some(false),
            Some(Life::Unknown) => None,
            None => agent.pane.map(|pane| process::exists(pane.pid)),
        }
    }

    /// What a look has told, or nothing, and a note of what it was short of.
    fn told<T>(&mut self, look: Result<T, String>) -> Option<T> {
        look.map_err(|why| self.pending.untold = Some(why)).ok()
    }

    /// The document that a request brings, read when it is asked for: what lies there later is not what was meant.
    fn provided_document(&mut self, document: Option<&DocumentAsked>) -> Option<Result<String, String>> {
        let document = document?;
        if let Some(text) = &document.text {
            return Some(Ok(text.clone()));
        }
        let path = document.path.as_ref()?;
        let read = documents::read_inside(self.home.root(), Path::new(path));
        let text = match read {
            Err(error) if error.untold().is_some_and(limits::is_shortage) => return self.told(Err(error.to_string())),
            read => read.map_err(|error| error.to_string()),
        };
        Some(text.map(|reading| String::from_utf8_lossy(&reading.bytes).into_owned()))
    }

    /// How many messages the transcript of an agent holds that is to answer with its document.
    fn messages(&mut self, agent_id: &str) -> Option<u64> {
        let agent = self.agent_named(agent_id)?;
        let profile = self.tools.profiles.get(&agent.profile)?;
        match transcript::read(profile, Path::new(agent.transcript_path.as_ref()?)) {
            Ok(transcript) => Some(transcript.messages),
            Err(error) if error.is_shortage() => self.told(Err(error.to_string())),
            Err(_) => None,
        }
    }
}

/// Whether nothing that an agent could work in lies there; what a disk does not tell for the moment the start will.
fn is_no_folder(path: &Path) -> bool {
    std::fs::metadata(path).map_or_else(|error| !limits::is_passing(&error), |meta| !meta.is_dir())
}
