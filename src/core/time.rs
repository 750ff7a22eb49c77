//! Time as data. The core reads no clock: both clocks come in with each cycle of the loop. A deadline is stored so that
//! neither a restart, nor a suspend, nor a jump of the wall clock can lose it, double it or fire it early.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

/// Both clocks, read once in each cycle of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// Wall clock, milliseconds since 1970 UTC.
    pub wall_ms: i64,
    /// Which boot of the machine this is: a hash of the kernel's boot id.
    pub boot: u64,
    /// `CLOCK_BOOTTIME`, milliseconds since that boot; it keeps running while the machine sleeps.
    pub boot_ms: u64,
}

impl Now {
    /// The wall clock as the contract writes it: UTC, milliseconds, `Z`.
    #[must_use]
    pub fn rfc3339(&self) -> String {
        rfc3339(self.wall_ms)
    }
}

/// Formats milliseconds since 1970 as the contract writes times.
#[must_use]
pub fn rfc3339(wall_ms: i64) -> String {
    date(wall_ms).to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Milliseconds since 1970 of a time in RFC 3339 form; `None` if it is not in that form.
#[must_use]
pub fn millis(at: &str) -> Option<i64> {
    DateTime::parse_from_rfc3339(at).ok().map(|at| at.timestamp_millis())
}

/// The date of a wall-clock reading; a reading outside chrono's range (±262,000 years) counts as 1970.
#[must_use]
pub fn date(wall_ms: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(wall_ms).unwrap_or_default()
}

/// A moment by which something must have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    boot: u64,
    due_boot_ms: u64,
    due_wall_ms: i64,
    length_ms: u64,
}

impl Deadline {
    /// A deadline `length_ms` milliseconds from `now`.
    #[must_use]
    pub fn after(now: &Now, length_ms: u64) -> Self {
        Deadline {
            boot: now.boot,
            due_boot_ms: now.boot_ms.saturating_add(length_ms),
            due_wall_ms: now.wall_ms.saturating_add(i64::try_from(length_ms).unwrap_or(i64::MAX)),
            length_ms,
        }
    }

    /// The deadline after this one: `length_ms` milliseconds after this one passed, however late that is noticed. If
    /// the result has passed too (the machine slept, or no sidecar ran), or if the machine was rebooted, `length_ms`
    /// from `now`, so that both are never due at once.
    #[must_use]
    pub fn following(&self, now: &Now, length_ms: u64) -> Self {
        let wall = i64::try_from(length_ms).unwrap_or(i64::MAX);
        let next = Deadline {
            due_boot_ms: self.due_boot_ms.saturating_add(length_ms),
            due_wall_ms: self.due_wall_ms.saturating_add(wall),
            length_ms,
            ..*self
        };
        if self.boot != now.boot || next.is_due(now) { Deadline::after(now, length_ms) } else { next }
    }

    /// Milliseconds left: within the same boot by boot time; after a reboot by the wall clock, but at most the whole
    /// length.
    #[must_use]
    pub fn remaining_ms(&self, now: &Now) -> u64 {
        if self.boot == now.boot {
            self.due_boot_ms.saturating_sub(now.boot_ms)
        } else {
            u64::try_from(self.due_wall_ms.saturating_sub(now.wall_ms)).unwrap_or(0).min(self.length_ms)
        }
    }

    /// Whether the deadline has passed.
    #[must_use]
    pub fn is_due(&self, now: &Now) -> bool {
        self.remaining_ms(now) == 0
    }

    /// The same deadline, counted in the present boot. Call it once after a restart: from then on the wall clock may
    /// jump without effect.
    #[must_use]
    pub fn rebased(&self, now: &Now) -> Self {
        if self.boot == now.boot {
            return *self;
        }
        let left = self.remaining_ms(now);
        Deadline { length_ms: self.length_ms, ..Deadline::after(now, left) }
    }

    /// When it is due by the wall clock, as a timestamp.
    #[must_use]
    pub fn rfc3339(&self) -> String {
        self.rfc3339_after(0)
    }

    /// The timestamp of the moment `more_ms` milliseconds after it is due.
    #[must_use]
    pub fn rfc3339_after(&self, more_ms: u64) -> String {
        rfc3339(self.due_wall_ms.saturating_add(i64::try_from(more_ms).unwrap_or(i64::MAX)))
    }
}

/// A reading of the wall clock is believed when it is at least this old by boot time, in milliseconds.
const BELIEVED_AFTER_MS: u64 = 10 * 60_000;

/// The clock by which things are removed for their age. It returns a reading of the wall clock that is at least ten
/// minutes old by boot time, and never a later time than the wall clock shows now. So if the wall clock jumps ahead and
/// is set right within ten minutes, nothing looks older than it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct BelievedClock {
    noted: Option<(i64, u64)>,
    wall_ms: Option<i64>,
}

impl BelievedClock {
    /// The latest time that is believed; `None` until ten minutes after the first call.
    pub fn wall_ms(&mut self, now: &Now) -> Option<i64> {
        let (noted_ms, since) = *self.noted.get_or_insert((now.wall_ms, now.boot_ms));
        if now.boot_ms.saturating_sub(since) >= BELIEVED_AFTER_MS {
            self.wall_ms = Some(noted_ms);
            self.noted = Some((now.wall_ms, now.boot_ms));
        }
        self.wall_ms = self.wall_ms.map(|wall_ms| wall_ms.min(now.wall_ms));
        self.wall_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(boot: u64, boot_ms: u64, wall_ms: i64) -> Now {
        Now { wall_ms, boot, boot_ms }
    }

    #[test]
    fn within_a_boot_the_wall_clock_does_not_count() {
        let deadline = Deadline::after(&at(1, 1_000, 0), 5_000);
        assert_eq!(deadline.remaining_ms(&at(1, 2_000, 10_000_000_000)), 4_000);
        assert!(!deadline.is_due(&at(1, 5_999, -10_000_000_000)));
        assert!(deadline.is_due(&at(1, 6_000, -10_000_000_000)));
    }

    #[test]
    fn a_following_deadline_counts_from_the_previous_one_unless_it_is_past_too() {
        let first = Deadline::after(&at(1, 1_000, 0), 4_000);
        assert_eq!(first.following(&at(1, 5_000, 0), 2_000).remaining_ms(&at(1, 5_000, 0)), 2_000);
        assert_eq!(first.following(&at(1, 6_500, 0), 2_000).remaining_ms(&at(1, 6_500, 0)), 500);
        assert_eq!(first.following(&at(1, 9_000, 0), 2_000).remaining_ms(&at(1, 9_000, 0)), 2_000);
        assert_eq!(first.following(&at(2, 10, 9_000), 2_000).remaining_ms(&at(2, 10, 0)), 2_000);
    }

    #[test]
    fn across_a_reboot_the_rest_is_clamped() {
        let deadline = Deadline::after(&at(1, 1_000, 100_000), 5_000);
        assert_eq!(deadline.remaining_ms(&at(2, 0, 102_000)), 3_000);
        assert_eq!(deadline.remaining_ms(&at(2, 0, -1_000_000)), 5_000);
        assert_eq!(deadline.remaining_ms(&at(2, 0, i64::MAX)), 0);
        let rebased = deadline.rebased(&at(2, 10, 102_000));
        assert_eq!(rebased.remaining_ms(&at(2, 1_010, 0)), 2_000);
    }

    #[test]
    fn a_clock_is_believed_only_as_far_as_it_stood_for_a_while() {
        let minutes = |count: u64| count * 60_000;
        let mut clock = BelievedClock::default();
        assert_eq!(clock.wall_ms(&at(1, 0, 1_000)), None);
        assert_eq!(clock.wall_ms(&at(1, minutes(9), 1_000)), None);
        assert_eq!(clock.wall_ms(&at(1, minutes(10), 9_000)), Some(1_000), "it has jumped ahead");
        assert_eq!(clock.wall_ms(&at(1, minutes(11), 9_000)), Some(1_000));
        assert_eq!(clock.wall_ms(&at(1, minutes(20), 2_000)), Some(2_000), "it was set right");
        assert_eq!(clock.wall_ms(&at(1, minutes(21), 500)), Some(500), "it was set back");
    }
}
