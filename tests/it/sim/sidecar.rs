//! A model of the loop around the real `decide`: the same order of things, with a crash wherever one may fall.

use super::disk::Disk;
use super::rng::Rng;
use super::runner::Run;
use super::tmux::SimTmux;
use super::transitions::cause;
use std::collections::BTreeSet;
use tasuki::core::decision::{Cycle, Decision};
use tasuki::core::effect::{EffectKey, EffectLane};
use tasuki::core::event::{Event, Exit, IncomingRequest, RequestFacts};
use tasuki::core::hook::HookKind;
use tasuki::core::id::{AgentId, HandoffId, RequestId};
use tasuki::core::persona::PersonaFacts;
use tasuki::core::request::{self, Request, Successor};
use tasuki::core::settings::Settings;
use tasuki::core::state::State;
use tasuki::core::time::Now;

/// Before what a crash falls within a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crash {
    Commit,
    Dispose,
    Effects,
}

/// One life of the sidecar.
#[derive(Debug, Clone)]
pub(crate) struct Sidecar {
    pub(crate) state: State,
    pub(crate) runs: Vec<Run>,
    pub(crate) pending: Vec<Event>,
    pub(crate) gone: Vec<(AgentId, Exit)>,
    drained: bool,
    initial: BTreeSet<EffectKey>,
}

impl Sidecar {
    pub(crate) fn start(disk: &mut Disk, settings: &Settings, now: &Now, tmux: &SimTmux) -> Self {
        let state = disk.load(settings, now);
        let initial = state.outbox.keys().copied().collect();
        let pending = vec![Event::Server(tmux.server)];
        let mut sidecar = Sidecar { state, runs: Vec::new(), pending, gone: Vec::new(), drained: false, initial };
        sidecar.reconcile(tmux);
        sidecar
    }

    /// Compares the agents that should live with those that do.
    pub(crate) fn reconcile(&mut self, tmux: &SimTmux) {
        for agent in self.state.agents.values().filter(|agent| agent.state.is_live() && agent.pending_exit.is_none()) {
            let Some(pane) = agent.pane else { continue };
            let lives = tmux.agents.iter().any(|row| row.alive && row.pane == pane);
            if !lives && !self.gone.iter().any(|(id, _)| *id == agent.agent_id) {
                self.gone.push((agent.agent_id, Exit::Dead));
            }
        }
    }

    /// One turn. Returns false when it has crashed.
    pub(crate) fn turn(&mut self, disk: &mut Disk, now: &Now, rng: &mut Rng, crash: Option<Crash>) -> bool {
        let take = if rng.chance(70) { disk.events.len() } else { rng.below(disk.events.len() as u64 + 1) as usize };
        let was_empty = disk.events.is_empty();
        let events: Vec<_> = disk.events[..take].to_vec();
        let requests: Vec<(RequestId, Vec<u8>)> = disk.requests.clone().into_iter().collect();
        let new: Vec<_> = events.iter().filter(|(number, _)| !disk.seen.contains(number)).cloned().collect();
        let mut own = std::mem::take(&mut self.pending);
        // Whatever lay there when this was seen is taken; more may have come meanwhile.
        if take == disk.events.len() {
            own.extend(self.gone.drain(..).map(|(agent_id, how)| Event::AgentExit { agent_id, how }));
            if self.drained && self.state.next_deadline_ms(now) == Some(0) {
                own.push(Event::Deadlines);
            }
        }
        let fell = own.contains(&Event::Deadlines);
        let mut whole =
            Decision { next_effect: self.state.next_effect, next_seq: self.state.next_seq, ..Decision::default() };
        let reported = new.iter().map(|(_, event)| Event::Hook(Box::new(event.clone())));
        let all: Vec<Event> = reported.chain(own).chain(self.asked(disk, &requests)).collect();
        for event in all {
            self.page_in(disk, &event);
            let cause = cause(&self.state, &event);
            let decision = tasuki::core::decide(&self.state, event, &Cycle { now: *now, entropy: rng.bytes() });
            disk.transitions.note(&self.state, &cause, &decision);
            self.state.apply(&decision);
            whole.absorb(decision);
        }
        if crash == Some(Crash::Commit) {
            return false;
        }
        let numbers: Vec<u64> = new.iter().map(|(number, _)| *number).collect();
        disk.commit(&self.state, &whole, &numbers);
        if crash == Some(Crash::Dispose) {
            return false;
        }
        disk.events.drain(..take);
        for (id, _) in &requests {
            disk.requests.remove(id);
        }
        if crash == Some(Crash::Effects) {
            return false;
        }
        self.go_on(&whole, was_empty && requests.is_empty());
        let stays_due = fell && self.state.next_deadline_ms(now) == Some(0);
        assert!(!stays_due, "a deadline that was judged is still due, which keeps the loop awake");
        true
    }

    fn go_on(&mut self, whole: &Decision, empty: bool) {
        for key in &whole.dropped {
            self.runs.retain(|run| run.key != *key);
        }
        self.state.evict_past(whole);
        self.state.agents.retain(|_, agent| !agent.is_past());
        self.state.handoffs.retain(|_, handoff| !handoff.is_past());
        if self.drained {
            for (key, pending) in &whole.effects {
                if self.state.outbox.contains_key(key) {
                    self.runs.push(Run::new(*key, pending.effect.clone(), false));
                }
            }
        } else if empty {
            self.drained = true;
            for (key, pending) in &self.state.outbox {
                self.runs.push(Run::new(*key, pending.effect.clone(), self.initial.contains(key)));
            }
        }
    }

    /// Requests that the ledger does not know, as events. One that it knows with the same bytes is only answered again.
    fn asked(&mut self, disk: &Disk, requests: &[(RequestId, Vec<u8>)]) -> Vec<Event> {
        let mut events = Vec::new();
        for (id, bytes) in requests {
            if disk.ledger.contains(id) {
                continue;
            }
            let read = request::read(bytes);
            let facts = RequestFacts {
                persona: read.request.as_ref().ok().and_then(|asked| self.persona(disk, asked)),
                error_known: false,
                document: provided(&read),
                // As a transcript tells: the priming and its answer stand there.
                messages: Some(2),
                no_cwd: false,
                runs: None,
            };
            let sha256 = format!("{:x}", bytes.len());
            events.push(Event::Request(Box::new(IncomingRequest { id: id.clone(), sha256, read, facts })));
        }
        events
    }

    fn persona(&self, disk: &Disk, asked: &Request) -> Option<(tasuki::core::id::Slug, PersonaFacts)> {
        let slug = match asked {
            Request::Handoff(asked) => {
                let id: AgentId = asked.agent_id.parse().ok()?;
                self.state.agents.get(&id).or_else(|| disk.agent(&id))?.persona_slug.clone()?
            }
            Request::AgentCreate(asked) => asked.persona_slug.clone(),
            Request::Clarify(asked) => {
                let id: HandoffId = asked.handoff_id.parse().ok()?;
                self.state.handoffs.get(&id)?.persona_slug.clone()
            }
            _ => return None,
        };
        let facts = disk.persona_facts(&slug);
        Some((slug, facts))
    }

    /// Puts rows of history that an event names into the working set, as the sidecar does.
    fn page_in(&mut self, disk: &Disk, event: &Event) {
        let mut agents: Vec<AgentId> = Vec::new();
        match event {
            Event::Request(arrived) => {
                let handoff = match &arrived.read.request {
                    Ok(Request::Handoff(asked)) => {
                        agents.extend(asked.agent_id.parse::<AgentId>().ok());
                        agents.extend(existing(Some(&asked.successor)));
                        None
                    }
                    Ok(Request::HandoffRetry(asked)) => {
                        agents.extend(existing(asked.successor.as_ref()));
                        Some(&asked.handoff_id)
                    }
                    Ok(
                        Request::HandoffAbandon(asked) | Request::HandoffCancel(asked) | Request::HandoffAccept(asked),
                    ) => Some(&asked.handoff_id),
                    Ok(Request::Ack(asked)) => Some(&asked.handoff_id),
                    Ok(Request::Clarify(asked)) => Some(&asked.handoff_id),
                    Ok(Request::AckOverride(asked)) => Some(&asked.handoff_id),
                    Err(_) => arrived.read.malformed.as_ref().and_then(|ack| ack.handoff_id.as_ref()),
                    Ok(Request::Publish(asked)) => Some(&asked.handoff_id),
                    Ok(Request::AgentSend(asked)) => {
                        agents.extend(asked.agent_id.parse::<AgentId>().ok());
                        None
                    }
                    Ok(Request::AgentShutdown(asked)) => {
                        agents.extend(asked.agent_id.parse::<AgentId>().ok());
                        None
                    }
                    _ => None,
                };
                if let Some(id) = handoff.and_then(|id| id.parse().ok()) {
                    if let Some(row) = disk.past_handoffs.get(&id) {
                        self.state.handoffs.entry(id).or_insert_with(|| row.clone());
                    }
                    if let Some(row) = self.state.handoffs.get(&id) {
                        agents.extend([Some(row.agent_id), row.successor_id].into_iter().flatten());
                    }
                }
            }
            Event::Hook(event) if event.kind == HookKind::SessionStart => agents.extend(event.agent_id),
            Event::Hook(_) | Event::Settled { .. } | Event::AgentExit { .. } => {}
            Event::DocumentGrew { .. } | Event::Server(_) | Event::Rules(_) | Event::Roles(_) => {}
            Event::Probe | Event::Deadlines => {}
        }
        agents.extend(
            self.state.agents.values().filter(|agent| agent.start.is_some()).filter_map(|a| a.previous_agent_id),
        );
        for id in agents {
            if let Some(row) = disk.past_agents.get(&id) {
                self.state.agents.entry(id).or_insert_with(|| row.clone());
            }
        }
    }

    /// Which effects may act now: the first of each lane.
    pub(crate) fn ready_runs(&self) -> Vec<usize> {
        let mut lanes: BTreeSet<EffectLane> = BTreeSet::new();
        let firsts = self.runs.iter().enumerate().filter(|(_, run)| lanes.insert(run.effect.lane(run.key)));
        firsts.map(|(index, _)| index).collect()
    }
}

/// The document that a request brings.
fn provided(read: &request::ParsedRequest) -> Option<Result<String, String>> {
    match &read.request {
        Ok(Request::Handoff(asked)) => asked.document.as_ref()?.text.clone().map(Ok),
        Ok(Request::Clarify(asked)) => asked.document.as_ref()?.text.clone().map(Ok),
        _ => None,
    }
}

/// An agent that runs already, which a request names as the successor.
fn existing(successor: Option<&Successor>) -> Option<AgentId> {
    match successor {
        Some(Successor::Existing { agent_id }) => agent_id.parse().ok(),
        Some(Successor::New | Successor::SamePane) | None => None,
    }
}
