//! Waits until an agent's transcript shows something: a prompt, or that the agent has read its document.

use super::Tools;
use crate::agents::{self, TranscriptError, transcript};
use crate::core::effect::Outcome;
use crate::core::id::DeliveryId;
use crate::core::text::signature;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Pause between two looks for a prompt.
const EVERY: Duration = Duration::from_millis(20);
/// Pause between two looks for a tool that reads the document.
const READ_EVERY: Duration = Duration::from_millis(250);
/// How long the file may be missing: several CLIs make it only with the first prompt, and a CLI may be configured to
/// keep none.
const MADE_WITHIN: Duration = Duration::from_secs(5);

/// Ends when the transcript has the prompt, or can't be read for a reason that will not pass. The core decides how long
/// that may take: it cancels this effect at the deadline of the delivery, if not earlier.
pub(super) async fn await_prompt(
    tools: &Tools,
    profile: &str,
    path: &str,
    delivery_id: &DeliveryId,
    stop: &CancellationToken,
) -> Outcome {
    let failed = |why: String| Outcome::Failed { why };
    let Some(profile) = tools.profiles.get(profile) else {
        return failed("the agent's profile no longer exists".to_owned());
    };
    let wanted = (profile.clone(), PathBuf::from(path), signature(delivery_id));
    until_shown(EVERY, stop, move || transcript::holds_prompt(&wanted.0, &wanted.1, &wanted.2)).await
}

/// Ends when the transcript shows that the agent has called a tool that reads the document. The core decides how long
/// that may take, and cancels this effect when the time is over.
pub(super) async fn await_read(
    tools: &Tools,
    profile: &str,
    path: &str,
    document: &str,
    stop: &CancellationToken,
) -> Outcome {
    let Some(profile) = tools.profiles.get(profile) else {
        return Outcome::Failed { why: "the agent's profile no longer exists".to_owned() };
    };
    let wanted = (profile.clone(), PathBuf::from(path), PathBuf::from(document));
    until_shown(READ_EVERY, stop, move || agents::has_read(&wanted.0, &wanted.1, &wanted.2)).await
}

/// Calls `look` until the transcript shows what is awaited, or can't be read for a reason that will not pass.
async fn until_shown(
    every: Duration,
    stop: &CancellationToken,
    look: impl Fn() -> Result<bool, TranscriptError> + Send + Sync + 'static,
) -> Outcome {
    let failed = |why: String| Outcome::Failed { why };
    let look = Arc::new(look);
    let made_until = Instant::now() + MADE_WITHIN;
    loop {
        let look = Arc::clone(&look);
        let read = super::fault::blocking(move || look()).await;
        match read {
            Ok(Ok(true)) => return Outcome::Done,
            Ok(Ok(false)) => {}
            Ok(Err(error)) if error.is_missing() && Instant::now() < made_until => {}
            Ok(Err(error)) if error.is_passing() => {}
            Ok(Err(error)) => return failed(error.to_string()),
            Err(error) => return failed(error.to_string()),
        }
        tokio::select! {
            () = stop.cancelled() => return failed("tasuki stopped reading the transcript".to_owned()),
            () = tokio::time::sleep(every) => {}
        }
    }
}
