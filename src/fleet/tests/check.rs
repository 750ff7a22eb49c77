//! What must stay true whatever happens: while the world runs, and when it has come to rest.

use super::super::answering::request_id;
use super::super::lease::VALID_MS;
use super::home::Waiting;
use super::seal::{HOSTILE, NAMES, cast};
use super::world::{HONEST, World};
use crate::core::host::FleetId;

/// How long after its time something may still be carried out.
const LATE_MS: u64 = 2_000;
/// How long the sidecar takes to read a file from the spool.
const SPOOL_MS: u64 = 3_000;

/// A request, as the host that asked knows it.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) from: usize,
    pub(super) id: FleetId,
    pub(super) to: usize,
    pub(super) bytes: String,
    pub(super) ttl_ms: u64,
    /// When it was taken by the bridge.
    pub(super) taken_ms: Option<u64>,
    /// The home that asked is gone, or was set back to before it asked.
    pub(super) is_lost: bool,
}

/// Something that a sidecar has carried out.
#[derive(Debug, Clone)]
pub(super) struct Done {
    pub(super) host: usize,
    pub(super) rid: String,
    pub(super) bytes: String,
}

impl Asked {
    pub(super) fn new(from: usize, id: &FleetId, to: usize, bytes: &str, ttl_ms: u64) -> Asked {
        let (id, bytes) = (id.clone(), bytes.to_owned());
        Asked { from, id, to, bytes, ttl_ms, taken_ms: None, is_lost: false }
    }

    fn rid(&self) -> String {
        request_id(&cast().names[self.from], &self.id).to_string()
    }
}

impl World {
    pub(super) fn note_taken(&mut self, at: usize, id: &FleetId) {
        let (now_ms, host) = (self.now_ms, self.homes[at].host);
        for asked in self.asked.iter_mut().filter(|asked| asked.from == host && asked.id == *id) {
            asked.taken_ms = Some(asked.taken_ms.filter(|_| asked.is_lost).unwrap_or(now_ms));
        }
    }

    /// The bridge of this home does something that only one bridge of its host may do.
    pub(super) fn promise_lease(&mut self, at: usize, more_ms: u64, what: &str) {
        if at >= HONEST {
            self.split.insert(self.homes[at].host);
        }
        if !self.homes[at].serves(more_ms, self.now_ms) {
            self.broken(format!("{} {what} without a lease", NAMES[self.homes[at].host]));
        }
    }

    /// At no time do two bridges of one host serve. One case, which the lease can't see, is left out: a copy has served
    /// while the home was cut off, and the server forgets that. Then both serve until one of the leases is over.
    pub(super) fn promise_one_serves(&mut self) {
        let is_forgotten = self.forgot_ms.is_some_and(|at| self.now_ms.saturating_sub(at) < VALID_MS);
        if is_forgotten && self.homes.len() > HONEST {
            return;
        }
        for (host, name) in NAMES.iter().enumerate() {
            let serve = |home: &&super::home::Home| home.host == host && home.serves(0, self.now_ms);
            if self.homes.iter().filter(serve).count() > 1 {
                self.broken(format!("two bridges serve as {name}"));
            }
        }
    }

    /// Checks what is given to the sidecar: a member that may ask for it has really asked for it, it is for this very
    /// home, and it is in time.
    pub(super) fn check_drop(&mut self, at: usize, waiting: &Waiting, bytes: &str) {
        let home = &self.homes[at];
        let header = waiting.header();
        let (from, name) = (waiting.from, &cast().names[waiting.from]);
        let genuine =
            self.asked.iter().rev().find(|asked| {
                (asked.from, asked.to) == (from, home.host) && asked.id == header.id && asked.bytes == bytes
            });
        let list = home.disk.members.list();
        let kind = bytes.split(' ').next().unwrap_or_default();
        let late_ms = genuine.and_then(|asked| Some(asked.taken_ms? + asked.ttl_ms + LATE_MS));
        let clock_was_set = self.homes.iter().any(|home| home.host == from && home.wall_was_set);
        // If a letter is played again, its time in the stream begins again: only its answer or eight days stop it.
        let may_be_late = clock_was_set || !waiting.is_first_hand;
        let wrong = if genuine.is_none() {
            Some("that nobody has asked for")
        } else if list.find(name).is_none() || list.version < home.highest_list {
            Some("for somebody who is not a member")
        } else if !home.accepts.allows(name, kind) {
            Some("for somebody who may not ask for it")
        } else if header.to_home != home.home_id {
            Some("that was meant for an earlier home")
        } else if late_ms.is_some_and(|late| self.now_ms > late) && !may_be_late {
            Some("after its time")
        } else {
            None
        };
        if !waiting.is_first_hand {
            self.played_again.insert(bytes.to_owned());
        }
        if let Some(wrong) = wrong {
            self.broken(format!("{} carries out {bytes} {wrong}", NAMES[self.homes[at].host]));
        }
    }

    pub(super) fn note_done(&mut self, at: usize, rid: String, bytes: String) {
        self.trace(at, &format!("carries out {rid}: {bytes}"));
        let (host, at_ms, idle_ms) = (self.homes[at].host, self.now_ms, self.homes[at].idle_ms);
        if self.done.iter().any(|done| done.bytes == bytes) && !self.split.contains(&host) {
            self.broken(format!("{bytes} is carried out twice"));
        }
        // A bridge that serves all the time takes back in time what its sidecar has not read.
        let asked = self.asked.iter().find(|asked| asked.bytes == bytes && asked.taken_ms.is_some());
        let late_ms = asked.and_then(|asked| Some(asked.taken_ms? + asked.ttl_ms + LATE_MS + SPOOL_MS));
        let clock_was_set =
            asked.is_some_and(|asked| self.homes.iter().any(|h| h.host == asked.from && h.wall_was_set));
        let began = asked.and_then(|asked| asked.taken_ms).unwrap_or_default();
        let may_be_late = clock_was_set || self.played_again.contains(&bytes);
        if late_ms.is_some_and(|late| at_ms > late) && idle_ms < began && !may_be_late {
            self.broken(format!("{bytes} is carried out after its time"));
        }
        self.done.push(Done { host, rid, bytes });
    }

    /// Checks at rest: each request has one result, and it is true.
    pub(super) fn check_at_rest(&mut self) {
        let mut wrong = Vec::new();
        for asked in self.asked.iter().filter(|asked| asked.from != HOSTILE && !asked.is_lost) {
            let home = &self.homes[asked.from];
            let (id, name) = (&asked.id, NAMES[asked.from]);
            let Some(result) = home.disk.results.get(id) else {
                let is_open = home.disk.out.contains_key(id);
                wrong.push(format!("{id} of {name} has no result; it is open: {is_open}"));
                continue;
            };
            if home.disk.out.contains_key(id) || home.disk.requests.contains_key(id) {
                wrong.push(format!("{id} of {name} has a result and is open still"));
            }
            let is_done = self
                .done
                .iter()
                .any(|done| done.bytes == asked.bytes && done.rid == asked.rid() && done.host == asked.to);
            let is_true = match result.get(..3) {
                // The hostile member may say of itself what it likes.
                _ if asked.to == HOSTILE || [asked.from, asked.to].iter().any(|host| self.split.contains(host)) => true,
                Some("200") => is_done && result.ends_with(&asked.bytes),
                // Nobody knows, or an earlier home may have done it.
                Some("504") => true,
                _ if result == "410 host_reborn" => true,
                _ => !is_done,
            };
            if !is_true {
                wrong.push(format!("{id} of {name}: {result} is not true of {}; it was done: {is_done}", asked.bytes));
            }
        }
        wrong.into_iter().for_each(|wrong| self.broken(wrong));
    }
}
