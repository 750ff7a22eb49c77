//! Which server is meant, and how it is reached.

use nix::libc::sockaddr_un;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The longest path that a Unix socket can have on this system, in bytes, without the zero byte at its end: 107 on
/// Linux, 103 on macOS.
pub const LONGEST_SOCKET_PATH: usize = size_of::<sockaddr_un>() - std::mem::offset_of!(sockaddr_un, sun_path) - 1;

/// Which server, in the words of tmux's own options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Socket {
    Default,
    /// As `tmux -L NAME`.
    Name(String),
    /// As `tmux -S PATH`.
    Path(PathBuf),
}

impl Socket {
    /// What a person has written: a path if it has a slash, else a name.
    #[must_use]
    pub fn named(name: String) -> Socket {
        if name.contains('/') { Socket::Path(PathBuf::from(name)) } else { Socket::Name(name) }
    }
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub struct SocketOptions {
    pub socket: Socket,
    /// 8 hexadecimal digits of the home's random id, so that two homes can share a server.
    pub home_tag: String,
    pub program: PathBuf,
    /// Start a server if none runs.
    pub start_server: bool,
}

/// The path of a server's socket is longer than the system allows, so no server can be reached there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the path of tmux's socket has {length} bytes, and this system allows at most {LONGEST_SOCKET_PATH}: {}", .path.display()
)]
pub struct SocketPathTooLong {
    path: PathBuf,
    length: usize,
}

impl SocketPathTooLong {
    /// What to do about it.
    pub const FIX: &str = "name a server with a shorter path (--tmux, or [tmux] socket in config.toml), or set TMUX_TMPDIR to a folder with \
         a shorter one";
}

/// Checks that a server can be reached at this path at all.
///
/// # Errors
/// The path is too long.
pub fn check_length(socket: &Path) -> Result<(), SocketPathTooLong> {
    let length = socket.as_os_str().as_bytes().len();
    if length > LONGEST_SOCKET_PATH { Err(SocketPathTooLong { path: socket.to_owned(), length }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_longest_path_is_that_of_the_system() {
        let known = if cfg!(target_os = "linux") { 107 } else { 103 };
        assert_eq!(LONGEST_SOCKET_PATH, known);
        let dir = tempfile::Builder::new().prefix("s").tempdir_in("/tmp").expect("a folder");
        let room = LONGEST_SOCKET_PATH - dir.path().as_os_str().len() - 1;
        for (length, fits) in [(room, true), (room + 1, false)] {
            let path = dir.path().join("s".repeat(length));
            assert_eq!(check_length(&path).is_ok(), fits, "{length}");
            assert_eq!(UnixListener::bind(&path).is_ok(), fits, "{length}: the system thinks so too");
        }
    }
}
