//! Notices from the connection's thread, which must never wait, to the sidecar.

use super::TmuxNotice;
use std::collections::VecDeque;
use tokio::sync::mpsc;

/// Notices on their way to a receiver that may be slow: none about the connection is lost, and any number of changed
/// panes are one.
pub(super) struct Outbox {
    notices: mpsc::Sender<TmuxNotice>,
    waiting: VecDeque<TmuxNotice>,
}

impl Outbox {
    pub(super) fn new(notices: mpsc::Sender<TmuxNotice>) -> Outbox {
        Outbox { notices, waiting: VecDeque::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds one, and hands over what the receiver has room for.
    pub(super) fn put(&mut self, notice: TmuxNotice) {
        let last_is_same =
            matches!((&notice, self.waiting.back()), (TmuxNotice::PanesChanged, Some(TmuxNotice::PanesChanged)));
        if !last_is_same {
            self.waiting.push_back(notice);
        }
        // A receiver that sleeps through many lives of the server needs to know only the latest.
        if self.waiting.len() > 16 {
            self.waiting.pop_front();
        }
        self.flush();
    }

    /// Hands over what the receiver has room for. Never waits.
    pub(super) fn flush(&mut self) {
        while let Some(notice) = self.waiting.pop_front() {
            match self.notices.try_send(notice) {
                Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
                Err(mpsc::error::TrySendError::Full(notice)) => {
                    self.waiting.push_front(notice);
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down(reason: &str) -> TmuxNotice {
        TmuxNotice::Disconnected { reason: reason.to_owned() }
    }

    #[test]
    fn a_slow_receiver_loses_nothing_about_the_connection() {
        let (notices, mut inbox) = mpsc::channel(1);
        let mut outbox = Outbox::new(notices);
        for notice in [down("a"), TmuxNotice::PanesChanged, TmuxNotice::PanesChanged, down("b")] {
            outbox.put(notice);
        }
        let mut got = Vec::new();
        while !outbox.is_empty() || !inbox.is_empty() {
            got.push(inbox.try_recv().expect("one is there"));
            outbox.flush();
        }
        assert_eq!(got, [down("a"), TmuxNotice::PanesChanged, down("b")]);
    }

    #[test]
    fn a_receiver_that_never_listens_costs_no_memory() {
        let (notices, _inbox) = mpsc::channel(1);
        let mut outbox = Outbox::new(notices);
        (0..1000).for_each(|n| outbox.put(down(&n.to_string())));
        assert!(outbox.waiting.len() <= 16);
        assert_eq!(outbox.waiting.back(), Some(&down("999")));
    }
}
