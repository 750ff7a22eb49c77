//! Collects the input of one cycle: files of both lanes, with what the ledger and the disk say of them; the sidecar's
//! own events; and deaths and deadlines. A death or a deadline comes only after a listing of `events/` that began later
//! has been taken whole, so that earlier events come first.

use super::clis;
use super::corrupt::{Ledger, known, or_refuse, was_seen};
use super::intake_item::{IntakeItem, case_twin, known_request, read_request, refusal, why_of};
use super::parts::Sidecar;
use super::preload::{Preload, agent_named};
use super::request_words;
use crate::agents::read_event;
use crate::core::event::{Event, IncomingRequest, RequestFacts};
use crate::core::id::RequestId;
use crate::core::request::{Needs, Request, RequestBody};
use crate::core::text::hex;
use crate::core::time::Now;
use crate::spool::{Content, IncomingFile, Lane, OutputFile, Why};
use crate::store::{Error, SeenEvent};
use serde_json::Value;

pub(super) struct CycleInput {
    pub(super) files: Vec<IntakeItem>,
    pub(super) events: Vec<Event>,
}

impl Sidecar {
    /// Collects the input of one cycle.
    ///
    /// # Errors
    /// The store can't be read. No file was taken: all of them are still in their lanes, and must be listed again.
    pub(super) fn gather(&mut self, now: &Now) -> Result<CycleInput, Error> {
        let mut files = Vec::new();
        if self.intake.took_events && self.intake.took_requests && !self.intake.drained {
            self.drained(now);
        }
        let is_due = self.timers.note_what_is_due(self.intake.events_listing, now, self.state.next_deadline_ms(now));
        let look_again = self.intake.look_again.is_some_and(|deadline| deadline.is_due(now));
        let mut completed_listing = None;
        if self.intake.files || !self.watches.gone.is_empty() || is_due || look_again || !self.intake.drained {
            completed_listing = self.look_into_lanes(now, &mut files)?;
        }
        let mut events = std::mem::take(&mut self.events);
        if let Some(listing) = completed_listing.filter(|_| self.intake.drained) {
            events.extend(self.watches.gone_before(listing));
            let next_ms = self.state.next_deadline_ms(now);
            events.extend(self.timers.release(listing, now, next_ms, self.state.server.is_some()));
        }
        Ok(CycleInput { files, events })
    }

    /// Reads the files of the lanes. Returns the number of the listing of `events/` if this scan has completed it.
    fn look_into_lanes(&mut self, now: &Now, files: &mut Vec<IntakeItem>) -> Result<Option<u64>, Error> {
        let knows_tmux = self.timers.knows_tmux(now);
        // The scan may move files to the trash that could not be moved before.
        self.tidy.has_trash |= self.spool.unmoved().is_some();
        let (intake, folders, spool) = (&mut self.intake, &mut self.watches.folders, &mut self.spool);
        intake.begin_look();
        let events = intake.scan(folders, spool, Lane::Events, now);
        let mut completed_listing = None;
        if let Some(events) = &events {
            intake.events_listing = events.listing;
            completed_listing = events.is_listing_done.then_some(events.listing);
            intake.took_events |= events.is_listing_done;
        }
        // At the start, requests wait for the events that were there, however many more arrive meanwhile. They also
        // wait until it is known whether tmux answers.
        let takes_requests = knows_tmux && intake.took_events;
        let requests = takes_requests.then(|| intake.scan(folders, spool, Lane::Requests, now)).flatten();
        intake.took_requests |= requests.as_ref().is_some_and(|scan| scan.is_listing_done);
        if requests.is_some() && std::mem::take(&mut intake.probe) {
            self.events.push(Event::Probe);
        }
        for scan in events.into_iter().chain(requests) {
            let more = scan.more || !scan.found.is_empty();
            if !self.read_files(scan.found, files, now)? {
                completed_listing = completed_listing.filter(|_| self.intake.took_events);
                break;
            }
            self.intake.files |= more;
        }
        Ok(completed_listing)
    }

    /// Reads the files that were found. Returns false if something that a file depends on could not be looked up: that
    /// file and the files behind it stay in their lane.
    pub(super) fn read_files(
        &mut self,
        found: Vec<IncomingFile>,
        files: &mut Vec<IntakeItem>,
        now: &Now,
    ) -> Result<bool, Error> {
        for found in found {
            let lane = found.lane;
            let item = match lane {
                Lane::Events => self.event_file(found, now)?,
                Lane::Requests => self.request_file(found, files, now)?,
            };
            if let Some(why) = self.intake.unavailable.take() {
                self.intake.defer(&mut self.spool, lane, why, now);
                return Ok(false);
            }
            files.push(item);
        }
        Ok(true)
    }

    pub(super) fn event_file(&mut self, found: IncomingFile, now: &Now) -> Result<IntakeItem, Error> {
        let Content::Whole { bytes, sha256 } = &found.content else {
            let why = found.why();
            return Ok(IntakeItem::undecided(found, why, None));
        };
        let seen = SeenEvent {
            name: found.name.to_string_lossy().into_owned(),
            ino: found.file_stamp.ino,
            ctime_ns: found.file_stamp.ctime_ns,
            mtime_ns: Some(found.file_stamp.mtime_ns),
            sha256: hex(sha256),
        };
        // A bad file goes to `rejected/` even if it was seen before: the sidecar may have ended before it moved the
        // file.
        let profiles = &self.tools.profiles;
        let (event, why) = match read_event(bytes, profiles) {
            Ok(mut event) => {
                if let Err(error) = clis::look_up(&mut event, found.file_stamp.ctime_ns, (&self.state, profiles), now) {
                    self.intake.unavailable = Some(format!("could not find out which program sent an event: {error}"));
                }
                (Some(Event::Hook(Box::new(event))), None)
            }
            Err(error) => {
                let (code, message, field) = (error.code.to_owned(), error.message, error.field);
                (None, Some(Why { code, message, field, line: None, column: None }))
            }
        };
        match was_seen(&self.store, &seen)? {
            Ok(false) => Ok(IntakeItem { found, event, seen: Some(seen), why, result: None }),
            Ok(true) => Ok(IntakeItem::undecided(found, why, None)),
            Err(damage) => Ok(IntakeItem::undecided(found, Some(damage), None)),
        }
    }

    fn request_file(&mut self, found: IncomingFile, before: &[IntakeItem], now: &Now) -> Result<IntakeItem, Error> {
        let Some(id) = found.request_id() else {
            let (why, result) = (found.why(), self.reserved_name(&found, before, now));
            return Ok(IntakeItem::undecided(found, why, result));
        };
        let sha256 = found.sha256().map(|hash| hex(&hash)).unwrap_or_default();
        match known((&self.store, &self.spool), &id, &found, &sha256, now)? {
            Ledger::Known(known) => {
                let mut item = known_request(found, id, &sha256, known, now);
                self.spare_answers(&mut item)?;
                Ok(item)
            }
            Ledger::New if self.has_case_twin(&id, before)? => Ok(case_twin(found, id, &sha256, &mut self.spool, now)),
            Ledger::New => self.new_request(found, id, sha256, now),
            Ledger::Corrupt(item) => Ok(*item),
        }
    }

    /// The refusal of a request `a.reused`. A result that lies under that name, or will after this cycle, is not
    /// replaced: it may be the answer about the reused id `a`.
    fn reserved_name(&self, found: &IncomingFile, before: &[IntakeItem], now: &Now) -> Option<(OutputFile, Value)> {
        let id = found.reserved_id()?;
        let own = OutputFile::Result(id.clone());
        // On some file systems, names that differ by case alone are one name.
        let path = |file: &OutputFile| self.spool.path_of(file).to_string_lossy().to_ascii_lowercase();
        let is_taken = |item: &IntakeItem| item.result.as_ref().is_some_and(|(file, _)| path(file) == path(&own));
        if before.iter().any(is_taken) || self.spool.exists(&own).unwrap_or(true) {
            return None;
        }
        let refused = read_request(found).request.err()?.hint("nothing was done; send the request under another id");
        let sha256 = found.sha256().map(|hash| hex(&hash)).unwrap_or_default();
        Some((own, refusal(found, &id, &sha256, refused, now)))
    }

    /// Whether another request, known or read before in this cycle, has an id that differs by case alone.
    fn has_case_twin(&self, id: &RequestId, before: &[IntakeItem]) -> Result<bool, Error> {
        let is_twin = |item: &IntakeItem| match &item.event {
            Some(Event::Request(arrived)) => arrived.id.as_str().eq_ignore_ascii_case(id.as_str()),
            _ => false,
        };
        Ok(before.iter().any(is_twin) || self.store.has_case_twin(id)?)
    }

    /// The answer about a reused id `a` is written as that of a request `a.reused`. If there was a request with the id
    /// `a.reused`, its own answer stays, and nothing is written about `a`. The file goes to `rejected/` all the same.
    fn spare_answers(&self, item: &mut IntakeItem) -> Result<(), Error> {
        let Some((OutputFile::Reused(id), _)) = &item.result else { return Ok(()) };
        let Ok(twin) = format!("{id}.reused").parse() else { return Ok(()) };
        match self.store.ledger_entry(&twin) {
            Ok(None) => {}
            // A damaged row, too, means that such a request was answered.
            Ok(Some(_)) | Err(Error::Row { .. }) => item.result = None,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn new_request(
        &mut self,
        found: IncomingFile,
        id: RequestId,
        sha256: String,
        now: &Now,
    ) -> Result<IntakeItem, Error> {
        let mut read = read_request(&found);
        if let Ok(asked) = &mut read.request {
            request_words::without_credentials(asked, &self.state.settings.publish.allow);
        }
        let why = found.why().or_else(|| read.request.as_ref().err().map(why_of));
        let facts = match &read.request {
            Ok(asked) => or_refuse(self.facts(asked, now), &mut read.request)?,
            Err(_) => RequestFacts::default(),
        };
        let event = Event::Request(Box::new(IncomingRequest { id, sha256, read, facts }));
        Ok(IntakeItem { found, event: Some(event), seen: None, why, result: None })
    }

    /// Looks up what a request's answer depends on outside the state, as late as possible.
    fn facts(&mut self, request: &Request, now: &Now) -> Result<RequestFacts, Error> {
        let needs = request.needs();
        self.history.loader(&self.store, &mut self.state).load_for_needs(&needs)?;
        self.look_before_work(&needs, now);
        let profiles = &self.tools.profiles;
        let mut look =
            Preload { home: &self.home, store: &self.store, state: &self.state, profiles, unavailable: None };
        let facts = look.facts(&needs);
        self.intake.unavailable = look.unavailable;
        facts
    }

    /// Before a request is decided that concerns work: reads the rules again, and the role of the agent that it names,
    /// or that of its handoff's persona.
    fn look_before_work(&mut self, needs: &Needs<'_>, now: &Now) {
        if needs.rules {
            self.look_at_rules(now);
        }
        let agent = needs.role_of.and_then(|id| agent_named(&self.state, id));
        let handoff = needs.role_in.and_then(|id| self.state.handoffs.get(&id.parse().ok()?));
        let of_agent = agent.and_then(|agent| agent.persona_slug.clone());
        if let Some(slug) = of_agent.or_else(|| handoff.map(|handoff| handoff.persona_slug.clone())) {
            self.events.extend(self.learned.learn(&self.home, [slug]));
        }
    }
}
