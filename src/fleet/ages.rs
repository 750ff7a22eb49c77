//! How old a request is, at both ends. At the host that asks: the time since the request was taken, by the clock of
//! that machine since its boot. At the host that is asked: that age, plus the time that the letter lay in the stream,
//! by the server's clock alone. So no two hosts' clocks are ever compared.

use serde::{Deserialize, Serialize};

/// After so long a newer look at the server's clock counts even if it is less exact, because clocks drift apart.
const DRIFTS_AFTER_MS: u64 = 600_000;

/// The clocks of this machine at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Which boot it was.
    pub boot: String,
    /// Milliseconds since that boot, sleep included.
    pub boot_ms: u64,
    /// The wall clock: milliseconds since 1970.
    pub wall_ms: i64,
}

impl Moment {
    /// How long ago that was. Within one boot the time since the boot counts; across a boot there is only the wall
    /// clock.
    #[must_use]
    pub fn age_ms(&self, now: &Moment) -> u64 {
        if self.boot == now.boot {
            now.boot_ms.saturating_sub(self.boot_ms)
        } else {
            u64::try_from(now.wall_ms.saturating_sub(self.wall_ms)).unwrap_or_default()
        }
    }
}

/// What is known of the server's clock, from the times at which it has stored this host's own rosters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CourierTime(Option<Look>);

/// One look at the server's clock: it showed this time at some moment between the question and the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    server_ms: i64,
    asked_ms: u64,
    answered_ms: u64,
}

impl Look {
    /// By how much the server's clock is ahead of this machine's time since its boot: at least, and at most.
    fn ahead(&self) -> (i64, i64) {
        let since = |boot_ms: u64| self.server_ms.saturating_sub_unsigned(boot_ms);
        (since(self.answered_ms), since(self.asked_ms))
    }

    fn spread_ms(&self) -> u64 {
        self.answered_ms.saturating_sub(self.asked_ms)
    }
}

impl CourierTime {
    /// The server has stored a roster of this host. `server_ms`: when, by the server's clock. `asked_ms` and
    /// `answered_ms`: when the roster was sent and confirmed, in milliseconds since boot.
    pub fn learn(&mut self, server_ms: i64, asked_ms: u64, answered_ms: u64) {
        let new = Look { server_ms, asked_ms, answered_ms };
        let is_kept = self.0.is_some_and(|old| {
            let ((old_least, old_most), (least, most)) = (old.ahead(), new.ahead());
            // If the two can't both be true, the server's clock was set.
            let agree = least <= old_most && old_least <= most;
            let is_fresh = asked_ms.saturating_sub(old.asked_ms) < DRIFTS_AFTER_MS;
            agree && is_fresh && old.spread_ms() < new.spread_ms()
        });
        if !is_kept {
            self.0 = Some(new);
        }
    }

    /// The earliest time that the server's clock can show at this moment; none if nothing is known of it yet. A letter
    /// that is made now was not made before it.
    #[must_use]
    pub fn server_ms(&self, now_ms: u64) -> Option<i64> {
        Some(self.0?.ahead().0.saturating_add_unsigned(now_ms))
    }

    /// How long a letter has been in the stream. `stored_ms`: when the server stored it, by its own clock. None if
    /// nothing is known of that clock yet. What is uncertain counts as time that has passed, so that no request is
    /// carried out late.
    #[must_use]
    pub fn in_stream_ms(&self, stored_ms: i64, now_ms: u64) -> Option<u64> {
        let (_, ahead) = self.0?.ahead();
        let server_ms = ahead.saturating_add_unsigned(now_ms);
        Some(u64::try_from(server_ms.saturating_sub(stored_ms)).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn moment(boot: &str, boot_ms: u64, wall_ms: i64) -> Moment {
        Moment { boot: boot.to_owned(), boot_ms, wall_ms }
    }

    #[test]
    fn the_wall_clock_counts_across_a_boot_alone() {
        let taken = moment("x", 5_000, 1_000_000);
        assert_eq!(taken.age_ms(&moment("x", 9_000, -7)), 4_000);
        assert_eq!(taken.age_ms(&moment("y", 9_000, 1_060_000)), 60_000);
        assert_eq!(taken.age_ms(&moment("y", 9_000, 0)), 0, "never below nothing");
    }

    #[test]
    fn the_most_exact_look_counts_until_the_servers_clock_was_set() {
        let mut time = CourierTime::default();
        assert_eq!(time.in_stream_ms(0, 0), None);
        time.learn(1_000_000, 500, 600);
        time.learn(1_015_000, 9_000, 17_000);
        assert_eq!(time.in_stream_ms(1_000_000, 20_500), Some(20_000));
        time.learn(500_000, 30_000, 30_010);
        assert_eq!(time.in_stream_ms(499_000, 30_000), Some(1_000));
        assert_eq!(time.in_stream_ms(600_000, 30_000), Some(0), "a letter of the future");
    }

    proptest! {
        #[test]
        fn a_letter_is_never_younger_than_it_is(
            ahead in -9_000_000_000_000_i64..9_000_000_000_000, slow in 0_u64..10_000, part in 0_u64..10_000,
            asked in 1_u64..1_000_000_000, lies in 0_u64..700_000_000,
        ) {
            let mut time = CourierTime::default();
            let server = |boot_ms: u64| ahead.saturating_add_unsigned(boot_ms);
            time.learn(server(asked + part.min(slow)), asked, asked + slow);
            let now = asked + slow + lies;
            let told = time.in_stream_ms(server(now - lies), now).expect("it was learnt");
            prop_assert!(told >= lies && told <= lies + slow);
            let at_least = time.server_ms(now).expect("it was learnt");
            prop_assert!(at_least <= server(now) && server(now) - at_least <= i64::try_from(slow).expect("short"));
        }

        #[test]
        fn no_times_make_it_panic(times in proptest::collection::vec((any::<i64>(), any::<u64>(), any::<u64>()), 1..6)) {
            let mut time = CourierTime::default();
            for (server, asked, answered) in times {
                time.learn(server, asked, answered);
                let _ = time.in_stream_ms(server, asked);
            }
        }
    }
}
