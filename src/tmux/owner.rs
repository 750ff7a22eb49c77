//! Checks who owns a socket before anything speaks to the server behind it.
//!
//! A tmux client sends its whole environment to its server, and then does what the server tells it, even run programs.
//! tmux itself refuses a socket folder that others can write to, but not with `-S`, which tasuki uses.

use crate::files::way::{End, Unsafe, walk};
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use nix::unistd::geteuid;
use std::fmt;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};

/// Why tasuki sends nothing to the process that listens on a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Foreign {
    pub(super) path: PathBuf,
    what: String,
    pub(super) fix: String,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}; tasuki sent nothing to a tmux server there", self.path.display(), self.what)
    }
}

/// Why nothing was sent to a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unasked {
    Foreign(Foreign),
    /// So many clients wait for the server that the system lets no other one wait.
    Busy,
    /// The system lacks files or memory to find out who listens there. That may pass.
    Lacking {
        path: PathBuf,
        errno: Errno,
    },
}

impl From<Foreign> for Unasked {
    fn from(foreign: Foreign) -> Unasked {
        Unasked::Foreign(foreign)
    }
}

impl fmt::Display for Unasked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unasked::Foreign(foreign) => foreign.fmt(f),
            Unasked::Busy => f.write_str("the tmux server takes no more clients at present; tasuki sent nothing to it"),
            Unasked::Lacking { path, errno } => {
                write!(f, "tasuki can't find out at present who listens on {} ({errno})", path.display())
            }
        }
    }
}

impl Unasked {
    /// What the user can do.
    pub(super) fn fix(&self) -> &str {
        match self {
            Unasked::Foreign(foreign) => &foreign.fix,
            Unasked::Busy => "wait until the server answers again, or look why its process hangs",
            Unasked::Lacking { .. } => {
                "try again; if that does not help, look what takes this machine's memory and files"
            }
        }
    }
}

/// Refuses a socket that belongs to a user other than root and us, or that such a user could have put there. Also
/// refuses a socket on which any user but us listens, even root. A missing socket is fine.
pub(super) fn check(socket: &Path) -> Result<(), Unasked> {
    if check_place(socket)? { check_peer(socket) } else { Ok(()) }
}

/// The same check, but only of folders and socket, not of who listens. Returns whether there is a socket.
pub(super) fn check_place(socket: &Path) -> Result<bool, Foreign> {
    match walk(socket) {
        Ok(end) => {
            check_folder(end.path.parent().unwrap_or(&end.path), end.folder.uid, end.folder.mode)?;
            check_socket(&end)?;
            Ok(true)
        }
        Err(error) if error.is_missing() => {
            match socket.parent().map(walk) {
                Some(Ok(folder)) => check_folder(&folder.path, folder.meta.uid, folder.meta.mode)?,
                Some(Err(error)) if !error.is_missing() => return Err(Foreign::from(error)),
                _ => {}
            }
            Ok(false)
        }
        Err(error) => Err(Foreign::from(error)),
    }
}

impl From<Unsafe> for Foreign {
    fn from(error: Unsafe) -> Foreign {
        match error {
            Unsafe::Exposed { path, what, fix } => Foreign { path, what, fix },
            Unsafe::Io { path, source } => {
                let fix = "check that path, or choose another socket with --tmux".to_owned();
                Foreign { path, what: format!("can't be checked ({source})"), fix }
            }
        }
    }
}

/// Nobody else may put a socket there. tmux's own folder must give others no rights at all: that is tmux's rule.
fn check_folder(path: &Path, uid: u32, mode: u32) -> Result<(), Foreign> {
    let refuse = |what: String, fix: String| Err(Foreign { path: path.to_owned(), what, fix });
    let other = "give tmux and tasuki a socket in a folder of your own: TMUX_TMPDIR, or tmux -S and tasuki run --tmux";
    if !is_fit(uid) {
        return refuse(format!("belongs to user {uid}, who could answer in place of your tmux"), other.to_owned());
    }
    let is_tmuxs = path.file_name().is_some_and(|name| *name == *format!("tmux-{}", geteuid()));
    if mode & if is_tmuxs { 0o027 } else { 0o022 } != 0 {
        let what = format!("is open to other users (mode {mode:04o}), who could answer in place of your tmux");
        let is_shared = uid != geteuid().as_raw() || mode & 0o1000 != 0;
        return refuse(what, if is_shared { other.to_owned() } else { chmod(path) });
    }
    Ok(())
}

fn check_socket(end: &End) -> Result<(), Foreign> {
    let refuse = |what: String, fix: String| Err(Foreign { path: end.path.clone(), what, fix });
    if !is_fit(end.meta.uid) {
        let fix = "remove the socket, or choose another one with --tmux".to_owned();
        return refuse(format!("belongs to user {}, but tasuki runs as another user", end.meta.uid), fix);
    }
    if end.meta.mode & 0o007 != 0 {
        return refuse(format!("is open to other users (mode {:04o})", end.meta.mode), chmod(&end.path));
    }
    Ok(())
}

fn is_fit(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

fn chmod(path: &Path) -> String {
    format!("run: chmod g-w,o-rwx '{}'", path.display())
}

/// The server behind the socket must run as this user. This sends no byte and never waits: if the server's queue is
/// full, it returns [`Unasked::Busy`].
fn check_peer(path: &Path) -> Result<(), Unasked> {
    let refuse = |what: String| {
        let fix = "end the process that listens there, or choose another socket with --tmux".to_owned();
        Err(Unasked::Foreign(Foreign { path: path.to_owned(), what, fix }))
    };
    let asked = || -> nix::Result<u32> {
        let flags = SockFlag::empty();
        let end = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        nix::fcntl::fcntl(&end, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC))?;
        nix::fcntl::fcntl(&end, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK))?;
        connect(end.as_raw_fd(), &UnixAddr::new(path)?)?;
        peer(end.as_fd())
    };
    match asked() {
        Ok(uid) if uid == geteuid().as_raw() => Ok(()),
        Ok(uid) => refuse(format!("has a listener of user {uid}, but tasuki runs as another user")),
        // Nobody listens. tmux's own message will say so.
        Err(Errno::ECONNREFUSED | Errno::ENOENT) => Ok(()),
        Err(Errno::EAGAIN) => Err(Unasked::Busy),
        Err(errno @ (Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS)) => {
            Err(Unasked::Lacking { path: path.to_owned(), errno })
        }
        Err(errno) => refuse(format!("does not tell which user listens there ({errno})")),
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn peer(end: std::os::fd::BorrowedFd<'_>) -> nix::Result<u32> {
    use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
    Ok(getsockopt(&end, PeerCredentials)?.uid())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn peer(end: std::os::fd::BorrowedFd<'_>) -> nix::Result<u32> {
    Ok(nix::unistd::getpeereid(end)?.0.as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{Backlog, bind, listen};

    /// The server may be the user's own, and hang. tasuki must not tell the user to end it, as it does for a foreign
    /// server.
    #[test]
    fn a_server_whose_queue_is_full_is_busy_and_not_foreign() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().canonicalize().expect("it is there").join("s");
        let open = || socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None).expect("a socket");
        let listener = open();
        bind(listener.as_raw_fd(), &UnixAddr::new(&path).expect("short")).expect("bound");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("a mode");
        listen(&listener, Backlog::new(1).expect("small")).expect("it listens");
        let found: Vec<_> = (0..8).map(|_| (check(&path), hold(&path))).collect();
        assert_eq!(found[0].0, Ok(()));
        let last = &found[7].0;
        if cfg!(target_os = "linux") {
            assert_eq!(*last, Err(Unasked::Busy));
        }
        assert!(!matches!(last, Err(Unasked::Foreign(_))), "{last:?}");
    }

    /// Takes a place in the server's queue, if there is one left.
    fn hold(path: &Path) -> std::os::fd::OwnedFd {
        let end = socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None).expect("a socket");
        nix::fcntl::fcntl(&end, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK)).expect("set");
        let _ = connect(end.as_raw_fd(), &UnixAddr::new(path).expect("short"));
        end
    }
}
