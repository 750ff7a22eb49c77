//! Folders: made, opened without following links, and listed.

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a folder's lock is waited for, and the pause between two tries. Who holds it makes something small.
const LOCK_WITHIN: Duration = Duration::from_secs(30);
const LOCK_EVERY: Duration = Duration::from_millis(5);

/// Whether a name is one plain component of a path.
#[must_use]
pub fn is_plain(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    !matches!(bytes, b"" | b"." | b"..") && bytes.len() <= 255 && !bytes.contains(&b'/') && !bytes.contains(&0)
}

/// Opens a directory by its path. Links in the path are followed, so the caller must have checked the path.
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

/// Whether an open failed because a link or a file is where a directory was expected.
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

/// Locks a directory until the lock is dropped, so that processes that make something in it take turns. `None` if its
/// file system has no locks.
///
/// # Errors
/// Another process has held the lock for half a minute.
pub fn lock_dir(mut dir: OwnedFd) -> io::Result<Option<Flock<OwnedFd>>> {
    let until = Instant::now() + LOCK_WITHIN;
    loop {
        match Flock::lock(dir, FlockArg::LockExclusiveNonblock) {
            Ok(held) => return Ok(Some(held)),
            Err((again, Errno::EWOULDBLOCK)) if Instant::now() < until => dir = again,
            Err((_, Errno::EWOULDBLOCK)) => return Err(io::ErrorKind::TimedOut.into()),
            Err(_) => return Ok(None),
        }
        std::thread::sleep(LOCK_EVERY);
    }
}

/// The names in a directory that `keep` wants, at most `max`, in any order; and whether there were more.
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

/// A listing of a directory that can be read piece by piece. Each listing has a position of its own.
///
/// # Errors
/// The system's.
pub fn open_listing(dir: impl AsFd) -> io::Result<nix::dir::OwningIter> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    Ok(nix::dir::Dir::openat(dir, ".", flags, Mode::empty())?.into_iter())
}
