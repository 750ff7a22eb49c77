//! Takes files in: lists the directory, opens each file safely, and hands on each complete one with its bytes. A file
//! that is not ready is left alone until it has not changed for a while.

use super::error::Error;
use super::home::Spool;
use super::json::{Flaw, check_object};
use super::lane::{Content, HELD_MS, Held, IncomingFile, Lane, MAX_INPUT_BYTES, WaitingFiles};
use super::order;
use crate::core::time::Now;
use crate::files::{self, FileId, Unfit};
use nix::errno::Errno;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// How long an incomplete or unreadable file must stay unchanged before it is rejected, in milliseconds: a writer that
/// cannot rename may still be writing it in place.
const PATIENCE_MS: u64 = 2_000;

/// The most names that one listing holds in memory; the rest comes with the next listing.
const MAX_LISTED: usize = 100_000;

/// How many held files are looked at with each listing; the others only every [`HELD_MS`].
const FEW_HELD: usize = 1_000;

/// The result of one scan.
#[derive(Debug, Default)]
pub struct Scan {
    /// In the order in which they are to be decided.
    pub found: Vec<IncomingFile>,
    /// When to scan again although no hint comes: a file waits to be finished, or for room in `rejected/`.
    pub look_again: Option<Duration>,
    /// There may be more to take at once. Only a scan that says `false` here, and found nothing, has listed the folder
    /// after it was called and seen all of it.
    pub more: bool,
    /// Counts the listings of this lane; these files are of this one.
    pub listing: u64,
    /// All that the listing named has been handed out by now: whatever lay in the folder when it began is taken.
    pub whole: bool,
}

/// What a look at one file gave.
enum Look {
    Nothing,
    Later(u64),
    Found(IncomingFile),
}

impl Spool {
    /// Starts a lane's scan again from the first name: a file that was found and not taken comes again before the files
    /// behind it.
    pub fn begin_again(&mut self, lane: Lane) {
        self.lane(lane).backlog.clear();
    }

    /// Takes the next files of a lane: at most `max_files`, and not many more than `max_bytes` together. It changes
    /// nothing.
    ///
    /// # Errors
    /// The folder is open to others, or can't be read. A file that can't be read is returned as a bad file instead.
    pub fn scan(&mut self, lane: Lane, max_files: usize, max_bytes: usize, now: &Now) -> Result<Scan, Error> {
        self.dirs.check_intake(lane.spool_dir())?;
        self.release_held(now);
        let fresh = self.lane(lane).backlog.is_empty();
        if fresh {
            self.list(lane, now)?;
        }
        let mut scan = Scan::default();
        let mut bytes = 0usize;
        let mut wait_ms: Option<u64> = None;
        while scan.found.len() < max_files.max(1) && (bytes < max_bytes || scan.found.is_empty()) {
            let Some(name) = self.lane(lane).backlog.pop_front() else { break };
            match self.look_at(lane, name, now)? {
                Look::Nothing => {}
                Look::Later(ms) => wait_ms = Some(wait_ms.map_or(ms, |known| known.min(ms))),
                Look::Found(found) => {
                    bytes = bytes
                        .saturating_add(usize::try_from(found.file_id.size.min(MAX_INPUT_BYTES)).unwrap_or(usize::MAX));
                    scan.found.push(found);
                }
            }
        }
        let state = self.lane(lane);
        if !state.held.is_empty() {
            wait_ms = Some(wait_ms.map_or(HELD_MS, |known| known.min(HELD_MS)));
        }
        scan.listing = state.listings;
        scan.whole = state.backlog.is_empty() && !state.cut;
        scan.more = !state.backlog.is_empty() || !fresh || state.cut;
        scan.look_again = wait_ms.map(|ms| Duration::from_millis(ms.max(1)));
        Ok(scan)
    }

    /// Lists a lane again and forgets files that are gone. Held files take no place in the listing: however many there
    /// are, later files are found.
    fn list(&mut self, lane: Lane, now: &Now) -> Result<(), Error> {
        let mut held = std::mem::take(&mut self.lane(lane).held);
        let listed = self.list_beside(lane, &mut held, now);
        let state = self.lane(lane);
        state.held = held;
        let (listed, cut) = listed?;
        let sorted = match lane {
            Lane::Requests => order::by_time(listed),
            Lane::Events => order::events(listed),
        };
        if !state.waiting.is_empty() {
            let present: std::collections::HashSet<&OsString> = sorted.iter().collect();
            state.waiting.retain(|name, _| present.contains(name));
        }
        state.backlog = sorted.into();
        state.cut = cut;
        Ok(())
    }

    /// The names that are not held, and those that are and have changed, each with its time; and whether there were
    /// more.
    fn list_beside(
        &mut self,
        lane: Lane,
        held: &mut HashMap<OsString, Held>,
        now: &Now,
    ) -> Result<(Vec<(OsString, i64)>, bool), Error> {
        let state = self.lane(lane);
        state.listings += 1;
        let listing = state.listings;
        let looks = held.len() <= FEW_HELD || now.boot_ms.saturating_sub(state.looked_ms) >= HELD_MS;
        if looks {
            state.looked_ms = now.boot_ms;
        }
        let failed = |spool: &Spool, error| Error::io("list the folder", spool.path(lane.spool_dir()), error);
        let read = |name: &OsStr| !name.as_bytes().starts_with(b".") && !name.as_bytes().ends_with(b".tmp");
        let is_new = |name: &OsStr| match held.get_mut(name) {
            Some(known) => {
                known.seen = listing;
                false
            }
            None => read(name),
        };
        let (mut names, cut) =
            files::names(self.dir(lane.spool_dir()), MAX_LISTED, is_new).map_err(|error| failed(self, error))?;
        if !cut {
            held.retain(|_, known| known.seen == listing);
        }
        if looks {
            names.extend(held.keys().cloned());
        }
        let mut listed = Vec::with_capacity(names.len());
        for name in names {
            let meta = files::meta_at(self.dir(lane.spool_dir()), &name).map_err(|error| failed(self, error))?;
            let same = held.get(&name).map(|known| known.file_id);
            if let Some(meta) = meta.filter(|meta| same != Some(meta.file_id)) {
                held.remove(&name);
                listed.push((name, meta.file_id.mtime_ns));
            }
        }
        Ok((listed, cut))
    }

    fn look_at(&mut self, lane: Lane, name: OsString, now: &Now) -> Result<Look, Error> {
        let meta = match files::meta_at(self.dir(lane.spool_dir()), &name) {
            Ok(Some(meta)) => meta,
            Ok(None) => return Ok(self.forget(lane, &name)),
            Err(error) => return Err(Error::io("look at a file in", self.path(lane.spool_dir()), error)),
        };
        let quiet = match self.quiet_ms(lane, &name, &meta.file_id, now) {
            Some(ms) if ms < PATIENCE_MS => return Ok(Look::Later(PATIENCE_MS - ms)),
            known => known.is_some(),
        };
        match files::read_at(self.dir(lane.spool_dir()), &name, MAX_INPUT_BYTES) {
            Ok((bytes, file_id)) => Ok(self.judge(lane, name, file_id, bytes, quiet, now)),
            Err(Unfit::Missing) => Ok(self.forget(lane, &name)),
            Err(Unfit::Io(error)) if is_shortage(&error) => {
                Err(Error::io("open a file in", self.path(lane.spool_dir()), error))
            }
            Err(unfit) => {
                // What can't become a file that may be read needs no patience.
                let hopeless = matches!(unfit, Unfit::Link | Unfit::NotRegular | Unfit::Foreign);
                if quiet || hopeless {
                    let content = bad(unfit.code(), unfit.to_string());
                    Ok(self.found(lane, name, meta.file_id, content))
                } else {
                    Ok(self.wait(lane, name, meta.file_id, now))
                }
            }
        }
    }

    /// Decides about bytes that were read; `quiet` says that nobody has changed them for long enough.
    fn judge(&mut self, lane: Lane, name: OsString, file_id: FileId, bytes: Vec<u8>, quiet: bool, now: &Now) -> Look {
        let flaw = match check_object(&bytes) {
            Ok(()) if lane.allows(&name) => {
                let sha256 = Sha256::digest(&bytes).into();
                return self.found(lane, name, file_id, Content::Whole { bytes, sha256 });
            }
            Ok(()) => Flaw { code: "bad_name", message: bad_name(lane).to_owned(), line: None, column: None },
            Err(_) if !lane.allows(&name) => {
                Flaw { code: "bad_name", message: bad_name(lane).to_owned(), line: None, column: None }
            }
            Err(flaw) => flaw,
        };
        if !quiet {
            return self.wait(lane, name, file_id, now);
        }
        let Flaw { code, message, line, column } = flaw;
        let sha256 = Some(Sha256::digest(&bytes).into());
        self.found(lane, name, file_id, Content::Bad { code, message, line, column, sha256, bytes: Some(bytes) })
    }

    fn found(&mut self, lane: Lane, name: OsString, file_id: FileId, content: Content) -> Look {
        let state = self.lane(lane);
        state.waiting.remove(&name);
        Look::Found(IncomingFile { lane, name, file_id, content })
    }

    fn forget(&mut self, lane: Lane, name: &OsStr) -> Look {
        let state = self.lane(lane);
        state.waiting.remove(name);
        Look::Nothing
    }

    fn wait(&mut self, lane: Lane, name: OsString, file_id: FileId, now: &Now) -> Look {
        self.lane(lane).waiting.insert(name, WaitingFiles { file_id, since_ms: now.boot_ms });
        Look::Later(PATIENCE_MS)
    }

    /// How long a waiting file has lain in this very state, counted by boot time since we saw it first.
    fn quiet_ms(&mut self, lane: Lane, name: &OsStr, file_id: &FileId, now: &Now) -> Option<u64> {
        let waiting = self.lane(lane).waiting.get(name)?;
        (waiting.file_id == *file_id).then(|| now.boot_ms.saturating_sub(waiting.since_ms))
    }

    /// After a while, everything that found no room in `rejected/` is offered again.
    fn release_held(&mut self, now: &Now) {
        if self.rejected.has_room_again(&self.dirs, now) {
            self.requests.held.clear();
            self.events.held.clear();
        }
    }
}

fn bad(code: &'static str, message: String) -> Content {
    Content::Bad { code, message, line: None, column: None, sha256: None, bytes: None }
}

fn bad_name(lane: Lane) -> &'static str {
    match lane {
        Lane::Requests => {
            "the name is not <request id>.json; a request id is 1 to 128 of A-Z a-z 0-9 . _ - and does not end in \
             .reused"
        }
        Lane::Events => "the name does not end in .json",
    }
}

/// Whether we lack something, rather than the file: then the scan fails, and no file is blamed.
fn is_shortage(error: &std::io::Error) -> bool {
    let short = [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, Errno::EINTR];
    error.raw_os_error().is_some_and(|code| short.contains(&Errno::from_raw(code)))
}
