//! A bridge at the host that is asked: what it does with each letter, in the order of the contract.

use super::super::answering::{Here, Judged, LetterContext, judge, request_id, sender};
use super::super::asking::Published;
use super::super::letter::{Age, Ends, Header, What};
use super::bridge::{Draft, Step, text_of};
use super::home::{Link, Waiting};
use super::seal::{cast, open};
use super::server::{Message, Settle, Stored};
use super::world::World;

/// How often the server is told that a letter is being worked on.
const WORKING_MS: u64 = 20_000;
/// For how long the lease must still be valid when something is given to the sidecar.
const DROPS_WITHIN_MS: u64 = 5_000;
/// How long after a request's time nobody waits for its answer any more.
const GIVEN_UP_MS: u64 = 120_000;
/// How many requests are worked on at once.
const AT_ONCE: usize = 64;

impl World {
    pub(super) fn serve(&mut self, at: usize) -> Step {
        // Each letter that is being worked on is judged again: its answer may be there, or its time over.
        let waiting = match &mut self.homes[at].bridge {
            Some(bridge) => std::mem::take(&mut bridge.waiting),
            None => return Ok(()),
        };
        for letter in waiting {
            self.handle(at, letter)?;
        }
        while self.homes[at].serves(0, self.now_ms) && self.homes[at].link == Link::Up {
            let bridge = self.homes[at].bridge.as_ref().expect("it serves");
            let host = self.homes[at].host;
            if bridge.waiting.len() >= AT_ONCE {
                break;
            }
            let Some(stored) = self.server.fetch(host, What::Req, self.now_ms) else { break };
            self.point(at)?;
            self.open(at, &stored)?;
        }
        Ok(())
    }

    fn open(&mut self, at: usize, stored: &Stored) -> Step {
        let (host, from) = (self.homes[at].host, cast().names[stored.from].as_str());
        if sender(self.homes[at].disk.members.list(), from).is_none() {
            self.read_list(at);
        }
        let list = self.homes[at].disk.members.list();
        let letter = sender(list, from).and_then(|from| open(&stored.sealed, host, &from.box_key));
        let Some(letter) = letter else {
            self.audit(at);
            self.settle(at, stored.seq, Settle::Done);
            return Ok(());
        };
        let (seq, from, server_ms, is_first_hand) = (stored.seq, stored.from, stored.server_ms, stored.is_first_hand);
        let working_at_ms = self.now_ms;
        self.handle(at, Waiting { seq, from, letter, server_ms, working_at_ms, is_dropped: false, is_first_hand })
    }

    /// How a letter is judged; none if that can't be said now.
    fn judged(&self, at: usize, waiting: &Waiting) -> Option<Judged> {
        let (home, now_ms) = (&self.homes[at], self.now_ms);
        let bridge = home.bridge.as_ref()?;
        let header = waiting.header();
        let from = sender(home.disk.members.list(), cast().names[waiting.from].as_str())?;
        let here = Here { fleet: cast().fleet.clone(), host: cast().names[home.host].clone(), home_id: home.home_id };
        let rid = request_id(&header.from, &header.id).to_string();
        let bytes = text_of(&waiting.letter);
        let before = home.disk.incoming.get(&rid);
        let known = LetterContext {
            accepts: &home.accepts,
            kind: bytes.split(' ').next(),
            host_field: bytes.strip_prefix("handoff_offer ").and_then(|rest| rest.split(' ').next()),
            leads_outside: bytes.contains("../"),
            is_answered: home.disk.answer_to(&rid).is_some(),
            was_dropped: before.is_some(),
            was_another: before.is_some_and(|before| *before != bytes),
            sent_wall_ms: header.sent_at.parse().ok(),
            now_wall_ms: home.wall_ms(now_ms),
            in_stream_ms: bridge.time.in_stream_ms(waiting.server_ms, home.boot_ms(now_ms))?,
            has_room: true,
            can_serve: home.has_heartbeat(now_ms) && home.serves(DROPS_WITHIN_MS, now_ms),
        };
        Some(judge(header, from, &here, &known))
    }

    fn handle(&mut self, at: usize, mut waiting: Waiting) -> Step {
        let rid = request_id(&waiting.header().from, &waiting.header().id).to_string();
        let judged = self.judged(at, &waiting);
        let list = self.homes[at].disk.members.list();
        let is_member = sender(list, cast().names[waiting.from].as_str()).is_some();
        let is_disowned = !is_member || matches!(judged, Some(Judged::NotAuthentic(_)));
        // The sender may have been expelled since the request was given to the sidecar, or be another home now. Taking
        // something back needs no lease: it is this home's own spool.
        if judged == Some(Judged::TakeBack) || (waiting.is_dropped && is_disowned) {
            self.homes[at].disk.take_back(&rid);
        }
        if !self.homes[at].serves(0, self.now_ms) {
            return Ok(());
        }
        match judged {
            _ if is_disowned => {
                self.audit(at);
                self.settle(at, waiting.seq, Settle::Done);
            }
            None | Some(Judged::Later) if !waiting.is_dropped => self.settle(at, waiting.seq, Settle::Later),
            Some(Judged::AnswerAgain) => return self.answer(at, &waiting, None),
            Some(Judged::IdReused) => return self.answer(at, &waiting, Some("409 id_reused".to_owned())),
            Some(Judged::Refuse(refusal)) => {
                let (status, code) = refusal.answer();
                self.point(at)?;
                self.trace(at, &format!("refuses {rid}: {code}"));
                self.homes[at].disk.told.insert(rid, format!("{status} {code}"));
                self.point(at)?;
                return self.answer(at, &waiting, None);
            }
            Some(Judged::CarryOut) if !waiting.is_dropped => {
                let bytes = text_of(&waiting.letter);
                self.homes[at].disk.incoming.insert(rid.clone(), bytes.clone());
                self.point(at)?;
                self.drop_request(at, &waiting, &rid, &bytes);
                waiting.is_dropped = true;
                self.point(at)?;
                self.keep(at, waiting);
            }
            // The host that asked has answered the request itself long ago.
            Some(Judged::TakeBack) if self.is_given_up(at, &waiting) => self.settle(at, waiting.seq, Settle::Done),
            None | Some(Judged::NotAuthentic(_) | Judged::Later | Judged::TakeBack | Judged::CarryOut) => {
                self.keep(at, waiting)
            }
        }
        Ok(())
    }

    fn is_given_up(&self, at: usize, waiting: &Waiting) -> bool {
        let home = &self.homes[at];
        let now = home.boot_ms(self.now_ms);
        let lies = home.bridge.as_ref().and_then(|bridge| bridge.time.in_stream_ms(waiting.server_ms, now));
        let header = waiting.header();
        lies.is_some_and(|lies| header.age_ms.saturating_add(lies) > header.ttl_ms.saturating_add(GIVEN_UP_MS))
    }

    fn drop_request(&mut self, at: usize, waiting: &Waiting, rid: &str, bytes: &str) {
        self.promise_lease(at, 0, "drops");
        self.check_drop(at, waiting, bytes);
        self.trace(at, &format!("drops {rid}: {bytes}"));
        let due_ms = self.now_ms + self.rng.below(3_000);
        self.homes[at].disk.drop_request(rid, bytes, due_ms);
    }

    /// Keeps a letter that is being worked on. It is judged again when its time is over, and meanwhile the server is
    /// told that it is being worked on.
    fn keep(&mut self, at: usize, mut waiting: Waiting) {
        if waiting.working_at_ms <= self.now_ms {
            self.settle(at, waiting.seq, Settle::Working);
            let bridge = self.homes[at].bridge.as_ref().expect("it serves");
            let now = self.homes[at].boot_ms(self.now_ms);
            let lies = bridge.time.in_stream_ms(waiting.server_ms, now).unwrap_or_default();
            let header = waiting.header();
            // Once more right after its time is over.
            let left = header.ttl_ms.checked_sub(header.age_ms.saturating_add(lies));
            let pause = left.map_or(WORKING_MS, |left| WORKING_MS.min(left + 1));
            waiting.working_at_ms = self.now_ms + pause;
        }
        if let Some(bridge) = &mut self.homes[at].bridge {
            bridge.waiting.push(waiting);
        }
    }

    /// Publishes an answer: `told`, or else what is written down of the request.
    fn answer(&mut self, at: usize, waiting: &Waiting, told: Option<String>) -> Step {
        self.point(at)?;
        let header: &Header = waiting.header();
        let rid = request_id(&header.from, &header.id).to_string();
        let home = &self.homes[at];
        let bytes = told.or_else(|| home.disk.answer_to(&rid).cloned()).expect("it was answered");
        let names = &cast().names;
        let (from, to) = (names[home.host].clone(), names[waiting.from].clone());
        let ends = Ends { from, to, from_home: home.home_id, to_home: header.from_home };
        let age = Age { sent_at: home.wall_ms(self.now_ms).to_string(), age_ms: 0, ttl_ms: 0 };
        let (host, number) = (home.host, self.rng.next());
        let draft = Draft { what: What::Res, id: header.id.clone(), ends, age, bytes };
        let sealed = draft.seal(self.is_real, host, waiting.from);
        let message = Message { number, to: waiting.from, from: host, what: What::Res, sealed, is_first_hand: true };
        let published = self.publish(at, message);
        self.point(at)?;
        let settle = if published == Some(Published::Stored) { Settle::Done } else { Settle::Later };
        self.settle(at, waiting.seq, settle);
        Ok(())
    }
}
