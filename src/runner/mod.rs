//! Runs effects: one lane for each agent, so that the texts for a pane keep their order, and everything else in
//! parallel.
//!
//! `act` carries out one effect with the adapters. `retry_look` repeats a look that said nothing. `document` reads
//! documents that no longer change, and `context_usage` how full a context is. `late` gives up effects that do not end.
//! `identify` finds out who is in a pane, `persona` what the disk says of one. `publish` keeps copies and publishes
//! them, and `start` starts agents. `tools` is what all of them use. `fault` is the outcome of an effect that panicked.
//! This file keeps the lanes.

mod act;
mod compose;
mod context_usage;
mod document;
mod fault;
mod identify;
mod kill;
mod late;
mod persona;
mod publish;
mod retry_look;
mod start;
mod tools;
mod transcript;
pub mod version;

pub use fault::is_guarded;
pub use late::Late;
pub(crate) use persona::facts as persona_facts;
pub use tools::Tools;

use crate::core::effect::{Effect, EffectKey, EffectLane, Outcome};
use crate::limits;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Outcomes that may wait for the loop.
const QUEUE: usize = 1024;

/// How often it is looked whether files can be opened again.
const WHILE_SHORT: Duration = Duration::from_millis(250);

/// An effect that has ended, with its outcome.
#[derive(Debug)]
pub struct SettledEffect {
    pub key: EffectKey,
    pub outcome: Outcome,
}

struct Waiting {
    key: EffectKey,
    effect: Effect,
    resumed: bool,
}

struct Running {
    lane: EffectLane,
    stop: CancellationToken,
}

/// The lanes in which effects run.
pub struct Runner {
    tools: Arc<Tools>,
    lanes: BTreeMap<EffectLane, VecDeque<Waiting>>,
    running: HashMap<EffectKey, Running>,
    ended: mpsc::Sender<SettledEffect>,
}

impl Runner {
    /// A runner, and where ended effects come out. Each must be given back by [`Runner::finished`].
    #[must_use]
    pub fn new(tools: Arc<Tools>) -> (Runner, mpsc::Receiver<SettledEffect>) {
        let (ended, receiver) = mpsc::channel(QUEUE);
        (Runner { tools, lanes: BTreeMap::new(), running: HashMap::new(), ended }, receiver)
    }

    /// Uses other tools for effects that begin from now on.
    pub fn set_tools(&mut self, tools: Arc<Tools>) {
        self.tools = tools;
    }

    /// Takes an effect that was committed. `resumed`: an earlier process may have begun it.
    pub fn submit(&mut self, key: EffectKey, effect: Effect, resumed: bool) {
        let lane = effect.lane(key);
        tracing::debug!(effect = key.0, kind = effect.kind(), resumed, "effect");
        self.lanes.entry(lane).or_default().push_back(Waiting { key, effect, resumed });
        self.go(lane);
    }

    /// Stops an effect that is no longer wanted. A running effect keeps its lane until it has really stopped.
    pub fn cancel(&mut self, key: EffectKey) {
        if let Some(running) = self.running.get(&key) {
            running.stop.cancel();
        }
        self.lanes.retain(|_, queue| {
            queue.retain(|waiting| waiting.key != key);
            true
        });
    }

    /// Stops every effect that is no longer wanted: after a commit whose result was unknown, those that it dropped.
    pub fn keep_only(&mut self, is_wanted: impl Fn(EffectKey) -> bool) {
        for (_, running) in self.running.iter().filter(|(key, _)| !is_wanted(**key)) {
            running.stop.cancel();
        }
        for queue in self.lanes.values_mut() {
            queue.retain(|waiting| is_wanted(waiting.key));
        }
    }

    /// Removes an effect that has ended: the next one of its lane may begin.
    pub fn finished(&mut self, key: EffectKey) {
        let Some(running) = self.running.remove(&key) else { return };
        self.go(running.lane);
        if self.lanes.get(&running.lane).is_some_and(VecDeque::is_empty) {
            self.lanes.remove(&running.lane);
        }
    }

    /// Whether an effect runs, or waits in its lane.
    #[must_use]
    pub fn has(&self, key: EffectKey) -> bool {
        self.running.contains_key(&key) || self.lanes.values().flatten().any(|waiting| waiting.key == key)
    }

    /// How many effects are running.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Asks everything that runs to stop, at the end of the sidecar. What was not settled is in the outbox.
    pub fn stop_all(&mut self) {
        self.lanes.clear();
        for running in self.running.values() {
            running.stop.cancel();
        }
    }

    fn go(&mut self, lane: EffectLane) {
        let is_taken = self.running.values().any(|running| running.lane == lane);
        if is_taken {
            return;
        }
        let Some(next) = self.lanes.get_mut(&lane).and_then(VecDeque::pop_front) else { return };
        let stop = CancellationToken::new();
        self.running.insert(next.key, Running { lane, stop: stop.clone() });
        let (tools, ended) = (Arc::clone(&self.tools), self.ended.clone());
        let fault = fault::outcome(&next.effect);
        tokio::spawn(async move {
            let (key, kind, limit) = (next.key, next.effect.kind(), late::limit(&tools.profiles, &next.effect));
            let (late, stops) = (Arc::clone(&tools.late), stop.clone());
            let outcome = match wait_for_room(&next.effect, &stop).await {
                Some(given_up) => Some(given_up),
                None => {
                    let doing = async move { act::act(&tools, &next.effect, next.resumed, &stop).await };
                    let given_up = fault.clone();
                    late::within(
                        (limit, late::STOPS_WITHIN, kind),
                        (&stops, &late),
                        fault::guard(doing, fault),
                        given_up,
                    )
                    .await
                }
            };
            let Some(outcome) = outcome else { return };
            // Nobody listens any more only at the end of the sidecar; the outbox still has the effect then.
            let _ = ended.send(SettledEffect { key, outcome }).await;
        });
    }
}

/// Waits until there are free descriptors: an effect that runs out of them half way can't tell what exists from what
/// does not. The limit of its step, or the end of the sidecar, ends the wait and gives the outcome.
async fn wait_for_room(effect: &Effect, stop: &CancellationToken) -> Option<Outcome> {
    while let Some(why) = limits::shortage() {
        tokio::select! {
            () = tokio::time::sleep(WHILE_SHORT) => {}
            // A text says by itself what is certain of it.
            () = stop.cancelled() => match effect {
                Effect::Type(_) => return None,
                _ => return Some(Outcome::Failed { why }),
            },
        }
    }
    None
}
