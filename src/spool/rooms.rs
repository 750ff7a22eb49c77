//! The folders of one home: made if missing, checked, and held open, so that all work is done on the very folders that
//! were checked.

use super::error::Error;
use crate::files::{self, Meta};
use nix::sys::stat::{Mode, umask};
use nix::unistd::geteuid;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// One writer, one thread: one temporary name for each folder is enough, and a crash leaves at most that one behind.
pub(super) const TEMP: &str = ".tasuki-new";

/// One folder of the contract. The order is that of [`ROOMS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Home,
    Spool,
    Tmp,
    Requests,
    Events,
    Results,
    Errors,
    Rejected,
    State,
    Reap,
    View,
    Agents,
    Handoffs,
    Work,
    OpenWork,
}

/// Every folder with its place below home, parents first.
pub(super) const ROOMS: [(Room, &str); 15] = [
    (Room::Home, ""),
    (Room::Spool, "spool"),
    (Room::Tmp, "spool/tmp"),
    (Room::Requests, "spool/requests"),
    (Room::Events, "spool/events"),
    (Room::Results, "spool/results"),
    (Room::Errors, "spool/errors"),
    (Room::Rejected, "spool/rejected"),
    (Room::State, "state"),
    (Room::Reap, "state/reap"),
    (Room::View, "view"),
    (Room::Agents, "view/agents"),
    (Room::Handoffs, "view/handoffs"),
    (Room::Work, "view/work"),
    (Room::OpenWork, "view/work/open"),
];

#[derive(Debug)]
struct OpenRoom {
    path: PathBuf,
    fd: OwnedFd,
    identity: (u64, u64),
}

/// The folders of one home, held open.
#[derive(Debug)]
pub(super) struct Rooms {
    home: PathBuf,
    open: Vec<OpenRoom>,
    /// Where tests say when a file was changed, which only the kernel can otherwise.
    #[cfg(test)]
    pub(super) file_times: Option<fn(i64) -> i64>,
}

impl Rooms {
    pub(super) fn open(home: &Path) -> Result<Rooms, Error> {
        umask(Mode::from_bits_truncate(0o077));
        let home = prepare_home(home)?;
        let open = open_rooms(&home)?;
        Ok(Rooms {
            home,
            open,
            #[cfg(test)]
            file_times: None,
        })
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// When a file was last changed, in nanoseconds since 1970.
    pub(super) fn changed_ns(&self, meta: &Meta) -> i64 {
        #[cfg(test)]
        if let Some(at) = self.file_times {
            return at(meta.stamp.ctime_ns);
        }
        #[cfg(not(test))]
        let _ = self;
        meta.stamp.ctime_ns
    }

    /// Whether the paths still lead to the folders that are open here.
    pub(super) fn is_in_place(&self) -> bool {
        self.open.iter().all(|room| {
            // A link is not the folder, even where it leads to the very one that was moved away.
            let there = nix::sys::stat::lstat(&room.path).map(Meta::from);
            there.is_ok_and(|meta| (meta.stamp.dev, meta.stamp.ino) == room.identity)
        })
    }

    /// Checks owner and permission bits of all folders again, on the open folders themselves; the first that is open to
    /// others is named.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.open.iter().zip(ROOMS).try_for_each(|(open, (room, _))| check_open(open, room))
    }

    /// What must hold at every intake: spool, state and the lane are ours alone.
    pub(super) fn check_intake(&self, lane: Room) -> Result<(), Error> {
        [Room::Spool, Room::State, lane].into_iter().try_for_each(|room| check_open(self.open_room(room), room))
    }

    pub(super) fn dir(&self, room: Room) -> BorrowedFd<'_> {
        self.open_room(room).fd.as_fd()
    }

    pub(super) fn path(&self, room: Room) -> &Path {
        &self.open_room(room).path
    }

    fn open_room(&self, room: Room) -> &OpenRoom {
        &self.open[room as usize]
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
        check_neighbours(&home, parent, &meta)?;
    }
    Ok(home)
}

fn stat_path(path: &Path) -> io::Result<Meta> {
    Ok(Meta::from(nix::sys::stat::stat(path)?))
}

fn open_rooms(home: &Path) -> Result<Vec<OpenRoom>, Error> {
    let mut rooms: Vec<OpenRoom> = Vec::with_capacity(ROOMS.len());
    for (room, below) in ROOMS {
        let path = if below.is_empty() { home.to_owned() } else { home.join(below) };
        let parent = path.parent().and_then(|parent| rooms.iter().find(|open| open.path == parent));
        let fd = match (parent, path.file_name()) {
            (Some(parent), Some(name)) => files::make_dir_at(&parent.fd, name),
            _ => files::open_dir(&path),
        };
        let fd = fd.map_err(|error| Error::open_dir(&path, error))?;
        let meta = files::meta(&fd).map_err(|error| Error::io("check the folder", &path, error))?;
        let open = OpenRoom { path, fd, identity: (meta.stamp.dev, meta.stamp.ino) };
        check_open(&open, room)?;
        rooms.push(open);
    }
    check_one_file_system(&rooms)?;
    Ok(rooms)
}

/// Files are moved by rename between these folders, which one file system alone can do.
fn check_one_file_system(rooms: &[OpenRoom]) -> Result<(), Error> {
    let of = |room: Room| &rooms[room as usize];
    let device = of(Room::Spool).identity.0;
    let moved = [Room::Tmp, Room::Requests, Room::Events, Room::Rejected, Room::Reap];
    match moved.into_iter().map(of).find(|open| open.identity.0 != device) {
        None => Ok(()),
        Some(open) => Err(Error::other_file_system(open.path.clone())),
    }
}

fn check_open(open: &OpenRoom, room: Room) -> Result<(), Error> {
    let meta = files::meta(&open.fd).map_err(|error| Error::io("check the folder", &open.path, error))?;
    check_room(&open.path, &meta, room)
}

/// What must hold for one folder, judged by what `stat` says of it.
pub(super) fn check_room(path: &Path, meta: &Meta, room: Room) -> Result<(), Error> {
    match room {
        Room::Home => check_parent(path, meta).and_then(|()| check_home(path, meta)),
        _ => check_mode(path, meta, forbidden(room)),
    }
}

/// The permission bits that a folder may not have.
pub(super) fn forbidden(room: Room) -> u32 {
    match room {
        // Views may be shown to others by their owner's own will; nobody else may write them.
        Room::Home | Room::View | Room::Agents | Room::Handoffs | Room::Work | Room::OpenWork => 0o022,
        _ => 0o077,
    }
}

/// A folder of ours that has none of the forbidden permission bits.
pub(super) fn check_mode(path: &Path, meta: &Meta, forbidden: u32) -> Result<(), Error> {
    let refuse = |what: String, fix: String| Err(Error::NotAllowed { path: path.to_owned(), what, fix });
    if !meta.is_ours() {
        let what = format!("belongs to user {}, not to the user that runs tasuki ({})", meta.uid, geteuid());
        return refuse(what, "Run tasuki as its owner, or choose another home".to_owned());
    }
    if meta.mode & forbidden != 0 {
        let what = format!("is open to other users (mode {:04o})", meta.mode);
        return refuse(what, format!("Run: chmod go-rwx '{}'", path.display()));
    }
    Ok(())
}

/// A home right in a folder where everybody puts things, as `/tmp`, is somebody else's when it was cleared away.
pub(super) fn check_neighbours(home: &Path, parent: &Path, meta: &Meta) -> Result<(), Error> {
    if meta.is_ours() || meta.mode & 0o022 == 0 {
        return Ok(());
    }
    let what = format!("lies in {}, where every user puts things", parent.display());
    let fix = "Choose a home inside your own folders".to_owned();
    Err(Error::NotAllowed { path: home.to_owned(), what, fix })
}

/// Nobody else may put a folder into the home; a sticky bit keeps nobody from that.
fn check_home(path: &Path, meta: &Meta) -> Result<(), Error> {
    if meta.mode & 0o022 == 0 {
        return Ok(());
    }
    let what =
        format!("can be written by other users (mode {:04o}), who could put folders of theirs into it", meta.mode);
    let fix = format!("Run: chmod go-w '{}'", path.display());
    Err(Error::NotAllowed { path: path.to_owned(), what, fix })
}

/// A folder above ours: its owner is root or us, and nobody else can rename what lies in it.
pub(super) fn check_parent(path: &Path, meta: &Meta) -> Result<(), Error> {
    const STICKY: u32 = 0o1000;
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
