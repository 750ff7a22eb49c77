//! Why a question to tmux has no answer.

use crate::core::pane::{PaneRef, Refusal};
use std::io;

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
    #[error("tmux refused: {0}")]
    Said(String),
    /// The pane is not the one that is meant.
    #[error("pane {pane}: {}", .reason.hint())]
    Pane {
        pane: PaneRef,
        /// What is the matter with it.
        reason: Refusal,
    },
    /// A name or text that tmux can't be given.
    #[error("{what} can't be given to tmux: {rule}")]
    BadArgument {
        what: &'static str,
        /// What it would have to be.
        rule: &'static str,
    },
}
