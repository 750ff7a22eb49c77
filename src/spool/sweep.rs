//! Removing what has had its time: scratch files in `tmp/` after 36 hours, results after 7 days (SPEC 3.2). A little at a
//! time, and never by the wall clock alone: a clock that jumps forward must not take what was written a minute ago.

use super::rooms::{Room, Spool};
use crate::core::id::RequestId;
use crate::core::time::Now;
use crate::files::{self, Meta, Stamp};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

const HOUR_MS: i64 = 3_600_000;
/// What a killed writer leaves in `tmp/` is removed after this.
const TMP_AGE_MS: i64 = 36 * HOUR_MS;
/// Results are kept this long.
const RESULT_AGE_MS: i64 = 7 * 24 * HOUR_MS;
/// How long an old file must have been seen, by boot time, before it goes.
const SEEN_MS: u64 = 10 * 60_000;
/// The most old files that are remembered; the rest has its turn later.
const MAX_OLD: usize = 10_000;

/// How far the sweep has come.
#[derive(Default)]
pub(super) struct Sweeper {
    room: Option<Room>,
    listing: Option<nix::dir::OwningIter>,
    old: HashMap<(bool, OsString), (Stamp, u64)>,
}

impl std::fmt::Debug for Sweeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sweeper").field("room", &self.room).field("old", &self.old.len()).finish_non_exhaustive()
    }
}

impl Spool {
    /// Looks at the next `max` files of `tmp/` and `results/` in turn and removes those that are too old; gives how many
    /// went. Old files are only removed by a later round, ten minutes or more after one first saw them.
    pub fn sweep(&mut self, max: usize, now: &Now) -> usize {
        let room = self.sweeper.room.unwrap_or(Room::Tmp);
        let mut listing = match self.sweeper.listing.take() {
            Some(listing) => listing,
            None => match files::open_listing(self.dir(room)) {
                Ok(listing) => listing,
                Err(_) => return 0,
            },
        };
        self.sweeper.room = Some(room);
        let mut removed = 0;
        for _ in 0..max {
            let Some(Ok(entry)) = listing.next() else {
                self.next_room(room);
                return removed;
            };
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            removed += usize::from(self.sweep_one(room, name, now));
        }
        self.sweeper.listing = Some(listing);
        removed
    }

    fn next_room(&mut self, room: Room) {
        self.sweeper.room = Some(if room == Room::Tmp { Room::Results } else { Room::Tmp });
        self.sweeper.listing = None;
    }

    fn sweep_one(&mut self, room: Room, name: &OsStr, now: &Now) -> bool {
        if matches!(name.as_bytes(), b"." | b"..") || (room == Room::Results && !is_result(name)) {
            return false;
        }
        let Ok(Some(meta)) = files::meta_at(self.dir(room), name) else { return false };
        let limit = if room == Room::Tmp { TMP_AGE_MS } else { RESULT_AGE_MS };
        if meta.is_dir() || !is_older(&meta, limit, now) {
            return false;
        }
        let key = (room == Room::Tmp, name.to_owned());
        match self.sweeper.old.get(&key) {
            Some((stamp, since)) if *stamp == meta.stamp && now.boot_ms.saturating_sub(*since) >= SEEN_MS => {
                self.sweeper.old.remove(&key);
                files::remove_at(self.dir(room), name).unwrap_or(false)
            }
            Some((stamp, _)) if *stamp == meta.stamp => false,
            _ => {
                if self.sweeper.old.len() >= MAX_OLD {
                    self.sweeper.old.clear();
                }
                self.sweeper.old.insert(key, (meta.stamp, now.boot_ms));
                false
            }
        }
    }
}

/// Only names that we give to results ourselves.
fn is_result(name: &OsStr) -> bool {
    name.to_str().and_then(|name| name.strip_suffix(".json")).is_some_and(|id| {
        let id = id.strip_suffix(".reused").unwrap_or(id);
        id.parse::<RequestId>().is_ok()
    })
}

fn is_older(meta: &Meta, limit_ms: i64, now: &Now) -> bool {
    now.wall_ms.saturating_sub(meta.stamp.ctime_ns / 1_000_000) > limit_ms
}
