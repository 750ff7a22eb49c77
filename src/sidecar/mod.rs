//! The loop: the only place that reads the clock, once each time it wakes; the only caller of `decide` and of `commit`.
//!
//! Read `turn` for what one turn does, `intake` for how files become events, `answers` for whether they are answered, `clis` for the agents above a hook, `project`
//! for what is written for others, `checkpoint` for how it comes onto the disk,
//! `again` for what the last run left unwritten, `work` for items, rules and roles, `damage` for rows that can't be
//! understood, `watch` for processes, panes and documents, `start` for the beginning, `signals` for what ends it, `log` for what
//! is said, `glance` for the line in tmux; this file waits and ends.

mod again;
#[cfg(test)]
mod again_tests;
mod answers;
mod checkpoint;
mod clis;
mod damage;
#[cfg(test)]
mod damage_tests;
mod facts;
#[cfg(test)]
mod flood_tests;
mod glance;
mod ground;
#[cfg(test)]
mod growth_tests;
mod intake;
mod log;
mod project;
#[cfg(test)]
mod short_tests;
mod signals;
mod start;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod time_tests;
mod turn;
mod watch;
mod work;
#[cfg(test)]
mod year_tests;

use crate::clock::Clock;
use crate::clock::alarm::Alarm;
use crate::config::Home;
use crate::core::effect::{Effect, Outcome};
use crate::core::event::Event;
use crate::core::pane::Process;
use crate::core::state::State;
use crate::core::time::Now;
use crate::process::ExitWatch;
use crate::runner::{Ended, Runner, Tools};
use crate::service::watchdog::Watchdog;
use crate::spool::watch::Hints;
use crate::spool::{Spool, Watch};
use crate::store::Store;
use crate::tmux::{Notice, Tmux};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

pub use ground::fault_of_prompts;
pub use start::{Options, run};

/// How long running effects may take to stop at the end.
const STOP_WITHIN: Duration = Duration::from_secs(3);
/// How long a lost tmux server may take to come back before requests are told that there is none.
const TMUX_GRACE: Duration = Duration::from_millis(1500);

/// What the loop was woken by.
enum Input {
    /// Files may have come.
    Hint,
    /// It is time.
    Timer,
    /// An effect has ended.
    Ended(Ended),
    /// tmux has told something.
    Tmux(Notice),
    /// A process has ended.
    Exit(Process),
    /// The list of panes that was asked for.
    Panes(watch::Listing),
    /// The configuration is to be read again.
    Reload,
    /// It is to end.
    Stop,
}

/// The sidecar: everything that one loop needs.
pub(crate) struct Sidecar {
    home: Home,
    clock: Clock,
    store: Store,
    spool: Spool,
    watch: Watch,
    state: State,
    runner: Runner,
    tools: Arc<Tools>,
    tmux: Tmux,
    exits: ExitWatch,
    panes: watch::Panes,
    projector: project::Projector,
    glance: glance::Glance,
    pending: turn::Pending,
    rules: work::Watched,
    rejected: u64,
    answers: answers::Answers,
    watchdog: Watchdog,
}

/// Where the loop's inputs come from.
pub(crate) struct Sources {
    hints: Hints,
    ended: mpsc::Receiver<Ended>,
    notices: mpsc::Receiver<Notice>,
    exits: mpsc::Receiver<Process>,
    listings: mpsc::Receiver<watch::Listing>,
    signals: signals::Signals,
    alarm: Alarm,
}

impl Sources {
    /// Waits for the next input, at most for `sleep`. Only builds it; what it means is decided elsewhere.
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

    /// What else has come by now, without waiting: it goes into the same commit.
    fn rest(&mut self) -> Vec<Input> {
        let mut rest = Vec::new();
        while rest.len() < turn::BATCH {
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
    /// Runs until it is told to end, and closes the store.
    async fn run(mut self, mut sources: Sources) {
        let sources = &mut sources;
        loop {
            let sleep = self.sleep();
            self.pending.meant_to_sleep_ms = u64::try_from(sleep.as_millis()).unwrap_or(u64::MAX);
            let first = sources.next(sleep).await;
            let now = self.clock.now();
            let mut stop = false;
            for input in std::iter::once(first).chain(sources.rest()) {
                stop |= self.take(input, &now);
            }
            if stop {
                break;
            }
            self.turn(&now);
            // Whoever answers nobody is to be started anew; whoever says what is in the way would come to it again.
            if !self.projector.is_silent() {
                self.watchdog.turned(self.clock.now().boot_ms);
            }
        }
        self.end(sources).await;
        self.store.close();
    }

    /// Notes one input. Says whether the loop is to end.
    fn take(&mut self, input: Input, now: &Now) -> bool {
        match input {
            Input::Hint => self.pending.files = true,
            Input::Timer => {}
            Input::Ended(ended) => {
                self.runner.finished(ended.key);
                self.pending.events.push(Event::Settled { key: ended.key, outcome: ended.outcome });
            }
            Input::Tmux(notice) => self.tmux_said(notice, now),
            Input::Exit(process) => self.process_ended(&process),
            Input::Panes(listing) => self.panes_listed(listing),
            Input::Reload => self.reload(now),
            Input::Stop => return true,
        }
        false
    }

    fn tmux_said(&mut self, notice: Notice, now: &Now) {
        if !matches!(notice, Notice::PanesChanged) && self.pending.tmux_unknown.take().is_some() {
            self.pending.files = true;
        }
        match notice {
            Notice::Connected(info) => {
                tracing::info!(server_pid = info.id.pid, "tmux answers");
                self.pending.tmux_lost = None;
                // Only the last word counts, also where an earlier one could not be decided yet.
                self.pending.events.retain(|event| !matches!(event, Event::Server(_)));
                if self.state.server != Some(info.id) {
                    self.pending.events.push(Event::Server(Some(info.id)));
                }
                self.panes.wanted = true;
                self.glance.connected();
            }
            Notice::Disconnected { reason } => {
                tracing::warn!(
                    reason,
                    "tmux does not answer: until it does, agents can be neither started nor reached"
                );
                let grace = u64::try_from(TMUX_GRACE.as_millis()).unwrap_or(u64::MAX);
                self.pending.tmux_lost = Some(crate::core::time::Deadline::after(now, grace));
            }
            Notice::PanesChanged => self.panes.wanted = true,
        }
    }

    /// Ends in good order: nothing is lost by it, for what was not settled is in the outbox.
    async fn end(&mut self, sources: &mut Sources) {
        self.runner.stop_all();
        tracing::info!("ending");
        self.watchdog.stopping();
        let deadline = tokio::time::Instant::now() + STOP_WITHIN;
        let mut told = Vec::new();
        while self.runner.running() > 0 {
            let Ok(Some(ended)) = tokio::time::timeout_at(deadline, sources.ended.recv()).await else { break };
            self.runner.finished(ended.key);
            let is_notice = matches!(self.state.outbox.get(&ended.key), Some(Effect::Tell(_) | Effect::Notify(_)));
            if is_notice && ended.outcome == Outcome::Done {
                told.push(Event::Settled { key: ended.key, outcome: ended.outcome });
            }
        }
        let now = self.clock.now();
        self.last_word(&now, told);
        self.tmux.close().await;
        self.last_checkpoint(&now);
        self.projector.withdraw(&self.spool);
    }

    /// The disk has so long for it and no longer; what it does not confirm is compared at the next start.
    fn last_checkpoint(&mut self, now: &Now) {
        self.confirm_checkpoint(now, STOP_WITHIN);
        self.begin_checkpoint();
        self.confirm_checkpoint(now, STOP_WITHIN);
    }
}
