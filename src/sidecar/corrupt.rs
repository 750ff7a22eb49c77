//! A corrupt row of the store must not stop the sidecar: a request that needs the row is refused, with the row's name,
//! and everything else continues. The row is left as it is, for a person to look at.

use super::intake_item::{IntakeItem, refusal, why_of};
use crate::core::event::{Event, LedgerEntry};
use crate::core::id::RequestId;
use crate::core::reply::Refused;
use crate::core::request;
use crate::core::time::Now;
use crate::spool::{IncomingFile, OutputFile, Spool, Why};
use crate::store::{Error, SeenEvent, Store};

/// The error code of a refusal because of a damaged row.
const CODE: &str = "state_damaged";
/// What is said about an event whose row is damaged.
const REJECTED_EVENT: &str = "it is not known whether the event was handled before; if it was not, put it into events/ \
                              again under another name";

fn refused(error: &Error, hint: &str) -> Refused {
    Refused::new(500, CODE, error.to_string()).hint(hint)
}

/// What the ledger says of a request.
pub(super) enum Ledger {
    New,
    Known(LedgerEntry),
    /// The request's row is damaged. The item says what happens to the file.
    Corrupt(Box<IntakeItem>),
}

/// Looks a request up in the ledger. If its row is damaged, nobody knows whether the request was carried out, so it is
/// refused and not carried out now.
///
/// # Errors
/// The store can't be read.
pub(super) fn known(
    (store, spool): (&Store, &Spool),
    id: &RequestId,
    found: &IncomingFile,
    sha256: &str,
    now: &Now,
) -> Result<Ledger, Error> {
    match store.ledger_entry(id) {
        Ok(Some(known)) => Ok(Ledger::Known(known)),
        Ok(None) => Ok(Ledger::New),
        Err(error @ Error::Row { .. }) => {
            tracing::error!(%error, %id, "refused a request, because the earlier answer to its id can't be read");
            let hint = "this id was used before, and it is not known whether that request was carried out: look at the \
                        views, then ask again under another id";
            let refused = refused(&error, hint);
            let (why, place) = (Some(why_of(&refused)), OutputFile::Result(id.clone()));
            // If the answer is still in `results/`, it stays.
            let is_answered = !matches!(spool.get(&place), Ok(None));
            let result = (!is_answered).then(|| (place, refusal(found, id, sha256, refused, now)));
            Ok(Ledger::Corrupt(Box::new(IntakeItem::undecided(found.clone(), why, result))))
        }
        Err(error) => Err(error),
    }
}

/// Whether an event file was taken before. If the row of this file name is damaged, that can't be known: then the file
/// goes to `rejected/`, with the returned reason.
///
/// # Errors
/// The store can't be read.
pub(super) fn was_seen(store: &Store, seen: &SeenEvent) -> Result<Result<bool, Why>, Error> {
    match store.was_seen(seen) {
        Ok(was_seen) => Ok(Ok(was_seen)),
        Err(error @ Error::Row { .. }) => {
            tracing::error!(%error, "moved an event to rejected/: {REJECTED_EVENT}");
            // The reason that lies beside the file has no hint, so the message says what to do.
            Ok(Err(why_of(&Refused::new(500, CODE, format!("{error}; {REJECTED_EVENT}")))))
        }
        Err(error) => Err(error),
    }
}

/// Handles an event that names a damaged row of history. A request is refused. Any other event is decided without the
/// row, because it has already happened.
///
/// # Errors
/// The store can't be read.
pub(super) fn without_corrupt(event: Event, error: Error) -> Result<Event, Error> {
    if !matches!(error, Error::Row { .. }) {
        return Err(error);
    }
    tracing::error!(%error, "a history row in the state file is damaged; only requests and events that name it are \
                             affected");
    Ok(match event {
        Event::Request(mut arrived) => {
            arrived.read.request = Err(corrupt(&error));
            Event::Request(arrived)
        }
        other => other,
    })
}

/// The refusal of a request that names a damaged row.
fn corrupt(error: &Error) -> Refused {
    refused(error, "nothing was done; restore an undamaged copy of the state file, or continue without that row")
}

/// Returns what was read for a request. If a row was damaged, refuses the request.
pub(super) fn or_refuse<T: Default>(
    read: Result<T, Error>,
    request: &mut Result<request::Request, Refused>,
) -> Result<T, Error> {
    match read {
        Err(error @ Error::Row { .. }) => {
            tracing::error!(%error, "refused a request, because it names a damaged row");
            *request = Err(corrupt(&error));
            Ok(T::default())
        }
        other => other,
    }
}
