//! One turn of the loop: gather what has happened, decide it event by event, commit once, then let others see it and
//! start what was decided.

use super::Sidecar;
use crate::core::decision::{Decision, Turn};
use crate::core::effect::EffectKey;
use crate::core::event::Event;
use crate::core::id::{AgentId, HandoffId};
use crate::core::time::{Deadline, Now};
use crate::core::{self, event::Gone};
use crate::store::{Batch, SeenEvent};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Most files of one lane, and most other events, in one commit.
pub(super) const BATCH: usize = 256;
/// Most bytes of one lane's files in one commit.
pub(super) const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// A gap of the loop of this length means that the machine or the process stood still, in milliseconds.
const GAP_MS: u64 = 5_000;
/// How much later deadlines are judged after such a gap, in milliseconds: what happened meanwhile comes first.
const GAP_GRACE_MS: u64 = 2_000;
/// The longest pause after a commit that failed.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// An agent that is gone, seen when so many scans of the events had begun.
pub(super) struct SeenGone {
    pub(super) agent_id: AgentId,
    pub(super) how: Gone,
    pub(super) scans: u64,
}

/// What waits for a turn.
#[derive(Default)]
pub(super) struct Pending {
    /// Files may have come.
    pub(super) files: bool,
    /// Events that don't come from files.
    pub(super) events: Vec<Event>,
    /// Agents that are gone: judged only after an empty scan that began later (`flow.md` rule 6).
    pub(super) gone: Vec<SeenGone>,
    /// Until tmux has said whether it answers, at the latest until then, no request is taken: what needs tmux would be
    /// refused for no reason.
    pub(super) tmux_unknown: Option<Deadline>,
    /// When a lost tmux server counts as lost.
    pub(super) tmux_lost: Option<Deadline>,
    /// When a file that was not complete is to be looked at again.
    pub(super) look_again: Option<Deadline>,
    /// When the next tick is due.
    pub(super) tick: Option<Deadline>,
    /// Scans of the events that have begun.
    pub(super) scans: u64,
    /// Both lanes were seen empty once since the start.
    pub(super) drained: bool,
    /// Effects that a former process may have begun.
    pub(super) initial: BTreeSet<EffectKey>,
    /// Deadlines are not judged before this.
    pub(super) grace: Option<Deadline>,
    /// Files lie in `state/reap/`.
    pub(super) reap: bool,
    /// Removes them.
    pub(super) reaping: Option<JoinHandle<usize>>,
    /// When the last turn was.
    pub(super) last_turn: Option<Now>,
    /// Commits that failed in a row.
    pub(super) failures: u32,
    /// Rows of history that were put into the working set for this batch.
    pub(super) paged_agents: Vec<AgentId>,
    /// The same for handoffs.
    pub(super) paged_handoffs: Vec<HandoffId>,
}

impl Sidecar {
    /// How long the loop may sleep.
    pub(super) fn sleep(&self) -> Duration {
        let now = self.clock.now();
        let pending = &self.pending;
        if pending.files || !pending.events.is_empty() || !pending.gone.is_empty() {
            return Duration::ZERO;
        }
        if !pending.drained && pending.tmux_unknown.is_none() {
            return Duration::ZERO;
        }
        let own = [pending.tmux_lost, pending.look_again, pending.tick, pending.tmux_unknown].into_iter().flatten();
        let mut wait = own.map(|deadline| deadline.remaining_ms(&now)).min().unwrap_or(5_000);
        if let Some(due) = self.state.next_deadline_ms(&now) {
            let grace = pending.grace.map_or(0, |grace| grace.remaining_ms(&now));
            wait = wait.min(due.max(grace));
        }
        Duration::from_millis(wait)
    }

    /// One turn. Everything in it sees the same clock.
    pub(super) async fn turn(&mut self) {
        let now = self.clock.now();
        self.mind_the_gap(&now);
        self.tick_if_due(&now);
        let mut batch = self.gather(&now);
        if batch.events.is_empty() && batch.files.is_empty() {
            self.ask_for_panes();
            return;
        }
        let kept: Vec<Event> = std::mem::take(&mut batch.events);
        let (decision, seen) = self.decide(&now, kept.clone(), &mut batch.files);
        if decision.is_empty() && kept.contains(&Event::Deadlines) {
            // A deadline that nobody minds must not keep the loop awake.
            tracing::error!("a deadline is due and nothing came of it");
            self.pending.grace = Some(Deadline::after(&now, GAP_GRACE_MS));
        }
        if !decision.is_empty() || !seen.is_empty() {
            let committed = self.store.commit(&Batch { decision: &decision, now, seen: &seen });
            if let Err(error) = committed {
                return self.commit_failed(&error, kept).await;
            }
            self.pending.failures = 0;
            self.projector.problem = None;
        }
        self.after_commit(&now, decision, batch.files);
        self.ask_for_panes();
    }

    /// After a suspend or a long stop, events that lie in the spool come before any deadline.
    fn mind_the_gap(&mut self, now: &Now) {
        let gap = self.pending.last_turn.is_some_and(|last| {
            last.boot == now.boot && now.boot_ms.saturating_sub(last.boot_ms) > GAP_MS + super::project::TICK_MS
        });
        if gap {
            self.pending.grace = Some(Deadline::after(now, GAP_GRACE_MS));
            self.pending.files = true;
        }
        self.pending.last_turn = Some(*now);
    }

    /// Decides one after the other, each on the state that the one before it left: what agents reported, then what was
    /// seen here, then what is asked for.
    fn decide(
        &mut self,
        now: &Now,
        events: Vec<Event>,
        files: &mut [super::intake::Taken],
    ) -> (Decision, Vec<SeenEvent>) {
        let mut whole =
            Decision { next_effect: self.state.next_effect, next_seq: self.state.next_seq, ..Decision::default() };
        let mut seen = Vec::new();
        seen.extend(files.iter().filter_map(|file| file.seen.clone()));
        let (asked, reported): (Vec<Event>, Vec<Event>) =
            files.iter_mut().filter_map(|file| file.event.take()).partition(|event| matches!(event, Event::Request(_)));
        for event in reported.into_iter().chain(events).chain(asked) {
            self.page_in(&event);
            let turn = Turn { now: *now, entropy: entropy() };
            let decision = core::decide(&self.state, event, &turn);
            self.state.apply(&decision);
            whole.absorb(decision);
        }
        (whole, seen)
    }

    /// What was decided is durable: the files go, others may see it, effects begin.
    fn after_commit(&mut self, now: &Now, decision: Decision, files: Vec<super::intake::Taken>) {
        self.projector.show(&self.spool, now, &decision);
        self.put_away(now, files);
        for key in &decision.dropped {
            self.runner.cancel(*key);
        }
        self.state.evict_past(&decision);
        self.evict_paged();
        self.watch_what_matters(&decision);
        if self.pending.drained {
            for (key, effect) in decision.effects {
                if self.state.outbox.contains_key(&key) {
                    self.runner.submit(key, effect, false);
                }
            }
        }
    }

    /// Nothing is known of the batch: the store is opened anew, the state read again, and the events come again. What
    /// was committed after all is then known to the ledger and the outbox.
    async fn commit_failed(&mut self, error: &crate::store::Error, events: Vec<Event>) {
        self.pending.failures += 1;
        tracing::error!(%error, "a commit failed; nothing was disposed of");
        self.projector.problem = Some(error.to_string());
        let pause = Duration::from_millis(100).saturating_mul(1 << self.pending.failures.min(6)).min(LONGEST_PAUSE);
        tokio::time::sleep(pause).await;
        self.pending.files = true;
        self.pending.events.splice(0..0, events);
        let now = self.clock.now();
        if let Err(error) = self.reload_state(&now) {
            tracing::error!(%error, "the store can't be opened again");
        }
        self.projector.heartbeat(&self.spool, &now, self.state.server.as_ref());
    }
}

/// Random bytes for one decision.
fn entropy() -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    bytes[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    bytes
}
