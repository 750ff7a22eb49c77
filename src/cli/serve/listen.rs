//! Taking connections: so many and no more, each with its deadlines, all of them ended in good order.

use super::paced::Paced;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The most connections at once.
const MOST_CONNECTIONS: usize = 512;
/// How long a request's head may take, and how long a connection may be idle.
const HEAD_WITHIN: Duration = Duration::from_secs(15);
/// How long a reader may take nothing of what waits for it.
const READ_WITHIN: Duration = Duration::from_secs(20);
/// How long those who are connected have to take their last answers at the end.
const STOP_WITHIN: Duration = Duration::from_secs(3);
/// The most that a request's head may hold, in bytes; also what is read at once.
const MOST_HEAD: usize = 64 * 1024;
/// How long nothing is accepted after an error such as too many open files.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// What one connection too many is told.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 64\r\nRetry-After: 5\r\nConnection: close\r\n\r\n{\"error\":\"Too many connections are open here\",\"code\":\"too_many\"}";

/// Serves until it is told to stop, and a little longer for those who are connected.
pub(super) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(AFTER_ERROR).await;
            continue;
        };
        match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => drop(connections.spawn(connection(stream, router.clone(), stop.clone(), place))),
            // Nothing is waited for: a reader who is not there to take it finds the connection closed.
            Err(_) => drop(stream.try_write(FULL)),
        }
    }
    drop(listener);
    connections.close();
    // Whoever has not taken his answer by now is cut off.
    let _ = tokio::time::timeout(STOP_WITHIN, connections.wait()).await;
}

async fn connection(stream: TcpStream, router: Router, stop: CancellationToken, _place: OwnedSemaphorePermit) {
    // Without it small answers may wait for a timer; that is no reason to refuse them.
    let _ = stream.set_nodelay(true);
    let io = TokioIo::new(Paced::new(stream, READ_WITHIN));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(MOST_HEAD);
    let mut connection = pin!(http.serve_connection(io, TowerToHyperService::new(router)));
    // How a connection ends is its other end's affair: whoever asked has an answer or knows that there was none.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
