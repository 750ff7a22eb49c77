//! Lists the files in the lane of requests without the scan. The sidecar uses this to notice when the scan itself does
//! not work.

use super::dirs::SpoolDir;
use super::home::Spool;
use super::lane::is_candidate;
use crate::files::{self, FileStamp};
use std::ffi::{OsStr, OsString};

const MOST: usize = 256;

impl Spool {
    /// Up to 256 files in `spool/requests/` that are not held, in no order, each with its stamp. The sidecar compares
    /// two such lists to notice that a request stays there. If the folder can't be read, the list is empty, and the
    /// scan reports the error.
    #[must_use]
    pub fn waiting_requests(&self) -> Vec<(OsString, FileStamp)> {
        let dir = self.dir(SpoolDir::Requests);
        let is_waiting = |name: &OsStr| is_candidate(name) && !self.requests.held.contains_key(name);
        let Ok((names, _)) = files::names(dir, MOST, is_waiting) else { return Vec::new() };
        let look = |name: OsString| Some((files::meta_at(dir, &name).ok()??.file_stamp, name));
        names.into_iter().filter_map(look).map(|(file_stamp, name)| (name, file_stamp)).collect()
    }
}
