//! The placeholder window. Between the end of the outgoing agent and the start of the successor, it keeps the session
//! alive in which the successor's window is to be made.

use super::Tools;
use crate::core::effect::{Outcome, SuccessorWindow};
use crate::core::pane::PaneRef;
use crate::tmux::Error as TmuxError;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Pause before the next try to remove a placeholder.
const DROP_AGAIN: Duration = Duration::from_secs(2);

/// Makes sure that the session of this pane stays, and returns where the successor's window is to be made.
pub(super) async fn hold(tools: &Tools, pane: &PaneRef, tag: &str) -> Outcome {
    let cwd = tools.tmux.facts(pane.pane).await.ok().flatten().map(|row| row.cwd).filter(|cwd| !cwd.is_empty());
    match tools.tmux.hold_placeholder(pane, tag).await {
        Ok(location) => {
            let (session, session_number) = (location.session, Some(location.number));
            Outcome::Placeholder(Some(SuccessorWindow { session, session_number, size: location.size, cwd }))
        }
        Err(TmuxError::Pane { .. }) => Outcome::Placeholder(None),
        Err(error) => Outcome::Failed { why: error.to_string() },
    }
}

/// Removes the placeholder as soon as a server answers: nothing else would remove it.
pub(super) async fn remove(tools: &Tools, tag: &str, stop: &CancellationToken) -> Outcome {
    loop {
        match tools.tmux.drop_placeholder(tag).await {
            Ok(()) => return Outcome::Done,
            Err(error @ TmuxError::BadArgument { .. }) => return Outcome::Failed { why: error.to_string() },
            Err(error) => tracing::debug!(%error, tag, "could not remove a placeholder window; tasuki tries again"),
        }
        tokio::select! {
            () = stop.cancelled() => return Outcome::Failed { why: "tasuki stopped removing the window".to_owned() },
            () = tokio::time::sleep(DROP_AGAIN) => {}
        }
    }
}
