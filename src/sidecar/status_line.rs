//! The line in tmux's `@tasuki_status`: a projection like the views, but without their guarantees. A task beside the
//! loop writes it, at most once a second and only when it has changed; a failed write does no harm.

use crate::contract::{self, ErrorFile, HandoffView};
use crate::core::decision::Decision;
use crate::core::id::{ErrorId, HandoffId};
use crate::core::rows::handoff::Step;
use crate::core::state::State;
use crate::core::status_line;
use crate::core::time::Now;
use crate::spool::{OutputFile, ProjectionFolder, Spool};
use crate::tmux::Tmux;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::watch;
use uuid::Uuid;

/// Between two changes of the line.
const PAUSE: Duration = Duration::from_secs(1);

/// How many failures are checked for their handoff's end; nobody reads more.
const LOOKED_AT: usize = 1_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Wanted {
    line: String,
    /// Counts connections: after a reconnection the server may not have the line any more.
    life: u64,
}

/// Holds the line that tmux should show. Its writer ends when this is dropped.
pub(super) struct StatusLine {
    wanted: watch::Sender<Wanted>,
    /// `tmux.status` of the configuration.
    pub(super) enabled: bool,
    failures: usize,
    /// The handoff of each failure.
    of: BTreeMap<Uuid, Option<HandoffId>>,
    /// Handoffs that have failures and are over.
    over: BTreeSet<HandoffId>,
}

impl StatusLine {
    pub(super) fn new(tmux: Tmux, enabled: bool) -> Self {
        let (wanted, receiver) = watch::channel(Wanted::default());
        tokio::spawn(keep(tmux, receiver));
        StatusLine { wanted, enabled, failures: 0, of: BTreeMap::new(), over: BTreeSet::new() }
    }

    pub(super) fn connected(&self) {
        if self.enabled {
            self.wanted.send_modify(|wanted| wanted.life += 1);
        }
    }

    /// Counts the failures that nobody has dismissed, without those whose handoff is over, because a retry that
    /// succeeded leaves nothing to do. A failed listing changes nothing.
    pub(super) fn count_failures(&mut self, spool: &Spool, state: &State) {
        let Ok(ids) = spool.ids(ProjectionFolder::Errors) else { return };
        self.of.retain(|id, _| ids.contains(id));
        let past = ids.iter().take(LOOKED_AT).filter(|id| self.is_past(spool, state, **id)).count();
        self.failures = ids.len() - past;
        if ids.is_empty() {
            self.over.clear();
        }
    }

    /// The same where a decision has made or dismissed some, or ended a handoff that had failed.
    pub(super) fn count_new_failures(&mut self, spool: &Spool, state: &State, decision: &Decision) {
        let may_end = self.failures > 0 && !decision.handoffs.is_empty();
        if may_end || !decision.errors.is_empty() || !decision.dismissed.is_empty() {
            self.count_failures(spool, state);
        }
    }

    /// Whether the failure is of a handoff that is over. What can't be read is not.
    fn is_past(&mut self, spool: &Spool, state: &State, id: Uuid) -> bool {
        let handoff = match self.of.get(&id) {
            Some(known) => *known,
            None => {
                let Ok(Some(bytes)) = spool.get(&OutputFile::Error(ErrorId(id))) else { return false };
                let error: ErrorFile = contract::read(&bytes).ok().flatten().unwrap_or_default();
                let halts = status_line::halted(&error.code, &error.step.unwrap_or_default());
                let of = error.handoff_id.filter(|_| halts).and_then(|id| id.parse().ok());
                self.of.insert(id, of);
                of
            }
        };
        let Some(handoff) = handoff else { return false };
        if let Some(live) = state.handoffs.get(&handoff) {
            return matches!(live.step, Step::Done | Step::Cancelled);
        }
        if self.over.contains(&handoff) {
            return true;
        }
        let Ok(Some(bytes)) = spool.get(&OutputFile::Handoff(handoff)) else { return false };
        let view: HandoffView = contract::read(&bytes).ok().flatten().unwrap_or_default();
        let is_over = matches!(view.step.known(), Some(Step::Done | Step::Cancelled));
        if is_over {
            self.over.insert(handoff);
        }
        is_over
    }

    /// Sets the line for tmux's option.
    pub(super) fn update(&self, state: &State, now: &Now) {
        let line = if self.enabled { status_line::line(state, self.failures, now) } else { String::new() };
        self.wanted.send_if_modified(|wanted| {
            let is_new = wanted.line != line;
            wanted.line = line;
            is_new
        });
    }
}

/// Writes what is wanted for as long as somebody may want something.
async fn keep(tmux: Tmux, mut receiver: watch::Receiver<Wanted>) {
    while receiver.changed().await.is_ok() {
        let line = receiver.borrow_and_update().line.clone();
        if let Err(error) = tmux.show_status(&line).await {
            tracing::debug!(%error, "could not update the status line in tmux");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
