//! Which server is meant, and how it is reached.

use std::path::PathBuf;

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
