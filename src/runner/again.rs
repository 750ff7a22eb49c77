//! Looks that met a shortage, a disk that does not answer, or a door that is shut: they say nothing of what was looked for.
//! They are done again after a pause, and what waits for them waits on; after a while the reason is told as it is.

use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Pause between two looks.
const EVERY: Duration = Duration::from_millis(250);
/// How long it is looked again and again.
const WITHIN: Duration = Duration::from_secs(30);

/// What a look has told.
pub(super) enum Look<T> {
    /// What is there, or that nothing is.
    Told(T),
    /// Nothing: why it could not look, for people.
    Untold(String),
}

/// Looks until that tells something.
///
/// # Errors
/// Why it told nothing, for half a minute or until nobody wanted to know it any more.
pub(super) async fn until_told<T>(stop: &CancellationToken, mut look: impl FnMut() -> Look<T>) -> Result<T, String> {
    let until = Instant::now() + WITHIN;
    loop {
        let why = match look() {
            Look::Told(told) => return Ok(told),
            Look::Untold(why) => why,
        };
        if Instant::now() >= until {
            return Err(why);
        }
        tracing::debug!(why, "a look has told nothing; it is done again");
        tokio::select! {
            () = stop.cancelled() => return Err(why),
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}
