//! Repeats a look that failed for a reason that says nothing about the thing itself: a shortage, an unresponsive disk
//! or missing permissions. The effect waits meanwhile, and after 30 seconds the reason is reported.

use super::fault;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The pause before the next look.
const EVERY: Duration = Duration::from_millis(250);
/// How long the look is repeated.
const WITHIN: Duration = Duration::from_secs(30);

pub(super) enum LookResult<T> {
    /// The answer, which may be that nothing is there.
    Answered(T),
    /// There is no answer, for this reason, in words.
    Unavailable(String),
}

/// Repeats the look, which runs on a thread of its own, until it has an answer. The look may also be a write that is
/// harmless to repeat.
///
/// # Errors
/// Why the look had no answer for 30 seconds, or until the effect was stopped.
pub(super) async fn until_answered<T: Send + 'static>(
    stop: &CancellationToken,
    look: impl Fn() -> LookResult<T> + Send + Sync + 'static,
) -> Result<T, String> {
    let look = Arc::new(look);
    let until = Instant::now() + WITHIN;
    loop {
        let look = Arc::clone(&look);
        let why = match fault::blocking(move || look()).await {
            Ok(LookResult::Answered(answer)) => return Ok(answer),
            Ok(LookResult::Unavailable(why)) => why,
            Err(error) => return Err(error.to_string()),
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
