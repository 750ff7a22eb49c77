//! Runs effects: one lane for each agent, so that nothing overtakes in a pane, and everything else side by side.
//!
//! `act` does one effect with the adapters; `again` looks again where a look told nothing; `document` reads documents that
//! have settled; `gauge` looks how full a context is; `late` what becomes of an effect that does not end; `meet` who is in a
//! pane; `persona` says what the disk knows of one; `publish` keeps copies and publishes them;
//! `start` starts agents; `tools` is what all of them use; `fault` says what is told of an effect that a fault of ours has ended; this file keeps the lanes.

mod act;
mod again;
mod compose;
mod document;
mod fault;
mod gauge;
mod kill;
mod late;
mod meet;
mod persona;
mod publish;
mod start;
mod tools;
mod transcript;
pub mod version;

pub use fault::is_guarded;
pub use late::Late;
pub(crate) use persona::facts as persona_facts;
pub use tools::Tools;

use crate::core::effect::{Effect, EffectKey, Lane, Outcome};
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

/// An effect that has ended.
#[derive(Debug)]
pub struct Ended {
    pub key: EffectKey,
    pub outcome: Outcome,
}

struct Waiting {
    key: EffectKey,
    effect: Effect,
    resumed: bool,
}

struct Running {
    lane: Lane,
    stop: CancellationToken,
}

/// The lanes.
pub struct Runner {
    tools: Arc<Tools>,
    lanes: BTreeMap<Lane, VecDeque<Waiting>>,
    running: HashMap<EffectKey, Running>,
    ended: mpsc::Sender<Ended>,
}

impl Runner {
    /// A runner, and where ended effects come out. Each must be given back by [`Runner::finished`].
    #[must_use]
    pub fn new(tools: Arc<Tools>) -> (Runner, mpsc::Receiver<Ended>) {
        let (ended, receiver) = mpsc::channel(QUEUE);
        (Runner { tools, lanes: BTreeMap::new(), running: HashMap::new(), ended }, receiver)
    }

    /// Uses other tools for effects that begin from now on.
    pub fn set_tools(&mut self, tools: Arc<Tools>) {
        self.tools = tools;
    }

    /// Takes an effect that was committed. `resumed`: a former process may have begun it.
    pub fn submit(&mut self, key: EffectKey, effect: Effect, resumed: bool) {
        let lane = effect.lane(key);
        tracing::debug!(effect = key.0, kind = effect.kind(), resumed, "effect");
        self.lanes.entry(lane).or_default().push_back(Waiting { key, effect, resumed });
        self.go(lane);
    }

    /// Stops an effect that nobody wants any more. One that runs keeps its lane until it has really stopped.
    pub fn cancel(&mut self, key: EffectKey) {
        if let Some(running) = self.running.get(&key) {
            running.stop.cancel();
        }
        self.lanes.retain(|_, queue| {
            queue.retain(|waiting| waiting.key != key);
            true
        });
    }

    /// Stops every effect that is not wanted any more: after a commit of which nothing was known, what it has dropped.
    pub fn keep_only(&mut self, is_wanted: impl Fn(EffectKey) -> bool) {
        for (_, running) in self.running.iter().filter(|(key, _)| !is_wanted(**key)) {
            running.stop.cancel();
        }
        for queue in self.lanes.values_mut() {
            queue.retain(|waiting| is_wanted(waiting.key));
        }
    }

    /// Takes back an effect that has ended: the next one of its lane may begin.
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

    /// How many effects run.
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

    fn go(&mut self, lane: Lane) {
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
            let _ = ended.send(Ended { key, outcome }).await;
        });
    }
}

/// Waits until an effect can look and act: what lacks a descriptor half way can't tell what is there from what is not.
/// The limit of its step, or the end of the sidecar, ends the wait: then its outcome is given.
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
