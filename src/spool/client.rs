//! For commands and hooks, the clients of the spool: submits requests and events, reads results, and says whether a
//! sidecar is running.

use super::dirs::check_mode;
use super::error::Error;
use super::lane::RESERVED_SUFFIX;
use super::twins::{is_refusal_of, is_twins_result};
use crate::contract::{self, SidecarView};
use crate::core::host::FleetId;
use crate::core::id::RequestId;
use crate::core::time::{Now, millis};
use crate::files::{self, Unfit};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

pub use crate::files::Grade;

/// When the last heartbeat is older than this, in milliseconds, the sidecar counts as gone. It writes a heartbeat every
/// 5 s.
const STALE_MS: i64 = 15_000;
/// The largest result that is read, in bytes.
const MAX_RESULT_BYTES: u64 = 64 * 1024 * 1024;
/// The largest `sidecar.json` that is read, in bytes.
const MAX_SIDECAR_BYTES: u64 = 1024 * 1024;

/// Whether a sidecar serves a home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SidecarPresence {
    Alive {
        pid: u32,
        /// When its last heartbeat was written, in milliseconds since 1970.
        heartbeat_ms: i64,
    },
    /// A sidecar has run here, but its last heartbeat is more than 15 s old, or more than 15 s in the future.
    Stale {
        pid: u32,
        /// How long ago its last heartbeat was written, in milliseconds; negative if the clock was set back since.
        age_ms: i64,
        /// When its last heartbeat was written, in milliseconds since 1970.
        heartbeat_ms: i64,
    },
    /// There is no heartbeat: no sidecar has run here yet, or the last one has ended properly and deleted it. Or the
    /// heartbeat can't be read ([`denied`] says whether that is so).
    None,
}

/// Puts a request into the spool. When this returns, the request survives a power cut.
///
/// # Errors
/// `NoSpool` if there is no spool, `Taken` if a request with that id is waiting, `NotAllowed` if other users can open
/// the spool.
pub fn submit_request(home: &Path, id: &RequestId, bytes: &[u8]) -> Result<(), Error> {
    submit_file(&home.join("spool"), "requests", &format!("{id}.json"), bytes, Grade::Durable)
}

/// Puts a request for another host into `fleet/requests`, where the bridge takes it. When this returns, the request
/// survives a power cut.
///
/// # Errors
/// As for [`submit_request`]; `NoSpool` if there is no such folder.
pub fn submit_fleet_request(home: &Path, id: &FleetId, bytes: &[u8]) -> Result<(), Error> {
    submit_file(&home.join("fleet"), "requests", &format!("{id}.json"), bytes, Grade::Durable)
}

/// Puts an event into the spool, under a name made by [`super::event_name`]. `Grade::Fast` is for hooks: an agent must
/// not wait for the disk.
///
/// # Errors
/// As for [`submit_request`].
pub fn submit_event(home: &Path, name: &str, bytes: &[u8], grade: Grade) -> Result<(), Error> {
    submit_file(&home.join("spool"), "events", name, bytes, grade)
}

/// The result of a request, if it exists by now.
///
/// # Errors
/// The result exists but can't be read.
pub fn read_result(home: &Path, id: &RequestId) -> Result<Option<Vec<u8>>, Error> {
    let results = home.join("spool/results");
    match read_answer(&results, id.as_str())? {
        // This result is for another id, which differs by case alone: the file system takes both names for one. This
        // id's own answer is the refusal beside it.
        Some(bytes) if is_twins_result(id.as_str(), &bytes) => {
            let beside = read_answer(&results, &format!("{id}{RESERVED_SUFFIX}"))?;
            Ok(beside.filter(|bytes| is_refusal_of(id.as_str(), bytes)))
        }
        found => Ok(found),
    }
}

/// The result of a request to another host, if it exists by now.
///
/// # Errors
/// The result exists but can't be read.
pub fn read_fleet_result(home: &Path, id: &FleetId) -> Result<Option<Vec<u8>>, Error> {
    read_answer(&home.join("fleet/results"), id.as_str())
}

fn read_answer(results: &Path, id: &str) -> Result<Option<Vec<u8>>, Error> {
    let path = results.join(format!("{id}.json"));
    let dir = match files::open_dir(results) {
        Ok(dir) => dir,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", path, error)),
    };
    match files::read_at(&dir, OsStr::new(&format!("{id}.json")), MAX_RESULT_BYTES) {
        Ok((bytes, _)) => Ok(Some(bytes)),
        Err(Unfit::Missing | Unfit::Changing) => Ok(None),
        Err(Unfit::Io(error)) => Err(Error::io("read", path, error)),
        Err(unfit) => Err(Error::io("read", path, io::Error::other(unfit.to_string()))),
    }
}

/// Whether a sidecar serves this home, judged by the time of its heartbeat.
#[must_use]
pub fn sidecar_alive(home: &Path, now: &Now) -> SidecarPresence {
    let read = |bytes: &[u8]| contract::read(bytes).ok().flatten().filter(|view: &SidecarView| view.pid > 0);
    let Some(view) = sidecar_view(home).ok().and_then(|bytes| read(&bytes)) else { return SidecarPresence::None };
    let Some(heartbeat_ms) = millis(&view.heartbeat) else { return SidecarPresence::None };
    let age_ms = now.wall_ms.saturating_sub(heartbeat_ms);
    // A heartbeat from the future was written before the clock was set back.
    if age_ms.saturating_abs() > STALE_MS {
        SidecarPresence::Stale { pid: view.pid, age_ms, heartbeat_ms }
    } else {
        SidecarPresence::Alive { pid: view.pid, heartbeat_ms }
    }
}

/// Why this user may not learn whether a sidecar serves this home; `None` if nothing forbids it.
#[must_use]
pub fn denied(home: &Path) -> Option<Error> {
    let (path, unfit) = sidecar_view(home).err()?;
    let what = match unfit {
        Unfit::Foreign => "belongs to another user".to_owned(),
        Unfit::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => format!("can't be opened: {error}"),
        _ => return None,
    };
    let fix = "Run the command as the user whose home it is, or name your own home with --home".to_owned();
    Some(Error::NotAllowed { path, what, fix })
}

/// The bytes of `view/sidecar.json`, or the path that can't be read, and why.
fn sidecar_view(home: &Path) -> Result<Vec<u8>, (PathBuf, Unfit)> {
    let folder = home.join("view");
    let dir = files::open_dir(&folder).map_err(|error| (folder.clone(), Unfit::Io(error)))?;
    let read = files::read_replaced_at(&dir, OsStr::new("sidecar.json"), MAX_SIDECAR_BYTES);
    read.map(|(bytes, _)| bytes).map_err(|unfit| (folder.join("sidecar.json"), unfit))
}

fn submit_file(spool: &Path, lane: &str, name: &str, bytes: &[u8], grade: Grade) -> Result<(), Error> {
    let path = spool.join(lane).join(name);
    if !files::is_plain(OsStr::new(name)) {
        return Err(Error::io("write", path, io::Error::from(io::ErrorKind::InvalidFilename)));
    }
    let root = open(spool, files::open_dir(spool))?;
    let meta = files::meta(&root).map_err(|error| Error::io("check the folder", spool, error))?;
    check_mode(spool, &meta, 0o077)?;
    let tmp = open(&spool.join("tmp"), files::open_dir_at(&root, "tmp"))?;
    let to = open(&spool.join(lane), files::open_dir_at(&root, lane))?;
    let temp = format!("{}.tmp", uuid::Uuid::new_v4().simple());
    match files::create_at(&tmp, OsStr::new(&temp), &to, OsStr::new(name), bytes, grade) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::Taken { path }),
        Err(error) => Err(Error::io("write", path, error)),
    }
}

fn open(path: &Path, opened: io::Result<OwnedFd>) -> Result<OwnedFd, Error> {
    opened.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NoSpool { path: PathBuf::from(path) },
        _ => Error::io("open the folder", path, error),
    })
}
