//! Requests of this host to others: the bridge takes them from `requests/`, publishes each until it is answered, and
//! writes the answer.

use super::audit::AuditLine;
use super::out::{self, OutFile, TakenFile};
use super::refused::FleetRefused;
use super::silence::ServerMatter;
use super::state::{Bridge, Done, PUBLISHED_AT_ONCE};
use crate::cli::error::CliError;
use crate::contract::bridge::BridgeConcern;
use crate::contract::{self, ResultFile};
use crate::core::host::FleetId;
use crate::fleet::answering::disagrees_as_result;
use crate::fleet::asking::{AskingStep, Published, TakenRequest};
use crate::fleet::letter::{Age, Ends};
use crate::fleet::nats::{ArrivedLetter, Settle};
use crate::fleet::{Header, Letter, LetterError, Member, What};

/// How long no request is published or given up after an answer could not be written, in milliseconds.
const PAUSE_MS: u64 = 5_000;
/// The most files that are taken at once: then the bridge must have time to renew its lease.
const TAKEN_AT_ONCE: usize = 50;
/// The least time until files that are being written are looked at again, in milliseconds.
const AGAIN_SOONEST_MS: u64 = 500;

/// The most files that one look passes over because they are not whole, or wait for the list of members.
const MOST_UNREAD: usize = 1_000;

impl Bridge {
    /// Takes the files in `requests/`.
    pub(super) fn take_requests(&mut self) {
        let names = self.folder.names("requests").unwrap_or_else(|error| {
            tracing::warn!("{error}");
            Vec::new()
        });
        self.has_more_requests = false;
        self.incomplete.keep_only(|name| names.iter().any(|there| there == name));
        self.take_files(names);
        // A file that is being written is looked at again soon. A file that can't be taken for another reason waits for
        // the next look at all folders.
        let soonest_ms = self.now.boot_ms.saturating_add(AGAIN_SOONEST_MS);
        self.requests_due_ms = self.incomplete.look_at_ms().map(|at| at.max(soonest_ms));
    }

    fn take_files(&mut self, names: Vec<String>) {
        let (mut taken, mut failed, mut waiting) = (0, 0, 0);
        // As in the spool, a temporary name is never read.
        for name in names.into_iter().filter(|name| !name.ends_with(".tmp")) {
            if taken + failed >= TAKEN_AT_ONCE || waiting >= MOST_UNREAD {
                // If a file could not be taken, all wait for the next look: a disk that is full stays so for a while.
                self.has_more_requests = failed == 0 && waiting < MOST_UNREAD;
                return;
            }
            let known = (self.members.list(), &self.here.host, &self.settings);
            let may = (self.asking.has_room(), self.is_list_read);
            match out::take(&self.folder, &name, known, may, (&mut self.incomplete, &self.now)) {
                Ok(Some((id, TakenFile::Open(request)))) => self.asking.take(id, *request, self.now.boot_ms),
                Ok(Some((id, TakenFile::Answered(refused)))) => {
                    let status = format!("{} {}", refused.status, refused.code);
                    self.note(AuditLine { dir: "out", host: "", id: id.as_str(), kind: "", status: &status }, b"");
                }
                // The request may be in `out/` and still not be open here: it was written there once, and then its file
                // in `requests/` could not be removed.
                Ok(Some((id, TakenFile::Known))) => {
                    if let Ok(Some(out)) = out::load(&self.folder, &id) {
                        self.asking.take(id, out.taken(&self.now), self.now.boot_ms);
                    }
                }
                // The file waits until it is whole, or for the list of members. The files behind it do not wait.
                Ok(None) => {
                    waiting += 1;
                    continue;
                }
                Err(error) => {
                    // One log line for all files: on a full disk each fails in the same way.
                    if failed == 0 {
                        tracing::warn!(name, "a request to another host was not taken: {error}");
                    }
                    failed += 1;
                    continue;
                }
            }
            taken += 1;
        }
    }

    /// Publishes the requests that are due, and gives up those whose time is over.
    pub(super) fn publish_due(&mut self) {
        while self.in_flight < PUBLISHED_AT_ONCE && self.now.boot_ms >= self.paused_until_ms {
            match self.asking.poll(self.now.boot_ms, self.has_lease(0)) {
                None => return,
                Some(AskingStep::Publish { id, message, age_ms, .. }) => self.publish(id, message, age_ms),
                Some(AskingStep::GiveUp { id, asked, .. }) => self.give_up(id, asked),
            }
        }
    }

    fn publish(&mut self, id: FleetId, message: u64, age_ms: u64) {
        match self.sealed(&id, age_ms) {
            Ok((out, sealed)) => {
                self.in_flight += 1;
                let number = format!("{}.{id}.{message:x}", self.here.host);
                self.beside(|courier| async move {
                    let outcome = courier.publish(&out.to, What::Req, &number, sealed).await;
                    Done::Published { id, message, out: Box::new(out), outcome }
                });
            }
            Err(Some(refused)) => drop(self.answer_here(&id, |_| refused)),
            // It is tried again later.
            Err(None) => self.asking.published(&id, message, &Published::Unreachable, self.now.boot_ms),
        }
    }

    /// The file of a request and its sealed letter. Before it returns, it notes in the file, durably, that publishing
    /// has begun. The error is the answer to a request that can't be sent at all; none if it is to be tried again
    /// later.
    fn sealed(&self, id: &FleetId, age_ms: u64) -> Result<(OutFile, Vec<u8>), Option<FleetRefused>> {
        let later = |error: &dyn std::fmt::Display| {
            tracing::warn!(id = id.as_str(), "a request can't be published now: {error}");
            None
        };
        let Some(mut out) = out::load(&self.folder, id).map_err(|error| later(&error))? else {
            return Err(later(&"its file is gone"));
        };
        let Some(to) = self.members.list().find(&out.to) else {
            let what = format!("{} is not a host of this fleet any more", out.to);
            // A request that was sent before may have been carried out, and its answer may be on its way.
            return Err(if out.was_begun { later(&what) } else { Some(expelled(&what)) });
        };
        if to.home_id != out.to_home {
            return Err(Some(other_home(&out)));
        }
        let parts = out::parts(&self.folder, id, &out).map_err(|error| later(&error))?;
        if !out.was_begun {
            out.was_begun = true;
            out::save(&self.folder, id, &out).map_err(|error| later(&error))?;
        }
        let age = Age { sent_at: out.sent_at.clone(), age_ms, ttl_ms: out.ttl_ms };
        let mut header = self.header(What::Req, id.clone(), (to, out.to_home), age);
        header.server_ms = self.server_time.server_ms(self.now.boot_ms);
        let letter = Letter { header, parts };
        match letter.seal(&self.keys, &to.box_key, self.courier.most_bytes()) {
            Ok(sealed) => Ok((out, sealed)),
            Err(LetterError::TooLarge { bytes, most }) => {
                let message = format!("The letter would have {bytes} bytes; at most {most} are allowed.");
                Err(Some(FleetRefused::new(413, "too_large", message)))
            }
            Err(error) => {
                Err(Some(FleetRefused::new(400, "bad_request", format!("The letter can't be made: {error}."))))
            }
        }
    }

    pub(super) fn header(
        &self,
        what: What,
        id: FleetId,
        (to, to_home): (&Member, crate::core::host::HomeId),
        age: Age,
    ) -> Header {
        let (from, from_home) = (self.here.host.clone(), self.here.home_id);
        Header::new(self.here.fleet.clone(), what, id, Ends { from, to: to.name.clone(), from_home, to_home }, age)
    }

    pub(super) fn published(&mut self, id: &FleetId, message: u64, out: &OutFile, outcome: &Published) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.asking.published(id, message, outcome, self.now.boot_ms);
        self.tell_of_letter(outcome);
        let status = match outcome {
            Published::Stored => "sent",
            Published::Full => "not sent: the box is full",
            Published::Refused(_) => "not sent: the server stores nothing",
            Published::Unreachable => "not confirmed",
        };
        let line = AuditLine { dir: "out", host: out.to.as_str(), id: id.as_str(), kind: &out.kind, status };
        self.note(line, out.request.as_bytes());
    }

    /// What came of publishing a letter also says whether the server stores letters.
    pub(super) fn tell_of_letter(&mut self, outcome: &Published) {
        if *outcome != Published::Unreachable {
            self.silence.answered(ServerMatter::Letters);
        }
        match outcome {
            Published::Stored => self.problem(BridgeConcern::Letters, None),
            Published::Refused(why) => {
                let what =
                    format!("The server has not stored this host's last letter ({why}); tasuki-fleet tries again.");
                self.problem(BridgeConcern::Letters, Some(what));
            }
            Published::Unreachable => {
                if self.is_silent_about(ServerMatter::Letters) {
                    let what = "The server lets this host log in, but does not confirm its letters. Its log may say why, such as \
                                a full disk.";
                    self.problem(BridgeConcern::Letters, Some(what.to_owned()));
                }
            }
            Published::Full => {}
        }
    }

    /// Answers a request whose time is over. Its file says whether it may have been sent, because that is noted there
    /// before it is published.
    fn give_up(&mut self, id: FleetId, asked: TakenRequest) {
        let is_answered = self.answer_here(&id, |OutFile { to, was_begun, .. }| match was_begun {
            false => FleetRefused::new(
                503,
                "not_sent",
                format!("The request was never sent to {to}: no server was reached in time."),
            )
            .hint("Nothing was carried out. Look at: tasuki doctor"),
            true => FleetRefused::new(504, "no_answer", format!("{to} has not answered in time."))
                .hint(format!("The request may have been carried out: look at {to} before you ask again.")),
        });
        if !is_answered {
            // The request is taken again, as after a restart, and is answered later.
            self.asking.take(id, asked, self.now.boot_ms);
        }
    }

    /// Answers a request of this host itself; false if that could not be done now.
    fn answer_here(&mut self, id: &FleetId, why: impl FnOnce(&OutFile) -> FleetRefused) -> bool {
        let out = match out::load(&self.folder, id) {
            Ok(Some(out)) => out,
            Ok(None) => {
                self.asking.answered(id);
                return true;
            }
            Err(error) => return self.pause(id, &error),
        };
        let refused = why(&out);
        let result = refused.result(id.as_str(), Some(&out.kind), out.request.as_bytes(), &self.now.rfc3339());
        if let Err(error) = out::answer_here(&self.folder, id, out.to.as_str(), result) {
            return self.pause(id, &error);
        }
        self.asking.answered(id);
        let (host, status) = (out.to.to_string(), format!("{} {}", refused.status, refused.code));
        let line = AuditLine { dir: "out", host: &host, id: id.as_str(), kind: &out.kind, status: &status };
        self.note(line, out.request.as_bytes());
        true
    }

    /// Pauses requests after an answer could not be written, so that a full disk is not tried a thousand times a
    /// second. Always returns false, as `answer_here` does then.
    fn pause(&mut self, id: &FleetId, error: &CliError) -> bool {
        tracing::warn!(id = id.as_str(), "an answer was not written: {error}");
        self.paused_until_ms = self.now.boot_ms.saturating_add(PAUSE_MS);
        false
    }

    /// Takes the result of a request of this host.
    pub(super) fn result_arrived(&mut self, letter: ArrivedLetter, from: &Member, opened: &Letter) {
        let id = opened.header.id.clone();
        if let Some(what) = disagrees_as_result(&opened.header, from, &self.here) {
            return self.not_authentic(letter, what);
        }
        let is_awaited = self.asking.awaits(&id, &from.name, from.home_id);
        let is_of_other_home = self.asking.awaits_earlier_home(&id, &from.name, from.home_id);
        if !is_awaited && !is_of_other_home && !out::may_come_late(&self.folder, &id) {
            return Bridge::settle(letter.settling, Settle::Done);
        }
        let bytes = opened.parts.first().map(|part| part.bytes.as_slice()).unwrap_or_default();
        let Some(result) = contract::read::<ResultFile>(bytes).ok().flatten() else {
            return self.not_authentic(letter, "result");
        };
        let is_from_asked = is_awaited || (is_of_other_home && is_host_reborn(&result));
        let host = from.name.as_str();
        let written = if is_from_asked {
            out::answer(&self.folder, &id, host, result.clone())
        } else {
            out::keep_late(&self.folder, &id, host, result.clone())
        };
        if let Err(error) = written {
            // The letter is not settled, so the server delivers it again.
            return tracing::warn!(id = id.as_str(), "a result was not written: {error}");
        }
        if is_from_asked {
            self.asking.answered(&id);
            let line =
                AuditLine { dir: "in", host, id: id.as_str(), kind: "result", status: &result.status.to_string() };
            self.note(line, bytes);
        }
        Bridge::settle(letter.settling, Settle::Done);
    }
}

/// The answer if the host was expelled before the request was sent to it.
fn expelled(what: &str) -> FleetRefused {
    FleetRefused::new(404, "no_host", format!("{what}. Nothing was sent."))
        .hint("The hosts of the fleet: tasuki fleet hosts")
}

/// The answer if another home has the host's name by now: a request is never sent to another home than the home that it
/// was meant for.
fn other_home(out: &OutFile) -> FleetRefused {
    if out.was_begun {
        return FleetRefused::new(504, "no_answer", format!("Another home is the host {} by now.", out.to))
            .hint("The request may have been carried out by the former one.");
    }
    FleetRefused::new(410, "host_reborn", format!("Another home is the host {} by now. Nothing was sent.", out.to))
        .hint("Ask again: the request then goes to the new home.")
}

/// Whether a result says that another home has the host's name now. That is the one answer which this other home may
/// give.
fn is_host_reborn(result: &ResultFile) -> bool {
    result.status == 410 && result.error.as_ref().is_some_and(|error| error.code == "host_reborn")
}
