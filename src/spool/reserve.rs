//! A spare file beside `view/sidecar.json`, held open, so that the sidecar can still report a full disk or a lack of
//! descriptors in its view.

use super::dirs::TEMP;
use crate::files::{self, Grade};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;

/// The name of the spare file, and its size in bytes.
const NAME: &str = ".sidecar-reserve";
const SIZE: usize = 4096;

/// The spare file, held open: it can be written when no more files can be opened.
#[derive(Debug, Default)]
pub(super) struct Reserve {
    file: Option<File>,
    /// Whether the open file is the view now: the names were swapped.
    is_shown: bool,
}

impl Reserve {
    /// Creates the spare file if there is none, and opens it.
    pub(super) fn keep(&mut self, dir: BorrowedFd<'_>) -> io::Result<()> {
        let lies_there = files::meta_at(dir, NAME)?.is_some();
        if lies_there && self.file.is_some() && !self.is_shown {
            return Ok(());
        }
        if !lies_there {
            files::replace_at(dir, OsStr::new(TEMP), OsStr::new(NAME), &[b' '; SIZE], Grade::Fast)?;
        }
        *self = Reserve { file: Some(files::open_to_overwrite(dir, OsStr::new(NAME))?), is_shown: false };
        Ok(())
    }

    /// Writes the view into the spare file and swaps the two names, which needs neither a block nor an inode. White
    /// space after the object keeps the size. If no file can be opened, writes to the one that is held open. If that
    /// one is the view already, it is overwritten in place, and no names are swapped.
    pub(super) fn put(&mut self, dir: BorrowedFd<'_>, shown: &OsStr, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > SIZE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut padded = [b' '; SIZE];
        padded[..bytes.len()].copy_from_slice(bytes);
        match files::open_to_overwrite(dir, OsStr::new(NAME)) {
            Ok(file) => {
                file.write_all_at(&padded, 0)?;
                files::swap(dir, OsStr::new(NAME), shown)?;
                self.is_shown = !self.is_shown;
            }
            Err(error) => {
                self.file.as_ref().ok_or(error)?.write_all_at(&padded, 0)?;
                if !self.is_shown {
                    files::swap(dir, OsStr::new(NAME), shown)?;
                    self.is_shown = true;
                }
            }
        }
        Ok(())
    }
}
