//! Writes the files that others read: results, error files and views. They are projections of the store, so a lost file
//! can be written again. (The exception is an error file: if it is gone, somebody has dismissed the error.) A rename
//! replaces each file in one step.

use super::dirs::{SpoolDir, TEMP, VIEWS_TAG};
use super::error::Error;
use super::home::Spool;
use crate::core::id::{AgentId, ErrorId, HandoffId, RequestId};
use crate::files::{self, Grade, Unfit};
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use uuid::Uuid;

/// The largest projection that is read back, in bytes.
const MAX_PROJECTION_BYTES: u64 = 64 * 1024 * 1024;
/// The most ids that a listing gives.
const MAX_IDS: usize = 1_000_000;

/// A file that tasuki writes for others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OutputFile {
    /// `spool/results/<id>.json`.
    Result(RequestId),
    /// `spool/results/<id>.reused.json`: the refusal of a second request with the same id and other bytes.
    Reused(RequestId),
    /// `spool/errors/<id>.json`.
    Error(ErrorId),
    /// `view/sidecar.json`.
    Sidecar,
    /// `view/.built`: holds the tag of the store from which the views were written: 8 hexadecimal digits, which also
    /// identify the home. If that is this store's tag, every view has been written at least once. It is removed when a
    /// folder of views had to be made or was replaced.
    ViewsTag,
    /// `view/agents/<id>.json`.
    Agent(AgentId),
    /// `view/handoffs/<id>.json`.
    Handoff(HandoffId),
    /// `view/work/<id>.json`.
    Work(Uuid),
    /// `view/work/open/<id>`, empty: the item exists and is not done.
    OpenWork(Uuid),
}

impl OutputFile {
    fn spool_dir(&self) -> SpoolDir {
        match self {
            OutputFile::Result(_) | OutputFile::Reused(_) => SpoolDir::Results,
            OutputFile::Error(_) => SpoolDir::Errors,
            OutputFile::Sidecar | OutputFile::ViewsTag => SpoolDir::View,
            OutputFile::Agent(_) => SpoolDir::Agents,
            OutputFile::Handoff(_) => SpoolDir::Handoffs,
            OutputFile::Work(_) => SpoolDir::Work,
            OutputFile::OpenWork(_) => SpoolDir::OpenWork,
        }
    }

    fn name(&self) -> String {
        match self {
            OutputFile::Result(id) => format!("{id}.json"),
            OutputFile::Reused(id) => format!("{id}.reused.json"),
            OutputFile::Error(id) => format!("{id}.json"),
            OutputFile::Sidecar => "sidecar.json".to_owned(),
            OutputFile::ViewsTag => VIEWS_TAG.to_owned(),
            OutputFile::Agent(id) => format!("{id}.json"),
            OutputFile::Handoff(id) => format!("{id}.json"),
            OutputFile::Work(id) => format!("{}.json", id.as_hyphenated()),
            OutputFile::OpenWork(id) => id.as_hyphenated().to_string(),
        }
    }
}

/// A folder of projections whose ids can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectionFolder {
    /// `view/agents/`.
    Agents,
    /// `view/handoffs/`.
    Handoffs,
    /// `view/work/`.
    Work,
    /// `view/work/open/`.
    OpenWork,
    /// `spool/errors/`.
    Errors,
}

impl Spool {
    /// Writes a file, replacing an existing one, and does not sync it: see [`Spool::syncer`]. For error files, use
    /// [`Spool::put_error`].
    ///
    /// # Errors
    /// An I/O error of the system; then the file is as it was.
    pub fn put(&self, file: &OutputFile, bytes: &[u8]) -> Result<(), Error> {
        let name = file.name();
        files::replace_at(self.dir(file.spool_dir()), OsStr::new(TEMP), OsStr::new(&name), bytes, Grade::Fast)
            .map_err(|error| Error::io("write", self.path_of(file), error))
    }

    /// Writes `view/sidecar.json`; if that fails, writes the spare file and swaps it into that name.
    ///
    /// # Errors
    /// An I/O error of the system; then the file is as it was.
    pub fn put_sidecar(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.put(&OutputFile::Sidecar, bytes);
        let (dir, name) = (self.dirs.dir(SpoolDir::View), OutputFile::Sidecar.name());
        let kept = match written {
            Ok(()) => self.reserve.keep(dir),
            Err(_) => self.reserve.put(dir, OsStr::new(&name), bytes),
        };
        match (written, kept) {
            (Err(error), Err(_)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes and syncs an error file, unless it exists already. Returns whether it was written.
    ///
    /// # Errors
    /// An I/O error of the system; then there is no such file.
    pub fn put_error(&self, id: &ErrorId, bytes: &[u8]) -> Result<bool, Error> {
        let file = OutputFile::Error(*id);
        // A full disk does not matter if nothing need be written.
        if self.exists(&file)? {
            return Ok(false);
        }
        let (dir, name) = (self.dir(SpoolDir::Errors), file.name());
        files::create_at(dir, OsStr::new(TEMP), dir, OsStr::new(&name), bytes, Grade::Durable)
            .map_err(|error| Error::io("write", self.path_of(&file), error))
    }

    /// Removes a file, such as that of a dismissed error. Returns whether it existed.
    ///
    /// # Errors
    /// An I/O error of the system.
    pub fn remove(&self, file: &OutputFile) -> Result<bool, Error> {
        files::remove_at(self.dir(file.spool_dir()), OsStr::new(&file.name()))
            .map_err(|error| Error::io("remove", self.path_of(file), error))
    }

    /// Whether the file exists. If an error file was written and is gone now, somebody has dismissed the error.
    ///
    /// # Errors
    /// An I/O error of the system.
    pub fn exists(&self, file: &OutputFile) -> Result<bool, Error> {
        let meta = files::meta_at(self.dir(file.spool_dir()), file.name());
        Ok(meta.map_err(|error| Error::io("look at", self.path_of(file), error))?.is_some())
    }

    /// Whether the file exists and holds exactly these bytes; a file that a power cut damaged does not.
    #[must_use]
    pub fn holds(&self, file: &OutputFile, bytes: &[u8]) -> bool {
        matches!(self.get(file), Ok(Some(there)) if there == bytes)
    }

    /// The file's bytes; `None` if it does not exist.
    ///
    /// # Errors
    /// It can't be read, or is not a plain file of ours.
    pub fn get(&self, file: &OutputFile) -> Result<Option<Vec<u8>>, Error> {
        match files::read_at(self.dir(file.spool_dir()), OsStr::new(&file.name()), MAX_PROJECTION_BYTES) {
            Ok((bytes, _)) => Ok(Some(bytes)),
            Err(Unfit::Missing) => Ok(None),
            Err(Unfit::Io(error)) => Err(Error::io("read", self.path_of(file), error)),
            Err(unfit) => Err(Error::io("read", self.path_of(file), std::io::Error::other(unfit.to_string()))),
        }
    }

    /// The ids that have a file in a folder, in no order. The caller uses this at a start to remove files that the
    /// store does not know.
    ///
    /// # Errors
    /// An I/O error of the system: the folder can't be listed.
    pub fn ids(&self, folder: ProjectionFolder) -> Result<Vec<Uuid>, Error> {
        let spool_dir = match folder {
            ProjectionFolder::Agents => SpoolDir::Agents,
            ProjectionFolder::Handoffs => SpoolDir::Handoffs,
            ProjectionFolder::Work => SpoolDir::Work,
            ProjectionFolder::OpenWork => SpoolDir::OpenWork,
            ProjectionFolder::Errors => SpoolDir::Errors,
        };
        let listed = files::names(self.dir(spool_dir), MAX_IDS, |name| id_of(name).is_some());
        let (names, _) = listed.map_err(|error| Error::io("list the folder", self.path(spool_dir), error))?;
        Ok(names.iter().filter_map(|name| id_of(name)).collect())
    }

    /// The file's path, for messages.
    #[must_use]
    pub fn path_of(&self, file: &OutputFile) -> PathBuf {
        self.path(file.spool_dir()).join(file.name())
    }

    /// Makes a syncer for the sync before a checkpoint. It flushes everything that was written so far to the disk. Once
    /// the store has noted this sync (a checkpoint), the next start compares with the store only the files written
    /// later. A sync can be slow, so the caller moves the syncer to another thread.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn syncer(&self) -> Result<Syncer, Error> {
        let mut folders: Vec<(u64, OwnedFd, PathBuf)> = Vec::new();
        for spool_dir in [SpoolDir::Spool, SpoolDir::View] {
            let failed = |error: std::io::Error| Error::io("sync", self.path(spool_dir), error);
            let device = files::meta(self.dir(spool_dir)).map_err(failed)?.file_stamp.dev;
            // One sync for each file system.
            if folders.iter().all(|(other, _, _)| *other != device) {
                let folder = self.dir(spool_dir).as_fd().try_clone_to_owned().map_err(failed)?;
                folders.push((device, folder, self.path(spool_dir).to_path_buf()));
            }
        }
        Ok(Syncer { folders })
    }
}

/// The file systems of the spool and the views, held open.
#[derive(Debug)]
pub struct Syncer {
    folders: Vec<(u64, OwnedFd, PathBuf)>,
}

impl Syncer {
    /// Waits until all written files are on the disk.
    ///
    /// # Errors
    /// An I/O error of the system; then the store must not note a checkpoint.
    pub fn sync(self) -> Result<(), Error> {
        self.folders
            .into_iter()
            .try_for_each(|(_, folder, path)| sync_file_system(folder).map_err(|error| Error::io("sync", path, error)))
    }
}

#[cfg(all(target_os = "linux", not(tasuki_portable)))]
fn sync_file_system(dir: impl std::os::fd::AsFd) -> std::io::Result<()> {
    Ok(nix::unistd::syncfs(dir)?)
}

/// On macOS, a plain sync returns before it is done, and the bytes may only reach the memory of the drive.
#[cfg(all(target_os = "macos", not(tasuki_portable)))]
fn sync_file_system(dir: impl std::os::fd::AsFd) -> std::io::Result<()> {
    use nix::errno::Errno::{EINVAL, ENOTSUP, ENOTTY};
    match crate::darwin::sync_volume(&dir) {
        // A network volume does not support a full sync.
        Err(error) if [EINVAL, ENOTSUP, ENOTTY].iter().any(|errno| error.raw_os_error() == Some(*errno as i32)) => {
            nix::unistd::sync();
            files::sync_folder(dir)
        }
        done => done,
    }
}

#[cfg(any(tasuki_portable, not(any(target_os = "linux", target_os = "macos"))))]
fn sync_file_system(_dir: impl std::os::fd::AsFd) -> std::io::Result<()> {
    nix::unistd::sync();
    Ok(())
}

fn id_of(name: &OsStr) -> Option<Uuid> {
    let name = name.to_str()?;
    Uuid::try_parse(name.strip_suffix(".json").unwrap_or(name)).ok()
}
