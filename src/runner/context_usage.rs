//! Reads how full an agent's context is, and the facts that decide whether an automatic handoff may begin.

use super::retry_look::{self, LookResult};
use super::{Tools, persona, start};
use crate::agents::transcript;
use crate::core::effect::{AutoHandoffCheck, Measured, Outcome};
use crate::core::id::Slug;
use crate::core::pane::PaneRef;
use crate::core::persona::ProfileChoice;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The pause before the transcript is read. The agent's last answer appears in the transcript up to 60 ms after the
/// turn's end; on a loaded machine later.
const LAG: Duration = Duration::from_millis(250);

/// The pause after a reading that failed for a reason that may pass.
const AGAIN: Duration = Duration::from_secs(1);

/// Reads the context usage from the end of the transcript; `None` if the transcript can't be read or does not say.
pub(super) async fn read(tools: &Tools, profile: &str, path: &str, stop: &CancellationToken) -> Option<Measured> {
    let profile = tools.profiles.get(profile)?.clone();
    tokio::select! {
        () = stop.cancelled() => return None,
        () = tokio::time::sleep(LAG) => {}
    }
    let wanted = Arc::new((profile, PathBuf::from(path)));
    loop {
        let asked = Arc::clone(&wanted);
        let read = super::fault::blocking(move || transcript::read_context_usage(&asked.0, &asked.1)).await;
        match read.ok()? {
            Ok(found) => return found.map(|(usage, guessed)| Measured { usage, guessed }),
            // tasuki tries again until it is told to stop: at the end of the agent's next turn, or when the limit of
            // this effect in `late` has passed.
            Err(error) if error.is_passing() => {
                tokio::select! {
                    () = stop.cancelled() => return None,
                    () = tokio::time::sleep(AGAIN) => {}
                }
            }
            Err(error) => {
                tracing::debug!(%error, "could not read an agent's context usage");
                return None;
            }
        }
    }
}

/// Finds out what the core needs to decide whether a handoff may begin automatically: how many clients show the agent's
/// window, what its persona's folder holds, and which of the persona's fallbacks can't be started.
pub(super) async fn check_auto_handoff(
    tools: &Tools,
    pane: &PaneRef,
    slug: &Slug,
    stop: &CancellationToken,
) -> Outcome {
    let viewers = match tools.tmux.viewers(pane).await {
        Ok(viewers) => viewers,
        Err(error) => {
            tracing::debug!(%error, "could not check an agent's window");
            None
        }
    };
    let (home, slug) = (tools.home.clone(), slug.clone());
    let look = move || match persona::facts(&home, &slug) {
        Ok(facts) => LookResult::Answered(facts),
        Err(why) => LookResult::Unavailable(why),
    };
    match retry_look::until_answered(stop, look).await {
        Ok(persona) => {
            let unstartable = unstartable(tools, pane, &persona.fallbacks).await;
            Outcome::AutoHandoffCheck(Box::new(AutoHandoffCheck { viewers, persona, unstartable }))
        }
        Err(why) => Outcome::Failed { why },
    }
}

/// Which of these fallbacks can certainly not be started in the session of this pane, each with the reason.
async fn unstartable(tools: &Tools, pane: &PaneRef, fallbacks: &[ProfileChoice]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    if fallbacks.is_empty() {
        return found;
    }
    let row = tools.tmux.facts(pane.pane).await.ok().flatten().filter(|row| row.pane == *pane);
    let session = row.map(|row| row.session_name).unwrap_or_default();
    for ProfileChoice { profile, .. } in fallbacks {
        if let Some(why) = start::obstacle(tools, &session, (profile, None)).await {
            found.insert(profile.clone(), why);
        }
    }
    found
}
