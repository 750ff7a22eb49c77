//! Writes files that appear whole or not at all, and never under a name that somebody else uses.

use super::{check_readable, meta, meta_at};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};
#[cfg(all(not(tasuki_portable), any(target_os = "linux", target_os = "macos")))]
use rustix::fs::{RenameFlags, renameat_with};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

/// Whether a write must survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    /// The file is seen whole or not at all, even if tasuki is killed. A power cut may lose it.
    Fast,
    /// The file is on the disk when the call returns: file and folder are synced.
    Durable,
}

/// Writes a file whole under `temp` and moves it over `name`, whatever lay there.
///
/// # Errors
/// The system's; then `name` is as it was, or, with [`Grade::Durable`], the new file is there and only the sync of the
/// folder has failed.
pub fn replace_at(dir: impl AsFd, temp: &OsStr, name: &OsStr, bytes: &[u8], grade: Grade) -> io::Result<()> {
    let dir = dir.as_fd();
    write_temp(dir, temp, bytes, grade)?;
    if let Err(errno) = nix::fcntl::renameat(dir, temp, dir, name) {
        let _ = unlinkat(dir, temp, UnlinkatFlags::NoRemoveDir);
        return Err(errno.into());
    }
    if grade == Grade::Durable {
        sync_folder(dir)?;
    }
    Ok(())
}

/// Writes a file whole under `temp` in one directory and moves it to `name` in another (which may be the same), if that
/// name is free. `false` if it is taken; then that file is as it was.
///
/// # Errors
/// An I/O error of the system; then there is no such file.
pub fn create_at(
    from: impl AsFd,
    temp: &OsStr,
    to: impl AsFd,
    name: &OsStr,
    bytes: &[u8],
    grade: Grade,
) -> io::Result<bool> {
    let (from, to) = (from.as_fd(), to.as_fd());
    write_temp(from, temp, bytes, grade)?;
    if let Err(error) = rename_new(from, temp, to, name) {
        let _ = unlinkat(from, temp, UnlinkatFlags::NoRemoveDir);
        return if error.kind() == io::ErrorKind::AlreadyExists { Ok(false) } else { Err(error) };
    }
    if grade == Grade::Durable
        && let Err(error) = sync_folder(to)
        && unlinkat(to, name, UnlinkatFlags::NoRemoveDir).is_ok()
    {
        // The caller will report that the file was not written, so nobody may find it later. If it can't be removed, a
        // reader has taken it already, and it counts as written.
        return Err(error);
    }
    Ok(true)
}

fn write_temp(dir: impl AsFd, temp: &OsStr, bytes: &[u8], grade: Grade) -> io::Result<()> {
    let dir = dir.as_fd();
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mode = Mode::S_IRUSR | Mode::S_IWUSR;
    let fd = match openat(dir, temp, flags, mode) {
        // Left over from a crash: temporary names are ours alone.
        Err(Errno::EEXIST) => {
            unlinkat(dir, temp, UnlinkatFlags::NoRemoveDir)?;
            openat(dir, temp, flags, mode)?
        }
        other => other?,
    };
    let mut file = File::from(fd);
    let written = file.write_all(bytes).and_then(|()| if grade == Grade::Durable { file.sync_all() } else { Ok(()) });
    if written.is_err() {
        let _ = unlinkat(dir, temp, UnlinkatFlags::NoRemoveDir);
    }
    written
}

/// Moves a file to a name that must be free.
///
/// # Errors
/// `AlreadyExists` if something lies there, else the system's.
pub fn rename_new(from: impl AsFd, old: &OsStr, to: impl AsFd, new: &OsStr) -> io::Result<()> {
    let (from, to) = (from.as_fd(), to.as_fd());
    #[cfg(all(not(tasuki_portable), any(target_os = "linux", target_os = "macos")))]
    match renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        Err(errno) if is_unknown(errno) => {}
        other => return Ok(other?),
    }
    if meta_at(from, old)?.is_some_and(|meta| meta.is_dir()) {
        // A folder can't have a second name, so it is moved after a look. Meanwhile nobody else writes here.
        return match meta_at(to, new)? {
            Some(_) => Err(Errno::EEXIST.into()),
            None => Ok(nix::fcntl::renameat(from, old, to, new)?),
        };
    }
    nix::unistd::linkat(from, old, to, new, AtFlags::empty())?;
    Ok(unlinkat(from, old, UnlinkatFlags::NoRemoveDir)?)
}

/// Opens a regular file of ours to overwrite it in place. The file is not truncated.
///
/// # Errors
/// The system's, or the rule of [`check_readable`] that the file breaks.
pub fn open_to_overwrite(dir: impl AsFd, name: &OsStr) -> io::Result<File> {
    let flags = OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = File::from(openat(dir, name, flags, Mode::empty())?);
    check_readable(&meta(&file)?, u64::MAX).map_err(|unfit| io::Error::other(unfit.to_string()))?;
    Ok(file)
}

/// Swaps two names of a directory. If `other` does not exist, `one` is moved there. If the system or the file system
/// can't swap, `one` replaces `other`.
///
/// # Errors
/// The system's; then both are as they were.
pub fn swap(dir: impl AsFd, one: &OsStr, other: &OsStr) -> io::Result<()> {
    let dir = dir.as_fd();
    #[cfg(all(not(tasuki_portable), any(target_os = "linux", target_os = "macos")))]
    match renameat_with(dir, one, dir, other, RenameFlags::EXCHANGE) {
        Err(errno) if is_unknown(errno) || errno == rustix::io::Errno::NOENT => {}
        other => return Ok(other?),
    }
    Ok(nix::fcntl::renameat(dir, one, dir, other)?)
}

/// Whether an error says that the file system, or the system, does not know such a call. Some file systems do not know
/// the flags of a rename, and network volumes of macOS do not know a full sync.
#[cfg(all(not(tasuki_portable), any(target_os = "linux", target_os = "macos")))]
fn is_unknown(errno: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP, Errno::OPNOTSUPP, Errno::NOTTY].contains(&errno)
}

/// Syncs a folder: the names in it are on the disk when the call returns.
///
/// # Errors
/// The system's.
pub fn sync_folder(dir: impl AsFd) -> io::Result<()> {
    // On macOS, a plain sync may leave the data in the memory of the drive.
    #[cfg(all(target_os = "macos", not(tasuki_portable)))]
    match rustix::fs::fcntl_fullfsync(dir.as_fd()) {
        Err(errno) if is_unknown(errno) => {}
        other => return Ok(other?),
    }
    Ok(nix::unistd::fsync(dir)?)
}

/// Removes a name. `false` if it was not there.
///
/// # Errors
/// The system's.
pub fn remove_at(dir: impl AsFd, name: &OsStr) -> io::Result<bool> {
    match unlinkat(dir, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) => Ok(true),
        Err(Errno::ENOENT) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
