//! Makes temporary files and folders, even if the folder for them (`TMPDIR`) was removed or can't be written: a process
//! may outlive the folder that it was given at its start. Removes those that a killed process has left.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The folders that are tried after the one that the system names.
const OTHERS: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// How old a temporary folder must be before it counts as left behind.
const LEFT_BEHIND: Duration = Duration::from_secs(24 * 3_600);
/// The most names that are looked at in one folder.
const MOST_NAMES: usize = 20_000;

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

/// Removes the folders whose names begin with `prefix` and that a process of this user made more than a day ago,
/// wherever [`temporary`] may have made them. Folders of other users, links and files stay.
pub fn remove_left_behind(prefix: &str) {
    let mut folders = vec![std::env::temp_dir()];
    folders.extend(OTHERS.map(PathBuf::from));
    folders.dedup();
    for folder in folders {
        remove_left_in(&folder, prefix, SystemTime::now());
    }
}

fn remove_left_in(folder: &Path, prefix: &str, now: SystemTime) {
    if !keeps_names(folder) {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().take(MOST_NAMES).flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            continue;
        }
        // Of the entry itself, also where it is a link.
        let is_left = entry.metadata().is_ok_and(|meta| {
            let age = meta.modified().ok().and_then(|changed| now.duration_since(changed).ok());
            meta.is_dir() && meta.uid() == own_user() && age.is_some_and(|age| age > LEFT_BEHIND)
        });
        // This removes the links in it, and follows none.
        if is_left && let Err(error) = fs::remove_dir_all(entry.path()) {
            tracing::debug!(%error, folder = %entry.path().display(), "could not remove a folder that was left behind");
        }
    }
}

/// Whether nobody else can rename what this user has in the folder. Otherwise somebody could give another folder of
/// this user's a name that begins with the prefix.
fn keeps_names(folder: &Path) -> bool {
    const STICKY: u32 = 0o1000;
    const OTHERS_WRITE: u32 = 0o022;
    fs::metadata(folder).is_ok_and(|meta| {
        let is_trusted = [0, own_user()].contains(&meta.uid());
        is_trusted && (meta.mode() & OTHERS_WRITE == 0 || meta.mode() & STICKY != 0)
    })
}

fn own_user() -> u32 {
    nix::unistd::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_has_left_is_removed_after_a_day_and_nothing_else_is() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("left-1/files")).expect("made");
        fs::create_dir(at("kept")).expect("made");
        fs::write(at("kept/file"), "").expect("written");
        fs::write(at("left-file"), "").expect("written");
        std::os::unix::fs::symlink(at("kept"), at("left-link")).expect("linked");
        std::os::unix::fs::symlink(at("kept"), at("left-1/files/objects")).expect("linked");
        let names = || {
            let mut names: Vec<_> =
                fs::read_dir(dir.path()).expect("listed").map(|name| name.expect("a name")).collect();
            names.sort_by_key(fs::DirEntry::file_name);
            names.iter().map(|name| name.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let now = SystemTime::now();
        remove_left_in(dir.path(), "left-", now + LEFT_BEHIND - Duration::from_secs(60));
        assert_eq!(names().len(), 4, "it may be in use");
        let later = now + LEFT_BEHIND + Duration::from_secs(60);
        let mode = |mode| fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(mode));
        mode(0o777).expect("a mode");
        remove_left_in(dir.path(), "left-", later);
        assert_eq!(names().len(), 4, "anybody may have renamed it");
        mode(0o1777).expect("a mode");
        remove_left_in(dir.path(), "left-", later);
        assert_eq!(names(), ["kept", "left-file", "left-link"]);
        assert!(at("kept/file").exists(), "no link is followed");
    }

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
