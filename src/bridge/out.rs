//! Requests of this host to others, as files: what was dropped, what is on its way, and the answers.

use super::folder::FleetFolder;
use super::settings::{FleetSettings, parse_ttl};
use crate::cli::error::CliError;
use crate::contract::answer::RefusedView;
use crate::contract::fleet::{FleetPart, FleetResultFile};
use crate::contract::{self, ResultFile};
use crate::core::host::{FleetId, HomeId, HostName};
use crate::core::id::is_file_name;
use crate::core::text::sha256;
use crate::core::time::Now;
use crate::files::Grade;
use crate::fleet::letter::MOST_PARTS;
use crate::fleet::rights::may_be_asked;
use crate::fleet::{LetterPart, MemberList, Moment, TakenRequest};
use crate::spool::MAX_INPUT_BYTES;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::path::Path;

/// The most that a part may hold, in bytes.
const MOST_PART: u64 = 2 << 20;
/// The most that a dropped file may hold, in bytes.
const MOST_DROPPED: u64 = 2 << 20;
/// The most that the name of a kind may hold, in bytes.
const MOST_KIND: usize = 64;
/// The name of the part that is the request or the result itself.
pub(super) const MAIN_PART: &str = "request.json";

/// `fleet/out/<id>.json`: a request that was taken and not answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OutFile {
    v: u8,
    /// The host that is asked.
    pub(super) to: HostName,
    /// Its home.
    pub(super) to_home: HomeId,
    /// The request's kind.
    pub(super) kind: String,
    /// The request's bytes.
    pub(super) request: String,
    /// How old it may become, in milliseconds.
    pub(super) ttl_ms: u64,
    /// When it was taken, by the wall clock.
    pub(super) sent_at: String,
    /// When it was taken, by all clocks of this machine.
    taken_at: Moment,
    /// A publishing of it has begun.
    pub(super) was_begun: bool,
    /// The names of its parts, whose copies lie in `out/<id>/`.
    pub(super) parts: Vec<String>,
}

/// `fleet/requests/<id>.json`, with the request's own bytes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dropped {
    v: u8,
    to: String,
    request: Box<RawValue>,
    #[serde(default)]
    ttl: Option<String>,
    #[serde(default)]
    parts: Vec<FleetPart>,
}

/// Why a request gets its answer from this host itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FleetRefused {
    pub(super) status: u16,
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl FleetRefused {
    pub(super) fn new(status: u16, code: &'static str, message: impl Into<String>) -> FleetRefused {
        FleetRefused { status, code, message: message.into(), hint: None }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> FleetRefused {
        FleetRefused { hint: Some(hint.into()), ..self }
    }

    /// As the answer to a request. `request`: its bytes.
    pub(super) fn result(&self, id: &str, kind: Option<&str>, request: &[u8], at: &str) -> ResultFile {
        let FleetRefused { status, code, message, hint } = self.clone();
        ResultFile {
            v: 1,
            request_id: id.to_owned(),
            kind: kind.map(str::to_owned),
            status,
            ok: false,
            result: None,
            error: Some(RefusedView { code: code.to_owned(), message, hint, ..RefusedView::default() }),
            at: at.to_owned(),
            request_sha256: sha256(request),
        }
    }
}

/// The answer to a request that this bridge itself has carried out.
pub(super) fn granted(id: &str, kind: &str, request: &[u8], result: serde_json::Value, at: &str) -> ResultFile {
    ResultFile {
        v: 1,
        request_id: id.to_owned(),
        kind: Some(kind.to_owned()),
        status: 200,
        ok: true,
        result: Some(result),
        error: None,
        at: at.to_owned(),
        request_sha256: sha256(request),
    }
}

/// What became of a file in `requests/`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TakenFile {
    /// It is on its way from now on.
    Open(Box<TakenRequest>),
    /// It was on its way already, or was answered: the same id, and the same bytes.
    Known,
    /// It got its answer from this host.
    Answered(FleetRefused),
    /// It lies in `rejected/`: its name is not an id, or the id belongs to another request.
    Rejected,
}

/// Takes a file from `requests/`.
///
/// # Errors
/// Something can't be read or written; the file is as it was.
pub(super) fn take(
    folder: &FleetFolder,
    name: &str,
    (members, own, settings): (&MemberList, &HostName, &FleetSettings),
    (has_room, is_list_read): (bool, bool),
    now: &Now,
) -> Result<Option<(FleetId, TakenFile)>, CliError> {
    let Some(id) = name.strip_suffix(".json").and_then(|stem| stem.parse::<FleetId>().ok()) else {
        reject(folder, name, "bad_name", now)?;
        return Ok(None);
    };
    let bytes = match folder.read_small("requests", name, MOST_DROPPED) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        // A link, a pipe, a folder, or too much: nobody can answer it.
        Err(_) => {
            reject(folder, name, "unfit", now)?;
            return Ok(Some((id, TakenFile::Rejected)));
        }
    };
    let read = read(&bytes, own, settings);
    let request = read.as_ref().map_or(bytes.as_slice(), |(dropped, ..)| dropped.request.get().as_bytes());
    let to = read.as_ref().map_or("", |(dropped, ..)| dropped.to.as_str());
    if let Some(is_same) = is_known(folder, &id, to, request)? {
        if is_same {
            folder.remove("requests", name)?;
            return Ok(Some((id, TakenFile::Known)));
        }
        reject(folder, name, "id_reused", now)?;
        return Ok(Some((id, TakenFile::Rejected)));
    }
    // A host that was admitted a moment ago is in the list that is still to be read.
    if !is_list_read && to.parse::<HostName>().is_ok_and(|name| members.find(&name).is_none()) {
        return Ok(None);
    }
    let opened = read.and_then(|read| open(folder, &id, read, members, has_room, now));
    let taken = match opened {
        Ok(taken) => TakenFile::Open(Box::new(taken)),
        Err(refused) => {
            let (kind, to) = kind_and_host(&bytes);
            let result = refused.result(id.as_str(), kind.as_deref(), &inner(&bytes), &now.rfc3339());
            answer(folder, &id, &to, result)?;
            TakenFile::Answered(refused)
        }
    };
    folder.remove("requests", name)?;
    Ok(Some((id, taken)))
}

/// Reads and checks what needs no other file.
fn read(bytes: &[u8], own: &HostName, settings: &FleetSettings) -> Result<(Dropped, String, u64), FleetRefused> {
    let bad = |message: String| FleetRefused::new(400, "bad_request", message);
    let dropped: Dropped =
        serde_json::from_slice(bytes).map_err(|error| bad(format!("The file is wrong: {error}.")))?;
    if dropped.v != 1 {
        return Err(bad("The file's v must be 1.".to_owned()));
    }
    if dropped.to == own.as_str() {
        return Err(bad(format!("{own} is this host: put the request into its own spool.")));
    }
    let kind = kind_of(dropped.request.get().as_bytes())
        .ok_or_else(|| bad("The request must be an object with a kind.".to_owned()))?;
    if !may_be_asked(&kind) {
        let message = format!("A request of the kind {kind} can't be asked of another host.");
        let hint = format!("Run the command there: ssh {} tasuki …", dropped.to);
        return Err(FleetRefused::new(400, "not_from_elsewhere", message).hint(hint));
    }
    let ttl = match &dropped.ttl {
        Some(text) => parse_ttl(text).map_err(|error| bad(format!("ttl: {error}.")))?,
        None => settings.ttl.default,
    };
    let names: std::collections::BTreeSet<&str> = dropped.parts.iter().map(|part| part.name.as_str()).collect();
    let are_fine = names.len() == dropped.parts.len() && !names.contains(MAIN_PART);
    if dropped.parts.len() >= MOST_PARTS || !are_fine || !names.iter().all(|name| is_file_name(name)) {
        let message = format!("parts: at most {} files, each with a plain name of its own.", MOST_PARTS - 1);
        return Err(bad(message));
    }
    Ok((dropped, kind, u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)))
}

/// Whether a request of this id is on its way or was answered, and whether it is the same.
fn is_known(folder: &FleetFolder, id: &FleetId, to: &str, request: &[u8]) -> Result<Option<bool>, CliError> {
    let name = format!("{id}.json");
    if let Some(out) = load(folder, id)? {
        return Ok(Some(out.request.as_bytes() == request && out.to.as_str() == to));
    }
    let Some(bytes) = folder.read("results", &name)? else { return Ok(None) };
    let answered: Option<FleetResultFile> = contract::read(&bytes).ok().flatten();
    Ok(Some(answered.is_some_and(|file| file.result.request_sha256 == sha256(request) && file.host == to)))
}

/// Writes `out/<id>.json`, with copies of its parts.
fn open(
    folder: &FleetFolder,
    id: &FleetId,
    (dropped, kind, ttl_ms): (Dropped, String, u64),
    members: &MemberList,
    has_room: bool,
    now: &Now,
) -> Result<TakenRequest, FleetRefused> {
    let to = dropped.to.parse::<HostName>().ok().and_then(|name| members.find(&name)).ok_or_else(|| {
        FleetRefused::new(404, "no_host", format!("{:?} is not a host of this fleet.", dropped.to))
            .hint("The hosts of the fleet: tasuki fleet hosts")
    })?;
    if !has_room {
        return Err(FleetRefused::new(
            429,
            "too_many",
            "1,000 requests to other hosts wait for their answers already.",
        ));
    }
    let unwritten = |error: CliError| FleetRefused::new(503, "not_sent", format!("The request was not taken: {error}"));
    for part in &dropped.parts {
        let bytes = part_bytes(part)?;
        folder.make("out", id.as_str()).map_err(unwritten)?;
        folder.write(&format!("out/{id}"), &part.name, &bytes, Grade::Durable).map_err(unwritten)?;
    }
    let out = OutFile {
        v: 1,
        to: to.name.clone(),
        to_home: to.home_id,
        kind,
        request: dropped.request.get().to_owned(),
        ttl_ms,
        sent_at: now.rfc3339(),
        taken_at: moment(now),
        was_begun: false,
        parts: dropped.parts.into_iter().map(|part| part.name).collect(),
    };
    save(folder, id, &out).map_err(unwritten)?;
    Ok(out.taken(now))
}

fn part_bytes(part: &FleetPart) -> Result<Vec<u8>, FleetRefused> {
    let (path, bad) = (Path::new(&part.path), |why: String| FleetRefused::new(400, "bad_request", why));
    if !path.is_absolute() {
        return Err(bad(format!("The path {} of a part must be absolute.", part.path)));
    }
    let read = crate::cli::view::read_bytes(path, MOST_PART);
    read.map_err(|error| bad(error.message))?.ok_or_else(|| bad(format!("{} does not exist.", part.path)))
}

impl OutFile {
    /// As the machine takes it.
    pub(super) fn taken(&self, now: &Now) -> TakenRequest {
        let (to, to_home, age_ms) = (self.to.clone(), self.to_home, self.taken_at.age_ms(&moment(now)));
        TakenRequest { to, to_home, age_ms, ttl_ms: self.ttl_ms, was_begun: self.was_begun }
    }
}

fn moment(now: &Now) -> Moment {
    Moment { boot: format!("{:016x}", now.boot), boot_ms: now.boot_ms, wall_ms: now.wall_ms }
}

/// A request that is on its way; none if there is no such.
///
/// # Errors
/// It can't be read.
pub(super) fn load(folder: &FleetFolder, id: &FleetId) -> Result<Option<OutFile>, CliError> {
    let Some(bytes) = folder.read("out", &format!("{id}.json"))? else { return Ok(None) };
    let path = folder.path("out", &format!("{id}.json"));
    let broken = |error| CliError::refused("not_json", format!("{} can't be read: {error}.", path.display()));
    serde_json::from_slice(&bytes).map(Some).map_err(broken)
}

/// Writes it again.
///
/// # Errors
/// The system's.
pub(super) fn save(folder: &FleetFolder, id: &FleetId, out: &OutFile) -> Result<(), CliError> {
    folder.write("out", &format!("{id}.json"), &serde_json::to_vec(out).expect("a plain value"), Grade::Durable)
}

/// The parts of a request's letter: the request itself, then its attachments.
///
/// # Errors
/// A copy can't be read.
pub(super) fn parts(folder: &FleetFolder, id: &FleetId, out: &OutFile) -> Result<Vec<LetterPart>, CliError> {
    let mut parts = vec![LetterPart { name: MAIN_PART.to_owned(), bytes: out.request.clone().into_bytes() }];
    for name in &out.parts {
        let bytes = folder.read(&format!("out/{id}"), name)?.unwrap_or_default();
        parts.push(LetterPart { name: name.clone(), bytes });
    }
    Ok(parts)
}

/// Writes the answer to a request and forgets the request. An answer that is there already stays.
///
/// # Errors
/// The system's; then the request stays on its way.
pub(super) fn answer(folder: &FleetFolder, id: &FleetId, host: &str, result: ResultFile) -> Result<(), CliError> {
    let file = FleetResultFile { host: host.to_owned(), result: ResultFile { request_id: id.to_string(), ..result } };
    folder.create("results", &format!("{id}.json"), contract::text(&file).as_bytes())?;
    forget(folder, id)
}

/// Forgets a request that is answered.
///
/// # Errors
/// The system's.
pub(super) fn forget(folder: &FleetFolder, id: &FleetId) -> Result<(), CliError> {
    folder.remove("out", &format!("{id}.json"))?;
    // A folder of parts that is left behind by a failure is removed by the next sweep.
    let _ = std::fs::remove_dir_all(folder.path("out", id.as_str()));
    Ok(())
}

/// Whether this host has answered a request of this id itself, so that a result may come late.
pub(super) fn may_come_late(folder: &FleetFolder, id: &FleetId) -> bool {
    folder.changed_ms("results", &format!("{id}.json")).is_some()
        && folder.changed_ms("results", &format!("{id}.late.json")).is_none()
}

/// A result that has come after this host had given up: it is kept beside the answer.
///
/// # Errors
/// The system's.
pub(super) fn keep_late(folder: &FleetFolder, id: &FleetId, host: &str, result: ResultFile) -> Result<(), CliError> {
    let Some(bytes) = folder.read("results", &format!("{id}.json"))? else { return Ok(()) };
    let given: Option<FleetResultFile> = contract::read(&bytes).ok().flatten();
    let was_given_up = given.is_some_and(|file| file.host == host && file.result.status == 504);
    if was_given_up {
        let file =
            FleetResultFile { host: host.to_owned(), result: ResultFile { request_id: id.to_string(), ..result } };
        folder.create("results", &format!("{id}.late.json"), contract::text(&file).as_bytes())?;
    }
    Ok(())
}

/// Puts a file aside that can't be taken, with the reason beside it.
pub(super) fn reject(folder: &FleetFolder, name: &str, code: &str, now: &Now) -> Result<(), CliError> {
    let aside = format!("{}-{}", now.wall_ms, uuid::Uuid::new_v4().simple());
    let why = serde_json::json!({"v": 1, "at": now.rfc3339(), "code": code, "name": crate::core::text::sanitise(name)});
    folder.write("rejected", &format!("{aside}.why.json"), why.to_string().as_bytes(), Grade::Durable)?;
    let (from, to) = (folder.path("requests", name), folder.path("rejected", &format!("{aside}.json")));
    std::fs::rename(&from, to).map_err(|error| CliError::file("Can't put aside", &from, &error))
}

/// The kind of a request, if it has one. A word that is longer than any kind is none: it stands in answers, in the audit
/// and in messages.
pub(super) fn kind_of(request: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
    }
    let readable = Some(request).filter(|request| request.len() as u64 <= MAX_INPUT_BYTES)?;
    serde_json::from_slice::<Kind>(readable).ok().map(|read| read.kind).filter(|kind| kind.len() <= MOST_KIND)
}

/// The kind and host of a dropped file, as far as they can be read.
fn kind_and_host(bytes: &[u8]) -> (Option<String>, String) {
    let value: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
    let host = value["to"].as_str().filter(|to| to.len() <= 32).unwrap_or_default().to_owned();
    (value["request"]["kind"].as_str().map(str::to_owned), host)
}

/// The request's own bytes in a dropped file, or the whole file where it can't be read.
fn inner(bytes: &[u8]) -> Vec<u8> {
    #[derive(Deserialize)]
    struct Inner {
        request: Box<RawValue>,
    }
    serde_json::from_slice::<Inner>(bytes)
        .map_or_else(|_| bytes.to_owned(), |read| read.request.get().as_bytes().to_owned())
}
