//! The files of requests to other hosts: `out/` has the requests that are on their way, `results/` the answers.
//! `dropped` reads the files in `requests/`.

use super::dropped::{self, DroppedBytes, IncompleteFiles, RequestToSend, inner, kind_and_host};
use super::folder::FleetFolder;
use super::refused::{FleetRefused, MAIN_PART};
use super::rejected::reject;
use super::settings::FleetSettings;
use crate::cli::error::CliError;
use crate::contract::fleet::{FleetPart, FleetResultFile};
use crate::contract::{self, ResultFile};
use crate::core::host::{FleetId, HomeId, HostName};
use crate::core::text::sha256;
use crate::core::time::Now;
use crate::files::Grade;
use crate::fleet::{LetterPart, MemberList, Moment, TakenRequest};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The largest part of a request, in bytes.
const MOST_PART: u64 = 2 << 20;

/// `fleet/out/<id>.json`: a request that was taken and not answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OutFile {
    v: u8,
    /// The host that is asked.
    pub(super) to: HostName,
    /// The home of that host.
    pub(super) to_home: HomeId,
    /// The request's kind.
    pub(super) kind: String,
    /// The request's bytes.
    pub(super) request: String,
    /// How old the request may become, in milliseconds.
    pub(super) ttl_ms: u64,
    /// When it was taken from `requests/`, by the wall clock.
    pub(super) sent_at: String,
    /// When it was taken, by all clocks of this machine.
    taken_at: Moment,
    /// Publishing it has begun, so the other host may have got it.
    pub(super) was_begun: bool,
    /// The names of its parts, whose copies lie in `out/<id>/`.
    pub(super) parts: Vec<String>,
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
    /// The request is on its way from now on.
    Open(Box<TakenRequest>),
    /// The same request, of the same id, is on its way already, or was answered.
    Known,
    /// This host itself has answered it.
    Answered(FleetRefused),
}

/// Takes a file from `requests/`. None if the file must wait, or if its name is not an id: then it is put into
/// `rejected/` and gets no answer.
///
/// # Errors
/// Something can't be read or written; the file is as it was.
pub(super) fn take(
    folder: &FleetFolder,
    name: &str,
    (members, own, settings): (&MemberList, &HostName, &FleetSettings),
    (has_room, is_list_read): (bool, bool),
    (incomplete, now): (&mut IncompleteFiles, &Now),
) -> Result<Option<(FleetId, TakenFile)>, CliError> {
    let Some(id) = name.strip_suffix(".json").and_then(|stem| stem.parse::<FleetId>().ok()) else {
        let what = "The name is not <id>.json; an id is 1 to 64 of A-Z a-z 0-9 _ -.";
        reject(folder, name, &FleetRefused::new(400, "bad_name", what), now)?;
        return Ok(None);
    };
    let (bytes, is_object) = match dropped::look(folder, name, incomplete, now)? {
        DroppedBytes::NotYet => return Ok(None),
        DroppedBytes::Read { bytes, is_object } => (bytes, is_object),
        DroppedBytes::Unfit { code, refused } => {
            return take_unfit(folder, &id, name, (code, refused), now).map(|taken| Some((id, taken)));
        }
    };
    let read =
        dropped::read(&bytes, own, settings).and_then(|read| is_object.then_some(read).ok_or_else(not_an_object));
    let request = read.as_ref().map_or_else(|_| inner(&bytes), |read| read.dropped.request.get().as_bytes().to_owned());
    let (kind, to) = kind_and_host(&bytes);
    match known(folder, &id, &to, &sha256(&request))? {
        KnownId::Free => {}
        KnownId::Same => {
            folder.remove("requests", name)?;
            return Ok(Some((id, TakenFile::Known)));
        }
        KnownId::Another => {
            let result = id_reused().result(id.as_str(), kind.as_deref(), &request, &now.rfc3339());
            return refuse_reuse(folder, &id, name, (&to, result), now).map(|taken| Some((id, taken)));
        }
    }
    // The host may have been admitted a moment ago: until the list of members was read from the server, the file waits.
    if read.is_ok() && !is_list_read && to.parse::<HostName>().is_ok_and(|name| members.find(&name).is_none()) {
        return Ok(None);
    }
    let opened = read.and_then(|read| open(folder, &id, read, members, has_room, now));
    let taken = match opened {
        Ok(taken) => {
            folder.remove("requests", name)?;
            TakenFile::Open(Box::new(taken))
        }
        Err(refused) => {
            let result = refused.result(id.as_str(), kind.as_deref(), &request, &now.rfc3339());
            answer_here(folder, &id, &to, result)?;
            match (is_object, refused.is_passing()) {
                (true, true) => folder.remove("requests", name)?,
                (true, false) => reject(folder, name, &refused, now)?,
                (false, _) => reject(folder, name, &FleetRefused { code: "not_json", ..refused.clone() }, now)?,
            }
            TakenFile::Answered(refused)
        }
    };
    Ok(Some((id, taken)))
}

fn not_an_object() -> FleetRefused {
    FleetRefused::new(400, "bad_request", "The file must be one JSON object.")
}

/// Answers a file that can't be read, and puts it into `rejected/`.
fn take_unfit(
    folder: &FleetFolder,
    id: &FleetId,
    name: &str,
    (code, refused): (&'static str, FleetRefused),
    now: &Now,
) -> Result<TakenFile, CliError> {
    let unread = |refused: &FleetRefused| {
        let result = refused.result(id.as_str(), None, b"", &now.rfc3339());
        ResultFile { request_sha256: String::new(), ..result }
    };
    // If the files under this id can't be read either, the id counts as that of another request.
    match known(folder, id, "", "").unwrap_or(KnownId::Another) {
        KnownId::Another => return refuse_reuse(folder, id, name, ("", unread(&id_reused())), now),
        KnownId::Same => {
            reject(folder, name, &FleetRefused { code, ..refused }, now)?;
            return Ok(TakenFile::Known);
        }
        KnownId::Free => answer_here(folder, id, "", unread(&refused))?,
    }
    reject(folder, name, &FleetRefused { code, ..refused.clone() }, now)?;
    Ok(TakenFile::Answered(refused))
}

fn id_reused() -> FleetRefused {
    FleetRefused::new(409, "id_reused", "This host has asked for something else under this id before.")
        .hint("Nothing was done. Ask again under an id that was never used.")
}

/// Refuses a file whose id belongs to another request. The answer of that request stays; the refusal gets a file of its
/// own beside it.
fn refuse_reuse(
    folder: &FleetFolder,
    id: &FleetId,
    name: &str,
    (host, result): (&str, ResultFile),
    now: &Now,
) -> Result<TakenFile, CliError> {
    let file = FleetResultFile { host: host.to_owned(), answered_here: true, result };
    folder.write("results", &format!("{id}.reused.json"), contract::text(&file).as_bytes(), Grade::Durable)?;
    reject(folder, name, &id_reused(), now)?;
    Ok(TakenFile::Answered(id_reused()))
}

/// Whether an id is in use.
enum KnownId {
    /// No request has it.
    Free,
    /// The same request has it, to the same host: it is on its way, or was answered.
    Same,
    /// Another request has it.
    Another,
}

fn known(folder: &FleetFolder, id: &FleetId, to: &str, request_sha256: &str) -> Result<KnownId, CliError> {
    let is_same = if let Some(out) = load(folder, id)? {
        sha256(out.request.as_bytes()) == request_sha256 && out.to.as_str() == to
    } else {
        let Some(bytes) = folder.read("results", &format!("{id}.json"))? else { return Ok(KnownId::Free) };
        let answered: Option<FleetResultFile> = contract::read(&bytes).ok().flatten();
        answered.is_some_and(|file| file.result.request_sha256 == request_sha256 && file.host == to)
    };
    Ok(if is_same { KnownId::Same } else { KnownId::Another })
}

/// Writes `out/<id>.json`, with copies of its parts.
fn open(
    folder: &FleetFolder,
    id: &FleetId,
    RequestToSend { dropped, kind, ttl_ms }: RequestToSend,
    members: &MemberList,
    has_room: bool,
    now: &Now,
) -> Result<TakenRequest, FleetRefused> {
    let to = dropped.to.parse::<HostName>().ok().and_then(|name| members.find(&name)).ok_or_else(|| {
        FleetRefused::new(404, "no_host", format!("{:?} is not a host of this fleet.", dropped.to))
            .hint("The hosts of the fleet: tasuki fleet hosts")
            .field("to")
    })?;
    if !has_room {
        return Err(FleetRefused::new(
            429,
            "too_many",
            "1,000 requests of this host to others wait for their answers already. Nothing was sent.",
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
    let bad = |why: String| FleetRefused::new(400, "bad_request", why).field("parts");
    let path = Path::new(&part.path);
    if !path.is_absolute() {
        return Err(bad(format!("The path {} of a part must be absolute.", part.path)));
    }
    let read = crate::cli::view::read_bytes(path, MOST_PART);
    let refused = |error: CliError| match error.code.as_str() {
        "too_large" => FleetRefused::new(413, "too_large", error.message).field("parts"),
        _ => bad(error.message),
    };
    read.map_err(refused)?.ok_or_else(|| bad(format!("{} does not exist.", part.path)))
}

impl OutFile {
    /// The request as [`crate::fleet::asking`] takes it.
    pub(super) fn taken(&self, now: &Now) -> TakenRequest {
        let (to, to_home, age_ms) = (self.to.clone(), self.to_home, self.taken_at.age_ms(&moment(now)));
        TakenRequest { to, to_home, age_ms, ttl_ms: self.ttl_ms, was_begun: self.was_begun }
    }
}

fn moment(now: &Now) -> Moment {
    Moment { boot: format!("{:016x}", now.boot), boot_ms: now.boot_ms, wall_ms: now.wall_ms }
}

/// The file of a request that is on its way; none if there is none of this id.
///
/// # Errors
/// It can't be read.
pub(super) fn load(folder: &FleetFolder, id: &FleetId) -> Result<Option<OutFile>, CliError> {
    let Some(bytes) = folder.read("out", &format!("{id}.json"))? else { return Ok(None) };
    let path = folder.path("out", &format!("{id}.json"));
    let broken = |error| CliError::refused("not_json", format!("{} can't be read: {error}.", path.display()));
    serde_json::from_slice(&bytes).map(Some).map_err(broken)
}

/// Writes the file of a request.
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

/// Writes the answer of another host to a request and removes the request from `out/`. An answer that is there already
/// stays.
///
/// # Errors
/// The system's; then the request stays on its way.
pub(super) fn answer(folder: &FleetFolder, id: &FleetId, host: &str, result: ResultFile) -> Result<(), CliError> {
    write_answer(folder, id, &answer_of(id, host, result))
}

/// As [`answer`], if this host itself answers its request to another one.
///
/// # Errors
/// As [`answer`].
pub(super) fn answer_here(folder: &FleetFolder, id: &FleetId, host: &str, result: ResultFile) -> Result<(), CliError> {
    write_answer(folder, id, &FleetResultFile { answered_here: true, ..answer_of(id, host, result) })
}

/// The file of another host's answer.
fn answer_of(id: &FleetId, host: &str, result: ResultFile) -> FleetResultFile {
    let result = ResultFile { request_id: id.to_string(), ..result };
    FleetResultFile { host: host.to_owned(), answered_here: false, result }
}

fn write_answer(folder: &FleetFolder, id: &FleetId, file: &FleetResultFile) -> Result<(), CliError> {
    folder.create("results", &format!("{id}.json"), contract::text(file).as_bytes())?;
    forget(folder, id)
}

/// Removes a request that is answered from `out/`, with its parts.
///
/// # Errors
/// The system's.
pub(super) fn forget(folder: &FleetFolder, id: &FleetId) -> Result<(), CliError> {
    folder.remove("out", &format!("{id}.json"))?;
    // A folder of parts that is left behind by a failure is removed by the next sweep.
    let _ = std::fs::remove_dir_all(folder.path("out", id.as_str()));
    Ok(())
}

/// Whether a result may still be kept as a late one: the request has an answer and no late result. [`keep_late`] checks
/// whether this host had given it up.
pub(super) fn may_come_late(folder: &FleetFolder, id: &FleetId) -> bool {
    folder.changed_ms("results", &format!("{id}.json")).is_some()
        && folder.changed_ms("results", &format!("{id}.late.json")).is_none()
}

/// Keeps a result beside the answer, if this host had given the request up before the result came (504).
///
/// # Errors
/// The system's.
pub(super) fn keep_late(folder: &FleetFolder, id: &FleetId, host: &str, result: ResultFile) -> Result<(), CliError> {
    let Some(bytes) = folder.read("results", &format!("{id}.json"))? else { return Ok(()) };
    let given: Option<FleetResultFile> = contract::read(&bytes).ok().flatten();
    let was_given_up = given.is_some_and(|file| file.host == host && file.result.status == 504);
    if was_given_up {
        let file = answer_of(id, host, result);
        folder.create("results", &format!("{id}.late.json"), contract::text(&file).as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "out_tests.rs"]
mod tests;
