//! Wishes for views of history: a client writes a name in `view/`, and the sidecar writes the view and removes the
//! wish.

use super::dirs::SpoolDir;
use super::home::Spool;
use crate::files;
use std::ffi::{OsStr, OsString};

/// What the name of a wish for a view begins with, in `view/`; the id follows.
pub const WISH: &str = ".wanted-";
/// Most wishes that one tick reads.
const MOST_WISHES: usize = 100;

impl Spool {
    /// The views that somebody has asked for: names of wishes in `view/`, with the ids that they name.
    #[must_use]
    pub fn wishes(&self) -> Vec<(OsString, uuid::Uuid)> {
        let id = |name: &OsStr| name.to_str()?.strip_prefix(WISH)?.parse::<uuid::Uuid>().ok();
        let listed = files::names(self.dir(SpoolDir::View), MOST_WISHES, |name| id(name).is_some());
        let names = listed.map(|(names, _)| names).unwrap_or_default();
        names.into_iter().filter_map(|name| id(&name).map(|id| (name, id))).collect()
    }

    /// Takes a wish away: it was answered, or nothing is known of what it names.
    pub fn drop_wish(&self, name: &OsStr) {
        if let Err(error) = files::remove_at(self.dir(SpoolDir::View), name) {
            tracing::warn!(%error, "could not remove the request for a view");
        }
    }
}
