//! Counts the files in the lane of requests, independently of the scan, because a check of the scan must not rely on
//! it.

use super::dirs::SpoolDir;
use super::home::Spool;
use crate::files::{self, FileId};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

const MOST: usize = 256;

impl Spool {
    /// Files that wait to be taken, each with its present identity, as far as one short look goes. A file that was
    /// answered and finds no room in `rejected/` does not wait. A folder that can't be read is reported by the scan.
    #[must_use]
    pub fn lying(&self) -> Vec<(OsString, FileId)> {
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
