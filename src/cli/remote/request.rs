//! A request to another host: leaves it for the bridge so that it survives a power cut, waits for its one answer while
//! the bridge runs, and says what became of a request that got no answer.

use crate::cli::client::{Meanwhile, PULSE_EVERY, nap, read_answer, with_name};
use crate::cli::error::CliError;
use crate::cli::hosts::{self, BridgePulse};
use crate::cli::view::ViewFile;
use crate::config::Home;
use crate::contract::fleet::FleetPart;
use crate::contract::{FleetRequestFile, FleetResultFile};
use crate::core::host::{FleetId, HostName};
use crate::exit;
use crate::spool::{ErrorKind, MAX_INPUT_BYTES, client};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// The longest time for which a request stays valid.
const LONGEST_TTL: Duration = Duration::from_secs(7 * 24 * 3_600);

/// A request to another host.
#[derive(Debug)]
pub struct RemoteRequest<'a> {
    /// The host that is asked.
    pub host: &'a HostName,
    /// The kind of request, as in that host's spool.
    pub kind: &'a str,
    /// The fields of that kind.
    pub fields: Map<String, Value>,
    /// How long to wait for the answer.
    pub patience: Duration,
    /// How old the request may become before it is carried out; none for the bridge's own setting.
    pub ttl: Option<Duration>,
    /// Files that are sent with the request.
    pub parts: Vec<FleetPart>,
}

/// As [`ask`], for a request that is repeated often: it removes the file of the answer, which nobody needs later.
///
/// # Errors
/// As [`ask`].
pub fn look<T: DeserializeOwned + Default>(home: &Home, request: &RemoteRequest<'_>) -> Result<ViewFile<T>, CliError> {
    let (id, answer) = answered(home, request, &mut || Ok(()))?;
    let _ = std::fs::remove_file(home.fleet().join(format!("results/{id}.json")));
    read_answer(&answer.result).map_err(|error| from_host(error, &answer, request))
}

/// Leaves a request for the bridge and waits for its answer. Returns the answer's `result`.
///
/// # Errors
/// The other host's refusal, or the bridge's, with its code; 69 if no bridge runs; 75 if no answer came in time. The
/// last two say whether the request was withdrawn.
pub fn ask<T: DeserializeOwned + Default>(home: &Home, request: &RemoteRequest<'_>) -> Result<ViewFile<T>, CliError> {
    ask_meanwhile(home, request, &mut || Ok(()))
}

/// Like [`ask`], but calls `meanwhile` repeatedly while it waits.
///
/// # Errors
/// As [`ask`]; the error of `meanwhile`, which ends the wait.
pub fn ask_meanwhile<T: DeserializeOwned + Default>(
    home: &Home,
    request: &RemoteRequest<'_>,
    meanwhile: &mut Meanwhile<'_>,
) -> Result<ViewFile<T>, CliError> {
    let (_, answer) = answered(home, request, meanwhile)?;
    read_answer(&answer.result).map_err(|error| from_host(error, &answer, request))
}

/// Leaves a request for the bridge and waits for its answer.
fn answered(
    home: &Home,
    request: &RemoteRequest<'_>,
    meanwhile: &mut Meanwhile<'_>,
) -> Result<(FleetId, ViewFile<FleetResultFile>), CliError> {
    hosts::require_bridge_to_send(home)?;
    let mut body = request.fields.clone();
    body.insert("v".to_owned(), Value::from(1));
    body.insert("kind".to_owned(), Value::from(request.kind));
    let file = FleetRequestFile {
        v: 1,
        to: request.host.to_string(),
        request: Value::Object(body),
        ttl: request.ttl.map(|ttl| humantime::format_duration(ttl.min(LONGEST_TTL)).to_string()),
        parts: request.parts.clone(),
    };
    let bytes = json!(file).to_string().into_bytes();
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        let message = format!("The request has {} bytes; the limit is 1 MiB. Nothing was sent.", bytes.len());
        return Err(CliError::refused("too_large", message));
    }
    let name = format!("cli-{}", uuid::Uuid::now_v7());
    let id: FleetId = name.parse().map_err(|_| CliError::refused("bug", format!("{name} is not a request id.")))?;
    client::submit_fleet_request(home.root(), &id, &bytes).map_err(|error| match error.kind() {
        ErrorKind::NoSpool => CliError { code: "no_bridge".to_owned(), ..error.into() },
        _ => error.into(),
    })?;
    let answer = wait_for_answer(home, &id, request, meanwhile)?;
    Ok((id, answer))
}

/// A refusal with the name of what was not found, and of the host that refused. A refusal by this host's own bridge
/// stays as it is: the other host has said nothing.
fn from_host(error: CliError, answer: &FleetResultFile, request: &RemoteRequest<'_>) -> CliError {
    if answer.answered_here {
        return error;
    }
    let error = with_name(error, &request.fields);
    CliError { message: format!("On the host {}: {}", request.host, error.message), ..error }
}

/// The answer, once it exists.
///
/// # Errors
/// The answer exists but can't be read.
pub fn answer(home: &Home, id: &FleetId) -> Result<Option<ViewFile<FleetResultFile>>, CliError> {
    let Some(bytes) = client::read_fleet_result(home.root(), id)? else { return Ok(None) };
    ViewFile::read(bytes)
        .map_err(|error| CliError::refused("not_json", format!("fleet/results/{id}.json is not JSON: {error}.")))
}

/// Waits for the answer while the bridge runs.
fn wait_for_answer(
    home: &Home,
    id: &FleetId,
    request: &RemoteRequest<'_>,
    meanwhile: &mut Meanwhile<'_>,
) -> Result<ViewFile<FleetResultFile>, CliError> {
    let start = Instant::now();
    let (mut checked, mut pulse) = (start, BridgePulse::default());
    loop {
        match answer(home, id) {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => {}
            Err(unread) => return unanswered(home, id, request.host, unread),
        }
        if checked.elapsed() >= PULSE_EVERY {
            checked = Instant::now();
            if let Err(gone) = pulse.keep(home) {
                return unanswered(home, id, request.host, gone);
            }
        }
        if let Err(end) = meanwhile() {
            return unanswered(home, id, request.host, end);
        }
        if start.elapsed() >= request.patience {
            let within = humantime::format_duration(request.patience);
            let message = format!("No answer came from the host {} within {within}.", request.host);
            let late = CliError::new(exit::TRY_AGAIN, "no_answer", message);
            // The bridge may have reached no server meanwhile.
            let late = match hosts::require_bridge(home) {
                Ok(()) => late,
                Err(cut_off) => late.hint(cut_off.message),
            };
            return unanswered(home, id, request.host, late);
        }
        std::thread::sleep(nap(start.elapsed()));
    }
}

/// Withdraws an unanswered request if the bridge has not taken it, and says whether that succeeded.
fn unanswered(
    home: &Home,
    id: &FleetId,
    host: &HostName,
    error: CliError,
) -> Result<ViewFile<FleetResultFile>, CliError> {
    let taken_back = std::fs::remove_file(home.fleet().join(format!("requests/{id}.json"))).is_ok();
    if let Ok(Some(answer)) = answer(home, id) {
        return Ok(answer);
    }
    let answer = format!("fleet/results/{id}.json");
    let fate = if taken_back {
        format!("The request was withdrawn. If {answer} still appears, the bridge had already picked it up.")
    } else {
        format!("The bridge has taken the request, and {host} may still carry it out; the answer will be {answer}.")
    };
    Err(CliError { message: format!("{} {fate}", error.message), ..error })
}
