//! Accepts connections: a limited number, each with deadlines, and all of them closed properly at the end.

use super::slots::{ConnectionSlot, ConnectionSlots};
use super::write_timeout::WriteTimeout;
use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a request's head may take, and how long a connection may be idle.
const HEAD_WITHIN: Duration = Duration::from_secs(15);
/// How long a client may read nothing while an answer waits for it.
const READ_WITHIN: Duration = Duration::from_secs(20);
/// How long connected clients have to read their last answers when the server stops.
const STOP_WITHIN: Duration = Duration::from_secs(3);
/// The largest head of a request, in bytes; also how much is read at once.
const MOST_HEAD: usize = 64 * 1024;
/// How long nothing is accepted after an error such as too many open files.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// Serves until it is told to stop, and a little longer for connected clients.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    places: Arc<ConnectionSlots>,
    stop: CancellationToken,
) {
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
        drop(connections.spawn(connection(stream, router.clone(), stop.clone(), places.take())));
    }
    drop(listener);
    connections.close();
    // A client that has not taken its answer by now is cut off.
    let _ = tokio::time::timeout(STOP_WITHIN, connections.wait()).await;
}

async fn connection(stream: TcpStream, router: Router, stop: CancellationToken, place: Arc<ConnectionSlot>) {
    // If this fails, small answers may be delayed. The connection works nevertheless.
    let _ = stream.set_nodelay(true);
    let io = TokioIo::new(WriteTimeout::new(stream, READ_WITHIN));
    let mut http = http1::Builder::new();
    // A client that has sent its request may close its sending side, and still waits for the answer.
    http.half_close(true).timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(MOST_HEAD);
    let (router, asker) = (TowerToHyperService::new(router), Arc::clone(&place));
    let service = service_fn(move |mut request: Request<Incoming>| {
        // The guard admits the connection when it sees the token.
        request.extensions_mut().insert(Arc::clone(&asker));
        router.call(request)
    });
    let mut connection = pin!(http.serve_connection(io, service));
    // An error of the connection needs no report: the client sees by itself whether it got an answer.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = place.lost() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
