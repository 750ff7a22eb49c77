//! Looks for the limit that stops an agent's CLI.

use super::{Tools, fault};
use crate::agents::ansi;
use crate::agents::limits::TranscriptEnd;
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

/// The limit that an agent's event (`said`), its transcript (`path`) or its screen shows, in this order. If the first
/// sign does not name the time when the limit ends, a later sign of the same kind of limit may add it. A time that the
/// transcript holds as a number replaces a time that was read from words, because words may name a time of day without
/// its zone.
///
/// The screen is read only if no time is known yet. If the transcript says that no limit has ended the turn, the screen
/// counts only while a dialog is open (`is_blocked`), because it may still show a limit of an earlier turn.
pub(super) async fn look(
    tools: &Tools,
    profile: &str,
    (said, path, pane): (Option<&str>, Option<&str>, Option<&PaneRef>),
    is_blocked: bool,
    stop: &CancellationToken,
) -> Option<LimitFound> {
    let profile = tools.profiles.get(profile)?.clone();
    tokio::select! {
        () = stop.cancelled() => return None,
        () = tokio::time::sleep(LAG) => {}
    }
    let clock = ReadingTime { now_ms: chrono::Utc::now().timestamp_millis(), is_utc: false };
    let mut found = said.and_then(|said| profile.limit_in_event(said, &clock));
    let mut shows_screen = true;
    if let Some(path) = path {
        match in_transcript(&profile, path, clock).await {
            TranscriptEnd::Limited { found: limit, is_exact } => found = better(found, Some(limit), is_exact),
            TranscriptEnd::NotLimited => shows_screen = is_blocked,
            TranscriptEnd::Unknown => {}
        }
    }
    if let Some(pane) = pane.filter(|_| shows_screen && found.as_ref().is_none_or(|found| found.until_ms.is_none())) {
        let screen =
            tools.tmux.capture(pane).await.ok().map(|capture| ansi::plain(&capture.lines.join("\n"), capture.height));
        found = better(found, screen.and_then(|screen| profile.limit_on_screen(&screen, &clock)), false);
    }
    found
}

async fn in_transcript(profile: &Profile, path: &str, clock: ReadingTime) -> TranscriptEnd {
    let (profile, path) = (profile.clone(), PathBuf::from(path));
    match fault::blocking(move || profile.limit_in_transcript(&path, &clock)).await {
        Ok(Ok(end)) => end,
        Ok(Err(error)) => {
            tracing::debug!(%error, "could not look for a limit in an agent's transcript");
            TranscriptEnd::Unknown
        }
        Err(_) => TranscriptEnd::Unknown,
    }
}

/// The first of two signs, else the second. If both are of the same kind of limit, and the second is exact or the first
/// names no end, the end comes from the second.
fn better(first: Option<LimitFound>, second: Option<LimitFound>, is_exact: bool) -> Option<LimitFound> {
    match (first, second) {
        (Some(first), Some(second)) if first.kind == second.kind && (is_exact || first.until_ms.is_none()) => {
            Some(LimitFound { until_ms: second.until_ms, ..first })
        }
        (Some(first), _) => Some(first),
        (None, second) => second,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::LimitKind::{self, NoCredit, UsageLimit};

    #[test]
    fn a_number_of_the_transcript_comes_before_a_time_read_from_words() {
        let limit = |kind: LimitKind, until_ms: Option<i64>| {
            Some(LimitFound { kind, until_ms, said: "said".to_owned(), on_screen: false })
        };
        let (none, words, number) = (limit(UsageLimit, None), limit(UsageLimit, Some(1)), limit(UsageLimit, Some(2)));
        assert_eq!(better(words.clone(), number.clone(), true), number);
        assert_eq!(better(none.clone(), number.clone(), true), number);
        assert_eq!(better(None, number.clone(), true), number);
        assert_eq!(better(number.clone(), words.clone(), false), number);
        assert_eq!(better(words.clone(), none, false), words);
        assert_eq!(better(words.clone(), limit(NoCredit, Some(2)), true), words, "it is another limit");
    }
}
