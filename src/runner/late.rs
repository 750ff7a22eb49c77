//! Effects that do not end in time. Every effect has a limit. When the limit has passed, tasuki tells the effect to
//! stop. If it does not stop either, tasuki gives it up, so that its lane is free again and whatever waits for it gets
//! an outcome. The sidecar's view names effects that were late, and commands that did not take their last notice.

use crate::agents::profile::Profiles;
use crate::core::effect::{Effect, Outcome};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The limit for an effect that only reads or writes a few files, or asks tmux a few things.
const SHORT: Duration = Duration::from_secs(60);
/// The limit for a text: typing 64 KiB piece by piece takes minutes.
const TEXT: Duration = Duration::from_secs(15 * 60);
/// The limit for an effect that waits for something outside, and for notices, because tasuki sends only a few at once.
/// It is longer than `IDLE_LIMIT` in `act.rs`, so that a wait for an idle screen ends by itself. The core cancels
/// `AwaitDeath` and `AwaitPrompt` far earlier: at the deadline of the step or of the delivery that waits for them.
const WAITING: Duration = Duration::from_secs(25 * 60 * 60);
/// How long an effect that was told to stop may take to do so: a look at a tmux server that hangs takes 20 s.
pub(super) const STOPS_WITHIN: Duration = Duration::from_secs(30);
/// How long the view names an effect after it was found to be late.
const SHOWN_FOR: Duration = Duration::from_secs(60);

/// How long an effect may take at most. `git`: how long all calls of git for one question may take.
pub(super) fn limit(profiles: &Profiles, git: Duration, effect: &Effect) -> Duration {
    match effect {
        Effect::Type(_) => TEXT,
        Effect::AwaitReady { profile, .. } => {
            profiles.get(profile).map_or(SHORT, |profile| profile.file.ready.timeout + SHORT)
        }
        Effect::AwaitIdle { brief, .. } => {
            if *brief {
                SHORT
            } else {
                WAITING
            }
        }
        Effect::AwaitDeath { .. }
        | Effect::AwaitPrompt { .. }
        | Effect::AwaitRead { .. }
        | Effect::NotifyOperator(_)
        | Effect::Notify(_) => WAITING,
        // Removing a placeholder waits until a server answers.
        Effect::DropPlaceholder { .. } => WAITING,
        // Publishing pauses, searches for an earlier upload (in a list of gists page by page), and uploads. Each call
        // of `gh` may take the whole of its own limit, but a search of many pages rarely does.
        Effect::Publish(plan) => Duration::from_millis(plan.limit_ms) * 12 + SHORT,
        Effect::Start(_) => SHORT * 3,
        // git is asked for the facts of the repository, and then about what the document names in it.
        Effect::Examine(_) => git * 2 + SHORT,
        Effect::PrepareFolder { .. }
        | Effect::ReadDocument { .. }
        | Effect::ComposeDocument { .. }
        | Effect::CompareDocument { .. }
        | Effect::ReadPersona { .. }
        | Effect::HoldPlaceholder { .. }
        | Effect::Identify { .. }
        | Effect::LookAtTurn { .. }
        | Effect::ReadContextUsage { .. }
        | Effect::ReadLimit { .. }
        | Effect::CheckAutoHandoff { .. }
        | Effect::KillPane { .. }
        | Effect::KeepCopy(_) => SHORT,
    }
}

/// Runs an effect within its limit; `what` names the effect, see `action`. After the limit, or when it is cancelled,
/// the effect is told to stop. If it does not stop within `stops_within`, tasuki gives it up, and `fault` is its
/// outcome. `None` if the program is ending.
pub(super) async fn within(
    (limit, stops_within, what): (Duration, Duration, &'static str),
    (stop, late): (&CancellationToken, &Late),
    doing: impl Future<Output = Option<Outcome>>,
    fault: Outcome,
) -> Option<Outcome> {
    tokio::pin!(doing);
    tokio::select! {
        biased;
        outcome = &mut doing => return outcome,
        () = tokio::time::sleep(limit) => {
            late.note(&format!("{what} takes more than {} s", limit.as_secs()));
            stop.cancel();
        }
        () = stop.cancelled() => {}
    }
    if let Ok(outcome) = tokio::time::timeout(stops_within, &mut doing).await {
        return outcome;
    }
    late.note(&format!(
        "{what} did not end, and tasuki stopped waiting for it: something that it uses may hang (a disk, a network \
         file system)"
    ));
    tracing::error!(what, "an effect did not end, and tasuki stopped waiting for it");
    Some(fault)
}

/// The effects that were late, and until when the view names each; and the commands that failed.
#[derive(Debug, Default)]
pub struct Late {
    noted: Mutex<BTreeMap<String, Instant>>,
    refused: Mutex<RefusedNotices>,
}

/// The configured commands that did not take their last notice.
#[derive(Debug, Default)]
struct RefusedNotices {
    /// How often the configuration was read again.
    reloads: u64,
    /// Each command with the reason.
    why: BTreeMap<Vec<String>, String>,
}

impl Late {
    /// Notes something that did not end in its time; the view names it for a minute.
    pub fn note(&self, what: &str) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.insert(what.to_owned(), Instant::now() + SHOWN_FOR);
    }

    /// How often the configuration was read again, for [`Late::note_notice`].
    pub(super) fn reloads(&self) -> u64 {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).reloads
    }

    /// Notes whether a configured command took a notice that was begun after so many reloads. The view names a command
    /// that did not, until it takes another notice. If the configuration was read again meanwhile, nothing is noted: it
    /// may name another command now.
    pub(super) fn note_notice(&self, command: &[String], reloads: u64, failed: Option<&str>) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match failed {
            _ if refused.reloads != reloads => {}
            Some(why) => drop(refused.why.insert(command.to_vec(), why.to_owned())),
            None => drop(refused.why.remove(command)),
        }
    }

    /// Forgets which commands failed: the configuration was read again, and may name others now.
    pub fn forget_commands(&self) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.reloads += 1;
        refused.why.clear();
    }

    /// What the view says of a command that did not take its last notice; `None` if there is none.
    #[must_use]
    pub fn refused_for_view(&self) -> Option<String> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.why.values().next().map(|why| {
            format!(
                "the last notice was not passed on ({why}), so nobody may hear of the next one; repair the command, which \
                 runs in the environment of the sidecar, and make the sidecar read its configuration again"
            )
        })
    }

    /// What the sidecar's view says of late effects at this moment; `None` if there were none in the last minute.
    #[must_use]
    pub fn for_view(&self) -> Option<String> {
        self.for_view_at(Instant::now())
    }

    fn for_view_at(&self, now: Instant) -> Option<String> {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
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

    #[test]
    fn a_command_that_took_no_notice_is_named_until_it_takes_one() {
        let late = Late::default();
        let command = ["notify-me".to_owned()];
        late.note_notice(&command, late.reloads(), Some("exit status: 1"));
        assert!(late.refused_for_view().is_some_and(|said| said.contains("exit status: 1")));
        late.note_notice(&command, late.reloads(), None);
        assert_eq!(late.refused_for_view(), None);
        let before = late.reloads();
        late.note_notice(&command, before, Some("exit status: 1"));
        late.forget_commands();
        assert_eq!(late.refused_for_view(), None);
        late.note_notice(&command, before, Some("exit status: 1"));
        assert_eq!(late.refused_for_view(), None, "it was begun with the former configuration");
    }

    const READING: (Duration, Duration, &str) =
        (Duration::from_millis(20), Duration::from_secs(60), "reading a document");

    fn fault() -> Outcome {
        Outcome::Failed { why: "late".to_owned() }
    }

    #[tokio::test]
    async fn an_effect_that_ends_in_time_is_not_reported() {
        let (stop, late) = (CancellationToken::new(), Late::default());
        let ended = within(READING, (&stop, &late), async { Some(Outcome::Done) }, fault()).await;
        assert_eq!((ended, late.for_view(), stop.is_cancelled()), (Some(Outcome::Done), None, false));
    }

    #[tokio::test]
    async fn a_late_effect_is_stopped_and_gives_its_own_outcome() {
        let (stop, late) = (CancellationToken::new(), Late::default());
        let waits = stop.clone();
        let doing = async move {
            waits.cancelled().await;
            Some(Outcome::Copied { file_name: "a.md".to_owned(), redacted_sha256: None })
        };
        let ended = within(READING, (&stop, &late), doing, fault()).await;
        assert!(matches!(ended, Some(Outcome::Copied { .. })), "{ended:?}");
        assert_eq!(late.for_view().as_deref(), Some("reading a document takes more than 0 s"));
    }

    /// An effect that hangs delays nothing else: it gets an outcome, and its action does not happen later.
    #[tokio::test]
    async fn an_effect_that_does_not_stop_is_given_up() {
        let (stop, late) = (CancellationToken::new(), Late::default());
        let (release, waits) = tokio::sync::oneshot::channel::<()>();
        let (tells, mut came_after) = tokio::sync::oneshot::channel();
        let hangs = async move {
            let _ = waits.await;
            let _ = tells.send(());
            Outcome::Done
        };
        let soon = Duration::from_millis(20);
        let reading = (soon, soon, "reading a document");
        let ended = within(reading, (&stop, &late), fault::catch_panic(hangs, fault()), fault()).await;
        assert_eq!((ended, stop.is_cancelled()), (Some(fault()), true));
        assert!(late.for_view().is_some_and(|said| said.contains("stopped waiting") && said.ends_with("1 more")));
        let _ = release.send(());
        assert!((&mut came_after).await.is_err(), "it continued");
        assert_eq!(late.for_view_at(Instant::now() + SHOWN_FOR), None);
    }
}
