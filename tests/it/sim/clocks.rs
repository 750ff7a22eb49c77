//! Whether time is kept: no limit falls before its time, whatever the wall clock says and however often the machine
//! reboots, and none falls twice.

use super::disk::Disk;
use super::world::World;
use std::collections::{BTreeMap, BTreeSet};
use tasuki::core::id::HandoffId;
use tasuki::core::rows::handoff::{Handoff, HandoffError, Step};
use tasuki::core::settings::Limits;

/// What failures say that come of a limit, and of nothing else.
const FALLEN: [&str; 12] = [
    "The agent stayed busy until the time limit",
    "The agent did not become ready before the time limit",
    "The instruction was not typed in time",
    "The agent did not end its turn in time",
    "The agent did not end after its exit command",
    "The agent's pane is gone, and its process did not end in time",
    "The agent did not begin a new session",
    "The successor was not ready in time",
    "The agent did not register and become ready in time",
    "The agent waits for input, but its hooks did not report its session in time (`tasuki doctor` checks the hooks)",
    "The successor did not answer its priming in time",
    "The briefing was not typed in time",
];

/// A moment as the user lives it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Moment {
    /// Time that has passed, sleep of the machine included.
    lived_ms: u64,
    /// How often the wall clock was set.
    jumps: u64,
    /// How often the machine has started.
    boots: u64,
}

/// A handoff as it was last seen.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    spans: usize,
    entered: Moment,
    /// Since when its agent is waited for.
    waiting: Option<Moment>,
    /// How often the time of its acknowledgement has begun, and when it did last.
    round: u32,
    asked: Moment,
}

/// The world's true time, and when each handoff entered its step by it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times {
    now: Moment,
    jumps_before_boot: u64,
    counted_boots: u64,
    seen: BTreeMap<HandoffId, Seen>,
    fallen: BTreeSet<Step>,
}

impl Times {
    pub(crate) fn passed(&mut self, ms: u64) {
        self.now.lived_ms += ms;
    }

    pub(crate) fn jumped(&mut self) {
        self.now.jumps += 1;
    }

    /// The machine has started; a clock that was set while it did was set before.
    pub(crate) fn booted(&mut self) {
        self.now.boots += 1;
        self.jumps_before_boot = self.now.jumps;
    }

    /// The sidecar has started: it counts anew what it finds. A clock that was set between the machine's start and that
    /// was set before, too.
    pub(crate) fn counted_anew(&mut self) {
        if self.counted_boots != self.now.boots {
            self.counted_boots = self.now.boots;
            self.jumps_before_boot = self.now.jumps;
        }
    }

    /// The steps whose limits have fallen in this world.
    pub(crate) fn fallen(&self) -> impl Iterator<Item = String> {
        self.fallen.iter().map(|step| format!("limit of {}", step.as_str()))
    }

    /// Looks at every handoff that has moved.
    pub(crate) fn note(&mut self, disk: &Disk, limits: &Limits) -> Result<(), String> {
        for handoff in disk.handoffs() {
            let mut seen = self.seen.get(&handoff.handoff_id).copied().unwrap_or_default();
            let round = handoff.ack.as_ref().map_or(0, |ack| ack.round);
            if round != seen.round {
                (seen.round, seen.asked) = (round, self.now);
                self.seen.insert(handoff.handoff_id, seen);
            }
            let new = handoff.steps.len().saturating_sub(seen.spans);
            if new == 0 {
                continue;
            }
            if new > 1 {
                seen.entered = self.now;
            }
            let fallen =
                handoff.error.as_ref().filter(|_| handoff.step == Step::Failed).filter(|error| is_fallen(error));
            if let Some(error) = fallen {
                self.fallen.insert(error.step);
                let since = match error.step {
                    Step::Waiting => seen.waiting.unwrap_or(self.now),
                    Step::Acknowledging => seen.asked,
                    _ => seen.entered,
                };
                self.not_early(handoff, error, since, limits)?;
            }
            seen.waiting = match handoff.step {
                Step::Waiting | Step::Instructing => seen.waiting.or(Some(self.now)),
                _ => None,
            };
            (seen.spans, seen.entered) = (handoff.steps.len(), self.now);
            self.seen.insert(handoff.handoff_id, seen);
        }
        Ok(())
    }

    /// Across a start of the machine only the wall clock is left to go by; if that was set as well, nothing is known.
    fn not_early(&self, handoff: &Handoff, error: &HandoffError, since: Moment, limits: &Limits) -> Result<(), String> {
        let is_known = since.boots == self.now.boots || since.jumps >= self.jumps_before_boot;
        let ack = handoff.ack.as_ref().filter(|_| error.step == Step::Acknowledging);
        let limit = ack.map_or(limit_of(error.step, limits), |ack| 2 * ack.limit_ms);
        let passed = self.now.lived_ms - since.lived_ms;
        if is_known && passed < limit {
            let (id, step) = (handoff.handoff_id, error.step.as_str());
            return Err(format!("handoff {id}: {step} failed after {passed} of {limit} ms: {}", error.message));
        }
        Ok(())
    }
}

/// How long the contract gives a step, in milliseconds; 0 for one without a limit.
fn limit_of(step: Step, limits: &Limits) -> u64 {
    match step {
        Step::Waiting => limits.waiting_ms,
        Step::Instructing => limits.instructing_ms,
        Step::Writing => limits.writing_ms,
        Step::Checking => limits.checking_ms,
        Step::Ending => limits.ending_ms,
        Step::Starting => limits.starting_ms,
        Step::Priming => limits.priming_ms,
        Step::Briefing => limits.briefing_ms,
        Step::Reading => limits.reading_ms,
        Step::Recording | Step::Acknowledging | Step::Done | Step::Failed | Step::Cancelled => 0,
    }
}

impl World {
    pub(crate) fn time_passes(&mut self) {
        let ms = match self.rng.below(10) {
            // The machine sleeps: the clock that counts goes on, and nothing else does.
            0 => 700_000,
            1 => 70_000,
            2..5 => self.rng.below(8_000),
            _ => self.rng.below(500),
        };
        self.advance(ms);
        if self.faults_on && self.rng.chance(10) {
            self.wall_jumps();
        }
    }

    /// Ten years, either way: within one boot the wall clock decides nothing.
    pub(crate) fn wall_jumps(&mut self) {
        self.times.jumped();
        self.now.wall_ms += if self.rng.chance(50) { 315_000_000_000 } else { -315_000_000_000 };
    }

    pub(crate) fn advance(&mut self, ms: u64) {
        self.times.passed(ms);
        self.now.boot_ms += ms;
        self.now.wall_ms += i64::try_from(ms).unwrap_or(0);
    }
}

fn is_fallen(error: &HandoffError) -> bool {
    error.code == "ack_timeout" || FALLEN.iter().any(|text| error.message.starts_with(text))
}
