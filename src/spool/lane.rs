//! The two lanes: the folders where files come in. Here are the types for a file that a scan found, and for what the
//! spool remembers of a lane between two scans.

use super::dirs::SpoolDir;
use crate::core::id::RequestId;
use crate::files::FileStamp;
use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The largest request or event file that is read, in bytes.
pub const MAX_INPUT_BYTES: u64 = 1024 * 1024;

/// The pause before held files are looked at again, in milliseconds.
pub(super) const HELD_MS: u64 = 5_000;

/// A folder where files come in. Each lane has its own listing, so that a flood of events does not delay requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// `spool/requests/`.
    Requests,
    /// `spool/events/`.
    Events,
}

impl Lane {
    pub(super) fn spool_dir(self) -> SpoolDir {
        match self {
            Lane::Requests => SpoolDir::Requests,
            Lane::Events => SpoolDir::Events,
        }
    }

    pub(super) fn allows(self, name: &OsStr) -> bool {
        match self {
            Lane::Requests => request_id(name).is_some(),
            Lane::Events => name.as_bytes().ends_with(b".json"),
        }
    }
}

/// The request id in a file name, if it is a legal one.
fn request_id(name: &OsStr) -> Option<RequestId> {
    name.to_str()?.strip_suffix(".json").filter(|id| !is_reserved(id))?.parse().ok()
}

/// The suffix that a request id must not have. `results/<id>.reused.json` answers a second request with the same id and
/// other bytes. It is reserved in upper and lower case, because some file systems take names that differ by case alone
/// for one.
pub const RESERVED_SUFFIX: &str = ".reused";

/// Whether a request id ends in the suffix that is reserved for refusals, in upper or lower case.
#[must_use]
pub fn is_reserved(id: &str) -> bool {
    let end = id.len().checked_sub(RESERVED_SUFFIX.len()).and_then(|at| id.get(at..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(RESERVED_SUFFIX))
}

/// A file that a scan found, to be decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncomingFile {
    pub lane: Lane,
    /// The file name: bytes, which need not be UTF-8.
    pub name: OsString,
    /// The stamp of the file, which changes when the file changes.
    pub file_stamp: FileStamp,
    pub content: Content,
}

impl IncomingFile {
    /// For requests: the id in the file's name. Every file with a valid id gets a result, even if the file itself is
    /// bad.
    #[must_use]
    pub fn request_id(&self) -> Option<RequestId> {
        if self.lane == Lane::Requests { request_id(&self.name) } else { None }
    }

    /// For requests: what would be the id in the file's name if its end were not reserved. Such a file is refused.
    #[must_use]
    pub fn reserved_id(&self) -> Option<RequestId> {
        let id = self.name.to_str()?.strip_suffix(".json").filter(|id| is_reserved(id))?;
        if self.lane == Lane::Requests { id.parse().ok() } else { None }
    }

    /// The hash of the file's bytes, if they could be read.
    #[must_use]
    pub fn sha256(&self) -> Option<[u8; 32]> {
        match &self.content {
            Content::Whole { sha256, .. } => Some(*sha256),
            Content::Bad { sha256, .. } => *sha256,
        }
    }
}

/// The content of a file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// One complete JSON object. Its fields have not been checked.
    Whole { bytes: Vec<u8>, sha256: [u8; 32] },
    Bad {
        /// `bad_name`, `incomplete`, `not_json`, `not_object`, `too_large`, `link` (a symbolic link), `not_regular`,
        /// `foreign` (another user's), `linked` (several hard links), `changing` or `unreadable`.
        code: &'static str,
        message: String,
        /// The line of the error, counted from 1.
        line: Option<u64>,
        /// The byte in that line, counted from 1.
        column: Option<u64>,
        /// The hash of the bytes, if they could be read.
        sha256: Option<[u8; 32]>,
        /// The bytes, if they could be read.
        bytes: Option<Vec<u8>>,
    },
}

/// Whether a file in a lane is to be read: its name neither begins with a dot nor ends in `.tmp`, like those of
/// half-written files.
pub(super) fn is_candidate(name: &OsStr) -> bool {
    !name.as_bytes().starts_with(b".") && !name.as_bytes().ends_with(b".tmp")
}

/// What the spool remembers of a lane between two scans.
#[derive(Debug, Default)]
pub(super) struct LaneState {
    /// Names of the last listing that were not read yet. With many files, one listing serves several scans.
    pub(super) backlog: VecDeque<OsString>,
    /// Whether the last listing left out names because there were too many.
    pub(super) is_truncated: bool,
    /// Files that are not ready: incomplete or unreadable, and changed a moment ago.
    pub(super) incomplete: HashMap<OsString, IncompleteFile>,
    /// Bad files that could not be moved to `rejected/`, and handled files that could not be moved to the trash. Scans
    /// skip them until they change.
    pub(super) held: HashMap<OsString, Held>,
    /// How many times the folder was listed.
    pub(super) listings: u64,
    /// When all held files were last looked at, in milliseconds since boot.
    pub(super) held_checked_ms: u64,
}

/// A decided file that could not be moved out of its lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// Its stamp when it was decided.
    pub(super) file_stamp: FileStamp,
    /// The listing in which it was last seen.
    pub(super) seen: u64,
    /// It was accepted and goes to the trash; otherwise it is a bad file, which goes to `rejected/`.
    pub(super) is_handled: bool,
}

impl Held {
    pub(super) fn new(file_stamp: FileStamp, is_handled: bool) -> Held {
        Held { file_stamp, seen: 0, is_handled }
    }

    /// Whether a file with this stamp is still the one that was decided. A handled file must not count twice because
    /// somebody has changed its mode, or made a link to it.
    pub(super) fn is_same(&self, file_stamp: &FileStamp) -> bool {
        if self.is_handled { same_content(&self.file_stamp, file_stamp) } else { self.file_stamp == *file_stamp }
    }
}

/// Whether two stamps mean the same content. The inode's change time is not compared, because a rename changes it.
pub(super) fn same_content(a: &FileStamp, b: &FileStamp) -> bool {
    a.is_same_file(b) && a.size == b.size && a.mtime_ns == b.mtime_ns
}

#[derive(Debug, Clone, Copy)]
pub(super) struct IncompleteFile {
    pub(super) file_stamp: FileStamp,
    pub(super) since_ms: u64,
}

/// Why handled files stay in their lanes.
#[derive(Debug)]
pub(super) struct Unmoved {
    pub(super) why: String,
    /// When moving them was last tried, in milliseconds since boot.
    pub(super) tried_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserved_suffix_is_known_in_upper_and_lower_case() {
        assert!(["a.reused", "a.REUSED", ".Reused"].into_iter().all(is_reserved));
        assert!(!["reused", "a.reuse", "a.reused.b", ""].into_iter().any(is_reserved));
    }
}
