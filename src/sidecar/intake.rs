//! From files to events: what lies in the two lanes, what the ledger knows of it, and where it goes afterwards.

use super::Sidecar;
use super::turn::{BATCH, BATCH_BYTES};
use crate::agents::read_event;
use crate::core::event::{Arrived, Event, Known};
use crate::core::id::RequestId;
use crate::core::reply::{Answer, Refused, Reply};
use crate::core::request;
use crate::core::time::{Deadline, Now};
use crate::spool::{Content, Disposed, Found, Lane, Place, RejectOutcome, Scan, Why};
use crate::store::SeenEvent;

/// A file that was read, what it is decided as, and where it goes.
pub(super) struct Taken {
    pub(super) found: Found,
    /// To be decided; none for what the ledger knows already, or what is no input at all.
    pub(super) event: Option<Event>,
    /// Remembered with the commit.
    pub(super) seen: Option<SeenEvent>,
    /// Why it goes to `rejected/`; none if it is taken.
    pub(super) why: Option<Why>,
    /// A result to be written again.
    pub(super) again: Option<(Place, serde_json::Value)>,
}

/// What one turn works on.
pub(super) struct Gathered {
    pub(super) files: Vec<Taken>,
    pub(super) events: Vec<Event>,
}

impl Sidecar {
    /// Collects what has happened: files of both lanes, events of our own, and what was waiting for an empty scan.
    pub(super) fn gather(&mut self, now: &Now) -> Gathered {
        let mut files = Vec::new();
        let facts_wait = !self.pending.gone.is_empty() || self.deadline_is_due(now) || self.tmux_is_lost(now);
        let look_again = self.pending.look_again.is_some_and(|deadline| deadline.is_due(now));
        let mut empty = false;
        if self.pending.files || facts_wait || look_again || !self.pending.drained {
            if self.tmux_answers_by_now(now) {
                self.pending.tmux_unknown = None;
            }
            self.pending.files = false;
            self.pending.look_again = None;
            let began = self.pending.scans;
            self.pending.scans += 1;
            let events = self.scan(Lane::Events, now);
            let knows_tmux = self.pending.tmux_unknown.is_none();
            let requests = if knows_tmux { self.scan(Lane::Requests, now) } else { Scan::default() };
            empty = events.found.is_empty() && !events.more;
            let both_empty = empty && knows_tmux && requests.found.is_empty() && !requests.more;
            self.pending.files |= !empty || requests.more || !requests.found.is_empty();
            files.extend(events.found.into_iter().map(|found| self.event_file(found)));
            files.extend(requests.found.into_iter().map(|found| self.request_file(found)));
            if both_empty && !self.pending.drained {
                self.drained();
            }
            if empty {
                self.release_gone(began);
            }
        }
        let mut events = std::mem::take(&mut self.pending.events);
        if empty && self.pending.drained {
            self.add_due(now, &mut events);
        }
        Gathered { files, events }
    }

    fn scan(&mut self, lane: Lane, now: &Now) -> Scan {
        match self.spool.scan(lane, BATCH, BATCH_BYTES, now) {
            Ok(scan) => {
                if let Some(wait) = scan.look_again {
                    let wait = Deadline::after(now, u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
                    let sooner =
                        self.pending.look_again.is_none_or(|other| other.remaining_ms(now) > wait.remaining_ms(now));
                    if sooner {
                        self.pending.look_again = Some(wait);
                    }
                }
                self.projector.intake_problem = None;
                scan
            }
            Err(error) => {
                if self.projector.intake_problem.is_none() {
                    tracing::error!(%error, "the spool can't be read");
                }
                self.projector.intake_problem = Some(error.to_string());
                Scan::default()
            }
        }
    }

    /// Agents that were seen to be gone before this scan began, and of which no event was left, are gone.
    fn release_gone(&mut self, began: u64) {
        let (released, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending.gone).into_iter().partition(|gone| gone.scans <= began);
        self.pending.gone = waiting;
        let events = released.into_iter().map(|gone| Event::AgentGone { agent_id: gone.agent_id, how: gone.how });
        self.pending.events.extend(events);
    }

    fn deadline_is_due(&self, now: &Now) -> bool {
        let in_grace = self.pending.grace.is_some_and(|grace| !grace.is_due(now));
        !in_grace && self.state.next_deadline_ms(now) == Some(0)
    }

    fn tmux_answers_by_now(&self, now: &Now) -> bool {
        self.pending.tmux_unknown.is_some_and(|deadline| deadline.is_due(now))
    }

    fn tmux_is_lost(&self, now: &Now) -> bool {
        self.pending.tmux_lost.is_some_and(|deadline| deadline.is_due(now))
    }

    fn add_due(&mut self, now: &Now, events: &mut Vec<Event>) {
        if self.tmux_is_lost(now) {
            self.pending.tmux_lost = None;
            if self.state.server.is_some() {
                events.push(Event::Server(None));
            }
        }
        if self.deadline_is_due(now) {
            events.push(Event::Deadlines);
        }
    }

    fn event_file(&mut self, found: Found) -> Taken {
        let nothing = |found, why| Taken { found, event: None, seen: None, why, again: None };
        let Content::Whole { bytes, sha256 } = &found.content else {
            let why = found.why();
            return nothing(found, why);
        };
        let seen = SeenEvent {
            name: found.name.to_string_lossy().into_owned(),
            ino: found.stamp.ino,
            ctime_ns: found.stamp.ctime_ns,
            sha256: hex(sha256),
        };
        // A look-up that fails is followed by a commit that fails: then the file is read again.
        if self.store.was_seen(&seen).unwrap_or(false) {
            return nothing(found, None);
        }
        match read_event(bytes, &self.tools.profiles) {
            Ok(event) => {
                Taken { found, event: Some(Event::Hook(Box::new(event))), seen: Some(seen), why: None, again: None }
            }
            Err(error) => {
                let why = Why {
                    code: error.code.to_owned(),
                    message: error.message,
                    field: error.field,
                    line: None,
                    column: None,
                };
                Taken { found, event: None, seen: Some(seen), why: Some(why), again: None }
            }
        }
    }

    fn request_file(&mut self, found: Found) -> Taken {
        let Some(id) = found.request_id() else {
            let why = found.why();
            return Taken { found, event: None, seen: None, why, again: None };
        };
        let sha256 = found.sha256().map(|hash| hex(&hash)).unwrap_or_default();
        match self.store.known(&id) {
            Ok(Some(known)) => known_request(found, id, &sha256, known, &self.clock.now()),
            Ok(None) => self.new_request(found, id, sha256),
            Err(error) => {
                tracing::error!(%error, "the ledger can't be read");
                self.pending.look_again = Some(Deadline::after(&self.clock.now(), 1_000));
                Taken { found: untouched(found), event: None, seen: None, why: None, again: None }
            }
        }
    }

    fn new_request(&mut self, found: Found, id: RequestId, sha256: String) -> Taken {
        let read = match &found.content {
            Content::Whole { bytes, .. } => request::read(bytes),
            Content::Bad { code, message, line, column, .. } => {
                let (status, code) = if *code == "too_large" { (413, "too_large") } else { (400, "bad_request") };
                let mut refused = Refused::new(status, code, message.clone());
                refused.line = *line;
                refused.column = *column;
                request::Read { kind: None, request: Err(refused) }
            }
        };
        let why = found.why().or_else(|| read.request.as_ref().err().map(why_of));
        let facts = read.request.as_ref().map(|asked| self.facts(asked)).unwrap_or_default();
        let event = Event::Request(Box::new(Arrived { id, sha256, read, facts }));
        Taken { found, event: Some(event), seen: None, why, again: None }
    }

    /// Files whose content is durable go; what could not be taken goes to `rejected/` whole.
    pub(super) fn put_away(&mut self, now: &Now, files: Vec<Taken>) {
        for taken in files {
            if taken.found.name.is_empty() {
                continue;
            }
            if let Some((place, json)) = &taken.again {
                self.projector.put(&self.spool, place.clone(), json.to_string());
            }
            let moved = match &taken.why {
                None => self.spool.dispose(&taken.found).map(|disposed| disposed != Disposed::Changed),
                Some(why) => self.reject(now, &taken.found, why),
            };
            self.pending.reap = true;
            match moved {
                Ok(true) => {}
                Ok(false) => self.pending.files = true,
                Err(error) => {
                    tracing::warn!(%error, "a file that was taken can't be moved");
                    self.pending.look_again = Some(Deadline::after(now, 1_000));
                }
            }
        }
    }

    fn reject(&mut self, now: &Now, found: &Found, why: &Why) -> Result<bool, crate::spool::Error> {
        let outcome = self.spool.reject(self.rejected, found, why, now)?;
        match outcome {
            RejectOutcome::Moved(_) => self.rejected += 1,
            RejectOutcome::Gone => {}
            RejectOutcome::Full => {
                if !self.projector.rejected_full {
                    tracing::warn!("rejected/ is full: bad files stay where they are until it is emptied");
                }
                self.projector.rejected_full = true;
            }
        }
        Ok(true)
    }
}

/// The same bytes again: the same answer again, and nothing else. Other bytes: refused, beside the first answer.
fn known_request(found: Found, id: RequestId, sha256: &str, known: Known, now: &Now) -> Taken {
    if known.sha256 == sha256 {
        let again = known.result.map(|result| (Place::Result(id), result));
        return Taken { found, event: None, seen: None, why: None, again };
    }
    let refused = Refused::new(409, "id_reused", "This request id was used before, with other bytes")
        .hint("drop the request again under an id that was never used; nothing was done");
    let why = Some(why_of(&refused));
    let kind = match &found.content {
        Content::Whole { bytes, .. } => request::read(bytes).kind,
        Content::Bad { .. } => None,
    };
    let answer =
        Answer { request_id: id.clone(), kind, request_sha256: sha256.to_owned(), reply: Reply::Refused(refused) };
    let again = Some((Place::Reused(id), answer.to_json(now)));
    Taken { found, event: None, seen: None, why, again }
}

fn why_of(refused: &Refused) -> Why {
    Why {
        code: refused.code.clone(),
        message: refused.message.clone(),
        field: refused.field.clone(),
        line: refused.line,
        column: refused.column,
    }
}

/// A file that must stay where it is.
fn untouched(mut found: Found) -> Found {
    found.name.clear();
    found
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a String can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
