//! Limits the number of connections. Every program of every user of this machine can connect. Connections that have not
//! shown the token share a few places, and if these are taken, the oldest such connection is closed for a new one. So
//! programs without the token can't keep out those that have it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

pub(super) const MOST_CONNECTIONS: usize = 512;
/// How many of them may have shown no token.
const MAX_UNAUTHENTICATED: usize = 64;

/// All places.
pub(super) struct ConnectionSlots {
    known: Arc<Semaphore>,
    unauthenticated: Mutex<Unauthenticated>,
}

#[derive(Default)]
struct Unauthenticated {
    waiting: VecDeque<(u64, CancellationToken)>,
    /// The next connection's number, which no open connection has.
    next: u64,
}

impl ConnectionSlots {
    pub(super) fn new() -> Arc<Self> {
        let known = Arc::new(Semaphore::new(MOST_CONNECTIONS - MAX_UNAUTHENTICATED));
        Arc::new(ConnectionSlots { known, unauthenticated: Mutex::default() })
    }

    /// A place for a new connection. If all are taken, the connection that has been without a token for longest loses
    /// its place.
    pub(super) fn take(self: &Arc<Self>) -> Arc<ConnectionSlot> {
        let gone = CancellationToken::new();
        let mut unauthenticated = self.unauthenticated.lock().unwrap_or_else(PoisonError::into_inner);
        if unauthenticated.waiting.len() >= MAX_UNAUTHENTICATED {
            unauthenticated.waiting.pop_front().inspect(|(_, longest)| longest.cancel());
        }
        let number = unauthenticated.next;
        unauthenticated.next = number.wrapping_add(1);
        unauthenticated.waiting.push_back((number, gone.clone()));
        Arc::new(ConnectionSlot { all: Arc::clone(self), number, gone, known: Mutex::default() })
    }

    fn leave(&self, number: u64) {
        let mut unauthenticated = self.unauthenticated.lock().unwrap_or_else(PoisonError::into_inner);
        unauthenticated.waiting.retain(|(other, _)| *other != number);
    }
}

/// One connection's place. It is free again when this is dropped.
pub(super) struct ConnectionSlot {
    all: Arc<ConnectionSlots>,
    number: u64,
    gone: CancellationToken,
    /// A permit for a connection with the token, held from its first request with the token until it closes.
    known: Mutex<Option<OwnedSemaphorePermit>>,
}

impl ConnectionSlot {
    /// Notes that this connection has shown the token. Returns whether there is a place for it.
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

    /// Returns when another connection needs this place.
    pub(super) async fn lost(&self) {
        self.gone.cancelled().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.all.leave(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_closes_frees_only_its_own_place() {
        let places = ConnectionSlots::new();
        let known = places.take();
        assert!(known.admit());
        let unauthenticated: Vec<_> = (0..MAX_UNAUTHENTICATED).map(|_| places.take()).collect();
        drop(known);
        let one_more = places.take();
        assert!(
            unauthenticated[0].gone.is_cancelled(),
            "{} are counted",
            places.unauthenticated.lock().expect("ours").waiting.len()
        );
        assert!(!unauthenticated[1].gone.is_cancelled() && !one_more.gone.is_cancelled());
    }
}
