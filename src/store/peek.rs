//! Reads a state file without changing it. Opening it as a database would write to it, if only to say that it is open;
//! and a file that a newer tasuki wrote must not be written to.

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
/// What is written is kept in pieces of this many bytes.
const PIECE: u64 = 4096;

/// Checks every page of the file, and that its schema is not newer than ours. What passes may be opened without another
/// check; of what does not, nothing was written.
///
/// # Errors
/// [`Error::Unreadable`], [`Error::NewerSchema`].
pub(super) fn check(path: &Path) -> Result<(), Error> {
    let unreadable = |why: String| Error::Unreadable { path: path.to_path_buf(), why };
    let shadow = Shadow::of(path).map_err(|error| unreadable(error.to_string()))?;
    let mut builder = Database::builder();
    // Without the check redb takes a damaged page for what it seems to be, and panics over what it finds there.
    builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
    let database = builder.create_with_backend(shadow).map_err(|error| unreadable(error.to_string()))?;
    match schema(&database) {
        Some(found) if found > SCHEMA => Err(Error::NewerSchema { path: path.to_path_buf(), found }),
        // A file without a version is not ours: opening it says so.
        Some(_) | None => Ok(()),
    }
}

fn schema(database: &Database) -> Option<u64> {
    let table = database.begin_read().ok()?.open_table(tables::META).ok()?;
    table.get("schema").ok()?.map(|found| found.value())
}

/// A file with changes that only its reader sees.
#[derive(Debug)]
struct Shadow {
    file: File,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    length: u64,
    /// Bytes of the file beyond this are not its own any more.
    from_file: u64,
    pieces: BTreeMap<u64, Box<[u8]>>,
}

impl Shadow {
    fn of(path: &Path) -> io::Result<Shadow> {
        // A pipe in place of the file would block until a writer comes.
        let file = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
        let meta = file.metadata()?;
        let length = meta.len();
        if !meta.is_file() || length == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is empty, or it is not a regular file"));
        }
        let written = Written { length, from_file: length, pieces: BTreeMap::new() };
        Ok(Shadow { file, written: Mutex::new(written) })
    }

    /// One piece as it is now; beyond the end of the file there are zeros.
    fn piece(&self, written: &Written, number: u64) -> io::Result<Box<[u8]>> {
        if let Some(piece) = written.pieces.get(&number) {
            return Ok(piece.clone());
        }
        let start = number * PIECE;
        let mut piece = vec![0; PIECE as usize].into_boxed_slice();
        let there = written.from_file.saturating_sub(start).min(PIECE) as usize;
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

impl redb::StorageBackend for Shadow {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written.lock().unwrap_or_else(PoisonError::into_inner).length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > written.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // Most of a file is never written to, and is read in one piece.
        let end = offset + out.len() as u64;
        if end <= written.from_file && written.pieces.range(offset / PIECE..end.div_ceil(PIECE)).next().is_none() {
            return self.file.read_exact_at(out, offset);
        }
        let mut done = 0;
        for (number, within, many) in pieces(offset, out.len()) {
            let piece = self.piece(&written, number)?;
            out[done..done + many].copy_from_slice(&piece[within..within + many]);
            done += many;
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if length < written.length && !length.is_multiple_of(PIECE) {
            let mut last = self.piece(&written, length / PIECE)?;
            last[(length % PIECE) as usize..].fill(0);
            written.pieces.insert(length / PIECE, last);
        }
        written.pieces.retain(|number, _| number * PIECE < length);
        written.from_file = written.from_file.min(length);
        written.length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let mut done = 0;
        for (number, within, many) in pieces(offset, data.len()) {
            let mut piece = self.piece(&written, number)?;
            piece[within..within + many].copy_from_slice(&data[done..done + many]);
            written.pieces.insert(number, piece);
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
    fn a_shadow_reads_back_its_writes_and_leaves_the_file_unchanged() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("file");
        let bytes: Vec<u8> = (0..10_000_u32).map(|number| (number % 251) as u8).collect();
        std::fs::write(&path, &bytes).expect("a file");
        let shadow = Shadow::of(&path).expect("readable");
        let mut model = bytes.clone();
        let read = |shadow: &Shadow, at: usize, many: usize| {
            let mut out = vec![0; many];
            shadow.read(at as u64, &mut out).map(|()| out)
        };
        for (at, many) in [(0, 1), (4_095, 2), (100, 9_000), (8_192, 1_808)] {
            let data = vec![at as u8 ^ 0x5a; many];
            shadow.write(at as u64, &data).expect("written");
            model[at..at + many].copy_from_slice(&data);
            assert_eq!(read(&shadow, 0, model.len()).expect("readable"), model);
        }
        for length in [5_000, 12_000, 4_096, 20_000] {
            shadow.set_len(length as u64).expect("a length");
            model.resize(length, 0);
            assert_eq!(read(&shadow, 0, length).expect("readable"), model, "{length}");
            assert!(read(&shadow, length - 1, 2).is_err());
        }
        assert_eq!(std::fs::read(&path).expect("readable"), bytes);
    }
}
