//! The requests that this server has written into the spool, and whose answers it has not seen. The sidecar removes a
//! request's file when it takes the request, and the answer may come much later. In between, only this list shows that
//! the request exists.

use crate::core::id::RequestId;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many requests are remembered; beyond that, the oldest is forgotten.
const MOST: usize = 10_000;
/// Answers are kept this long. An older request may have been answered, and its answer removed since.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The ids, the oldest first.
#[derive(Debug, Default)]
pub(super) struct SubmittedRequests(Mutex<VecDeque<(Instant, RequestId)>>);

impl SubmittedRequests {
    /// Notes that a request lies in the spool.
    pub(super) fn note(&self, id: &RequestId) {
        let mut waiting = self.waiting();
        waiting.retain(|(_, other)| other != id);
        if waiting.len() >= MOST {
            waiting.pop_front();
        }
        waiting.push_back((Instant::now(), id.clone()));
    }

    /// Notes that a request has its answer.
    pub(super) fn forget(&self, id: &RequestId) {
        self.waiting().retain(|(_, other)| other != id);
    }

    /// Whether the request was submitted here, and no answer was seen.
    pub(super) fn has(&self, id: &RequestId) -> bool {
        self.waiting().iter().any(|(at, other)| other == id && at.elapsed() < KEPT_FOR)
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<(Instant, RequestId)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> RequestId {
        format!("r-{number}").parse().expect("an id")
    }

    #[test]
    fn a_request_is_remembered_until_its_answer_and_only_so_many_are() {
        let submitted = SubmittedRequests::default();
        (0..MOST).for_each(|number| submitted.note(&id(number)));
        submitted.note(&id(0));
        assert_eq!(submitted.waiting().len(), MOST, "the same request twice is one");
        submitted.note(&id(MOST));
        assert_eq!([0, 1, 2, MOST].map(|number| submitted.has(&id(number))), [true, false, true, true]);
        submitted.forget(&id(0));
        assert!(!submitted.has(&id(0)));
    }
}
