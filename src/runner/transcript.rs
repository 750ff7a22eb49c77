//! Waits until a prompt is in its agent's transcript.

use super::Tools;
use crate::agents::transcript;
use crate::core::effect::Outcome;
use crate::core::id::DeliveryId;
use crate::core::text::signature;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Pause between two looks at the transcript.
const EVERY: Duration = Duration::from_millis(50);
/// How long the file may be missing: several CLIs make it only with the first prompt, and a CLI may be configured to
/// keep none.
const MADE_WITHIN: Duration = Duration::from_secs(5);

/// Ends when the transcript has the prompt, or can't be read for a reason that will not pass. The core decides how long
/// that may take: it drops this effect at the deadline of the delivery, if not earlier.
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
    let wanted = Arc::new((profile.clone(), PathBuf::from(path), signature(delivery_id)));
    let made_until = Instant::now() + MADE_WITHIN;
    loop {
        let wanted = Arc::clone(&wanted);
        let look = move || transcript::holds_prompt(&wanted.0, &wanted.1, &wanted.2);
        let read = super::fault::blocking(look).await;
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
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}
