//! How full an agent's context is, and whether anybody looks at its window.

use super::{Tools, persona};
use crate::agents::transcript;
use crate::core::effect::{Measured, Outcome, Round};
use crate::core::id::Slug;
use crate::core::pane::PaneRef;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The last message stands in the transcript up to 60 ms after the turn's end; on a loaded machine later.
const LAG: Duration = Duration::from_millis(250);

/// Reads the gauge from the end of the transcript; none where it can't be read or tells nothing.
pub(super) async fn read(tools: &Tools, profile: &str, path: &str, stop: &CancellationToken) -> Option<Measured> {
    let profile = tools.profiles.get(profile)?.clone();
    tokio::select! {
        () = stop.cancelled() => return None,
        () = tokio::time::sleep(LAG) => {}
    }
    let path = PathBuf::from(path);
    let read = super::fault::blocking(move || transcript::read_gauge(&profile, &path)).await;
    match read.ok()? {
        Ok(found) => found.map(|(gauge, guessed)| Measured { gauge, guessed }),
        Err(error) => {
            tracing::debug!(%error, "the context gauge can't be read");
            None
        }
    }
}

/// Looks at what decides whether a handoff may begin by itself.
pub(super) async fn look_round(tools: &Tools, pane: &PaneRef, slug: &Slug) -> Outcome {
    let viewers = match tools.tmux.viewers(pane).await {
        Ok(viewers) => viewers,
        Err(error) => {
            tracing::debug!(%error, "an agent's window can't be looked at");
            None
        }
    };
    Outcome::Round(Box::new(Round { viewers, persona: persona::facts(&tools.home, slug) }))
}
