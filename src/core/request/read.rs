//! Parses a request file. Whatever is wrong with it becomes an answer that names the field and the position.

use super::ack::MalformedAck;
use super::body::parse;
use super::kinds::Request;
use super::request_body::RequestBody;
use crate::core::id::RequestId;
use crate::core::reply::Refused;
use crate::core::text::quotable;
use serde::Deserialize;

/// A request file that was read: which kind it names, if that could be read, and what it asks or why it is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedRequest {
    /// The `kind`, if it is a text: as it is if it is known, else sanitised and cut.
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

/// The largest number of characters of a kind that an answer shows. Every known kind is shorter.
const MAX_KIND: usize = 64;

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
            return ParsedRequest::refused(shown(kind), refused);
        }
        None => return ParsedRequest::refused(shown(kind), Refused::bad("v", "is missing: write \"v\":1")),
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
    ParsedRequest { request, kind: shown(Some(kind)), malformed }
}

fn shown(kind: Option<String>) -> Option<String> {
    kind.map(|kind| quotable(&kind, MAX_KIND))
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_shows_the_kind_that_was_read_and_no_more_of_it_than_is_needed() {
        let kind = |body: serde_json::Value| read(body.to_string().as_bytes()).kind;
        for known in super::super::KINDS {
            assert_eq!(kind(json!({"v": 1, "kind": known})).as_deref(), Some(known));
        }
        assert_eq!(kind(json!({"v": 1, "kind": "bogus"})).as_deref(), Some("bogus"));
        assert_eq!(kind(json!({"v": 9, "kind": "bo\u{1b}[2Jgus"})).as_deref(), Some("bo[2Jgus"));
        let long = kind(json!({"kind": "x".repeat(5_000)})).expect("a text");
        assert!(long.chars().count() == MAX_KIND + 1 && long.ends_with('…'), "{long}");
        for odd in [json!({"v": 1}), json!({"v": 1, "kind": 7}), json!({"v": 2, "kind": ["ack"]}), json!([])] {
            assert_eq!(kind(odd.clone()), None, "{odd}");
        }
    }
}
