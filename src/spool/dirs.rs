//! The folders of one home. They are created if missing, checked, and held open: later work uses the open folders, so
//! it happens in the folders that were checked.

use super::error::Error;
use crate::files::{self, Meta};
use nix::errno::Errno;
use nix::fcntl::renameat;
use nix::sys::stat::{Mode, umask};
use nix::unistd::geteuid;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The temporary name in each folder. One is enough, because one thread of one process writes there; a crash leaves at
/// most this file behind.
pub(super) const TEMP: &str = ".tasuki-new";

/// A name that no file has.
const MISSING: &str = ".tasuki-missing";

/// One folder of a home. The variants are in the order of [`DIRS`], because a variant is the index of its open folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpoolDir {
    Home,
    Spool,
    Tmp,
    Requests,
    Events,
    Results,
    Errors,
    Rejected,
    State,
    Trash,
    View,
    Agents,
    Handoffs,
    Work,
    OpenWork,
}

/// Every folder with its path below the home, parents first.
pub(super) const DIRS: [(SpoolDir, &str); 15] = [
    (SpoolDir::Home, ""),
    (SpoolDir::Spool, "spool"),
    (SpoolDir::Tmp, "spool/tmp"),
    (SpoolDir::Requests, "spool/requests"),
    (SpoolDir::Events, "spool/events"),
    (SpoolDir::Results, "spool/results"),
    (SpoolDir::Errors, "spool/errors"),
    (SpoolDir::Rejected, "spool/rejected"),
    (SpoolDir::State, "state"),
    // The trash: `state/reap` on the disk.
    (SpoolDir::Trash, "state/reap"),
    (SpoolDir::View, "view"),
    (SpoolDir::Agents, "view/agents"),
    (SpoolDir::Handoffs, "view/handoffs"),
    (SpoolDir::Work, "view/work"),
    (SpoolDir::OpenWork, "view/work/open"),
];

/// The folders of views.
const VIEWS: [SpoolDir; 5] = [SpoolDir::View, SpoolDir::Agents, SpoolDir::Handoffs, SpoolDir::Work, SpoolDir::OpenWork];

/// The file in `view/` that says that every view has been written.
pub(super) const VIEWS_TAG: &str = ".built";

#[derive(Debug)]
struct OpenDir {
    path: PathBuf,
    fd: OwnedFd,
    identity: (u64, u64),
}

/// The folders of one home, held open.
#[derive(Debug)]
pub(super) struct SpoolDirs {
    home: PathBuf,
    open: Vec<OpenDir>,
    /// For tests: computes the change time of a file from its real one, which only the kernel can set.
    #[cfg(test)]
    pub(super) file_times: Option<fn(i64) -> i64>,
}

impl SpoolDirs {
    pub(super) fn open(home: &Path) -> Result<SpoolDirs, Error> {
        umask(Mode::from_bits_truncate(0o077));
        let home = prepare_home(home)?;
        let (open, made_views) = open_dirs(&home)?;
        let dirs = SpoolDirs {
            home,
            open,
            #[cfg(test)]
            file_times: None,
        };
        if made_views {
            dirs.forget_views()?;
        }
        Ok(dirs)
    }

    /// Removes the mark that every view has been written, because a folder of views is new and may lack some. The next
    /// start writes all of them.
    pub(super) fn forget_views(&self) -> Result<(), Error> {
        let removed = files::remove_at(self.dir(SpoolDir::View), OsStr::new(VIEWS_TAG));
        removed.map(drop).map_err(|error| Error::io("remove .built from", self.path(SpoolDir::View), error))
    }

    /// Whether a folder of views is not the one that `other` holds open.
    pub(super) fn has_other_views(&self, other: &SpoolDirs) -> bool {
        VIEWS.into_iter().any(|dir| self.open_dir(dir).identity != other.open_dir(dir).identity)
    }

    /// Whether the home and its `state/` are still at their paths.
    ///
    /// # Errors
    /// One is missing. It must not be made again: programs would find a spool there, and a sidecar an empty state.
    pub(super) fn check_not_moved_away(&self) -> Result<(), Error> {
        [SpoolDir::Home, SpoolDir::State].into_iter().map(|dir| self.path(dir)).try_for_each(|path| {
            let there = nix::sys::stat::lstat(path).map(drop);
            there.map_err(|errno| Error::io("open again the folder", path, errno))
        })
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// When a file was last changed, in nanoseconds since 1970.
    pub(super) fn changed_ns(&self, meta: &Meta) -> i64 {
        #[cfg(test)]
        if let Some(at) = self.file_times {
            return at(meta.file_stamp.ctime_ns);
        }
        #[cfg(not(test))]
        let _ = self;
        meta.file_stamp.ctime_ns
    }

    /// Whether the paths still lead to the folders that are open here.
    pub(super) fn is_in_place(&self) -> bool {
        self.open.iter().all(|spool_dir| {
            // A link does not count as the folder, even if it leads to the very folder that was moved away.
            let there = nix::sys::stat::lstat(&spool_dir.path).map(Meta::from);
            there.is_ok_and(|meta| (meta.file_stamp.dev, meta.file_stamp.ino) == spool_dir.identity)
        })
    }

    /// Checks owner and permission bits of the open folders again. The error names the first that is open to others.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.open.iter().zip(DIRS).try_for_each(|(open, (spool_dir, _))| check_open(open, spool_dir))
    }

    /// Checks before each scan that `spool/`, `state/` and the lane's folder are still open to nobody else.
    pub(super) fn check_intake(&self, lane: SpoolDir) -> Result<(), Error> {
        [SpoolDir::Spool, SpoolDir::State, lane].into_iter().try_for_each(|dir| check_open(self.open_dir(dir), dir))
    }

    pub(super) fn dir(&self, spool_dir: SpoolDir) -> BorrowedFd<'_> {
        self.open_dir(spool_dir).fd.as_fd()
    }

    pub(super) fn path(&self, spool_dir: SpoolDir) -> &Path {
        &self.open_dir(spool_dir).path
    }

    fn open_dir(&self, spool_dir: SpoolDir) -> &OpenDir {
        &self.open[spool_dir as usize]
    }
}

/// Makes the home if it is missing, resolves links in its path, and checks every folder above it.
fn prepare_home(home: &Path) -> Result<PathBuf, Error> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(home)
        .map_err(|error| Error::io("make the folder", home, error))?;
    let home = home.canonicalize().map_err(|error| Error::io("find the folder", home, error))?;
    for path in home.ancestors() {
        let meta = stat_path(path).map_err(|error| Error::io("check the folder", path, error))?;
        check_parent(path, &meta)?;
    }
    if let Some(parent) = home.parent() {
        let meta = stat_path(parent).map_err(|error| Error::io("check the folder", parent, error))?;
        check_not_in_shared_folder(&home, parent, &meta)?;
    }
    Ok(home)
}

fn stat_path(path: &Path) -> io::Result<Meta> {
    Ok(Meta::from(nix::sys::stat::stat(path)?))
}

/// Opens all folders, and makes those that are missing. Also returns whether it has made a folder of views.
fn open_dirs(home: &Path) -> Result<(Vec<OpenDir>, bool), Error> {
    let mut dirs: Vec<OpenDir> = Vec::with_capacity(DIRS.len());
    let mut made_views = false;
    for (spool_dir, below) in DIRS {
        let path = if below.is_empty() { home.to_owned() } else { home.join(below) };
        let parent = path.parent().and_then(|parent| dirs.iter().find(|open| open.path == parent));
        let fd = match (parent, path.file_name()) {
            (Some(parent), Some(name)) => {
                let is_missing = matches!(files::meta_at(&parent.fd, name), Ok(None));
                made_views |= is_missing && VIEWS.contains(&spool_dir);
                files::make_dir_at(&parent.fd, name)
            }
            _ => files::open_dir(&path),
        };
        let fd = fd.map_err(|error| Error::open_dir(&path, error))?;
        let meta = files::meta(&fd).map_err(|error| Error::io("check the folder", &path, error))?;
        let open = OpenDir { path, fd, identity: (meta.file_stamp.dev, meta.file_stamp.ino) };
        check_open(&open, spool_dir)?;
        dirs.push(open);
    }
    check_one_file_system(&dirs)?;
    Ok((dirs, made_views))
}

/// tasuki moves files between these folders by rename, which works only within one file system, and only within one
/// mount of it.
fn check_one_file_system(dirs: &[OpenDir]) -> Result<(), Error> {
    let of = |spool_dir: SpoolDir| &dirs[spool_dir as usize];
    let device = of(SpoolDir::Spool).identity.0;
    let moved = [SpoolDir::Tmp, SpoolDir::Requests, SpoolDir::Events, SpoolDir::Rejected, SpoolDir::Trash];
    match moved.into_iter().map(of).find(|open| open.identity.0 != device) {
        None => {}
        Some(open) => return Err(Error::other_file_system(open.path.clone())),
    }
    // The system compares the mounts before it looks for the file, so no file is needed to find that out.
    let trash = &of(SpoolDir::Trash).fd;
    let is_apart = |open: &&OpenDir| renameat(&open.fd, MISSING, trash, MISSING) == Err(Errno::EXDEV);
    match moved.into_iter().map(of).find(is_apart) {
        None => Ok(()),
        Some(open) => Err(Error::other_mount(open.path.clone())),
    }
}

fn check_open(open: &OpenDir, spool_dir: SpoolDir) -> Result<(), Error> {
    let meta = files::meta(&open.fd).map_err(|error| Error::io("check the folder", &open.path, error))?;
    check_dir(&open.path, &meta, spool_dir)
}

/// Checks owner and permission bits of one folder.
pub(super) fn check_dir(path: &Path, meta: &Meta, spool_dir: SpoolDir) -> Result<(), Error> {
    match spool_dir {
        SpoolDir::Home => check_parent(path, meta).and_then(|()| check_home(path, meta)),
        _ => check_mode(path, meta, forbidden(spool_dir)),
    }
}

/// The permission bits that a folder may not have.
pub(super) fn forbidden(spool_dir: SpoolDir) -> u32 {
    match spool_dir {
        // The owner may let others read the views, but nobody else may write to them.
        SpoolDir::Home
        | SpoolDir::View
        | SpoolDir::Agents
        | SpoolDir::Handoffs
        | SpoolDir::Work
        | SpoolDir::OpenWork => 0o022,
        _ => 0o077,
    }
}

/// Checks that a folder is ours and has none of the forbidden permission bits.
pub(super) fn check_mode(path: &Path, meta: &Meta, forbidden: u32) -> Result<(), Error> {
    let refuse = |what: String, fix: String| Err(Error::NotAllowed { path: path.to_owned(), what, fix });
    if !meta.is_ours() {
        let what = format!("belongs to user {}, not to the user that runs tasuki ({})", meta.uid, geteuid());
        return refuse(what, "Run tasuki as its owner, or choose another home".to_owned());
    }
    if meta.mode & forbidden != 0 {
        let (what, change) = match forbidden {
            0o022 => ("can be written by other users", "go-w"),
            _ => ("is open to other users", "go-rwx"),
        };
        return refuse(format!("{what} (mode {:04o})", meta.mode), format!("Run: chmod {change} '{}'", path.display()));
    }
    Ok(())
}

/// Refuses a home directly in a folder where every user can create files, such as `/tmp`: if the system's clean-up of
/// `/tmp` removes the home, another user could create a folder of that name.
pub(super) fn check_not_in_shared_folder(home: &Path, parent: &Path, meta: &Meta) -> Result<(), Error> {
    if meta.is_ours() || meta.mode & 0o022 == 0 {
        return Ok(());
    }
    let what = format!("is in {}, where every user can put files", parent.display());
    let fix = "Choose a home inside your own folders".to_owned();
    Err(Error::NotAllowed { path: home.to_owned(), what, fix })
}

/// The bit with which users can remove only their own files from a folder.
const STICKY: u32 = 0o1000;

/// Refuses a home in which another user could create a folder. A sticky bit does not prevent that.
fn check_home(path: &Path, meta: &Meta) -> Result<(), Error> {
    if meta.mode & 0o022 == 0 {
        return Ok(());
    }
    let what = format!("can be written by other users (mode {:04o}), who could put folders into it", meta.mode);
    let chmod = format!("chmod go-w '{}'", path.display());
    // Such a folder is meant for all users, as `/tmp` is: most likely, the home was named by mistake.
    let fix = match is_shared(meta) {
        true => format!("Choose a home inside your own folders. Only if this folder is for tasuki alone, run: {chmod}"),
        false => format!("Run: {chmod}"),
    };
    Err(Error::NotAllowed { path: path.to_owned(), what, fix })
}

/// Whether every user may put files into a folder, but remove only their own.
pub(super) fn is_shared(meta: &Meta) -> bool {
    meta.mode & STICKY != 0 && meta.mode & 0o002 != 0
}

/// Checks a folder above the home: root or this user owns it, and nobody else can rename what is in it.
pub(super) fn check_parent(path: &Path, meta: &Meta) -> Result<(), Error> {
    let refuse = |what: String, fix: String| Err(Error::NotAllowed { path: path.to_owned(), what, fix });
    if meta.uid != 0 && !meta.is_ours() {
        let what = format!("belongs to user {}, who could replace the folders in it", meta.uid);
        return refuse(what, "Choose a home inside your own folders".to_owned());
    }
    if meta.mode & 0o022 != 0 && meta.mode & STICKY == 0 {
        let what =
            format!("can be written by other users (mode {:04o}), who could replace the folders in it", meta.mode);
        return refuse(what, format!("Run: chmod go-w '{}'", path.display()));
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::spool::ErrorKind;
    use std::process::Command;

    const HOME: &str = "TASUKI_MOUNTED_HOME";

    /// Both folders are on one device, so only a rename finds it out. The test runs itself inside its own mounts.
    #[test]
    fn a_folder_that_is_mounted_by_itself_is_refused() {
        if let Some(home) = std::env::var_os(HOME) {
            let error = SpoolDirs::open(Path::new(&home)).expect_err("files can't be moved");
            assert_eq!(error.kind(), ErrorKind::Layout, "{error}");
            return assert!(error.to_string().contains("is mounted by itself"), "{error}");
        }
        let own = ["-m", "--propagation", "private"];
        if !Command::new("unshare").args(own).arg("true").output().is_ok_and(|ran| ran.status.success()) {
            return;
        }
        let dir = tempfile::tempdir().expect("a folder");
        let home = dir.path().join("home");
        let names = |dirs: &SpoolDirs| std::fs::read_dir(dirs.path(SpoolDir::Events)).expect("a folder").count();
        assert_eq!(names(&SpoolDirs::open(&home).expect("a new home")), 0, "the try leaves nothing behind");
        for (number, below) in ["spool", "spool/events", "state/reap"].into_iter().enumerate() {
            let other = dir.path().join(number.to_string());
            std::fs::DirBuilder::new().mode(0o700).create(&other).expect("made");
            let mut command = Command::new("unshare");
            command.args(own).args(["sh", "-c", "mount --bind \"$1\" \"$2\" && exec \"$3\" --exact \"$4\"", "sh"]);
            command.arg(&other).arg(home.join(below)).arg(std::env::current_exe().expect("this test"));
            let ran =
                command.arg(format!("{}::a_folder_that_is_mounted_by_itself_is_refused", module())).env(HOME, &home);
            let ran = ran.output().expect("it runs");
            let said = String::from_utf8_lossy(&ran.stdout);
            assert!(ran.status.success() && said.contains("1 passed"), "{below}: {said}");
        }
    }

    /// This module's path as the test program names it: without the crate.
    fn module() -> &'static str {
        module_path!().split_once("::").map_or("", |(_, path)| path)
    }
}
