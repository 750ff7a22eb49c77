//! Checks all pages of a state file and opens it again. With a large file that takes longer than the loop may pause, so
//! it runs on its own thread. The file may be another one than before, so it is checked without being changed.

use super::error::Error;
use super::open::OpenedStore;
use super::{open, peek};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// A running check. If this is dropped, the thread finishes and closes the file again.
pub(super) struct IntegrityCheck {
    path: PathBuf,
    thread: JoinHandle<Result<OpenedStore, Error>>,
}

impl IntegrityCheck {
    /// Begins to check the file on a thread of its own. `home`: as for [`peek::check`].
    ///
    /// # Errors
    /// No thread could be started; a later try may succeed.
    pub(super) fn begin(path: &Path, home: Option<u64>) -> Result<IntegrityCheck, Error> {
        tracing::warn!("checking the whole state file before it is used again; until then requests and events wait");
        let of = path.to_path_buf();
        let check = move || {
            let checked = open::identity(&of);
            peek::check(&of, home)?;
            let (database, opened) = open::open_existing(&of)?;
            // Another file may have come to the path since the check began.
            if checked == Some(opened) { Ok((database, opened)) } else { Err(Error::Gone { path: of }) }
        };
        let begun = std::thread::Builder::new().name("check".to_owned()).spawn(check);
        let why =
            |error: std::io::Error| Error::Io { path: path.to_path_buf(), what: "checked", why: error.to_string() };
        Ok(IntegrityCheck { path: path.to_path_buf(), thread: begun.map_err(why)? })
    }

    /// Whether the check has ended.
    pub(super) fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// The open file, and its device and inode. Waits for the check.
    ///
    /// # Errors
    /// The damage, the newer schema or the other home that was found; that the file was replaced meanwhile; or that the
    /// check panicked.
    pub(super) fn opened(self) -> Result<OpenedStore, Error> {
        let why = || "the check itself failed".to_owned();
        self.thread.join().unwrap_or_else(|_| Err(Error::Unreadable { path: self.path, why: why() }))
    }
}
