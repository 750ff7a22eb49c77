//! A model of the disk: the spool, the store, the documents. Everything in it survives a crash.

use super::golden::Trace;
use super::transitions::Transitions;
use std::collections::{BTreeMap, BTreeSet};
use tasuki::core::decision::{Decision, ErrorRow};
use tasuki::core::effect::{DocumentRead, Notice};
use tasuki::core::hook::HookEvent;
use tasuki::core::id::{AgentId, ErrorId, HandoffId, RequestId, Slug};
use tasuki::core::persona::PersonaFacts;
use tasuki::core::rows::agent::Agent;
use tasuki::core::rows::handoff::Handoff;
use tasuki::core::settings::Settings;
use tasuki::core::state::State;
use tasuki::core::time::Now;

/// The disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk {
    pub(crate) requests: BTreeMap<RequestId, Vec<u8>>,
    pub(crate) events: Vec<(u64, HookEvent)>,
    pub(crate) seen: BTreeSet<u64>,
    pub(crate) next_event: u64,
    pub(crate) documents: BTreeMap<String, String>,
    pub(crate) told: BTreeMap<ErrorId, u32>,
    pub(crate) state: State,
    pub(crate) past_agents: BTreeMap<AgentId, Agent>,
    pub(crate) past_handoffs: BTreeMap<HandoffId, Handoff>,
    pub(crate) ledger: BTreeSet<RequestId>,
    pub(crate) answers: BTreeMap<RequestId, u32>,
    pub(crate) journal: Vec<(u64, serde_json::Value)>,
    pub(crate) errors: Vec<ErrorRow>,
    pub(crate) trace: Trace,
    pub(crate) transitions: Transitions,
    /// How often each document lies on the server, by handoff, publication and place.
    pub(crate) uploads: BTreeMap<(HandoffId, u32, &'static str), u32>,
}

impl Disk {
    /// Notes the failures that a notice reports. One of several agents that have died together lists all of theirs.
    pub(crate) fn note_told(&mut self, notice: &Notice) {
        let listed = notice.json["error_ids"].as_array().into_iter().flatten();
        let listed = listed.filter_map(|id| id.as_str()?.parse().ok());
        for id in notice.error_id.into_iter().chain(listed) {
            *self.told.entry(id).or_default() += 1;
        }
    }

    pub(crate) fn persona_facts(&self, slug: &Slug) -> PersonaFacts {
        let names = self.documents.keys().filter_map(|path| path.rsplit('/').next()).map(str::to_owned);
        PersonaFacts {
            exists: true,
            has_skill: true,
            profile: Some("demo".to_owned()),
            handoff_files: names.collect(),
            handoffs_dir: format!("/h/{slug}/handoffs"),
            ..PersonaFacts::default()
        }
    }

    pub(crate) fn read_document(&self, file_name: &str) -> DocumentRead {
        let found = self.documents.iter().find(|(path, _)| path.ends_with(file_name));
        match found {
            None => DocumentRead::Missing,
            Some((_, text)) if text.trim().is_empty() => DocumentRead::Empty,
            Some((_, text)) => DocumentRead::Whole { text: text.clone(), sha256: format!("{:064x}", text.len()) },
        }
    }

    /// One transaction.
    pub(crate) fn commit(&mut self, state: &State, decision: &Decision, seen: &[u64]) {
        for (id, agent) in &decision.agents {
            self.past_agents.remove(id);
            self.state.agents.remove(id);
            if agent.is_past() {
                self.past_agents.insert(*id, agent.clone());
            } else {
                self.state.agents.insert(*id, agent.clone());
            }
        }
        for (id, handoff) in &decision.handoffs {
            self.past_handoffs.remove(id);
            self.state.handoffs.remove(id);
            if handoff.is_past() {
                self.past_handoffs.insert(*id, handoff.clone());
            } else {
                self.state.handoffs.insert(*id, handoff.clone());
            }
        }
        for (id, _) in &decision.opened {
            self.ledger.insert(id.clone());
        }
        for answer in &decision.answers {
            self.ledger.insert(answer.request_id.clone());
            *self.answers.entry(answer.request_id.clone()).or_default() += 1;
        }
        self.state.open_requests = state.open_requests.clone();
        self.state.outbox = state.outbox.clone();
        self.state.next_effect = state.next_effect;
        self.state.next_seq = state.next_seq;
        self.trace.add(decision);
        self.journal.extend(decision.journal.iter().cloned());
        self.errors.extend(decision.errors.iter().cloned());
        self.seen.extend(seen.iter().copied());
    }

    /// What a start reads. Deadlines are counted in the present boot, and that is durable before anything is decided.
    pub(crate) fn load(&mut self, settings: &Settings, now: &Now) -> State {
        self.state.rebase(now);
        let mut state = self.state.clone();
        state.settings = settings.clone();
        state.server = None;
        state
    }

    pub(crate) fn agent(&self, id: &AgentId) -> Option<&Agent> {
        self.state.agents.get(id).or_else(|| self.past_agents.get(id))
    }

    pub(crate) fn handoffs(&self) -> impl Iterator<Item = &Handoff> {
        self.state.handoffs.values().chain(self.past_handoffs.values())
    }

    pub(crate) fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.state.agents.values().chain(self.past_agents.values())
    }
}
