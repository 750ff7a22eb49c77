//! The loop's own deadlines, and since when a due deadline has been waiting for the events that lie in the spool.

use crate::core::event::Event;
use crate::core::time::{Deadline, Now};

/// Pause between two heartbeats, in milliseconds; a client gives up on a sidecar after three of them.
pub(super) const TICK_MS: u64 = 5_000;
/// If the loop pauses for longer than this, in milliseconds, the machine or the process was stopped. Exception: the
/// loop meant to sleep that long, and woke at most [`LATE_MS`] late.
const GAP_MS: u64 = 5_000;
/// How late the loop may wake on a loaded machine, in milliseconds.
const LATE_MS: u64 = 500;
/// How long after such a gap no deadline is handed to `decide`, in milliseconds: events from before the gap come first.
pub(super) const GAP_GRACE_MS: u64 = 2_000;
/// How long the first report from tmux is waited for, in milliseconds.
const TMUX_WITHIN_MS: u64 = 3_000;
/// How long a lost tmux server may take to come back before requests are refused because there is none, in
/// milliseconds.
const TMUX_GRACE_MS: u64 = 1_500;

#[derive(Debug, Default)]
pub(super) struct Timers {
    pub(super) tick: Option<Deadline>,
    /// Until tmux has reported whether it answers, no request is taken, because requests that need tmux would be
    /// refused for no reason. At this time requests are taken anyway.
    pub(super) tmux_unknown: Option<Deadline>,
    /// When a tmux server that has gone is given up.
    tmux_lost: Option<Deadline>,
    /// No deadline is handed to `decide` before this.
    pub(super) grace: Option<Deadline>,
    /// The number of the latest listing of `events/` when a deadline was first seen to be due. The deadline is handed
    /// to `decide` after a later listing.
    deadline_due_at_listing: Option<u64>,
    /// The same for a tmux server that is to be given up.
    lost_at_listing: Option<u64>,
    /// How long the loop meant to sleep before this cycle, in milliseconds.
    pub(super) meant_to_sleep_ms: u64,
    pub(super) last_cycle: Option<Now>,
}

fn is_due(deadline: Option<Deadline>, now: &Now) -> bool {
    deadline.is_some_and(|deadline| deadline.is_due(now))
}

impl Timers {
    /// At the start, the loop waits for the first report from tmux.
    pub(super) fn new(now: &Now) -> Timers {
        Timers { tmux_unknown: Some(Deadline::after(now, TMUX_WITHIN_MS)), ..Timers::default() }
    }

    pub(super) fn is_tick(&self, now: &Now) -> bool {
        self.tick.is_none_or(|tick| tick.is_due(now))
    }

    /// In how many milliseconds a deadline that is due in `next_ms` may be handed to `decide`, or a tmux server that
    /// has gone is given up.
    pub(super) fn judged_in_ms(&self, now: &Now, next_ms: Option<u64>) -> Option<u64> {
        let grace = self.grace.map_or(0, |grace| grace.remaining_ms(now));
        let lost = self.tmux_lost.map(|lost| lost.remaining_ms(now));
        next_ms.map(|due| due.max(grace)).into_iter().chain(lost).min()
    }

    /// No deadline is handed to `decide` for at least this long.
    pub(super) fn give_grace(&mut self, now: &Now, ms: u64) {
        if self.grace.is_none_or(|grace| grace.remaining_ms(now) < ms) {
            self.grace = Some(Deadline::after(now, ms));
        }
    }

    /// Notes a cycle. Returns whether the machine or the process was stopped before it: then events in the spool come
    /// before any deadline.
    pub(super) fn mind_the_gap(&mut self, now: &Now) -> bool {
        let meant = self.meant_to_sleep_ms.saturating_add(LATE_MS);
        let last = self.last_cycle.replace(*now);
        let gap = last
            .is_some_and(|last| last.boot == now.boot && now.boot_ms.saturating_sub(last.boot_ms) > GAP_MS.max(meant));
        if gap {
            self.give_grace(now, GAP_GRACE_MS);
        }
        gap
    }

    /// tmux has reported whether it answers. Returns whether the loop was waiting for that.
    pub(super) fn tmux_said(&mut self) -> bool {
        self.tmux_unknown.take().is_some()
    }

    /// The server has gone: it may come back.
    pub(super) fn tmux_gone(&mut self, now: &Now) {
        self.tmux_lost = Some(Deadline::after(now, TMUX_GRACE_MS));
    }

    pub(super) fn tmux_back(&mut self) {
        self.tmux_lost = None;
    }

    /// Whether requests need not wait for tmux any more: it has reported, or the deadline for its report has passed.
    pub(super) fn knows_tmux(&mut self, now: &Now) -> bool {
        self.tmux_unknown = self.tmux_unknown.filter(|deadline| !deadline.is_due(now));
        self.tmux_unknown.is_none()
    }

    /// Remembers at which listing of `events/` something was first seen to be due. Only events that lay there by then
    /// come before it: if later ones did too, a flood of events would defer it for ever. Returns whether anything is
    /// due.
    pub(super) fn note_what_is_due(&mut self, events_listing: u64, now: &Now, next_ms: Option<u64>) -> bool {
        let (deadline, lost) = (self.deadline_is_due(now, next_ms), is_due(self.tmux_lost, now));
        let seen_at = |is_due: bool, known: Option<u64>| is_due.then(|| known.unwrap_or(events_listing));
        self.deadline_due_at_listing = seen_at(deadline, self.deadline_due_at_listing);
        self.lost_at_listing = seen_at(lost, self.lost_at_listing);
        deadline || lost
    }

    fn deadline_is_due(&self, now: &Now, next_ms: Option<u64>) -> bool {
        let in_grace = self.grace.is_some_and(|grace| !grace.is_due(now));
        !in_grace && next_ms == Some(0)
    }

    /// What is handed to `decide` after this listing of `events/`. `has_server`: a tmux server is known, so it can be
    /// lost.
    pub(super) fn release(
        &mut self,
        events_listing: u64,
        now: &Now,
        next_ms: Option<u64>,
        has_server: bool,
    ) -> Vec<Event> {
        let is_before = |seen_at: Option<u64>| seen_at.is_some_and(|seen_at| seen_at < events_listing);
        let mut events = Vec::new();
        if is_before(self.lost_at_listing) && is_due(self.tmux_lost, now) {
            (self.tmux_lost, self.lost_at_listing) = (None, None);
            events.extend(has_server.then_some(Event::Server(None)));
        }
        if is_before(self.deadline_due_at_listing) && self.deadline_is_due(now, next_ms) {
            self.deadline_due_at_listing = None;
            events.push(Event::Deadlines);
        }
        events
    }
}
