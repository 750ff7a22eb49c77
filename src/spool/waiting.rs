//! Lists the files in the lane of requests without the scan. The sidecar uses this to notice when the scan itself does
//! not work.

use super::dirs::SpoolDir;
use super::home::Spool;
use crate::files::{self, FileId};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

const MOST: usize = 256;

impl Spool {
    /// The first 256 request files that wait to be read, each with its identity. Held files are left out. If the folder
    /// can't be read, the list is empty, and the scan reports the error.
    #[must_use]
    pub fn waiting_requests(&self) -> Vec<(OsString, FileId)> {
        let dir = self.dir(SpoolDir::Requests);
        let waits = |name: &OsStr| {
            let is_read = !name.as_bytes().starts_with(b".") && !name.as_bytes().ends_with(b".tmp");
            is_read && !self.requests.held.contains_key(name)
        };
        let Ok((names, _)) = files::names(dir, MOST, waits) else { return Vec::new() };
        let look = |name: OsString| Some((files::meta_at(dir, &name).ok()??.file_id, name));
        names.into_iter().filter_map(look).map(|(file_id, name)| (name, file_id)).collect()
    }
}
