//! A file that was read: the event that it becomes, and what happens to the file.

use crate::core::event::{Event, LedgerEntry};
use crate::core::id::RequestId;
use crate::core::reply::{Answer, Refused, Reply};
use crate::core::request;
use crate::core::time::Now;
use crate::spool::{Content, IncomingFile, OutputFile, Spool, Why};
use crate::store::SeenEvent;

/// A file that was read, what it is decided as, and where it goes.
pub(super) struct IntakeItem {
    pub(super) found: IncomingFile,
    /// The event to decide; none for a file that the ledger already knows, or that holds no event and no request.
    pub(super) event: Option<Event>,
    pub(super) seen: Option<SeenEvent>,
    /// Why it goes to `rejected/`; none if it is taken.
    pub(super) why: Option<Why>,
    /// A result that is written without a decision: the known answer once more, or a refusal.
    pub(super) result: Option<(OutputFile, serde_json::Value)>,
}

impl IntakeItem {
    /// A file that leads to no decision.
    pub(super) fn undecided(
        found: IncomingFile,
        why: Option<Why>,
        result: Option<(OutputFile, serde_json::Value)>,
    ) -> IntakeItem {
        IntakeItem { found, event: None, seen: None, why, result }
    }
}

pub(super) fn read_request(found: &IncomingFile) -> request::ParsedRequest {
    match &found.content {
        Content::Whole { bytes, .. } => request::read(bytes),
        Content::Bad { code, message, line, column, .. } => {
            let (status, code) = if *code == "too_large" { (413, "too_large") } else { (400, "bad_request") };
            let mut refused = Refused::new(status, code, message.clone());
            refused.line = *line;
            refused.column = *column;
            request::ParsedRequest { kind: None, request: Err(refused), malformed: None }
        }
    }
}

/// The ledger knows the request's id. If the bytes are the same, the same answer is written again, if there is one; and
/// a bad file goes to `rejected/`, because the sidecar may have ended before it moved the file. If the bytes differ,
/// the file is refused, in a result of its own.
pub(super) fn known_request(
    found: IncomingFile,
    id: RequestId,
    sha256: &str,
    known: LedgerEntry,
    now: &Now,
) -> IntakeItem {
    if known.sha256 == sha256 {
        let result = known.result.map(|result| (OutputFile::Result(id), result));
        let why = found.why().or_else(|| read_request(&found).request.as_ref().err().map(why_of));
        return IntakeItem::undecided(found, why, result);
    }
    let refused = Refused::id_reused();
    let why = Some(why_of(&refused));
    let answer = refusal(&found, &id, sha256, refused, now);
    IntakeItem::undecided(found, why, Some((OutputFile::Reused(id), answer)))
}

/// Refuses a new request whose id differs from a known one by case alone, in a result of its own.
pub(super) fn case_twin(found: IncomingFile, id: RequestId, sha256: &str, spool: &mut Spool, now: &Now) -> IntakeItem {
    let refused = Refused::id_differs_by_case();
    let why = Some(why_of(&refused));
    let answer = refusal(&found, &id, sha256, refused, now);
    IntakeItem::undecided(found, why, Some((spool.twin_result(id), answer)))
}

/// The answer to a file that is refused whatever it asks for.
pub(super) fn refusal(
    found: &IncomingFile,
    id: &RequestId,
    sha256: &str,
    refused: Refused,
    now: &Now,
) -> serde_json::Value {
    let kind = match &found.content {
        Content::Whole { bytes, .. } | Content::Bad { bytes: Some(bytes), .. } => request::read(bytes).kind,
        Content::Bad { bytes: None, .. } => None,
    };
    Answer { request_id: id.clone(), kind, request_sha256: sha256.to_owned(), reply: Reply::Refused(refused) }
        .to_json(now)
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
