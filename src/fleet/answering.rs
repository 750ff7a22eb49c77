//! Requests from other hosts, at the host that is asked: what is done with each letter. The checks come in one order. A
//! refusal is written down before it is told: otherwise a change of rights between two deliveries of one letter could
//! make one request both "refused" and "done".

use super::letter::{Header, What};
use super::members::{Member, MemberList};
use super::rights::{Accepts, may_be_asked};
use crate::core::host::{FleetId, FleetName, HomeId, HostName};
use crate::core::id::RequestId;

/// By how much the sender's wall clock and ours may differ, in milliseconds. The answer to an older letter may be
/// forgotten already.
const MOST_APART_MS: u64 = 8 * 24 * 3_600_000;

/// This host, as letters must name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Here {
    /// The fleet.
    pub fleet: FleetName,
    /// The host's name.
    pub host: HostName,
    /// Its home.
    pub home_id: HomeId,
}

/// What is known when a request is judged.
#[derive(Debug, Clone)]
pub struct LetterContext<'a> {
    /// Who may ask for what.
    pub accepts: &'a Accepts,
    /// The kind of the request; none if its bytes name none.
    pub kind: Option<&'a str>,
    /// The field `host` of the request, if it has one.
    pub host_field: Option<&'a str>,
    /// A path in the request leads outside the files that came with it.
    pub leads_outside: bool,
    /// The request was answered or refused before.
    pub is_answered: bool,
    /// The request was, or may have been, given to the sidecar before; its answer is not there yet.
    pub was_dropped: bool,
    /// Another request was given to the sidecar under this id before.
    pub was_another: bool,
    /// When the sender took it, by its own wall clock; none if that can't be read.
    pub sent_wall_ms: Option<i64>,
    /// Our wall clock.
    pub now_wall_ms: i64,
    /// How long the letter lay in the stream, by the server's clock alone, in milliseconds.
    pub in_stream_ms: u64,
    /// The request may be kept, beside those of the sender that are kept already.
    pub has_room: bool,
    /// The sidecar runs, and our lease is valid for 5 seconds more.
    pub can_serve: bool,
}

/// What is done with a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// It is not authentic: it is noted in the audit, and nobody is answered.
    NotAuthentic(&'static str),
    /// It was answered before: the same answer again.
    AnswerAgain,
    /// It is refused; the refusal is written down, then told.
    Refuse(FleetRefusal),
    /// Another request of the same id was carried out: 409 `id_reused`. This is told and not written down, because the
    /// record under this id is about the other request.
    IdReused,
    /// It would be refused, but the sidecar may have it. It is taken out of the spool if it is still there, and nothing
    /// is told until its answer is there. Otherwise both "refused" and "done" could be said of it.
    TakeBack,
    /// It stays in the queue for a while.
    Later,
    /// It is carried out.
    CarryOut,
}

/// Why a request from another host is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetRefusal {
    /// It was meant for a home that was here before.
    HostReborn,
    /// The clocks differ by more than 8 days, or it was made so long ago.
    TooOld,
    /// It came after its time.
    Expired,
    /// The operator has not said that this host may ask for it.
    NotAccepted,
    /// It asks for something that nobody may ask for from elsewhere.
    NotFromElsewhere,
    /// So many requests of the sender are kept that there is no room for another one.
    TooMany,
}

impl FleetRefusal {
    /// Status and code of the answer.
    #[must_use]
    pub fn answer(self) -> (u16, &'static str) {
        match self {
            FleetRefusal::HostReborn => (410, "host_reborn"),
            FleetRefusal::TooOld => (410, "too_old"),
            FleetRefusal::Expired => (410, "expired"),
            FleetRefusal::NotAccepted => (403, "not_accepted"),
            FleetRefusal::NotFromElsewhere => (400, "not_from_elsewhere"),
            FleetRefusal::TooMany => (429, "too_many"),
        }
    }
}

/// The id that a request from another host has here.
#[must_use]
pub fn request_id(from: &HostName, id: &FleetId) -> RequestId {
    RequestId::try_from(format!("fleet.{from}.{id}")).expect("both names are short and plain")
}

/// The member by whose key a letter on a subject must be sealed; none if there is no such member.
#[must_use]
pub fn sender<'a>(members: &'a MemberList, from: &str) -> Option<&'a Member> {
    members.find(&from.parse().ok()?)
}

/// The field in which an opened letter disagrees with its subject, the member list or this host; none if it agrees. The
/// home that is meant is judged later, because a letter to an earlier home of this host is answered.
#[must_use]
pub fn disagrees(header: &Header, what: What, from: &Member, here: &Here) -> Option<&'static str> {
    if header.fleet != here.fleet {
        Some("fleet")
    } else if header.what != what {
        Some("what")
    } else if header.from != from.name {
        Some("from")
    } else if header.to != here.host {
        Some("to")
    } else if header.from_home != from.home_id {
        Some("from_home")
    } else {
        None
    }
}

/// Since when a letter is on its way, by the server's clock: since the server has stored it, or since it was made if
/// the sender says that this was earlier.
#[must_use]
pub fn on_its_way_since(header: &Header, stored_ms: i64) -> i64 {
    header.server_ms.map_or(stored_ms, |made_ms| made_ms.min(stored_ms))
}

/// The field in which an opened letter disagrees with a result for this very home; none if it is one. Another home may
/// have had this host's name before, and may have asked under the same id.
#[must_use]
pub fn disagrees_as_result(header: &Header, from: &Member, here: &Here) -> Option<&'static str> {
    let elsewhere = (header.to_home != here.home_id).then_some("to_home");
    disagrees(header, What::Res, from, here).or(elsewhere)
}

/// Judges a request whose letter was opened with the key of `from`.
#[must_use]
pub fn judge(header: &Header, from: &Member, here: &Here, known: &LetterContext<'_>) -> Judged {
    if let Some(what) = disagrees(header, What::Req, from, here) {
        return Judged::NotAuthentic(what);
    }
    if known.was_another {
        return Judged::IdReused;
    }
    if known.is_answered {
        return Judged::AnswerAgain;
    }
    let refusal = if header.to_home != here.home_id {
        Some(FleetRefusal::HostReborn)
    } else if known.sent_wall_ms.is_none_or(|sent| sent.abs_diff(known.now_wall_ms) > MOST_APART_MS) {
        Some(FleetRefusal::TooOld)
    } else if header.age_ms.saturating_add(known.in_stream_ms) > header.ttl_ms {
        Some(FleetRefusal::Expired)
    } else {
        not_allowed(from, known).or_else(|| (!known.has_room).then_some(FleetRefusal::TooMany))
    };
    match refusal {
        Some(_) if known.was_dropped => Judged::TakeBack,
        Some(refusal) => Judged::Refuse(refusal),
        None if known.can_serve => Judged::CarryOut,
        None => Judged::Later,
    }
}

/// Why the sender may not ask for this kind; none if it may.
fn not_allowed(from: &Member, known: &LetterContext<'_>) -> Option<FleetRefusal> {
    let Some(kind) = known.kind else { return Some(FleetRefusal::NotFromElsewhere) };
    let names_another = known.host_field.is_some_and(|host| host != from.name.as_str());
    if !may_be_asked(kind) || names_another || known.leads_outside {
        return Some(FleetRefusal::NotFromElsewhere);
    }
    (!known.accepts.allows(&from.name, kind)).then_some(FleetRefusal::NotAccepted)
}

#[cfg(test)]
#[path = "answering_tests.rs"]
mod tests;
