//! Makes temporary files and folders, even if the folder for them (`TMPDIR`) was removed or can't be written: a process
//! may outlive the folder that it was given at its start.

use std::io;
use std::path::{Path, PathBuf};

/// The folders that are tried after the one that the system names.
const OTHERS: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Nothing temporary could be made in any folder.
#[derive(Debug, thiserror::Error)]
#[error("no temporary file can be made in {} (TMPDIR) or elsewhere: {source}", .folder.display())]
pub struct NoTemporary {
    /// The folder that was to be used.
    folder: PathBuf,
    /// Why that failed.
    source: io::Error,
}

impl From<NoTemporary> for io::Error {
    fn from(error: NoTemporary) -> io::Error {
        io::Error::other(error)
    }
}

/// Makes something temporary in the first folder where that works.
///
/// # Errors
/// It can't be made in any of the folders.
pub fn temporary<T>(make: impl Fn(&Path) -> io::Result<T>) -> Result<T, NoTemporary> {
    temporary_in(std::env::temp_dir(), &OTHERS.map(PathBuf::from), make)
}

fn temporary_in<T>(
    folder: PathBuf,
    others: &[PathBuf],
    make: impl Fn(&Path) -> io::Result<T>,
) -> Result<T, NoTemporary> {
    let source = match make(&folder) {
        Ok(made) => return Ok(made),
        Err(error) => error,
    };
    let other = others.iter().filter(|other| **other != folder).find_map(|other| make(other).ok());
    other.ok_or(NoTemporary { folder, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_folder_replaces_a_missing_one_and_without_another_the_error_names_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let (missing, there) = (dir.path().join("missing"), dir.path().to_owned());
        let make = |folder: &Path| tempfile::tempfile_in(folder);
        let is_made = |others: &[PathBuf]| temporary_in(missing.clone(), others, make).map(drop);
        assert!(is_made(&[missing.clone(), there]).is_ok());
        let error = is_made(&[missing.join("too")]).expect_err("there is no folder");
        assert!(error.to_string().contains(&missing.display().to_string()), "{error}");
    }
}
