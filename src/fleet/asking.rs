//! Requests to other hosts, at the host that asks: when each is published, published again, and given up. The courier
//! may lose, repeat or delay anything, so a request is published until its answer has come or its time is over. The
//! other host recognises repetitions by the request's id.
//!
//! [`Asking`] only decides; its caller publishes. Times are in milliseconds since this machine's boot.

use crate::core::host::{FleetId, HomeId, HostName};
use std::collections::BTreeMap;

/// The most requests that are open at once.
pub const MOST_OPEN: usize = 1_000;
/// How long the server may take to confirm a publishing.
const CONFIRMED_WITHIN_MS: u64 = 5_000;
/// The pause before the same message is published again without a confirmation: the first, and the longest. It doubles
/// each time.
const FIRST_PAUSE_MS: u64 = 300;
const LONGEST_PAUSE_MS: u64 = 30_000;
/// The pause if the receiver's box is full.
const FULL_PAUSE_MS: u64 = 5_000;
/// The pauses before a request is published again that was confirmed and not answered.
const AGAIN_AFTER_MS: [u64; 4] = [30_000, 300_000, 3_600_000, 6 * 3_600_000];
/// How long after its time is over a request is given up: this host then answers it itself.
const GIVEN_UP_AFTER_MS: u64 = 60_000;
/// How long nothing is given up after the lease has come back: an answer may wait at the server.
const FETCHED_WITHIN_MS: u64 = 10_000;
/// How long nothing is given up without a lease: after a sleep, or a new start, the lease is about to come back.
const LEASE_BACK_WITHIN_MS: u64 = 120_000;
/// If a bridge without a lease was not polled for this long, the machine has slept.
const ASLEEP_MS: u64 = 30_000;

/// A request that was taken from its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenRequest {
    /// The host that is asked.
    pub to: HostName,
    /// Its home.
    pub to_home: HomeId,
    /// How old the request is already: it may have been taken before a restart.
    pub age_ms: u64,
    /// How old it may become.
    pub ttl_ms: u64,
    /// A publishing of it has begun before.
    pub was_begun: bool,
}

/// Why this host answers a request itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenUp {
    /// 503: nothing was ever published, so nothing was carried out.
    NotSent,
    /// 504: it may have been carried out, and nobody here knows.
    NoAnswer,
}

/// What is to be done about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskingStep {
    /// Publish it. Before the first time, note durably that a publishing has begun.
    Publish {
        /// Which.
        id: FleetId,
        /// The number of this message: the server drops a second one with the same number.
        message: u64,
        /// How old the request is.
        age_ms: u64,
        /// It was never published before.
        is_first: bool,
    },
    /// Answer it here, and publish it no more. If the answer can't be written, take it again.
    GiveUp {
        /// Which.
        id: FleetId,
        /// The request, as old as it is now.
        asked: TakenRequest,
        /// As not sent, or as without an answer.
        why: GivenUp,
    },
}

/// What came of a publishing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// The server has confirmed it.
    Stored,
    /// The receiver's box is full for this host.
    Full,
    /// The server does not store it, such as on a full disk: why, in its words.
    Refused(String),
    /// There was no confirmation.
    Unreachable,
}

/// What a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The message is to be published at this time, for the n-th time under the same number.
    Due { at_ms: u64, tries: u32 },
    /// A confirmation is awaited until then.
    Awaited { until_ms: u64, tries: u32 },
}

#[derive(Debug, Clone)]
struct OpenRequest {
    asked: TakenRequest,
    taken_ms: u64,
    message: u64,
    confirmed: u32,
    way: Way,
}

/// All open requests of a host.
#[derive(Debug, Clone, Default)]
pub struct Asking {
    open: BTreeMap<FleetId, OpenRequest>,
    /// The number of the last message. The first number is random.
    next_message: u64,
    chance: u64,
    /// At the last `poll`: whether the bridge had its lease, and when that was.
    looked: Option<(bool, u64)>,
    /// Nothing is given up before this time.
    give_up_from_ms: u64,
}

impl Asking {
    /// Without open requests. `random`: any number that no other start of this bridge had.
    #[must_use]
    pub fn new(random: u64) -> Asking {
        Asking { next_message: random, chance: random, ..Asking::default() }
    }

    /// Whether one more may be open.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.open.len() < MOST_OPEN
    }

    /// Takes a request, whose file is in `out/`. A request that is open already stays as it is.
    pub fn take(&mut self, id: FleetId, asked: TakenRequest, now_ms: u64) {
        let (message, way) = (self.number(), Way::Due { at_ms: now_ms, tries: 0 });
        let open = OpenRequest { asked, taken_ms: now_ms, message, confirmed: 0, way };
        self.open.entry(id).or_insert(open);
    }

    /// Whether a result from this host answers an open request. If it does, write it, remove `out/<id>.json`, and call
    /// `answered`; in both cases settle the letter.
    #[must_use]
    pub fn awaits(&self, id: &FleetId, from: &HostName, from_home: HomeId) -> bool {
        self.open.get(id).is_some_and(|open| open.asked.to == *from && open.asked.to_home == from_home)
    }

    /// Whether an open request was meant for an earlier home of this host. The home that is there now can give one
    /// answer: that it is another home (410 `host_reborn`).
    #[must_use]
    pub fn awaits_earlier_home(&self, id: &FleetId, from: &HostName, from_home: HomeId) -> bool {
        self.open.get(id).is_some_and(|open| open.asked.to == *from && open.asked.to_home != from_home)
    }

    /// How many requests are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// The answer is written: the request is no longer open.
    pub fn answered(&mut self, id: &FleetId) {
        self.open.remove(id);
    }

    /// The stream of letters is a new one, and what the old one held may be lost: all open requests are published
    /// again.
    pub fn stream_replaced(&mut self, now_ms: u64) {
        let ids: Vec<FleetId> = self.open.keys().cloned().collect();
        for id in ids {
            let message = self.number();
            if let Some(open) = self.open.get_mut(&id) {
                open.message = message;
                open.way = Way::Due { at_ms: now_ms, tries: 0 };
            }
        }
    }

    /// What came of the publishing of this message.
    pub fn published(&mut self, id: &FleetId, message: u64, published: &Published, now_ms: u64) {
        let (next, spread) = (self.number(), self.spread());
        let Some(open) = self.open.get_mut(id).filter(|open| open.message == message) else { return };
        let Way::Awaited { tries, .. } = open.way else { return };
        open.way = match published {
            Published::Stored => {
                let pause = AGAIN_AFTER_MS[(open.confirmed as usize).min(AGAIN_AFTER_MS.len() - 1)];
                open.confirmed += 1;
                open.message = next;
                Way::Due { at_ms: now_ms + spread(pause), tries: 0 }
            }
            Published::Full => Way::Due { at_ms: now_ms + spread(FULL_PAUSE_MS), tries: 0 },
            Published::Refused(_) | Published::Unreachable => unconfirmed(tries, now_ms, &spread),
        };
    }

    /// When `poll` must be called next, at the latest.
    #[must_use]
    pub fn wake_at_ms(&self) -> Option<u64> {
        self.open.values().map(|open| open.wake_at_ms(self.give_up_from_ms)).min()
    }

    /// The next thing to do; to be called again until there is nothing. Without a valid lease nothing is published, and
    /// requests whose time is over are given up later.
    pub fn poll(&mut self, now_ms: u64, has_lease: bool) -> Option<AskingStep> {
        self.look(now_ms, has_lease);
        let (spread, give_up_from_ms) = (self.spread(), self.give_up_from_ms);
        let due_ms = |open: &OpenRequest| match has_lease {
            true => open.wake_at_ms(give_up_from_ms),
            false => open.end_ms().max(give_up_from_ms),
        };
        let (id, open) = self.open.iter_mut().find(|(_, open)| due_ms(open) <= now_ms)?;
        let (id, age_ms) = (id.clone(), open.age_ms(now_ms));
        if open.end_ms().max(give_up_from_ms) <= now_ms {
            let asked = TakenRequest { age_ms, ..open.asked.clone() };
            let why = if asked.was_begun { GivenUp::NoAnswer } else { GivenUp::NotSent };
            self.open.remove(&id);
            return Some(AskingStep::GiveUp { id, asked, why });
        }
        if age_ms > open.asked.ttl_ms {
            open.way = Way::Due { at_ms: u64::MAX, tries: 0 };
            return self.poll(now_ms, has_lease);
        }
        match open.way {
            Way::Awaited { tries, .. } => {
                open.way = unconfirmed(tries, now_ms, &spread);
                self.poll(now_ms, has_lease)
            }
            Way::Due { tries, .. } => {
                let is_first = !std::mem::replace(&mut open.asked.was_begun, true);
                open.way = Way::Awaited { until_ms: now_ms + CONFIRMED_WITHIN_MS, tries: tries + 1 };
                Some(AskingStep::Publish { id, message: open.message, age_ms, is_first })
            }
        }
    }

    /// Notes whether the lease is there. An answer that waits at the server is fetched only with a lease, so after a
    /// change nothing is given up for a while.
    fn look(&mut self, now_ms: u64, has_lease: bool) {
        let is_as_before = self.looked.is_some_and(|(had_lease, at_ms)| {
            had_lease == has_lease && (has_lease || now_ms.saturating_sub(at_ms) < ASLEEP_MS)
        });
        if !is_as_before {
            let pause = if has_lease { FETCHED_WITHIN_MS } else { LEASE_BACK_WITHIN_MS };
            self.give_up_from_ms = now_ms.saturating_add(pause);
        }
        self.looked = Some((has_lease, now_ms));
    }

    fn number(&mut self) -> u64 {
        self.next_message = self.next_message.wrapping_add(1);
        self.next_message
    }

    /// Spreads pauses by up to a fifth to both sides, so that hosts that were cut off together do not come back
    /// together.
    fn spread(&mut self) -> impl Fn(u64) -> u64 + use<> {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let permille = 800 + (self.chance >> 33) % 401;
        move |pause: u64| pause.saturating_mul(permille) / 1_000
    }
}

/// The same message is published again, after a longer pause each time.
fn unconfirmed(tries: u32, now_ms: u64, spread: &impl Fn(u64) -> u64) -> Way {
    let pause = FIRST_PAUSE_MS.saturating_mul(1 << tries.saturating_sub(1).min(10)).min(LONGEST_PAUSE_MS);
    Way::Due { at_ms: now_ms + spread(pause), tries }
}

impl OpenRequest {
    fn age_ms(&self, now_ms: u64) -> u64 {
        self.asked.age_ms.saturating_add(now_ms.saturating_sub(self.taken_ms))
    }

    /// When it reaches this age.
    fn reaches_ms(&self, age_ms: u64) -> u64 {
        self.taken_ms.saturating_add(age_ms.saturating_sub(self.asked.age_ms))
    }

    /// When it is given up, if nothing stands in the way.
    fn end_ms(&self) -> u64 {
        self.reaches_ms(self.asked.ttl_ms.saturating_add(GIVEN_UP_AFTER_MS))
    }

    /// Once its time is over, nothing is due but its end.
    fn wake_at_ms(&self, give_up_from_ms: u64) -> u64 {
        let at = match self.way {
            Way::Due { at_ms, .. } => at_ms,
            Way::Awaited { until_ms, .. } => until_ms,
        };
        if at > self.reaches_ms(self.asked.ttl_ms) { self.end_ms().max(give_up_from_ms) } else { at }
    }
}

#[cfg(test)]
#[path = "asking_tests.rs"]
mod tests;
