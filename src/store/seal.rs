//! The mark that the state file was closed properly: `tasuki.redb.closed`, beside it. It names the file and its state
//! at that time. If nothing has touched the file since, the start need not read all of it again.
//!
//! A mark holds for one start: it is removed before the file is written to. After a crash, a power cut, a restored
//! copy, or any error that damage may cause, there is no mark, and every page is checked.

use super::error::Error;
use super::tables::SCHEMA;
use crate::files::{self, FileId, Grade};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

const MAX_BYTES: u64 = 4096;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    /// The schema: a newer tasuki's file is peeked at before it is opened, with or without a mark.
    schema: u64,
    file: FileId,
}

fn mark_of(path: &Path) -> Option<Mark> {
    Some(Mark { schema: SCHEMA, file: files::file_id(path)? })
}

fn place(path: &Path) -> PathBuf {
    path.with_extension("redb.closed")
}

/// Removes the mark, and returns whether it was made for this file.
///
/// # Errors
/// A mark that can't be taken away might be believed at a later start.
pub(super) fn take(path: &Path) -> Result<bool, Error> {
    let place = place(path);
    let failed = |what, error: std::io::Error| Error::Io { path: place.clone(), what, why: error.to_string() };
    let Some(folder) = place.parent() else { return Ok(false) };
    let folder = files::open_dir(folder).map_err(|error| failed("looked for", error))?;
    let name = place.file_name().unwrap_or_default();
    let found = read(&folder, name);
    if files::remove_at(&folder, name).map_err(|error| failed("removed", error))? {
        nix::unistd::fsync(&folder).map_err(|error| failed("removed", error.into()))?;
    }
    Ok(found.is_some() && found == mark_of(path))
}

/// A mark that can't be read does not count.
fn read(folder: impl AsFd, name: &OsStr) -> Option<Mark> {
    let (bytes, _) = files::read_at(folder, name, MAX_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Marks a file that was just closed in order. Where that fails, the next start reads all of it.
pub(super) fn put(path: &Path) {
    let place = place(path);
    let write = || -> std::io::Result<()> {
        let mark = mark_of(path).ok_or(std::io::ErrorKind::NotFound)?;
        let folder = files::open_dir(place.parent().unwrap_or(Path::new("/")))?;
        let temp = files::scratch_name(&folder);
        let bytes = serde_json::to_vec(&mark)?;
        // A mark that a power cut damages does not count.
        files::replace_at(&folder, &temp, place.file_name().unwrap_or_default(), &bytes, Grade::Fast)
    };
    if let Err(error) = write() {
        tracing::warn!(%error, "could not mark the state file as closed cleanly: the next start checks the whole file");
    }
}
