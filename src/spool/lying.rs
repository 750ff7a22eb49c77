//! What lies in the lane of requests at this moment, seen beside the scan: whoever judges whether files are taken must not
//! ask what takes them.

use super::home::Spool;
use super::rooms::Room;
use crate::files::{self, Stamp};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Most files that are looked at.
const MOST: usize = 256;

impl Spool {
    /// Files that wait to be taken, each in its present state, as far as one short look goes. What was answered and finds
    /// no room in `rejected/` waits for nothing. What can't be read is told by the scan.
    #[must_use]
    pub fn lying(&self) -> Vec<(OsString, Stamp)> {
        let dir = self.dir(Room::Requests);
        let waits = |name: &OsStr| {
            let is_read = !name.as_bytes().starts_with(b".") && !name.as_bytes().ends_with(b".tmp");
            is_read && !self.requests.held.contains_key(name)
        };
        let Ok((names, _)) = files::names(dir, MOST, waits) else { return Vec::new() };
        let look = |name: OsString| Some((files::meta_at(dir, &name).ok()??.stamp, name));
        names.into_iter().filter_map(look).map(|(stamp, name)| (name, stamp)).collect()
    }
}
