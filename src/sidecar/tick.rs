//! What is done at each tick.

use super::parts::Sidecar;
use super::timers::TICK_MS;
use super::watches::grown_documents;
use crate::core::time::{Deadline, Now};
use std::time::Duration;

impl Sidecar {
    /// Confirms and begins checkpoints. If a tick is due, also checks the folders, writes what could not be written,
    /// writes the heartbeat, and tidies up.
    pub(super) fn tick_if_due(&mut self, now: &Now) {
        let is_tick = self.timers.is_tick(now);
        self.confirm_checkpoint(now, Duration::ZERO);
        if self.projection.wants_checkpoint(is_tick) {
            self.begin_checkpoint();
        }
        if !is_tick {
            return;
        }
        let pause = u64::try_from(self.watches.folders.tick().as_millis()).unwrap_or(TICK_MS);
        self.timers.tick = Some(Deadline::after(now, pause));
        self.intake.files = true;
        self.intake.check_folders(&mut self.watches.folders, &mut self.spool);
        if !self.health.is_down() {
            self.events.extend(grown_documents(&self.home, &self.state));
            if let Err(error) = self.store.check_in_place() {
                self.store_failed(now, &error);
            }
        }
        self.projection.retry(&self.spool);
        self.liveness.look_for_thread();
        self.intake.probe = true;
        self.answers.look(self.spool.waiting_requests(), now);
        self.concerns.look_at_program(&self.tools.program);
        self.heartbeat(now);
        let looks_further = self.tidy.ticked();
        self.status_line.judge_all(&self.spool, &self.state);
        self.status_line.update(&self.state, now);
        self.watchdog.status(self.status_line.counts(&self.state));
        self.look_at_rules(now);
        if looks_further {
            self.watches.panes_wanted = true;
            self.learn_roles();
        }
        self.tidy_up(now);
    }

    fn tidy_up(&mut self, now: &Now) {
        self.liveness.note_thread(&self.tidy.empty_trash(&self.spool));
        self.liveness.note_thread(&self.tidy.remove_stand_ins());
        if !self.health.is_down() {
            self.write_wanted_views();
            if let Err(error) = self.store.pack() {
                tracing::warn!(%error, "could not pack the history in the state file");
            }
        }
        self.tidy.give_back_memory();
        self.intake.hold_reason = self.spool.hold_reason();
        self.tidy.clean_spool(&mut self.spool, (&self.state, &self.store), now);
        // What lies in the lanes must not be forgotten, or the next start would handle it a second time.
        let is_safe = self.intake.drained && self.spool.unmoved().is_none() && self.intake.hold_reason.is_none();
        if is_safe
            && !self.health.is_down()
            && let Err(error) = self.tidy.clean_store(&mut self.store, now)
        {
            self.store_failed(now, &error);
        }
    }

    /// Writes the views again that somebody has asked for, from the store.
    fn write_wanted_views(&mut self) {
        for (name, id) in self.spool.wanted_views() {
            self.reproject_view(&format!("agents/{id}"), None);
            self.reproject_view(&format!("handoffs/{id}"), None);
            self.reproject_view(&format!("work/{id}"), None);
            self.spool.remove_wanted(&name);
        }
    }

    /// Starts a sync of what was written so far, unless the store must be opened again first.
    pub(super) fn begin_checkpoint(&mut self) {
        if !self.health.is_down() {
            let ledger_below = self.store.next_ledger();
            self.liveness.note_thread(&self.checkpoints.begin(&mut self.projection, &self.spool, ledger_below));
        }
    }

    /// Notes in the store that a checkpoint is on the disk. Waits at most `wait` for its sync.
    pub(super) fn confirm_checkpoint(&mut self, now: &Now, wait: Duration) {
        let Some(checkpoint) = self.checkpoints.confirmed(&mut self.projection, wait) else { return };
        if self.health.is_down() {
            return self.projection.give_back(checkpoint);
        }
        if let Err(error) = self.store.checkpoint(&checkpoint) {
            self.projection.give_back(checkpoint);
            self.store_failed(now, &error);
        }
    }
}
