//! Repeats a look that failed because of a shortage, an unresponsive disk or missing permissions, because such a
//! failure says nothing about the thing itself. It is repeated after a pause, and the effect keeps waiting; after a
//! while the reason is reported.

use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const EVERY: Duration = Duration::from_millis(250);
/// How long the look is repeated.
const WITHIN: Duration = Duration::from_secs(30);

pub(super) enum LookResult<T> {
    /// The answer, which may be that nothing is there.
    Answered(T),
    /// No answer; the reason in words.
    Unavailable(String),
}

/// Repeats the look until it has an answer.
///
/// # Errors
/// Why the look had no answer for half a minute, or until the effect was stopped.
pub(super) async fn until_answered<T>(
    stop: &CancellationToken,
    mut look: impl FnMut() -> LookResult<T>,
) -> Result<T, String> {
    let until = Instant::now() + WITHIN;
    loop {
        let why = match look() {
            LookResult::Answered(told) => return Ok(told),
            LookResult::Unavailable(why) => why,
        };
        if Instant::now() >= until {
            return Err(why);
        }
        tracing::debug!(why, "a check gave no answer; tasuki tries again");
        tokio::select! {
            () = stop.cancelled() => return Err(why),
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}
