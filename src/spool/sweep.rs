//! Removing what has had its time: scratch files in `tmp/` after 36 hours, results after 7 days (SPEC 3.2). A little at a
//! time, and never by the wall clock alone: a clock that jumps forward must not take what was written a minute ago.

use super::rooms::{Room, Rooms};
use crate::core::id::RequestId;
use crate::core::time::{BelievedClock, Now};
use crate::files;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

const HOUR_MS: i64 = 3_600_000;
/// What a killed writer leaves in `tmp/` is removed after this.
const TMP_AGE_MS: i64 = 36 * HOUR_MS;
/// Results are kept this long.
const RESULT_AGE_MS: i64 = 7 * 24 * HOUR_MS;

/// How far the sweep has come.
#[derive(Default)]
pub(super) struct Sweeper {
    room: Option<Room>,
    listing: Option<nix::dir::OwningIter>,
    clock: BelievedClock,
}

impl std::fmt::Debug for Sweeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sweeper").field("room", &self.room).finish_non_exhaustive()
    }
}

impl Sweeper {
    /// Looks at the next `max` files of `tmp/` and `results/` in turn and removes those that are too old; gives how many
    /// went. What is old is known by one clock for all files, so that no number of them is too many to remember.
    pub(super) fn sweep(&mut self, rooms: &Rooms, max: usize, now: &Now) -> usize {
        let Some(wall_ms) = self.clock.wall_ms(now) else { return 0 };
        let room = self.room.unwrap_or(Room::Tmp);
        let mut listing = match self.listing.take() {
            Some(listing) => listing,
            None => match files::open_listing(rooms.dir(room)) {
                Ok(listing) => listing,
                Err(_) => return 0,
            },
        };
        self.room = Some(room);
        let mut removed = 0;
        for _ in 0..max {
            let Some(Ok(entry)) = listing.next() else {
                self.next_room(room);
                return removed;
            };
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            removed += usize::from(sweep_one(rooms, room, name, wall_ms));
        }
        self.listing = Some(listing);
        removed
    }

    /// Whether both rooms were looked through to the end, and no new round was begun.
    pub(super) fn is_swept(&self) -> bool {
        self.listing.is_none() && self.room.is_none_or(|room| room == Room::Tmp)
    }

    fn next_room(&mut self, room: Room) {
        self.room = Some(if room == Room::Tmp { Room::Results } else { Room::Tmp });
        self.listing = None;
    }
}

fn sweep_one(rooms: &Rooms, room: Room, name: &OsStr, wall_ms: i64) -> bool {
    if matches!(name.as_bytes(), b"." | b"..") || (room == Room::Results && !is_result(name)) {
        return false;
    }
    let Ok(Some(meta)) = files::meta_at(rooms.dir(room), name) else { return false };
    let limit = if room == Room::Tmp { TMP_AGE_MS } else { RESULT_AGE_MS };
    let age_ms = wall_ms.saturating_sub(rooms.changed_ns(&meta) / 1_000_000);
    !meta.is_dir() && age_ms > limit && files::remove_at(rooms.dir(room), name).unwrap_or(false)
}

/// Only names that we give to results ourselves.
fn is_result(name: &OsStr) -> bool {
    name.to_str().and_then(|name| name.strip_suffix(".json")).is_some_and(|id| {
        let id = id.strip_suffix(".reused").unwrap_or(id);
        id.parse::<RequestId>().is_ok()
    })
}
