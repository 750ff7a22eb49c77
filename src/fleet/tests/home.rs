//! A home: its durable files, its clocks, its sidecar, and what its bridge has in memory.

use super::super::ages::{CourierTime, Moment};
use super::super::asking::Asking;
use super::super::lease::{Lease, LeaseProblem};
use super::super::letter::{Header, Letter};
use super::super::members::Members;
use super::super::rights::Accepts;
use super::rng::Rng;
use crate::core::host::{FleetId, HomeId};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// For how long a sidecar that is dead still seems to live.
const HEARTBEAT_COUNTS_MS: u64 = 10_000;

/// A request to another host, as a program drops it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) to: usize,
    pub(super) bytes: String,
    pub(super) ttl_ms: u64,
}

/// A request that was taken.
#[derive(Debug, Clone)]
pub(super) struct Out {
    pub(super) ask: Ask,
    pub(super) to_home: HomeId,
    pub(super) taken: Moment,
    pub(super) was_begun: bool,
}

/// A request file in the spool, and when the sidecar comes to it.
#[derive(Debug, Clone)]
struct SpoolFile {
    bytes: String,
    due_ms: u64,
}

/// A request that a sidecar has accepted, and when its answer is written.
#[derive(Debug, Clone)]
struct Accepted {
    bytes: String,
    answer: String,
    due_ms: u64,
}

/// All files of a home that matter here.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    pub(super) requests: BTreeMap<FleetId, Ask>,
    pub(super) out: BTreeMap<FleetId, Out>,
    pub(super) results: BTreeMap<FleetId, String>,
    pub(super) late: BTreeMap<FleetId, String>,
    pub(super) told: BTreeMap<String, String>,
    /// Requests that were, or were about to be, given to the sidecar, with their bytes.
    pub(super) incoming: BTreeMap<String, String>,
    spool_requests: BTreeMap<String, SpoolFile>,
    ledger: BTreeMap<String, Accepted>,
    pub(super) spool_results: BTreeMap<String, String>,
    pub(super) members: Members,
    pub(super) journal_seq: u64,
    pub(super) last_n: u64,
    pub(super) stored_n: u64,
    pub(super) stream: u64,
}

impl Disk {
    pub(super) fn new(members: Members) -> Disk {
        Disk {
            requests: BTreeMap::new(),
            out: BTreeMap::new(),
            results: BTreeMap::new(),
            late: BTreeMap::new(),
            told: BTreeMap::new(),
            incoming: BTreeMap::new(),
            spool_requests: BTreeMap::new(),
            ledger: BTreeMap::new(),
            spool_results: BTreeMap::new(),
            members,
            journal_seq: 1,
            last_n: 0,
            stored_n: 0,
            stream: 0,
        }
    }

    pub(super) fn answer_to(&self, rid: &str) -> Option<&String> {
        self.told.get(rid).or_else(|| self.spool_results.get(rid))
    }

    /// Drops a request for the sidecar.
    pub(super) fn drop_request(&mut self, rid: &str, bytes: &str, due_ms: u64) {
        let file = SpoolFile { bytes: bytes.to_owned(), due_ms };
        self.spool_requests.entry(rid.to_owned()).or_insert(file);
    }

    pub(super) fn take_back(&mut self, rid: &str) {
        self.spool_requests.remove(rid);
    }

    /// Whether the sidecar has nothing left to do.
    pub(super) fn is_quiet(&self) -> bool {
        self.spool_requests.is_empty() && self.requests.is_empty() && self.ledger.len() == self.spool_results.len()
    }
}

/// A letter that is being worked on.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) seq: u64,
    pub(super) from: usize,
    pub(super) letter: Letter,
    pub(super) server_ms: i64,
    pub(super) working_at_ms: u64,
    pub(super) is_dropped: bool,
    pub(super) is_first_hand: bool,
}

impl Waiting {
    pub(super) fn header(&self) -> &Header {
        &self.letter.header
    }
}

/// A running bridge: all of it is lost when it is killed.
#[derive(Debug)]
pub(super) struct Bridge {
    pub(super) lease: Lease,
    pub(super) instance: Uuid,
    pub(super) asking: Asking,
    pub(super) time: CourierTime,
    pub(super) waiting: Vec<Waiting>,
    pub(super) ended: Option<LeaseProblem>,
}

/// What the way to the server lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    Up,
    /// What is sent arrives, and no answer comes back.
    OneWay,
    Down,
}

#[derive(Debug)]
pub(super) struct Home {
    /// The index of its host in `NAMES`, which is also the index of its keys.
    pub(super) host: usize,
    pub(super) home_id: HomeId,
    pub(super) machine: String,
    pub(super) boots: u64,
    pub(super) was_moved: bool,
    pub(super) disk: Disk,
    pub(super) accepts: Accepts,
    /// How far its clocks are ahead of the world's time: since its boot, and on the wall.
    pub(super) boot_ahead_ms: i64,
    pub(super) wall_ahead_ms: i64,
    pub(super) wall_was_set: bool,
    pub(super) bridge: Option<Bridge>,
    /// When its bridge is started; none for a bridge that its operator has to start.
    pub(super) start_at_ms: Option<u64>,
    pub(super) frozen_until_ms: u64,
    pub(super) link: Link,
    pub(super) sidecar_runs: bool,
    pub(super) sidecar_died_ms: u64,
    /// The newest list that it has ever accepted: it must never go back.
    pub(super) highest_list: u64,
    /// The number of the last roster that it has put: it must never go back either.
    pub(super) highest_n: u64,
    /// The last time at which its bridge did not serve.
    pub(super) idle_ms: u64,
    pub(super) problems: BTreeSet<&'static str>,
}

impl Home {
    pub(super) fn boot_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_add_signed(self.boot_ahead_ms)
    }

    pub(super) fn wall_ms(&self, now_ms: u64) -> i64 {
        self.wall_ahead_ms.saturating_add_unsigned(now_ms)
    }

    /// Converts a time since boot into the world's time.
    pub(super) fn world_ms(&self, boot_ms: u64) -> u64 {
        boot_ms.saturating_add_signed(self.boot_ahead_ms.saturating_neg())
    }

    pub(super) fn moment(&self, now_ms: u64) -> Moment {
        Moment { boot: self.boot(), boot_ms: self.boot_ms(now_ms), wall_ms: self.wall_ms(now_ms) }
    }

    pub(super) fn boot(&self) -> String {
        format!("{}-{}", self.machine, self.boots)
    }

    pub(super) fn serves(&self, more_ms: u64, now_ms: u64) -> bool {
        let now = self.boot_ms(now_ms);
        self.bridge.as_ref().is_some_and(|bridge| bridge.lease.is_valid_for(more_ms, now))
    }

    pub(super) fn has_heartbeat(&self, now_ms: u64) -> bool {
        self.sidecar_runs || now_ms.saturating_sub(self.sidecar_died_ms) < HEARTBEAT_COUNTS_MS
    }

    /// What the sidecar does now. The spool's promise is that the same id and the same bytes get the same answer.
    /// Returns what it has carried out: request id and bytes.
    pub(super) fn run_sidecar(&mut self, rng: &mut Rng, now_ms: u64) -> Vec<(String, String)> {
        let mut done = Vec::new();
        if !self.sidecar_runs {
            return done;
        }
        let disk = &mut self.disk;
        let is_due = |(id, file): (&String, &SpoolFile)| (file.due_ms <= now_ms).then(|| id.clone());
        let due: Vec<String> = disk.spool_requests.iter().filter_map(is_due).collect();
        for rid in due {
            let Some(SpoolFile { bytes, .. }) = disk.spool_requests.remove(&rid) else { continue };
            if disk.ledger.contains_key(&rid) {
                continue;
            }
            let slow = if rng.chance(20) { rng.below(90_000) } else { rng.below(2_000) };
            let answer = format!("200 done {bytes}");
            disk.ledger.insert(rid.clone(), Accepted { bytes: bytes.clone(), answer, due_ms: now_ms + slow });
            disk.journal_seq += 1;
            done.push((rid, bytes));
        }
        for (rid, accepted) in &disk.ledger {
            if accepted.due_ms <= now_ms && !disk.spool_results.contains_key(rid) {
                debug_assert!(accepted.answer.ends_with(&accepted.bytes));
                disk.spool_results.insert(rid.clone(), accepted.answer.clone());
            }
        }
        done
    }

    fn sidecar_wakes_at_ms(&self) -> Option<u64> {
        if !self.sidecar_runs {
            return None;
        }
        let files = self.disk.spool_requests.values().map(|file| file.due_ms);
        let open = self.disk.ledger.iter().filter(|(rid, _)| !self.disk.spool_results.contains_key(*rid));
        files.chain(open.map(|(_, accepted)| accepted.due_ms)).min()
    }

    fn bridge_wakes_at_ms(&self, letter_due_ms: Option<u64>, keeps_lease: bool, serves: bool) -> Option<u64> {
        let thawed = |at: u64| at.max(self.frozen_until_ms);
        let Some(bridge) = &self.bridge else { return self.start_at_ms.map(thawed) };
        let lease = bridge.lease.wake_at_ms().filter(|_| keeps_lease).map(|at| self.world_ms(at));
        if !serves {
            return lease.map(thawed);
        }
        let asking = bridge.asking.wake_at_ms().map(|at| self.world_ms(at));
        let waiting = bridge.waiting.iter().map(|waiting| waiting.working_at_ms).min();
        [lease, asking, waiting, letter_due_ms].into_iter().flatten().min().map(thawed)
    }

    /// When something here is to be done next.
    pub(super) fn wakes_at_ms(&self, letter_due_ms: Option<u64>, keeps_lease: bool, serves: bool) -> Option<u64> {
        let bridge = self.bridge_wakes_at_ms(letter_due_ms, keeps_lease, serves);
        self.sidecar_wakes_at_ms().into_iter().chain(bridge).min()
    }
}
