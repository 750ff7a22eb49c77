//! What the adapter tells of its own accord: of a server, and of its panes.

use super::probe::Version;
use crate::core::pane::ServerId;

/// One life of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    pub id: ServerId,
    /// How old the program is.
    pub version: Version,
    pub socket_path: String,
}

/// What the adapter tells of its own accord.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A connection stands. It may be to another life of the server than the last one: compare the ids.
    Connected(ServerInfo),
    /// There is none; said once until the next [`Notice::Connected`].
    Disconnected { reason: String },
    /// Panes have come, gone or died, or it is time to look whether they have.
    PanesChanged,
}
