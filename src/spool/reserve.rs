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
    /// Whether the open file is now the view, because the names were swapped.
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

    /// Writes the view into the spare file and swaps the two names, which needs neither a block nor an inode. After a
    /// swap, the spare file holds an earlier view, which may be longer. So every write sets the length to `SIZE`: the
    /// object, padded with spaces. If no file can be opened, this writes to the file that is held open. If that file is
    /// the view already, it is overwritten in place, and no names are swapped.
    pub(super) fn put(&mut self, dir: BorrowedFd<'_>, shown: &OsStr, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > SIZE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut padded = [b' '; SIZE];
        padded[..bytes.len()].copy_from_slice(bytes);
        match files::open_to_overwrite(dir, OsStr::new(NAME)) {
            Ok(file) => {
                overwrite(&file, &padded)?;
                files::swap(dir, OsStr::new(NAME), shown)?;
                self.is_shown = !self.is_shown;
            }
            Err(error) => {
                overwrite(self.file.as_ref().ok_or(error)?, &padded)?;
                if !self.is_shown {
                    files::swap(dir, OsStr::new(NAME), shown)?;
                    self.is_shown = true;
                }
            }
        }
        Ok(())
    }
}

/// Makes these bytes the whole contents of the file, which may hold a longer view because the names were swapped.
fn overwrite(file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all_at(bytes, 0)?;
    file.set_len(bytes.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn the_end_of_a_longer_view_does_not_stay_in_the_spare_file() {
        let home = tempfile::tempdir().expect("a folder");
        let dir = files::open_dir(home.path()).expect("opened");
        let mut reserve = Reserve::default();
        reserve.keep(dir.as_fd()).expect("made");
        std::fs::write(home.path().join("sidecar.json"), "x".repeat(3 * SIZE)).expect("a long view");
        for view in [r#"{"n":1}"#, r#"{"n":2}"#] {
            reserve.put(dir.as_fd(), OsStr::new("sidecar.json"), view.as_bytes()).expect("written");
            let shown = std::fs::read_to_string(home.path().join("sidecar.json")).expect("there");
            assert_eq!((shown.trim_end(), shown.len()), (view, SIZE));
        }
    }
}
