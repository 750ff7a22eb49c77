//! `GET /api/events`: the journal as server-sent events, for as long as the client listens. `Last-Event-ID` resumes
//! after a line that the client has seen.

use super::app::ServeApp;
use super::broadcaster::Broadcast;
use super::journal::{Cursor, EventBatch};
use super::problem::Problem;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Response, header};
use axum::response::IntoResponse;
use hyper::body::Frame;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::broadcast::{self, error::RecvError, error::TryRecvError};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// The most listeners at once; the other connections are for answers.
pub(super) const MOST_LISTENERS: usize = 384;
/// How many pieces of text wait for one listener.
const FEED: usize = 4;

/// The first message: the client is to reconnect after two seconds if the connection breaks.
const HELLO: &[u8] = b"retry: 2000\n: the journal follows\n\n";
const ALIVE: &[u8] = b": still here\n\n";
const TOO_SLOW: &[u8] =
    b"event: too_slow\ndata: {\"message\":\"You read too slowly. Reconnect with Last-Event-ID; no line of the journal is lost.\"}\n\n";
const STOPPING: &[u8] = b"event: stopping\ndata: {\"message\":\"The server is stopping.\"}\n\n";
const RESET: &[u8] =
    b"event: reset\ndata: {\"message\":\"The journal no longer has that line; the stream continues at its end.\"}\n\n";
const GAP: &[u8] =
    b"event: reset\ndata: {\"message\":\"The journal no longer has the next lines; the stream continues with the next line that it has.\"}\n\n";

/// Answers with the events from now on, or from after `Last-Event-ID`.
pub(super) async fn listen(State(app): State<Arc<ServeApp>>, headers: HeaderMap) -> Response<Body> {
    let after = match last_seen(&headers) {
        Ok(after) => after,
        Err(problem) => return problem.into_response(),
    };
    let Ok(place) = Arc::clone(&app.listeners).try_acquire_owned() else {
        return Problem::new(503, "too_many", format!("{MOST_LISTENERS} clients are already listening"))
            .into_response();
    };
    let (feed, fed) = mpsc::channel(FEED);
    // Subscribes before the answer begins, so that a client misses nothing after the first byte.
    let told = app.broadcaster.listen();
    tokio::spawn(Listener { app, feed, last: 0, _place: place }.run(after, told));
    let mut response = Response::new(Body::new(Feed(fed)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // The connection ends with the stream, so a client need not distinguish the two.
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The `seq` of the last line that the client has seen.
fn last_seen(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(seq) if is_number => Ok(Some(seq)),
        _ => Err(Problem::bad("Last-Event-ID must be the `id` of an event")),
    }
}

/// The messages to a listener, as a body without an end.
struct Feed(mpsc::Receiver<Bytes>);

impl HttpBody for Feed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|text| text.map(|text| Ok(Frame::data(text))))
    }
}

/// One client of the stream. The feed is bounded: further lines wait in the broadcaster's queue or on the disk.
struct Listener {
    app: Arc<ServeApp>,
    feed: mpsc::Sender<Bytes>,
    last: u64,
    _place: OwnedSemaphorePermit,
}

/// The client has disconnected.
struct Gone;

/// Where a listener continues in a journal that was begun again.
#[derive(Clone, Copy)]
enum Restart {
    /// For a client that reconnects: nobody knows which of the new lines it has seen.
    AtEnd,
    /// For a client that is connected: all lines are new to it.
    AtFirstLine,
}

impl Listener {
    async fn run(mut self, after: Option<u64>, told: broadcast::Receiver<Broadcast>) {
        // A client that has gone needs no last message.
        let _ = self.tell(after, told).await;
    }

    async fn tell(&mut self, after: Option<u64>, mut told: broadcast::Receiver<Broadcast>) -> Result<(), Gone> {
        self.say(HELLO).await?;
        if let Some(seq) = after {
            // Reading from the disk may take long. Lines that are written meanwhile are also read from the disk.
            self.catch_up(seq, Restart::AtEnd).await?;
            let changes = changes_among(&mut told);
            self.catch_up(self.last, Restart::AtFirstLine).await?;
            // A client reads the lists as soon as it is connected, so these may have come after that.
            let Some(changes) = changes else { return self.say(TOO_SLOW).await };
            for event in changes {
                self.send(event).await?;
            }
        }
        let stop = self.app.stop.clone();
        loop {
            let heard = tokio::select! {
                () = stop.cancelled() => return self.say(STOPPING).await,
                () = self.feed.closed() => return Err(Gone),
                heard = told.recv() => heard,
            };
            match heard {
                Ok(Broadcast::Lines(batch)) => self.pass(&batch).await?,
                Ok(Broadcast::Change(event)) => self.send(event).await?,
                Ok(Broadcast::Alive) => self.say(ALIVE).await?,
                Ok(Broadcast::Unreadable(why)) => return self.unreadable(&why).await,
                Err(RecvError::Lagged(_)) => return self.say(TOO_SLOW).await,
                Err(RecvError::Closed) => return Err(Gone),
            }
        }
    }

    /// Sends the journal's lines after a `seq`; if the journal was begun again, first a message about that.
    async fn catch_up(&mut self, seq: u64, restart: Restart) -> Result<(), Gone> {
        self.last = seq;
        let mut cursor = self.cursor_after(seq).await?;
        if cursor.newest() < seq {
            // This is not the journal that the client has read.
            self.say(RESET).await?;
            match restart {
                Restart::AtEnd => {
                    self.last = cursor.newest();
                    return Ok(());
                }
                Restart::AtFirstLine => self.last = 0,
            }
            cursor = self.cursor_after(0).await?;
        }
        loop {
            let (back, read) = match blocking(move || Ok((cursor.read(), cursor))).await {
                Ok((read, back)) => (back, read),
                Err(error) => return self.unreadable(&error.to_string()).await,
            };
            cursor = back;
            match read {
                Ok(batch) => {
                    let Some((first, _)) = batch.ends() else { return Ok(()) };
                    // Files of the journal may have been deleted. Who has seen no line has lost none.
                    if self.last > 0 && first > self.last + 1 {
                        self.say(GAP).await?;
                    }
                    self.pass(&batch).await?;
                }
                Err(error) => return self.unreadable(&error.to_string()).await,
            }
        }
    }

    async fn cursor_after(&mut self, seq: u64) -> Result<Cursor, Gone> {
        let home = self.app.home.clone();
        match blocking(move || Cursor::after(&home, seq)).await {
            Ok(cursor) => Ok(cursor),
            Err(error) => {
                self.unreadable(&error.to_string()).await?;
                Err(Gone)
            }
        }
    }

    /// Sends the lines that were not sent yet. The lines of another journal are all new, whatever their numbers.
    async fn pass(&mut self, batch: &EventBatch) -> Result<(), Gone> {
        if batch.starts_over() {
            self.last = 0;
            self.say(RESET).await?;
        }
        self.send(batch.after(self.last)).await?;
        self.last = batch.ends().map_or(self.last, |(_, last)| last.max(self.last));
        Ok(())
    }

    /// Tells the listener that the journal can't be read, so that it reconnects and misses no line silently.
    async fn unreadable(&mut self, why: &str) -> Result<(), Gone> {
        let data = serde_json::json!({"message": format!("The journal can't be read: {why}")});
        self.send(format!("event: unreadable\ndata: {data}\n\n").into()).await?;
        Err(Gone)
    }

    async fn say(&mut self, words: &'static [u8]) -> Result<(), Gone> {
        self.send(Bytes::from_static(words)).await
    }

    /// Waits for room in the feed. The connection has its own timeout for a client that reads nothing.
    async fn send(&mut self, text: Bytes) -> Result<(), Gone> {
        if text.is_empty() {
            return Ok(());
        }
        self.feed.send(text).await.map_err(|_| Gone)
    }
}

/// Takes what was told so far, and returns the changes in it, which no line of the journal tells. `None` if some are
/// lost.
fn changes_among(told: &mut broadcast::Receiver<Broadcast>) -> Option<Vec<Bytes>> {
    let mut changes = Vec::new();
    loop {
        match told.try_recv() {
            Ok(Broadcast::Change(event)) => changes.push(event),
            Ok(Broadcast::Lines(_) | Broadcast::Alive | Broadcast::Unreadable(_)) => {}
            Err(TryRecvError::Lagged(_)) => return None,
            Err(TryRecvError::Empty | TryRecvError::Closed) => return Some(changes),
        }
    }
}

/// Runs work that may wait for a disk on a thread where waiting blocks no other client.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
