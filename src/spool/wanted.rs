//! Views on request: a client creates the empty file `view/.wanted-<id>`; the sidecar writes the view of that agent,
//! handoff or work item from the store, and removes the file.

use super::dirs::SpoolDir;
use super::home::Spool;
use crate::files;
use std::ffi::{OsStr, OsString};

/// The beginning of a marker file's name; the id follows.
pub const WANTED_PREFIX: &str = ".wanted-";
/// The most marker files that are read at once.
const MAX_WANTED: usize = 100;

impl Spool {
    /// The views that clients wait for: the marker files' names, each with the id in its name.
    #[must_use]
    pub fn wanted_views(&self) -> Vec<(OsString, uuid::Uuid)> {
        let id = |name: &OsStr| name.to_str()?.strip_prefix(WANTED_PREFIX)?.parse::<uuid::Uuid>().ok();
        let listed = files::names(self.dir(SpoolDir::View), MAX_WANTED, |name| id(name).is_some());
        let names = listed.map(|(names, _)| names).unwrap_or_default();
        names.into_iter().filter_map(|name| id(&name).map(|id| (name, id))).collect()
    }

    /// Removes a marker file: the view was written, or there is nothing with that id.
    pub fn remove_wanted(&self, name: &OsStr) {
        if let Err(error) = files::remove_at(self.dir(SpoolDir::View), name) {
            tracing::warn!(%error, "could not remove the request for a view");
        }
    }
}
