//! The file that is changed: finds it, reads it, and replaces it whole, with its mode and owner. A link at its end is
//! followed and kept, because people keep such files in a folder of their own under version control.

use super::InstallError;
use crate::files::{self, FileStamp, Unfit};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

/// Largest file that is changed, in bytes. The file must not be larger after the change either, so that the hooks can
/// be taken out again.
pub(super) const MAX_BYTES: u64 = 1024 * 1024;
/// How long to wait for another installation in the same place.
const HOLD_TIME: Duration = Duration::from_secs(5);
const HOLD_AGAIN: Duration = Duration::from_millis(10);

/// How the environment of a process is read.
pub type Environment<'e> = &'e dyn Fn(&str) -> Option<OsString>;

#[derive(Debug, Clone)]
pub(super) struct FoundFile {
    pub(super) path: PathBuf,
    pub(super) target: PathBuf,
    /// What it holds; `None` where there is none.
    pub(super) text: Option<String>,
    file_stamp: Option<FileStamp>,
}

/// The first of the places whose variable is set. `~` is the user's home folder.
pub(super) fn choose(places: &[String], env: Environment<'_>) -> Option<PathBuf> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    places.iter().find_map(|place| {
        let path = match place.strip_prefix('$') {
            Some(rest) => {
                let (name, below) = rest.split_once('/')?;
                set(name)?.join(below)
            }
            None => match place.strip_prefix("~/") {
                Some(below) => set("HOME")?.join(below),
                None => PathBuf::from(place),
            },
        };
        Some(path).filter(|path| path.is_absolute())
    })
}

impl FoundFile {
    /// Looks at a file. It must be a regular file of this user's, UTF-8, of at most 1 MiB, without a second hard link.
    pub(super) fn look(path: &Path) -> Result<FoundFile, InstallError> {
        let unfit = |why| InstallError::Unfit { path: path.to_owned(), why };
        let io = |source| InstallError::Io { doing: "read", path: path.to_owned(), source };
        let missing = |target: PathBuf| FoundFile { path: path.to_owned(), target, text: None, file_stamp: None };
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                return match fs::symlink_metadata(path) {
                    Ok(_) => Err(InstallError::DanglingLink { path: path.to_owned() }),
                    Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(missing(real(path))),
                    Err(why) => Err(io(why)),
                };
            }
            Err(why) => return Err(io(why)),
        };
        let (folder, name) = split(&target).ok_or_else(|| unfit(Unfit::NotRegular))?;
        let folder = files::open_dir(folder).map_err(io)?;
        match files::read_at(folder, name, MAX_BYTES) {
            Err(Unfit::Missing) => Ok(missing(target)),
            Err(why) => Err(unfit(why)),
            Ok((bytes, file_stamp)) => {
                let text = String::from_utf8(bytes).map_err(|_| InstallError::NotText { path: path.to_owned() })?;
                Ok(FoundFile { path: path.to_owned(), target, text: Some(text), file_stamp: Some(file_stamp) })
            }
        }
    }

    /// Keeps other installations from this file, those for another home too, until the returned handle is dropped or
    /// the process has died. It locks the nearest existing folder above the file.
    ///
    /// # Errors
    /// [`InstallError::Changed`] if another installation still holds the file after [`HOLD_TIME`]; what the system
    /// says.
    pub(super) fn hold(&self) -> Result<File, InstallError> {
        let io = |source| InstallError::Io { doing: "lock", path: self.target.clone(), source };
        let above = self.target.ancestors().skip(1).find(|above| above.is_dir()).unwrap_or(Path::new("/"));
        let folder = File::open(above).map_err(io)?;
        let deadline = Instant::now() + HOLD_TIME;
        loop {
            match folder.try_lock() {
                Ok(()) => return Ok(folder),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(HOLD_AGAIN),
                Err(TryLockError::WouldBlock) => return Err(InstallError::Changed { path: self.path.clone() }),
                Err(TryLockError::Error(why)) => return Err(io(why)),
            }
        }
    }

    /// Puts a text in the file's place, or removes the file. Folders that are missing are made; they are returned.
    ///
    /// # Errors
    /// [`InstallError::Changed`] if the file is not as it was found; what the system says. In each case the file is
    /// unchanged.
    pub(super) fn replace(&self, text: Option<&str>) -> Result<Vec<PathBuf>, InstallError> {
        let io = |source| InstallError::Io { doing: "write", path: self.target.clone(), source };
        let now = FoundFile::look(&self.path)?;
        if now.file_stamp != self.file_stamp || now.target != self.target {
            return Err(InstallError::Changed { path: self.path.clone() });
        }
        let Some((folder, name)) = split(&self.target) else { return Ok(Vec::new()) };
        let Some(text) = text else {
            return fs::remove_file(&self.target).map(|()| Vec::new()).map_err(io);
        };
        let made = make_folders(folder).map_err(io)?;
        let mut scratch = OsString::from(".tasuki-");
        scratch.push(std::process::id().to_string());
        scratch.push("-");
        scratch.push(name);
        let scratch = folder.join(scratch);
        let written = self.write_scratch(&scratch, text).and_then(|()| fs::rename(&scratch, &self.target));
        if let Err(why) = written {
            let _ = fs::remove_file(&scratch);
            remove_folders(&made);
            return Err(io(why));
        }
        // The file is in its place; only a power cut could still undo that.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
        Ok(made)
    }

    fn write_scratch(&self, scratch: &Path, text: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(scratch)?;
        file.write_all(text.as_bytes())?;
        if self.file_stamp.is_some() {
            let meta = fs::metadata(&self.target)?;
            let ours = file.metadata()?;
            if (meta.uid(), meta.gid()) != (ours.uid(), ours.gid()) {
                fchown(&file, Some(meta.uid()), Some(meta.gid()))?;
            }
            file.set_permissions(fs::Permissions::from_mode(meta.mode() & 0o7777))?;
        }
        file.sync_all()
    }
}

/// The path that a missing file would really have: links in the folders above it are followed.
fn real(path: &Path) -> PathBuf {
    let known = path.ancestors().skip(1).find_map(|above| Some((above, fs::canonicalize(above).ok()?)));
    match known {
        Some((above, place)) => path.strip_prefix(above).map_or_else(|_| path.to_owned(), |below| place.join(below)),
        None => path.to_owned(),
    }
}

fn split(path: &Path) -> Option<(&Path, &OsStr)> {
    path.parent().zip(path.file_name())
}

/// Makes a folder and those above it, for this user alone; returns the missing ones, the outermost first.
fn make_folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let missing: Vec<PathBuf> = folder.ancestors().take_while(|path| !path.exists()).map(Path::to_path_buf).collect();
    let mut made = Vec::new();
    for path in missing.into_iter().rev() {
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => made.push(path),
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            Err(why) => {
                remove_folders(&made);
                return Err(why);
            }
        }
    }
    Ok(made)
}

/// Removes folders that are empty, the innermost first.
pub(super) fn remove_folders(made: &[PathBuf]) {
    for folder in made.iter().rev() {
        if fs::remove_dir(folder).is_err() {
            // It has other contents, so it stays, and so do the folders above it.
            break;
        }
    }
}

/// Whether `choose` understands a place: absolute, below `~/`, or below a variable.
pub(super) fn is_place(place: &str) -> bool {
    let below = match place.strip_prefix('$') {
        Some(rest) => match rest.split_once('/') {
            Some((name, below)) if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                below
            }
            _ => return false,
        },
        None => match place.strip_prefix("~/").or_else(|| place.strip_prefix('/')) {
            Some(below) => below,
            None => return false,
        },
    };
    let plain = Path::new(below).components().all(|part| matches!(part, Component::Normal(_)));
    plain && !below.is_empty() && !below.ends_with('/')
}
