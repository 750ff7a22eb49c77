//! Reading a request file: whatever is wrong with it is an answer that names the field and the position.

use super::{
    AckAsked, AckStatus, Author, ClarifyAsked, DocumentAsked, HandoffAsked, MalformedAck, Request, Successor, integers,
    pane_number, work,
};
use crate::core::reply::Refused;
use crate::core::text;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

/// Longest reason, focus or task text, in bytes.
const MAX_TEXT: usize = 16 * 1024;
/// Longest text that `agent_send` takes, in bytes.
const MAX_SEND: usize = 512 * 1024;
/// Longest document, in bytes (SPEC 4.4).
const MAX_DOCUMENT: usize = 1024 * 1024;
/// Most tasks that a handoff may name.
const MAX_TASKS: usize = 256;
/// Most questions of one ACK, and most answers to them.
const MAX_QUESTIONS: usize = 64;
/// Longest text in an ACK or in an answer to one, in bytes.
const MAX_SAID: usize = 4 * 1024;

/// A request file that was read: which kind it names, if that could be read, and what it asks or why it is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The `kind`, as far as it is a known one.
    pub kind: Option<String>,
    /// The request, or the answer that refuses it.
    pub request: Result<Request, Refused>,
    /// It is an ACK that has not the right form: whose.
    pub malformed: Option<MalformedAck>,
}

impl Read {
    fn refused(kind: Option<String>, refused: Refused) -> Self {
        Read { kind, request: Err(refused), malformed: None }
    }
}

#[derive(Deserialize)]
struct Envelope {
    v: Option<serde_json::Value>,
    kind: Option<serde_json::Value>,
}

/// Reads a request file's bytes. Never fails: what is wrong is an answer.
#[must_use]
pub fn read(bytes: &[u8]) -> Read {
    let envelope: Envelope = match parse(bytes) {
        Ok(envelope) => envelope,
        Err(refused) => return Read::refused(None, refused),
    };
    // Whatever it is, it is the field's own fault and named so.
    let (kind, is_odd) = match envelope.kind {
        Some(serde_json::Value::String(kind)) => (Some(kind), false),
        other => (None, other.is_some()),
    };
    match envelope.v {
        Some(serde_json::Value::Number(v)) if v.as_u64() == Some(1) => {}
        Some(_) => {
            let refused = Refused::new(400, "unsupported_version", "v must be 1, the only version there is").field("v");
            return Read::refused(known(kind), refused);
        }
        None => return Read::refused(known(kind), Refused::bad("v", "is missing: write \"v\":1")),
    }
    if is_odd {
        return Read::refused(None, Refused::bad("kind", "must be a text"));
    }
    let Some(kind) = kind else {
        return Read::refused(None, Refused::bad("kind", "is missing"));
    };
    let (mut request, mut malformed) = (by_kind(&kind, bytes), None);
    if kind == "ack"
        && let Err(refused) = request
    {
        let ack = MalformedAck::of(bytes);
        request = Err(ack.refuse(refused));
        malformed = Some(ack);
    }
    Read { request, kind: known(Some(kind)), malformed }
}

fn known(kind: Option<String>) -> Option<String> {
    kind.filter(|kind| KINDS.contains(&kind.as_str()))
}

/// The kinds that this version carries out.
pub const KINDS: [&str; 24] = [
    "handoff",
    "handoff_retry",
    "handoff_abandon",
    "handoff_cancel",
    "handoff_accept",
    "agent_create",
    "agent_register",
    "agent_shutdown",
    "agent_forget",
    "agent_send",
    "ack",
    "clarify",
    "ack_override",
    "publish",
    "work_create",
    "work_claim",
    "work_complete",
    "work_retry_children",
    "work_release",
    "work_escalate",
    "work_rollback",
    "work_comment",
    "work_import",
    "error_dismiss",
];

fn by_kind(kind: &str, bytes: &[u8]) -> Result<Request, Refused> {
    let request = match kind {
        "handoff" => Request::Handoff(body(bytes)?),
        "handoff_retry" => Request::HandoffRetry(body(bytes)?),
        "handoff_abandon" => Request::HandoffAbandon(body(bytes)?),
        "handoff_cancel" => Request::HandoffCancel(body(bytes)?),
        "handoff_accept" => Request::HandoffAccept(body(bytes)?),
        "agent_create" => Request::AgentCreate(body(bytes)?),
        "agent_register" => Request::AgentRegister(body(bytes)?),
        "agent_shutdown" => Request::AgentShutdown(body(bytes)?),
        "agent_forget" => Request::AgentForget(body(bytes)?),
        "agent_send" => Request::AgentSend(body(bytes)?),
        "ack" => Request::Ack(body(bytes)?),
        "clarify" => Request::Clarify(body(bytes)?),
        "ack_override" => Request::AckOverride(body(bytes)?),
        "publish" => Request::Publish(body(bytes)?),
        "work_create" => Request::WorkCreate(body(bytes)?),
        "work_claim" => Request::WorkClaim(body(bytes)?),
        "work_complete" => Request::WorkComplete(body(bytes)?),
        "work_retry_children" => Request::WorkRetryChildren(body(bytes)?),
        "work_release" => Request::WorkRelease(body(bytes)?),
        "work_escalate" => Request::WorkEscalate(body(bytes)?),
        "work_rollback" => Request::WorkRollback(body(bytes)?),
        "work_comment" => Request::WorkComment(body(bytes)?),
        "work_import" => Request::WorkImport(body(bytes)?),
        "error_dismiss" => Request::ErrorDismiss(body(bytes)?),
        _ => return Err(Refused::new(400, "unknown_kind", "kind is not one that tasuki knows").field("kind")),
    };
    check(&request)?;
    Ok(request)
}

/// The fields of one kind: the envelope's two are taken away first, so that what is left must be known to the kind.
fn body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refused> {
    let mut fields: Fields = parse(bytes)?;
    fields.0.remove("v");
    fields.0.remove("kind");
    if let Some((name, number)) = fields.0.iter().find_map(|(name, raw)| Some((name, integers::too_long(raw.get())?))) {
        let (name, number) = (seen(name), seen(number));
        let what = format!("{name}: {number} has more than 64 bits and would be rounded; give it as a text");
        return Err(Refused::new(400, "bad_request", what).field(&name));
    }
    let rest = serde_json::to_string(&fields.0).map_err(|_| Refused::new(400, "bad_request", "can't be read"))?;
    let mut deserializer = serde_json::Deserializer::from_str(&rest);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let message = plain(error.inner());
        match path.as_str() {
            "." => Refused::new(400, "bad_request", message.clone()).maybe_field(named_field(&message)),
            path => {
                let path = seen(path);
                Refused::new(400, "bad_request", format!("{path}: {message}")).field(&path)
            }
        }
    })
}

/// A JSON object's fields, unread. A field that stands twice is refused: which of the two was meant can't be known.
struct Fields(BTreeMap<String, Box<RawValue>>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
            if fields.contains_key(&name) {
                return Err(serde::de::Error::custom(format_args!("duplicate field `{name}`")));
            }
            fields.insert(name, value);
        }
        Ok(Fields(fields))
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refused> {
    serde_json::from_slice(bytes).map_err(|error| {
        let at = format!("{} (line {}, column {})", plain(&error), error.line(), error.column());
        Refused::new(400, "bad_request", at).at(error.line() as u64, error.column() as u64)
    })
}

/// The message without the position that serde_json appends, cut to a length that a terminal can show.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
    text::sanitise(text).chars().take(300).collect()
}

/// serde names an unknown or missing field in backticks.
fn named_field(message: &str) -> Option<String> {
    message.split('`').nth(1).map(seen)
}

/// A field's name; one that can't be seen is told as JSON writes it.
fn seen(name: &str) -> String {
    if name.trim().is_empty() { format!("\"{name}\"") } else { name.to_owned() }
}

fn check(request: &Request) -> Result<(), Refused> {
    match request {
        Request::Handoff(asked) => check_handoff(asked),
        Request::HandoffRetry(asked) => {
            not_empty("handoff_id", &asked.handoff_id, 128)?;
            asked.successor.as_ref().map_or(Ok(()), check_successor)
        }
        Request::HandoffAbandon(asked) | Request::HandoffCancel(asked) | Request::HandoffAccept(asked) => {
            not_empty("handoff_id", &asked.handoff_id, 128)
        }
        Request::AgentCreate(asked) => {
            optional("profile", asked.profile.as_deref(), 64)?;
            optional("cwd", asked.cwd.as_deref(), 4096)?;
            if asked.cwd.as_ref().is_some_and(|cwd| !cwd.starts_with('/')) {
                return Err(Refused::bad(
                    "cwd",
                    "must be an absolute path: it would count from the sidecar's own folder",
                ));
            }
            optional("previous_agent_id", asked.previous_agent_id.as_deref(), 128)?;
            session_name(asked.session.as_deref())
        }
        Request::AgentRegister(asked) => {
            pane_number(&asked.pane).ok_or_else(|| Refused::bad("pane", "must be a pane id such as %3"))?;
            optional("profile", asked.profile.as_deref(), 64)
        }
        Request::AgentShutdown(asked) => not_empty("agent_id", &asked.agent_id, 128),
        Request::AgentForget(asked) => not_empty("agent_id", &asked.agent_id, 128),
        Request::AgentSend(asked) => {
            not_empty("agent_id", &asked.agent_id, 128)?;
            not_empty("text", &asked.text, MAX_SEND)?;
            if text::begins_like_a_command(&asked.text) {
                return Err(Refused::bad("text", "must not begin with / ! # or @: a CLI would act on it"));
            }
            Ok(())
        }
        Request::Ack(asked) => check_ack(asked),
        Request::Clarify(asked) => check_clarify(asked),
        Request::AckOverride(asked) => {
            not_empty("handoff_id", &asked.handoff_id, 128)?;
            not_empty("reason", &asked.reason, MAX_SAID)
        }
        Request::Publish(asked) => not_empty("handoff_id", &asked.handoff_id, 128),
        Request::WorkCreate(asked) => work::check_create(asked),
        Request::WorkClaim(asked) => work::check_claim(asked),
        Request::WorkComplete(asked) => work::check_complete(asked),
        Request::WorkRetryChildren(asked) => work::check_retry(asked),
        Request::WorkRelease(asked) => work::check_release(asked),
        Request::WorkEscalate(asked) => work::check_escalate(asked),
        Request::WorkRollback(asked) => work::check_rollback(asked),
        Request::WorkComment(asked) => work::check_comment(asked),
        Request::WorkImport(asked) => work::check_import(asked),
        Request::ErrorDismiss(asked) => not_empty("error_id", &asked.error_id, 128),
    }
}

fn check_handoff(asked: &HandoffAsked) -> Result<(), Refused> {
    not_empty("agent_id", &asked.agent_id, 128)?;
    not_empty("reason", &asked.reason, MAX_TEXT)?;
    optional("focus", asked.focus.as_deref(), MAX_TEXT)?;
    if asked.tasks.len() > MAX_TASKS {
        return Err(Refused::bad("tasks", "may hold at most 256 entries"));
    }
    asked.tasks.iter().try_for_each(|task| not_empty("tasks", task, MAX_TEXT))?;
    check_successor(&asked.successor)?;
    asked.publish.as_ref().map_or(Ok(()), |asked| super::publish_target(asked).map(|_| ()))?;
    check_document(asked)
}

fn check_successor(successor: &Successor) -> Result<(), Refused> {
    match successor {
        Successor::New | Successor::SamePane => Ok(()),
        Successor::Existing { agent_id } => not_empty("successor.agent_id", agent_id, 128),
    }
}

/// A document goes with author `provided`, and holds exactly one of its two fields.
fn check_document(asked: &HandoffAsked) -> Result<(), Refused> {
    match (asked.author, &asked.document) {
        (Author::Provided, None) => Err(Refused::bad("document", "must be given with author provided")),
        (Author::Provided, Some(document)) => check_content(document),
        (_, Some(_)) => Err(Refused::bad("document", "goes with author provided only")),
        (_, None) => Ok(()),
    }
}

fn check_content(document: &DocumentAsked) -> Result<(), Refused> {
    match (&document.text, &document.path) {
        (Some(text), None) => not_empty("document.text", text, MAX_DOCUMENT),
        (None, Some(path)) => not_empty("document.path", path, 4096),
        _ => Err(Refused::bad("document", "must hold either text or path")),
    }
}

fn check_ack(asked: &AckAsked) -> Result<(), Refused> {
    not_empty("handoff_id", &asked.handoff_id, 128)?;
    not_empty("agent_id", &asked.agent_id, 128)?;
    not_empty("understanding", &asked.understanding, MAX_SAID)?;
    not_empty("starting_from", &asked.starting_from, MAX_SAID)?;
    if asked.questions.len() > MAX_QUESTIONS {
        return Err(Refused::bad("questions", "may hold at most 64 entries"));
    }
    asked.questions.iter().try_for_each(|question| not_empty("questions", question, MAX_SAID))?;
    if asked.status == AckStatus::NeedsClarification && asked.questions.is_empty() {
        return Err(Refused::bad("questions", "must hold at least one question with status needs_clarification"));
    }
    Ok(())
}

fn check_clarify(asked: &ClarifyAsked) -> Result<(), Refused> {
    not_empty("handoff_id", &asked.handoff_id, 128)?;
    if asked.clarifications.is_empty() || asked.clarifications.len() > MAX_QUESTIONS {
        return Err(Refused::bad("clarifications", "must hold 1 to 64 entries"));
    }
    for one in &asked.clarifications {
        not_empty("clarifications.question", &one.question, MAX_SAID)?;
        not_empty("clarifications.answer", &one.answer, MAX_SAID)?;
    }
    asked.document.as_ref().map_or(Ok(()), check_content)
}

pub(super) fn not_empty(field: &str, text: &str, max: usize) -> Result<(), Refused> {
    if text.trim().is_empty() {
        return Err(Refused::bad(field, "must not be empty"));
    }
    if text.len() > max {
        return Err(Refused::bad(field, &format!("is longer than {max} bytes")));
    }
    Ok(())
}

pub(super) fn optional(field: &str, text: Option<&str>, max: usize) -> Result<(), Refused> {
    text.map_or(Ok(()), |text| not_empty(field, text, max))
}

/// tmux replaces `.` and `:` in session names, so a name with them could not be found again.
fn session_name(name: Option<&str>) -> Result<(), Refused> {
    match name {
        Some(name) if !is_session_name(name) => Err(Refused::bad(
            "session",
            "must not begin with _tasuki- and must be 1 to 128 letters, digits, blanks or - _ / + @",
        )),
        _ => Ok(()),
    }
}

/// Whether tmux takes a session's name as it is.
pub(crate) fn is_session_name(name: &str) -> bool {
    let ok = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ' | '/' | '+' | '@');
    !name.is_empty()
        && name.len() <= 128
        && name.chars().all(ok)
        && !name.starts_with(['-', '=', ' '])
        && !name.starts_with(PRIVATE_SESSIONS)
}

/// How the sessions begin that our own connections to tmux sit in. An agent in one would be taken for ours.
pub(crate) const PRIVATE_SESSIONS: &str = "_tasuki-";
