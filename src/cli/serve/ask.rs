//! Requests over HTTP: the body becomes a request file in the spool, and the server waits for its answer. The server
//! adds the fields that the address determines, and leaves the rest of the body as it came. An `Idempotency-Key`
//! becomes the request's id, so a client may repeat the request after a lost connection.

use super::app::ServeApp;
use super::problem::{Problem, json, status_of};
use crate::cli::client::{self, PULSE_EVERY, Pulse};
use crate::cli::error::CliError;
use crate::cli::view::ViewFile;
use crate::clock::Clock;
use crate::contract::ResultFile;
use crate::core::id::{InvalidId, RequestId};
use crate::core::reply::{Answer, Refused, Reply};
use crate::core::request;
use crate::core::text::sha256;
use crate::spool::{self, MAX_INPUT_BYTES, RESERVED_SUFFIX};
use axum::body::{Body, to_bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response, header};
use axum::response::IntoResponse;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

const BODY_WITHIN: Duration = Duration::from_secs(15);
/// What a client that asks for an unknown request must know before it sends the request again.
const UNKNOWN_HINT: &str = "Answers are kept for 7 days. The sidecar may still be carrying out a request that another \
                            program has sent, or that was sent before this server was started. Send it again only with \
                            the same Idempotency-Key: then nothing happens twice";
/// How often to try again while a request with the same id waits in the spool.
const TAKEN_EVERY: Duration = Duration::from_millis(10);

struct Asked {
    id: RequestId,
    /// The caller has chosen the id, and may have sent the request before.
    is_named: bool,
    bytes: Vec<u8>,
    sha256: String,
}

/// `POST /api/requests`: any kind. Answers with the whole result file, and with the status in it.
pub(super) async fn any(State(app): State<Arc<ServeApp>>, headers: HeaderMap, body: Body) -> Response<Body> {
    let asked = async {
        let bytes = read(&headers, body).await?;
        check_json(&bytes)?;
        ask(&app, name(&headers, bytes)?).await
    };
    match asked.await {
        Ok(answer) => json(status_of(&answer), &answer.json()),
        Err(problem) => problem.into_response(),
    }
}

/// A kind of request with an address of its own: the address has the id, and the body the other fields.
struct Addressed {
    kind: &'static str,
    /// The field that the address determines.
    id: &'static str,
    example: &'static str,
}

const HANDOFF: Addressed = Addressed { kind: "handoff", id: "agent_id", example: "{\"reason\":\"context is full\"}" };
const REWORK: Addressed =
    Addressed { kind: "handoff_rework", id: "handoff_id", example: "{\"note\":\"say which tests you ran\"}" };

/// `POST /api/agents/<id>/handoff`: answers with the bare result, `{"status":"initiated",…}`, or with
/// `{"error":"Agent not found",…}`, without the fields that a result file has around it.
pub(super) async fn handoff(
    State(app): State<Arc<ServeApp>>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    // The same answer as to a request file that names an unknown agent.
    let Ok(Path(id)) = path else { return Problem::new(404, "no_agent", "Agent not found").into_response() };
    bare(&app, &HANDOFF, &id, &headers, body).await
}

/// `POST /api/handoffs/<id>/rework`: answers with the bare result too.
pub(super) async fn rework(
    State(app): State<Arc<ServeApp>>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let Ok(Path(id)) = path else { return Problem::new(404, "no_handoff", "Handoff not found").into_response() };
    bare(&app, &REWORK, &id, &headers, body).await
}

async fn bare(app: &Arc<ServeApp>, addressed: &Addressed, id: &str, headers: &HeaderMap, body: Body) -> Response<Body> {
    let asked = async {
        let bytes = addressed.request(id, &read(headers, body).await?)?;
        ask(app, name(headers, bytes)?).await
    };
    match asked.await {
        Ok(answer) if answer.ok => json(status_of(&answer), &answer.result.clone().unwrap_or_default()),
        Ok(answer) => Problem::refused(&answer).into_response(),
        Err(problem) => problem.into_response(),
    }
}

/// `GET /api/requests/<id>`: the answer to a request that any program submitted before.
pub(super) async fn result(
    State(app): State<Arc<ServeApp>>,
    path: Result<Path<String>, PathRejection>,
) -> Response<Body> {
    let unknown =
        || Problem::new(404, "no_request", "No request with this id waits in the spool, and it has no answer");
    let Some(id) = path.ok().and_then(|Path(id)| id.parse::<RequestId>().ok()) else {
        return unknown().into_response();
    };
    match answer(&app, &id) {
        Ok(Some(answer)) => json(200, &answer.json()),
        // The sidecar removes the file when it takes the request, and may carry it out for a long time.
        Ok(None) if app.submitted.has(&id) || app.home.requests().join(format!("{id}.json")).exists() => {
            Problem::new(404, "no_answer", "The request has no answer yet").request(&id).into_response()
        }
        Ok(None) => unknown().hint(UNKNOWN_HINT).into_response(),
        Err(problem) => problem.into_response(),
    }
}

/// The whole body, if it is JSON by its type, not too large and not too slow.
pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<Vec<u8>, Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(415, "not_json", "The body must be JSON")
            .hint("Send it with `Content-Type: application/json`"));
    }
    let too_large = || Problem::new(413, "too_large", format!("The body may have at most {MAX_INPUT_BYTES} bytes"));
    let said = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if said.is_some_and(|said| said > MAX_INPUT_BYTES) {
        return Err(too_large());
    }
    let limit = usize::try_from(MAX_INPUT_BYTES).unwrap_or(usize::MAX);
    match timeout(BODY_WITHIN, to_bytes(body, limit)).await {
        Ok(Ok(bytes)) => Ok(bytes.to_vec()),
        Ok(Err(error)) if has_broken_off(&error) => Err(Problem::bad(format!("The body was cut off: {error}"))),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => Err(Problem::new(408, "too_slow", "The body did not arrive in time")),
    }
}

/// Whether the connection broke or sent an invalid body; otherwise the body is too large.
fn has_broken_off(error: &axum::Error) -> bool {
    let mut causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.any(|cause| cause.is::<hyper::Error>() || cause.is::<std::io::Error>())
}

/// Refuses a body that is not JSON. The sidecar would wait before it refuses such a file, because the file might still
/// be incomplete.
fn check_json(bytes: &[u8]) -> Result<(), Problem> {
    let parsed = serde_json::from_slice::<IgnoredAny>(bytes);
    parsed.map(|_| ()).map_err(|error| Problem::bad(format!("The body is not JSON: {error}")))
}

impl Addressed {
    /// The body with the id from the address. The id is put in front as text, so that the sidecar sees each field that
    /// was sent, even a repeated one.
    fn request(&self, id: &str, body: &[u8]) -> Result<Vec<u8>, Problem> {
        let fields: Map<String, Value> = serde_json::from_slice(body).map_err(|error| {
            Problem::bad(format!("The body is not a JSON object: {error}")).hint(format!("Example: {}", self.example))
        })?;
        if let Some(field) = ["v", "kind", self.id].into_iter().find(|field| fields.contains_key(*field)) {
            return Err(
                Problem::bad(format!("{field}: is not a field of this body; the address determines it")).field(field)
            );
        }
        let rest = body.trim_ascii_start().strip_prefix(b"{").unwrap_or_default();
        let comma = if fields.is_empty() { "" } else { "," };
        let start = format!("{{\"v\":1,\"kind\":\"{}\",\"{}\":{}{comma}", self.kind, self.id, Value::from(id));
        Ok([start.as_bytes(), rest].concat())
    }
}

fn name(headers: &HeaderMap, bytes: Vec<u8>) -> Result<Asked, Problem> {
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        return Err(Problem::new(413, "too_large", format!("A request may have at most {MAX_INPUT_BYTES} bytes")));
    }
    let (id, is_named) = id_of::<RequestId>(headers)?;
    if spool::is_reserved(id.as_str()) {
        let message =
            format!("Idempotency-Key: must not end in {RESERVED_SUFFIX}, which is reserved for tasuki's own answers");
        return Err(Problem::bad(message).field("Idempotency-Key"));
    }
    let sha256 = sha256(&bytes);
    Ok(Asked { id, is_named, bytes, sha256 })
}

/// The id of a request: the `Idempotency-Key`, or a new id. Also returns whether the caller named it.
pub(super) fn id_of<T: FromStr<Err = InvalidId>>(headers: &HeaderMap) -> Result<(T, bool), Problem> {
    let mut keys = headers.get_all("idempotency-key").iter();
    let (key, more) = (keys.next(), keys.next());
    if more.is_some() {
        return Err(Problem::bad("Idempotency-Key: is given more than once").field("Idempotency-Key"));
    }
    let text = match key {
        Some(key) => key.to_str().unwrap_or_default().to_owned(),
        None => format!("http-{}", uuid::Uuid::now_v7()),
    };
    let id = text.parse();
    let id =
        id.map_err(|error: InvalidId| Problem::bad(format!("Idempotency-Key: {error}")).field("Idempotency-Key"))?;
    Ok((id, key.is_some()))
}

/// Submits a request, unless it already has an answer, and waits for the answer.
async fn ask(app: &Arc<ServeApp>, asked: Asked) -> Result<ViewFile<ResultFile>, Problem> {
    let mut changes = app.changes.results();
    if let Some(answer) = ours(app, &asked)? {
        return Ok(answer);
    }
    let mut pulse = Pulse::new(&app.home);
    pulse.keep(PULSE_EVERY).map_err(|gone| CliError { code: "no_sidecar".to_owned(), ..gone })?;
    if let Some(answer) = refused_at_once(&asked) {
        return Ok(answer);
    }
    let until = Instant::now() + app.patience;
    submit(app, &asked, until).await?;
    loop {
        changes.mark_unchanged();
        if let Some(answer) = ours(app, &asked)? {
            return Ok(answer);
        }
        if pulse.keep(PULSE_EVERY).is_err() {
            return Err(unanswered(&asked.id, "The sidecar no longer answers"));
        }
        if until <= Instant::now() {
            return Err(unanswered(&asked.id, "No answer came in time"));
        }
        tokio::select! {
            () = app.stop.cancelled() => return Err(unanswered(&asked.id, "The server is stopping")),
            _ = changes.changed() => {}
            () = sleep(app.changes.nap().min(until - Instant::now())) => {}
        }
    }
}

/// Refuses a malformed request here, with the answer that the sidecar would give. The sidecar keeps bad files in
/// `rejected/`, which has room for a thousand, so a program that sends only bad requests must not fill it. A malformed
/// ACK is submitted nevertheless, because the sidecar must then show the right form to the agent.
fn refused_at_once(asked: &Asked) -> Option<ViewFile<ResultFile>> {
    let read = request::read(&asked.bytes);
    let refused = read.request.err().filter(|_| read.malformed.is_none())?;
    let (request_id, request_sha256) = (asked.id.clone(), asked.sha256.clone());
    let answer = Answer { request_id, kind: read.kind, request_sha256, reply: Reply::Refused(refused) };
    Some(answer.to_json(&Clock::new().now()).into())
}

/// The error for a request that was submitted and has no answer yet: it stays in the spool even if the server ends.
fn unanswered(id: &RequestId, why: &str) -> Problem {
    Problem::new(504, "no_answer", format!("{why}. The request is in the spool and may still be carried out"))
        .hint(format!("Ask for the answer later: GET /api/requests/{id}"))
        .request(id)
}

/// Submits the request as soon as no other request with the same id waits in the spool.
async fn submit(app: &Arc<ServeApp>, asked: &Asked, until: Instant) -> Result<(), Problem> {
    loop {
        let (home, id, bytes) = (app.home.clone(), asked.id.clone(), asked.bytes.clone());
        let submitted =
            tokio::task::spawn_blocking(move || spool::client::submit_request(home.root(), &id, &bytes)).await;
        match submitted {
            Ok(Ok(())) => {
                app.submitted.note(&asked.id);
                return Ok(());
            }
            Ok(Err(error)) if error.kind() == spool::ErrorKind::Taken && until > Instant::now() => {
                // The other one may be the same request, sent twice at once.
                if ours(app, asked)?.is_some() {
                    return Ok(());
                }
                sleep(TAKEN_EVERY).await;
            }
            Ok(Err(error)) if error.kind() == spool::ErrorKind::Taken => {
                let message = "A request with this id is still waiting in the spool. Nothing was sent";
                return Err(Problem::new(409, "taken", message)
                    .hint("If it stays there, rejected/ may be full: look at the sidecar's log"));
            }
            Ok(Err(error)) => return Err(CliError::from(error).into()),
            Err(error) => return Err(Problem::new(503, "stopping", format!("Nothing was sent: {error}"))),
        }
    }
}

/// The answer to exactly these bytes, if there is one. It is a refusal if the id was used for other bytes before.
fn ours(app: &ServeApp, asked: &Asked) -> Result<Option<ViewFile<ResultFile>>, Problem> {
    let Some(first) = answer(app, &asked.id)? else {
        // The answer to the first request may have been removed, while the refusal of the second is still there.
        let Ok(beside) = format!("{}.reused", asked.id).parse() else { return Ok(None) };
        let is_ours = |answer: &ViewFile<ResultFile>| answer.request_sha256 == asked.sha256;
        return Ok(answer(app, &beside)?.filter(is_ours).filter(|_| asked.is_named));
    };
    if !asked.is_named || first.request_sha256 == asked.sha256 {
        return Ok(Some(first));
    }
    // The sidecar has one file for all refusals of a reused id, and several such requests may come at the same time. So
    // this server makes the refusal itself; the sidecar would refuse the request in any case.
    let refused = Refused::id_reused();
    let (request_id, request_sha256) = (asked.id.clone(), asked.sha256.clone());
    let kind = request::read(&asked.bytes).kind;
    let answer = Answer { request_id, kind, request_sha256, reply: Reply::Refused(refused) };
    Ok(Some(answer.to_json(&Clock::new().now()).into()))
}

fn answer(app: &ServeApp, id: &RequestId) -> Result<Option<ViewFile<ResultFile>>, Problem> {
    let found = client::answer(&app.home, id)?;
    if found.is_some() {
        app.submitted.forget(id);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_with_two_idempotency_keys_is_refused() {
        let mut headers = HeaderMap::new();
        for key in ["one", "two"] {
            headers.append("idempotency-key", key.parse().expect("a value"));
        }
        assert_eq!(
            name(&headers, Vec::new()).map(|_| ()).map_err(|problem| problem.code),
            Err("bad_request".to_owned())
        );
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_distinguished_from_a_body_that_is_too_large() {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, "application/json".parse().expect("a value"));
        let largest = usize::try_from(MAX_INPUT_BYTES).expect("it fits");
        let broken = Body::new(Broken);
        let refused = |body| async { read(&headers, body).await.map(|_| ()).map_err(|problem| problem.code) };
        assert_eq!(refused(broken).await, Err("bad_request".to_owned()));
        assert_eq!(refused(Body::from(vec![b' '; largest + 1])).await, Err("too_large".to_owned()));
        assert_eq!(refused(Body::from(vec![b' '; largest])).await, Ok(()));
    }

    /// A body whose connection breaks.
    struct Broken;

    impl axum::body::HttpBody for Broken {
        type Data = axum::body::Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
            std::task::Poll::Ready(Some(Err(std::io::ErrorKind::UnexpectedEof.into())))
        }
    }

    #[test]
    fn a_request_has_the_fields_of_the_body_and_those_of_the_address() {
        let of =
            |body: &str| HANDOFF.request("a\"b", body.as_bytes()).map(|bytes| String::from_utf8(bytes).expect("text"));
        let start = "{\"v\":1,\"kind\":\"handoff\",\"agent_id\":\"a\\\"b\"";
        assert_eq!(of(" { }").ok(), Some(format!("{start} }}")));
        assert_eq!(of("{\"reason\":1,\"reason\":2}").ok(), Some(format!("{start},\"reason\":1,\"reason\":2}}")));
        for wrong in ["", "[]", "{", "{\"agent_id\":\"x\"}", "{\"v\":1}", "{\"kind\":\"handoff\"}"] {
            assert_eq!(of(wrong).map_err(|problem| problem.code), Err("bad_request".to_owned()), "{wrong}");
        }
        let rework = REWORK.request("h", b"{\"note\":\"x\"}").expect("a request");
        assert_eq!(rework, b"{\"v\":1,\"kind\":\"handoff_rework\",\"handoff_id\":\"h\",\"note\":\"x\"}");
        assert!(REWORK.request("h", b"{\"handoff_id\":\"i\",\"note\":\"x\"}").is_err());
    }
}
