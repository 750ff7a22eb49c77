//! Places for connections. Every program of every user of this machine can connect, so those who have not yet shown the
//! token share few places, and the one that has waited longest makes room for the next. Nobody without the token can
//! keep out those who have it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The most connections at once.
pub(super) const MOST_CONNECTIONS: usize = 512;
/// How many of them may have shown no token.
const MOST_STRANGERS: usize = 64;

/// All places, of both addresses that are listened on.
pub(super) struct Places {
    known: Arc<Semaphore>,
    strangers: Mutex<Strangers>,
}

/// Those who have shown no token.
#[derive(Default)]
struct Strangers {
    waiting: VecDeque<(u64, CancellationToken)>,
    /// The number of the next one: never that of a connection which still is there, known or not.
    next: u64,
}

impl Places {
    /// All of them free.
    pub(super) fn new() -> Arc<Self> {
        let known = Arc::new(Semaphore::new(MOST_CONNECTIONS - MOST_STRANGERS));
        Arc::new(Places { known, strangers: Mutex::default() })
    }

    /// A place for one that has just connected: there always is one, if need be another stranger's.
    pub(super) fn take(self: &Arc<Self>) -> Arc<Place> {
        let gone = CancellationToken::new();
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        if strangers.waiting.len() >= MOST_STRANGERS {
            strangers.waiting.pop_front().inspect(|(_, longest)| longest.cancel());
        }
        let number = strangers.next;
        strangers.next = number.wrapping_add(1);
        strangers.waiting.push_back((number, gone.clone()));
        Arc::new(Place { all: Arc::clone(self), number, gone, known: Mutex::default() })
    }

    fn leave(&self, number: u64) {
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        strangers.waiting.retain(|(stranger, _)| *stranger != number);
    }
}

/// One connection's place. It is free again when this is dropped.
pub(super) struct Place {
    all: Arc<Places>,
    number: u64,
    gone: CancellationToken,
    /// Held from the first request with the token on.
    known: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Place {
    /// The token was shown here. Whether there is a place for one more who has it.
    pub(super) fn admit(&self) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            *known = Arc::clone(&self.all.known).try_acquire_owned().ok();
            if known.is_some() {
                self.all.leave(self.number);
            }
        }
        known.is_some()
    }

    /// Ends when somebody else needs the place.
    pub(super) async fn lost(&self) {
        self.gone.cancelled().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.leave(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_goes_takes_nobody_elses_place_along() {
        let places = Places::new();
        let known = places.take();
        assert!(known.admit());
        let strangers: Vec<_> = (0..MOST_STRANGERS).map(|_| places.take()).collect();
        drop(known);
        let one_more = places.take();
        assert!(
            strangers[0].gone.is_cancelled(),
            "{} are counted",
            places.strangers.lock().expect("ours").waiting.len()
        );
        assert!(!strangers[1].gone.is_cancelled() && !one_more.gone.is_cancelled());
    }
}
