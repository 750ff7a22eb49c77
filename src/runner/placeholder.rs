//! The placeholder window. Between the end of the outgoing agent and the start of the successor, it keeps the session
//! alive in which the successor's window is to be made.

use super::{Tools, start};
use crate::core::effect::{Outcome, SuccessorWindow};
use crate::core::pane::PaneRef;
use crate::tmux::Error as TmuxError;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Pause before the next try to remove a placeholder.
const DROP_AGAIN: Duration = Duration::from_secs(2);

/// Makes sure that the session of this pane stays, and returns where the successor's window is to be made. `successor`:
/// its profile and its directory. If it is certain that it can't be started, nothing is done: the outgoing agent would
/// end, and nobody would take over.
pub(super) async fn hold(tools: &Tools, pane: &PaneRef, tag: &str, successor: (&str, Option<&str>)) -> Outcome {
    let row = tools.tmux.facts(pane.pane).await.ok().flatten().filter(|row| row.pane == *pane);
    let session = row.as_ref().map(|row| row.session_name.clone()).unwrap_or_default();
    let cwd = row.map(|row| row.cwd).filter(|cwd| !cwd.is_empty());
    let (profile, wanted) = successor;
    if let Some(why) = start::obstacle(tools, &session, (profile, wanted.or(cwd.as_deref()))).await {
        return Outcome::CannotStart { why };
    }
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
