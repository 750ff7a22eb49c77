//! How full `rejected/` is.

use super::dirs::{SpoolDir, SpoolDirs};
use super::lane::HELD_MS;
use crate::core::time::Now;
use crate::files;
use std::io;
use std::os::unix::ffi::OsStrExt;

/// The most files that `rejected/` holds (their `.why.json` not counted).
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
    fn has_room_for(self, bytes: u64) -> bool {
        self.files < MAX_REJECTED_FILES && self.bytes.saturating_add(bytes) <= MAX_REJECTED_BYTES
    }
}

/// How much of `rejected/` is used, and since when it is full.
#[derive(Debug, Default)]
pub(super) struct Rejected {
    usage: Option<Usage>,
    full_since: Option<u64>,
}

impl Rejected {
    /// Whether it was full when it was last counted, so that bad files are held.
    pub(super) fn is_full(&self) -> bool {
        self.full_since.is_some()
    }

    pub(super) fn mark_full(&mut self, now: &Now) {
        self.full_since.get_or_insert(now.boot_ms);
    }

    /// Counts a file that was moved there.
    pub(super) fn add(&mut self, bytes: u64) {
        if let Some(usage) = &mut self.usage {
            usage.files += 1;
            usage.bytes = usage.bytes.saturating_add(bytes);
        }
    }

    pub(super) fn fits(&mut self, dirs: &SpoolDirs, bytes: u64, now: &Now) -> bool {
        if self.full_since.is_some_and(|since| now.boot_ms.saturating_sub(since) < HELD_MS) {
            return self.has_room_for(bytes);
        }
        // The count can only be too high: an operator may have removed files since.
        if !self.has_room_for(bytes) {
            self.usage = count(dirs).ok();
        }
        self.has_room_for(bytes)
    }

    /// Whether it was full and has room again. Counts at most once in [`HELD_MS`].
    pub(super) fn has_room_again(&mut self, dirs: &SpoolDirs, now: &Now) -> bool {
        if self.full_since.is_none_or(|since| now.boot_ms.saturating_sub(since) < HELD_MS) {
            return false;
        }
        self.usage = count(dirs).ok();
        let has_room = self.has_room_for(0);
        self.full_since = (!has_room).then_some(now.boot_ms);
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
