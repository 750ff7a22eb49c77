//! The times in the sidecar's view: when it started, and until when it is known to answer.

use crate::core::time::Now;
use crate::limits;

pub(super) struct Liveness {
    pub(super) started_at: String,
    /// When it was last said that requests are answered.
    beat: Option<String>,
    /// Why what needs a thread waits, while none can be begun.
    pub(super) no_thread: Option<String>,
}

impl Liveness {
    pub(super) fn new(now: &Now) -> Liveness {
        Liveness { started_at: now.rfc3339(), beat: None, no_thread: None }
    }

    /// When it beat last, and that is at this moment unless nobody is answered.
    pub(super) fn heartbeat(&mut self, now: &Now, is_silent: bool) -> String {
        if !is_silent || self.beat.is_none() {
            self.beat = Some(now.rfc3339());
        }
        self.beat.clone().unwrap_or_default()
    }

    /// Notes for the view that no thread could be started.
    pub(super) fn note_thread(&mut self, begun: &std::io::Result<()>) {
        if begun.is_err() {
            self.no_thread = limits::no_thread();
        }
    }

    /// Looks again whether a thread can be begun; only where one was missing, for an idle loop begins none.
    pub(super) fn look_for_thread(&mut self) {
        if self.no_thread.is_some() {
            self.no_thread = limits::no_thread();
        }
    }
}
