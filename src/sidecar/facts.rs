//! What an event needs besides itself: rows of history that it names, and what the disk says of a persona.

use super::Sidecar;
use crate::agents::transcript;
use crate::core::effect::Outcome;
use crate::core::event::{Event, RequestFacts};
use crate::core::hook::HookKind;
use crate::core::id::{AgentId, HandoffId};
use crate::core::request::{Author, DocumentAsked, HandoffAsked, Request, Successor};
use crate::core::rows::agent::Agent;
use crate::core::rows::lookup::Meeting;
use crate::core::time::Now;
use crate::limits;
use crate::process::{self, Life};
use crate::runner;
use crate::spool::documents;
use crate::store::Error;
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
        match request {
            Request::Handoff(asked) => {
                self.page_in_successor(Some(&asked.successor))?;
                self.page_in_agent_text(&asked.agent_id)
            }
            Request::HandoffRetry(asked) => {
                self.page_in_successor(asked.successor.as_ref())?;
                self.page_in_handoff(&asked.handoff_id)
            }
            Request::HandoffAbandon(asked) | Request::HandoffCancel(asked) | Request::HandoffAccept(asked) => {
                self.page_in_handoff(&asked.handoff_id)
            }
            Request::Ack(asked) => self.page_in_handoff(&asked.handoff_id),
            Request::Clarify(asked) => self.page_in_handoff(&asked.handoff_id),
            Request::AckOverride(asked) => self.page_in_handoff(&asked.handoff_id),
            Request::AgentCreate(asked) => match &asked.previous_agent_id {
                Some(previous) => self.page_in_agent_text(previous),
                None => Ok(()),
            },
            Request::AgentShutdown(asked) => self.page_in_agent_text(&asked.agent_id),
            Request::AgentForget(asked) => self.page_in_agent_text(&asked.agent_id),
            Request::AgentSend(asked) => self.page_in_agent_text(&asked.agent_id),
            Request::Publish(asked) => self.page_in_handoff(&asked.handoff_id),
            Request::AgentRegister(_) | Request::ErrorDismiss(_) => Ok(()),
            Request::WorkCreate(_)
            | Request::WorkClaim(_)
            | Request::WorkComplete(_)
            | Request::WorkRetryChildren(_)
            | Request::WorkRelease(_)
            | Request::WorkEscalate(_)
            | Request::WorkRollback(_)
            | Request::WorkComment(_)
            | Request::WorkImport(_) => self.page_in_work(request),
        }
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

    fn page_in_successor(&mut self, successor: Option<&Successor>) -> Result<(), Error> {
        match successor {
            Some(Successor::Existing { agent_id }) => self.page_in_agent_text(agent_id),
            Some(Successor::New | Successor::SamePane) | None => Ok(()),
        }
    }

    pub(super) fn page_in_agent_text(&mut self, text: &str) -> Result<(), Error> {
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
        self.look_before_work(request, now);
        let slug = match request {
            Request::Handoff(asked) => {
                self.page_in_agent_text(&asked.agent_id)?;
                let agent = asked.agent_id.parse().ok().and_then(|id: AgentId| self.state.agents.get(&id));
                agent.and_then(|agent| agent.persona_slug.clone())
            }
            Request::Clarify(asked) if asked.document.is_some() => {
                self.page_in_handoff(&asked.handoff_id)?;
                let handoff = asked.handoff_id.parse().ok().and_then(|id: HandoffId| self.state.handoffs.get(&id));
                handoff.map(|handoff| handoff.persona_slug.clone())
            }
            Request::AgentCreate(asked) => Some(asked.persona_slug.clone()),
            Request::AgentRegister(asked) => asked.persona_slug.clone(),
            _ => None,
        };
        let error_known = match request {
            Request::ErrorDismiss(asked) => match asked.error_id.parse() {
                Ok(id) => self.store.has_error(&id)?,
                Err(_) => false,
            },
            _ => false,
        };
        let (document, messages) = match request {
            Request::Handoff(asked) => (self.provided_document(asked.document.as_ref()), self.messages(asked)),
            Request::Clarify(asked) => (self.provided_document(asked.document.as_ref()), None),
            _ => (None, None),
        };
        let persona = slug.and_then(|slug| Some((slug.clone(), self.told(runner::persona_facts(&self.home, &slug))?)));
        let no_cwd = match request {
            Request::AgentCreate(asked) => asked.cwd.as_ref().is_some_and(|cwd| is_no_folder(Path::new(cwd))),
            _ => false,
        };
        let runs = if let Request::AgentForget(asked) = request { self.runs(&asked.agent_id) } else { None };
        Ok(RequestFacts { persona, error_known, document, messages, no_cwd, runs })
    }

    /// Whether the process of an agent runs, or that of its pane where its own is not known.
    fn runs(&self, agent_id: &str) -> Option<bool> {
        let agent = self.state.agents.get(&agent_id.parse::<AgentId>().ok()?)?;
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
    fn messages(&mut self, asked: &HandoffAsked) -> Option<u64> {
        if asked.author != Author::AgentReply {
            return None;
        }
        let agent = self.state.agents.get(&asked.agent_id.parse::<AgentId>().ok()?)?;
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
