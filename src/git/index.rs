//! Looks at an index before git reads it: whether it is sparse, and whether a part of it is in a shared file (a split
//! index).

use crate::files;
use std::fs::{self, DirEntry, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// The largest number of names of a git directory that are searched for the shared part of a split index.
const MOST_NAMES: usize = 1_000;
/// Largest shared part that is copied, in bytes.
const MAX_PART: u64 = 64 * 1024 * 1024;
/// The extension by which an index says that some of its entries are folders: its name, and its length of 0.
const SPARSE: &[u8] = b"sdir\0\0\0\0";
/// How much of the index's end is searched for this extension, in bytes. After it, only the last extension and the
/// checksum follow.
const END: u64 = 128;

/// Whether the index is sparse. Only if a setting allows it does git read a sparse index as it is. Otherwise git makes
/// a full index of it in memory, and writes objects for that.
pub(super) fn is_sparse(own: &Path) -> bool {
    let end = || -> io::Result<Vec<u8>> {
        let (mut file, meta) = files::open(&own.join("index"))?;
        let mut end = Vec::new();
        if meta.is_file() {
            file.seek(SeekFrom::Start(meta.file_stamp.size.saturating_sub(END)))?;
            file.take(END).read_to_end(&mut end)?;
        }
        Ok(end)
    };
    // Without an index there is nothing to be sparse.
    end().unwrap_or_default().windows(SPARSE.len()).any(|bytes| bytes == SPARSE)
}

/// Copies the shared part of a split index. Git sets the time of that file whenever it reads it. So the newest such
/// file is the one in use, and a link to it would let git change the repository. If tasuki can't copy the file, git
/// reports that it is missing.
pub(super) fn copy_shared_part(own: &Path, to: &Path) {
    let is_part = |entry: &DirEntry| entry.file_name().as_encoded_bytes().starts_with(b"sharedindex.");
    let entries = fs::read_dir(own).into_iter().flatten().take(MOST_NAMES).filter_map(Result::ok).filter(is_part);
    let newest = entries.max_by_key(|entry| entry.metadata().and_then(|meta| meta.modified()).ok());
    let copy = |newest: DirEntry| -> io::Result<()> {
        let (file, meta) = files::open(&newest.path())?;
        if meta.is_file() && meta.file_stamp.size <= MAX_PART {
            io::copy(&mut file.take(MAX_PART), &mut File::create_new(to.join(newest.file_name()))?)?;
        }
        Ok(())
    };
    if let Some(Err(error)) = newest.map(copy) {
        tracing::debug!(%error, "could not copy a part of the index");
    }
}
