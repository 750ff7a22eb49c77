//! One life of the fleet: what happens to it, by chance, and how it comes to rest.

use super::super::lease::LeaseProblem;
use super::super::rights::Accepts;
use super::home::{Disk, Home, Link};
use super::seal::{HOSTILE, cast};
use super::server::Faults;
use super::world::{HONEST, World, accepts};
use crate::core::host::{FleetId, HomeId};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// A home as it was yesterday.
pub(super) struct Yesterday {
    at: usize,
    home_id: HomeId,
    disk: Disk,
}

/// Lives the life of this seed. Returns the first promise that it breaks, with its last steps.
pub(super) fn live(seed: u64, is_real: bool) -> Result<(), String> {
    let mut world = World::new(seed, is_real);
    world.faults = if world.rng.chance(30) {
        Faults::default()
    } else {
        Faults { loses_acks: 8, lies: 4, repeats: 10, delays: 20 }
    };
    world.kill_permille = [0, 5, 30][world.rng.at(3)];
    world.server.box_limit = if world.rng.chance(20) { 3 } else { 1_000 };
    let steps = 20 + world.rng.below(40);
    let mut yesterday = None;
    world.advance(1_000);
    for _ in 0..steps {
        world.happens(&mut yesterday);
        if !world.faults_found.is_empty() {
            break;
        }
    }
    if world.faults_found.is_empty() {
        world.come_to_rest();
        world.check_at_rest();
    }
    let Some(fault) = world.faults_found.first() else { return Ok(()) };
    let trace: Vec<String> = world.traced.iter().rev().take(90).rev().cloned().collect();
    Err(format!("seed {seed}: {fault}\n{}", trace.join("\n")))
}

impl World {
    fn happens(&mut self, yesterday: &mut Option<Yesterday>) {
        let at = self.rng.at(HONEST);
        match self.rng.below(100) {
            0..26 => self.asks(at),
            26..54 => self.time_passes(),
            54..60 => self.kill(at),
            60..65 => self.link_changes(at),
            65..70 => self.sidecar_changes(at),
            70..74 => self.rights_change(at),
            74..84 => self.hostile_act(),
            84..88 => self.server_changes(),
            88 => self.false_list(),
            89 => self.expels(),
            90..92 => self.reboots(at),
            92..94 => self.freezes(at),
            94 => self.wall_is_set(at),
            95 => self.copies(at),
            96 => self.remembers(at, yesterday),
            97 => self.puts_back(yesterday),
            98 => self.installs_again(at),
            _ => self.renews_identity(at),
        }
        self.advance(0);
    }

    fn asks(&mut self, at: usize) {
        for _ in 0..=self.rng.below(3) {
            let to = (at + 1 + self.rng.at(HOSTILE)) % (HOSTILE + 1);
            let kind =
                ["agent_send", "agent_send", "agent_send", "agent_send", "handoff_retry", "publish"][self.rng.at(6)];
            let ttl_ms = match self.rng.below(20) {
                0..5 => 10_000,
                5..18 => 2 * MINUTE_MS,
                18 => 10 * MINUTE_MS,
                _ => [HOUR_MS, 3 * HOUR_MS][self.rng.at(2)],
            };
            // Nobody answers for the hostile member, so a request to it always lasts until its time is over.
            self.ask(at, to, kind, if to == HOSTILE { 10_000 } else { ttl_ms });
        }
    }

    fn time_passes(&mut self) {
        let ms = match self.rng.below(12) {
            0 => self.rng.below(10 * MINUTE_MS),
            1..4 => self.rng.below(90_000),
            4..8 => self.rng.below(10_000),
            _ => self.rng.below(600),
        };
        self.advance(ms);
    }

    fn link_changes(&mut self, at: usize) {
        let link = [Link::Up, Link::Up, Link::Down, Link::OneWay][self.rng.at(4)];
        self.trace(at, &format!("has its way to the server {link:?}"));
        self.homes[at].link = link;
    }

    fn sidecar_changes(&mut self, at: usize) {
        let home = &mut self.homes[at];
        home.sidecar_runs = !home.sidecar_runs;
        home.sidecar_died_ms = self.now_ms;
        self.trace(at, "has its sidecar stopped or started");
    }

    fn rights_change(&mut self, at: usize) {
        let host = self.homes[at].host;
        self.homes[at].accepts = match self.rng.below(4) {
            0 => Accepts::default(),
            1 => serde_json::from_str(r#"{"*": ["operate"]}"#).expect("rights"),
            _ => accepts(host),
        };
        self.trace(at, "has other rights");
    }

    fn server_changes(&mut self) {
        match self.rng.below(5) {
            0 => {
                let created = self.server.created + 1_000 + self.rng.below(1_000);
                self.server.empty(created);
                self.forgot_ms = Some(self.now_ms);
                self.trace(usize::MAX, "the server's store is deleted");
            }
            1 if !self.snapshots.is_empty() => {
                let before = self.snapshots[self.rng.at(self.snapshots.len())].clone();
                // Not if there are copies: one may have taken the name meanwhile, and nobody could see that.
                if self.homes.len() == HONEST {
                    self.server.go_back(&before, self.now_ms);
                    self.trace(usize::MAX, "the server goes back");
                }
            }
            _ => self.snapshots.push(self.server.clone()),
        }
    }

    fn expels(&mut self) {
        let host = 1 + self.rng.at(HOSTILE);
        self.trace(host, "is expelled");
        self.change_members(|members| members.retain(|member| member.name != cast().names[host]));
    }

    fn reboots(&mut self, at: usize) {
        self.kill(at);
        let (now_ms, home) = (self.now_ms, &mut self.homes[at]);
        home.boots += 1;
        home.boot_ahead_ms = -i64::try_from(now_ms).expect("a time") + 3_000;
        self.trace(at, "is rebooted");
    }

    fn freezes(&mut self, at: usize) {
        self.homes[at].frozen_until_ms = self.now_ms + self.rng.below(120_000);
        self.trace(at, "is frozen");
    }

    fn wall_is_set(&mut self, at: usize) {
        let hours = [-3, 3, 24 * 9][self.rng.at(3)] * i64::try_from(HOUR_MS).expect("an hour");
        self.homes[at].wall_ahead_ms += hours;
        self.homes[at].wall_was_set = true;
        self.trace(at, "has its clock set");
    }

    /// The home is copied, and the copy is started on another machine.
    pub(super) fn copies(&mut self, at: usize) {
        let home = &self.homes[at];
        if home.disk.last_n == 0 || self.homes.len() > HONEST + 1 || !home.disk.is_quiet() {
            return;
        }
        self.homes_made += 1;
        let copy = Home {
            machine: format!("copy-{}", self.homes_made),
            disk: home.disk.clone(),
            accepts: home.accepts.clone(),
            bridge: None,
            start_at_ms: Some(self.now_ms),
            problems: Default::default(),
            ..*home
        };
        self.homes.push(copy);
        self.trace(at, "is copied");
    }

    fn remembers(&mut self, at: usize, yesterday: &mut Option<Yesterday>) {
        if self.homes[at].disk.is_quiet() {
            *yesterday = Some(Yesterday { at, home_id: self.homes[at].home_id, disk: self.homes[at].disk.clone() });
        }
    }

    /// Sets the home back to what it was, although its bridge and sidecar have already told of a later state.
    fn puts_back(&mut self, yesterday: &mut Option<Yesterday>) {
        let Some(Yesterday { at, home_id, disk }) = yesterday.take() else { return };
        let home = &mut self.homes[at];
        let is_alone = home.disk.journal_seq > disk.journal_seq && home.home_id == home_id;
        if !is_alone || self.homes.len() > HONEST {
            return;
        }
        self.trace(at, "is put back");
        self.homes[at].bridge = None;
        let (host, known) = (self.homes[at].host, disk.clone());
        for asked in self.asked.iter_mut().filter(|asked| asked.from == host) {
            let is_known = known.out.contains_key(&asked.id) || known.results.contains_key(&asked.id);
            asked.is_lost |= !is_known;
        }
        self.homes[at].disk = disk;
        self.homes[at].highest_list = self.homes[at].disk.members.list().version;
        self.renew_identity_now(at);
    }

    /// A new home under the old name, with nothing of the old one.
    fn installs_again(&mut self, at: usize) {
        if self.homes.len() > HONEST || self.rng.chance(50) {
            return;
        }
        self.trace(at, "is installed again");
        let host = self.homes[at].host;
        self.asked.iter_mut().filter(|asked| asked.from == host).for_each(|asked| asked.is_lost = true);
        let members = self.homes[at].disk.members.clone();
        self.homes[at].disk = Disk::new(members);
        self.renew_identity_now(at);
        // Its programs may use the same ids again.
        let own = self.asked.iter().filter(|asked| asked.from == host);
        let ids: std::collections::BTreeSet<FleetId> = own.map(|asked| asked.id.clone()).collect();
        for id in ids.into_iter().take(2) {
            self.ask_as(at, (at + 1) % HONEST, "agent_send", 2 * MINUTE_MS, &id);
        }
    }

    fn renews_identity(&mut self, at: usize) {
        if self.homes.len() == HONEST && self.homes[at].disk.is_quiet() {
            self.renew_identity_now(at);
        }
    }

    fn renew_identity_now(&mut self, at: usize) {
        self.homes[at].bridge = None;
        self.new_identity(at);
        self.homes[at].start_at_ms = Some(self.now_ms + 100);
        self.trace(at, "is another home now");
    }

    /// Stops all faults, and gives everything the time that it needs.
    pub(super) fn come_to_rest(&mut self) {
        self.faults = Faults::default();
        self.is_resting = true;
        (self.kill_permille, self.kill_at) = (0, None);
        self.homes.truncate(HONEST);
        let homes: Vec<HomeId> = self.homes.iter().map(|home| home.home_id).collect();
        self.trace(usize::MAX, "all comes to rest");
        let missing = |world: &World, host: usize| world.list.find(&cast().names[host]).is_none();
        for host in (0..HONEST).filter(|host| missing(self, *host)).collect::<Vec<_>>() {
            let member = self.old_lists[0].open().expect("the owner's").members[host].clone();
            self.change_members(|members| {
                members.push(super::super::members::Member { home_id: homes[host], ..member })
            });
        }
        let restarts = self.rng.chance(70);
        for at in 0..HONEST {
            let home = &mut self.homes[at];
            (home.link, home.frozen_until_ms, home.sidecar_runs) = (Link::Up, 0, true);
            // The copies are gone, and the operator says so.
            home.was_moved = home.problems.contains("home_copied");
            let has_ended = home.bridge.as_ref().is_some_and(|bridge| bridge.ended.is_some());
            if has_ended || restarts {
                home.bridge = None;
            }
            if home.bridge.is_none() {
                home.start_at_ms = Some(self.now_ms);
            }
            self.read_list(at);
        }
        self.until_all_is_answered();
    }

    /// If a bridge ended because its home was taken for another one, its operator starts it again, as that home or as a
    /// new one.
    fn operator_helps(&mut self, at: usize) {
        let ended = self.homes[at].bridge.as_ref().and_then(|bridge| bridge.ended.clone());
        let Some(problem) = ended else { return };
        self.homes[at].bridge = None;
        self.homes[at].was_moved = true;
        self.homes[at].start_at_ms = Some(self.now_ms + 1_000);
        if matches!(problem, LeaseProblem::HomeRolledBack(_)) {
            self.renew_identity_now(at);
        }
    }

    fn until_all_is_answered(&mut self) {
        for step in 0..200 {
            let is_open = |home: &Home| !home.disk.out.is_empty() || !home.disk.requests.is_empty();
            if !self.homes.iter().any(is_open) || !self.faults_found.is_empty() {
                break;
            }
            (0..HONEST).for_each(|at| self.operator_helps(at));
            self.advance(if step < 20 { MINUTE_MS } else { HOUR_MS });
        }
    }
}
