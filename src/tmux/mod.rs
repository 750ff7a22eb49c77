//! The tmux adapter: knows panes, and types into them; knows nothing of agents or handoffs.
//!
//! One control client per server, kept by one thread, and everything else asks through it. Read in this order:
//!
//! - [`protocol`], [`quote`]: bytes to answers, texts to arguments; no input or output
//! - `owner`: whose a socket is, asked before anything speaks to what listens there
//! - `pty`, `probe`: the control client's process, and the one question that is asked by a process of its own
//! - `client`: requests and replies over one connection; `server`: what is put in order once it stands
//! - `supervisor`: the thread that finds the server, connects with care and begins again; `turn`: homes that share one
//! - `outbox`: notices, handed over without ever waiting
//! - [`examine`]: what a person who asks what is wrong is told of a server
//! - `guard`: names inside the server, the guard of every changing line, the marks; `claim`: which home a pane belongs to
//! - `pane`, `look`, `sight`: what is known and seen of a pane
//! - `deliver`, `typing`: what is typed, and how it is typed exactly once, into the agent and nobody else; `create`: new windows; `place`: placeholders and messages;
//!   `status`: a line about us that users may show
//!
//! Never: `send-keys`, `run-shell`, Escape; a resize, a focus change or a use of the user's buffers; a line that changes
//! something without the guard; a line sent again because its answer was lost.

mod claim;
mod client;
mod create;
mod deliver;
pub mod examine;
mod guard;
mod look;
mod outbox;
mod owner;
mod pane;
mod place;
mod probe;
pub mod protocol;
mod pty;
pub mod quote;
mod server;
mod sight;
mod status;
mod supervisor;
mod turn;
mod typing;

pub use create::{Found, SpawnOutcome, SpawnPlan};
pub use deliver::{Input, TypePlan};
pub use look::{Eye, Ready, ReadyPlan};
pub use pane::{Capture, PaneRow};
pub use place::Place;
pub use probe::Version;

use crate::core::pane::{PaneRef, Refusal, ServerId};
use client::{Lost, Reply};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use supervisor::{Live, Shared, Status};
use tokio::sync::mpsc;
use tokio::time::Instant;
use turn::Turn;

/// Which server, in the words of tmux's own options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Socket {
    /// The user's default server.
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

/// How to reach a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which one.
    pub socket: Socket,
    /// 8 hexadecimal digits of the home's random id, so that two homes can share a server.
    pub home_tag: String,
    /// The tmux program.
    pub program: PathBuf,
    /// Start a server when none runs.
    pub start_server: bool,
}

/// One life of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// Which life.
    pub id: ServerId,
    /// How old the program is.
    pub version: Version,
    /// Where it listens.
    pub socket_path: String,
}

/// What the adapter tells of its own accord.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A connection stands. It may be to another life of the server than the last one: compare the ids.
    Connected(ServerInfo),
    /// There is none; said once until the next [`Notice::Connected`].
    Disconnected {
        /// Why, for people.
        reason: String,
    },
    /// Panes have come, gone or died, or it is time to look whether they have.
    PanesChanged,
}

/// Why a question to tmux has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The thread or its pipe could not be made.
    #[error("the tmux thread can't be started: {0}")]
    Thread(#[source] io::Error),
    /// No tmux server that can be used runs.
    #[error("no tmux server can be used ({0}); start tmux, or check --tmux")]
    NoServer(String),
    /// The connection was lost, or did not come in time.
    #[error("tmux does not answer at present ({0}); nothing was changed")]
    NotConnected(String),
    /// The connection was lost after the line was sent: it may have been carried out.
    #[error("the connection to tmux was lost before it answered")]
    Lost,
    /// A process in a pane could not be looked at, so what is there is not known.
    #[error("the processes in tmux's panes can't be looked at ({0}); nothing was changed")]
    Unseen(#[source] io::Error),
    /// tmux said no.
    #[error("tmux refused: {0}")]
    Said(String),
    /// The pane is not the one that is meant.
    #[error("pane {pane}: {}", .reason.hint())]
    Pane {
        /// Which one was meant.
        pane: PaneRef,
        /// What is the matter with it.
        reason: Refusal,
    },
    /// A name or text that tmux can't be given.
    #[error("{what} can't be given to tmux: {rule}")]
    BadArgument {
        /// What it is.
        what: &'static str,
        /// What it would have to be.
        rule: &'static str,
    },
}

/// The handle. When the last clone is dropped, the control client ends.
#[derive(Debug, Clone)]
pub struct Tmux {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
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

    /// Ends for good and cleanly: our options and our session go from the server, then the client's terminal is closed.
    /// The adapter answers nothing afterwards. Takes at most some seconds, also when tmux does not answer.
    pub async fn close(&self) {
        let shared = &self.inner.shared;
        // Held until the client has gone, of which the server tells all others.
        let mut _turn = None;
        if let Ok(live) = self.live_within(Duration::ZERO).await {
            let socket = PathBuf::from(&live.info.socket_path);
            _turn = tokio::task::spawn_blocking(move || Turn::alone(&socket, turn::LEAVES_WITHIN)).await.ok();
            let names = &shared.names;
            let line = format!(
                "{} ; if-shell -F \"{}\" {{ {} ; set-option -s -u {} ; set-option -s -u {} ; kill-session -t \"={}\" }}",
                status::withdraw(names.tag()),
                names.fenced(&live.fence),
                server::UNSUBSCRIBE,
                names.directory(),
                names.fence(),
                names.session()
            );
            // Killing the session ends the client, so the answer is as likely to be lost as not.
            let _ = live.ask(line).await;
        }
        shared.stop();
        let mut status = shared.status.subscribe();
        let closed = status.wait_for(|status| matches!(status, Status::Closed));
        if tokio::time::timeout(Duration::from_secs(10), closed).await.is_err() {
            tracing::warn!("the tmux thread does not end");
        }
    }

    /// The connection, waited for while it is not known whether there will be one.
    async fn live(&self) -> Result<Arc<Live>, Error> {
        self.live_within(client::PATIENCE).await
    }

    async fn live_within(&self, patience: Duration) -> Result<Arc<Live>, Error> {
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
    async fn read(&self, line: &str) -> Result<(Arc<Live>, Reply), Error> {
        for _ in 0..2 {
            let live = self.live().await?;
            if let Ok(reply) = live.ask(line.to_owned()).await {
                return Ok((live, reply));
            }
        }
        Err(Error::NotConnected("the connection was lost twice".to_owned()))
    }

    /// Sends a line that changes something, once.
    async fn change(&self, live: &Live, line: String) -> Result<Reply, Error> {
        let _turn = Turn::beside(&live.info.socket_path).await;
        match live.ask(line).await {
            Ok(reply) => Ok(reply),
            Err(Lost { sent: true }) => Err(Error::Lost),
            Err(Lost { sent: false }) => Err(Error::NotConnected("the line was not sent".to_owned())),
        }
    }
}
