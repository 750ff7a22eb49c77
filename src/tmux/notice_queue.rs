//! Notices from the connection's thread, which must never wait, to the sidecar.

use super::TmuxNotice;
use std::collections::VecDeque;
use tokio::sync::mpsc;

/// Notices for a receiver that may be slow. Notices of changed panes that follow each other count as one. If more than
/// 16 wait, the oldest is dropped.
pub(super) struct NoticeQueue {
    notices: mpsc::Sender<TmuxNotice>,
    waiting: VecDeque<TmuxNotice>,
}

impl NoticeQueue {
    pub(super) fn new(notices: mpsc::Sender<TmuxNotice>) -> NoticeQueue {
        NoticeQueue { notices, waiting: VecDeque::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a notice, and hands over what the receiver has room for.
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
        let mut queue = NoticeQueue::new(notices);
        for notice in [down("a"), TmuxNotice::PanesChanged, TmuxNotice::PanesChanged, down("b")] {
            queue.put(notice);
        }
        let mut got = Vec::new();
        while !queue.is_empty() || !inbox.is_empty() {
            got.push(inbox.try_recv().expect("one is there"));
            queue.flush();
        }
        assert_eq!(got, [down("a"), TmuxNotice::PanesChanged, down("b")]);
    }

    #[test]
    fn a_receiver_that_never_listens_costs_no_memory() {
        let (notices, _inbox) = mpsc::channel(1);
        let mut queue = NoticeQueue::new(notices);
        (0..1000).for_each(|n| queue.put(down(&n.to_string())));
        assert!(queue.waiting.len() <= 16);
        assert_eq!(queue.waiting.back(), Some(&down("999")));
    }
}
