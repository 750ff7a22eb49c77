//! Requests: what comes in by HTTP is dropped into the spool as it is, and its one answer is waited for. Who gives an
//! `Idempotency-Key` names the request by it, and may ask again whatever became of the connection.

use super::app::App;
use super::problem::{Problem, json, status_of};
use crate::cli::client::{self, PULSE_EVERY, Pulse};
use crate::cli::error::CliError;
use crate::cli::view::Seen;
use crate::clock::Clock;
use crate::contract::ResultFile;
use crate::core::id::{InvalidId, RequestId};
use crate::core::reply::{Answer, Refused, Reply};
use crate::core::request;
use crate::core::text::sha256;
use crate::spool::{self, MAX_INPUT_BYTES, RESERVED};
use axum::body::{Body, to_bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response, header};
use axum::response::IntoResponse;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How long a body may take.
const BODY_WITHIN: Duration = Duration::from_secs(15);
/// How long to wait for a request of the same name to be taken.
const TAKEN_EVERY: Duration = Duration::from_millis(10);

/// A request on its way.
struct Asked {
    id: RequestId,
    /// The caller named it, and may have asked before.
    is_named: bool,
    bytes: Vec<u8>,
    sha256: String,
}

/// `POST /api/requests`: any kind. Answers with the whole result, and its status.
pub(super) async fn any(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Response<Body> {
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

/// `POST /api/agents/<id>/handoff`: answers as seed 1 has it, `{"status":"initiated",…}` or `{"error":"Agent not found",…}`.
pub(super) async fn handoff(
    State(app): State<Arc<App>>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Response<Body> {
    let asked = async {
        let Path(agent) = path.map_err(|_| no_agent())?;
        let bytes = handoff_of(&agent, &read(&headers, body).await?)?;
        ask(&app, name(&headers, bytes)?).await
    };
    match asked.await {
        Ok(answer) if answer.ok => json(status_of(&answer), &answer.result.clone().unwrap_or_default()),
        Ok(answer) => Problem::refused(&answer).into_response(),
        Err(problem) => problem.into_response(),
    }
}

/// `GET /api/requests/<id>`: the answer to a request that was dropped before, by whomever.
pub(super) async fn result(State(app): State<Arc<App>>, path: Result<Path<String>, PathRejection>) -> Response<Body> {
    let unknown = || Problem::new(404, "no_request", "Request not found");
    let Some(id) = path.ok().and_then(|Path(id)| id.parse::<RequestId>().ok()) else {
        return unknown().into_response();
    };
    match answer(&app, &id) {
        Ok(Some(answer)) => json(200, &answer.json()),
        Ok(None) if app.home.requests().join(format!("{id}.json")).exists() => {
            Problem::new(404, "no_answer", "The request waits for its answer").request(&id).into_response()
        }
        Ok(None) => unknown().hint("Answers are kept for 7 days").into_response(),
        Err(problem) => problem.into_response(),
    }
}

/// What the seed answers for an agent that nobody knows.
fn no_agent() -> Problem {
    Problem::new(404, "no_agent", "Agent not found")
}

/// The body, whole, within its bounds.
async fn read(headers: &HeaderMap, body: Body) -> Result<Vec<u8>, Problem> {
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
        Ok(Err(error)) if has_broken_off(&error) => Err(Problem::bad(format!("The body has broken off: {error}"))),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => Err(Problem::new(408, "too_slow", "The body did not come in time")),
    }
}

/// Whether it was the connection that ended a body too early, or what came was none; else it was longer than it may be.
fn has_broken_off(error: &axum::Error) -> bool {
    let mut causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.any(|cause| cause.is::<hyper::Error>() || cause.is::<std::io::Error>())
}

/// What is no JSON would be left alone in the spool for a while, for somebody might still be writing it.
fn check_json(bytes: &[u8]) -> Result<(), Problem> {
    let parsed = serde_json::from_slice::<IgnoredAny>(bytes);
    parsed.map(|_| ()).map_err(|error| Problem::bad(format!("The body is not JSON: {error}")))
}

/// The body of a handoff with what the address says. It is put in front as text, so that the sidecar sees each field that
/// was sent, also one that stands twice.
fn handoff_of(agent: &str, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let fields: Map<String, Value> = serde_json::from_slice(body).map_err(|error| {
        Problem::bad(format!("The body is no JSON object: {error}")).hint("Such as {\"reason\":\"context is full\"}")
    })?;
    if let Some(field) = ["v", "kind", "agent_id"].into_iter().find(|field| fields.contains_key(*field)) {
        return Err(Problem::bad(format!("{field}: is not a field of this body; the address says it")).field(field));
    }
    let rest = body.trim_ascii_start().strip_prefix(b"{").unwrap_or_default();
    let comma = if fields.is_empty() { "" } else { "," };
    let start = format!("{{\"v\":1,\"kind\":\"handoff\",\"agent_id\":{}{comma}", Value::from(agent));
    Ok([start.as_bytes(), rest].concat())
}

fn name(headers: &HeaderMap, bytes: Vec<u8>) -> Result<Asked, Problem> {
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        return Err(Problem::new(413, "too_large", format!("A request may have at most {MAX_INPUT_BYTES} bytes")));
    }
    let mut keys = headers.get_all("idempotency-key").iter();
    let (key, more) = (keys.next(), keys.next());
    if more.is_some() {
        return Err(Problem::bad("Idempotency-Key: stands there more than once").field("Idempotency-Key"));
    }
    let text = match key {
        Some(key) => key.to_str().unwrap_or_default().to_owned(),
        None => format!("http-{}", uuid::Uuid::now_v7()),
    };
    let id = text
        .parse()
        .map_err(|error: InvalidId| Problem::bad(format!("Idempotency-Key: {error}")).field("Idempotency-Key"))?;
    if text.ends_with(RESERVED) {
        let message = format!("Idempotency-Key: must not end in {RESERVED}, which is for answers of ours");
        return Err(Problem::bad(message).field("Idempotency-Key"));
    }
    let sha256 = sha256(&bytes);
    Ok(Asked { id, is_named: key.is_some(), bytes, sha256 })
}

/// Drops a request, unless it has its answer already, and waits for that.
async fn ask(app: &Arc<App>, asked: Asked) -> Result<Seen<ResultFile>, Problem> {
    let mut bell = app.bell.results();
    if let Some(answer) = ours(app, &asked)? {
        return Ok(answer);
    }
    let mut pulse = Pulse::new(&app.home);
    pulse.keep(PULSE_EVERY).map_err(|gone| CliError { code: "no_sidecar".to_owned(), ..gone })?;
    if let Some(answer) = refused_at_once(&asked) {
        return Ok(answer);
    }
    let until = Instant::now() + app.patience;
    drop_into_spool(app, &asked, until).await?;
    loop {
        bell.mark_unchanged();
        if let Some(answer) = ours(app, &asked)? {
            return Ok(answer);
        }
        if pulse.keep(PULSE_EVERY).is_err() {
            return Err(unanswered(&asked.id, "No sidecar answers any more"));
        }
        if until <= Instant::now() {
            return Err(unanswered(&asked.id, "No answer came in time"));
        }
        tokio::select! {
            () = app.stop.cancelled() => return Err(unanswered(&asked.id, "This server ends")),
            _ = bell.changed() => {}
            () = sleep(app.bell.nap().min(until - Instant::now())) => {}
        }
    }
}

/// What is malformed is refused here with the sidecar's own answer, for it keeps every bad file, and keeps no more than a
/// thousand: a program that asks wrongly all the time must not stop everybody else's. Only an ACK is dropped all the same,
/// since the agent is to be shown the right form.
fn refused_at_once(asked: &Asked) -> Option<Seen<ResultFile>> {
    let read = request::read(&asked.bytes);
    let refused = read.request.err().filter(|_| read.malformed.is_none())?;
    let (request_id, request_sha256) = (asked.id.clone(), asked.sha256.clone());
    let answer = Answer { request_id, kind: read.kind, request_sha256, reply: Reply::Refused(refused) };
    Some(answer.to_json(&Clock::new().now()).into())
}

/// A request that was dropped stays on its way, whatever becomes of us.
fn unanswered(id: &RequestId, why: &str) -> Problem {
    Problem::new(504, "no_answer", format!("{why}. The request lies in the spool and may still be carried out"))
        .hint(format!("Ask for its answer later: GET /api/requests/{id}"))
        .request(id)
}

/// Drops it as soon as no other of the same name waits there.
async fn drop_into_spool(app: &Arc<App>, asked: &Asked, until: Instant) -> Result<(), Problem> {
    loop {
        let (home, id, bytes) = (app.home.clone(), asked.id.clone(), asked.bytes.clone());
        let dropped = tokio::task::spawn_blocking(move || spool::client::drop_request(home.root(), &id, &bytes)).await;
        match dropped {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) if error.kind() == spool::ErrorKind::Taken && until > Instant::now() => {
                // It may be this very one, asked for at the same time.
                if ours(app, asked)?.is_some() {
                    return Ok(());
                }
                sleep(TAKEN_EVERY).await;
            }
            Ok(Err(error)) if error.kind() == spool::ErrorKind::Taken => {
                let message = "A request of this id waits in the spool and has not been taken. Nothing was dropped";
                return Err(Problem::new(409, "taken", message)
                    .hint("If it is there for long, rejected/ may be full: look at the sidecar's log"));
            }
            Ok(Err(error)) => return Err(CliError::from(error).into()),
            Err(error) => return Err(Problem::new(503, "stopping", format!("Nothing was dropped: {error}"))),
        }
    }
}

/// The answer to these very bytes. Under an id that was used for others, it lies beside the first one's.
fn ours(app: &App, asked: &Asked) -> Result<Option<Seen<ResultFile>>, Problem> {
    let Some(first) = answer(app, &asked.id)? else {
        // The first one's answer may have been cleared away; what the sidecar still knows of it lies beside.
        let Ok(beside) = format!("{}.reused", asked.id).parse() else { return Ok(None) };
        let is_ours = |answer: &Seen<ResultFile>| answer.request_sha256 == asked.sha256;
        return Ok(answer(app, &beside)?.filter(is_ours).filter(|_| asked.is_named));
    };
    if !asked.is_named || first.request_sha256 == asked.sha256 {
        return Ok(Some(first));
    }
    // Only one answer to other bytes lies beside the first one's, and others may ask for it at the same time, so it is
    // made here: whatever becomes of what was dropped, it is refused.
    let refused = Refused::id_reused();
    let (request_id, request_sha256) = (asked.id.clone(), asked.sha256.clone());
    let kind = request::read(&asked.bytes).kind;
    let answer = Answer { request_id, kind, request_sha256, reply: Reply::Refused(refused) };
    Ok(Some(answer.to_json(&Clock::new().now()).into()))
}

fn answer(app: &App, id: &RequestId) -> Result<Option<Seen<ResultFile>>, Problem> {
    Ok(client::answer(&app.home, id)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_with_two_names_has_none() {
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
    async fn a_body_that_breaks_off_is_told_from_one_that_is_too_large() {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, "application/json".parse().expect("a value"));
        let largest = usize::try_from(MAX_INPUT_BYTES).expect("it fits");
        let broken = Body::new(Broken);
        let refused = |body| async { read(&headers, body).await.map(|_| ()).map_err(|problem| problem.code) };
        assert_eq!(refused(broken).await, Err("bad_request".to_owned()));
        assert_eq!(refused(Body::from(vec![b' '; largest + 1])).await, Err("too_large".to_owned()));
        assert_eq!(refused(Body::from(vec![b' '; largest])).await, Ok(()));
    }

    /// A body whose other end has gone.
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
    fn a_handoff_is_what_was_sent_and_what_the_address_says() {
        let of = |body: &str| handoff_of("a\"b", body.as_bytes()).map(|bytes| String::from_utf8(bytes).expect("text"));
        let start = "{\"v\":1,\"kind\":\"handoff\",\"agent_id\":\"a\\\"b\"";
        assert_eq!(of(" { }").ok(), Some(format!("{start} }}")));
        assert_eq!(of("{\"reason\":1,\"reason\":2}").ok(), Some(format!("{start},\"reason\":1,\"reason\":2}}")));
        for wrong in ["", "[]", "{", "{\"agent_id\":\"x\"}", "{\"v\":1}", "{\"kind\":\"handoff\"}"] {
            assert_eq!(of(wrong).map_err(|problem| problem.code), Err("bad_request".to_owned()), "{wrong}");
        }
    }
}
