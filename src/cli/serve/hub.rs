//! One reader of the journal for all who listen.

use super::journal::{Batch, Cursor};
use crate::cli::output::eprint_quietly;
use crate::config::Home;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many batches wait for a listener that is slow. One that is slower than that is cut off.
const QUEUE: usize = 128;
/// A sign of life for those who listen, and for all that stands between.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// How often the journal is looked at without a hint while somebody listens.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What everybody is told.
#[derive(Debug, Clone)]
pub(super) enum Told {
    Lines(Arc<Batch>),
    /// That we are still here.
    Alive,
}

/// Where listeners come to.
#[derive(Clone)]
pub(super) struct Hub {
    told: broadcast::Sender<Told>,
}

impl Hub {
    /// One that nobody listens to yet.
    pub(super) fn new() -> Hub {
        Hub { told: broadcast::Sender::new(QUEUE) }
    }

    /// Hears everything from here on.
    pub(super) fn listen(&self) -> broadcast::Receiver<Told> {
        self.told.subscribe()
    }

    fn tell(&self, told: Told) {
        // That nobody listens is no failure.
        let _ = self.told.send(told);
    }
}

/// Tells new lines to all who listen, until the end. It goes on reading while nobody listens, so that it is at the end
/// when somebody comes.
pub(super) async fn run(hub: Hub, mut bell: watch::Receiver<()>, home: Home, stop: CancellationToken) {
    let mut cursor = None;
    let mut alive_at = Instant::now() + ALIVE_EVERY;
    let mut was_readable = true;
    loop {
        bell.mark_unchanged();
        let told = tell_new(&hub, &home, &mut cursor).await;
        if let (Err(error), true) = (&told, was_readable) {
            eprint_quietly(&format!("tasuki: The journal can't be read: {error}. Trying again; listeners wait."));
        }
        was_readable = told.is_ok();
        if alive_at <= Instant::now() {
            alive_at = Instant::now() + ALIVE_EVERY;
            hub.tell(Told::Alive);
        }
        let listens = hub.told.receiver_count() > 0;
        let nap = if listens { LOOK_EVERY } else { ALIVE_EVERY };
        tokio::select! {
            () = stop.cancelled() => return,
            _ = bell.changed() => {}
            () = tokio::time::sleep(nap) => {}
        }
    }
}

async fn tell_new(hub: &Hub, home: &Home, cursor: &mut Option<Cursor>) -> io::Result<()> {
    let cursor = match cursor {
        Some(cursor) => cursor,
        None => cursor.insert(Cursor::at_end(home)?),
    };
    loop {
        let batch = cursor.read()?;
        if batch.ends().is_none() {
            return Ok(());
        }
        hub.tell(Told::Lines(Arc::new(batch)));
        // Listeners are to take what they were told before there is more.
        tokio::task::yield_now().await;
    }
}
