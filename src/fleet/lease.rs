//! One bridge at a time serves as a host. A roster at the host's name is the lease of the bridge that has put it there
//! last, for 40 seconds. A bridge that has merely started again is told apart from a copy of its home, from a home that
//! was set back to yesterday, and from a server that forgets.
//!
//! One case goes unseen: a copy of the home takes the name while this home is off or cut off, and then the server goes
//! back to before that. Both may then serve until the copy's next put, 15 seconds later at most.
//!
//! [`Lease`] only decides; its caller puts and looks. Times are in milliseconds since the machine's boot, sleep
//! included: no two hosts' clocks are ever compared.

use std::collections::VecDeque;
use uuid::Uuid;

/// How long a lease is valid, counted from the moment when the put that succeeded was sent.
pub const VALID_MS: u64 = 40_000;
/// How often the roster is put when nothing changes.
pub const PUT_EVERY_MS: u64 = 15_000;
/// How soon after a change, or after a failure, the next put or look comes.
pub const PUT_SOONEST_MS: u64 = 2_000;
/// How long a roster of another boot must stay unchanged until its bridge counts as gone. This is longer than a lease,
/// so that nobody serves for a while, and two never do.
pub const UNCHANGED_MS: u64 = 60_000;
/// How often that roster is looked at meanwhile.
const LOOK_EVERY_MS: u64 = 5_000;
/// How long a put or a look may take.
const ANSWER_WITHIN_MS: u64 = 10_000;
/// The most puts without an answer that are remembered.
const MOST_SENT: usize = 16;

/// A digest of a published roster.
pub type Digest = [u8; 32];

/// What distinguishes this bridge from one on a copy of its home, and from itself before a reboot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// A hash of machine and home.
    pub machine: String,
    /// A hash of the boot.
    pub boot: String,
    /// Random for each start of a bridge.
    pub instance: Uuid,
    /// The number of the last line in the home's journal.
    pub journal_seq: u64,
    /// The highest number of a roster that this home has put or seen at its name; 0 if there never was one.
    pub last_n: u64,
    /// The highest of them that the server is known to have stored. The last put before a crash may not have arrived.
    pub stored_n: u64,
    /// The operator has said that the home was moved here (`fleet moved`).
    pub was_moved: bool,
}

/// What stands at the host's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RosterStanding {
    /// Nothing.
    Nothing,
    /// A roster that this host's key has signed.
    Ours(Box<OursSeen>),
    /// Something else: a member has scribbled there.
    NotAuthentic,
}

/// What a roster says, if this host's key has signed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OursSeen {
    /// The machine and home that have put it.
    pub machine: String,
    /// Their boot.
    pub boot: String,
    /// The start of the bridge.
    pub instance: Uuid,
    /// Its number.
    pub n: u64,
    /// Whether that bridge served when it put it, or only claimed the name.
    pub serves: bool,
    /// How far the home's journal was.
    pub journal_seq: u64,
    /// When that bridge has started.
    pub started_at: String,
    /// The digest of the whole roster.
    pub digest: Digest,
}

/// Why a bridge must not serve. It ends, and its operator is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseProblem {
    /// Another bridge serves as this host. Each variant tells when the bridge of the roster started: UTC, by its clock.
    HostTaken(String),
    /// The roster is that of another machine, so this home is a copy, or was moved.
    HomeCopied(String),
    /// The roster shows a later state of the home than the present one.
    HomeRolledBack(String),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseAct {
    /// Look at what stands at the host's name; then call `looked`.
    Look,
    /// Put a roster of this number, if the present one still has this sequence. Then call `sent` with what was put, and
    /// `stored`, `looked` or `failed` when it has ended.
    Put {
        /// The roster's number.
        n: u64,
        /// The sequence of the present roster; 0 if there is none.
        expected: u64,
        /// Whether the bridge serves, or only claims the name so far.
        serves: bool,
    },
    /// Note in the audit that somebody has written to this host's name.
    NoteScribble,
    /// End.
    End(LeaseProblem),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    /// What stands there is not known yet.
    Unknown,
    /// A roster of another boot stands there, and has not changed since this time.
    Waiting { since_ms: u64, digest: Digest },
    /// The host's name is this bridge's.
    Held,
    /// It must not serve.
    Over(LeaseProblem),
}

/// A put whose answer has not come.
#[derive(Debug, Clone, Copy)]
struct SentPut {
    n: u64,
    digest: Digest,
    at_ms: u64,
}

/// The lease of one bridge.
#[derive(Debug, Clone)]
pub struct Lease {
    own: Own,
    phase: Phase,
    /// The last known sequence of what stands there.
    sequence: u64,
    /// The highest number that was put or seen, the highest that the server is known to have stored, and the highest of
    /// this bridge's own puts that was confirmed.
    n: u64,
    stored_n: u64,
    acknowledged: u64,
    /// Puts without an answer.
    sent: VecDeque<SentPut>,
    /// From when on this bridge may serve, and until when.
    valid_from_ms: u64,
    valid_until_ms: Option<u64>,
    /// Since when an answer is awaited, and when the next look or put is due.
    asked_ms: Option<u64>,
    due_ms: u64,
    /// The last answer has shown what stands there.
    has_looked: bool,
    scribbled: bool,
    ended: bool,
}

impl Lease {
    /// For a bridge that starts now. Its caller holds the home's lock, so no other bridge runs on this very home.
    #[must_use]
    pub fn new(own: Own, now_ms: u64) -> Lease {
        let (n, stored_n) = (own.last_n, own.stored_n);
        Lease {
            own,
            phase: Phase::Unknown,
            sequence: 0,
            n,
            stored_n,
            acknowledged: 0,
            sent: VecDeque::new(),
            valid_from_ms: now_ms,
            valid_until_ms: None,
            asked_ms: None,
            due_ms: now_ms,
            has_looked: false,
            scribbled: false,
            ended: false,
        }
    }

    /// Whether this bridge serves now, and for `more_ms` longer. If not, it sends, drops, answers and settles nothing.
    #[must_use]
    pub fn is_valid_for(&self, more_ms: u64, now_ms: u64) -> bool {
        let is_in_time = self.valid_until_ms.is_some_and(|until| now_ms.saturating_add(more_ms) < until);
        self.phase == Phase::Held && now_ms >= self.valid_from_ms && is_in_time
    }

    /// When `poll` must be called next, at the latest; none once the lease has ended.
    #[must_use]
    pub fn wake_at_ms(&self) -> Option<u64> {
        match (&self.phase, self.asked_ms) {
            (Phase::Over(_), _) => None,
            (_, Some(asked)) => Some(asked.saturating_add(ANSWER_WITHIN_MS)),
            (_, None) => Some(self.due_ms),
        }
    }

    /// The highest number that was put or seen. The caller stores it before it puts a roster, for the next start.
    #[must_use]
    pub fn last_n(&self) -> u64 {
        self.n
    }

    /// The highest number that the server is known to have stored. The caller stores it beside `last_n`.
    #[must_use]
    pub fn stored_n(&self) -> u64 {
        self.stored_n
    }

    /// A line of the journal from before this boot has this number. To be called before `looked`.
    pub fn journal_was_at(&mut self, seq: u64) {
        self.own.journal_seq = self.own.journal_seq.max(seq);
    }

    /// Something in the roster has changed: it is put soon.
    pub fn changed(&mut self, now_ms: u64) {
        if self.phase == Phase::Held {
            self.due_ms = self.due_ms.min(now_ms.saturating_add(PUT_SOONEST_MS));
        }
    }

    /// What is to be done now; called again until there is nothing.
    pub fn poll(&mut self, now_ms: u64) -> Option<LeaseAct> {
        if std::mem::take(&mut self.scribbled) {
            return Some(LeaseAct::NoteScribble);
        }
        if let Phase::Over(problem) = &self.phase {
            let is_first = !std::mem::replace(&mut self.ended, true);
            return is_first.then(|| LeaseAct::End(problem.clone()));
        }
        if self.wake_at_ms().is_some_and(|at| now_ms < at) {
            return None;
        }
        self.asked_ms = Some(now_ms);
        // The sequence proves nothing: a store that was deleted counts from the beginning again. So a bridge whose
        // lease is over looks at what stands there before it writes over it.
        let is_over = self.valid_until_ms.is_some_and(|until| now_ms >= until);
        let has_looked = std::mem::take(&mut self.has_looked);
        Some(match self.phase {
            Phase::Held if is_over && !has_looked => LeaseAct::Look,
            Phase::Held => {
                self.n += 1;
                LeaseAct::Put { n: self.n, expected: self.sequence, serves: now_ms >= self.valid_from_ms }
            }
            Phase::Unknown | Phase::Waiting { .. } | Phase::Over(_) => LeaseAct::Look,
        })
    }

    /// A roster of this number is on its way.
    pub fn sent(&mut self, n: u64, digest: Digest) {
        let at_ms = self.asked_ms.unwrap_or_default();
        self.sent.push_back(SentPut { n, digest, at_ms });
        if self.sent.len() > MOST_SENT {
            self.sent.pop_front();
        }
    }

    /// The server has stored the roster of this number.
    pub fn stored(&mut self, n: u64, sequence: u64, now_ms: u64) {
        // The answer may come after another question was asked: only the time of that put counts.
        let Some(put) = self.sent.iter().find(|put| put.n == n).copied() else { return };
        if self.asked_ms == Some(put.at_ms) {
            self.asked_ms = None;
        }
        self.sequence = sequence;
        self.hold(n, put.at_ms, now_ms);
    }

    /// The server was not reached, or has not answered.
    pub fn failed(&mut self, now_ms: u64) {
        self.asked_ms = None;
        self.due_ms = now_ms.saturating_add(PUT_SOONEST_MS);
    }

    /// What stands at the host's name, as a look, or a put that was refused, has shown.
    pub fn looked(&mut self, standing: &RosterStanding, sequence: u64, now_ms: u64) {
        self.asked_ms = None;
        self.has_looked = true;
        self.sequence = sequence;
        match (&self.phase, standing) {
            (Phase::Over(_), _) => {}
            (_, RosterStanding::NotAuthentic) => self.write_over(now_ms),
            (Phase::Held, RosterStanding::Nothing) => self.due_ms = now_ms,
            (Phase::Held, RosterStanding::Ours(seen)) => self.met(seen, now_ms),
            (Phase::Unknown | Phase::Waiting { .. }, RosterStanding::Nothing) => self.take_blindly(now_ms),
            (Phase::Unknown | Phase::Waiting { .. }, RosterStanding::Ours(seen)) => self.found(seen, now_ms),
        }
    }

    /// Somebody has written over the roster. Nobody can see which one stood there before, so a bridge that has just
    /// started waits as long as it would for another bridge.
    fn write_over(&mut self, now_ms: u64) {
        self.scribbled = true;
        match self.phase {
            Phase::Held => self.due_ms = now_ms,
            Phase::Waiting { since_ms, .. } if now_ms.saturating_sub(since_ms) >= UNCHANGED_MS => {
                self.take_blindly(now_ms)
            }
            Phase::Waiting { .. } => self.due_ms = now_ms.saturating_add(LOOK_EVERY_MS),
            Phase::Unknown | Phase::Over(_) => self.wait([0; 32], now_ms),
        }
    }

    fn wait(&mut self, digest: Digest, now_ms: u64) {
        self.phase = Phase::Waiting { since_ms: now_ms, digest };
        self.due_ms = now_ms.saturating_add(LOOK_EVERY_MS);
    }

    /// Takes the name although nobody can see who had it last. If this home has had it before, a copy of it may serve
    /// now. This bridge serves only when that copy must have seen its roster.
    fn take_blindly(&mut self, now_ms: u64) {
        if self.own.last_n > 0 {
            self.valid_from_ms = now_ms.saturating_add(UNCHANGED_MS);
        }
        self.take(now_ms);
    }

    fn take(&mut self, now_ms: u64) {
        self.phase = Phase::Held;
        self.due_ms = now_ms;
    }

    fn hold(&mut self, n: u64, asked_ms: u64, now_ms: u64) {
        self.acknowledged = self.acknowledged.max(n);
        self.stored_n = self.stored_n.max(n);
        self.sent.retain(|sent| sent.n > n);
        self.valid_until_ms = Some(asked_ms.saturating_add(VALID_MS));
        self.due_ms = asked_ms.saturating_add(PUT_EVERY_MS).max(now_ms);
    }

    /// At the start, a roster of this host stands there.
    fn found(&mut self, seen: &OursSeen, now_ms: u64) {
        let is_newest = seen.n >= self.stored_n;
        (self.n, self.stored_n) = (self.n.max(seen.n), self.stored_n.max(seen.n));
        if seen.machine != self.own.machine && !self.own.was_moved {
            return self.end(LeaseProblem::HomeCopied(seen.started_at.clone()));
        }
        // A power cut may have removed journal lines that the roster counts. The sidecar writes them again while this
        // bridge waits because of the other boot.
        let is_behind = seen.journal_seq > self.own.journal_seq;
        let may_catch_up = seen.machine == self.own.machine && seen.boot != self.own.boot;
        let rolled_back = LeaseProblem::HomeRolledBack(seen.started_at.clone());
        if is_behind && !may_catch_up {
            return self.end(rolled_back);
        }
        // The home's lock proves that the bridge of the same boot is gone. But if it had only claimed the name, the
        // claim must last as long again; and if the server has gone back, a newer roster stood there.
        if seen.machine == self.own.machine && seen.boot == self.own.boot {
            return if seen.serves && is_newest { self.take(now_ms) } else { self.take_blindly(now_ms) };
        }
        match &self.phase {
            Phase::Waiting { since_ms, digest } if *digest == seen.digest => {
                if now_ms.saturating_sub(*since_ms) >= UNCHANGED_MS {
                    return if is_behind { self.end(rolled_back) } else { self.take(now_ms) };
                }
                self.due_ms = now_ms.saturating_add(LOOK_EVERY_MS);
            }
            Phase::Waiting { digest, .. } if *digest != [0; 32] => {
                self.end(LeaseProblem::HostTaken(seen.started_at.clone()))
            }
            Phase::Unknown | Phase::Waiting { .. } | Phase::Held | Phase::Over(_) => self.wait(seen.digest, now_ms),
        }
    }

    /// While the lease is held, another roster that this host's key has signed stands there.
    fn met(&mut self, seen: &OursSeen, now_ms: u64) {
        if let Some(put) = self.sent.iter().find(|put| put.digest == seen.digest).copied() {
            // The answer to that put was lost.
            self.hold(put.n, put.at_ms, now_ms);
            self.due_ms = now_ms;
        } else if seen.n <= self.acknowledged && seen.instance == self.own.instance {
            // The server has gone back to an older state.
            self.due_ms = now_ms;
        } else if seen.n <= self.acknowledged || self.acknowledged == 0 {
            // It may have gone back further, to a roster of an earlier bridge; or a copy of this home has begun while
            // the server had lost everything. Or no put of this bridge is stored yet, and its first look was outdated:
            // the bridge before had a put on its way, or one of several servers was behind. So this bridge begins
            // again, and serves nothing meanwhile.
            self.valid_until_ms = None;
            self.phase = Phase::Unknown;
            self.found(seen, now_ms);
        } else {
            self.n = self.n.max(seen.n);
            self.end(LeaseProblem::HostTaken(seen.started_at.clone()));
        }
    }

    fn end(&mut self, problem: LeaseProblem) {
        self.valid_until_ms = None;
        self.phase = Phase::Over(problem);
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
