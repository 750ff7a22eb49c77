//! `HOME/fleet`: the bridge's folder. Only this user may open it, links in it are not followed, and every file that is
//! written here appears whole or not at all.

use crate::cli::error::CliError;
use crate::config::Home;
use crate::exit;
use crate::files::{self, FileStamp, Grade, Unfit, way};
use crate::limits::is_passing;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The folders inside it.
const FOLDERS: [&str; 9] = ["tmp", "requests", "results", "rejected", "replaced", "out", "in", "told", "hosts"];
/// The most names of one folder that are listed at once.
pub(super) const MOST_NAMES: usize = 10_000;
/// The largest file that is read, in bytes.
pub(super) const MOST_BYTES: u64 = 64 << 20;

/// A file's stamp, and its bytes or the reason why it can't be read.
pub(crate) type ReadOnce = (FileStamp, Result<Vec<u8>, Unfit>);

/// The folder `HOME/fleet`.
#[derive(Debug, Clone)]
pub(crate) struct FleetFolder {
    root: PathBuf,
}

impl FleetFolder {
    /// Opens the folder and the folders inside it, and makes those that are missing.
    ///
    /// # Errors
    /// A folder can't be made; or other users can open it, or put another folder into its place.
    pub(crate) fn open(home: &Home) -> Result<FleetFolder, CliError> {
        let root = home.fleet();
        let failed = |path: &Path, error: &io::Error| CliError::file("Can't make", path, error);
        let parent = files::open_dir(home.root()).map_err(|error| failed(home.root(), &error))?;
        let own = files::make_dir_at(&parent, "fleet").map_err(|error| failed(&root, &error))?;
        check(&root, &own)?;
        for folder in FOLDERS {
            let made = files::make_dir_at(&own, folder).map_err(|error| failed(&root.join(folder), &error))?;
            check(&root.join(folder), &made)?;
        }
        Ok(FleetFolder { root })
    }

    /// The folder as it is: it is neither made nor checked.
    #[must_use]
    pub(crate) fn unchecked(home: &Home) -> FleetFolder {
        FleetFolder { root: home.fleet() }
    }

    /// What is wrong with the folder and the folders inside it: other users can open one, or put another folder into
    /// its place. A missing folder is not a fault: the next command makes it.
    #[must_use]
    pub(crate) fn faults(&self) -> Vec<CliError> {
        let folders = std::iter::once("").chain(FOLDERS);
        let fault = |folder: &str| match self.dir(folder) {
            Ok(dir) => check(&self.root.join(folder), &dir).err(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(CliError::file("Can't open", &self.root.join(folder), &error)),
        };
        folders.filter_map(fault).collect()
    }

    /// The files directly in the folder that other users can read, write or run, with their modes.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn open_files(&self) -> Result<Vec<(String, u32)>, CliError> {
        let dir = self.dir("").map_err(|error| CliError::file("Can't open", &self.root, &error))?;
        let mode = |name: &String| Some(files::meta_at(&dir, name.as_str()).ok()??.mode & 0o7777);
        let files = self.names("")?.into_iter().filter(|name| !FOLDERS.contains(&name.as_str()));
        let all = files.filter_map(|name| Some((mode(&name)?, name)));
        Ok(all.filter(|(mode, _)| mode & 0o077 != 0).map(|(mode, name)| (name, mode)).collect())
    }

    /// The path of a file. `folder`: one of the folders inside, or empty for a file directly in `HOME/fleet`, as in all
    /// methods here.
    #[must_use]
    pub(crate) fn path(&self, folder: &str, name: &str) -> PathBuf {
        self.root.join(folder).join(name)
    }

    fn dir(&self, folder: &str) -> io::Result<OwnedFd> {
        let mut dir = files::open_dir(&self.root)?;
        for part in folder.split('/').filter(|part| !part.is_empty()) {
            dir = files::open_dir_at(&dir, part)?;
        }
        Ok(dir)
    }

    /// A file's bytes; none if it is not there.
    ///
    /// # Errors
    /// It can't be read, is not a plain file of this user, or holds too much.
    pub(crate) fn read(&self, folder: &str, name: &str) -> Result<Option<Vec<u8>>, CliError> {
        self.read_small(folder, name, MOST_BYTES)
    }

    /// The same for a file of at most `most` bytes.
    ///
    /// # Errors
    /// As for [`FleetFolder::read`].
    pub(crate) fn read_small(&self, folder: &str, name: &str, most: u64) -> Result<Option<Vec<u8>>, CliError> {
        let failed = |error: &io::Error| CliError::file("Can't read", &self.path(folder, name), error);
        let dir = match self.dir(folder) {
            Ok(dir) => dir,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        match files::read_replaced_at(&dir, OsStr::new(name), most) {
            Ok((bytes, _)) => Ok(Some(bytes)),
            Err(Unfit::Missing | Unfit::Changing) => match files::meta_at(&dir, name) {
                Ok(None) => Ok(None),
                Ok(Some(_)) => Err(failed(&io::Error::other("it changes all the time"))),
                Err(error) => Err(failed(&error)),
            },
            Err(unfit) => Err(failed(&io::Error::other(unfit.to_string()))),
        }
    }

    /// Reads a file once, as it is at this moment, with its stamp; none if it is not there. If something is wrong with
    /// the file, the caller decides what follows.
    ///
    /// # Errors
    /// The folder can't be read, or reading the file has failed for a reason that passes.
    pub(crate) fn read_once(&self, folder: &str, name: &str, most: u64) -> Result<Option<ReadOnce>, CliError> {
        let failed = |error: io::Error| CliError::file("Can't read", &self.path(folder, name), &error);
        let dir = self.dir(folder).map_err(failed)?;
        let Some(meta) = files::meta_at(&dir, name).map_err(failed)? else { return Ok(None) };
        match files::read_at(&dir, OsStr::new(name), most) {
            Ok((bytes, file_stamp)) => Ok(Some((file_stamp, Ok(bytes)))),
            Err(Unfit::Missing) => Ok(None),
            Err(Unfit::Io(error)) if is_passing(&error) => Err(failed(error)),
            Err(unfit) => Ok(Some((meta.file_stamp, Err(unfit)))),
        }
    }

    /// Writes a file whole, and replaces a file that is there.
    ///
    /// # Errors
    /// The system's; then the former file is as it was, or, with [`Grade::Durable`], it is replaced and only the sync
    /// of the folder has failed.
    pub(crate) fn write(&self, folder: &str, name: &str, bytes: &[u8], grade: Grade) -> Result<(), CliError> {
        let temp = format!(".{}.tmp", uuid::Uuid::new_v4().simple());
        let written =
            self.dir(folder).and_then(|dir| files::replace_at(&dir, OsStr::new(&temp), OsStr::new(name), bytes, grade));
        written.map_err(|error| CliError::file("Can't write", &self.path(folder, name), &error))
    }

    /// Writes a file whole, if the name is free; false if it is taken.
    ///
    /// # Errors
    /// The system's; then there is no such file.
    pub(crate) fn create(&self, folder: &str, name: &str, bytes: &[u8]) -> Result<bool, CliError> {
        let temp = format!("{}.tmp", uuid::Uuid::new_v4().simple());
        let made = self.dir("tmp").and_then(|tmp| {
            let to = self.dir(folder)?;
            files::create_at(&tmp, OsStr::new(&temp), &to, OsStr::new(name), bytes, Grade::Durable)
        });
        made.map_err(|error| CliError::file("Can't write", &self.path(folder, name), &error))
    }

    /// Removes a file.
    ///
    /// # Errors
    /// The system's. A file that is not there is not an error.
    pub(crate) fn remove(&self, folder: &str, name: &str) -> Result<(), CliError> {
        let removed = self.dir(folder).and_then(|dir| files::remove_at(&dir, OsStr::new(name)));
        removed.map(drop).map_err(|error| CliError::file("Can't remove", &self.path(folder, name), &error))
    }

    /// Moves a file, or a folder, to another folder, where its new name must be free. Each pair: folder and name.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn rename(&self, (folder, name): (&str, &str), (to, new): (&str, &str)) -> io::Result<()> {
        files::rename_new(self.dir(folder)?, OsStr::new(name), self.dir(to)?, OsStr::new(new))
    }

    /// Makes a folder inside a folder, if it is missing.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn make(&self, folder: &str, name: &str) -> Result<(), CliError> {
        let made = self.dir(folder).and_then(|dir| files::make_dir_at(&dir, name));
        made.map(drop).map_err(|error| CliError::file("Can't make", &self.path(folder, name), &error))
    }

    /// Up to 10,000 names of a folder's entries, sorted, without names that begin with a dot.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn names(&self, folder: &str) -> Result<Vec<String>, CliError> {
        self.list(folder, MOST_NAMES)
    }

    /// All names of a folder's entries, sorted, without names that begin with a dot.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn all_names(&self, folder: &str) -> Result<Vec<String>, CliError> {
        self.list(folder, usize::MAX)
    }

    fn list(&self, folder: &str, most: usize) -> Result<Vec<String>, CliError> {
        let listed = self.dir(folder).and_then(|dir| files::names(&dir, most, |_| true));
        let (names, _) = listed.map_err(|error| CliError::file("Can't list", &self.path(folder, ""), &error))?;
        let mut names: Vec<String> = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
        names.retain(|name| !name.starts_with('.'));
        names.sort_unstable();
        Ok(names)
    }

    /// All names of a folder's entries, as [`FleetFolder::all_names`] lists them, with the bytes that each takes on the
    /// disk.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn names_with_size(&self, folder: &str) -> Result<Vec<(String, u64)>, CliError> {
        let names = self.all_names(folder)?;
        let dir = self.dir(folder).map_err(|error| CliError::file("Can't list", &self.path(folder, ""), &error))?;
        let with_size = |name: String| {
            let on_disk = files::meta_at(&dir, name.as_str()).ok()??.on_disk;
            Some((name, on_disk))
        };
        Ok(names.into_iter().filter_map(with_size).collect())
    }

    /// How many bytes the files in a folder have; 0 if they can't be listed.
    #[must_use]
    pub(crate) fn bytes_in(&self, folder: &str) -> u64 {
        let Ok(dir) = self.dir(folder) else { return 0 };
        let Ok((names, _)) = files::names(&dir, MOST_NAMES, |_| true) else { return 0 };
        names.iter().filter_map(|name| Some(files::meta_at(&dir, name).ok()??.file_stamp.size)).sum()
    }

    /// When a file was last changed, in milliseconds since 1970; none if it is not there.
    #[must_use]
    pub(crate) fn changed_ms(&self, folder: &str, name: &str) -> Option<i64> {
        let dir = self.dir(folder).ok()?;
        Some(files::meta_at(&dir, name).ok()??.file_stamp.mtime_ns / 1_000_000)
    }
}

/// Checks a folder by the same rules as the home: it belongs to this user, and other users can't open it or replace it.
fn check(path: &Path, dir: &OwnedFd) -> Result<(), CliError> {
    way::trust(path).map_err(|error| CliError::new(exit::NOT_ALLOWED, "not_allowed", format!("{error}.")))?;
    let meta = files::meta(dir).map_err(|error| CliError::file("Can't check", path, &error))?;
    if meta.is_ours() && meta.mode & 0o077 == 0 {
        return Ok(());
    }
    let message =
        format!("Other users can open {} (mode {:04o}). Nothing was read or written.", path.display(), meta.mode);
    Err(CliError::new(exit::NOT_ALLOWED, "not_allowed", message).hint(format!("chmod 0700 '{}'", path.display())))
}

/// The folder of a temporary home, for a test.
#[cfg(test)]
pub(super) fn of_test() -> (tempfile::TempDir, Home, FleetFolder) {
    let dir = tempfile::tempdir().expect("a folder");
    let home = Home::at(dir.path()).expect("a home");
    let folder = FleetFolder::open(&home).expect("it is made");
    (dir, home, folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn home() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().expect("a folder");
        let home = Home::at(dir.path()).expect("a home");
        (dir, home)
    }

    #[test]
    fn files_are_written_whole_read_and_removed() {
        let (_dir, home) = home();
        let folder = FleetFolder::open(&home).expect("it is made");
        assert_eq!(folder.read("out", "a.json").expect("readable"), None);
        assert!(folder.create("out", "a.json", b"1").expect("it is written"));
        assert!(!folder.create("out", "a.json", b"2").expect("it is taken"));
        assert_eq!(folder.read("out", "a.json").expect("readable").as_deref(), Some(b"1".as_slice()));
        folder.write("out", "a.json", b"3", Grade::Fast).expect("it is written");
        assert_eq!(folder.names("out").expect("listed"), ["a.json"]);
        folder.remove("out", "a.json").expect("removed");
        folder.remove("out", "a.json").expect("it was gone");
        assert!(folder.names("out").expect("listed").is_empty() && folder.names("tmp").expect("listed").is_empty());
    }

    #[test]
    fn a_file_that_is_replaced_all_the_time_is_never_missing() {
        let (_dir, home) = home();
        let folder = FleetFolder::open(&home).expect("it is made");
        folder.write("", "a", b"1", Grade::Fast).expect("written");
        let (writer, is_over) = (folder.clone(), std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false)));
        let ends = std::sync::Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                writer.write("", "a", b"2", Grade::Fast).expect("written");
            }
        });
        let missing = (0..2_000).filter(|_| matches!(folder.read("", "a"), Ok(None))).count();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        thread.join().expect("it ends");
        assert_eq!(missing, 0);
    }

    #[test]
    fn a_folder_that_others_can_open_and_a_link_are_refused() {
        let (_dir, home) = home();
        let folder = FleetFolder::open(&home).expect("it is made");
        std::os::unix::fs::symlink("/etc/hostname", folder.path("results", "a.json")).expect("a link");
        assert!(folder.read("results", "a.json").is_err());
        std::fs::set_permissions(home.fleet(), PermissionsExt::from_mode(0o750)).expect("ours");
        let error = FleetFolder::open(&home).expect_err("others can open it");
        assert_eq!((error.exit, error.code.as_str()), (exit::NOT_ALLOWED, "not_allowed"));
        std::fs::set_permissions(home.fleet(), PermissionsExt::from_mode(0o700)).expect("ours");
        std::fs::remove_dir(home.fleet().join("told")).expect("empty");
        std::os::unix::fs::symlink("/tmp", home.fleet().join("told")).expect("a link");
        assert!(FleetFolder::open(&home).is_err());
    }

    #[test]
    fn the_folder_of_replaced_personas_is_checked_too() {
        let (_dir, home) = home();
        let folder = FleetFolder::open(&home).expect("it is made");
        assert_eq!(folder.faults(), []);
        std::fs::set_permissions(home.fleet().join("replaced"), PermissionsExt::from_mode(0o755)).expect("ours");
        assert_eq!(folder.faults().len(), 1);
        assert!(FleetFolder::open(&home).is_err());
    }
}
