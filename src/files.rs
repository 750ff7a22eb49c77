//! The ground that the file adapters stand on: opening, reading and replacing files so that no link, pipe, foreign file
//! or half-written copy can lead us astray (SPEC section 10). It knows bytes and inodes, and nothing of ours.

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

mod scratch;
pub mod way;
mod write;

pub use scratch::scratch_name;
pub use write::{Grade, create_at, overwrite_at, remove_at, rename_new, replace_at, swap};

/// Which state of which file was seen. Two equal stamps mean that nobody changed the file in between, as far as a file
/// system can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    /// Device.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
    /// Bytes.
    pub size: u64,
    /// Time of the last change of content, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Time of the last change of the inode, nanoseconds since 1970.
    pub ctime_ns: i64,
}

impl Stamp {
    /// Whether both name the same file, whatever it holds.
    #[must_use]
    pub fn is_same_file(&self, other: &Stamp) -> bool {
        (self.dev, self.ino) == (other.dev, other.ino)
    }
}

/// What tells one state of a file from another; none while there is no such file.
#[must_use]
pub fn stamp(path: &Path) -> Option<Stamp> {
    let dir = open_dir(path.parent()?).ok()?;
    meta_at(&dir, path.file_name()?).ok()?.map(|meta| meta.stamp)
}

/// What `stat` tells of a file, in types that are the same on every system.
#[derive(Debug, Clone, Copy)]
pub struct Meta {
    /// Identity, size and times.
    pub stamp: Stamp,
    /// Owner.
    pub uid: u32,
    /// Permission bits, sticky bit included.
    pub mode: u32,
    /// Number of names.
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
    // The widths of these fields differ between systems; every one of them fits.
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)]
    fn from(stat: FileStat) -> Meta {
        let ns = |seconds: i64, part: i64| seconds.saturating_mul(1_000_000_000).saturating_add(part);
        let mode = stat.st_mode as u32;
        Meta {
            stamp: Stamp {
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

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// There is no such file.
    #[error("there is no such file")]
    Missing,
    /// It is a symbolic link.
    #[error("it is a link; links are not followed")]
    Link,
    /// It is a directory, pipe, socket or device.
    #[error("it is not a regular file")]
    NotRegular,
    /// Somebody else owns it.
    #[error("it belongs to another user")]
    Foreign,
    /// It has more than one name.
    #[error("it has {0} names (hard links); it must have one")]
    Linked(u64),
    /// It is larger than allowed.
    #[error("it has {size} bytes; at most {limit} are allowed")]
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// The most that is read, in bytes.
        limit: u64,
    },
    /// It changed while it was read.
    #[error("it is still being written")]
    Changing,
    /// The system would not let us.
    #[error("it can't be read: {0}")]
    Io(#[from] io::Error),
}

impl Unfit {
    /// The short word for it in `.why.json` files and views.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Unfit::Missing => "missing",
            Unfit::Link => "link",
            Unfit::NotRegular => "not_regular",
            Unfit::Foreign => "foreign",
            Unfit::Linked(_) => "linked",
            Unfit::TooLarge { .. } => "too_large",
            Unfit::Changing => "changing",
            Unfit::Io(_) => "unreadable",
        }
    }
}

/// Whether a name is one plain component of a path.
#[must_use]
pub fn is_plain(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    !matches!(bytes, b"" | b"." | b"..") && bytes.len() <= 255 && !bytes.contains(&b'/') && !bytes.contains(&0)
}

/// Opens a directory by its path. Links in the path are followed: the caller has checked it.
///
/// # Errors
/// The system's.
pub fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    Ok(nix::fcntl::open(path, flags, Mode::empty())?)
}

/// Opens a directory inside a directory; a link is an error (`ENOTDIR` or `ELOOP`).
///
/// # Errors
/// The system's.
pub fn open_dir_at(dir: impl AsFd, name: impl AsRef<OsStr>) -> io::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    Ok(openat(dir, name.as_ref(), flags, Mode::empty())?)
}

/// Whether an open failed because a link or a file lies where a directory was expected.
#[must_use]
pub fn is_not_a_dir(error: &io::Error) -> bool {
    let codes = [Errno::ENOTDIR, Errno::ELOOP];
    error.raw_os_error().is_some_and(|code| codes.contains(&Errno::from_raw(code)))
}

/// Opens a directory inside a directory, making it with mode 0700 if it is missing.
///
/// # Errors
/// The system's.
pub fn make_dir_at(dir: impl AsFd, name: impl AsRef<OsStr>) -> io::Result<OwnedFd> {
    match mkdirat(&dir, name.as_ref(), Mode::S_IRWXU) {
        Ok(()) | Err(Errno::EEXIST) => open_dir_at(dir, name),
        Err(errno) => Err(errno.into()),
    }
}

/// What an open file is.
///
/// # Errors
/// The system's.
pub fn meta(file: impl AsFd) -> io::Result<Meta> {
    Ok(Meta::from(fstat(file)?))
}

/// What lies under a name; a link is not followed. `None` where nothing lies.
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

/// Reads a file whole, if it is regular, ours, has one name, holds at most `limit` bytes and stays as it is meanwhile.
///
/// # Errors
/// Each rule that it breaks is a variant of [`Unfit`].
pub fn read_at(dir: impl AsFd, name: &OsStr, limit: u64) -> Result<(Vec<u8>, Stamp), Unfit> {
    let dir = dir.as_fd();
    // Looked at before it is opened, for opening a device can do things.
    let seen = meta_at(dir, name)?.ok_or(Unfit::Missing)?;
    check_readable(&seen, limit)?;
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let mut file = match openat(dir, name, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::ENOENT) => return Err(Unfit::Missing),
        Err(Errno::ELOOP) => return Err(Unfit::Link),
        Err(Errno::ENXIO) => return Err(Unfit::NotRegular),
        Err(errno) => return Err(Unfit::Io(errno.into())),
    };
    let before = meta(&file)?;
    check_readable(&before, limit)?;
    let room = usize::try_from(before.stamp.size).unwrap_or(0).saturating_add(1);
    let mut bytes = Vec::with_capacity(room);
    (&mut file).take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    let after = meta(&file)?;
    if after.stamp != before.stamp || bytes.len() as u64 != after.stamp.size {
        return Err(Unfit::Changing);
    }
    Ok((bytes, after.stamp))
}

/// The rules of [`read_at`], judged by what `stat` says.
///
/// # Errors
/// The rule that is broken.
pub fn check_readable(meta: &Meta, limit: u64) -> Result<(), Unfit> {
    if meta.is_link() {
        Err(Unfit::Link)
    } else if !meta.is_file() {
        Err(Unfit::NotRegular)
    } else if !meta.is_ours() {
        Err(Unfit::Foreign)
    } else if meta.links == 0 {
        Err(Unfit::Missing)
    } else if meta.links != 1 {
        Err(Unfit::Linked(meta.links))
    } else if meta.stamp.size > limit {
        Err(Unfit::TooLarge { size: meta.stamp.size, limit })
    } else {
        Ok(())
    }
}

/// The names in a directory that `keep` wants, at most `max`, in no order; and whether there were more.
///
/// # Errors
/// The system's.
pub fn names(dir: impl AsFd, max: usize, mut keep: impl FnMut(&OsStr) -> bool) -> io::Result<(Vec<OsString>, bool)> {
    let mut found = Vec::new();
    for entry in open_listing(dir)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if matches!(name.as_bytes(), b"." | b"..") || !keep(name) {
            continue;
        }
        if found.len() == max {
            return Ok((found, true));
        }
        found.push(name.to_owned());
    }
    Ok((found, false))
}

/// A listing that can be read on piece by piece. It has a position of its own, however often the directory is listed.
///
/// # Errors
/// The system's.
pub fn open_listing(dir: impl AsFd) -> io::Result<nix::dir::OwningIter> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    Ok(nix::dir::Dir::openat(dir, ".", flags, Mode::empty())?.into_iter())
}
