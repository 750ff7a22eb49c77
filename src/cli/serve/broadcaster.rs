//! Reads the journal once for all listeners.

use super::journal::{Cursor, EventBatch};
use crate::cli::output::eprint_quietly;
use crate::config::Home;
use axum::body::Bytes;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many batches may wait for a listener. A listener with more is cut off.
const QUEUE: usize = 128;
/// The interval of keep-alive messages, for listeners and for proxies in between.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// How often the journal is read without a hint while there are listeners.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(super) enum Broadcast {
    Lines(Arc<EventBatch>),
    /// The event of a host of the fleet that has changed.
    Host(Bytes),
    Alive,
}

#[derive(Clone)]
pub(super) struct Broadcaster {
    told: broadcast::Sender<Broadcast>,
}

impl Broadcaster {
    pub(super) fn new() -> Broadcaster {
        Broadcaster { told: broadcast::Sender::new(QUEUE) }
    }

    pub(super) fn listen(&self) -> broadcast::Receiver<Broadcast> {
        self.told.subscribe()
    }

    pub(super) fn has_listeners(&self) -> bool {
        self.told.receiver_count() > 0
    }

    /// Sends the event of a host that has changed.
    pub(super) fn tell_host(&self, event: String) {
        self.tell(Broadcast::Host(event.into()));
    }

    fn tell(&self, told: Broadcast) {
        // Sending fails if there are no listeners.
        let _ = self.told.send(told);
    }
}

/// Sends new lines to all listeners, until the end. It also reads without listeners, so that it is at the journal's
/// end when the first one connects.
pub(super) async fn run(
    broadcaster: Broadcaster,
    mut changes: watch::Receiver<()>,
    home: Home,
    stop: CancellationToken,
) {
    let mut cursor = None;
    let mut alive_at = Instant::now() + ALIVE_EVERY;
    let mut was_readable = true;
    loop {
        changes.mark_unchanged();
        let told = tell_new(&broadcaster, &home, &mut cursor).await;
        if let (Err(error), true) = (&told, was_readable) {
            eprint_quietly(&format!(
                "tasuki: The journal can't be read: {error}. Trying again; clients get no events until then."
            ));
        }
        was_readable = told.is_ok();
        if alive_at <= Instant::now() {
            alive_at = Instant::now() + ALIVE_EVERY;
            broadcaster.tell(Broadcast::Alive);
        }
        let nap = if broadcaster.has_listeners() { LOOK_EVERY } else { ALIVE_EVERY };
        tokio::select! {
            () = stop.cancelled() => return,
            _ = changes.changed() => {}
            () = tokio::time::sleep(nap) => {}
        }
    }
}

async fn tell_new(broadcaster: &Broadcaster, home: &Home, cursor: &mut Option<Cursor>) -> io::Result<()> {
    let cursor = match cursor {
        Some(cursor) => cursor,
        None => cursor.insert(Cursor::at_end(home)?),
    };
    loop {
        let batch = cursor.read()?;
        if batch.ends().is_none() {
            return Ok(());
        }
        broadcaster.tell(Broadcast::Lines(Arc::new(batch)));
        // Lets the listeners take this batch before the next one.
        tokio::task::yield_now().await;
    }
}
