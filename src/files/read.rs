//! Reads a file whole, or not at all.

use super::{FileStamp, Meta, meta, meta_at};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    #[error("there is no such file")]
    Missing,
    #[error("it is a link; links are not followed")]
    Link,
    /// It is a directory, pipe, socket or device.
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it belongs to another user")]
    Foreign,
    /// It has more than one name.
    #[error("it has {0} names (hard links); it must have one")]
    Linked(u64),
    /// It is larger than allowed.
    #[error("it has {size} bytes; at most {limit} are allowed")]
    TooLarge {
        size: u64,
        /// The most that is read, in bytes.
        limit: u64,
    },
    #[error("it is still being written")]
    Changing,
    #[error("it can't be read: {0}")]
    Io(#[from] io::Error),
}

impl Unfit {
    /// The code of this reason in `.why.json` files and views.
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

/// Reads a file whole, if it is regular, ours, has one name, holds at most `limit` bytes and does not change meanwhile.
///
/// # Errors
/// The rule that the file breaks, or the system's error, as a variant of [`Unfit`].
pub fn read_at(dir: impl AsFd, name: &OsStr, limit: u64) -> Result<(Vec<u8>, FileStamp), Unfit> {
    read_if(dir, name, limit, check_readable)
}

/// The pauses before a file that is being replaced is read again. The system may stop the writer in the middle of it.
const REPLACED_AFTER: [Duration; 4] =
    [Duration::from_millis(1), Duration::from_millis(2), Duration::from_millis(4), Duration::from_millis(8)];

/// As [`read_at`], for a file that its writer replaces at any moment. While it is replaced, it may look as if it were
/// missing or still being written, so it is read a few times. A file that is missing costs no pause.
///
/// # Errors
/// As for [`read_at`].
pub fn read_replaced_at(dir: impl AsFd, name: &OsStr, limit: u64) -> Result<(Vec<u8>, FileStamp), Unfit> {
    for pause in REPLACED_AFTER {
        match read_at(&dir, name, limit) {
            Err(Unfit::Missing | Unfit::Changing) => {}
            found => return found,
        }
        if meta_at(&dir, name)?.is_some() {
            std::thread::sleep(pause);
        }
    }
    read_at(dir, name, limit)
}

/// As [`read_at`], for a file of the user's own, which may have several names: a snapshot of hard links (`cp -al`,
/// `rsync --link-dest`) gives it a second one.
///
/// # Errors
/// As for [`read_at`].
pub fn read_own_at(dir: impl AsFd, name: &OsStr, limit: u64) -> Result<(Vec<u8>, FileStamp), Unfit> {
    read_if(dir, name, limit, check_own)
}

fn read_if(
    dir: impl AsFd,
    name: &OsStr,
    limit: u64,
    check: fn(&Meta, u64) -> Result<(), Unfit>,
) -> Result<(Vec<u8>, FileStamp), Unfit> {
    let dir = dir.as_fd();
    // Checked before it is opened, because opening a device can have effects.
    let seen = meta_at(dir, name)?.ok_or(Unfit::Missing)?;
    check(&seen, limit)?;
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let mut file = match openat(dir, name, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::ENOENT) => return Err(Unfit::Missing),
        Err(Errno::ELOOP) => return Err(Unfit::Link),
        Err(Errno::ENXIO) => return Err(Unfit::NotRegular),
        Err(errno) => return Err(Unfit::Io(errno.into())),
    };
    let before = meta(&file)?;
    check(&before, limit)?;
    let room = usize::try_from(before.file_stamp.size).unwrap_or(0).saturating_add(1);
    let mut bytes = Vec::with_capacity(room);
    (&mut file).take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    let after = meta(&file)?;
    if after.file_stamp != before.file_stamp || bytes.len() as u64 != after.file_stamp.size {
        return Err(Unfit::Changing);
    }
    Ok((bytes, after.file_stamp))
}

/// Opens whatever is at a path for reading, without following a link at the path's end, and without waiting for a pipe.
///
/// # Errors
/// The system's.
pub fn open(path: &Path) -> io::Result<(File, Meta)> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let file = File::from(nix::fcntl::open(path, flags, Mode::empty())?);
    let meta = meta(&file)?;
    Ok((file, meta))
}

/// The rules of [`read_at`], judged by what `stat` says.
///
/// # Errors
/// The rule that is broken.
pub fn check_readable(meta: &Meta, limit: u64) -> Result<(), Unfit> {
    check_own(meta, limit)?;
    if meta.links != 1 { Err(Unfit::Linked(meta.links)) } else { Ok(()) }
}

/// The rules of [`read_own_at`], judged by what `stat` says.
///
/// # Errors
/// The rule that is broken.
pub fn check_own(meta: &Meta, limit: u64) -> Result<(), Unfit> {
    if meta.is_link() {
        Err(Unfit::Link)
    } else if !meta.is_file() {
        Err(Unfit::NotRegular)
    } else if !meta.is_ours() {
        Err(Unfit::Foreign)
    } else if meta.links == 0 {
        Err(Unfit::Missing)
    } else if meta.file_stamp.size > limit {
        Err(Unfit::TooLarge { size: meta.file_stamp.size, limit })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::open_dir;
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::fs;
    use std::path::PathBuf;

    /// What happens at the look of this number.
    type Between = (u32, fn(&Path));

    thread_local! {
        static LOOKS: Cell<u32> = const { Cell::new(0) };
        static BETWEEN: RefCell<Option<(Between, PathBuf)>> = const { RefCell::new(None) };
    }

    /// As [`check_readable`], and the world changes after one of the looks: the first is before the file is opened, the
    /// second before it is read.
    fn check_and_change(meta: &Meta, limit: u64) -> Result<(), Unfit> {
        LOOKS.set(LOOKS.get() + 1);
        let verdict = check_readable(meta, limit);
        BETWEEN.with_borrow(|between| match between {
            Some(((number, change), path)) if *number == LOOKS.get() => change(path),
            _ => {}
        });
        verdict
    }

    /// Reads a file of five bytes; at most eight are read.
    fn read_while(number: u32, change: fn(&Path)) -> Result<Vec<u8>, Unfit> {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a");
        fs::write(&path, "whole").expect("written");
        fs::write(dir.path().join("secret"), "secret").expect("written");
        LOOKS.set(0);
        BETWEEN.set(Some(((number, change), path)));
        let opened = open_dir(dir.path()).expect("a folder");
        read_if(&opened, OsStr::new("a"), 8, check_and_change).map(|(bytes, _)| bytes)
    }

    fn replace(path: &Path, with: impl FnOnce(&Path)) {
        fs::remove_file(path).expect("it is there");
        with(path);
    }

    #[test]
    fn what_takes_the_file_s_place_after_the_look_is_not_read() {
        assert_eq!(read_while(9, |_| {}).expect("nothing changes"), b"whole");
        let link = read_while(1, |path| {
            replace(path, |path| std::os::unix::fs::symlink(path.with_file_name("secret"), path).expect("a link"));
        });
        assert!(matches!(link, Err(Unfit::Link)), "{link:?}");
        let second_name = read_while(1, |path| {
            replace(path, |path| fs::hard_link(path.with_file_name("secret"), path).expect("a second name"));
        });
        assert!(matches!(second_name, Err(Unfit::Linked(2))), "{second_name:?}");
        let hole = read_while(1, |path| {
            replace(path, |path| fs::File::create(path).and_then(|file| file.set_len(1 << 40)).expect("a hole"));
        });
        assert!(matches!(hole, Err(Unfit::TooLarge { size, .. }) if size == 1 << 40), "{hole:?}");
    }

    #[test]
    fn a_pipe_that_takes_the_file_s_place_is_not_waited_for() {
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let pipe = read_while(1, |path| {
                replace(path, |path| nix::unistd::mkfifo(path, Mode::S_IRWXU).expect("a pipe"));
            });
            done.send(pipe)
        });
        let pipe = is_done.recv_timeout(std::time::Duration::from_secs(20)).expect("nobody writes to it, ever");
        assert!(matches!(pipe, Err(Unfit::NotRegular)), "{pipe:?}");
    }

    #[test]
    fn a_file_that_changes_after_it_was_opened_is_not_taken() {
        for change in [
            |path: &Path| fs::write(path, "longer").expect("written"),
            |path: &Path| {
                fs::write(path, "").expect("written");
            },
        ] {
            let changed = read_while(2, change);
            assert!(matches!(changed, Err(Unfit::Changing)), "{changed:?}");
        }
    }
}
