//! Runs effects. The effects of one lane run one after the other: an agent's start and its texts share a lane, so that
//! texts keep their order. The effects of one placeholder window share a lane too. All other effects run in parallel.
//!
//! This file keeps the lanes. `act` carries out one effect with the adapters, which are in `tools`. `retry_look`
//! repeats a look that gave no answer. `late` gives up effects that do not end, and `fault` provides the outcome of an
//! effect that panicked or was given up. `action` names an effect in words. Each of the other files is for one effect
//! or a few:
//!
//! - `document` reads documents and compares them with their records; `compose` writes them; `examine` looks at an
//!   agent's work and checks its document against it; `publish` copies and publishes documents; `environment` keeps the
//!   credentials of agents' environments, for which documents are searched
//! - `start` starts an agent; `version` asks a CLI for its version, for the message about a CLI that does not become
//!   ready; `identify` finds out which agent is in a pane; `placeholder` keeps a session alive until the successor is
//!   started; `kill` kills an agent; `elsewhere` tells whether a pane lives in another tmux server
//! - `persona` reads a persona's folder; `transcript` waits until the transcript shows a prompt, or that the document
//!   was read; `context_usage` reads how full a context is, and the facts that decide whether an automatic handoff may
//!   begin; `limit_look` looks for the limit that stops a CLI
//! - `operator` notifies the operator

mod act;
mod action;
mod compose;
mod context_usage;
mod document;
mod elsewhere;
mod environment;
mod examine;
mod fault;
mod identify;
mod kill;
mod late;
mod limit_look;
mod operator;
mod persona;
mod placeholder;
mod publish;
mod retry_look;
mod start;
mod tools;
mod transcript;
pub mod version;

pub(crate) use elsewhere::lives_elsewhere;
pub(crate) use environment::{keep_environment, known_values};
pub use fault::catches_panics;
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

/// How many outcomes may wait until the loop takes them.
const QUEUE: usize = 1024;

/// How often tasuki checks whether files can be opened again.
const CHECK_SHORTAGE_EVERY: Duration = Duration::from_millis(250);

/// An effect that has ended, with its outcome.
#[derive(Debug)]
pub struct SettledEffect {
    pub key: EffectKey,
    pub outcome: Outcome,
}

/// An effect that waits in its lane.
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
    /// Makes a runner, and the channel on which effects that have ended come out. Call [`Runner::finished`] for each of
    /// them.
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
        self.start_next(lane);
    }

    /// Stops an effect that is no longer wanted. If it waits in its lane, it is removed. If it runs, it is told to
    /// stop, and keeps its lane until its outcome has come out of the channel: when it has stopped, or when `late`
    /// gives it up because it does not stop in time.
    pub fn cancel(&mut self, key: EffectKey) {
        if let Some(running) = self.running.get(&key) {
            running.stop.cancel();
        }
        self.lanes.retain(|_, queue| {
            queue.retain(|waiting| waiting.key != key);
            true
        });
    }

    /// Stops every effect that is no longer wanted, as [`Runner::cancel`] does. Called after a commit whose result was
    /// unknown, because that commit may have dropped effects.
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
        self.start_next(running.lane);
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

    /// Tells every running effect to stop, at the end of the sidecar. An effect without an outcome stays in the outbox.
    pub fn stop_all(&mut self) {
        self.lanes.clear();
        for running in self.running.values() {
            running.stop.cancel();
        }
    }

    fn start_next(&mut self, lane: EffectLane) {
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
            let (key, what, limit) = (next.key, action::in_words(&next.effect), limit(&tools, &next.effect));
            let (late, stops) = (Arc::clone(&tools.late), stop.clone());
            let outcome = match wait_for_descriptors(&next.effect, &stop).await {
                Some(stopped) => Some(stopped),
                None => {
                    let doing = async move { act::act(&tools, &next.effect, next.resumed, &stop).await };
                    let doing = fault::catch_panic(doing, fault.clone());
                    late::within((limit, late::STOPS_WITHIN, what), (&stops, &late), doing, fault).await
                }
            };
            let Some(outcome) = outcome else { return };
            // This fails only at the end of the sidecar, when nobody listens any more. The outbox still has the effect
            // then.
            let _ = ended.send(SettledEffect { key, outcome }).await;
        });
    }
}

/// How long an effect may take at most.
fn limit(tools: &Tools, effect: &Effect) -> Duration {
    late::limit(&tools.profiles, examine::git(tools).longest(), effect)
}

/// Waits until there are free descriptors, because an effect that runs out of them half-way can't tell whether a file
/// exists. `None`: the effect may begin. `Some`: it was stopped while it waited, and this is its outcome.
async fn wait_for_descriptors(effect: &Effect, stop: &CancellationToken) -> Option<Outcome> {
    while let Some(why) = limits::shortage() {
        tokio::select! {
            () = tokio::time::sleep(CHECK_SHORTAGE_EVERY) => {}
            // An effect that types begins nevertheless: its own outcome says whether anything may have been typed.
            () = stop.cancelled() => match effect {
                Effect::Type(_) => return None,
                _ => return Some(Outcome::Failed { why }),
            },
        }
    }
    None
}

#[cfg(test)]
mod tests;
