//! What does not end in its time: every effect has a limit, beyond which it is told to stop, and then is given up, so that
//! its agent's lane is open again and whoever waits for it is told. What was late is told in the sidecar's view as well.

use crate::agents::profile::Profiles;
use crate::core::effect::{Effect, Outcome};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// For what only reads or writes a few files, or asks tmux a few things.
const SHORT: Duration = Duration::from_secs(60);
/// For a text: one of 64 KiB that is typed piece by piece takes minutes.
const TEXT: Duration = Duration::from_secs(15 * 60);
/// For what waits for others as long as its step lasts, whose own limit takes it back; and for what waits for its turn.
const DAY: Duration = Duration::from_secs(25 * 60 * 60);
/// How long an effect that was told to stop may take for that: a look at a tmux server that stands still takes 20 s.
pub(super) const STOPS_WITHIN: Duration = Duration::from_secs(30);
/// For so long after it is over it is told.
const TOLD_FOR: Duration = Duration::from_secs(60);

/// How long an effect may take at most.
pub(super) fn limit(profiles: &Profiles, effect: &Effect) -> Duration {
    match effect {
        Effect::Type(_) => TEXT,
        Effect::AwaitReady { profile, .. } => {
            profiles.get(profile).map_or(SHORT, |profile| profile.file.ready.timeout + SHORT)
        }
        Effect::AwaitIdle { brief, .. } => {
            if *brief {
                SHORT
            } else {
                DAY
            }
        }
        Effect::AwaitDeath { .. } | Effect::AwaitPrompt { .. } | Effect::Tell(_) | Effect::Notify(_) => DAY,
        // It waits for a server to answer.
        Effect::DropPlace { .. } => DAY,
        // A pause, a look page by page, and the try itself, each within the limit.
        Effect::Publish(plan) => Duration::from_millis(plan.limit_ms) * 12 + SHORT,
        Effect::Start(_) => SHORT * 3,
        Effect::PrepareFolder { .. }
        | Effect::ReadDocument { .. }
        | Effect::ComposeDocument { .. }
        | Effect::CompareDocument { .. }
        | Effect::ReadPersona { .. }
        | Effect::HoldPlace { .. }
        | Effect::Identify { .. }
        | Effect::ReadGauge { .. }
        | Effect::LookRound { .. }
        | Effect::KillPane { .. }
        | Effect::KeepCopy(_) => SHORT,
    }
}

/// Does it within its limit; then it is told to stop, and where it does not even do that, it is given up with `fault` as its
/// outcome. So it is when somebody else has told it to stop. `None` if the program is ending.
pub(super) async fn within(
    (limit, stops_within, kind): (Duration, Duration, &'static str),
    (stop, late): (&CancellationToken, &Late),
    doing: impl Future<Output = Option<Outcome>>,
    fault: Outcome,
) -> Option<Outcome> {
    tokio::pin!(doing);
    tokio::select! {
        biased;
        outcome = &mut doing => return outcome,
        () = tokio::time::sleep(limit) => {
            late.note(&format!("{kind} takes more than {} s", limit.as_secs()));
            stop.cancel();
        }
        () = stop.cancelled() => {}
    }
    if let Ok(outcome) = tokio::time::timeout(stops_within, &mut doing).await {
        return outcome;
    }
    late.note(&format!("{kind} did not end and was given up: what it does may hang (a disk, a network file system)"));
    tracing::error!(kind, "an effect did not end, and was given up");
    Some(fault)
}

/// What was late, and until when that is told.
#[derive(Debug, Default)]
pub struct Late(Mutex<BTreeMap<String, Instant>>);

impl Late {
    /// Something did not end in its time.
    pub fn note(&self, what: &str) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.insert(what.to_owned(), Instant::now() + TOLD_FOR);
    }

    /// What is to be told of it at this moment.
    #[must_use]
    pub fn told(&self) -> Option<String> {
        self.told_at(Instant::now())
    }

    fn told_at(&self, now: Instant) -> Option<String> {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.retain(|_, until| *until > now);
        let last = noted.iter().max_by_key(|(_, until)| **until).map(|(what, _)| what.clone());
        let more = noted.len().saturating_sub(1);
        last.map(|what| if more == 0 { what } else { format!("{what}; and {more} more") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::fault;

    const KIND: (Duration, Duration, &str) = (Duration::from_millis(20), Duration::from_secs(60), "read_document");

    fn fault() -> Outcome {
        Outcome::Failed { why: "late".to_owned() }
    }

    #[tokio::test]
    async fn what_ends_in_time_is_told_of_nobody() {
        let (stop, late) = (CancellationToken::new(), Late::default());
        let ended = within(KIND, (&stop, &late), async { Some(Outcome::Done) }, fault()).await;
        assert_eq!((ended, late.told(), stop.is_cancelled()), (Some(Outcome::Done), None, false));
    }

    #[tokio::test]
    async fn what_is_late_is_told_to_stop_and_gives_its_own_outcome() {
        let (stop, late) = (CancellationToken::new(), Late::default());
        let waits = stop.clone();
        let doing = async move {
            waits.cancelled().await;
            Some(Outcome::Compared(false))
        };
        let ended = within(KIND, (&stop, &late), doing, fault()).await;
        assert_eq!(ended, Some(Outcome::Compared(false)));
        assert_eq!(late.told().as_deref(), Some("read_document takes more than 0 s"));
    }

    /// Whoever hangs holds nobody up: its effect is over, and what it would have done does not come after it.
    #[tokio::test]
    async fn what_does_not_even_stop_is_given_up() {
        let (stop, late) = (CancellationToken::new(), Late::default());
        let (go_on, waits) = tokio::sync::oneshot::channel::<()>();
        let (tells, mut came_after) = tokio::sync::oneshot::channel();
        let hangs = async move {
            let _ = waits.await;
            let _ = tells.send(());
            Outcome::Done
        };
        let soon = Duration::from_millis(20);
        let kind = (soon, soon, "read_document");
        let ended = within(kind, (&stop, &late), fault::guard(hangs, fault()), fault()).await;
        assert_eq!((ended, stop.is_cancelled()), (Some(fault()), true));
        assert!(late.told().is_some_and(|said| said.contains("was given up") && said.ends_with("1 more")));
        let _ = go_on.send(());
        assert!((&mut came_after).await.is_err(), "it went on");
        assert_eq!(late.told_at(Instant::now() + TOLD_FOR), None);
    }
}
