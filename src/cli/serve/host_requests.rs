//! Requests to other hosts over HTTP: the server writes the body into a file for this host's bridge, and waits for the
//! other host's answer. As for requests to this host, an `Idempotency-Key` becomes the request's id.

use super::app::ServeApp;
use super::ask::{id_of, read};
use super::hosts::{no_host, problem};
use super::problem::{Problem, json, status_of};
use super::views::Id;
use crate::cli::error::CliError;
use crate::cli::hosts::{self, BridgePulse};
use crate::cli::remote::request::answer;
use crate::cli::view::{self, ViewFile, read_bytes, said};
use crate::clock::Clock;
use crate::config::Home;
use crate::contract::{FleetRequestFile, FleetResultFile};
use crate::core::host::{FleetId, HostName};
use crate::core::id::RequestId;
use crate::core::reply::{Answer, Refused, Reply};
use crate::core::request::{self, KINDS};
use crate::core::text::sha256;
use crate::spool::{self, client};
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often the answer is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often the bridge is checked meanwhile.
const BRIDGE_EVERY: Duration = Duration::from_secs(1);
/// The largest file of a request or an answer that is read, in bytes.
const LARGEST: u64 = 2 << 20;

/// A file of a request that has no answer yet, as clients and the bridge write it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WaitingFile {
    to: String,
}

/// A request to another host.
struct HostRequest {
    id: FleetId,
    /// The caller has chosen the id, and may have sent the request before.
    is_named: bool,
    to: HostName,
    /// The content of the file for the bridge.
    bytes: Vec<u8>,
    /// SHA-256 of the request itself, as the other host gets it.
    sha256: String,
    kind: Option<String>,
    /// The refusal, if the request is malformed.
    refused: Option<Refused>,
}

/// `POST /api/hosts/<name>/requests`: any kind. Answers with the whole result of the other host, and its status.
pub(super) async fn ask(State(app): State<Arc<ServeApp>>, host: Id, headers: HeaderMap, body: Body) -> Response<Body> {
    let asked = async {
        let bytes = read(&headers, body).await?;
        let (id, is_named) = id_of::<FleetId>(&headers)?;
        let to = host.ok().and_then(|Path(name)| name.parse().ok()).ok_or_else(no_host)?;
        let asked = Arc::new(HostRequest::new(id, is_named, to, &bytes)?);
        carry(&app, asked).await
    };
    match asked.await {
        Ok(answer) => json(status_of(&answer.result), &answer.json()),
        Err(problem) => problem.into_response(),
    }
}

/// `GET /api/hosts/<name>/requests/<id>`: the answer to a request to another host that was sent before.
pub(super) async fn result(
    State(app): State<Arc<ServeApp>>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Response<Body> {
    let unknown = || Problem::new(404, "no_request", "Request not found").into_response();
    let Ok(Path((host, id))) = path else { return unknown() };
    let (Ok(host), Ok(id)) = (host.parse::<HostName>(), id.parse::<FleetId>()) else { return unknown() };
    match off(move || known(&app.home, &host, &id)).await {
        Ok(Some(found)) => json(200, &found.json()),
        Ok(None) => unknown(),
        Err(problem) => problem.into_response(),
    }
}

/// The answer to a request to this host; `None` if no such request is known.
fn known(home: &Home, host: &HostName, id: &FleetId) -> Result<Option<ViewFile<FleetResultFile>>, Problem> {
    if let Some(found) = answer(home, id)? {
        return Ok(Some(found).filter(|found| found.host == host.as_str()));
    }
    for folder in ["requests", "out"] {
        let path = home.fleet().join(folder).join(format!("{id}.json"));
        if view::read::<WaitingFile>(&path)?.is_some_and(|file| file.to == host.as_str()) {
            return Err(Problem::new(404, "no_answer", "The request has no answer yet").request(id));
        }
    }
    Ok(None)
}

impl HostRequest {
    fn new(id: FleetId, is_named: bool, to: HostName, body: &[u8]) -> Result<HostRequest, Problem> {
        let request: Map<String, Value> = serde_json::from_slice(body)
            .map_err(|error| Problem::bad(format!("The body is not a JSON object: {error}")))?;
        let read = request::read(body);
        // The other host may know kinds that this version does not.
        let is_known = read.kind.as_deref().is_some_and(|kind| KINDS.contains(&kind));
        let refused = read.request.err().filter(|_| is_known && read.malformed.is_none());
        let request = Value::Object(request);
        let sha256 = sha256(request.to_string().as_bytes());
        let file = FleetRequestFile { v: 1, to: to.to_string(), request, ..FleetRequestFile::default() };
        let bytes =
            serde_json::to_vec(&file).map_err(|error| Problem::bad(format!("The body can't be sent: {error}")))?;
        Ok(HostRequest { id, is_named, to, bytes, sha256, kind: read.kind, refused })
    }

    /// A refusal that this program decides itself, in the form of the other host's answer.
    fn refusal(&self, refused: Refused) -> Result<ViewFile<FleetResultFile>, Problem> {
        let request_id: RequestId = self.id.as_str().parse().map_err(|error| Problem::bad(format!("{error}")))?;
        let (kind, request_sha256) = (self.kind.clone(), self.sha256.clone());
        let answer = Answer { request_id, kind, request_sha256, reply: Reply::Refused(refused) };
        let mut answer = answer.to_json(&Clock::new().now());
        answer["host"] = self.to.as_str().into();
        answer["answered_here"] = true.into();
        Ok(answer.into())
    }

    /// The answer to this request, if there is one. If another request has used the same id, the bridge refuses this
    /// request, and puts the refusal beside the answer to the other one.
    fn answer(&self, home: &Home) -> Result<Option<ViewFile<FleetResultFile>>, Problem> {
        if let Some(found) = answer(home, &self.id)? {
            return self.judged(found).map(Some);
        }
        let beside = home.fleet().join("results").join(format!("{}.reused.json", self.id));
        let Some(bytes) = read_bytes(&beside, LARGEST)?.filter(|_| self.is_named) else { return Ok(None) };
        let refused = ViewFile::<FleetResultFile>::read(bytes).ok().flatten();
        Ok(refused.filter(|file| file.host == self.to.as_str() && file.result.request_sha256 == self.sha256))
    }

    /// The answer to return if `found` is stored under this request's id: `found` itself, or a refusal if `found`
    /// answers another request that has used the id.
    fn judged(&self, found: ViewFile<FleetResultFile>) -> Result<ViewFile<FleetResultFile>, Problem> {
        let of = said(found.result.request_sha256.as_str());
        let is_same =
            found.host == self.to.as_str() && of.is_none_or(|of| of == self.sha256 || of == sha256(&self.bytes));
        if is_same || !self.is_named { Ok(found) } else { self.refusal(Refused::id_reused()) }
    }
}

/// Gives a request to the bridge, unless it has an answer already, and waits for the answer.
async fn carry(app: &Arc<ServeApp>, asked: Arc<HostRequest>) -> Result<ViewFile<FleetResultFile>, Problem> {
    let until = Instant::now() + app.patience;
    let found = {
        let (app, asked) = (Arc::clone(app), Arc::clone(&asked));
        off(move || before(&app.home, &asked)).await?
    };
    if let Some(answer) = found {
        return Ok(answer);
    }
    submit(app, &asked, until).await?;
    let (mut checked, mut pulse) = (Instant::now(), BridgePulse::default());
    loop {
        let with_bridge = checked.elapsed() >= BRIDGE_EVERY;
        let found = {
            let (app, asked, mut seen) = (Arc::clone(app), Arc::clone(&asked), std::mem::take(&mut pulse));
            let look = move || Ok((asked.answer(&app.home)?, !with_bridge || seen.has_heartbeat(&app.home)?, seen));
            let (answer, has_heartbeat, seen) = off(look).await?;
            pulse = seen;
            (answer, has_heartbeat)
        };
        match found {
            (Some(answer), _) => return Ok(answer),
            (None, false) => return Err(unanswered(&asked, "This host's bridge no longer runs")),
            (None, true) if until <= Instant::now() => return Err(unanswered(&asked, "No answer came in time")),
            (None, true) => {}
        }
        if with_bridge {
            checked = Instant::now();
        }
        tokio::select! {
            () = app.stop.cancelled() => return Err(unanswered(&asked, "The server is stopping")),
            () = sleep(LOOK_EVERY) => {}
        }
    }
}

/// What is known before the request is sent: its answer, if it has one already, or a refusal if it can't be sent. Only
/// the bridge knows all members: it refuses the name of a host that is not among them.
fn before(home: &Home, asked: &HostRequest) -> Result<Option<ViewFile<FleetResultFile>>, Problem> {
    let own = hosts::own_name(home).and_then(|own| own.ok_or_else(hosts::no_fleet)).map_err(problem)?;
    if own == asked.to {
        return Err(Problem::new(400, "own_host", "This is the host itself. Nothing was sent")
            .hint("Send the request to POST /api/requests"));
    }
    if let Some(found) = asked.answer(home)? {
        return Ok(Some(found));
    }
    if !hosts::has_bridge(home)? {
        let message = "This host's bridge does not run, or reaches no server. Nothing was sent";
        return Err(Problem::new(503, "no_bridge", message).hint("Start it on this machine: tasuki fleet run"));
    }
    asked.refused.clone().map(|refused| asked.refusal(refused)).transpose()
}

/// Gives the request to the bridge as soon as no other request of the same id waits there.
async fn submit(app: &Arc<ServeApp>, asked: &Arc<HostRequest>, until: Instant) -> Result<(), Problem> {
    loop {
        let dropped = {
            let (app, asked) = (Arc::clone(app), Arc::clone(asked));
            off(move || drop_file(&app.home, &asked)).await?
        };
        if dropped {
            return Ok(());
        }
        if until <= Instant::now() {
            let message = "A request with this id is still waiting for the bridge. Nothing was sent";
            return Err(Problem::new(409, "taken", message).hint("Send it under another Idempotency-Key"));
        }
        sleep(LOOK_EVERY).await;
    }
}

/// Writes the file for the bridge, so that it survives a power cut. False if a file of another request has its name.
fn drop_file(home: &Home, asked: &HostRequest) -> Result<bool, Problem> {
    match client::submit_fleet_request(home.root(), &asked.id, &asked.bytes) {
        Ok(()) => Ok(true),
        // The same request, sent twice at once, is one request.
        Err(spool::Error::Taken { path }) => {
            Ok(read_bytes(&path, LARGEST)?.is_some_and(|waiting| waiting == asked.bytes))
        }
        Err(error) => Err(CliError::from(error).into()),
    }
}

/// The error for a request that the bridge has, and that has no answer yet.
fn unanswered(asked: &HostRequest, why: &str) -> Problem {
    let (to, id) = (&asked.to, &asked.id);
    Problem::new(
        504,
        "no_answer",
        format!("{why}. The request to {to} is with the bridge and may still be carried out"),
    )
    .hint(format!("Ask for the answer later: GET /api/hosts/{to}/requests/{id}"))
    .request(id)
}

/// Runs work that may wait for a disk on a thread where waiting blocks no other client.
async fn off<T: Send + 'static>(work: impl FnOnce() -> Result<T, Problem> + Send + 'static) -> Result<T, Problem> {
    let stopping = |error| Problem::new(503, "stopping", format!("Nothing more was done: {error}"));
    tokio::task::spawn_blocking(work).await.map_err(stopping)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(body: &Value, is_named: bool) -> HostRequest {
        let (id, to) = ("a".parse().expect("an id"), "box-1".parse().expect("a name"));
        HostRequest::new(id, is_named, to, body.to_string().as_bytes())
            .map_err(|problem| problem.code)
            .expect("a request")
    }

    #[test]
    fn the_bridge_gets_the_request_and_to_whom_it_is() {
        let cancel = json!({"v": 1, "kind": "handoff_cancel", "handoff_id": "h"});
        let file: Value = serde_json::from_slice(&asked(&cancel, false).bytes).expect("JSON");
        assert_eq!(file, json!({"v": 1, "to": "box-1", "request": cancel}));
        assert!(asked(&json!({"v": 1, "kind": "error_dismiss"}), false).refused.is_some(), "its id is missing");
        assert!(asked(&json!({"v": 1, "kind": "view", "of": "agents"}), false).refused.is_none(), "a kind of bridges");
    }

    #[test]
    fn a_request_is_known_under_the_host_that_it_is_for_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let home = Home::at(dir.path()).expect("a path");
        let id = |text: &str| text.parse::<FleetId>().expect("an id");
        let write = |below: &str, file: Value| {
            let path = home.fleet().join(below);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, file.to_string()).expect("written");
        };
        write("requests/dropped.json", json!({"v": 1, "to": "box-1", "request": {}}));
        write("out/taken.json", json!({"v": 1, "to": "box-1", "kind": "view", "sent_at": "", "parts": []}));
        write("results/answered.json", json!({"host": "box-1", "status": 200, "ok": true}));
        let ask = |host: &str, text: &str| {
            let found = known(&home, &host.parse().expect("a name"), &id(text));
            found.map(|found| found.is_some()).map_err(|problem| problem.code)
        };
        for waiting in ["dropped", "taken"] {
            assert_eq!(ask("box-1", waiting), Err("no_answer".to_owned()), "{waiting}");
            assert_eq!(ask("attic", waiting), Ok(false), "{waiting}");
        }
        assert_eq!((ask("box-1", "answered"), ask("attic", "answered")), (Ok(true), Ok(false)));
        assert_eq!(ask("box-1", "never"), Ok(false));
    }

    #[test]
    fn an_id_is_good_for_one_request_to_one_host() {
        let cancel = json!({"v": 1, "kind": "handoff_cancel", "handoff_id": "h"});
        let status = |is_named: bool, host: &str, sha256: &str| {
            let asked = asked(&cancel, is_named);
            let found = json!({"host": host, "status": 200, "ok": true, "request_sha256": sha256});
            asked.judged(found.into()).map(|answer| answer.result.status).map_err(|problem| problem.code)
        };
        let own = sha256(cancel.to_string().as_bytes());
        assert_eq!((status(true, "box-1", &own), status(true, "box-1", "")), (Ok(200), Ok(200)));
        assert_eq!((status(true, "attic", &own), status(true, "box-1", "ab")), (Ok(409), Ok(409)));
    }
}
