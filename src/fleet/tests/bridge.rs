//! A bridge at the host that asks, and its lease. It may be killed at each `point`, between any two durable steps.

use super::super::answering::{Here, disagrees_as_result, sender};
use super::super::asking::{Asking, AskingStep, GivenUp, Published, TakenRequest};
use super::super::lease::{Lease, LeaseAct, LeaseProblem, OursSeen, Own};
use super::super::letter::{Age, Ends, Header, Letter, LetterPart, What};
use super::super::rights::may_be_asked;
use super::home::{Bridge, Link, Out};
use super::seal::{NAMES, Sealed, cast, open, place, seal};
use super::server::{Entry, Message, Settle};
use super::world::World;
use crate::core::host::FleetId;
use uuid::Uuid;

/// The bridge was killed.
pub(super) struct Killed;

pub(super) type Step = Result<(), Killed>;

/// A letter before it is sealed.
pub(super) struct Draft {
    pub(super) what: What,
    pub(super) id: FleetId,
    pub(super) ends: Ends,
    pub(super) age: Age,
    pub(super) bytes: String,
}

impl Draft {
    pub(super) fn seal(self, is_real: bool, from: usize, to: usize) -> Sealed {
        let header = Header::new(cast().fleet.clone(), self.what, self.id, self.ends, self.age);
        let parts = vec![LetterPart { name: "request".to_owned(), bytes: self.bytes.into_bytes() }];
        seal(is_real, Letter { header, parts }, from, to)
    }
}

/// The bytes of a letter's first part.
pub(super) fn text_of(letter: &Letter) -> String {
    String::from_utf8_lossy(&letter.parts[0].bytes).into_owned()
}

impl World {
    /// A place where the bridge may be killed.
    pub(super) fn point(&mut self, at: usize) -> Step {
        self.points += 1;
        let dies = match &mut self.kill_at {
            Some((home, left)) if *home == at => {
                *left = left.wrapping_sub(1);
                *left == 0
            }
            _ => self.rng.below(1_000) < self.kill_permille,
        };
        if dies { Err(Killed) } else { Ok(()) }
    }

    pub(super) fn start_bridge(&mut self, at: usize) {
        let (now_ms, random) = (self.now_ms, self.rng.next());
        let home = &mut self.homes[at];
        let (now, moment) = (home.boot_ms(now_ms), home.moment(now_ms));
        let instance = Uuid::from_u128(u128::from(random));
        let own = Own {
            machine: home.machine.clone(),
            boot: home.boot(),
            instance,
            journal_seq: home.disk.journal_seq,
            last_n: home.disk.last_n,
            stored_n: home.disk.stored_n,
            was_moved: home.was_moved,
        };
        let mut asking = Asking::new(random);
        // What was answered before it could be removed is not asked again.
        home.disk.out.retain(|id, _| !home.disk.results.contains_key(id));
        for (id, out) in &home.disk.out {
            asking.take(id.clone(), taken(out, out.taken.age_ms(&moment)), now);
        }
        let lease = Lease::new(own, now);
        let (time, waiting) = (Default::default(), Vec::new());
        home.bridge = Some(Bridge { lease, instance, asking, time, waiting, ended: None });
        home.start_at_ms = None;
        self.trace(at, "starts");
        self.read_list(at);
    }

    /// Does all that the bridge has to do now.
    pub(super) fn run_bridge(&mut self, at: usize) {
        let ran = self.renew(at).and_then(|()| self.take_requests(at)).and_then(|()| self.publish_due(at));
        let ran = ran.and_then(|()| self.read_results(at)).and_then(|()| self.serve(at));
        if ran.is_err() {
            self.kill(at);
        }
    }

    /// Reads the member list, if the server is reached.
    pub(super) fn read_list(&mut self, at: usize) {
        if self.homes[at].link != Link::Up {
            return;
        }
        if let Some(list) = self.server.list.open() {
            let home = &mut self.homes[at];
            home.disk.members.learn(list.clone());
            home.highest_list = home.highest_list.max(list.version);
        }
    }

    fn renew(&mut self, at: usize) -> Step {
        for _ in 0..16 {
            let (now_ms, link) = (self.now_ms, self.homes[at].link);
            let home = &mut self.homes[at];
            let (host, home_id, now) = (home.host, home.home_id, home.boot_ms(now_ms));
            let Some(bridge) = &mut home.bridge else { return Ok(()) };
            let act = bridge.lease.poll(now);
            home.disk.last_n = home.disk.last_n.max(bridge.lease.last_n());
            home.disk.stored_n = home.disk.stored_n.max(bridge.lease.stored_n());
            match act {
                None => return Ok(()),
                Some(LeaseAct::NoteScribble) => {}
                Some(LeaseAct::End(problem)) => self.end(at, problem),
                Some(LeaseAct::Look) if link != Link::Up => bridge.lease.failed(now),
                Some(LeaseAct::Look) => {
                    bridge.lease.looked(&self.server.standing(host, home_id), self.server.rosters[host].0, now);
                }
                Some(LeaseAct::Put { n, expected, serves }) => {
                    self.point(at)?;
                    if n <= std::mem::replace(&mut self.homes[at].highest_n, n) {
                        self.broken(format!("{} puts a roster whose number has gone back to {n}", NAMES[host]));
                    }
                    self.put(at, n, expected, serves);
                }
            }
        }
        panic!("the lease is never done");
    }

    fn put(&mut self, at: usize, n: u64, expected: u64, serves: bool) {
        let (now_ms, loses) = (self.now_ms, self.rng.chance(self.faults.loses_acks));
        let home = &mut self.homes[at];
        let (machine, boot, journal_seq, host) = (home.machine.clone(), home.boot(), home.disk.journal_seq, home.host);
        let (now, link, home_id) = (home.boot_ms(now_ms), home.link, home.home_id);
        let Some(bridge) = &mut home.bridge else { return };
        let instance = bridge.instance;
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&n.to_le_bytes());
        digest[8..24].copy_from_slice(instance.as_bytes());
        bridge.lease.sent(n, digest);
        if link == Link::Down {
            return bridge.lease.failed(now);
        }
        let is_stored = self.server.rosters[host].0 == expected;
        if is_stored {
            let started_at = String::new();
            let seen = OursSeen { machine, boot, instance, n, serves, journal_seq, started_at, digest };
            self.server.put(host, Entry::Roster(home_id, Box::new(seen)));
        }
        let sequence = self.server.rosters[host].0;
        match (loses || link == Link::OneWay, is_stored) {
            (true, _) => bridge.lease.failed(now),
            (false, false) => bridge.lease.looked(&self.server.standing(host, home_id), sequence, now),
            (false, true) => {
                bridge.lease.stored(n, sequence, now);
                bridge.time.learn(self.server.clock_ms(now_ms), now, now);
                self.connected(at);
            }
        }
    }

    /// Publishes all open requests again if the stream is another one than before.
    fn connected(&mut self, at: usize) {
        let (created, now_ms) = (self.server.created, self.now_ms);
        let home = &mut self.homes[at];
        let now = home.boot_ms(now_ms);
        if home.disk.stream != created {
            home.disk.stream = created;
            home.bridge.as_mut().expect("it has just put").asking.stream_replaced(now);
        }
    }

    fn end(&mut self, at: usize, problem: LeaseProblem) {
        let word = match &problem {
            LeaseProblem::HostTaken(_) => "host_taken",
            LeaseProblem::HomeCopied(_) => "home_copied",
            LeaseProblem::HomeRolledBack(_) => "home_rolled_back",
        };
        self.trace(at, word);
        self.homes[at].problems.insert(word);
        self.homes[at].bridge.as_mut().expect("it ends").ended = Some(problem);
    }

    fn take_requests(&mut self, at: usize) -> Step {
        let ids: Vec<FleetId> = self.homes[at].disk.requests.keys().cloned().collect();
        for id in ids {
            self.point(at)?;
            let (now_ms, home) = (self.now_ms, &mut self.homes[at]);
            let (now, taken_at) = (home.boot_ms(now_ms), home.moment(now_ms));
            let Some(bridge) = &mut home.bridge else { return Ok(()) };
            let ask = home.disk.requests[&id].clone();
            let is_known = home.disk.results.contains_key(&id) || home.disk.out.contains_key(&id);
            let member = home.disk.members.list().find(&cast().names[ask.to]);
            let kind = ask.bytes.split(' ').next().unwrap_or_default();
            match member {
                _ if is_known => {}
                None => drop(home.disk.results.insert(id.clone(), "404 no_host".to_owned())),
                _ if !may_be_asked(kind) => {
                    home.disk.results.insert(id.clone(), "400 not_from_elsewhere".to_owned());
                }
                _ if !bridge.asking.has_room() => continue,
                Some(member) => {
                    let to_home = member.home_id;
                    let out = Out { ask, to_home, taken: taken_at, was_begun: false };
                    bridge.asking.take(id.clone(), taken(&out, 0), now);
                    home.disk.out.insert(id.clone(), out);
                    self.note_taken(at, &id);
                }
            }
            self.point(at)?;
            self.homes[at].disk.requests.remove(&id);
        }
        Ok(())
    }

    fn publish_due(&mut self, at: usize) -> Step {
        for _ in 0..5_000 {
            let has_lease = self.homes[at].serves(0, self.now_ms);
            let now = self.homes[at].boot_ms(self.now_ms);
            let Some(bridge) = &mut self.homes[at].bridge else { return Ok(()) };
            match bridge.asking.poll(now, has_lease) {
                None => return Ok(()),
                Some(AskingStep::GiveUp { id, why, .. }) => {
                    let answer = if why == GivenUp::NotSent { "503 not_sent" } else { "504 no_answer" };
                    if has_lease {
                        self.promise_lease(at, 0, "answers");
                    }
                    self.write_result(at, &id, answer.to_owned())?;
                }
                Some(AskingStep::Publish { id, message, age_ms, is_first }) => {
                    self.publish_request(at, &id, message, age_ms, is_first)?;
                }
            }
        }
        panic!("asking is never done");
    }

    fn publish_request(&mut self, at: usize, id: &FleetId, number: u64, age_ms: u64, is_first: bool) -> Step {
        if is_first {
            self.homes[at].disk.out.get_mut(id).expect("it is open").was_begun = true;
            self.point(at)?;
        }
        let home = &self.homes[at];
        let (host, out) = (home.host, home.disk.out[id].clone());
        let (from, to) = (cast().names[host].clone(), cast().names[out.ask.to].clone());
        let is_member = home.disk.members.list().find(&to).is_some();
        let ends = Ends { from, to, from_home: home.home_id, to_home: out.to_home };
        let age = Age { sent_at: out.taken.wall_ms.to_string(), age_ms, ttl_ms: out.ask.ttl_ms };
        let draft = Draft { what: What::Req, id: id.clone(), ends, age, bytes: out.ask.bytes.clone() };
        let sealed = draft.seal(self.is_real, host, out.ask.to);
        let message = Message { number, to: out.ask.to, from: host, what: What::Req, sealed, is_first_hand: true };
        let published = if is_member { self.publish(at, message) } else { Some(Published::Unreachable) };
        self.point(at)?;
        let now = self.homes[at].boot_ms(self.now_ms);
        if let (Some(published), Some(bridge)) = (published, &mut self.homes[at].bridge) {
            bridge.asking.published(id, number, &published, now);
        }
        Ok(())
    }

    /// Publishes over this home's way to the server; none if no answer ever comes.
    pub(super) fn publish(&mut self, at: usize, message: Message) -> Option<Published> {
        self.promise_lease(at, 0, "publishes");
        match self.homes[at].link {
            Link::Down => Some(Published::Unreachable),
            link => {
                self.kept_letters(&message);
                let told = self.server.publish(message, &self.faults, &mut self.rng, self.now_ms);
                (link == Link::Up).then_some(told)
            }
        }
    }

    /// Writes a result. A request that was given up gets one even without a lease.
    fn write_result(&mut self, at: usize, id: &FleetId, answer: String) -> Step {
        self.point(at)?;
        self.trace(at, &format!("{id} has the result {answer}"));
        if let Some(before) = self.homes[at].disk.results.insert(id.clone(), answer) {
            self.broken(format!("{id} at {} had the result {before} already", self.homes[at].host));
        }
        self.point(at)?;
        self.homes[at].disk.out.remove(id);
        self.point(at)?;
        if let Some(bridge) = &mut self.homes[at].bridge {
            bridge.asking.answered(id);
        }
        Ok(())
    }

    fn read_results(&mut self, at: usize) -> Step {
        while self.homes[at].serves(0, self.now_ms) && self.homes[at].link == Link::Up {
            let host = self.homes[at].host;
            let Some(stored) = self.server.fetch(host, What::Res, self.now_ms) else { return Ok(()) };
            self.point(at)?;
            let home = &self.homes[at];
            let list = home.disk.members.list();
            let here = Here { fleet: cast().fleet.clone(), host: cast().names[host].clone(), home_id: home.home_id };
            let letter = sender(list, cast().names[stored.from].as_str())
                .and_then(|from| Some((from, open(&stored.sealed, host, &from.box_key)?)))
                .filter(|(from, letter)| disagrees_as_result(&letter.header, from, &here).is_none());
            if let Some((from, letter)) = letter {
                let (id, answer) = (letter.header.id.clone(), text_of(&letter));
                let asking = &home.bridge.as_ref().expect("it serves").asking;
                let is_reborn = || answer.starts_with("410 host_reborn");
                let earlier = || asking.awaits_earlier_home(&id, &from.name, from.home_id) && is_reborn();
                if asking.awaits(&id, &from.name, from.home_id) || earlier() {
                    self.promise_lease(at, 0, "answers");
                    self.write_result(at, &id, answer)?;
                } else if home.disk.results.get(&id).is_some_and(|result| result.starts_with("504")) {
                    self.homes[at].disk.late.insert(id, answer);
                }
            }
            self.point(at)?;
            self.settle(at, stored.seq, Settle::Done);
        }
        Ok(())
    }

    pub(super) fn settle(&mut self, at: usize, seq: u64, settle: Settle) {
        let is_lost = self.rng.chance(self.faults.loses_acks);
        if self.homes[at].link != Link::Down && !is_lost {
            self.server.settle(seq, settle, self.now_ms);
        }
    }
}

fn taken(out: &Out, age_ms: u64) -> TakenRequest {
    let to = cast().names[out.ask.to].clone();
    debug_assert!(place(&to) == out.ask.to);
    TakenRequest { to, to_home: out.to_home, age_ms, ttl_ms: out.ask.ttl_ms, was_begun: out.was_begun }
}
