//! No state without an exit: from every state that a simulated world comes to, whatever then happens to its agents and
//! however its effects end, everything that somebody waits for ends by the limits alone, though nobody helps; and each
//! agent that is left can be left: by its death, by the end of its turn, by a request.

use super::outcomes;
use super::rng::Rng;
use super::world::{World, settings};
use crate::support::tally;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tasuki::core::decision::Cycle;
use tasuki::core::effect::EffectKey;
use tasuki::core::event::{Event, Exit, IncomingRequest, RequestFacts};
use tasuki::core::hook::{HookEvent, HookKind, SessionReason};
use tasuki::core::id::{AgentId, HandoffId};
use tasuki::core::request;
use tasuki::core::rows::agent::{Agent, AgentState, Primed, WatchState};
use tasuki::core::rows::handoff::{CheckPhase, Handoff};
use tasuki::core::state::State;
use tasuki::core::time::Now;

/// Worlds in the gate and in the long suite.
const WORLDS: (u64, u64) = (300, 2_000);
/// A state of a world is tried each so many acts of it.
const EVERY: u64 = 24;
/// So many times the next limit may come until everything must have ended.
const MOST_LIMITS: u32 = 1_500;
const HOOKS: [HookKind; 9] = [
    HookKind::SessionStart,
    HookKind::PromptSubmit,
    HookKind::Stop,
    HookKind::StopFailure,
    HookKind::Interrupted,
    HookKind::Blocked,
    HookKind::Notification,
    HookKind::Context,
    HookKind::SessionEnd,
];

/// A state of which only the core goes on: nobody outside does anything but what is decided here.
#[derive(Clone)]
struct Left {
    state: State,
    now: Now,
    rng: Rng,
    asked: u32,
    /// Effects that never end by themselves.
    endless: BTreeSet<EffectKey>,
    ends: BTreeSet<String>,
}

#[test]
fn from_every_state_there_is_a_way_out() {
    let (settings, count) = (settings(), if tally::is_long() { WORLDS.1 } else { WORLDS.0 });
    let given = std::env::var("TASUKI_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = given.map_or(0..count, |seed: u64| seed..seed + 1);
    let (mut tried, mut seen) = (0, BTreeSet::new());
    for seed in seeds {
        let mut world = World::new(seed, &settings);
        let acts = 120 + world.rng.below(240);
        for act in 0..acts {
            if world.act().is_err() {
                break;
            }
            let Some(sidecar) = world.sidecar.as_ref() else { continue };
            let mut left = Left {
                state: sidecar.state.clone(),
                now: world.now,
                rng: Rng::new(seed ^ (act << 32)),
                asked: 0,
                endless: BTreeSet::new(),
                ends: BTreeSet::new(),
            };
            let begin = left.what_it_is();
            // What was not seen yet is tried wherever it comes.
            if act % EVERY != 0 && begin.is_subset(&seen) {
                continue;
            }
            if let Err(what) = left.comes_to_an_end() {
                panic!("TASUKI_SEED={seed}, act {act}, from {begin:?}: {what}");
            }
            seen.extend(begin);
            seen.extend(left.ends);
            tried += 1;
        }
    }
    tally::add("states with a way out", tried);
    println!("{tried} states, {} kinds of them and of ends: {seen:?}", seen.len());
    if given.is_none() {
        for step in
            ["waiting", "instructing", "writing", "checking", "ending", "starting", "priming", "briefing", "reading"]
        {
            assert!(seen.contains(&format!("step {step}")), "no world came to {step}");
        }
        for state in ["starting", "idle", "busy", "blocked"] {
            assert!(seen.contains(&format!("agent {state}")), "no agent was {state}");
        }
    }
}

impl Left {
    fn what_it_is(&self) -> BTreeSet<String> {
        let steps = self.state.handoffs.values().map(|handoff| format!("step {}", handoff.step.as_str()));
        steps.chain(self.state.agents.values().map(|agent| format!("agent {}", agent.state.as_str()))).collect()
    }

    fn decide(&mut self, event: Event) -> usize {
        let turn = Cycle { now: self.now, entropy: self.rng.bytes() };
        let decision = tasuki::core::decide(&self.state, event, &turn);
        self.state.apply(&decision);
        decision.answers.len()
    }

    /// Something happens a few times, then nothing any more but limits.
    fn comes_to_an_end(&mut self) -> Result<(), String> {
        for _ in 0..self.rng.below(4) {
            self.disturb();
        }
        self.be_left_alone()?;
        let living: Vec<AgentId> =
            self.state.agents.values().filter(|agent| agent.state.is_live()).map(|agent| agent.agent_id).collect();
        for id in living {
            self.can_be_left(&id)?;
        }
        Ok(())
    }

    /// A request, a hook, a death, another server.
    fn disturb(&mut self) {
        let agents: Vec<Agent> = self.state.agents.values().cloned().collect();
        let handoffs: Vec<Value> = self.state.handoffs.keys().map(|id| json!(id)).collect();
        let any = |rng: &mut Rng, count: usize| rng.below(count as u64) as usize;
        let handoff = handoffs.get(any(&mut self.rng, handoffs.len())).cloned().unwrap_or(json!("none"));
        let Some(agent) = agents.get(any(&mut self.rng, agents.len())) else { return };
        let of_handoff = [
            "handoff_cancel",
            "handoff_accept",
            "handoff_retry",
            "handoff_abandon",
            "handoff_rework",
            "handoff_reopen",
        ];
        let of_agent = ["agent_shutdown", "agent_forget", "agent_send", "handoff"];
        match self.rng.below(10) {
            0..=2 => {
                let kind = of_handoff[any(&mut self.rng, 6)];
                let mut asked = json!({"v": 1, "kind": kind, "handoff_id": handoff});
                if kind == "handoff_rework" {
                    asked["note"] = json!("name the branch");
                }
                if kind == "handoff_retry" && self.rng.chance(50) {
                    asked["assume"] = json!(if self.rng.chance(50) { "delivered" } else { "not_delivered" });
                }
                self.ask(&asked, None);
            }
            3 | 4 => {
                let kind = of_agent[any(&mut self.rng, 4)];
                let mut asked = json!({"v": 1, "kind": kind, "agent_id": agent.agent_id});
                match kind {
                    "agent_shutdown" => asked["force"] = json!(self.rng.chance(50)),
                    "agent_send" => asked["text"] = json!("hello"),
                    "handoff" => asked["reason"] = json!("over"),
                    _ => {}
                }
                self.ask(&asked, Some(false));
            }
            5..=7 => {
                let kind = HOOKS[any(&mut self.rng, HOOKS.len())];
                let event = self.hook(agent, kind);
                self.decide(Event::Hook(Box::new(event)));
            }
            8 => {
                let how = if self.rng.chance(50) { Exit::Dead } else { Exit::PaneGone };
                self.decide(Event::AgentExit { agent_id: agent.agent_id, how });
            }
            _ => {
                let server = self.state.server.filter(|_| self.rng.chance(50));
                self.decide(Event::Server(server));
            }
        }
    }

    fn hook(&mut self, agent: &Agent, kind: HookKind) -> HookEvent {
        let reasons = [SessionReason::Process, SessionReason::Replaced, SessionReason::Same, SessionReason::Killed];
        HookEvent {
            agent_id: Some(agent.agent_id),
            pane: agent.pane.map(|pane| pane.pane),
            session_id: agent.session.id.clone(),
            reason: Some(reasons[self.rng.below(4) as usize]),
            ..HookEvent::new(kind)
        }
    }

    /// Asks; gives how many answers came at once.
    fn ask(&mut self, asked: &Value, runs: Option<bool>) -> usize {
        self.asked += 1;
        let id = format!("left-{}", self.asked).parse().expect("an id");
        let read = request::read(asked.to_string().as_bytes());
        let facts = RequestFacts { runs, ..RequestFacts::default() };
        self.decide(Event::Request(Box::new(IncomingRequest { id, sha256: String::new(), read, facts })))
    }

    /// Effects end in any way, or never where they wait for others; limits fall; nobody else does anything.
    fn be_left_alone(&mut self) -> Result<(), String> {
        for _ in 0..MOST_LIMITS {
            self.settle();
            self.decide_what_is_held();
            if self.waits_for().is_empty() {
                return Ok(());
            }
            let Some(ms) = self.state.next_deadline_ms(&self.now) else { break };
            self.now.boot_ms += ms.max(1);
            self.decide(Event::Deadlines);
        }
        Err(format!("left alone, these never end: {:#?}", self.waits_for()))
    }

    /// A handoff that waits for a person gets their word.
    fn decide_what_is_held(&mut self) {
        let is_held =
            |handoff: &&Handoff| handoff.stay.checking == Some(CheckPhase::Held) && handoff.stay.effect.is_none();
        let held: Vec<HandoffId> = self.state.handoffs.values().filter(is_held).map(|held| held.handoff_id).collect();
        for id in held {
            let kind = if self.rng.chance(50) { "handoff_accept" } else { "handoff_cancel" };
            for kind in [kind, "handoff_cancel"] {
                self.ask(&json!({"v": 1, "kind": kind, "handoff_id": id}), None);
                self.settle();
            }
        }
    }

    fn settle(&mut self) {
        loop {
            let open: Vec<EffectKey> =
                self.state.outbox.keys().filter(|key| !self.endless.contains(key)).copied().collect();
            let Some(key) = open.get(self.rng.below(open.len() as u64) as usize).copied() else { return };
            let effect = self.state.outbox[&key].clone();
            if outcomes::may_be_endless(&effect) && self.rng.chance(70) {
                self.endless.insert(key);
                continue;
            }
            let (name, outcome) = outcomes::any(&effect, &mut self.rng);
            self.ends.insert(name);
            self.decide(Event::Settled { key, outcome });
        }
    }

    /// What is not over.
    fn waits_for(&self) -> Vec<String> {
        let mut open: Vec<String> = self.state.open_requests.keys().map(|id| format!("request {id}")).collect();
        let handoffs = self.state.handoffs.values().filter(|handoff| !handoff.step.is_end());
        open.extend(handoffs.map(|handoff| format!("handoff in {}: {handoff:?}", handoff.step.as_str())));
        let is_waiting = |agent: &&Agent| {
            let is_read = agent.state.is_live() && matches!(agent.primed, Primed::Reading { .. });
            let is_typed = agent.typing.is_some() || !agent.queue.is_empty();
            is_typed || is_read || agent.start.is_some() || agent.shutdown.is_some() || agent.pending_exit.is_some()
        };
        open.extend(self.state.agents.values().filter(is_waiting).map(|agent| format!("agent {agent:?}")));
        // Whoever is in a turn, or asks its person something, is watched until that is over, however long it takes.
        let is_watch = |key: &EffectKey| {
            self.state
                .agents
                .values()
                .any(|agent| agent.state.is_in_a_turn() && agent.idle_watch.turn == WatchState::Running(*key))
        };
        let effects = self.state.outbox.iter().filter(|(key, _)| !is_watch(key));
        open.extend(effects.map(|effect| format!("{effect:?}")));
        open
    }

    /// By its death, by a request where nothing of it runs, and by the end of its turn.
    fn can_be_left(&self, id: &AgentId) -> Result<(), String> {
        let agent = &self.state.agents[id];
        let mut dead = self.clone();
        dead.decide(Event::AgentExit { agent_id: *id, how: Exit::Dead });
        dead.be_left_alone()?;
        if dead.state.agents[id].state.is_live() {
            return Err(format!("it lives after its death: {agent:?}"));
        }
        let mut forgotten = self.clone();
        forgotten.ask(&json!({"v": 1, "kind": "agent_forget", "agent_id": id}), Some(false));
        if forgotten.state.agents[id].state.is_live() {
            return Err(format!("it can't be forgotten: {agent:?}"));
        }
        let mut rested = self.clone();
        let stop = HookEvent { reason: None, ..rested.hook(agent, HookKind::Stop) };
        rested.decide(Event::Hook(Box::new(stop)));
        rested.settle();
        if rested.state.agents[id].state != AgentState::Idle {
            return Err(format!("the end of its turn leaves it {}: {agent:?}", rested.state.agents[id].state.as_str()));
        }
        Ok(())
    }
}
