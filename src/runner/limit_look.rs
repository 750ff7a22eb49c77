//! Looks for the limit that stops an agent's CLI.

use super::{Tools, fault};
use crate::agents::ansi;
use crate::agents::profile::Profile;
use crate::agents::reset_time::ReadingTime;
use crate::core::effect::LimitFound;
use crate::core::pane::PaneRef;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The pause before the look. A CLI reports the end of a turn some 60 ms before its transcript and its screen show it;
/// on a loaded machine later.
const LAG: Duration = Duration::from_millis(250);

/// The limit that an agent's event (`said`), its transcript (`path`) or its screen shows. A sign that names the time of the
/// limit's end comes before others.
pub(super) async fn look(
    tools: &Tools,
    profile: &str,
    (said, path, pane): (Option<&str>, Option<&str>, Option<&PaneRef>),
    stop: &CancellationToken,
) -> Option<LimitFound> {
    let profile = tools.profiles.get(profile)?.clone();
    tokio::select! {
        () = stop.cancelled() => return None,
        () = tokio::time::sleep(LAG) => {}
    }
    let clock = ReadingTime { now_ms: chrono::Utc::now().timestamp_millis(), is_utc: false };
    let mut found = said.and_then(|said| profile.limit_in_event(said, &clock));
    if let Some(path) = path {
        found = better(found, in_transcript(&profile, path, clock).await);
    }
    if let Some(pane) = pane.filter(|_| found.as_ref().is_none_or(|found| found.until_ms.is_none())) {
        let screen = tools
            .tmux
            .capture(pane)
            .await
            .ok()
            .map(|capture| ansi::plain(&capture.lines.join("\n"), capture.width, capture.height));
        found = better(found, screen.and_then(|screen| profile.limit_on_screen(&screen, &clock)));
    }
    found
}

async fn in_transcript(profile: &Profile, path: &str, clock: ReadingTime) -> Option<LimitFound> {
    let (profile, path) = (profile.clone(), PathBuf::from(path));
    match fault::blocking(move || profile.limit_in_transcript(&path, &clock)).await.ok()? {
        Ok(found) => found,
        Err(error) => {
            tracing::debug!(%error, "could not look for a limit in an agent's transcript");
            None
        }
    }
}

/// Of two signs, the one that knows when the limit ends; otherwise the first.
fn better(first: Option<LimitFound>, second: Option<LimitFound>) -> Option<LimitFound> {
    match (first, second) {
        (Some(first), Some(second)) if first.until_ms.is_none() && second.until_ms.is_some() => Some(second),
        (Some(first), _) => Some(first),
        (None, second) => second,
    }
}
