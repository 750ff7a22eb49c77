//! The hostile member, and a server whose owner is hostile too: letters that are forged, played again, reflected and
//! relabelled, rosters that are written over, and old or false member lists.

use super::super::letter::{Age, Ends, What};
use super::super::members::{Member, MemberList};
use super::bridge::Draft;
use super::check::Asked;
use super::home::Link;
use super::seal::{HOSTILE, NAMES, Sealed, SignedList, cast};
use super::server::{Entry, Faults, Message};
use super::world::{HONEST, World};
use crate::core::host::{FleetId, HomeId};

impl World {
    /// The hostile member has the server store any bytes on any subject.
    fn inject(&mut self, to: usize, from: usize, what: What, sealed: Sealed) {
        let message = Message { number: self.rng.next(), to, from, what, sealed, is_first_hand: false };
        let (now_ms, faults) = (self.now_ms, Faults::default());
        let _ = self.server.publish(message, &faults, &mut self.rng, now_ms);
    }

    fn home_of(&self, host: usize) -> HomeId {
        let member = self.list.members.iter().find(|member| member.name == cast().names[host]);
        member.map_or(HomeId(uuid::Uuid::nil()), |member| member.home_id)
    }

    /// A letter that the hostile member seals itself, with its own key, whatever it says of its sender.
    pub(super) fn forge(&mut self, what: What, subject: usize, says: usize, to: usize, id: FleetId, bytes: &str) {
        let names = &cast().names;
        let ends = Ends {
            from: names[says].clone(),
            to: names[to].clone(),
            from_home: self.home_of(says),
            to_home: self.home_of(to),
        };
        let wall_ms = self.homes[to].wall_ms(self.now_ms);
        let age = Age { sent_at: wall_ms.to_string(), age_ms: 0, ttl_ms: 600_000 };
        let draft = Draft { what, id, ends, age, bytes: bytes.to_owned() };
        let sealed = draft.seal(self.is_real, HOSTILE, to);
        self.inject(to, subject, what, sealed);
    }

    /// What it asks for in its own name, rightly sealed.
    fn ask_as_itself(&mut self, to: usize) {
        self.texts += 1;
        let id: FleetId = format!("m-{}", self.texts).parse().expect("an id");
        let bytes = format!("{} text-{}", ["agent_send", "publish", "view"][self.rng.at(3)], self.texts);
        let mut asked = Asked::new(HOSTILE, &id, to, &bytes, 600_000);
        asked.taken_ms = Some(self.now_ms);
        self.asked.push(asked);
        self.forge(What::Req, HOSTILE, HOSTILE, to, id, &bytes);
    }

    /// A letter that was seen comes again: on its own subject, back to its sender, to another host, or as the other
    /// kind.
    fn play_again(&mut self, to: usize) {
        if self.letters_seen.is_empty() {
            return;
        }
        let at = self.rng.at(self.letters_seen.len());
        let Message { to: its_to, from: its_from, what, sealed, .. } = self.letters_seen[at].clone();
        let other = if what == What::Req { What::Res } else { What::Req };
        match self.rng.below(6) {
            0 | 1 => self.inject(its_to, its_from, what, sealed),
            2 => self.inject(its_from, its_to, what, sealed),
            3 => self.inject(its_from, its_to, other, sealed),
            4 => self.inject(to, its_from, what, sealed),
            _ => self.inject(its_to, its_from, other, sealed),
        }
    }

    pub(super) fn hostile_act(&mut self) {
        let (to, other) = (self.rng.at(HONEST), self.rng.at(NAMES.len()));
        self.texts += 1;
        let open: Vec<FleetId> = self.homes[to].disk.out.keys().cloned().collect();
        let any: FleetId = format!("f-{}", self.texts).parse().expect("an id");
        let id = if open.is_empty() { any } else { open[self.rng.at(open.len())].clone() };
        let bytes = format!("agent_send text-{}", self.texts);
        match self.rng.below(10) {
            0 => {
                let noise: Vec<u8> = (0..self.rng.below(90)).map(|byte| (byte * 37) as u8).collect();
                self.inject(to, other, What::Req, Sealed::Real(noise));
            }
            1..5 => self.play_again(to),
            5 => self.forge(What::Req, other, to.wrapping_add(1) % HONEST, to, id, &bytes),
            6 => self.forge(What::Req, HOSTILE, (to + 1) % HONEST, to, id, &bytes),
            7 => {
                let subject = if self.rng.chance(50) { HOSTILE } else { (to + 1) % HONEST };
                self.forge(What::Res, subject, subject, to, id, "200 done by nobody");
            }
            8 => self.server.put(to, Entry::Scribble),
            _ => self.ask_as_itself(to),
        }
    }

    /// The server's owner shows an old list, or a list that somebody else has signed.
    pub(super) fn false_list(&mut self) {
        let before = self.server.list.clone();
        self.server.list = if self.rng.chance(60) {
            self.old_lists[self.rng.at(self.old_lists.len())].clone()
        } else {
            let all: Vec<Member> = self.list.members.clone();
            let forged = MemberList::new(cast().fleet.clone(), self.list.version + 9, all);
            SignedList::sign(self.is_real, forged, false)
        };
        for at in 0..self.homes.len() {
            if self.homes[at].link == Link::Up && self.homes[at].bridge.is_some() {
                self.read_list(at);
            }
        }
        self.server.list = before;
    }
}
