//! How full an agent's context is, and whether anybody looks at its window.

use super::again::{self, Look};
use super::{Tools, persona};
use crate::agents::transcript;
use crate::core::effect::{Measured, Outcome, Round};
use crate::core::id::Slug;
use crate::core::pane::PaneRef;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The last message stands in the transcript up to 60 ms after the turn's end; on a loaded machine later.
const LAG: Duration = Duration::from_millis(250);

/// Pause before another look where one told nothing.
const AGAIN: Duration = Duration::from_secs(1);

/// Reads the gauge from the end of the transcript; none where it can't be read or tells nothing.
pub(super) async fn read(tools: &Tools, profile: &str, path: &str, stop: &CancellationToken) -> Option<Measured> {
    let profile = tools.profiles.get(profile)?.clone();
    tokio::select! {
        () = stop.cancelled() => return None,
        () = tokio::time::sleep(LAG) => {}
    }
    let wanted = Arc::new((profile, PathBuf::from(path)));
    loop {
        let asked = Arc::clone(&wanted);
        let read = super::fault::blocking(move || transcript::read_gauge(&asked.0, &asked.1)).await;
        match read.ok()? {
            Ok(found) => return found.map(|(gauge, guessed)| Measured { gauge, guessed }),
            // The next turn's end takes this effect back.
            Err(error) if error.is_passing() => {
                tokio::select! {
                    () = stop.cancelled() => return None,
                    () = tokio::time::sleep(AGAIN) => {}
                }
            }
            Err(error) => {
                tracing::debug!(%error, "the context gauge can't be read");
                return None;
            }
        }
    }
}

/// Looks at what decides whether a handoff may begin by itself.
pub(super) async fn look_round(tools: &Tools, pane: &PaneRef, slug: &Slug, stop: &CancellationToken) -> Outcome {
    let viewers = match tools.tmux.viewers(pane).await {
        Ok(viewers) => viewers,
        Err(error) => {
            tracing::debug!(%error, "an agent's window can't be looked at");
            None
        }
    };
    let look = || match persona::facts(&tools.home, slug) {
        Ok(facts) => Look::Told(facts),
        Err(why) => Look::Untold(why),
    };
    match again::until_told(stop, look).await {
        Ok(persona) => Outcome::Round(Box::new(Round { viewers, persona })),
        Err(why) => Outcome::Failed { why },
    }
}
