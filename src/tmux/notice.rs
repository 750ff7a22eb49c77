//! What the adapter reports of its own accord: about a server, and about its panes.

use super::version::Version;
use crate::core::pane::ServerId;

/// One life of a tmux server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    pub id: ServerId,
    pub version: Version,
    pub socket_path: String,
}

/// What the adapter reports of its own accord.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TmuxNotice {
    /// There is a connection. It may be to another life of the server than the last one: compare the ids.
    Connected(ServerInfo),
    /// There is no connection. Reported when a connection ends, and once more if the next attempt to connect fails.
    /// Also reported if the first attempt of all fails.
    Disconnected { reason: String },
    /// Panes have come, gone or died, or it is time to look whether they have.
    PanesChanged,
}
