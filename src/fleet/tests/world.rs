//! The world: homes, one server, and time, which runs from one thing that is due to the next.

use super::super::letter::What;
use super::super::members::{Member, MemberList, Members};
use super::super::rights::Accepts;
use super::check::{Asked, Done};
use super::home::{Ask, Disk, Home, Link};
use super::rng::Rng;
use super::seal::{HOSTILE, NAMES, SignedList, cast};
use super::server::{Faults, Message, Server};
use crate::core::host::{FleetId, HomeId};
use std::collections::VecDeque;
use uuid::Uuid;

/// How many lines of a trace are kept, and how many letters the hostile member remembers.
const MOST_TRACED: usize = 400;
const MOST_KEPT: usize = 40;
/// How many honest hosts there are.
pub(super) const HONEST: usize = 3;

pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) is_real: bool,
    pub(super) now_ms: u64,
    pub(super) server: Server,
    /// Earlier states of the server.
    pub(super) snapshots: Vec<Server>,
    pub(super) faults: Faults,
    /// The honest homes of the hosts, then copies of them.
    pub(super) homes: Vec<Home>,
    pub(super) list: MemberList,
    pub(super) old_lists: Vec<SignedList>,
    /// How many of 1,000 points kill the bridge.
    pub(super) kill_permille: u64,
    /// Kill this home's bridge at the n-th point from now.
    pub(super) kill_at: Option<(usize, u64)>,
    pub(super) points: u64,
    pub(super) asked: Vec<Asked>,
    pub(super) done: Vec<Done>,
    pub(super) letters_seen: VecDeque<Message>,
    pub(super) audited: u64,
    pub(super) texts: u64,
    pub(super) homes_made: u64,
    pub(super) faults_found: Vec<String>,
    pub(super) traced: VecDeque<String>,
    pub(super) is_resting: bool,
    /// When the server's store was deleted last.
    pub(super) forgot_ms: Option<u64>,
    /// Hosts for which a copy of the home has served: neither home knows all that both have done.
    pub(super) split: std::collections::BTreeSet<usize>,
    /// What was given to a sidecar because of a letter that somebody has played again.
    pub(super) played_again: std::collections::BTreeSet<String>,
}

impl World {
    pub(super) fn new(seed: u64, is_real: bool) -> World {
        let mut rng = Rng::new(seed);
        let member = |host: usize| Member {
            name: cast().names[host].clone(),
            home_id: HomeId(Uuid::from_u128(1 + host as u128)),
            user_key: cast().public[host].0.clone(),
            box_key: cast().public[host].1.clone(),
            admitted_at: String::new(),
        };
        let list = MemberList::new(cast().fleet.clone(), 1, (0..=HOSTILE).map(member).collect());
        let signed = SignedList::sign(is_real, list.clone(), true);
        let hours = |rng: &mut Rng| i64::try_from(rng.below(20 * 3_600_000)).expect("hours") - 36_000_000;
        let server = Server::new(signed.clone(), hours(&mut rng));
        let homes = (0..HONEST).map(|host| home(host, &list, hours(&mut rng))).collect();
        World {
            rng,
            is_real,
            now_ms: 1_000_000_000,
            server,
            snapshots: Vec::new(),
            faults: Faults::default(),
            homes,
            list,
            old_lists: vec![signed],
            kill_permille: 0,
            kill_at: None,
            points: 0,
            asked: Vec::new(),
            done: Vec::new(),
            letters_seen: VecDeque::new(),
            audited: 0,
            texts: 0,
            homes_made: 100,
            faults_found: Vec::new(),
            traced: VecDeque::new(),
            is_resting: false,
            forgot_ms: None,
            split: Default::default(),
            played_again: Default::default(),
        }
    }

    pub(super) fn trace(&mut self, at: usize, what: &str) {
        if self.traced.len() >= MOST_TRACED {
            self.traced.pop_front();
        }
        let host = self.homes.get(at).map_or("-", |home| NAMES[home.host]);
        self.traced.push_back(format!("{:>9} {host}{at} {what}", self.now_ms - 1_000_000_000));
    }

    pub(super) fn broken(&mut self, what: String) {
        self.trace(usize::MAX, &format!("BROKEN: {what}"));
        self.faults_found.push(what);
    }

    pub(super) fn audit(&mut self, at: usize) {
        self.audited += 1;
        self.trace(at, "is sent something that is not authentic");
    }

    pub(super) fn kill(&mut self, at: usize) {
        self.trace(at, "is killed");
        let pause = if self.rng.chance(50) { self.rng.below(500) } else { self.rng.below(100_000) };
        self.homes[at].bridge = None;
        self.homes[at].start_at_ms = Some(self.now_ms + pause);
    }

    /// The hostile member remembers the letter. A member sees all that goes over the server, because it can name any
    /// subject as the place for an answer.
    pub(super) fn kept_letters(&mut self, message: &Message) {
        if self.letters_seen.len() >= MOST_KEPT {
            self.letters_seen.pop_front();
        }
        self.letters_seen.push_back(message.clone());
    }

    /// A program drops a request.
    pub(super) fn ask(&mut self, at: usize, to: usize, kind: &str, ttl_ms: u64) -> FleetId {
        self.texts += 1;
        let id: FleetId = format!("r-{}", self.texts).parse().expect("an id");
        self.ask_as(at, to, kind, ttl_ms, &id);
        id
    }

    pub(super) fn ask_as(&mut self, at: usize, to: usize, kind: &str, ttl_ms: u64, id: &FleetId) {
        self.texts += 1;
        let bytes = format!("{kind} text-{}", self.texts);
        let home = &mut self.homes[at];
        let record = Asked::new(home.host, id, to, &bytes, ttl_ms);
        home.disk.requests.insert(id.clone(), Ask { to, bytes: bytes.clone(), ttl_ms });
        self.asked.push(record);
        self.trace(at, &format!("asks {} {id}: {bytes} within {ttl_ms}", NAMES[to]));
    }

    /// Lets this time pass, and does everything that is due until then.
    pub(super) fn advance(&mut self, by_ms: u64) {
        let until = self.now_ms + by_ms;
        self.run_due();
        loop {
            let next = (0..self.homes.len()).filter_map(|at| self.wakes_at_ms(at)).min();
            match next.map(|at| at.max(self.now_ms + 1)) {
                Some(at) if at <= until => self.now_ms = at,
                _ => break,
            }
            self.run_due();
            if !self.faults_found.is_empty() {
                return;
            }
        }
        self.now_ms = until;
    }

    fn wakes_at_ms(&self, at: usize) -> Option<u64> {
        let home = &self.homes[at];
        let serves = home.serves(0, self.now_ms);
        let is_reached = home.link == Link::Up && serves;
        // At rest a lease is renewed when there is something to do: else a week would have 40,000 rosters.
        let keeps_lease = !(self.is_resting && serves);
        home.wakes_at_ms(self.server.next_due_ms(home.host).filter(|_| is_reached), keeps_lease, serves)
    }

    /// All homes do what is due, in any order.
    pub(super) fn run_due(&mut self) {
        let first = self.rng.at(self.homes.len());
        for step in 0..self.homes.len() {
            let at = (first + step) % self.homes.len();
            self.run_home(at);
            self.promise_one_serves();
        }
    }

    pub(super) fn run_home(&mut self, at: usize) {
        let now_ms = self.now_ms;
        let done = self.homes[at].run_sidecar(&mut self.rng, now_ms);
        if !done.is_empty() {
            let now = self.homes[at].boot_ms(now_ms);
            if let Some(bridge) = &mut self.homes[at].bridge {
                bridge.lease.changed(now);
            }
        }
        for (rid, bytes) in done {
            self.note_done(at, rid, bytes);
        }
        if !self.homes[at].serves(0, now_ms) || self.homes[at].frozen_until_ms > now_ms {
            self.homes[at].idle_ms = now_ms;
        }
        if self.homes[at].frozen_until_ms > now_ms {
            return;
        }
        if self.homes[at].start_at_ms.is_some_and(|at| at <= now_ms) {
            self.start_bridge(at);
        }
        if self.homes[at].bridge.as_ref().is_some_and(|bridge| bridge.ended.is_none()) {
            self.run_bridge(at);
        }
    }

    /// The fleet's owner publishes a changed list.
    pub(super) fn change_members(&mut self, change: impl FnOnce(&mut Vec<Member>)) {
        let mut members = self.list.members.clone();
        change(&mut members);
        self.list = MemberList::new(cast().fleet.clone(), self.list.version + 1, members);
        let signed = SignedList::sign(self.is_real, self.list.clone(), true);
        self.old_lists.push(signed.clone());
        self.server.list = signed;
        (0..self.homes.len()).for_each(|at| self.read_list(at));
    }

    /// The home at this index gets a new identity, and is admitted again.
    pub(super) fn new_identity(&mut self, at: usize) {
        self.homes_made += 1;
        let home_id = HomeId(Uuid::from_u128(self.homes_made.into()));
        let host = self.homes[at].host;
        self.homes[at].home_id = home_id;
        // If the home was set back, what is open in it may have been sent in the time that it has lost.
        self.homes[at].disk.out.values_mut().for_each(|out| out.was_begun = true);
        (self.homes[at].disk.last_n, self.homes[at].disk.stored_n, self.homes[at].highest_n) = (0, 0, 0);
        self.change_members(|members| {
            for member in members.iter_mut().filter(|member| member.name == cast().names[host]) {
                member.home_id = home_id;
            }
        });
    }

    /// The letters that lie in a box.
    pub(super) fn in_box(&self, to: usize, what: What) -> usize {
        self.server.letters.iter().filter(|stored| stored.to == to && stored.what == what).count()
    }
}

/// Each host lets the others send texts, and allows nothing else.
pub(super) fn accepts(host: usize) -> Accepts {
    let others = (0..HONEST).filter(|other| *other != host);
    let entries: Vec<String> = others.map(|other| format!(r#""{}": ["send"]"#, NAMES[other])).collect();
    serde_json::from_str(&format!("{{{}}}", entries.join(","))).expect("rights")
}

fn home(host: usize, list: &MemberList, ahead_ms: i64) -> Home {
    Home {
        host,
        home_id: list.members[host].home_id,
        machine: format!("machine-{host}"),
        boots: 1,
        was_moved: false,
        disk: Disk::new(Members::new(list.clone())),
        accepts: accepts(host),
        boot_ahead_ms: -i64::try_from(host).expect("few") * 77_000_000 - 5_000,
        wall_ahead_ms: ahead_ms,
        wall_was_set: false,
        bridge: None,
        start_at_ms: Some(0),
        frozen_until_ms: 0,
        link: Link::Up,
        sidecar_runs: true,
        sidecar_died_ms: 0,
        highest_list: list.version,
        highest_n: 0,
        idle_ms: 0,
        problems: std::collections::BTreeSet::new(),
    }
}
