//! Removes old files: scratch files in `tmp/` after 36 hours, results after 7 days. Each call looks at a few files.
//! Ages are computed with [`BelievedClock`]: when the wall clock jumps forward, a file written a minute ago must stay.

use super::dirs::{SpoolDir, SpoolDirs};
use crate::core::id::RequestId;
use crate::core::time::{BelievedClock, Now};
use crate::files;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

const HOUR_MS: i64 = 3_600_000;
/// How long files in `tmp/` are kept; only killed writers leave files there.
const TMP_AGE_MS: i64 = 36 * HOUR_MS;
/// Results are kept this long.
const RESULT_AGE_MS: i64 = 7 * 24 * HOUR_MS;

#[derive(Default)]
pub(super) struct Sweeper {
    spool_dir: Option<SpoolDir>,
    listing: Option<nix::dir::OwningIter>,
    clock: BelievedClock,
}

impl std::fmt::Debug for Sweeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sweeper").field("spool_dir", &self.spool_dir).finish_non_exhaustive()
    }
}

impl Sweeper {
    /// Looks at the next `max` files of `tmp/` and `results/`, removes those that are too old, and returns how many it
    /// removed.
    pub(super) fn sweep(&mut self, dirs: &SpoolDirs, max: usize, now: &Now) -> usize {
        let Some(wall_ms) = self.clock.wall_ms(now) else { return 0 };
        let spool_dir = self.spool_dir.unwrap_or(SpoolDir::Tmp);
        let mut listing = match self.listing.take() {
            Some(listing) => listing,
            None => match files::open_listing(dirs.dir(spool_dir)) {
                Ok(listing) => listing,
                Err(_) => return 0,
            },
        };
        self.spool_dir = Some(spool_dir);
        let mut removed = 0;
        for _ in 0..max {
            let Some(Ok(entry)) = listing.next() else {
                self.next_dir(spool_dir);
                return removed;
            };
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            removed += usize::from(sweep_one(dirs, spool_dir, name, wall_ms));
        }
        self.listing = Some(listing);
        removed
    }

    /// Whether the last pass over both folders has ended and the next one has not begun.
    pub(super) fn is_swept(&self) -> bool {
        self.listing.is_none() && self.spool_dir.is_none_or(|spool_dir| spool_dir == SpoolDir::Tmp)
    }

    fn next_dir(&mut self, spool_dir: SpoolDir) {
        self.spool_dir = Some(if spool_dir == SpoolDir::Tmp { SpoolDir::Results } else { SpoolDir::Tmp });
        self.listing = None;
    }
}

fn sweep_one(dirs: &SpoolDirs, spool_dir: SpoolDir, name: &OsStr, wall_ms: i64) -> bool {
    if matches!(name.as_bytes(), b"." | b"..") || (spool_dir == SpoolDir::Results && !is_result(name)) {
        return false;
    }
    let Ok(Some(meta)) = files::meta_at(dirs.dir(spool_dir), name) else { return false };
    let limit = if spool_dir == SpoolDir::Tmp { TMP_AGE_MS } else { RESULT_AGE_MS };
    let age_ms = wall_ms.saturating_sub(dirs.changed_ns(&meta) / 1_000_000);
    !meta.is_dir() && age_ms > limit && files::remove_at(dirs.dir(spool_dir), name).unwrap_or(false)
}

/// Whether this is a name that tasuki gives to results.
fn is_result(name: &OsStr) -> bool {
    name.to_str().and_then(|name| name.strip_suffix(".json")).is_some_and(|id| {
        let id = id.strip_suffix(".reused").unwrap_or(id);
        id.parse::<RequestId>().is_ok()
    })
}
