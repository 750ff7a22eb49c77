//! Opens a transcript and takes lines from its beginning and its end.
//!
//! The file belongs to the CLI and may contain anything, and it may be of any size. It is opened without following a
//! link and without waiting, and no more of it is read than the caller asks for.

use crate::files::{self, Meta};
use crate::limits;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// How much is read at once of a file that is read from its end, in bytes.
const CHUNK: u64 = 256 << 10;
/// Longest line that is parsed, in bytes.
pub(super) const MAX_LINE: usize = 1 << 20;

/// Why a transcript can't be read.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    #[error("the profile {profile} does not say how to read a transcript; add a [transcript] section to the profile")]
    NoRules { profile: String },
    #[error("could not read the transcript {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    /// A file that tasuki refuses to read.
    #[error("the transcript {path} {rule}; it was not read")]
    Unfit { path: PathBuf, rule: &'static str },
}

impl TranscriptError {
    /// Whether the read failed because the machine ran short of something, so that a later try may succeed.
    #[must_use]
    pub fn is_shortage(&self) -> bool {
        matches!(self, TranscriptError::Read { source, .. } if limits::is_shortage(source))
    }

    /// Whether the read failed for a reason that says nothing about the file, so that a later try may succeed.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, TranscriptError::Read { source, .. } if limits::is_passing(source))
    }

    /// Whether the file does not exist: several CLIs create it with the first prompt.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, TranscriptError::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// A transcript that is open for reading.
pub(super) struct TranscriptFile {
    path: PathBuf,
    file: File,
    size: u64,
}

impl TranscriptFile {
    /// Opens it, if it is a regular file of this user's.
    pub(super) fn open(path: &Path) -> Result<Self, TranscriptError> {
        let failed = |source| TranscriptError::Read { path: path.to_owned(), source };
        let unfit = |rule| TranscriptError::Unfit { path: path.to_owned(), rule };
        if !path.is_absolute() {
            return Err(unfit("is not an absolute path"));
        }
        // Checked before it is opened, because opening a device can have effects.
        check(&nix::sys::stat::lstat(path).map_err(|errno| failed(errno.into()))?.into()).map_err(unfit)?;
        let (file, meta) = files::open(path).map_err(failed)?;
        check(&meta).map_err(unfit)?;
        Ok(TranscriptFile { path: path.to_owned(), file, size: meta.file_stamp.size })
    }

    /// Its size when it was opened, in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The last `max` bytes of the file, from the beginning of a line; and whether that is not all of it.
    pub(super) fn tail(&mut self, max: u64) -> Result<(Vec<u8>, bool), TranscriptError> {
        // One more byte shows whether the tail begins with a whole line.
        let from = self.size.saturating_sub(max.saturating_add(1));
        let mut bytes = self.read(from, max.saturating_add(1))?;
        if from > 0 {
            let whole = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
            bytes.drain(..whole);
        }
        Ok((bytes, from > 0))
    }

    /// The whole lines among the file's first `max` bytes.
    pub(super) fn head(&mut self, max: u64) -> Result<Vec<u8>, TranscriptError> {
        let mut bytes = self.read(0, max)?;
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
        Ok(bytes)
    }

    fn read(&mut self, from: u64, most: u64) -> Result<Vec<u8>, TranscriptError> {
        let mut bytes = Vec::new();
        let read = self.file.seek(SeekFrom::Start(from));
        let read = read.and_then(|_| (&mut self.file).take(most).read_to_end(&mut bytes));
        read.map_err(|source| TranscriptError::Read { path: self.path.clone(), source })?;
        Ok(bytes)
    }
}

fn check(meta: &Meta) -> Result<(), &'static str> {
    if meta.is_link() {
        Err("is a link; links are not followed")
    } else if !meta.is_file() {
        Err("is not a regular file")
    } else if !meta.is_ours() {
        Err("belongs to another user")
    } else {
        Ok(())
    }
}

/// The lines of a file from its end: the last one first. A line that is too long is left out.
pub(super) struct LinesBack {
    file: TranscriptFile,
    /// Where the part that was read begins, in bytes.
    from: u64,
    /// What was read and not returned yet: it begins at `from`.
    buffer: Vec<u8>,
    /// How many bytes at the buffer's end belong to a line whose beginning is not in the buffer.
    open: usize,
    /// The end of the line that is being read was dropped, because it is too long.
    too_long: bool,
    /// Everything was returned.
    is_over: bool,
}

impl LinesBack {
    pub(super) fn new(file: TranscriptFile) -> Self {
        let from = file.size;
        LinesBack { file, from, buffer: Vec::new(), open: 0, too_long: false, is_over: false }
    }

    /// How much of the file was read, in bytes.
    pub(super) fn bytes_read(&self) -> u64 {
        self.file.size - self.from
    }

    /// Whether every line was returned, back to the beginning of the file.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The line before those that were returned; none at the file's beginning, or if it begins before the last `most`
    /// bytes of the file.
    pub(super) fn before(&mut self, most: u64) -> Result<Option<Vec<u8>>, TranscriptError> {
        while !self.is_over {
            let searched = self.buffer.len() - self.open;
            let line = match self.buffer[..searched].iter().rposition(|byte| *byte == b'\n') {
                Some(at) => {
                    let line = self.buffer.split_off(at + 1);
                    self.buffer.pop();
                    self.open = 0;
                    line
                }
                None if self.from == 0 => {
                    self.is_over = true;
                    std::mem::take(&mut self.buffer)
                }
                None if self.bytes_read() >= most => return Ok(None),
                None => {
                    self.read_more()?;
                    continue;
                }
            };
            let is_whole = !std::mem::take(&mut self.too_long);
            if is_whole && (1..=MAX_LINE).contains(&line.len()) {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    fn read_more(&mut self) -> Result<(), TranscriptError> {
        if self.buffer.len() > MAX_LINE {
            self.too_long = true;
            self.buffer.clear();
        }
        let size = CHUNK.min(self.from);
        self.from -= size;
        let mut bytes = self.file.read(self.from, size)?;
        self.open = self.buffer.len();
        bytes.append(&mut self.buffer);
        self.buffer = bytes;
        Ok(())
    }
}

/// The lines that are JSON objects and not too long.
pub(super) fn lines(bytes: &[u8]) -> impl DoubleEndedIterator<Item = Value> {
    let fitting = bytes.split(|byte| *byte == b'\n').filter(|line| (2..=MAX_LINE).contains(&line.len()));
    fitting.filter_map(|line| super::json::read::<Value>(line).ok()).filter(Value::is_object)
}
