//! How full `rejected/` is, and why bad files are held.

use super::dirs::{SpoolDir, SpoolDirs};
use super::lane::HELD_MS;
use crate::core::time::Now;
use crate::files;
use std::io;
use std::os::unix::ffi::OsStrExt;

/// The most files that `rejected/` holds, without their `.why.json` files.
const MAX_REJECTED_FILES: u64 = 1_000;
/// The most bytes that they take on the disk together.
const MAX_REJECTED_BYTES: u64 = 64 * 1024 * 1024;
/// The fixed temporary name under which a reason is written.
pub(super) const REASON_TEMP: &str = ".tasuki-new";

#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    files: u64,
    bytes: u64,
}

impl Usage {
    /// An empty folder takes a file of any size, because emptying the folder would not help.
    fn has_room_for(self, bytes: u64) -> bool {
        let fits = self.files < MAX_REJECTED_FILES && self.bytes.saturating_add(bytes) <= MAX_REJECTED_BYTES;
        fits || self.files == 0
    }
}

/// Why bad files are held: they stay in their lane, and scans skip them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldReason {
    /// `rejected/` is full.
    Full,
    /// The system could not move a file to `rejected/`, or could not count the files there.
    NotMoved,
}

/// How much of `rejected/` is used, and why bad files are held.
#[derive(Debug, Default)]
pub(super) struct Rejected {
    usage: Option<Usage>,
    /// When `rejected/` was first found full since the last check, in milliseconds since boot; `None` if no file is
    /// held for that reason.
    full_checked_ms: Option<u64>,
    /// The size in bytes of the smallest file for which there was no room.
    smallest_bytes: Option<u64>,
    /// When a move first failed since the last retry, in milliseconds since boot; `None` if no file is held for that
    /// reason.
    not_moved_ms: Option<u64>,
}

impl Rejected {
    /// Why bad files are held, if any are: a full folder comes first.
    pub(super) fn hold_reason(&self) -> Option<HoldReason> {
        let full = self.full_checked_ms.map(|_| HoldReason::Full);
        full.or(self.not_moved_ms.map(|_| HoldReason::NotMoved))
    }

    /// Notes that a file is held.
    pub(super) fn note_held(&mut self, reason: HoldReason, now: &Now) {
        let since = match reason {
            HoldReason::Full => &mut self.full_checked_ms,
            HoldReason::NotMoved => &mut self.not_moved_ms,
        };
        since.get_or_insert(now.boot_ms);
    }

    /// Counts a file that was moved to `rejected/`.
    pub(super) fn add(&mut self, bytes: u64) {
        if let Some(usage) = &mut self.usage {
            usage.files += 1;
            usage.bytes = usage.bytes.saturating_add(bytes);
        }
    }

    /// Checks that `rejected/` has room for a file that takes so many bytes on the disk. The error says why the file is
    /// to be held.
    pub(super) fn check_room(&mut self, dirs: &SpoolDirs, bytes: u64, now: &Now) -> Result<(), HoldReason> {
        let was_full = self.full_checked_ms.is_some_and(|since| now.boot_ms.saturating_sub(since) < HELD_MS);
        // The count can only be too high: an operator may have removed files since.
        if !was_full && !self.has_room_for(bytes) {
            self.usage = count(dirs).ok();
        }
        match self.usage {
            Some(usage) if usage.has_room_for(bytes) => Ok(()),
            Some(_) => {
                self.smallest_bytes = Some(self.smallest_bytes.map_or(bytes, |smallest| smallest.min(bytes)));
                Err(HoldReason::Full)
            }
            None => Err(HoldReason::NotMoved),
        }
    }

    /// Whether held files are to be tried again: [`HELD_MS`] have passed since some were held, and `rejected/` has room
    /// for the smallest of them.
    pub(super) fn is_time_to_retry(&mut self, dirs: &SpoolDirs, now: &Now) -> bool {
        let is_over = |since: Option<u64>| since.is_some_and(|since| now.boot_ms.saturating_sub(since) >= HELD_MS);
        if !is_over(self.full_checked_ms) && !is_over(self.not_moved_ms) {
            return false;
        }
        self.usage = count(dirs).ok();
        let has_room = self.has_room_for(self.smallest_bytes.unwrap_or(0));
        if self.usage.is_none() {
            self.full_checked_ms = self.full_checked_ms.map(|_| now.boot_ms);
            self.not_moved_ms = self.not_moved_ms.map(|_| now.boot_ms);
        } else {
            self.full_checked_ms = (!has_room).then_some(now.boot_ms);
            self.not_moved_ms = None;
            self.smallest_bytes = self.smallest_bytes.filter(|_| !has_room);
        }
        has_room
    }

    fn has_room_for(&self, bytes: u64) -> bool {
        self.usage.is_some_and(|usage| usage.has_room_for(bytes))
    }
}

fn count(dirs: &SpoolDirs) -> io::Result<Usage> {
    let dir = dirs.dir(SpoolDir::Rejected);
    let (names, _) = files::names(dir, 4 * MAX_REJECTED_FILES as usize, |name| {
        !name.as_bytes().ends_with(b".why.json") && name != REASON_TEMP
    })?;
    let mut usage = Usage::default();
    for name in names {
        if let Some(meta) = files::meta_at(dir, &name)? {
            usage.files += 1;
            usage.bytes = usage.bytes.saturating_add(meta.on_disk);
        }
    }
    Ok(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_larger_than_the_folder_may_be_has_room_in_an_empty_one_only() {
        let used = |files, bytes| Usage { files, bytes };
        assert!(used(0, 0).has_room_for(MAX_REJECTED_BYTES + 1));
        assert!(!used(1, 1).has_room_for(MAX_REJECTED_BYTES));
        assert!(used(1, 1).has_room_for(MAX_REJECTED_BYTES - 1));
        assert!(!used(MAX_REJECTED_FILES, 0).has_room_for(1));
    }
}
