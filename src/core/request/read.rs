//! Parses a request file. Whatever is wrong with it becomes an answer that names the field and the position.

use super::ack::MalformedAck;
use super::body::parse;
use super::kinds::{KINDS, Request};
use super::request_body::RequestBody;
use crate::core::id::RequestId;
use crate::core::reply::Refused;
use serde::Deserialize;

/// A request file that was read: which kind it names, if that could be read, and what it asks or why it is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedRequest {
    /// The `kind`, if it is known.
    pub kind: Option<String>,
    /// The request, or the answer that refuses it.
    pub request: Result<Request, Refused>,
    /// If the request is a malformed ACK: the ids that it names.
    pub malformed: Option<MalformedAck>,
}

impl ParsedRequest {
    fn refused(kind: Option<String>, refused: Refused) -> Self {
        ParsedRequest { kind, request: Err(refused), malformed: None }
    }
}

#[derive(Deserialize)]
struct Envelope {
    v: Option<serde_json::Value>,
    kind: Option<serde_json::Value>,
}

/// Reads a request file's bytes. Never fails: what is wrong is an answer.
#[must_use]
pub fn read(bytes: &[u8]) -> ParsedRequest {
    let envelope: Envelope = match parse(bytes) {
        Ok(envelope) => envelope,
        Err(refused) => return ParsedRequest::refused(None, refused),
    };
    // A `kind` that is not a string must be refused with the field's name, not as a JSON error.
    let (kind, is_odd) = match envelope.kind {
        Some(serde_json::Value::String(kind)) => (Some(kind), false),
        other => (None, other.is_some()),
    };
    match envelope.v {
        Some(serde_json::Value::Number(v)) if v.as_u64() == Some(1) => {}
        Some(_) => {
            let refused =
                Refused::new(400, "unsupported_version", "v must be 1, the only version that tasuki reads").field("v");
            return ParsedRequest::refused(known(kind), refused);
        }
        None => return ParsedRequest::refused(known(kind), Refused::bad("v", "is missing: write \"v\":1")),
    }
    if is_odd {
        return ParsedRequest::refused(None, Refused::bad("kind", "must be a string"));
    }
    let Some(kind) = kind else {
        return ParsedRequest::refused(None, Refused::bad("kind", "is missing"));
    };
    let (mut request, mut malformed) = (by_kind(&kind, bytes), None);
    if kind == "ack"
        && let Err(refused) = request
    {
        let ack = MalformedAck::of(bytes);
        request = Err(ack.refuse(refused));
        malformed = Some(ack);
    }
    ParsedRequest { request, kind: known(Some(kind)), malformed }
}

fn known(kind: Option<String>) -> Option<String> {
    kind.filter(|kind| KINDS.contains(&kind.as_str()))
}

fn by_kind(kind: &str, bytes: &[u8]) -> Result<Request, Refused> {
    let unknown = || Refused::new(400, "unknown_kind", "kind is not a request kind that tasuki knows").field("kind");
    let request = Request::read(kind, bytes).ok_or_else(unknown)??;
    request.check()?;
    Ok(request)
}

/// The request id that a file name gives, if it gives one.
#[must_use]
pub fn id_of_file(name: &str) -> Option<RequestId> {
    name.strip_suffix(".json")?.parse().ok()
}
