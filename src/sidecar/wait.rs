//! The loop itself: it waits for inputs, reads the clock each time it wakes, runs a cycle, and ends.

use super::intake::BATCH;
use super::parts::Sidecar;
use super::signals::{END_WITHIN, Signals};
use super::watches::PaneList;
use crate::clock::alarm::Alarm;
use crate::core::effect::{Effect, Outcome};
use crate::core::event::Event;
use crate::core::pane::Process;
use crate::core::time::Now;
use crate::runner::SettledEffect;
use crate::spool::watch::Hints;
use crate::tmux::TmuxNotice;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long running effects may take to stop at the end.
const STOP_WITHIN: Duration = Duration::from_secs(3);
/// How long each of the two last syncs may take.
const SYNC_WITHIN: Duration = Duration::from_secs(3);
/// When the end has taken this long, tasuki leaves tmux as it is. It is longer than `tmux` waits for another home that
/// holds the lock between homes.
const TMUX_UNTIL: Duration = Duration::from_secs(9);
/// How long the threads of the runtime may take at the end.
pub(super) const THREADS_WITHIN: Duration = Duration::from_secs(2);

// Whatever hangs at the end, the other parts still get their time.
const _: () = assert!(
    STOP_WITHIN.as_secs() < TMUX_UNTIL.as_secs()
        && TMUX_UNTIL.as_secs() + 2 * SYNC_WITHIN.as_secs() + THREADS_WITHIN.as_secs() < END_WITHIN.as_secs()
);

enum Input {
    Hint,
    Timer,
    Ended(SettledEffect),
    Tmux(TmuxNotice),
    Exit(Process),
    /// The list of panes that was asked for.
    Panes(PaneList),
    /// The configuration is to be read again.
    Reload,
    Stop,
}

pub(crate) struct Sources {
    pub(super) hints: Hints,
    pub(super) ended: mpsc::Receiver<SettledEffect>,
    pub(super) notices: mpsc::Receiver<TmuxNotice>,
    pub(super) exits: mpsc::Receiver<Process>,
    pub(super) listings: mpsc::Receiver<PaneList>,
    pub(super) signals: Signals,
    pub(super) alarm: Alarm,
}

impl Sources {
    /// Waits at most `sleep` for the next input. What the input means is decided elsewhere.
    async fn next(&mut self, sleep: Duration) -> Input {
        tokio::select! {
            biased;
            () = self.signals.stop.notified() => Input::Stop,
            () = self.signals.reload.notified() => Input::Reload,
            Some(ended) = self.ended.recv() => Input::Ended(ended),
            Some(process) = self.exits.recv() => Input::Exit(process),
            Some(notice) = self.notices.recv() => Input::Tmux(notice),
            Some(listing) = self.listings.recv() => Input::Panes(listing),
            () = self.hints.next() => Input::Hint,
            () = self.alarm.ring_after(sleep) => Input::Timer,
        }
    }

    /// Other effects and processes that have ended by now, without waiting: they go into the same commit.
    fn rest(&mut self) -> Vec<Input> {
        let mut rest = Vec::new();
        while rest.len() < BATCH {
            if let Ok(ended) = self.ended.try_recv() {
                rest.push(Input::Ended(ended));
            } else if let Ok(process) = self.exits.try_recv() {
                rest.push(Input::Exit(process));
            } else {
                break;
            }
        }
        rest
    }
}

impl Sidecar {
    /// Runs the loop until it is told to end, and closes the store.
    pub(super) async fn run(mut self, mut sources: Sources) {
        let sources = &mut sources;
        loop {
            let sleep = self.sleep();
            self.timers.meant_to_sleep_ms = u64::try_from(sleep.as_millis()).unwrap_or(u64::MAX);
            let first = sources.next(sleep).await;
            let now = self.clock.now();
            let mut stop = false;
            for input in std::iter::once(first).chain(sources.rest()) {
                stop |= self.take(input, &now);
            }
            if stop {
                break;
            }
            self.cycle(&now);
            if std::mem::take(&mut self.liveness.is_tmux_new) {
                self.heartbeat(&now);
            }
            // A sidecar that answers no requests should be restarted, unless it knows the obstacle: a restart would not
            // remove that.
            if !self.is_silent() {
                self.watchdog.cycled(self.clock.now().boot_ms);
            }
        }
        self.end(sources).await;
        self.store.close();
    }

    /// Notes one input. Returns whether the loop is to end.
    fn take(&mut self, input: Input, now: &Now) -> bool {
        match input {
            Input::Hint => self.intake.files = true,
            Input::Timer => {}
            Input::Ended(ended) => {
                self.runner.finished(ended.key);
                self.events.push(Event::Settled { key: ended.key, outcome: ended.outcome });
            }
            Input::Tmux(notice) => self.tmux_said(notice, now),
            Input::Exit(process) => self.watches.process_ended(&process, &self.state, self.intake.events_listing),
            Input::Panes(listing) => self.watches.panes_listed(listing, &self.state, self.intake.events_listing),
            Input::Reload => self.reload(now),
            Input::Stop => return true,
        }
        false
    }

    fn tmux_said(&mut self, notice: TmuxNotice, now: &Now) {
        if !matches!(notice, TmuxNotice::PanesChanged) && self.timers.tmux_said() {
            self.intake.files = true;
        }
        match notice {
            TmuxNotice::Connected(info) => {
                tracing::debug!(server_pid = info.id.pid, "tmux answers");
                self.timers.tmux_back();
                // Only the latest report counts, even if an earlier one could not be decided yet.
                self.events.retain(|event| !matches!(event, Event::Server(_)));
                if self.state.server != Some(info.id) {
                    self.events.push(Event::Server(Some(info.id)));
                }
                self.watches.panes_wanted = true;
                self.liveness.is_tmux_new = true;
                self.status_line.connected();
            }
            TmuxNotice::Disconnected { reason } => {
                tracing::warn!(
                    reason,
                    "tmux does not answer: until tmux answers, tasuki can neither start nor reach agents"
                );
                self.timers.tmux_gone(now);
            }
            TmuxNotice::PanesChanged => self.watches.panes_wanted = true,
        }
    }

    /// Ends properly: nothing is lost, because what was not settled is in the outbox.
    async fn end(&mut self, sources: &mut Sources) {
        let begun = tokio::time::Instant::now();
        self.runner.stop_all();
        tracing::info!("ending");
        self.watchdog.stopping();
        let deadline = begun + STOP_WITHIN;
        let mut told = Vec::new();
        while self.runner.running() > 0 {
            let Ok(Some(ended)) = tokio::time::timeout_at(deadline, sources.ended.recv()).await else { break };
            self.runner.finished(ended.key);
            let is_notice = matches!(
                self.state.outbox.get(&ended.key).map(|pending| &pending.effect),
                Some(Effect::NotifyOperator(_) | Effect::Notify(_))
            );
            if is_notice && ended.outcome == Outcome::Done {
                told.push(Event::Settled { key: ended.key, outcome: ended.outcome });
            }
        }
        let now = self.clock.now();
        self.last_word(&now, told);
        if tokio::time::timeout_at(begun + TMUX_UNTIL, self.tools.tmux.close()).await.is_err() {
            tracing::warn!("leaving tmux takes too long: tasuki's options and its session stay in the tmux server");
        }
        self.last_checkpoint(&now);
        self.projection.withdraw(&self.spool);
    }

    /// Gives the disk limited time for a last sync; the next start compares what it does not cover.
    fn last_checkpoint(&mut self, now: &Now) {
        self.confirm_checkpoint(now, SYNC_WITHIN);
        self.begin_checkpoint();
        self.confirm_checkpoint(now, SYNC_WITHIN);
    }
}
