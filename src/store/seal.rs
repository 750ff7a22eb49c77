//! The seal: `tasuki.redb.closed`, a file beside the state file which says that the state file was closed properly. It
//! holds the state file's [`FileStamp`] at that time: device, inode, size and times. If these are still the same, a
//! start need not check the whole file.
//!
//! A seal is valid for one start: it is removed before the state file is written to. After a crash, a power cut, a
//! restored copy, or an error that damage may have caused, there is no valid seal, and every page is checked.

use super::error::Error;
use super::tables::SCHEMA;
use crate::files::{self, FileStamp, Grade};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Longest file that is read as a seal.
const MAX_BYTES: u64 = 4096;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seal {
    /// The schema of the program that sealed the file. For a program with another schema the seal is not valid.
    schema: u64,
    file: FileStamp,
}

/// The state file may lie behind a link, which stays as it is whatever becomes of the file.
fn seal_of(path: &Path) -> Option<Seal> {
    Some(Seal { schema: SCHEMA, file: files::file_stamp(&path.canonicalize().ok()?)? })
}

fn seal_path(path: &Path) -> PathBuf {
    path.with_extension("redb.closed")
}

/// Removes the seal, and returns whether it was valid for this file.
///
/// # Errors
/// The seal can't be removed; a later start might believe it.
pub(super) fn take(path: &Path) -> Result<bool, Error> {
    let seal_path = seal_path(path);
    let failed = |what, error: std::io::Error| Error::Io { path: seal_path.clone(), what, why: error.to_string() };
    let Some(folder) = seal_path.parent() else { return Ok(false) };
    let folder = files::open_dir(folder).map_err(|error| failed("looked for", error))?;
    let name = seal_path.file_name().unwrap_or_default();
    let found = read(&folder, name);
    if files::remove_at(&folder, name).map_err(|error| failed("removed", error))? {
        files::sync_folder(&folder).map_err(|error| failed("removed", error))?;
    }
    Ok(found.is_some() && found == seal_of(path))
}

/// A seal that can't be read is not valid.
fn read(folder: impl AsFd, name: &OsStr) -> Option<Seal> {
    let (bytes, _) = files::read_at(folder, name, MAX_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Seals a file that was just closed. If that fails, the next start checks the whole file.
pub(super) fn put(path: &Path) {
    let seal_path = seal_path(path);
    let write = || -> std::io::Result<()> {
        let seal = seal_of(path).ok_or(std::io::ErrorKind::NotFound)?;
        let folder = files::open_dir(seal_path.parent().unwrap_or(Path::new("/")))?;
        let temp = files::scratch_name(&folder);
        let bytes = serde_json::to_vec(&seal)?;
        // Not synced: a seal that a power cut damages is not valid.
        files::replace_at(&folder, &temp, seal_path.file_name().unwrap_or_default(), &bytes, Grade::Fast)
    };
    if let Err(error) = write() {
        tracing::warn!(%error, "could not mark the state file as closed cleanly: the next start checks the whole file");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seal_of_a_file_behind_a_link_is_that_of_the_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let (real, path) = (dir.path().join("elsewhere"), dir.path().join("tasuki.redb"));
        std::fs::write(&real, "pages").expect("written");
        std::os::unix::fs::symlink(&real, &path).expect("a link");
        put(&path);
        assert!(take(&path).expect("read"), "nothing has changed");
        put(&path);
        std::fs::write(&real, "other pages").expect("written");
        assert!(!take(&path).expect("read"), "a copy was put back");
    }
}
