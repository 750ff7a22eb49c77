//! Repeats a look that failed because of a shortage, an unresponsive disk or missing permissions, because such a
//! failure says nothing about the thing itself. It is repeated after a pause, and the effect keeps waiting; after a
//! while the reason is reported.

use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const EVERY: Duration = Duration::from_millis(250);
/// How long it is looked again and again.
const WITHIN: Duration = Duration::from_secs(30);

pub(super) enum LookResult<T> {
    /// The answer, which may be that nothing is there.
    Answered(T),
    /// Nothing: why it could not look, for people.
    Unavailable(String),
}

/// Repeats the look until it has an answer.
///
/// # Errors
/// Why it told nothing, for half a minute or until nobody wanted to know it any more.
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
