//! A reserve of disk space and file descriptors: a full disk and a lack of descriptors must still be reported.

use super::dirs::TEMP;
use crate::files::{self, Grade};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;

/// The spare file beside the shown one, and its size in bytes.
const NAME: &str = ".sidecar-reserve";
const SIZE: usize = 4096;

/// The kept file, held open: it can be written where nothing more can be opened.
#[derive(Debug, Default)]
pub(super) struct Reserve {
    file: Option<File>,
    /// It has changed places with what is shown.
    is_shown: bool,
}

impl Reserve {
    /// Writes the file, if there is none, and holds it open.
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

    /// Writes into the spare file and swaps the names, which takes neither a block nor an inode. White space after the
    /// object keeps the size. If the spare file can't be opened, the shown file is overwritten in place.
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
