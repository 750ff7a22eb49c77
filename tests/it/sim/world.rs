//! The world: disk, tmux, agents, operator, clocks, and a sidecar that dies and comes back.

use super::check;
use super::clocks::Times;
use super::disk::Disk;
use super::golden::Trace;
use super::rng::Rng;
use super::sidecar::{Crash, Sidecar};
use super::tmux::{Faults, SimTmux};
use crate::support::facts::demo_facts;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use tasuki::core::event::Event;
use tasuki::core::id::{AgentId, HandoffId, RequestId};
use tasuki::core::pane::PaneRef;
use tasuki::core::request::Successor;
use tasuki::core::rows::handoff::{Handoff, Step};
use tasuki::core::settings::{
    ContextLimits, NewSession, OnUsageLimit, ProfileFacts, RESUME_TEXT, Settings, StartSuccessor,
};
use tasuki::core::time::Now;

/// Everything.
pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) now: Now,
    pub(crate) disk: Disk,
    pub(crate) tmux: SimTmux,
    pub(crate) sidecar: Option<Sidecar>,
    pub(crate) dropped: Vec<RequestId>,
    asked: Vec<String>,
    pub(crate) anonymous: Vec<PaneRef>,
    pub(crate) assumed: BTreeSet<HandoffId>,
    /// Handoffs for which the operator wanted another successor: the former one is left as it is.
    pub(crate) changed: BTreeSet<HandoffId>,
    /// Handoffs of which the operator has said, true or not, that their document is not published.
    pub(crate) unpublished: BTreeSet<HandoffId>,
    pub(crate) retries: BTreeMap<HandoffId, usize>,
    /// How often each handoff's agent was to be asked by the operator to repair its document.
    pub(crate) reworks: BTreeMap<HandoffId, u64>,
    /// The true time.
    pub(crate) times: Times,
    settings: Settings,
    pub(crate) faults_on: bool,
    requests: u64,
}

/// What the sidecar is told: a profile with turn ids, and one that tells of a new session only with its first prompt.
pub(crate) fn settings() -> Settings {
    let facts = ProfileFacts { new_session: Some(NewSession::Reported), proves_prompts: true, ..demo_facts() };
    let lazy = ProfileFacts { name: "lazy".to_owned(), new_session: Some(NewSession::Lazy), ..demo_facts() };
    Settings {
        profiles: BTreeMap::from([("demo".to_owned(), facts), ("lazy".to_owned(), lazy)]),
        // Rarely, or the operator's own handoffs would seldom find an agent that is free.
        context: ContextLimits { suggest_at: Some(50), auto_at: Some(105) },
        on_usage_limit: OnUsageLimit::Wait,
        resume_text: RESUME_TEXT.to_owned(),
        personas_dir: "/h".to_owned(),
        ..Settings::default()
    }
}

/// Every way in which a handoff can be done, and every limit that can fall.
pub(crate) fn every_way() -> Vec<String> {
    let limits = ["waiting", "writing", "ending", "starting", "priming"].map(|step| format!("limit of {step}"));
    let successors = ["new demo", "same_pane demo", "same_pane lazy", "existing demo"];
    let authors = ["AgentFile", "AgentReply", "Salvage", "Provided"];
    authors
        .iter()
        .flat_map(|author| successors.map(|successor| format!("{author} {successor}")))
        .chain(limits)
        .chain(super::acks::WAYS.map(str::to_owned))
        .collect()
}

impl World {
    pub(crate) fn new(seed: u64, settings: &Settings) -> Self {
        let mut world = World {
            rng: Rng::new(seed),
            now: Now { wall_ms: 1_790_000_000_000, boot: 1, boot_ms: 1_000 },
            disk: Disk { trace: Trace::of(seed), ..Disk::default() },
            tmux: SimTmux::new(),
            sidecar: None,
            dropped: Vec::new(),
            asked: Vec::new(),
            anonymous: Vec::new(),
            assumed: BTreeSet::new(),
            changed: BTreeSet::new(),
            unpublished: BTreeSet::new(),
            retries: BTreeMap::new(),
            reworks: BTreeMap::new(),
            times: Times::default(),
            settings: super::acks::targets(settings, seed),
            faults_on: true,
            requests: 0,
        };
        if let Some(pane) = world.tmux.spawn(None, "demo", Faults::default(), &mut world.rng) {
            world.anonymous.push(pane);
        }
        for _ in 0..=world.rng.below(3) {
            let profile = if world.rng.chance(30) { "lazy" } else { "demo" };
            world.ask(&json!({ "v": 1, "kind": "agent_create", "persona_slug": "dev", "profile": profile }));
        }
        world
    }

    pub(crate) fn ask(&mut self, request: &serde_json::Value) -> RequestId {
        self.requests += 1;
        let id: RequestId = format!("r{}", self.requests).parse().expect("a legal id");
        self.asked.push(format!("{id} at {}: {request}", self.now.rfc3339()));
        self.disk.requests.insert(id.clone(), request.to_string().into_bytes());
        self.dropped.push(id.clone());
        id
    }

    /// Prints what has happened, for a person who replays a seed.
    pub(crate) fn tell(&self) {
        for request in &self.asked {
            println!("asked {request}");
        }
        for (_, line) in &self.disk.journal {
            println!("{line}");
        }
    }

    /// Author, successor and profile of each handoff that was done.
    pub(crate) fn ways(&self) -> BTreeSet<String> {
        let done = self.disk.handoffs().filter(|handoff| handoff.step == Step::Done);
        done.map(|handoff| {
            let profile = self.disk.agent(&handoff.agent_id).map_or("", |agent| agent.profile.as_str());
            let successor = match &handoff.successor {
                Successor::New => "new",
                Successor::SamePane => "same_pane",
                Successor::Existing { .. } => "existing",
            };
            format!("{:?} {successor} {profile}", handoff.author)
        })
        .chain(self.times.fallen())
        .chain(self.ack_ways())
        .collect()
    }

    /// How many successors that were started before their predecessor had ended took over, and how many were ended
    /// again.
    pub(crate) fn early_successors(&self) -> (usize, usize) {
        // The journal is in order, also where a clock jumps.
        let place =
            |is_it: &dyn Fn(&serde_json::Value) -> bool| self.disk.journal.iter().position(|(_, line)| is_it(line));
        let is_early = |id: &AgentId, handoff: &Handoff| {
            let (agent, handoff) = (id.to_string(), handoff.handoff_id.to_string());
            let started = place(&|line| line["agent_id"] == *agent);
            let starting = place(&|line| line["handoff_id"] == *handoff && line["step"] == "starting");
            started.is_some_and(|at| starting.is_none_or(|starting| at < starting))
        };
        let new = || self.disk.handoffs().filter(|handoff| handoff.successor == Successor::New);
        let used = new().filter(|handoff| handoff.successor_id.is_some_and(|id| is_early(&id, handoff))).count();
        let ended =
            new().flat_map(|handoff| handoff.former_successors.iter().filter(|id| is_early(id, handoff))).count();
        (used, ended)
    }

    /// Runs the whole life of this world.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        let acts = 160 + self.rng.below(280);
        for _ in 0..acts {
            self.act()?;
            self.look()?;
        }
        self.faults_on = false;
        self.settle()?;
        check::at_rest(self)
    }

    /// Holds what must hold at every moment.
    fn look(&mut self) -> Result<(), String> {
        self.times.note(&self.disk, &self.settings.limits)?;
        check::always(self)
    }

    pub(crate) fn act(&mut self) -> Result<(), String> {
        match self.rng.below(100) {
            0..30 => self.turn(),
            30..55 => self.effect()?,
            55..75 => self.agents_live(),
            75..84 => self.hooks_arrive(),
            84..90 => self.time_passes(),
            90..96 => self.operator(),
            96 => self.sidecar = None,
            97 => self.disaster(),
            98 => self.reconcile(),
            _ => self.twice(),
        }
        Ok(())
    }

    fn turn(&mut self) {
        let Some(mut sidecar) = self.sidecar.take() else {
            self.times.counted_anew();
            self.sidecar = Some(Sidecar::start(&mut self.disk, &self.settings, &self.now, &self.tmux));
            return;
        };
        let crash = match self.rng.below(if self.faults_on { 40 } else { u64::MAX }) {
            0 => Some(Crash::Commit),
            1 => Some(Crash::Dispose),
            2 => Some(Crash::Effects),
            _ => None,
        };
        if sidecar.turn(&mut self.disk, &self.now, &mut self.rng, crash) {
            self.sidecar = Some(sidecar);
        }
    }

    /// One act of one effect; its end may be lost with the sidecar, but never without it.
    fn effect(&mut self) -> Result<(), String> {
        let Some(mut sidecar) = self.sidecar.take() else { return Ok(()) };
        let ready = sidecar.ready_runs();
        if !ready.is_empty() {
            let index = ready[self.rng.below(ready.len() as u64) as usize];
            check::before_typing(self, &sidecar.runs[index].effect)?;
            let run = &mut sidecar.runs[index];
            let outcome = run.step(&mut self.tmux, &mut self.disk, &mut self.rng, self.faults_on);
            if let Some(outcome) = outcome {
                let key = run.key;
                sidecar.runs.remove(index);
                sidecar.pending.push(Event::Settled { key, outcome });
            }
        }
        self.sidecar = Some(sidecar);
        Ok(())
    }

    fn agents_live(&mut self) {
        let mut written: Vec<(String, u64)> = Vec::new();
        for agent in &mut self.tmux.agents {
            if self.rng.chance(60)
                && let Some((path, text)) = agent.live()
            {
                written.push((path.clone(), text.len() as u64));
                self.disk.documents.insert(path, text);
            }
            if self.faults_on && self.rng.chance(1) {
                agent.prompt_by_hand();
            }
            if self.rng.chance(10) {
                agent.faults.dialog = false;
            }
        }
        if self.settings.starting == StartSuccessor::Early {
            self.documents_are_seen(&written);
        }
        self.agents_acknowledge();
        if self.rng.chance(50) {
            self.reconcile();
        }
    }

    /// The watcher has seen these documents, if the sidecar runs.
    fn documents_are_seen(&mut self, written: &[(String, u64)]) {
        let Some(sidecar) = &mut self.sidecar else { return };
        for (path, bytes) in written {
            let named = self.disk.handoffs().filter(|handoff| handoff.file_path == *path || handoff.file_name == *path);
            let seen = named.map(|handoff| Event::DocumentGrew { handoff_id: handoff.handoff_id, bytes: *bytes });
            sidecar.pending.extend(seen);
        }
    }

    fn hooks_arrive(&mut self) {
        for agent in &mut self.tmux.agents {
            while self.rng.chance(70) {
                let Some(event) = agent.hooks.pop_front() else { break };
                self.disk.events.push((self.disk.next_event, event));
                self.disk.next_event += 1;
            }
        }
    }

    fn operator(&mut self) {
        let handoffs: Vec<(HandoffId, Step, bool)> = self
            .disk
            .handoffs()
            .map(|row| (row.handoff_id, row.step, row.error.as_ref().is_some_and(|error| error.code == "unconfirmed")))
            .collect();
        let agents: Vec<String> = self.disk.agents().map(|agent| agent.agent_id.to_string()).collect();
        if agents.is_empty() {
            return;
        }
        if self.rng.chance(50) && self.answer_questions() {
            return;
        }
        let agent = agents[self.rng.below(agents.len() as u64) as usize].clone();
        let request = match (self.rng.below(14), handoffs.is_empty()) {
            (0..5, _) | (_, true) => {
                let other = self.another(&agent, &agents);
                self.handoff(&agent, &other)
            }
            (5, _) => json!({ "v": 1, "kind": "agent_send", "agent_id": agent, "text": "hello" }),
            (6, _) if self.rng.chance(30) => json!({ "v": 1, "kind": "agent_shutdown", "agent_id": agent }),
            (kind, _) => {
                let (id, _, _) = handoffs[self.rng.below(handoffs.len() as u64) as usize];
                self.about(kind, id)
            }
        };
        self.ask(&request);
    }

    fn about(&mut self, kind: u64, id: HandoffId) -> serde_json::Value {
        if self.disk.publishes(id) && self.rng.chance(15) {
            return self.publish_now(id);
        }
        match kind {
            7 => json!({ "v": 1, "kind": "handoff_cancel", "handoff_id": id }),
            8 if self.rng.chance(30) => {
                *self.reworks.entry(id).or_default() += 1;
                json!({ "v": 1, "kind": "handoff_rework", "handoff_id": id, "note": "name the branch" })
            }
            8 => json!({ "v": 1, "kind": "handoff_accept", "handoff_id": id }),
            12 => self.clarify(id),
            13 => json!({ "v": 1, "kind": "ack_override", "handoff_id": id, "reason": "it works already" }),
            9 if self.rng.chance(40) => json!({ "v": 1, "kind": "handoff_abandon", "handoff_id": id }),
            _ => {
                *self.retries.entry(id).or_default() += 1;
                let mut request = json!({ "v": 1, "kind": "handoff_retry", "handoff_id": id });
                let agents: Vec<String> = self.disk.agents().map(|agent| agent.agent_id.to_string()).collect();
                let other = agents[self.rng.below(agents.len() as u64) as usize].clone();
                if self.rng.chance(15)
                    && let Some(successor) = self.successor(&other)
                {
                    request["successor"] = successor;
                    self.changed.insert(id);
                }
                match self.rng.below(3) {
                    0 => request["assume"] = json!("not_delivered"),
                    1 => {
                        self.assumed.insert(id);
                        request["assume"] = json!("delivered");
                    }
                    _ => {}
                }
                request
            }
        }
    }

    fn reconcile(&mut self) {
        if let Some(sidecar) = &mut self.sidecar {
            sidecar.reconcile(&self.tmux);
        }
    }

    /// An agent is killed, the tmux server dies, or the machine starts anew.
    fn disaster(&mut self) {
        match self.rng.below(6) {
            0 => {
                self.tmux.restart();
                if let Some(sidecar) = &mut self.sidecar {
                    sidecar.pending.push(Event::Server(self.tmux.server));
                }
            }
            1 => {
                self.sidecar = None;
                self.tmux.restart();
                self.now.boot += 1;
                self.now.boot_ms = self.rng.below(1_000_000);
                // A machine without a battery for its clock, until that is set.
                if self.rng.chance(30) {
                    self.wall_jumps();
                }
                self.times.booted();
            }
            _ => {
                let count = self.tmux.agents.len() as u64;
                let index = self.rng.below(count) as usize;
                self.tmux.agents[index].alive = false;
            }
        }
    }

    /// The same request file a second time.
    fn twice(&mut self) {
        let Some(id) = self.dropped.last().cloned() else { return };
        if self.disk.answers.contains_key(&id) {
            self.disk.requests.insert(id, b"{\"v\":1,\"kind\":\"agent_create\",\"persona_slug\":\"dev\"}".to_vec());
        }
    }

    /// Faults are over: everything must come to rest by itself.
    fn settle(&mut self) -> Result<(), String> {
        for round in 0..6_000 {
            self.turn();
            for _ in 0..4 {
                self.effect()?;
            }
            self.agents_live();
            self.hooks_arrive();
            self.reconcile();
            self.look()?;
            if self.rng.chance(3) {
                self.answer_questions();
            }
            if round % 20 == 19 {
                if self.decide_what_is_held() {
                    continue;
                }
                if self.is_at_rest() {
                    return Ok(());
                }
                let next = self.sidecar.as_ref().and_then(|sidecar| sidecar.state.next_deadline_ms(&self.now));
                self.advance(next.map_or(3_000, |next| next.max(500)));
            }
        }
        Ok(())
    }

    /// A handoff that waits for a person gets their word; whether there was one.
    fn decide_what_is_held(&mut self) -> bool {
        let Some(sidecar) = &self.sidecar else { return false };
        let is_held = |handoff: &&Handoff| handoff.examined.held_since.is_some() && handoff.stay.reading.is_none();
        let held: Vec<HandoffId> =
            sidecar.state.handoffs.values().filter(is_held).map(|held| held.handoff_id).collect();
        for id in &held {
            let kind = if self.rng.chance(50) { "handoff_accept" } else { "handoff_cancel" };
            self.ask(&json!({ "v": 1, "kind": kind, "handoff_id": id }));
        }
        !held.is_empty()
    }

    fn is_at_rest(&self) -> bool {
        let Some(sidecar) = &self.sidecar else { return false };
        let quiet = sidecar.runs.is_empty() && sidecar.pending.is_empty() && sidecar.gone.is_empty();
        let agents = self
            .tmux
            .agents
            .iter()
            .all(|agent| !agent.alive || (agent.turn.is_none() && agent.hooks.is_empty() && agent.ready_in == 0));
        let spool = self.disk.requests.is_empty() && self.disk.events.is_empty();
        quiet && agents && spool && sidecar.state.next_deadline_ms(&self.now).is_none()
    }
}
