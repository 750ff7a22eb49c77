//! Moves files out of a lane after they were decided. An accepted file is renamed into the trash and deleted later,
//! because deleting can be slow, and a client waits for the answer. A rejected file is kept in `rejected/`, with the
//! reason.

use super::dirs::SpoolDir;
use super::error::Error;
use super::home::Spool;
use super::lane::{Content, HELD_MS, Held, IncomingFile, Lane, Unmoved, same_content};
use super::rejected::{HoldReason, REASON_TEMP};
use crate::core::text::{hex, plain_json};
use crate::core::time::Now;
use crate::files::{self, FileStamp, Grade};
use nix::fcntl::renameat;
use nix::unistd::{UnlinkatFlags, unlinkat};
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// How much of its own name a rejected file keeps, in bytes.
const MAX_SAFE_NAME: usize = 100;

/// The result of moving a decided file to the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// It is in the trash.
    Moved,
    Gone,
    /// Another file has its name by now, or it was written again: the next scan reads that file.
    Changed,
}

/// Why a file was rejected: the contents of its `.why.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// The error code.
    pub code: String,
    pub message: String,
    pub field: Option<String>,
    pub line: Option<u64>,
    pub column: Option<u64>,
}

/// The result of rejecting a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RejectOutcome {
    /// It is in `rejected/` under this name.
    Moved(String),
    /// The file is gone, or another one has its name.
    Gone,
    /// It could not be moved. The file is *held*: it stays in the lane, and scans skip it until it changes, `rejected/`
    /// has room again, or it is time to try the move again. Exception: if the lane holds `MAX_HELD` files already and
    /// this one can't be deleted, the next scan returns it again.
    Held(HoldReason),
    /// It could not be moved, and the lane has so many held files that this one was deleted.
    Deleted,
}

/// After so many files that can't be moved, the rest is not tried: most likely none can be moved.
const MAX_FAILURES: usize = 100;

/// The most bad files of a lane that are held. A hook that drops one bad file each second needs six days to reach it.
const MAX_HELD: usize = 500_000;

#[derive(Serialize)]
struct WhyFile<'a> {
    v: u32,
    at: String,
    code: &'a str,
    message: &'a str,
    field: Option<&'a str>,
    line: Option<u64>,
    column: Option<u64>,
    name: String,
    size: u64,
    sha256: Option<String>,
}

impl Spool {
    /// Moves a decided file to the trash, if it is still the file that was decided. Its mode or owner may have changed
    /// meanwhile, because programs that write a file in place often change its mode afterwards.
    ///
    /// # Errors
    /// The file could not be moved. The next scan finds it again, unless it is held: see [`Spool::hold_handled`].
    pub fn finish(&self, found: &IncomingFile) -> Result<Finished, Error> {
        self.move_to_trash(found.lane, &found.name, &found.file_stamp)
    }

    /// Holds a handled file that could not be moved to the trash: it stays in its lane, scans skip it until its content
    /// changes, and every 5 seconds a scan tries again to move it. Returns false if such files are held already.
    pub fn hold_handled(&mut self, found: &IncomingFile, error: &Error, now: &Now) -> bool {
        let is_first = self.unmoved.is_none();
        self.lane(found.lane).held.insert(found.name.clone(), Held::new(found.file_stamp, true));
        self.unmoved.get_or_insert_with(|| Unmoved { why: error.to_string(), tried_ms: now.boot_ms });
        is_first
    }

    /// Why handled files stay in their lanes, if any do.
    #[must_use]
    pub fn unmoved(&self) -> Option<&str> {
        self.unmoved.as_ref().map(|unmoved| unmoved.why.as_str())
    }

    /// If [`HELD_MS`] have passed since the last try, tries again to move the handled files that are held to the trash.
    pub(super) fn retry_handled(&mut self, now: &Now) {
        let is_due = |unmoved: &Unmoved| now.boot_ms.saturating_sub(unmoved.tried_ms) >= HELD_MS;
        if !self.unmoved.as_ref().is_some_and(is_due) {
            return;
        }
        let mut failures = 0;
        let mut why = None;
        for lane in [Lane::Requests, Lane::Events] {
            let handled = self.lane(lane).held.iter().filter(|(_, held)| held.is_handled);
            let handled: Vec<_> = handled.map(|(name, held)| (name.clone(), held.file_stamp)).collect();
            for (name, file_stamp) in handled {
                if failures >= MAX_FAILURES {
                    break;
                }
                match self.move_to_trash(lane, &name, &file_stamp) {
                    Ok(_) => {
                        self.lane(lane).held.remove(&name);
                    }
                    Err(error) => {
                        failures += 1;
                        why = Some(error.to_string());
                    }
                }
            }
        }
        self.unmoved = why.map(|why| Unmoved { why, tried_ms: now.boot_ms });
    }

    fn move_to_trash(&self, lane: Lane, file_name: &OsStr, file_stamp: &FileStamp) -> Result<Finished, Error> {
        let name = format!("{:x}-{:x}-{:x}", file_stamp.dev, file_stamp.ino, file_stamp.ctime_ns);
        let from = self.dir(lane.spool_dir());
        let failed = |error: io::Error| Error::io("move a handled file out of", self.path(lane.spool_dir()), error);
        match files::meta_at(from, file_name).map_err(failed)? {
            None => return Ok(Finished::Gone),
            Some(meta) if !same_content(&meta.file_stamp, file_stamp) => return Ok(Finished::Changed),
            Some(_) => {}
        }
        let trash = self.dir(SpoolDir::Trash);
        match renameat(from, file_name, trash, name.as_str()) {
            Ok(()) => {}
            Err(nix::errno::Errno::ENOENT) => return Ok(Finished::Gone),
            Err(errno) => return Err(failed(errno.into())),
        }
        self.undo_if_other(OsStr::new(&name), (lane, file_name), file_stamp).map_err(failed)
    }

    /// If somebody replaced the file between the check and the rename, moves the new file back.
    fn undo_if_other(&self, name: &OsStr, from: (Lane, &OsStr), file_stamp: &FileStamp) -> io::Result<Finished> {
        let trash = self.dir(SpoolDir::Trash);
        let moved = files::meta_at(trash, name)?;
        if moved.is_none_or(|meta| same_content(&meta.file_stamp, file_stamp)) {
            return Ok(Finished::Moved);
        }
        files::rename_new(trash, name, self.dir(from.0.spool_dir()), from.1)?;
        Ok(Finished::Changed)
    }

    /// Moves a bad file to `rejected/<seq>-<safe name>` and writes the reason beside it. The caller chooses `seq`,
    /// higher for each file.
    ///
    /// # Errors
    /// The file can't be looked at; it stays where it is.
    pub fn reject(&mut self, seq: u64, found: &IncomingFile, why: &Why, now: &Now) -> Result<RejectOutcome, Error> {
        let from = found.lane.spool_dir();
        let path = self.path(from).to_owned();
        let failed = |error: io::Error| Error::io("move a bad file into rejected/ from", &path, error);
        let meta = match files::meta_at(self.dir(from), &found.name).map_err(failed)? {
            Some(meta) if same_content(&meta.file_stamp, &found.file_stamp) => meta,
            _ => return Ok(RejectOutcome::Gone),
        };
        if let Err(reason) = self.rejected.check_room(&self.dirs, meta.on_disk, now) {
            return Ok(self.hold(found, reason, now));
        }
        let name = format!("{seq}-{}", safe_name(&found.name));
        let reason = format!("{name}.why.json");
        // The reason first: a crash in between leaves a reason without a file, never a file without a reason.
        let json = serde_json::to_string_pretty(&why_file(found, why, now)).map_err(|error| failed(error.into()))?;
        let json = plain_json(&json);
        let rejected = self.dir(SpoolDir::Rejected);
        let is_written =
            files::replace_at(rejected, OsStr::new(REASON_TEMP), OsStr::new(&reason), json.as_bytes(), Grade::Fast);
        let from = self.dir(from);
        let error = match is_written.and_then(|()| files::rename_new(from, &found.name, rejected, OsStr::new(&name))) {
            Ok(()) => {
                self.rejected.add(meta.on_disk);
                return Ok(RejectOutcome::Moved(name));
            }
            Err(error) => error,
        };
        let _ = files::remove_at(rejected, OsStr::new(&reason));
        if matches!(files::meta_at(from, &found.name), Ok(None)) {
            return Ok(RejectOutcome::Gone);
        }
        if self.rejected.hold_reason() != Some(HoldReason::NotMoved) {
            tracing::warn!(%error, seq, "could not move a bad file to rejected/; the file stays where it is");
        }
        Ok(self.hold(found, HoldReason::NotMoved, now))
    }

    /// Notes a bad file as held, so that scans skip it. If the lane has [`MAX_HELD`] of them already, deletes it
    /// instead; if that fails, the file stays and is not noted.
    fn hold(&mut self, found: &IncomingFile, reason: HoldReason, now: &Now) -> RejectOutcome {
        self.rejected.note_held(reason, now);
        let held = &self.lane(found.lane).held;
        if held.len() < MAX_HELD || held.values().filter(|held| !held.is_handled).count() < MAX_HELD {
            self.lane(found.lane).held.insert(found.name.clone(), Held::new(found.file_stamp, false));
            return RejectOutcome::Held(reason);
        }
        match files::remove_at(self.dir(found.lane.spool_dir()), &found.name) {
            Ok(_) => RejectOutcome::Deleted,
            Err(error) => {
                tracing::warn!(%error, "could neither move a bad file to rejected/ nor delete it");
                RejectOutcome::Held(reason)
            }
        }
    }

    /// Why bad files are held, if any are.
    #[must_use]
    pub fn hold_reason(&self) -> Option<HoldReason> {
        self.rejected.hold_reason()
    }

    /// Removes at most `max` files from the trash; returns how many it removed. This may take long: see
    /// [`Spool::trash_emptier`].
    #[must_use]
    pub fn empty_trash(&self, max: usize) -> usize {
        remove_some(self.dir(SpoolDir::Trash), max)
    }

    /// Makes an emptier of the trash, which the caller can move to another thread. On some file systems it takes a
    /// millisecond to remove a file, and answers must not wait for that.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn trash_emptier(&self) -> Result<TrashEmptier, Error> {
        let dir = self.dir(SpoolDir::Trash).try_clone_to_owned();
        Ok(TrashEmptier { dir: dir.map_err(|error| Error::io("open the folder", self.path(SpoolDir::Trash), error))? })
    }
}

/// Deletes files that were moved to the trash.
#[derive(Debug)]
pub struct TrashEmptier {
    dir: OwnedFd,
}

impl TrashEmptier {
    /// As [`Spool::empty_trash`].
    #[must_use]
    pub fn empty_trash(&self, max: usize) -> usize {
        remove_some(&self.dir, max)
    }
}

fn remove_some(dir: impl AsFd, max: usize) -> usize {
    let Ok((names, _)) = files::names(&dir, max, |_| true) else { return 0 };
    let removed = |name: &OsString| {
        unlinkat(&dir, name.as_os_str(), UnlinkatFlags::NoRemoveDir).is_ok()
            || unlinkat(&dir, name.as_os_str(), UnlinkatFlags::RemoveDir).is_ok()
    };
    names.iter().filter(|name| removed(name)).count()
}

fn why_file<'a>(found: &IncomingFile, why: &'a Why, now: &Now) -> WhyFile<'a> {
    WhyFile {
        v: 1,
        at: now.rfc3339(),
        code: &why.code,
        message: &why.message,
        field: why.field.as_deref(),
        line: why.line,
        column: why.column,
        name: readable_name(&found.name),
        size: found.file_stamp.size,
        sha256: found.sha256().map(|hash| hex(&hash)),
    }
}

/// A name that is harmless in a path, a shell and a terminal.
#[must_use]
pub(crate) fn safe_name(name: &OsStr) -> String {
    let safe = |byte: &u8| if byte.is_ascii_alphanumeric() || b"._-".contains(byte) { char::from(*byte) } else { '_' };
    name.as_bytes().iter().take(MAX_SAFE_NAME).map(safe).collect()
}

/// A name to show: as it is if it is plain text, otherwise with escapes.
#[must_use]
pub(crate) fn readable_name(name: &OsStr) -> String {
    match name.to_str() {
        Some(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => name.as_bytes().escape_ascii().to_string(),
    }
}

impl IncomingFile {
    /// The reason that the scan found, for a file that can't be read as a JSON object.
    #[must_use]
    pub fn why(&self) -> Option<Why> {
        match &self.content {
            Content::Whole { .. } => None,
            Content::Bad { code, message, line, column, .. } => Some(Why {
                code: (*code).to_owned(),
                message: message.clone(),
                field: None,
                line: *line,
                column: *column,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_safe_name_is_short_and_plain() {
        assert_eq!(safe_name(OsStr::from_bytes(b"a b\xff/\x1b[31m.json")), "a_b___[31m.json".replace('[', "_"));
        assert_eq!(safe_name(OsStr::new(&"x".repeat(255))).len(), 100);
    }

    #[test]
    fn a_readable_name_shows_what_a_terminal_must_not_get() {
        assert_eq!(readable_name(OsStr::new("é.json")), "é.json");
        assert_eq!(readable_name(OsStr::from_bytes(b"a\x1b\xff")), "a\\x1b\\xff");
        assert_eq!(readable_name(OsStr::new("a\x1b[31m\n")), "a\\x1b[31m\\n");
    }
}
