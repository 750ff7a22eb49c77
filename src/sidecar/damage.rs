//! A row of the store that can't be understood is no reason to stand still: whoever asked for it is refused, by name,
//! and everything else goes on. The row is left as it is, for a person to look at.

use super::Sidecar;
use super::intake::{Taken, why_of};
use crate::core::event::{Event, Known};
use crate::core::id::RequestId;
use crate::core::reply::{Answer, Refused, Reply};
use crate::core::request;
use crate::core::time::Now;
use crate::spool::{Content, Found, Place, Why};
use crate::store::{Error, SeenEvent};

/// What is answered where a row is damaged.
const CODE: &str = "state_damaged";

fn refused(error: &Error, hint: &str) -> Refused {
    Refused::new(500, CODE, error.to_string()).hint(hint)
}

impl Sidecar {
    /// What the ledger says of a request, or what is done with its file where the row is damaged: whether it was carried
    /// out is not known, so it is not carried out now.
    ///
    /// # Errors
    /// What the disk refused.
    pub(super) fn known(&self, id: &RequestId, found: &Found, sha256: &str, now: &Now) -> Result<Ledger, Error> {
        match self.store.known(id) {
            Ok(Some(known)) => Ok(Ledger::Known(known)),
            Ok(None) => Ok(Ledger::New),
            Err(error @ Error::Row { .. }) => {
                tracing::error!(%error, %id, "a request is refused, for what was answered to it before can't be read");
                Ok(Ledger::Damaged(Box::new(self.doubtful(id, found, (sha256, now), &error))))
            }
            Err(error) => Err(error),
        }
    }

    /// The one answer stays, where it is still there.
    fn doubtful(&self, id: &RequestId, found: &Found, (sha256, now): (&str, &Now), error: &Error) -> Taken {
        let hint = "this id was used before, and it is not known whether it was carried out: look at the views, then ask \
                    again under another id";
        let refused = refused(error, hint);
        let why = Some(why_of(&refused));
        let place = Place::Result(id.clone());
        let is_answered = !matches!(self.spool.get(&place), Ok(None));
        let kind = match &found.content {
            Content::Whole { bytes, .. } => request::read(bytes).kind,
            Content::Bad { .. } => None,
        };
        let answer =
            Answer { request_id: id.clone(), kind, request_sha256: sha256.to_owned(), reply: Reply::Refused(refused) };
        let again = (!is_answered).then(|| (place, answer.to_json(now)));
        Taken { found: found.clone(), event: None, seen: None, why, again }
    }

    /// Whether an event file was taken before, or why it is put aside: a file of that name was, and whether it is this one
    /// can't be known.
    ///
    /// # Errors
    /// What the disk refused.
    pub(super) fn was_seen(&self, seen: &SeenEvent) -> Result<Result<bool, Why>, Error> {
        match self.store.was_seen(seen) {
            Ok(was_seen) => Ok(Ok(was_seen)),
            Err(error @ Error::Row { .. }) => {
                tracing::error!(%error, "an event is put aside, for it can't be known whether it was taken before");
                let hint = "drop it again under another name, if it was not taken";
                Ok(Err(why_of(&refused(&error, hint))))
            }
            Err(error) => Err(error),
        }
    }

    /// Puts rows of history that an event names into the working set. A request that names a damaged one is refused; what
    /// has happened has happened, and is decided without it.
    ///
    /// # Errors
    /// What the disk refused.
    pub(super) fn page_in_or_refuse(&mut self, event: Event) -> Result<Event, Error> {
        let Err(error) = self.page_in(&event) else { return Ok(event) };
        if !matches!(error, Error::Row { .. }) {
            return Err(error);
        }
        tracing::error!(%error, "a row of history is damaged; only what names it is affected");
        Ok(match event {
            Event::Request(mut arrived) => {
                arrived.read.request = Err(damaged(&error));
                Event::Request(arrived)
            }
            other => other,
        })
    }
}

/// What the ledger says of a request.
pub(super) enum Ledger {
    /// It was not taken before.
    New,
    /// It was.
    Known(Known),
    /// Its row is damaged: this is done with the file.
    Damaged(Box<Taken>),
}

/// The refusal of a request that names a damaged row.
pub(super) fn damaged(error: &Error) -> Refused {
    refused(error, "nothing was done; put back a copy of the state file that is whole, or go on without that row")
}

/// Reads what a request depends on; one that depends on a damaged row is refused.
pub(super) fn or_refuse<T: Default>(
    read: Result<T, Error>,
    request: &mut Result<request::Request, Refused>,
) -> Result<T, Error> {
    match read {
        Err(error @ Error::Row { .. }) => {
            tracing::error!(%error, "a request is refused, for it names a damaged row");
            *request = Err(damaged(&error));
            Ok(T::default())
        }
        other => other,
    }
}
