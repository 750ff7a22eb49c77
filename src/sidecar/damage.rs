//! A row of the store that can't be understood is no reason to stand still: whoever asked for it is refused, by name,
//! and everything else goes on. The row is left as it is, for a person to look at.

use super::taken::{Taken, refusal, why_of};
use crate::core::event::{Event, Known};
use crate::core::id::RequestId;
use crate::core::reply::Refused;
use crate::core::request;
use crate::core::time::Now;
use crate::spool::{Found, Place, Spool, Why};
use crate::store::{Error, SeenEvent, Store};

/// What is answered where a row is damaged.
const CODE: &str = "state_damaged";

fn refused(error: &Error, hint: &str) -> Refused {
    Refused::new(500, CODE, error.to_string()).hint(hint)
}

/// What the ledger says of a request.
pub(super) enum Ledger {
    /// It was not taken before.
    New,
    Known(Known),
    /// Its row is damaged: this is done with the file.
    Damaged(Box<Taken>),
}

/// What the ledger says of a request, or what is done with its file where the row is damaged: whether it was carried
/// out is not known, so it is not carried out now.
///
/// # Errors
/// What the disk refused.
pub(super) fn known(
    (store, spool): (&Store, &Spool),
    id: &RequestId,
    found: &Found,
    sha256: &str,
    now: &Now,
) -> Result<Ledger, Error> {
    match store.known(id) {
        Ok(Some(known)) => Ok(Ledger::Known(known)),
        Ok(None) => Ok(Ledger::New),
        Err(error @ Error::Row { .. }) => {
            tracing::error!(%error, %id, "a request is refused, for what was answered to it before can't be read");
            let hint = "this id was used before, and it is not known whether it was carried out: look at the views, then \
                        ask again under another id";
            let refused = refused(&error, hint);
            let (why, place) = (Some(why_of(&refused)), Place::Result(id.clone()));
            // The one answer stays, where it is still there.
            let is_answered = !matches!(spool.get(&place), Ok(None));
            let again = (!is_answered).then(|| (place, refusal(found, id, sha256, refused, now)));
            Ok(Ledger::Damaged(Box::new(Taken::undecided(found.clone(), why, again))))
        }
        Err(error) => Err(error),
    }
}

/// Whether an event file was taken before, or why it is put aside: a file of that name was, and whether it is this one
/// can't be known.
///
/// # Errors
/// What the disk refused.
pub(super) fn was_seen(store: &Store, seen: &SeenEvent) -> Result<Result<bool, Why>, Error> {
    match store.was_seen(seen) {
        Ok(was_seen) => Ok(Ok(was_seen)),
        Err(error @ Error::Row { .. }) => {
            tracing::error!(%error, "an event is put aside, for it can't be known whether it was taken before");
            let hint = "drop it again under another name, if it was not taken";
            Ok(Err(why_of(&refused(&error, hint))))
        }
        Err(error) => Err(error),
    }
}

/// Of an event that names a row of history: a request that names a damaged one is refused; what has happened has happened,
/// and is decided without it.
///
/// # Errors
/// What the disk refused.
pub(super) fn without_damaged(event: Event, error: Error) -> Result<Event, Error> {
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

/// The refusal of a request that names a damaged row.
fn damaged(error: &Error) -> Refused {
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
