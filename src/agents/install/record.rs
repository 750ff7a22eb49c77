//! The record of what was installed where: one small JSON file for each changed file, in `HOME/state/hooks/`, with
//! copies of that file as it was before each change.

use super::InstallError;
use super::merge::Piece;
use crate::core::text::sha256;
use crate::files::{self, Grade, Unfit};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// How many copies of one file are kept.
const MAX_COPIES: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InstallRecord {
    pub(super) v: u32,
    pub(super) profile: String,
    /// The real path of the file.
    pub(super) target: PathBuf,
    pub(super) made_file: bool,
    /// Folders that were not there before, the outermost first.
    pub(super) made_folders: Vec<PathBuf>,
    pub(super) pieces: Vec<Piece>,
    /// Single values that were put in, by their keys.
    pub(super) set: Vec<Vec<String>>,
    /// For a file that is wholly ours: the hash of what was written.
    pub(super) sha256: Option<String>,
}

/// The folder with a file's record and copies.
#[derive(Debug)]
pub(super) struct RecordFolder {
    folder: PathBuf,
    name: String,
}

impl RecordFolder {
    pub(super) fn new(home: &Path, profile: &str, target: &Path) -> RecordFolder {
        let place = sha256(target.as_os_str().as_encoded_bytes());
        RecordFolder { folder: home.join("state/hooks"), name: format!("{profile}-{}", &place[..12]) }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.json", self.name))
    }

    /// What was recorded, if anything was.
    ///
    /// # Errors
    /// When there is a record that can't be read: it is never replaced.
    pub(super) fn read(&self) -> Result<Option<InstallRecord>, InstallError> {
        let path = self.path();
        let wrong = |message: String| InstallError::Record { path: path.clone(), message };
        let folder = match files::open_dir(&self.folder) {
            Ok(folder) => folder,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(wrong(why.to_string())),
        };
        match files::read_at(folder, &OsString::from(format!("{}.json", self.name)), MAX_BYTES) {
            Err(Unfit::Missing) => Ok(None),
            Err(why) => Err(wrong(why.to_string())),
            Ok((bytes, _)) => serde_json::from_slice(&bytes).map(Some).map_err(|why| wrong(why.to_string())),
        }
    }

    pub(super) fn write(&self, record: Option<&InstallRecord>) -> Result<(), InstallError> {
        let io = |source| InstallError::Io { doing: "write", path: self.path(), source };
        let name = OsString::from(format!("{}.json", self.name));
        let folder = self.open().map_err(io)?;
        match record {
            None => files::remove_at(folder, &name).map(|_| ()).map_err(io),
            Some(record) => {
                let bytes = serde_json::to_vec_pretty(record).map_err(|why| io(why.into()))?;
                let temp = OsString::from(format!("{}.tmp", self.name));
                files::replace_at(folder, &temp, &name, &bytes, Grade::Durable).map_err(io)
            }
        }
    }

    /// Keeps a copy of a file as it was; the oldest beyond ten are removed.
    pub(super) fn keep(&self, target: &Path, text: &str, wall_ms: i64) -> Result<PathBuf, InstallError> {
        let stamp: String = crate::core::time::rfc3339(wall_ms).chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        let file = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = format!("{}-{stamp}-{file}", self.name);
        let path = self.folder.join(&name);
        let io = |source| InstallError::Io { doing: "write", path: path.clone(), source };
        let folder = self.open().map_err(io)?;
        let temp = OsString::from(format!("{}.tmp", self.name));
        files::replace_at(&folder, &temp, &OsString::from(&name), text.as_bytes(), Grade::Durable).map_err(io)?;
        let start = format!("{}-", self.name);
        let is_copy = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(&start);
        let (mut copies, _) = files::names(&folder, 1_000, is_copy).map_err(io)?;
        copies.sort();
        for old in copies.iter().rev().skip(MAX_COPIES) {
            files::remove_at(&folder, old).map_err(io)?;
        }
        Ok(path)
    }

    fn open(&self) -> io::Result<std::os::fd::OwnedFd> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        files::open_dir(&self.folder)
    }
}
