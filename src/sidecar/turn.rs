//! One turn of the loop: gather what has happened, decide it event by event, commit once, then let others see it and
//! start what was decided.

use super::Sidecar;
use crate::core::decision::{Decision, Turn};
use crate::core::effect::EffectKey;
use crate::core::event::Event;
use crate::core::id::{AgentId, HandoffId, ItemId};
use crate::core::time::{Deadline, Now};
use crate::core::{self, event::Gone};
use crate::spool::Lane;
use crate::store::{Batch, Error, SeenEvent};
use std::collections::BTreeSet;
use std::thread::JoinHandle;
use std::time::Duration;

/// Most files of one lane, and most other events, in one commit.
pub(super) const BATCH: usize = 256;
/// Most bytes of one lane's files in one commit.
pub(super) const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// A gap of the loop of this length means that the machine or the process stood still, in milliseconds; but not where
/// the loop meant to sleep so long, and woke no later than a loaded machine lets it.
const GAP_MS: u64 = 5_000;
/// How much later than it meant to a loop may wake, in milliseconds.
const LATE_MS: u64 = 500;
/// How much later deadlines are judged after such a gap, in milliseconds: what happened meanwhile comes first.
const GAP_GRACE_MS: u64 = 2_000;
/// The same after a start that takes over what was going on: a delivery that is resumed reads its mark first.
const START_GRACE_MS: u64 = 5_000;
/// The first pause after a failure of the store, and the longest, in milliseconds.
const PAUSE_MS: (u64, u64) = (200, 5_000);
/// How often it is looked whether all of the state file is read, in milliseconds.
const CHECKING_MS: u64 = 100;

/// An agent that is gone, seen when so many listings of the events had begun.
pub(super) struct SeenGone {
    pub(super) agent_id: AgentId,
    pub(super) how: Gone,
    pub(super) listing: u64,
}

/// What waits for a turn.
#[derive(Default)]
pub(super) struct Pending {
    /// Files may have come.
    pub(super) files: bool,
    /// Events that don't come from files.
    pub(super) events: Vec<Event>,
    /// Agents that are gone: judged only after all events of a listing that began later.
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
    /// Listings of the events that have begun.
    pub(super) listing: u64,
    /// How many had begun when a deadline was first seen to be due: it is judged after a later one.
    pub(super) deadline_since: Option<u64>,
    /// The same of a tmux server that counts as lost.
    pub(super) lost_since: Option<u64>,
    /// Why what a request depends on could not be looked at just now.
    pub(super) untold: Option<String>,
    /// The next look at the requests takes a probe with it.
    pub(super) probe: bool,
    /// All events that lay there at the start were taken.
    pub(super) took_events: bool,
    /// All requests that lay there when tmux was known were taken.
    pub(super) took_requests: bool,
    /// What lay in both lanes at the start is decided.
    pub(super) drained: bool,
    /// A former process has left what is to go on: deadlines or effects.
    pub(super) took_over: bool,
    /// Effects that a former process may have begun.
    pub(super) initial: BTreeSet<EffectKey>,
    /// Deadlines are not judged before this.
    pub(super) grace: Option<Deadline>,
    /// Files lie in `state/reap/`.
    pub(super) reap: bool,
    /// Removes them.
    pub(super) reaping: Option<JoinHandle<()>>,
    /// A checkpoint that is on its way to the disk.
    pub(super) syncing: Option<super::checkpoint::Syncing>,
    /// Old files of the spool are looked for.
    pub(super) sweep: bool,
    /// Views and texts of history are looked for.
    pub(super) age: bool,
    /// Old rows of the store are taken away.
    pub(super) purge: bool,
    /// How long the loop meant to sleep before this turn, in milliseconds.
    pub(super) meant_to_sleep_ms: u64,
    /// When the last turn was.
    pub(super) last_turn: Option<Now>,
    /// A lane can't be read: nothing that waits for an empty one is judged.
    pub(super) unreadable: bool,
    /// Failures of the store in a row.
    pub(super) failures: u32,
    /// The store has failed: it is opened and read again then, and until that works nothing is decided.
    pub(super) store_again: Option<Deadline>,
    /// Rows of history that were put into the working set for this batch.
    pub(super) paged_agents: Vec<AgentId>,
    /// The same for handoffs.
    pub(super) paged_handoffs: Vec<HandoffId>,
    /// The same for work items.
    pub(super) paged_items: Vec<ItemId>,
}

impl Pending {
    /// How long the loop may sleep, the next deadline of an agent or a handoff being due in `next_ms`. Zero only where
    /// the next turn gets on with something: what can't be judged now must not keep the loop awake.
    fn sleep(&self, now: &Now, next_ms: Option<u64>) -> Duration {
        let left = |deadline: Option<Deadline>| deadline.map(|deadline| deadline.remaining_ms(now));
        if let Some(again) = left(self.store_again) {
            return Duration::from_millis(left(self.tick).map_or(again, |tick| again.min(tick)));
        }
        let judges = self.drained && !self.unreadable;
        let has_work = self.files || !self.events.is_empty() || (judges && !self.gone.is_empty());
        if has_work || (!self.drained && !self.unreadable && self.tmux_unknown.is_none()) {
            return Duration::ZERO;
        }
        let judged = next_ms.map(|due| due.max(left(self.grace).unwrap_or(0))).into_iter().chain(left(self.tmux_lost));
        let own = [self.look_again, self.tick, self.tmux_unknown].into_iter().filter_map(left);
        let wait = own.chain(judged.filter(|_| judges)).min().unwrap_or(super::project::TICK_MS);
        Duration::from_millis(wait)
    }

    /// Deadlines are judged so much later at least.
    fn give_grace(&mut self, now: &Now, ms: u64) {
        if self.grace.is_none_or(|grace| grace.remaining_ms(now) < ms) {
            self.grace = Some(Deadline::after(now, ms));
        }
    }
}

impl Sidecar {
    /// How long the loop may sleep.
    pub(super) fn sleep(&self) -> Duration {
        let now = self.clock.now();
        let sleep = self.pending.sleep(&now, self.state.next_deadline_ms(&now));
        self.watchdog.patience().map_or(sleep, |patience| sleep.min(patience))
    }

    /// One turn. Everything in it sees the same clock, which was read when the loop woke.
    pub(super) fn turn(&mut self, now: &Now) {
        self.mind_the_gap(now);
        self.tick_if_due(now);
        if !self.store_is_up(now) {
            return;
        }
        let mut batch = match self.gather(now) {
            Ok(batch) => batch,
            Err(error) => return self.store_failed(now, &error),
        };
        if batch.events.is_empty() && batch.files.is_empty() {
            self.store_is_well();
            self.ask_for_panes();
            return;
        }
        let kept: Vec<Event> = std::mem::take(&mut batch.events);
        let took_requests = batch.files.iter().any(|file| file.found.lane == Lane::Requests);
        let (decision, seen) = match self.decide(now, kept.clone(), &mut batch.files) {
            Ok(decided) => decided,
            Err(error) => return self.undecided(now, &error, kept),
        };
        if !decision.is_empty() || !seen.is_empty() {
            let committed = self.store.commit(&Batch { decision: &decision, now: *now, seen: &seen });
            if let Err(error) = committed {
                return self.undecided(now, &error, kept);
            }
        }
        self.store_is_well();
        let probed = decision.probed;
        self.after_commit(now, decision, batch.files);
        self.answered(now, probed, took_requests);
        self.ask_for_panes();
    }

    /// At the end: what was told by then is not to be told again by the next start. Nothing is begun any more.
    pub(super) fn last_word(&mut self, now: &Now, told: Vec<Event>) {
        if told.is_empty() || self.pending.store_again.is_some() {
            return;
        }
        // No effect begins before what lay there is decided, nor after this.
        self.pending.drained = false;
        let committed = self.decide(now, told, &mut []).and_then(|(decision, seen)| {
            self.store.commit(&Batch { decision: &decision, now: *now, seen: &seen }).map(|()| decision)
        });
        match committed {
            Ok(decision) => self.after_commit(now, decision, Vec::new()),
            Err(error) => tracing::warn!(%error, "notices that were told at the end will be told again"),
        }
    }

    /// After a suspend or a long stop, events that lie in the spool come before any deadline.
    pub(super) fn mind_the_gap(&mut self, now: &Now) {
        let meant = self.pending.meant_to_sleep_ms.saturating_add(LATE_MS);
        let gap = self
            .pending
            .last_turn
            .is_some_and(|last| last.boot == now.boot && now.boot_ms.saturating_sub(last.boot_ms) > GAP_MS.max(meant));
        if gap {
            self.answers = super::answers::Answers::begin(now);
            // The tick is due by now as well, and looks into the lanes.
            self.pending.give_grace(now, GAP_GRACE_MS);
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
    ) -> Result<(Decision, Vec<SeenEvent>), Error> {
        let mut whole =
            Decision { next_effect: self.state.next_effect, next_seq: self.state.next_seq, ..Decision::default() };
        let mut seen = Vec::new();
        seen.extend(files.iter().filter_map(|file| file.seen.clone()));
        let (asked, reported): (Vec<Event>, Vec<Event>) =
            files.iter_mut().filter_map(|file| file.event.take()).partition(|event| matches!(event, Event::Request(_)));
        for event in reported.into_iter().chain(events).chain(asked) {
            let event = self.page_in_or_refuse(event)?;
            let turn = Turn { now: *now, entropy: entropy() };
            let judged = event == Event::Deadlines;
            let decision = core::decide(&self.state, event, &turn);
            self.state.apply(&decision);
            whole.absorb(decision);
            if judged && self.state.next_deadline_ms(now) == Some(0) {
                // A deadline that nobody takes away must not keep the loop awake, whatever else it writes.
                tracing::error!("a deadline is due and nothing came of it");
                self.pending.give_grace(now, GAP_GRACE_MS);
            }
        }
        Ok((whole, seen))
    }

    /// What was decided is durable: the files go, others may see it, effects begin.
    fn after_commit(&mut self, now: &Now, decision: Decision, files: Vec<super::intake::Taken>) {
        super::log::decided(&decision);
        self.projector.show(&self.spool, now, &decision);
        self.count_new_failures(&decision);
        self.update_glance(now);
        self.put_away(now, files);
        for key in &decision.dropped {
            self.runner.cancel(*key);
        }
        self.state.evict_past(&decision);
        self.evict_paged();
        self.watch_what_matters(&decision);
        self.learn_new_roles(&decision);
        if self.pending.drained {
            for (key, effect) in decision.effects {
                if self.state.outbox.contains_key(&key) {
                    self.runner.submit(key, effect, false);
                }
            }
        }
    }

    /// What lay in both lanes is decided: what was left unsettled goes on, then panes are looked at, then deadlines are judged.
    pub(super) fn drained(&mut self, now: &Now) {
        self.pending.drained = true;
        if self.pending.took_over {
            self.pending.give_grace(now, START_GRACE_MS);
        }
        self.resume_outbox();
        self.panes.wanted = true;
    }

    /// Nothing is known of the batch: its events come again, and what was committed after all is known to the ledger and
    /// the outbox. Deadlines are judged anew, after another empty scan.
    fn undecided(&mut self, now: &Now, error: &Error, mut events: Vec<Event>) {
        events.retain(|event| !matches!(event, Event::Deadlines | Event::Probe));
        (self.pending.took_events, self.pending.took_requests) = (false, false);
        self.pending.events.splice(0..0, events);
        self.store_failed(now, error);
    }

    /// The store can't be read or written: after a pause it is opened anew and the state read again. Until that works,
    /// the state in memory may hold what was never committed, so nothing is decided on it.
    pub(super) fn store_failed(&mut self, now: &Now, error: &Error) {
        tracing::error!(%error, "the store failed; nothing is decided or disposed of until it can be read again");
        let (first, longest) = PAUSE_MS;
        let pause = (first << self.pending.failures.min(6)).min(longest);
        self.pending.failures = self.pending.failures.saturating_add(1);
        self.pending.store_again = Some(Deadline::after(now, pause));
        self.projector.problem = Some(error.to_string());
        self.projector.heartbeat(&self.spool, now, self.state.server.as_ref());
    }

    fn store_is_up(&mut self, now: &Now) -> bool {
        let Some(again) = self.pending.store_again else { return true };
        if !again.is_due(now) {
            return false;
        }
        match self.reload_state(now) {
            Ok(true) => {}
            Ok(false) => {
                self.pending.store_again = Some(Deadline::after(now, CHECKING_MS));
                return false;
            }
            Err(error) => {
                self.store_failed(now, &error);
                return false;
            }
        }
        self.pending.store_again = None;
        self.pending.files = true;
        true
    }

    /// The turn is over, and nothing of it was lost.
    fn store_is_well(&mut self) {
        self.pending.failures = 0;
        self.projector.problem = None;
    }
}

/// Random bytes for one decision.
fn entropy() -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    bytes[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    bytes
}
