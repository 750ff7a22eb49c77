//! The handle through which all other code asks tmux and changes something there.

use super::client::{self, CommandReplies, Lost};
use super::error::Error;
use super::notice::{ServerInfo, TmuxNotice};
use super::server_lock::ServerLock;
use super::socket::SocketOptions;
use super::supervisor::{self, ConnectionStatus, LiveClient, Shared};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The handle. When the last clone is dropped, the control client ends.
#[derive(Debug, Clone)]
pub struct Tmux {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) shared: Arc<Shared>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl Tmux {
    /// Starts to search for the server, and keeps a connection to it from then on. Does not block. A server that does
    /// not run is not an error here.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for a tag that is not 8 hexadecimal digits, [`Error::SocketPath`] for a path that is too
    /// long, [`Error::Thread`] when the system starts no thread.
    pub fn start(options: SocketOptions, notices: mpsc::Sender<TmuxNotice>) -> Result<Tmux, Error> {
        let tag = options.home_tag.as_bytes();
        if tag.len() != 8 || !tag.iter().all(u8::is_ascii_hexdigit) {
            return Err(Error::BadArgument { what: "the home's tag", rule: "8 hexadecimal digits" });
        }
        Ok(Tmux { inner: Arc::new(Inner { shared: supervisor::start(options, notices)? }) })
    }

    /// The server of the present connection, if there is one.
    #[must_use]
    pub fn server(&self) -> Option<ServerInfo> {
        match &*self.inner.shared.status.borrow() {
            ConnectionStatus::Live(live) => Some(live.info.clone()),
            _ => None,
        }
    }

    /// Why there is no connection, if the operator has to do something about it.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        match &*self.inner.shared.status.borrow() {
            ConnectionStatus::Down { reason, is_problem: true, .. } => Some(reason.clone()),
            _ => None,
        }
    }

    /// Why there is no connection; `None` if there is one, or if the first attempt has not ended.
    #[must_use]
    pub fn no_connection(&self) -> Option<String> {
        match &*self.inner.shared.status.borrow() {
            ConnectionStatus::Down { reason, .. } => Some(reason.clone()),
            _ => None,
        }
    }

    /// The connection. Waits for it for at most [`client::PATIENCE`], unless it is certain that there will be none.
    pub(super) async fn live(&self) -> Result<Arc<LiveClient>, Error> {
        self.live_within(client::PATIENCE).await
    }

    pub(super) async fn live_within(&self, patience: Duration) -> Result<Arc<LiveClient>, Error> {
        let until = Instant::now() + patience;
        let mut status = self.inner.shared.status.subscribe();
        loop {
            let reason = match &*status.borrow_and_update() {
                ConnectionStatus::Live(live) => return Ok(Arc::clone(live)),
                ConnectionStatus::Down { reason, certain: true, .. } => return Err(Error::NoServer(reason.clone())),
                ConnectionStatus::Closed => return Err(Error::NoServer("closed".to_owned())),
                ConnectionStatus::Down { reason, certain: false, .. } => reason.clone(),
                ConnectionStatus::Looking => "still connecting".to_owned(),
            };
            if !matches!(tokio::time::timeout_at(until, status.changed()).await, Ok(Ok(()))) {
                return Err(Error::NotConnected(reason));
            }
        }
    }

    /// Asks a question, which changes nothing. If the connection is lost on the way, the question is asked once more.
    pub(super) async fn read(&self, line: &str) -> Result<(Arc<LiveClient>, CommandReplies), Error> {
        for _ in 0..2 {
            let live = self.live().await?;
            if let Ok(reply) = live.ask(line.to_owned()).await {
                return Ok((live, reply));
            }
        }
        Err(Error::NotConnected("the connection was lost twice".to_owned()))
    }

    /// Sends a line that changes something, once.
    pub(super) async fn change(&self, live: &LiveClient, line: String) -> Result<CommandReplies, Error> {
        let _lock = ServerLock::shared(&live.info.socket_path).await;
        match live.ask(line).await {
            Ok(reply) => Ok(reply),
            Err(Lost { sent: true }) => Err(Error::Lost),
            Err(Lost { sent: false }) => Err(Error::NotConnected("the command was not sent".to_owned())),
        }
    }
}
