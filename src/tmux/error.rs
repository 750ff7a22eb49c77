//! Why a question to tmux has no answer.

use super::socket::SocketPathTooLong;
use crate::core::pane::{PaneRef, Refusal};
use std::io;

/// Why a question to tmux has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The thread or its pipe could not be made.
    #[error("could not start the tmux thread: {0}")]
    Thread(#[source] io::Error),
    /// No usable tmux server runs.
    #[error("no tmux server can be used ({0}); start tmux, or check --tmux")]
    NoServer(String),
    /// The path is too long for a Unix socket.
    #[error("{0}; {fix}", fix = SocketPathTooLong::FIX)]
    SocketPath(#[from] SocketPathTooLong),
    /// The connection was lost, or could not be made in time. Nothing was changed.
    #[error("tmux does not answer now ({0}); nothing was changed")]
    NotConnected(String),
    /// The connection was lost after the line was sent: it may have been carried out.
    #[error("the connection to tmux was lost before tmux answered; tmux may have carried out the command")]
    Lost,
    /// A process in a pane could not be looked at, so nobody knows what it is.
    #[error("could not look at the processes in tmux's panes ({0}); nothing was changed")]
    Unseen(#[source] io::Error),
    /// tmux refused the line, in these words.
    #[error("tmux refused: {0}")]
    Said(String),
    /// The pane is gone, dead, or runs another process.
    #[error("pane {pane}: {}", .reason.hint())]
    Pane { pane: PaneRef, reason: Refusal },
    /// A name or text that tmux can't be given.
    #[error("{what} can't be passed to tmux: it must be {rule}")]
    BadArgument { what: &'static str, rule: &'static str },
}
