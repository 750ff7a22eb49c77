//! The state that all routes share.

use super::broadcaster::Broadcaster;
use super::change_notifier::ChangeNotifier;
use super::token::Token;
use crate::config::Home;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The home that is served, its token, and who waits for changes.
pub(super) struct ServeApp {
    pub(super) home: Home,
    /// Where we listen: requests that name another host are not meant for us.
    pub(super) address: SocketAddr,
    pub(super) token: Token,
    /// How long an answer of the sidecar is waited for.
    pub(super) patience: Duration,
    pub(super) changes: ChangeNotifier,
    pub(super) broadcaster: Broadcaster,
    /// Places for those who listen to events.
    pub(super) listeners: Arc<Semaphore>,
    pub(super) stop: CancellationToken,
}
