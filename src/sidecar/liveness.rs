//! The times in the sidecar's view: when it started, and until when it was not silent. A sidecar is silent if it
//! answers no requests and knows no reason for that.

use crate::core::time::Now;
use crate::limits;

pub(super) struct Liveness {
    pub(super) started_at: String,
    /// The last time at which the sidecar was not silent.
    heartbeat: Option<String>,
    /// A connection to tmux has come up, which the view does not show yet.
    pub(super) is_tmux_new: bool,
    /// The problem to show while no thread can be started.
    pub(super) no_thread: Option<String>,
}

impl Liveness {
    pub(super) fn new(now: &Now) -> Liveness {
        Liveness { started_at: now.rfc3339(), heartbeat: None, is_tmux_new: false, no_thread: None }
    }

    /// The heartbeat: now, or, if the sidecar is silent, the last time when it was not.
    pub(super) fn heartbeat(&mut self, now: &Now, is_silent: bool) -> String {
        if !is_silent || self.heartbeat.is_none() {
            self.heartbeat = Some(now.rfc3339());
        }
        self.heartbeat.clone().unwrap_or_default()
    }

    /// Notes for the view that no thread could be started.
    pub(super) fn note_thread(&mut self, begun: &std::io::Result<()>) {
        if begun.is_err() {
            self.no_thread = limits::no_thread();
        }
    }

    /// Checks again whether a thread can be started, but only after one could not: an idle loop starts no threads.
    pub(super) fn look_for_thread(&mut self) {
        if self.no_thread.is_some() {
            self.no_thread = limits::no_thread();
        }
    }
}
