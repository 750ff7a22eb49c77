//! Where the server is, as whom this host logs in, and what it hears of the connection.

use crate::core::host::{FleetName, HostName};
use std::path::PathBuf;
use std::time::Duration;

/// How long the server may take for one answer.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Where the server is, and as whom this host logs in.
#[derive(Debug, Clone)]
pub struct ServerAccess {
    /// Its addresses: `tls://host:port`, `nats://host:port` or `wss://…`.
    pub urls: Vec<String>,
    /// The certificate of its authority, where that is the fleet's own.
    pub ca: Option<PathBuf>,
    /// The domain of its streams; empty if they have none.
    pub domain: String,
    /// The claims of this host.
    pub jwt: String,
}

/// Who is in which fleet: the names that subjects are made of.
#[derive(Debug, Clone)]
pub struct FleetPlace {
    /// The fleet.
    pub fleet: FleetName,
    /// This host.
    pub host: HostName,
}

/// Why the server can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CourierError {
    /// An address can't be read.
    #[error("the address {0:?} of the server can't be used")]
    BadAddress(String),
    /// It was not reached, or has not answered in time.
    #[error("the server was not reached: {0}")]
    Unreachable(String),
    /// It does not let this host do that.
    #[error("the server does not allow it: {0}")]
    NotAllowed(String),
    /// It has answered with an error.
    #[error("the server answers: {0}")]
    Refused(String),
}

/// What is heard of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// It stands.
    Connected,
    /// It is gone; the client tries again by itself.
    Disconnected,
    /// The server refuses this host's login.
    LoginRefused,
    /// The server was not reached, for this reason; the client tries again by itself.
    Unreached(String),
    /// The server has refused something that this host has tried.
    NotAllowed(String),
}
