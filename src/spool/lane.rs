//! The two lanes in which files come in: what is found there, and what is remembered of each between two looks.

use super::rooms::Room;
use crate::core::id::RequestId;
use crate::files::Stamp;
use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The most that a request or event may hold, in bytes (SPEC 3.1).
pub const MAX_INPUT_BYTES: u64 = 1024 * 1024;

/// How long until files that can't be moved to `rejected/` are looked at again, in milliseconds.
pub(super) const HELD_MS: u64 = 5_000;

/// Where files come in. Each lane has its own listing, so that a flood of events delays no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// `spool/requests/`.
    Requests,
    /// `spool/events/`.
    Events,
}

impl Lane {
    pub(super) fn room(self) -> Room {
        match self {
            Lane::Requests => Room::Requests,
            Lane::Events => Room::Events,
        }
    }

    pub(super) fn allows(self, name: &OsStr) -> bool {
        match self {
            Lane::Requests => request_id(name).is_some(),
            Lane::Events => name.as_bytes().ends_with(b".json"),
        }
    }
}

/// The request id that a file name stands for, if it is a legal one.
fn request_id(name: &OsStr) -> Option<RequestId> {
    name.to_str()?.strip_suffix(".json").filter(|id| !id.ends_with(RESERVED))?.parse().ok()
}

/// No request's id ends so: `results/<id>.reused.json` is the answer to other bytes under an id.
pub const RESERVED: &str = ".reused";

/// A file that is to be decided upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub lane: Lane,
    /// Its name: bytes, not always text.
    pub name: OsString,
    /// Which state of the file this is.
    pub stamp: Stamp,
    pub content: Content,
}

impl Found {
    /// For requests: the id that its name gives. Whoever drops a file with a valid id is owed a result (SPEC 12, Files).
    #[must_use]
    pub fn request_id(&self) -> Option<RequestId> {
        if self.lane == Lane::Requests { request_id(&self.name) } else { None }
    }

    /// The hash of its bytes, where they could be read.
    #[must_use]
    pub fn sha256(&self) -> Option<[u8; 32]> {
        match &self.content {
            Content::Whole { sha256, .. } => Some(*sha256),
            Content::Bad { sha256, .. } => *sha256,
        }
    }
}

/// What a found file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// One whole JSON object, of whatever meaning.
    Whole { bytes: Vec<u8>, sha256: [u8; 32] },
    /// Something that can't be taken.
    Bad {
        /// `bad_name`, `incomplete`, `not_json`, `not_object`, `too_large`, `link`, `not_regular`, `foreign`, `linked`,
        /// `changing` or `unreadable`.
        code: &'static str,
        message: String,
        /// Where in the file, from 1.
        line: Option<u64>,
        /// Where in that line, in bytes from 1.
        column: Option<u64>,
        /// The hash, if it could be read.
        sha256: Option<[u8; 32]>,
        /// The bytes, if they could be read.
        bytes: Option<Vec<u8>>,
    },
}

/// What is remembered of a lane between scans.
#[derive(Debug, Default)]
pub(super) struct LaneState {
    /// Names of the last listing that were not looked at yet, so that a flood is listed and sorted once, not once for each batch.
    pub(super) backlog: VecDeque<OsString>,
    pub(super) cut: bool,
    pub(super) waiting: HashMap<OsString, Waiting>,
    /// Files that could not be moved away.
    pub(super) held: HashMap<OsString, Held>,
    pub(super) listings: u64,
    /// When all that is held was last looked at, by boot time.
    pub(super) looked_ms: u64,
}

/// A file that could not be moved away.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// The state in which it was decided.
    pub(super) stamp: Stamp,
    /// The listing in which it was last seen.
    pub(super) seen: u64,
}

impl Held {
    pub(super) fn new(stamp: Stamp) -> Held {
        Held { stamp, seen: 0 }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) stamp: Stamp,
    pub(super) since_ms: u64,
}
