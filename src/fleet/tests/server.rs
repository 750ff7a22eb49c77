//! The courier: two streams, as the contract has them, at a server that is trusted with nothing.

use super::super::asking::Published;
use super::super::lease::{OursSeen, RosterStanding};
use super::super::letter::What;
use super::rng::Rng;
use super::seal::{NAMES, Sealed, SignedList};
use crate::core::host::HomeId;

/// How long the server remembers the number of a message.
const REPEATS_MS: u64 = 120_000;
/// How long a letter that was fetched may stay unsettled.
const ACK_WAIT_MS: u64 = 60_000;
/// After how long a letter comes again that was left for later.
const LATER_MS: u64 = 10_000;
/// How long the stream keeps a letter.
const KEPT_MS: u64 = 8 * 24 * 3_600_000;

/// A letter in the stream.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) seq: u64,
    pub(super) to: usize,
    /// Who has sent it, as its subject says.
    pub(super) from: usize,
    pub(super) what: What,
    pub(super) sealed: Sealed,
    /// When it was stored, by the server's clock.
    pub(super) server_ms: i64,
    /// When it is delivered, or delivered again.
    pub(super) due_ms: u64,
    stored_ms: u64,
    /// Its sender has published it; it was not played again by somebody else.
    pub(super) is_first_hand: bool,
}

/// What stands at a host's name.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    Nothing,
    Roster(HomeId, Box<OursSeen>),
    Scribble,
}

/// How the courier misbehaves, each in percent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Faults {
    /// Stored, and the confirmation is lost.
    pub(super) loses_acks: u64,
    /// Confirmed, and not stored.
    pub(super) lies: u64,
    /// Delivered twice.
    pub(super) repeats: u64,
    /// Delivered later.
    pub(super) delays: u64,
}

/// How a letter is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settle {
    /// It is done with.
    Done,
    /// It comes again soon.
    Later,
    /// It is being worked on.
    Working,
}

#[derive(Debug, Clone)]
pub(super) struct Server {
    /// Which stream of letters it is.
    pub(super) created: u64,
    next_seq: u64,
    pub(super) letters: Vec<Stored>,
    recent: Vec<(u64, u64)>,
    pub(super) rosters: Vec<(u64, Entry)>,
    pub(super) list: SignedList,
    /// How many letters of one host another one's box holds.
    pub(super) box_limit: usize,
    /// How far the server's clock is ahead of the world's.
    pub(super) ahead_ms: i64,
}

/// A message that somebody publishes.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) number: u64,
    pub(super) to: usize,
    pub(super) from: usize,
    pub(super) what: What,
    pub(super) sealed: Sealed,
    pub(super) is_first_hand: bool,
}

impl Server {
    pub(super) fn new(list: SignedList, ahead_ms: i64) -> Server {
        let rosters = NAMES.iter().map(|_| (0, Entry::Nothing)).collect();
        let (letters, recent) = (Vec::new(), Vec::new());
        Server { created: 1, next_seq: 1, letters, recent, rosters, list, box_limit: 1_000, ahead_ms }
    }

    pub(super) fn clock_ms(&self, now_ms: u64) -> i64 {
        self.ahead_ms.saturating_add_unsigned(now_ms)
    }

    /// Publishes for somebody who reaches the server. Returns what the publisher is told.
    pub(super) fn publish(&mut self, message: Message, faults: &Faults, rng: &mut Rng, now_ms: u64) -> Published {
        let told = if rng.chance(faults.loses_acks) { Published::Unreachable } else { Published::Stored };
        self.recent.retain(|(_, at)| now_ms.saturating_sub(*at) < REPEATS_MS);
        if self.recent.iter().any(|(number, _)| *number == message.number) {
            return told;
        }
        let is_same_box =
            |stored: &&Stored| (stored.to, stored.from, stored.what) == (message.to, message.from, message.what);
        if self.letters.iter().filter(is_same_box).count() >= self.box_limit {
            return Published::Full;
        }
        self.recent.push((message.number, now_ms));
        if rng.chance(faults.lies) {
            return Published::Stored;
        }
        self.store(message.clone(), faults, rng, now_ms);
        if rng.chance(faults.repeats) {
            self.store(message, faults, rng, now_ms);
        }
        told
    }

    fn store(&mut self, message: Message, faults: &Faults, rng: &mut Rng, now_ms: u64) {
        let Message { to, from, what, sealed, is_first_hand, .. } = message;
        let delay = match rng.below(100) {
            percent if percent >= faults.delays => 0,
            percent if percent % 8 == 0 => rng.below(4 * 3_600_000),
            _ => rng.below(90_000),
        };
        let server_ms = self.clock_ms(now_ms);
        let (seq, due_ms, stored_ms) = (self.next_seq, now_ms + delay, now_ms);
        let stored = Stored { seq, to, from, what, sealed, server_ms, due_ms, stored_ms, is_first_hand };
        self.next_seq += 1;
        // Somewhere among the others: they come in any order.
        let at = rng.at(self.letters.len() + 1);
        self.letters.insert(at, stored);
    }

    /// The next letter that is due for this host.
    pub(super) fn fetch(&mut self, to: usize, what: What, now_ms: u64) -> Option<Stored> {
        self.letters.retain(|stored| now_ms.saturating_sub(stored.stored_ms) < KEPT_MS);
        let is_due = |stored: &&mut Stored| stored.to == to && stored.what == what && stored.due_ms <= now_ms;
        let stored = self.letters.iter_mut().find(is_due)?;
        stored.due_ms = now_ms + ACK_WAIT_MS;
        Some(stored.clone())
    }

    pub(super) fn settle(&mut self, seq: u64, settle: Settle, now_ms: u64) {
        match settle {
            Settle::Done => self.letters.retain(|stored| stored.seq != seq),
            Settle::Later | Settle::Working => {
                let after = if settle == Settle::Later { LATER_MS } else { ACK_WAIT_MS };
                for stored in self.letters.iter_mut().filter(|stored| stored.seq == seq) {
                    stored.due_ms = now_ms + after;
                }
            }
        }
    }

    /// When the next letter for this host is due.
    pub(super) fn next_due_ms(&self, to: usize) -> Option<u64> {
        self.letters.iter().filter(|stored| stored.to == to).map(|stored| stored.due_ms).min()
    }

    /// What a bridge sees at its own name. A roster of an earlier home of that name is not its own.
    pub(super) fn standing(&self, host: usize, home: HomeId) -> RosterStanding {
        match &self.rosters[host].1 {
            Entry::Nothing => RosterStanding::Nothing,
            Entry::Roster(of, seen) if *of == home => RosterStanding::Ours(seen.clone()),
            Entry::Roster(..) | Entry::Scribble => RosterStanding::NotAuthentic,
        }
    }

    pub(super) fn put(&mut self, host: usize, entry: Entry) {
        self.rosters[host] = (self.rosters[host].0 + 1, entry);
    }

    /// The store is deleted, and made again.
    pub(super) fn empty(&mut self, created: u64) {
        self.letters.clear();
        self.recent.clear();
        self.rosters.iter_mut().for_each(|place| *place = (0, Entry::Nothing));
        self.created = created;
    }

    /// Goes back to how it was, but not beyond a change of the machine that serves as a host: nobody could see that.
    pub(super) fn go_back(&mut self, before: &Server, now_ms: u64) {
        let machine = |entry: &Entry| match entry {
            Entry::Roster(_, seen) => Some((seen.machine.clone(), seen.boot.clone())),
            Entry::Nothing | Entry::Scribble => None,
        };
        let mut next = before.clone();
        for (host, place) in self.rosters.iter().enumerate() {
            if machine(&place.1) != machine(&next.rosters[host].1) {
                next.rosters[host] = place.clone();
            }
        }
        next.next_seq = self.next_seq;
        next.box_limit = self.box_limit;
        for (at, stored) in next.letters.iter_mut().enumerate() {
            stored.due_ms = now_ms;
            stored.seq = self.next_seq + at as u64;
        }
        next.next_seq += next.letters.len() as u64;
        *self = next;
    }
}
