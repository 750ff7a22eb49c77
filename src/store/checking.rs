//! Opens a state file again with a full check of its pages. With a large file that takes longer than the loop may
//! pause, so it runs on a thread of its own.

use super::error::Error;
use super::open;
use redb::Database;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// A file that is being read and opened. Who drops this leaves the thread to itself, which closes the file again.
pub(super) struct Checking {
    path: PathBuf,
    thread: JoinHandle<Result<Database, Error>>,
}

impl Checking {
    /// Begins to check the file on a thread of its own.
    ///
    /// # Errors
    /// There is no thread for it; a later try may find one.
    pub(super) fn begin(path: &Path) -> Result<Checking, Error> {
        tracing::warn!("checking the whole state file before it is used again; until then requests and events wait");
        let of = path.to_path_buf();
        let begun = std::thread::Builder::new().name("check".to_owned()).spawn(move || open::existing(&of, true));
        let why =
            |error: std::io::Error| Error::Io { path: path.to_path_buf(), what: "checked", why: error.to_string() };
        Ok(Checking { path: path.to_path_buf(), thread: begun.map_err(why)? })
    }

    /// Whether it would not have to be waited for.
    pub(super) fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// The file, open.
    ///
    /// # Errors
    /// What was found, or that the check itself has failed.
    pub(super) fn opened(self) -> Result<Database, Error> {
        let why = || "the check itself failed".to_owned();
        self.thread.join().unwrap_or_else(|_| Err(Error::Unreadable { path: self.path, why: why() }))
    }
}
