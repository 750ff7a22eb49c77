//! One cycle of the loop: gather what has happened, decide it event by event, commit once, then let others see it and
//! start the effects.

use super::corrupt::without_corrupt;
use super::intake_item::IntakeItem;
use super::parts::Sidecar;
use super::timers::{GAP_GRACE_MS, TICK_MS};
use super::watches::grown_documents;
use crate::core;
use crate::core::decision::{Cycle, Decision};
use crate::core::effect::{Effect, EffectKey};
use crate::core::event::Event;
use crate::core::rows::outbox::{Pending, Waiter};
use crate::core::time::{Deadline, Now};
use crate::spool::Lane;
use crate::store::{Batch, Error, SeenEvent};
use std::time::Duration;

impl Sidecar {
    /// How long the loop may sleep. It is zero only if the next cycle can do something: a death or a deadline that
    /// can't be judged yet must not keep the loop awake.
    pub(super) fn sleep(&self) -> Duration {
        let now = self.clock.now();
        let sleep = Duration::from_millis(self.rests_ms(&now));
        self.watchdog.patience().map_or(sleep, |patience| sleep.min(patience))
    }

    fn rests_ms(&self, now: &Now) -> u64 {
        let left = |deadline: Option<Deadline>| deadline.map(|deadline| deadline.remaining_ms(now));
        if let Some(again) = left(self.health.again) {
            return left(self.timers.tick).map_or(again, |tick| again.min(tick));
        }
        let may_release = self.intake.may_release();
        let has_work = self.intake.files || !self.events.is_empty() || (may_release && !self.watches.gone.is_empty());
        if has_work || (self.intake.is_draining() && self.timers.tmux_unknown.is_none()) {
            return 0;
        }
        let judged = may_release.then(|| self.timers.judged_in_ms(now, self.state.next_deadline_ms(now))).flatten();
        let own = [self.intake.look_again, self.timers.tick, self.timers.tmux_unknown].map(left);
        own.into_iter().flatten().chain(judged).min().unwrap_or(TICK_MS)
    }

    /// Runs one cycle. Everything in it sees the same clock, which was read when the loop woke.
    pub(super) fn cycle(&mut self, now: &Now) {
        if self.timers.mind_the_gap(now) {
            // After such a gap the tick is due too, and it scans the lanes.
            self.answers.begin(now);
        }
        self.tick_if_due(now);
        if !self.store_is_up(now) {
            return;
        }
        let mut batch = match self.gather(now) {
            Ok(batch) => batch,
            Err(error) => return self.undecided(now, &error, Vec::new()),
        };
        if batch.events.is_empty() && batch.files.is_empty() {
            self.health.well();
            return self.watches.ask_for_panes(&self.tools.tmux, &self.state);
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
        self.health.well();
        let probed = decision.probed;
        self.after_commit(now, decision, batch.files);
        self.answers.answered(now, probed, took_requests, self.intake.drained);
        self.watches.ask_for_panes(&self.tools.tmux, &self.state);
    }

    /// At the end: records which notices were sent (`told`), so that the next start does not send them again. No effect
    /// is started any more.
    pub(super) fn last_word(&mut self, now: &Now, told: Vec<Event>) {
        if told.is_empty() || self.health.is_down() {
            return;
        }
        // `after_commit` starts effects only while this is true.
        self.intake.drained = false;
        let committed = self.decide(now, told, &mut []).and_then(|(decision, seen)| {
            self.store.commit(&Batch { decision: &decision, now: *now, seen: &seen }).map(|()| decision)
        });
        match committed {
            Ok(decision) => self.after_commit(now, decision, Vec::new()),
            Err(error) => {
                tracing::warn!(%error, "could not record that the last notices were sent; the next start sends them \
                                        again")
            }
        }
    }

    /// Decides the events one after the other, each on the state that the one before it left: first what agents
    /// reported, then the sidecar's own events, then requests.
    fn decide(
        &mut self,
        now: &Now,
        events: Vec<Event>,
        files: &mut [IntakeItem],
    ) -> Result<(Decision, Vec<SeenEvent>), Error> {
        let mut whole =
            Decision { next_effect: self.state.next_effect, next_seq: self.state.next_seq, ..Decision::default() };
        self.state.tmux_problem = self.tools.tmux.problem();
        let mut seen = Vec::new();
        seen.extend(files.iter().filter_map(|file| file.seen.clone()));
        let (asked, reported): (Vec<Event>, Vec<Event>) =
            files.iter_mut().filter_map(|file| file.event.take()).partition(|event| matches!(event, Event::Request(_)));
        for event in reported.into_iter().chain(events).chain(asked) {
            let event = match self.history.loader(&self.store, &mut self.state).load_history(&event) {
                Ok(()) => event,
                Err(error) => without_corrupt(event, error)?,
            };
            let cycle = Cycle { now: *now, entropy: entropy() };
            let judged = event == Event::Deadlines;
            let decision = core::decide(&self.state, event, &cycle);
            self.state.apply(&decision);
            whole.absorb(decision);
            if judged && self.state.next_deadline_ms(now) == Some(0) {
                // A deadline that no decision removes must not keep the loop awake, even if the decision has changed
                // something else.
                tracing::error!("a deadline has passed and nothing handled it");
                self.timers.give_grace(now, GAP_GRACE_MS);
            }
        }
        Ok((whole, seen))
    }

    /// The decision is durable: shows it to others, moves its files out of the spool, and starts its effects.
    fn after_commit(&mut self, now: &Now, decision: Decision, files: Vec<IntakeItem>) {
        super::log::decided(&decision);
        self.projection.show(&self.spool, now, &decision, &self.state.settings);
        self.status_line.judge(&self.spool, &decision, &self.state.settings);
        self.status_line.update(&self.state, now);
        // The sidecar's own probe passes through here every few seconds, and decides nothing.
        self.tidy.has_decided |= !decision.is_empty() || !files.is_empty();
        for item in files {
            if let Some((place, json)) = &item.result {
                self.projection.put(&self.spool, place.clone(), &json.to_string());
            }
            self.intake.finish_file(&mut self.spool, &item, now);
            self.tidy.has_trash = true;
        }
        for key in &decision.dropped {
            self.runner.cancel(*key);
        }
        self.state.evict_past(&decision);
        self.history.evict(&mut self.state);
        self.watches.follow(&decision, &self.state, (&self.home, &self.spool));
        if !decision.handoffs.is_empty() {
            self.events.extend(grown_documents(&self.home, &self.state));
        }
        self.events.extend(self.learned.new_roles(&self.home, &decision));
        if self.intake.drained {
            for (key, pending) in decision.effects {
                if self.state.outbox.contains_key(&key) {
                    self.submit(key, pending, false);
                }
            }
        }
    }

    /// Hands an effect to the runner. An effect that compares the document gets the recorded text from the store.
    pub(super) fn submit(&mut self, key: EffectKey, pending: Pending, resumed: bool) {
        let Pending { waiter, mut effect } = pending;
        if let (Waiter::Step(id), Effect::CompareDocument { text, .. }) = (waiter, &mut effect) {
            match self.store.document(&id) {
                Ok(recorded) => *text = recorded,
                Err(error) => tracing::warn!(%error, handoff = %id, "the recorded text of a document can't be read"),
            }
        }
        self.runner.submit(key, effect, resumed);
    }

    /// After a failure, when nobody knows whether the batch was committed. Its events are decided again, and the ledger
    /// and the outbox tell what was committed after all. Its files are listed again, in their order, because the scan
    /// has already taken them from its list. Deadlines are not kept: they are judged again after another listing of
    /// `events/`.
    fn undecided(&mut self, now: &Now, error: &Error, mut events: Vec<Event>) {
        events.retain(|event| !matches!(event, Event::Deadlines | Event::Probe));
        (self.intake.took_events, self.intake.took_requests) = (false, false);
        self.spool.list_all_again();
        self.events.splice(0..0, events);
        self.store_failed(now, error);
    }

    /// After a failure of the store and a pause, opens it again and loads the state. Also if views were lost, because
    /// all of them are written again from the store then.
    fn store_is_up(&mut self, now: &Now) -> bool {
        if std::mem::take(&mut self.intake.views_lost) {
            tracing::warn!("folders of views were removed or replaced; writing all views again");
            self.health.again.get_or_insert(Deadline::after(now, 0));
        }
        let Some(again) = self.health.again else { return true };
        if !again.is_due(now) {
            return false;
        }
        match self.reload_state(now) {
            Ok(true) => {
                self.health.again = None;
                self.intake.files = true;
                return true;
            }
            Ok(false) => self.health.wait_for_check(now),
            Err(error) => self.store_failed(now, &error),
        }
        false
    }
}

fn entropy() -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    bytes[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    bytes
}
