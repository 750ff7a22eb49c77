//! The handle through which everything asks and changes.

use super::client::{self, Lost, Reply};
use super::error::Error;
use super::notice::{Notice, ServerInfo};
use super::socket::Options;
use super::supervisor::{self, Live, Shared, Status};
use super::turn::Turn;
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
    /// Starts to look for the server and keeps a connection to it for ever. Does not block.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for a tag that is not 8 hexadecimal digits, [`Error::Thread`] when the system gives no
    /// thread. That no server runs is no error here.
    pub fn start(options: Options, notices: mpsc::Sender<Notice>) -> Result<Tmux, Error> {
        let tag = options.home_tag.as_bytes();
        if tag.len() != 8 || !tag.iter().all(u8::is_ascii_hexdigit) {
            return Err(Error::BadArgument { what: "the home's tag", rule: "8 hexadecimal digits" });
        }
        Ok(Tmux { inner: Arc::new(Inner { shared: supervisor::start(options, notices)? }) })
    }

    /// The server that the connection is to, if one stands.
    #[must_use]
    pub fn server(&self) -> Option<ServerInfo> {
        match &*self.inner.shared.status.borrow() {
            Status::Live(live) => Some(live.info.clone()),
            _ => None,
        }
    }

    /// The connection, waited for while it is not known whether there will be one.
    pub(super) async fn live(&self) -> Result<Arc<Live>, Error> {
        self.live_within(client::PATIENCE).await
    }

    pub(super) async fn live_within(&self, patience: Duration) -> Result<Arc<Live>, Error> {
        let until = Instant::now() + patience;
        let mut status = self.inner.shared.status.subscribe();
        loop {
            let reason = match &*status.borrow_and_update() {
                Status::Live(live) => return Ok(Arc::clone(live)),
                Status::Down { reason, certain: true } => return Err(Error::NoServer(reason.clone())),
                Status::Closed => return Err(Error::NoServer("closed".to_owned())),
                Status::Down { reason, certain: false } => reason.clone(),
                Status::Looking => "still connecting".to_owned(),
            };
            if !matches!(tokio::time::timeout_at(until, status.changed()).await, Ok(Ok(()))) {
                return Err(Error::NotConnected(reason));
            }
        }
    }

    /// Asks a question that changes nothing: it is asked again when the connection is lost on the way.
    pub(super) async fn read(&self, line: &str) -> Result<(Arc<Live>, Reply), Error> {
        for _ in 0..2 {
            let live = self.live().await?;
            if let Ok(reply) = live.ask(line.to_owned()).await {
                return Ok((live, reply));
            }
        }
        Err(Error::NotConnected("the connection was lost twice".to_owned()))
    }

    /// Sends a line that changes something, once.
    pub(super) async fn change(&self, live: &Live, line: String) -> Result<Reply, Error> {
        let _turn = Turn::beside(&live.info.socket_path).await;
        match live.ask(line).await {
            Ok(reply) => Ok(reply),
            Err(Lost { sent: true }) => Err(Error::Lost),
            Err(Lost { sent: false }) => Err(Error::NotConnected("the line was not sent".to_owned())),
        }
    }
}
