//! Reads the journal once for all listeners, and tells them of views that have changed without a line in the journal.

use super::changed_views::ChangedViews;
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
/// Changes of views within this time are told together. Meanwhile a line of the journal may come that names them, and
/// then they need no event. On macOS the system does not say which file has changed: whole lists are told, and less
/// often.
const GATHER: Duration = Duration::from_millis(if crate::files::watcher::SEES_GROWTH { 500 } else { 3_000 });

#[derive(Debug, Clone)]
pub(super) enum Broadcast {
    Lines(Arc<EventBatch>),
    /// Events for changes without a line in the journal: of a host of the fleet, of views, or of errors.
    Change(Bytes),
    Alive,
    /// The journal can't be read, for this reason. Listeners are cut off, so that each reconnects and learns of it.
    Unreadable(Arc<str>),
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

    /// Sends events for changes without a line in the journal.
    pub(super) fn tell_change(&self, events: String) {
        self.tell(Broadcast::Change(events.into()));
    }

    fn tell(&self, told: Broadcast) {
        // Sending fails if there are no listeners.
        let _ = self.told.send(told);
    }
}

/// Sends new lines to all listeners, until the server stops. It also reads the journal while nobody listens, so that it
/// is at the journal's end when the first listener connects.
pub(super) async fn run(
    (broadcaster, views): (Broadcaster, Arc<ChangedViews>),
    mut changes: watch::Receiver<()>,
    home: Home,
    stop: CancellationToken,
) {
    let mut cursor = None;
    let mut alive_at = Instant::now() + ALIVE_EVERY;
    let mut was_readable = true;
    loop {
        changes.mark_unchanged();
        let told = tell_new((&broadcaster, &views), &home, &mut cursor).await;
        match &told {
            Err(error) if was_readable => eprint_quietly(&format!(
                "tasuki: The journal can't be read: {error}. Trying again; clients get no events until then."
            )),
            // A momentary failure, such as a lack of descriptors, loses nothing and ends no stream.
            Err(error) => broadcaster.tell(Broadcast::Unreadable(error.to_string().into())),
            Ok(()) => {}
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

/// Tells of views and errors that have changed without a line in the journal, until the server stops.
pub(super) async fn run_views(broadcaster: Broadcaster, views: Arc<ChangedViews>, stop: CancellationToken) {
    let mut bell = views.bell();
    let mut look_at = Instant::now() + ALIVE_EVERY;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = bell.changed() => tokio::time::sleep(GATHER).await,
            () = tokio::time::sleep_until(look_at) => {}
        }
        if look_at <= Instant::now() {
            look_at = Instant::now() + ALIVE_EVERY;
            views.look();
        }
        bell.mark_unchanged();
        let events = views.take();
        if !events.is_empty() && broadcaster.has_listeners() {
            broadcaster.tell_change(events);
        }
    }
}

async fn tell_new(
    (broadcaster, views): (&Broadcaster, &ChangedViews),
    home: &Home,
    cursor: &mut Option<Cursor>,
) -> io::Result<()> {
    let cursor = match cursor {
        Some(cursor) => cursor,
        None => cursor.insert(Cursor::at_end(home)?),
    };
    loop {
        let batch = cursor.read()?;
        if batch.ends().is_none() {
            return Ok(());
        }
        views.forget_told(&batch.after(0));
        broadcaster.tell(Broadcast::Lines(Arc::new(batch)));
        // Lets the listeners take this batch before the next one.
        tokio::task::yield_now().await;
    }
}
