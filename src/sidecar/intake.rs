//! From files to events: what lies in the two lanes, what the ledger knows of it, and where it goes afterwards.

use super::Sidecar;
use super::damage::{Ledger, or_refuse};
use super::turn::{BATCH, BATCH_BYTES};
use crate::agents::read_event;
use crate::core::event::{Arrived, Event, Known, RequestFacts};
use crate::core::id::RequestId;
use crate::core::reply::{Answer, Refused, Reply};
use crate::core::request;
use crate::core::text::{hex, sanitise};
use crate::core::time::{Deadline, Now};
use crate::limits;
use crate::spool::{Content, Disposed, Found, Lane, Place, RejectOutcome, Scan, Why};
use crate::store::{Error, SeenEvent};

/// When a spool that can't be read is looked at again, in milliseconds.
const UNREADABLE_MS: u64 = 1_000;

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
    ///
    /// # Errors
    /// The ledger can't be read. Then nothing was taken: every file lies where it lay.
    pub(super) fn gather(&mut self, now: &Now) -> Result<Gathered, Error> {
        let mut files = Vec::new();
        if self.pending.took_events && self.pending.took_requests && !self.pending.drained {
            self.drained(now);
        }
        self.note_what_is_due(now);
        let facts_wait = !self.pending.gone.is_empty() || self.deadline_is_due(now) || self.tmux_is_lost(now);
        let look_again = self.pending.look_again.is_some_and(|deadline| deadline.is_due(now));
        let mut whole = None;
        if self.pending.files || facts_wait || look_again || !self.pending.drained {
            if self.tmux_answers_by_now(now) {
                self.pending.tmux_unknown = None;
            }
            self.pending.files = false;
            self.pending.look_again = None;
            self.projector.intake_problem = None;
            self.pending.unreadable = false;
            let events = self.scan(Lane::Events, now);
            if let Some(events) = &events {
                self.pending.listing = events.listing;
                whole = events.whole.then_some(events.listing);
                self.pending.took_events |= events.whole;
            }
            // At the start the events that lie there come before requests, however many more come meanwhile; and requests
            // only when tmux is known.
            let takes_requests = self.pending.tmux_unknown.is_none() && self.pending.took_events;
            let requests = if takes_requests { self.scan(Lane::Requests, now) } else { None };
            self.pending.took_requests |= requests.as_ref().is_some_and(|scan| scan.whole);
            if requests.is_some() && std::mem::take(&mut self.pending.probe) {
                self.pending.events.push(Event::Probe);
            }
            for scan in events.into_iter().chain(requests) {
                let more = scan.more || !scan.found.is_empty();
                if !self.read_files(scan.found, &mut files, now)? {
                    whole = whole.filter(|_| self.pending.took_events);
                    break;
                }
                self.pending.files |= more;
            }
        }
        let mut events = std::mem::take(&mut self.pending.events);
        if let Some(listing) = whole.filter(|_| self.pending.drained) {
            events.extend(self.gone_before(listing));
            self.add_due(listing, now, &mut events);
        }
        Ok(Gathered { files, events })
    }

    /// Reads what was found. Says whether all of it could be judged: a file of which that is not so yet lies where it lay,
    /// and so do those behind it.
    pub(super) fn read_files(&mut self, found: Vec<Found>, files: &mut Vec<Taken>, now: &Now) -> Result<bool, Error> {
        for found in found {
            let lane = found.lane;
            let taken = match lane {
                Lane::Events => self.event_file(found, now)?,
                Lane::Requests => self.request_file(found, now)?,
            };
            if let Some(why) = self.pending.untold.take() {
                tracing::warn!(why, "what an event or a request depends on can't be looked at; it waits");
                self.projector.intake_problem = Some(why);
                self.pending.took_events &= lane != Lane::Events;
                self.pending.took_requests = false;
                self.spool.begin_again(lane);
                self.look_again_in(now, UNREADABLE_MS);
                return Ok(false);
            }
            files.push(taken);
        }
        Ok(true)
    }

    /// What lies in a lane; none if it can't be read, which is not the same as empty: then nothing that waits for an
    /// empty lane is judged.
    fn scan(&mut self, lane: Lane, now: &Now) -> Option<Scan> {
        // Answers would be put where nobody looks, and what lies in the folders that are held is perhaps not meant for us.
        if self.projector.folder_problem.is_some() {
            self.check_folders();
            if self.projector.folder_problem.is_some() {
                self.projector.intake_problem.clone_from(&self.projector.folder_problem);
                self.pending.unreadable = true;
                self.look_again_in(now, UNREADABLE_MS);
                return None;
            }
        }
        // What a request needs to know could not be looked up either, and would be taken for not there.
        let scan = match limits::shortage() {
            Some(why) => Err(why),
            None => self.spool.scan(lane, BATCH, BATCH_BYTES, now).map_err(|error| error.to_string()),
        };
        match scan {
            Ok(scan) => {
                if let Some(wait) = scan.look_again {
                    self.look_again_in(now, u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
                }
                Some(scan)
            }
            Err(error) => {
                tracing::error!(%error, "the spool can't be read");
                self.projector.intake_problem = Some(error);
                self.pending.unreadable = true;
                self.look_again_in(now, UNREADABLE_MS);
                None
            }
        }
    }

    fn look_again_in(&mut self, now: &Now, ms: u64) {
        if self.pending.look_again.is_none_or(|other| other.remaining_ms(now) > ms) {
            self.pending.look_again = Some(Deadline::after(now, ms));
        }
    }

    /// Agents that were seen to be gone before this listing began: whatever they had told lay there, and is taken.
    fn gone_before(&mut self, listing: u64) -> impl Iterator<Item = Event> + use<> {
        let (released, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending.gone).into_iter().partition(|gone| gone.listing < listing);
        self.pending.gone = waiting;
        released.into_iter().map(|gone| Event::AgentGone { agent_id: gone.agent_id, how: gone.how })
    }

    /// Remembers since which listing something is due: events that lay there by then come before it is judged, and no later
    /// ones, or a flood of events would put it off for ever.
    fn note_what_is_due(&mut self, now: &Now) {
        let begun = self.pending.listing;
        let (deadline, lost) = (self.deadline_is_due(now), self.tmux_is_lost(now));
        let since = |is_due: bool, known: Option<u64>| is_due.then(|| known.unwrap_or(begun));
        self.pending.deadline_since = since(deadline, self.pending.deadline_since);
        self.pending.lost_since = since(lost, self.pending.lost_since);
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

    fn add_due(&mut self, listing: u64, now: &Now, events: &mut Vec<Event>) {
        let is_before = |since: Option<u64>| since.is_some_and(|since| since < listing);
        if is_before(self.pending.lost_since) && self.tmux_is_lost(now) {
            (self.pending.tmux_lost, self.pending.lost_since) = (None, None);
            if self.state.server.is_some() {
                events.push(Event::Server(None));
            }
        }
        if is_before(self.pending.deadline_since) && self.deadline_is_due(now) {
            self.pending.deadline_since = None;
            events.push(Event::Deadlines);
        }
    }

    pub(super) fn event_file(&mut self, found: Found, now: &Now) -> Result<Taken, Error> {
        let Content::Whole { bytes, sha256 } = &found.content else {
            let why = found.why();
            return Ok(Taken { found, event: None, seen: None, why, again: None });
        };
        let seen = SeenEvent {
            name: found.name.to_string_lossy().into_owned(),
            ino: found.stamp.ino,
            ctime_ns: found.stamp.ctime_ns,
            sha256: hex(sha256),
        };
        // What is bad goes to `rejected/` also when it comes again: the sidecar may have ended before it was moved.
        let (event, why) = match read_event(bytes, &self.tools.profiles) {
            Ok(mut event) => {
                if let Err(error) = self.look_up_clis(&mut event, found.stamp.ctime_ns, now) {
                    self.pending.untold = Some(format!("it can't be seen which program an event is of: {error}"));
                }
                (Some(Event::Hook(Box::new(event))), None)
            }
            Err(error) => {
                let (code, message, field) = (error.code.to_owned(), error.message, error.field);
                (None, Some(Why { code, message, field, line: None, column: None }))
            }
        };
        match self.was_seen(&seen)? {
            Ok(false) => {}
            Ok(true) => return Ok(Taken { found, event: None, seen: None, why, again: None }),
            Err(damage) => return Ok(Taken { found, event: None, seen: None, why: Some(damage), again: None }),
        }
        Ok(Taken { found, event, seen: Some(seen), why, again: None })
    }

    fn request_file(&mut self, found: Found, now: &Now) -> Result<Taken, Error> {
        let Some(id) = found.request_id() else {
            let why = found.why();
            return Ok(Taken { found, event: None, seen: None, why, again: None });
        };
        let sha256 = found.sha256().map(|hash| hex(&hash)).unwrap_or_default();
        match self.known(&id, &found, &sha256, now)? {
            Ledger::Known(known) => {
                let mut taken = known_request(found, id, &sha256, known, now);
                self.spare_answers(&mut taken)?;
                Ok(taken)
            }
            Ledger::New => self.new_request(found, id, sha256, now),
            Ledger::Damaged(taken) => Ok(*taken),
        }
    }

    /// `a.reused` is a request id too: what is said of `a`, used twice, does not take the place of that one's answer. It
    /// stands in `rejected/` all the same.
    fn spare_answers(&self, taken: &mut Taken) -> Result<(), Error> {
        let Some((Place::Reused(id), _)) = &taken.again else { return Ok(()) };
        let Ok(twin) = format!("{id}.reused").parse() else { return Ok(()) };
        match self.store.known(&twin) {
            Ok(None) => {}
            // A row that can't be understood is a request that was answered, too.
            Ok(Some(_)) | Err(Error::Row { .. }) => taken.again = None,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn new_request(&mut self, found: Found, id: RequestId, sha256: String, now: &Now) -> Result<Taken, Error> {
        let mut read = read_request(&found);
        let why = found.why().or_else(|| read.request.as_ref().err().map(why_of));
        let facts = match &read.request {
            Ok(asked) => or_refuse(self.facts(asked, now), &mut read.request)?,
            Err(_) => RequestFacts::default(),
        };
        let event = Event::Request(Box::new(Arrived { id, sha256, read, facts }));
        Ok(Taken { found, event: Some(event), seen: None, why, again: None })
    }

    /// Files whose content is durable go; what could not be taken goes to `rejected/` whole.
    pub(super) fn put_away(&mut self, now: &Now, files: Vec<Taken>) {
        for taken in files {
            if let Some((place, json)) = &taken.again {
                self.projector.put(&self.spool, place.clone(), &json.to_string());
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
            RejectOutcome::Dropped => {
                self.projector.rejected_full = true;
                tracing::error!(
                    name = %sanitise(&found.name.to_string_lossy()),
                    "rejected/ is full and the lane is full of bad files: this one was removed"
                );
            }
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

fn read_request(found: &Found) -> request::Read {
    match &found.content {
        Content::Whole { bytes, .. } => request::read(bytes),
        Content::Bad { code, message, line, column, .. } => {
            let (status, code) = if *code == "too_large" { (413, "too_large") } else { (400, "bad_request") };
            let mut refused = Refused::new(status, code, message.clone());
            refused.line = *line;
            refused.column = *column;
            request::Read { kind: None, request: Err(refused), malformed: None }
        }
    }
}

/// The same bytes again: the same answer again, and nothing else; what is bad is kept, as it would have been had the
/// sidecar not ended before it was moved. Other bytes: refused, beside the first answer.
fn known_request(found: Found, id: RequestId, sha256: &str, known: Known, now: &Now) -> Taken {
    if known.sha256 == sha256 {
        let again = known.result.map(|result| (Place::Result(id), result));
        let why = found.why().or_else(|| read_request(&found).request.as_ref().err().map(why_of));
        return Taken { found, event: None, seen: None, why, again };
    }
    let refused = Refused::id_reused();
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

pub(super) fn why_of(refused: &Refused) -> Why {
    Why {
        code: refused.code.clone(),
        message: refused.message.clone(),
        field: refused.field.clone(),
        line: refused.line,
        column: refused.column,
    }
}
