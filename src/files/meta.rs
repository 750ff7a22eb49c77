//! What `stat` says about a file.

use super::open_dir;
use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::{FileStat, SFlag, fstat, fstatat};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// Device, inode, size and times of a file: a stamp differs as soon as the file changes. Two equal stamps mean that
/// nobody changed the file in between, as far as a file system can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileStamp {
    pub dev: u64,
    pub ino: u64,
    pub size: u64,
    /// Time of the last change of content, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Time of the last change of the inode, nanoseconds since 1970.
    pub ctime_ns: i64,
}

impl FileStamp {
    /// Whether both name the same file, whatever it holds.
    #[must_use]
    pub fn is_same_file(&self, other: &FileStamp) -> bool {
        (self.dev, self.ino) == (other.dev, other.ino)
    }
}

/// Whether two paths lead to the same place, perhaps through links. On macOS, `/tmp` is a link.
#[must_use]
pub fn lead_to_same(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// The stamp of a file; none if it does not exist.
#[must_use]
pub fn file_stamp(path: &Path) -> Option<FileStamp> {
    let dir = open_dir(path.parent()?).ok()?;
    meta_at(&dir, path.file_name()?).ok()?.map(|meta| meta.file_stamp)
}

/// What `stat` says about a file, in types that are the same on every system.
#[derive(Debug, Clone, Copy)]
pub struct Meta {
    pub file_stamp: FileStamp,
    pub uid: u32,
    /// Permission bits, sticky bit included.
    pub mode: u32,
    pub links: u64,
    /// Bytes that it takes on the disk; less than its size if it has holes.
    pub on_disk: u64,
    kind: SFlag,
}

impl Meta {
    /// Whether it is a regular file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.kind == SFlag::S_IFREG
    }

    /// Whether it is a directory.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.kind == SFlag::S_IFDIR
    }

    /// Whether it is a symbolic link.
    #[must_use]
    pub fn is_link(&self) -> bool {
        self.kind == SFlag::S_IFLNK
    }

    /// Whether it belongs to the user that we run as.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.uid == geteuid().as_raw()
    }
}

impl From<FileStat> for Meta {
    // These fields have different widths on different systems; all of them fit.
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)]
    fn from(stat: FileStat) -> Meta {
        let ns = |seconds: i64, part: i64| seconds.saturating_mul(1_000_000_000).saturating_add(part);
        let mode = stat.st_mode as u32;
        Meta {
            file_stamp: FileStamp {
                dev: stat.st_dev as u64,
                ino: stat.st_ino as u64,
                size: stat.st_size.max(0) as u64,
                mtime_ns: ns(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
                ctime_ns: ns(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            },
            uid: stat.st_uid,
            mode: mode & 0o7777,
            links: stat.st_nlink as u64,
            on_disk: (stat.st_blocks.max(0) as u64).saturating_mul(512),
            kind: SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT,
        }
    }
}

/// What `stat` says about an open file.
///
/// # Errors
/// The system's.
pub fn meta(file: impl AsFd) -> io::Result<Meta> {
    Ok(Meta::from(fstat(file)?))
}

/// What `stat` says about a name in a directory; a link is not followed. `None` if there is no such name.
///
/// # Errors
/// The system's.
pub fn meta_at(dir: impl AsFd, name: impl AsRef<OsStr>) -> io::Result<Option<Meta>> {
    match fstatat(dir, name.as_ref(), AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(Meta::from(stat))),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}
