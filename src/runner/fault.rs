//! The outcome of an effect whose task panicked, or that was given up because it did not stop (see `late`). Without an
//! outcome the effect would never settle, and no other effect of its lane could begin until the sidecar's next start.

use crate::core::effect::{Composed, DocumentRead, Effect, Outcome, Readiness, Started};
use crate::core::pane::Typed;
use crate::limits;
use std::future::Future;
use std::time::Duration;
use tokio::task::JoinError;

/// How often to check whether a thread can be started.
const CHECK_SHORTAGE_EVERY: Duration = Duration::from_millis(250);
/// The reason in the outcome, for both causes.
const WHY: &str = "tasuki did not finish this action, because of an internal error or because a disk or program that \
                   it uses hangs (see the sidecar's log); it is not known what was done";

/// The outcome that is reported for an effect that panicked or was given up. The code that waits for the effect accepts
/// this variant as an answer.
pub(super) fn outcome(effect: &Effect) -> Outcome {
    let why = WHY.to_owned();
    match effect {
        Effect::Type(_) => Outcome::Typed(Typed::Unknown { reason: "fault".to_owned() }),
        // It is not known whether the agent has started: a handoff's retry looks for the agent first.
        Effect::Start(_) => Outcome::Started(Started::Unknown { why }),
        Effect::AwaitReady { .. } | Effect::AwaitIdle { .. } | Effect::LookAtTurn { .. } => {
            Outcome::Readiness(Readiness::NotReady { screen: format!("({why})") })
        }
        Effect::ReadDocument { .. } => Outcome::Document(DocumentRead::Unsafe { why }),
        Effect::ComposeDocument { .. } => Outcome::Composed(Composed::Failed { why }),
        Effect::PrepareFolder { .. }
        | Effect::Examine(_)
        | Effect::AwaitRead { .. }
        | Effect::CompareDocument { .. }
        | Effect::ReadPersona { .. }
        | Effect::AwaitDeath { .. }
        | Effect::HoldPlaceholder { .. }
        | Effect::DropPlaceholder { .. }
        | Effect::Identify { .. }
        | Effect::ReadContextUsage { .. }
        | Effect::ReadLimit { .. }
        | Effect::AwaitPrompt { .. }
        | Effect::CheckAutoHandoff { .. }
        | Effect::KillPane { .. }
        | Effect::NotifyOperator(_)
        | Effect::Notify(_)
        | Effect::KeepCopy(_)
        | Effect::Publish(_) => Outcome::Failed { why },
    }
}

tokio::task_local! {
    /// Set in an effect's task and in its blocking work: a panic there becomes the effect's outcome.
    static CATCHES_PANICS: ();
}

/// Whether a panic here becomes an effect's outcome instead of ending the sidecar.
#[must_use]
pub fn catches_panics() -> bool {
    CATCHES_PANICS.try_with(|()| ()).is_ok()
}

/// Runs blocking work of an effect on a thread of its own, as soon as one can be started.
///
/// # Errors
/// The work panicked, or the program is ending.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    // If no thread can be started, the runtime would queue the work for a thread that may never come.
    while limits::no_thread().is_some() {
        tokio::time::sleep(CHECK_SHORTAGE_EVERY).await;
    }
    tokio::task::spawn_blocking(move || CATCHES_PANICS.sync_scope((), work)).await
}

/// Aborts its task when it is dropped, because nobody waits for the task any more then.
struct AbortOnDrop(tokio::task::JoinHandle<Outcome>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs an effect in a task of its own. If the task panics, this returns `fault` as its outcome; `None` if the program
/// is ending.
pub(super) async fn catch_panic(
    doing: impl Future<Output = Outcome> + Send + 'static,
    fault: Outcome,
) -> Option<Outcome> {
    let mut task = AbortOnDrop(tokio::spawn(CATCHES_PANICS.scope((), doing)));
    match (&mut task.0).await {
        Ok(outcome) => Some(outcome),
        Err(error) if error.is_panic() => {
            tracing::error!("an internal error ended an effect");
            Some(fault)
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `recording` has no limit and `writing` is extended while a document is read: any other outcome would keep the
    /// handoff there for ever.
    #[test]
    fn a_fault_while_composing_a_document_is_a_failed_document() {
        let persona = "dev".parse().expect("a slug");
        let source = crate::core::effect::DocumentSource::Text("# Work".to_owned());
        let effect = Effect::ComposeDocument { persona, file_name: "d.md".to_owned(), source, replaces: None };
        let outcome = outcome(&effect);
        assert!(matches!(outcome, Outcome::Composed(Composed::Failed { .. })), "{outcome:?}");
    }

    #[tokio::test]
    async fn a_panic_is_an_outcome_too() {
        let effect = Effect::DropPlaceholder { tag: "t".to_owned() };
        let asked = async {
            assert!(catches_panics() && blocking(catches_panics).await.is_ok_and(|is| is));
            panic!("on purpose")
        };
        let prepare = Effect::DropPlaceholder { tag: "u".to_owned() };
        let ended = catch_panic(asked, outcome(&effect)).await;
        assert!(!catches_panics());
        assert!(matches!(ended, Some(Outcome::Failed { .. })));
        assert_eq!(catch_panic(async { Outcome::Done }, outcome(&prepare)).await, Some(Outcome::Done));
    }
}
