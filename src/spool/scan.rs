//! Finds the files of a lane: lists the folder, opens each file safely, and returns each complete one with its bytes.
//! An incomplete file is read again later; it counts as bad when it has not changed for 2 seconds.

use super::error::Error;
use super::home::Spool;
use super::json::{Flaw, check_object};
use super::lane::{Content, HELD_MS, Held, IncomingFile, IncompleteFile, Lane, MAX_INPUT_BYTES, is_candidate};
use super::order;
use crate::core::time::Now;
use crate::files::{self, FileStamp, Unfit};
use nix::errno::Errno;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

/// How long an incomplete or unreadable file must stay unchanged before it is rejected, in milliseconds: a writer that
/// cannot rename may still be writing it in place.
const PATIENCE_MS: u64 = 2_000;

/// The most names that one listing returns; the next listing returns the rest.
const MAX_LISTED: usize = 100_000;

/// Up to this number, held files are checked at each listing. If there are more, they are checked every [`HELD_MS`].
const FEW_HELD: usize = 1_000;

/// The result of one scan.
#[derive(Debug, Default)]
pub struct Scan {
    /// In the order in which they are to be decided.
    pub found: Vec<IncomingFile>,
    /// When to scan again even without a hint, because a file is incomplete or held.
    pub look_again: Option<Duration>,
    /// Whether to scan again immediately, because more files may be there. If `false`, this scan listed the folder
    /// again and looked at every candidate in it that is not held.
    pub more: bool,
    /// The number of the listing that these files are from.
    pub listing: u64,
    /// Whether this scan ended the listing: every name of the listing has been looked at. Files that are incomplete or
    /// held were not returned.
    pub is_listing_done: bool,
}

/// The result of a look at one file.
enum Look {
    Nothing,
    /// The file is not ready: look again after so many milliseconds.
    Later(u64),
    Found(IncomingFile),
}

impl Spool {
    /// Makes the next scan list the folder again, so that it also returns, in order, files that were found before and
    /// not decided.
    pub fn list_again(&mut self, lane: Lane) {
        self.lane(lane).backlog.clear();
    }

    /// Makes the next scan of each lane list its folder again.
    pub fn list_all_again(&mut self) {
        self.list_again(Lane::Events);
        self.list_again(Lane::Requests);
    }

    /// Reads the next files of a lane: at most `max_files`, and until they exceed `max_bytes` together. It changes no
    /// file.
    ///
    /// # Errors
    /// Other users can open the folder, it can't be read, or the process lacks descriptors or memory. A file that can't
    /// be read for another reason is returned as a bad file. After an error, the next scan lists the folder again,
    /// because files that this one had found were not returned.
    pub fn scan(&mut self, lane: Lane, max_files: usize, max_bytes: usize, now: &Now) -> Result<Scan, Error> {
        let scanned = self.scan_next(lane, max_files, max_bytes, now);
        if scanned.is_err() {
            self.list_again(lane);
        }
        scanned
    }

    fn scan_next(&mut self, lane: Lane, max_files: usize, max_bytes: usize, now: &Now) -> Result<Scan, Error> {
        self.dirs.check_intake(lane.spool_dir())?;
        self.release_held(now);
        self.retry_handled(now);
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
                    bytes = bytes.saturating_add(
                        usize::try_from(found.file_stamp.size.min(MAX_INPUT_BYTES)).unwrap_or(usize::MAX),
                    );
                    scan.found.push(found);
                }
            }
        }
        let state = self.lane(lane);
        if !state.held.is_empty() {
            wait_ms = Some(wait_ms.map_or(HELD_MS, |known| known.min(HELD_MS)));
        }
        scan.listing = state.listings;
        scan.is_listing_done = state.backlog.is_empty() && !state.is_truncated;
        scan.more = !state.backlog.is_empty() || !fresh || state.is_truncated;
        scan.look_again = wait_ms.map(|ms| Duration::from_millis(ms.max(1)));
        Ok(scan)
    }

    /// Lists a lane again and forgets files that are gone. Held files do not count against [`MAX_LISTED`], so they
    /// can't hide other files.
    fn list(&mut self, lane: Lane, now: &Now) -> Result<(), Error> {
        let mut held = std::mem::take(&mut self.lane(lane).held);
        let listed = self.list_unheld(lane, &mut held, now);
        let state = self.lane(lane);
        state.held = held;
        let (listed, cut) = listed?;
        let sorted = match lane {
            Lane::Requests => order::by_time(listed),
            Lane::Events => order::events(listed),
        };
        if !state.incomplete.is_empty() {
            let present: std::collections::HashSet<&OsString> = sorted.iter().collect();
            state.incomplete.retain(|name, _| present.contains(name));
        }
        state.backlog = sorted.into();
        state.is_truncated = cut;
        Ok(())
    }

    /// Lists the names that are not held, and those that are held and have changed, each with its modification time.
    /// Also returns whether names were left out because there were too many.
    fn list_unheld(
        &mut self,
        lane: Lane,
        held: &mut HashMap<OsString, Held>,
        now: &Now,
    ) -> Result<(Vec<(OsString, i64)>, bool), Error> {
        let state = self.lane(lane);
        state.listings += 1;
        let listing = state.listings;
        let checks_held = held.len() <= FEW_HELD || now.boot_ms.saturating_sub(state.held_checked_ms) >= HELD_MS;
        if checks_held {
            state.held_checked_ms = now.boot_ms;
        }
        let failed = |spool: &Spool, error| Error::io("list the folder", spool.path(lane.spool_dir()), error);
        let is_unheld = |name: &OsStr| match held.get_mut(name) {
            Some(known) => {
                known.seen = listing;
                false
            }
            None => is_candidate(name),
        };
        let (mut names, cut) =
            files::names(self.dir(lane.spool_dir()), MAX_LISTED, is_unheld).map_err(|error| failed(self, error))?;
        if !cut {
            held.retain(|_, known| known.seen == listing);
        }
        if checks_held {
            names.extend(held.keys().cloned());
        }
        let mut listed = Vec::with_capacity(names.len());
        for name in names {
            let meta = files::meta_at(self.dir(lane.spool_dir()), &name).map_err(|error| failed(self, error))?;
            let is_same = |stamp: &FileStamp| held.get(&name).is_some_and(|known| known.is_same(stamp));
            if let Some(meta) = meta.filter(|meta| !is_same(&meta.file_stamp)) {
                held.remove(&name);
                listed.push((name, meta.file_stamp.mtime_ns));
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
        let quiet = match self.quiet_ms(lane, &name, &meta.file_stamp, now) {
            Some(ms) if ms < PATIENCE_MS => return Ok(Look::Later(PATIENCE_MS - ms)),
            known => known.is_some(),
        };
        match files::read_at(self.dir(lane.spool_dir()), &name, MAX_INPUT_BYTES) {
            Ok((bytes, file_stamp)) => Ok(self.check_content(lane, name, file_stamp, bytes, quiet, now)),
            Err(Unfit::Missing) => Ok(self.forget(lane, &name)),
            Err(Unfit::Io(error)) if is_shortage(&error) => {
                Err(Error::io("open a file in", self.path(lane.spool_dir()), error))
            }
            Err(unfit) => {
                // A link, a folder or another user's file will not become readable by waiting.
                let hopeless = matches!(unfit, Unfit::Link | Unfit::NotRegular | Unfit::Foreign);
                if quiet || hopeless {
                    let content = bad(unfit.code(), unfit.to_string());
                    Ok(self.found(lane, name, meta.file_stamp, content))
                } else {
                    Ok(self.wait(lane, name, meta.file_stamp, now))
                }
            }
        }
    }

    /// Checks the bytes of a file. `quiet`: the file has not changed for [`PATIENCE_MS`].
    fn check_content(
        &mut self,
        lane: Lane,
        name: OsString,
        file_stamp: FileStamp,
        bytes: Vec<u8>,
        quiet: bool,
        now: &Now,
    ) -> Look {
        let flaw = match check_object(&bytes) {
            Ok(()) if lane.allows(&name) => {
                let sha256 = Sha256::digest(&bytes).into();
                return self.found(lane, name, file_stamp, Content::Whole { bytes, sha256 });
            }
            Ok(()) => Flaw { code: "bad_name", message: bad_name(lane).to_owned(), line: None, column: None },
            Err(_) if !lane.allows(&name) => {
                Flaw { code: "bad_name", message: bad_name(lane).to_owned(), line: None, column: None }
            }
            Err(flaw) => flaw,
        };
        if !quiet {
            return self.wait(lane, name, file_stamp, now);
        }
        let Flaw { code, message, line, column } = flaw;
        let sha256 = Some(Sha256::digest(&bytes).into());
        self.found(lane, name, file_stamp, Content::Bad { code, message, line, column, sha256, bytes: Some(bytes) })
    }

    fn found(&mut self, lane: Lane, name: OsString, file_stamp: FileStamp, content: Content) -> Look {
        let state = self.lane(lane);
        state.incomplete.remove(&name);
        Look::Found(IncomingFile { lane, name, file_stamp, content })
    }

    fn forget(&mut self, lane: Lane, name: &OsStr) -> Look {
        let state = self.lane(lane);
        state.incomplete.remove(name);
        Look::Nothing
    }

    fn wait(&mut self, lane: Lane, name: OsString, file_stamp: FileStamp, now: &Now) -> Look {
        self.lane(lane).incomplete.insert(name, IncompleteFile { file_stamp, since_ms: now.boot_ms });
        Look::Later(PATIENCE_MS)
    }

    /// How long an incomplete file has been unchanged, in milliseconds of boot time since tasuki first saw it in this
    /// state. `None` if the file is not known to be incomplete, or has changed.
    fn quiet_ms(&mut self, lane: Lane, name: &OsStr, file_stamp: &FileStamp, now: &Now) -> Option<u64> {
        let incomplete = self.lane(lane).incomplete.get(name)?;
        (incomplete.file_stamp == *file_stamp).then(|| now.boot_ms.saturating_sub(incomplete.since_ms))
    }

    /// When bad files that are held are to be tried again, forgets which these are, so that the next listing returns
    /// them.
    fn release_held(&mut self, now: &Now) {
        if self.rejected.is_time_to_retry(&self.dirs, now) {
            self.requests.held.retain(|_, held| held.is_handled);
            self.events.held.retain(|_, held| held.is_handled);
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
             .reused, in upper or lower case"
        }
        Lane::Events => "the name does not end in .json",
    }
}

/// Whether the error means that the process lacks descriptors or memory, or was interrupted. Then the scan fails,
/// instead of calling the file bad.
fn is_shortage(error: &std::io::Error) -> bool {
    let short = [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, Errno::EINTR];
    error.raw_os_error().is_some_and(|code| short.contains(&Errno::from_raw(code)))
}
