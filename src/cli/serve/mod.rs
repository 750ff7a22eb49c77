//! `serve`: the spool and the views over HTTP on loopback, for dashboards that cannot or do not want to read files. It
//! is a client like every other command: it opens no database, and it drops each incoming request into the spool.
//!
//! Where to read: `listen` accepts connections, and `slots` limits their number. `guard` decides which requests pass,
//! and `routes` lists the addresses. `views`, `health`, `documents` and `ask` answer, `query` parses the query of a
//! list, and `login` gives the token to a page. `hosts` and `host_requests` answer for the other hosts of a fleet.
//! `journal` reads the journal's lines, and `broadcaster` sends them to all clients of `events`. For changes without a
//! line in the journal, `changed_views` and, for other hosts, `host_watch` add events. `change_notifier` wakes the
//! waiting tasks. `submitted` remembers the requests without an answer. `openapi` describes the API.

mod app;
mod args;
mod ask;
mod broadcaster;
mod change_notifier;
mod changed_views;
mod documents;
mod events;
mod guard;
mod health;
mod host_requests;
mod host_watch;
mod hosts;
mod journal;
mod listen;
mod login;
mod openapi;
mod openapi_hosts;
mod openapi_parts;
mod page;
mod problem;
mod query;
mod routes;
mod slots;
mod submitted;
mod token;
mod views;
mod write_timeout;

pub use args::ServeArgs;
pub use openapi::document;

use super::CliSession;
use super::client::{self, Pulse, SidecarPresence};
use super::error::CliError;
use super::output::eprint_quietly;
use crate::exit;
use crate::sidecar::ignores_hang_ups;
use crate::spool::Spool;
use app::ServeApp;
use broadcaster::Broadcaster;
use change_notifier::ChangeNotifier;
use serde_json::json;
use slots::ConnectionSlots;
use std::io::ErrorKind;
use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use submitted::SubmittedRequests;
use token::Token;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// How many ports are tried if the system may choose the port (port 0).
const TRIES: u32 = 16;

/// Serves until a signal ends it.
///
/// # Errors
/// Exit code 2 for an address that is not loopback, 69 if no sidecar has ever run for this home, 75 if the system
/// refuses (the port is taken, for example), 77 if others can read the spool or the token.
pub fn command(session: &CliSession, args: &ServeArgs) -> Result<(), CliError> {
    let address = args.address()?;
    if !session.home.view().is_dir() {
        return Err(client::no_sidecar(&session.home, &SidecarPresence::None));
    }
    // Opened only because `open` checks that no other user can read the folders of the home, and makes missing ones.
    drop(Spool::open(session.home.root())?);
    let token = Token::prepare(&session.home)?;
    // A shell on macOS allows 256 open files by default: fewer than the connections that this server accepts.
    #[cfg(target_os = "macos")]
    crate::limits::raise();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(8)
        .thread_keep_alive(Duration::from_secs(2))
        .build()
        .map_err(|error| CliError::new(exit::TRY_AGAIN, "no_runtime", format!("Can't start the server: {error}.")))?;
    exit::end_on_fault(
        || false,
        |said| eprint_quietly(&format!("tasuki: {said} The sidecar and the agents keep running.")),
    );
    let served = runtime.block_on(serve(session, (address, args.all_hosts), token));
    // Blocking tasks that still read a file are not waited for.
    runtime.shutdown_background();
    served
}

async fn serve(
    session: &CliSession,
    (address, all_hosts): (SocketAddr, bool),
    mut token: Token,
) -> Result<(), CliError> {
    let taken = |error: std::io::Error| {
        CliError::new(exit::TRY_AGAIN, "no_port", format!("Can't listen on {address}: {error}."))
            .hint("Is another `tasuki serve` running? --listen 127.0.0.1:0 takes any free port.")
    };
    let (listener, other) = bind(address).await.map_err(taken)?;
    let address = listener.local_addr().map_err(taken)?;
    token.publish()?;
    let stop = CancellationToken::new();
    let app = Arc::new(ServeApp {
        home: session.home.clone(),
        address,
        token,
        patience: session.timeout.unwrap_or(super::ANSWER_SOON),
        changes: ChangeNotifier::arm(&session.home),
        submitted: SubmittedRequests::default(),
        broadcaster: Broadcaster::new(),
        listeners: Arc::new(Semaphore::new(events::MOST_LISTENERS)),
        all_hosts,
        stop: stop.clone(),
    });
    stop_on_signals(&stop)?;
    let (told, views) = (app.broadcaster.clone(), app.changes.views());
    tokio::spawn(broadcaster::run_views(told.clone(), Arc::clone(&views), stop.clone()));
    tokio::spawn(broadcaster::run((told, views), app.changes.journal(), app.home.clone(), stop.clone()));
    if all_hosts {
        tokio::spawn(host_watch::run(app.broadcaster.clone(), app.home.clone(), stop.clone()));
    }
    // In parallel with the server: a stopped terminal or a pipe that nobody reads must not delay it or its end.
    let mut announced = tokio::task::spawn_blocking(announcement(session, &app));
    let router = routes::router(app);
    let places = ConnectionSlots::new();
    let beside = |other| tokio::spawn(listen::serve(other, router.clone(), Arc::clone(&places), stop.clone()));
    let other = other.map(beside);
    let mut serving = std::pin::pin!(listen::serve(listener, router, places, stop));
    tokio::select! {
        () = &mut serving => {}
        said = &mut announced => {
            said.unwrap_or(Ok(()))?;
            serving.await;
        }
    }
    if let Some(other) = other {
        // The other listener stops at the same moment, and within the same time.
        let _ = other.await;
    }
    Ok(())
}

/// Listens on the address, and on the same port of the other loopback address (`::1` beside `127.0.0.1`, or the
/// reverse). `localhost` may mean either, and a program that listened on the other one could pretend to be this server.
/// If the machine does not have the other address, one listener is enough.
async fn bind(address: SocketAddr) -> std::io::Result<(TcpListener, Option<TcpListener>)> {
    let other: Option<IpAddr> = match address.ip() {
        IpAddr::V4(Ipv4Addr::LOCALHOST) => Some(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::LOCALHOST) => Some(Ipv4Addr::LOCALHOST.into()),
        _ => None,
    };
    let mut tries = if address.port() == 0 { TRIES } else { 1 };
    loop {
        tries -= 1;
        let listener = TcpListener::bind(address).await?;
        let Some(other) = other else { return Ok((listener, None)) };
        match TcpListener::bind((other, listener.local_addr()?.port())).await {
            Ok(other) => return Ok((listener, Some(other))),
            Err(error) if error.kind() != ErrorKind::AddrInUse => return Ok((listener, None)),
            Err(error) if tries == 0 => return Err(error),
            // The system chose the port, and it is taken on the other address: try another port.
            Err(_) => {}
        }
    }
}

/// Prints the address. On a terminal it adds a code, which a browser exchanges for the token once. Elsewhere it prints
/// no code, because a log would keep it. The address never holds the token, because the browser's history would keep
/// that.
fn announcement(session: &CliSession, app: &ServeApp) -> impl FnOnce() -> Result<(), CliError> + Send + 'static {
    let (url, out, file) =
        (format!("http://{}/", app.address), session.out.clone(), app.token.path().display().to_string());
    let is_alive = Pulse::new(&session.home).is_alive();
    let is_shared = app.token.is_shared();
    let code = (!out.is_json() && std::io::stdout().is_terminal()).then(|| app.token.new_code());
    move || {
        if out.is_json() {
            return out.record(&json!({"url": url, "token_file": file, "pid": std::process::id()}));
        }
        if !is_alive {
            out.note("No sidecar answers: the server shows the last known state and refuses requests.");
        }
        out.note(&format!(
            "The token is in {file}; anyone who has the token can do everything that you can do with tasuki."
        ));
        if is_shared {
            out.note("Another `tasuki serve` of this home runs, and has the same token.");
        }
        match code {
            Some(code) => out.line(&format!("{url}#code={code}")),
            None => out.line(&url),
        }
    }
}

/// Stops the server in good order on Ctrl-C, when its terminal closes, and when a service manager ends it (SIGTERM).
/// Under `nohup` it outlives its terminal.
fn stop_on_signals(stop: &CancellationToken) -> Result<(), CliError> {
    let hang_up = (!ignores_hang_ups()).then(SignalKind::hangup);
    for kind in [SignalKind::terminate(), SignalKind::interrupt()].into_iter().chain(hang_up) {
        let mut received = signal(kind).map_err(|error| {
            CliError::new(exit::TRY_AGAIN, "no_signals", format!("Can't listen for signals: {error}."))
        })?;
        let stop = stop.clone();
        tokio::spawn(async move {
            received.recv().await;
            stop.cancel();
        });
    }
    Ok(())
}
