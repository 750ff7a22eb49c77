//! The line in tmux's `@tasuki_status`: a projection like the views, but one that nobody has to be able to rely on. It is
//! written beside the loop, at most once a second and only when it has changed; that it can't be written harms nothing.

use super::Sidecar;
use crate::core::decision::Decision;
use crate::core::glance;
use crate::core::time::Now;
use crate::spool::Shelf;
use crate::tmux::Tmux;
use std::time::Duration;
use tokio::sync::watch;

/// Between two changes of the line.
const PAUSE: Duration = Duration::from_secs(1);

/// What is to stand there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Wanted {
    line: String,
    /// Counts connections: a server that was found again may know nothing of the line.
    life: u64,
}

/// Says what is to stand there. Whoever writes it ends with this.
pub(super) struct Glance {
    wanted: watch::Sender<Wanted>,
    /// `tmux.status` of the configuration.
    pub(super) enabled: bool,
    failures: usize,
}

impl Glance {
    pub(super) fn new(tmux: Tmux, enabled: bool) -> Self {
        let (wanted, receiver) = watch::channel(Wanted::default());
        tokio::spawn(keep(tmux, receiver));
        Glance { wanted, enabled, failures: 0 }
    }

    /// A connection to a server stands.
    pub(super) fn connected(&self) {
        if self.enabled {
            self.wanted.send_modify(|wanted| wanted.life += 1);
        }
    }
}

/// Writes what is wanted for as long as somebody may want something.
async fn keep(tmux: Tmux, mut receiver: watch::Receiver<Wanted>) {
    while receiver.changed().await.is_ok() {
        let line = receiver.borrow_and_update().line.clone();
        if let Err(error) = tmux.show_status(&line).await {
            tracing::debug!(%error, "the status line in tmux stays as it was");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl Sidecar {
    /// Looks how many failures nobody has dismissed. A listing that fails tells nothing new.
    pub(super) fn count_failures(&mut self) {
        if let Ok(ids) = self.spool.ids(Shelf::Errors) {
            self.glance.failures = ids.len();
        }
    }

    /// The same where a decision has made or dismissed some.
    pub(super) fn count_new_failures(&mut self, decision: &Decision) {
        if !decision.errors.is_empty() || !decision.dismissed.is_empty() {
            self.count_failures();
        }
    }

    /// Says what is to stand in tmux's option.
    pub(super) fn update_glance(&self, now: &Now) {
        let glance = &self.glance;
        let line = if glance.enabled { glance::line(&self.state, glance.failures, now) } else { String::new() };
        glance.wanted.send_if_modified(|wanted| {
            let is_new = wanted.line != line;
            wanted.line = line;
            is_new
        });
    }
}
