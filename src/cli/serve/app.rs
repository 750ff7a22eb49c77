//! The state that all routes share.

use super::broadcaster::Broadcaster;
use super::change_notifier::ChangeNotifier;
use super::submitted::SubmittedRequests;
use super::token::Token;
use crate::config::Home;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The home that is served, its token, and the listeners.
pub(super) struct ServeApp {
    pub(super) home: Home,
    /// The address that we listen on. The guard refuses requests that name another host.
    pub(super) address: SocketAddr,
    pub(super) token: Token,
    /// How long to wait for the sidecar's answer to a request.
    pub(super) patience: Duration,
    pub(super) changes: ChangeNotifier,
    pub(super) submitted: SubmittedRequests,
    pub(super) broadcaster: Broadcaster,
    /// One permit for each client of `/api/events`.
    pub(super) listeners: Arc<Semaphore>,
    /// The page shows the other hosts of the fleet too.
    pub(super) all_hosts: bool,
    pub(super) stop: CancellationToken,
}
