//! What every answer is made from.

use super::bell::Bell;
use super::hub::Hub;
use super::token::Token;
use crate::config::Home;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The home, whom it is shown to, and who tells of its changes.
pub(super) struct App {
    pub(super) home: Home,
    /// Where we listen: requests that name another host are not meant for us.
    pub(super) address: SocketAddr,
    pub(super) token: Token,
    /// How long an answer of the sidecar is waited for.
    pub(super) patience: Duration,
    pub(super) bell: Bell,
    pub(super) hub: Hub,
    /// Places for those who listen to events.
    pub(super) listeners: Arc<Semaphore>,
    pub(super) stop: CancellationToken,
}
