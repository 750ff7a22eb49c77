//! Requests of other hosts to this one: they are judged, put into the spool, and answered. A letter stays at the server
//! until its answer is published, so no letter is lost if a bridge dies.

use super::answers;
use super::audit::AuditLine;
use super::dropped::kind_of;
use super::judging::{bytes_of, in_words, is_answer_kept};
use super::personas;
use super::refused::{FleetRefused, MAIN_PART};
use super::serving::{Serving, WaitingLetter};
use super::settings::LONGEST_TTL;
use super::state::{Bridge, Done};
use crate::cli::error::CliError;
use crate::config::Config;
use crate::contract::bridge::BridgeConcern;
use crate::contract::{self, ResultFile};
use crate::core::id::RequestId;
use crate::core::settings::Limits;
use crate::files::Grade;
use crate::fleet::answering::{FleetRefusal, Judged, request_id, sender};
use crate::fleet::asking::Published;
use crate::fleet::letter::Age;
use crate::fleet::nats::{ArrivedLetter, Settle, Settling};
use crate::fleet::rights::VIEW;
use crate::fleet::{Header, Letter, LetterError, LetterPart, Member, What};
use std::time::Duration;

/// After how long the server delivers a letter again that can't be served yet.
const LATER: Duration = Duration::from_secs(10);
/// How often the server is told that a letter is being worked at, in milliseconds.
const WORKING_EVERY_MS: u64 = 20_000;
/// How long the answer to a request that was taken back is awaited, in milliseconds, beyond the time for which the
/// sidecar lets a text wait for its agent. If the sidecar has typed the text, it still has to wait for the receipt.
const GIVEN_UP_AFTER_MS: u64 = 120_000;
/// The most letters that wait for the server's clock or the list of members.
const MOST_WAITING: usize = 256;
/// How long they wait, in milliseconds.
const WAIT_MS: u64 = 10_000;

impl Bridge {
    /// A letter has arrived. It is judged at once if that is possible; otherwise it waits for up to 10 s.
    pub(super) fn arrived(&mut self, letter: ArrivedLetter) {
        let until_ms = self.now.boot_ms.saturating_add(WAIT_MS);
        self.judge_or_wait(WaitingLetter { letter, until_ms });
    }

    /// Judges the letters that waited for the server's clock or the list of members.
    pub(super) fn judge_waiting(&mut self) {
        for waiting in std::mem::take(&mut self.waiting) {
            self.judge_or_wait(waiting);
        }
    }

    fn judge_or_wait(&mut self, WaitingLetter { letter, until_ms }: WaitingLetter) {
        if !self.has_lease(0) {
            return Bridge::settle(letter.settling, Settle::Later(LATER));
        }
        let from = sender(self.members.list(), &letter.from).cloned();
        let may_wait = self.now.boot_ms < until_ms && self.waiting.len() < MOST_WAITING;
        let Some(from) = from else {
            // The sender may have been admitted a moment ago.
            if may_wait {
                self.want_members();
                return self.waiting.push(WaitingLetter { letter, until_ms });
            }
            return self.not_authentic(letter, "from");
        };
        // Without the server's clock nobody can tell how old the request is, so it is not even opened.
        if letter.what == What::Req && !self.knows_time() {
            if may_wait {
                return self.waiting.push(WaitingLetter { letter, until_ms });
            }
            return Bridge::settle(letter.settling, Settle::Later(LATER));
        }
        let opened = match Letter::open(&letter.sealed, &self.keys, &from.box_key) {
            Ok(opened) => opened,
            Err(error) => {
                tracing::debug!(error = error.to_string(), "a letter can't be opened");
                return self.not_authentic(letter, "seal");
            }
        };
        match letter.what {
            What::Res => self.result_arrived(letter, &from, &opened),
            What::Req => self.request_arrived(letter, &from, opened),
        }
    }

    /// Drops a letter that is not authentic: the audit gets a line, and nobody is answered.
    pub(super) fn not_authentic(&mut self, letter: ArrivedLetter, what: &str) {
        let from: String = letter.from.chars().take(64).collect();
        let status = format!("not authentic: {what}");
        let kind = letter.what.as_str();
        self.note(AuditLine { dir: "in", host: &from, id: "", kind, status: &status }, &letter.sealed);
        Bridge::settle(letter.settling, Settle::Never);
    }

    /// Drops an authentic letter: the audit gets a line, and nobody is answered.
    fn not_answered(&mut self, letter: ArrivedLetter, header: &Header, status: &str) {
        let host = header.from.to_string();
        self.note(AuditLine { dir: "in", host: &host, id: header.id.as_str(), kind: "", status }, &letter.sealed);
        Bridge::settle(letter.settling, Settle::Never);
    }

    /// Settles a letter, without waiting for it. If that fails, the letter comes again.
    pub(super) fn settle(settling: Settling, how: Settle) {
        tokio::spawn(async move { settling.settle(how).await });
    }

    fn request_arrived(&mut self, letter: ArrivedLetter, from: &Member, opened: Letter) {
        let Letter { mut header, mut parts } = opened;
        header.ttl_ms = header.ttl_ms.min(LONGEST_TTL.as_millis() as u64);
        let rid = request_id(&from.name, &header.id);
        let request = parts.first_mut().map(|part| std::mem::take(&mut part.bytes)).unwrap_or_default();
        let known = answers::known(&self.folder, &self.home, &rid);
        let (Ok(known), Some(age_ms)) = (&known, self.age_ms(&header, letter.stored_ms)) else {
            if let Err(error) = &known {
                tracing::warn!(rid = rid.as_str(), "what is known of a request can't be read: {error}");
            }
            return Bridge::settle(letter.settling, Settle::Later(LATER));
        };
        let judged = self.judge(&header, from, (&request, &parts, &rid), age_ms, known);
        let kind = kind_of(&request).unwrap_or_default();
        if is_answer_kept(judged, &kind) && self.told.is_full(&from.name) {
            return self.not_answered(letter, &header, "dropped: too many answers are kept");
        }
        let status = match judged {
            Judged::NotAuthentic(what) => return self.not_authentic(letter, what),
            Judged::Later => return Bridge::settle(letter.settling, Settle::Later(LATER)),
            Judged::AnswerAgain => "answered again".to_owned(),
            Judged::CarryOut => "taken".to_owned(),
            Judged::TakeBack => "taken back".to_owned(),
            Judged::IdReused => "409 id_reused".to_owned(),
            Judged::Refuse(refusal) => format!("{} {}", refusal.answer().0, refusal.answer().1),
        };
        let host = from.name.to_string();
        self.note(AuditLine { dir: "in", host: &host, id: header.id.as_str(), kind: &kind, status: &status }, &request);
        let (settling, now_ms) = (letter.settling, self.now.boot_ms);
        let over_ms = now_ms.saturating_add(header.ttl_ms.saturating_sub(age_ms)).saturating_add(1);
        let mut serving = Serving {
            header,
            settling,
            kind,
            request,
            answer: known.given.clone(),
            is_replying: false,
            tries: 0,
            reply_due_ms: now_ms,
            working_due_ms: now_ms.saturating_add(WORKING_EVERY_MS),
            over_ms,
            given_up_ms: None,
        };
        if let Err(error) = self.begin(judged, &rid, &mut serving, &parts) {
            tracing::warn!(rid = rid.as_str(), "a request from another host was not taken: {error}");
            return Bridge::settle(serving.settling, Settle::Later(LATER));
        }
        // If the letter was delivered again, its new delivery replaces the former one: only the new one can be settled.
        serving.is_replying = self.serving.get(&rid).is_some_and(|before| before.is_replying);
        self.serving.insert(rid, serving);
    }

    /// Does what was judged: writes down a refusal, takes the request back, answers it or puts it into the spool.
    fn begin(
        &mut self,
        judged: Judged,
        rid: &RequestId,
        serving: &mut Serving,
        parts: &[LetterPart],
    ) -> Result<(), CliError> {
        match judged {
            Judged::Refuse(refusal) => {
                let refused = in_words(refusal, &serving.kind, &serving.header.from);
                let result = refused.result(rid.as_str(), Some(&serving.kind), &serving.request, &self.now.rfc3339());
                serving.answer = Some(answers::tell(&self.folder, rid, &result)?);
                self.told.add(&serving.header.from);
                if refusal == FleetRefusal::TooMany {
                    self.kept.refuse(&serving.header.from);
                    self.problem(BridgeConcern::Inbox, self.kept.problem());
                }
            }
            Judged::IdReused => {
                let refused = FleetRefused::new(409, "id_reused", "Another request of this id came here before.");
                let result = refused.result(rid.as_str(), Some(&serving.kind), &serving.request, &self.now.rfc3339());
                serving.answer = Some(contract::text(&result).into_bytes());
            }
            Judged::TakeBack => self.take_back(rid, serving),
            Judged::CarryOut if serving.kind == VIEW => {
                let result = answers::view(&self.home, rid, &serving.request, &self.now);
                serving.answer = Some(contract::text(&result).into_bytes());
            }
            Judged::CarryOut if serving.kind == personas::KIND => {
                let parts = parts.get(1..).unwrap_or_default();
                self.write_down(rid, serving, &[])?;
                let result = personas::put((&self.home, &self.folder), rid, &serving.request, parts, &self.now);
                serving.answer = Some(answers::tell(&self.folder, rid, &result)?);
                self.told.add(&serving.header.from);
            }
            Judged::CarryOut => {
                let parts = parts.get(1..).unwrap_or_default();
                self.drop_into_spool(rid, serving, parts)?;
            }
            // `serving` has the answer already.
            Judged::AnswerAgain => {}
            Judged::NotAuthentic(_) | Judged::Later => {}
        }
        Ok(())
    }

    /// Puts a request into the spool, and first writes down that it is about to. If the bridge dies in between, the
    /// next one sees that the sidecar may have the request, and tells nobody that it was refused. The clock is read
    /// once more, because the bridge may have stood still since the letter was judged.
    fn drop_into_spool(&mut self, rid: &RequestId, serving: &Serving, parts: &[LetterPart]) -> Result<(), CliError> {
        self.write_down(rid, serving, parts)?;
        self.now = self.clock.now();
        if !self.has_lease(0) || self.now.boot_ms >= serving.over_ms {
            return Err(CliError::refused("too_late", "its time is over, or this bridge does not serve any more"));
        }
        answers::drop_request(&self.home, rid, &serving.request)
    }

    /// Writes the request that is about to be carried out into `in/<rid>/`, with its parts.
    fn write_down(&mut self, rid: &RequestId, serving: &Serving, parts: &[LetterPart]) -> Result<(), CliError> {
        let folder = format!("in/{rid}");
        // A letter that was delivered again has been counted.
        if self.folder.changed_ms("in", rid.as_str()).is_none() {
            self.kept.add(&serving.header.from, bytes_of(&serving.request, parts));
        }
        self.folder.make("in", rid.as_str())?;
        for part in parts {
            self.folder.write(&folder, &part.name, &part.bytes, Grade::Durable)?;
        }
        self.folder.write(&folder, MAIN_PART, &serving.request, Grade::Durable)
    }

    /// Takes a request out of the spool that must not be carried out any more. The sidecar may have read it already, so
    /// the host that asks is told only the sidecar's own answer, if there will be one. This answer is awaited for as
    /// long as the sidecar lets a text wait for its agent, and 2 minutes more. The host that asks may have given up by
    /// then; it then keeps the answer as a late one.
    fn take_back(&self, rid: &RequestId, serving: &mut Serving) {
        if let Err(error) = answers::take_back(&self.home, rid) {
            tracing::warn!(rid = rid.as_str(), "a request that is over can't be taken out of the spool: {error}");
        }
        let waiting_ms = self.longest_waiting_ms().saturating_add(GIVEN_UP_AFTER_MS);
        serving.given_up_ms = Some(self.now.boot_ms.saturating_add(waiting_ms));
    }

    /// For how long the sidecar lets a text wait for its agent. If the configuration is wrong now, the sidecar still
    /// uses the last valid one, which the bridge does not know: then the default counts.
    fn longest_waiting_ms(&self) -> u64 {
        Config::load(&self.home.config()).map_or(Limits::default().waiting_ms, |config| config.limits.waiting_ms)
    }

    /// Looks for the answers to all requests that are being served, and publishes those that are due.
    pub(super) fn serve_due(&mut self) {
        if !self.has_lease(0) {
            return self.take_back_what_is_over();
        }
        let rids: Vec<RequestId> = self.serving.keys().cloned().collect();
        for rid in rids {
            let Some(mut serving) = self.serving.remove(&rid) else { continue };
            if self.tend(&rid, &mut serving) {
                let is_due =
                    serving.answer.is_some() && !serving.is_replying && self.now.boot_ms >= serving.reply_due_ms;
                self.serving.insert(rid.clone(), serving);
                if is_due {
                    self.reply(&rid);
                }
            }
        }
    }

    /// Without a lease nobody is answered. But a request whose time is over must not be carried out.
    fn take_back_what_is_over(&mut self) {
        for (rid, mut serving) in std::mem::take(&mut self.serving) {
            if serving.answer.is_none() && self.is_over(&serving) && serving.given_up_ms.is_none() {
                self.take_back(&rid, &mut serving);
            }
            self.serving.insert(rid, serving);
        }
    }

    /// Whether a request must not be carried out any more: its time is over, its sender was expelled, or the settings
    /// do not allow it any more.
    fn is_over(&self, serving: &Serving) -> bool {
        let Header { from, from_home, .. } = &serving.header;
        let is_member = self.members.list().find(from).is_some_and(|member| member.home_id == *from_home);
        let is_accepted = self.settings.accept.allows(from, &serving.kind);
        self.now.boot_ms >= serving.over_ms || !is_member || !is_accepted
    }

    /// Reads the answer to one request, takes the request back if it is over, and keeps its letter from being delivered
    /// again. False if the bridge has stopped waiting for an answer: then the letter is settled, and nobody is
    /// answered.
    fn tend(&mut self, rid: &RequestId, serving: &mut Serving) -> bool {
        let now_ms = self.now.boot_ms;
        if serving.answer.is_none() {
            serving.answer = answers::given(&self.folder, &self.home, rid).unwrap_or_else(|error| {
                tracing::warn!(rid = rid.as_str(), "an answer can't be read: {error}");
                None
            });
        }
        if serving.answer.is_none() && self.is_over(serving) && serving.given_up_ms.is_none() {
            self.take_back(rid, serving);
        }
        if serving.answer.is_none() && serving.given_up_ms.is_some_and(|at| now_ms >= at) {
            let (host, id) = (serving.header.from.to_string(), serving.header.id.to_string());
            let line =
                AuditLine { dir: "in", host: &host, id: &id, kind: &serving.kind, status: "over, without an answer" };
            self.note(line, &serving.request);
            Bridge::settle(serving.settling.clone(), Settle::Done);
            return false;
        }
        if now_ms >= serving.working_due_ms {
            serving.working_due_ms = now_ms.saturating_add(WORKING_EVERY_MS);
            Bridge::settle(serving.settling.clone(), Settle::Working);
        }
        true
    }

    fn reply(&mut self, rid: &RequestId) {
        let Some(serving) = self.serving.get(rid) else { return };
        let Some(to) = self.members.list().find(&serving.header.from).cloned() else {
            // The host that asks was expelled meanwhile: nobody is answered.
            if let Some(serving) = self.serving.remove(rid) {
                Bridge::settle(serving.settling, Settle::Never);
            }
            return;
        };
        let answer = serving.answer.clone().unwrap_or_default();
        let sealed = self.sealed_answer(&serving.header, &to, answer).or_else(|error| {
            let refused =
                FleetRefused::new(413, "too_large", format!("The answer does not fit into a letter: {error}."));
            let result = refused.result(rid.as_str(), Some(&serving.kind), &serving.request, &self.now.rfc3339());
            self.sealed_answer(&serving.header, &to, contract::text(&result).into_bytes())
        });
        let rid = rid.clone();
        let Ok(sealed) = sealed else {
            // The server takes hardly any bytes now; a person may correct that.
            tracing::warn!(rid = rid.as_str(), "not even the refusal of a too long answer fits into a letter");
            return self.serving.get_mut(&rid).into_iter().for_each(|serving| serving.reply_later(self.now.boot_ms));
        };
        let number = format!("{}.{rid}.{}", self.here.host, uuid::Uuid::new_v4().simple());
        if let Some(serving) = self.serving.get_mut(&rid) {
            serving.is_replying = true;
        }
        self.beside(|courier| async move {
            let outcome = courier.publish(&to.name, What::Res, &number, sealed).await;
            Done::Replied { rid, outcome }
        });
    }

    /// The sealed letter with an answer. An answer that is too long for a letter is an error.
    fn sealed_answer(&self, asked: &Header, to: &Member, answer: Vec<u8>) -> Result<Vec<u8>, LetterError> {
        let age = Age { sent_at: self.now.rfc3339(), age_ms: 0, ttl_ms: asked.ttl_ms };
        let header = self.header(What::Res, asked.id.clone(), (to, asked.from_home), age);
        let parts = vec![LetterPart { name: MAIN_PART.to_owned(), bytes: answer }];
        Letter { header, parts }.seal(&self.keys, &to.box_key, self.courier.most_bytes())
    }

    pub(super) fn replied(&mut self, rid: &RequestId, outcome: &Published) {
        let now_ms = self.now.boot_ms;
        self.tell_of_letter(outcome);
        if *outcome == Published::Full {
            // The host that asks does not fetch its letters, and others must not wait for it. When it asks again, it
            // gets the same answer.
            if let Some(serving) = self.serving.remove(rid) {
                Bridge::settle(serving.settling, Settle::Done);
            }
            return;
        }
        if *outcome != Published::Stored {
            let Some(serving) = self.serving.get_mut(rid) else { return };
            return serving.reply_later(now_ms);
        }
        let Some(serving) = self.serving.remove(rid) else { return };
        let Serving { header, settling, kind, answer, .. } = serving;
        let answer = answer.unwrap_or_default();
        let status = contract::read::<ResultFile>(&answer).ok().flatten().map(|result| result.status.to_string());
        let (host, status) = (header.from.to_string(), format!("answered {}", status.unwrap_or_default()));
        self.note(AuditLine { dir: "out", host: &host, id: header.id.as_str(), kind: &kind, status: &status }, &answer);
        Bridge::settle(settling, Settle::Done);
    }

    /// When `serve_due` must run next, at the latest; none if nothing is being served.
    pub(super) fn serve_wake_ms(&self) -> Option<u64> {
        let replies = self.serving.values().filter(|serving| serving.answer.is_some() && !serving.is_replying);
        let open = self.serving.values().filter(|serving| serving.answer.is_none());
        let over = open.map(|serving| serving.given_up_ms.unwrap_or(serving.over_ms));
        let working = self.serving.values().map(|serving| serving.working_due_ms);
        replies.map(|serving| serving.reply_due_ms).chain(working).chain(over).min()
    }
}
