//! Checks a state file without changing it. redb writes to each file that it opens, but tasuki must not write to a file
//! of a newer version. So redb opens an overlay, which keeps all changes in memory.

use super::error::Error;
use super::tables::{self, SCHEMA};
use redb::{Database, ReadableDatabase};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Memory that may be used for pages, in bytes.
const CACHE_BYTES: usize = 1024 * 1024;
/// Changes are kept in pieces of this many bytes.
const PIECE: u64 = 4096;

/// Checks every page of the file, that its schema is not newer than this program's, and that it belongs to this home.
/// The file is not changed. `home`: the number of the home that is open, if one is. The claims that its sidecar makes
/// in tmux have that number, so it could not reach the agents of another home.
///
/// # Errors
/// [`Error::Unreadable`], [`Error::NotAllowed`], [`Error::NewerSchema`], [`Error::OtherHome`], or what the disk
/// refused.
pub(super) fn check(path: &Path, home: Option<u64>) -> Result<(), Error> {
    let overlay = Overlay::of(path).map_err(|error| Error::of_opening(path, &error))?;
    let mut builder = Database::builder();
    // Without the check, redb trusts a damaged page and panics when it reads it.
    builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
    let database = builder.create_with_backend(overlay).map_err(|error| Error::of_database(path, error))?;
    // A file without one of these numbers is not a state file; opening it reports that.
    if let Some(found) = number(&database, "schema").filter(|found| *found > SCHEMA) {
        return Err(Error::NewerSchema { path: path.to_path_buf(), found });
    }
    match number(&database, "home").zip(home) {
        Some((found, own)) if found != own => Err(Error::OtherHome { path: path.to_path_buf() }),
        Some(_) | None => Ok(()),
    }
}

fn number(database: &Database, name: &str) -> Option<u64> {
    let table = database.begin_read().ok()?.open_table(tables::META).ok()?;
    table.get(name).ok()?.map(|found| found.value())
}

/// A file, with changes that are kept in memory.
#[derive(Debug)]
struct Overlay {
    file: File,
    changes: Mutex<Changes>,
}

#[derive(Debug)]
struct Changes {
    /// The length of the overlay, in bytes.
    length: u64,
    /// Bytes of the file from here on are not read any more: the overlay was shortened to this length once.
    file_end: u64,
    /// The pieces that were changed, by number.
    pieces: BTreeMap<u64, Box<[u8]>>,
}

impl Overlay {
    fn of(path: &Path) -> io::Result<Overlay> {
        // Opening a pipe would block until somebody writes to it.
        let file = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
        let meta = file.metadata()?;
        let length = meta.len();
        if !meta.is_file() || length == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is empty, or it is not a regular file"));
        }
        let changes = Changes { length, file_end: length, pieces: BTreeMap::new() };
        Ok(Overlay { file, changes: Mutex::new(changes) })
    }

    /// One piece with its changes; zeros beyond the end of the file.
    fn piece(&self, changes: &Changes, number: u64) -> io::Result<Box<[u8]>> {
        if let Some(piece) = changes.pieces.get(&number) {
            return Ok(piece.clone());
        }
        let start = number * PIECE;
        let mut piece = vec![0; PIECE as usize].into_boxed_slice();
        let there = changes.file_end.saturating_sub(start).min(PIECE) as usize;
        self.file.read_exact_at(&mut piece[..there], start)?;
        Ok(piece)
    }
}

/// The pieces that a range of bytes touches: each piece's number, where the range begins in it, and how much of it.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + length as u64;
    let mut at = offset;
    std::iter::from_fn(move || {
        let (number, within) = (at / PIECE, at % PIECE);
        let many = (PIECE - within).min(end.saturating_sub(at));
        at += many;
        (many > 0).then_some((number, within as usize, many as usize))
    })
}

impl redb::StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changes.lock().unwrap_or_else(PoisonError::into_inner).length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > changes.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // Most of a file has no changes and can be read directly.
        let end = offset + out.len() as u64;
        if end <= changes.file_end && changes.pieces.range(offset / PIECE..end.div_ceil(PIECE)).next().is_none() {
            return self.file.read_exact_at(out, offset);
        }
        let mut done = 0;
        for (number, within, many) in pieces(offset, out.len()) {
            let piece = self.piece(&changes, number)?;
            out[done..done + many].copy_from_slice(&piece[within..within + many]);
            done += many;
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if length < changes.length && !length.is_multiple_of(PIECE) {
            let mut last = self.piece(&changes, length / PIECE)?;
            last[(length % PIECE) as usize..].fill(0);
            changes.pieces.insert(length / PIECE, last);
        }
        changes.pieces.retain(|number, _| number * PIECE < length);
        changes.file_end = changes.file_end.min(length);
        changes.length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut done = 0;
        for (number, within, many) in pieces(offset, data.len()) {
            let mut piece = self.piece(&changes, number)?;
            piece[within..within + many].copy_from_slice(&data[done..done + many]);
            changes.pieces.insert(number, piece);
            done += many;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::StorageBackend;

    #[test]
    fn an_overlay_reads_back_its_writes_and_leaves_the_file_unchanged() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("file");
        let bytes: Vec<u8> = (0..10_000_u32).map(|number| (number % 251) as u8).collect();
        std::fs::write(&path, &bytes).expect("a file");
        let overlay = Overlay::of(&path).expect("readable");
        let mut model = bytes.clone();
        let read = |overlay: &Overlay, at: usize, many: usize| {
            let mut out = vec![0; many];
            overlay.read(at as u64, &mut out).map(|()| out)
        };
        for (at, many) in [(0, 1), (4_095, 2), (100, 9_000), (8_192, 1_808)] {
            let data = vec![at as u8 ^ 0x5a; many];
            overlay.write(at as u64, &data).expect("written");
            model[at..at + many].copy_from_slice(&data);
            assert_eq!(read(&overlay, 0, model.len()).expect("readable"), model);
        }
        for length in [5_000, 12_000, 4_096, 20_000] {
            overlay.set_len(length as u64).expect("a length");
            model.resize(length, 0);
            assert_eq!(read(&overlay, 0, length).expect("readable"), model, "{length}");
            assert!(read(&overlay, length - 1, 2).is_err());
        }
        assert_eq!(std::fs::read(&path).expect("readable"), bytes);
    }
}
