//! `serve`: what the spool and the views hold, over HTTP on loopback, for dashboards that can't or won't read files. It is a
//! client like every other command: it opens no database, and a request that comes in is dropped into the spool.
//!
//! Where to read: `listen` takes connections, `guard` says who may ask at all, `routes` what there is; `views` and
//! `ask` answer; `journal` reads the journal's lines, `hub` tells them to everybody who listens by `events`; `bell`
//! says when to look; `openapi` describes all of it.

mod args;
mod ask;
mod bell;
mod events;
mod guard;
mod hub;
mod journal;
mod listen;
mod openapi;
mod paced;
mod page;
mod problem;
mod routes;
mod token;
mod views;

pub use args::ServeArgs;
pub use openapi::document;

use super::Session;
use super::client::{self, Pulse, Sidecar};
use super::error::CliError;
use super::output::eprint_quietly;
use crate::config::Home;
use crate::exit;
use crate::spool::Spool;
use bell::Bell;
use hub::Hub;
use serde_json::json;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use token::Token;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// What every answer is made from.
struct App {
    home: Home,
    /// Where we listen: requests that name another host are not meant for us.
    address: SocketAddr,
    token: Token,
    /// How long an answer of the sidecar is waited for.
    patience: Duration,
    bell: Bell,
    hub: Hub,
    /// Places for those who listen to events.
    listeners: Arc<Semaphore>,
    stop: CancellationToken,
}

/// Serves until it is told to end.
///
/// # Errors
/// 2 for an address that is not loopback, 69 where no sidecar ever ran, 75 if the port is taken, 77 if spool or token are
/// open to others.
pub fn command(session: &Session, args: &ServeArgs) -> Result<(), CliError> {
    let address = args.address()?;
    if !session.home.view().is_dir() {
        return Err(client::no_sidecar(&session.home, &Sidecar::None));
    }
    // Opened for its checks alone: spool and state are this user's own, and all their folders are there.
    drop(Spool::open(session.home.root())?);
    let token = Token::open(&session.home)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(8)
        .thread_keep_alive(Duration::from_secs(2))
        .build()
        .map_err(|error| CliError::new(exit::TRY_AGAIN, "no_runtime", format!("Can't begin to serve: {error}.")))?;
    exit::end_on_fault(|| false, |said| eprint_quietly(&format!("tasuki: {said} The sidecar and the agents go on.")));
    let served = runtime.block_on(serve(session, address, token));
    // What still reads a file is not waited for.
    runtime.shutdown_background();
    served
}

async fn serve(session: &Session, address: SocketAddr, token: Token) -> Result<(), CliError> {
    let taken = |error: std::io::Error| {
        CliError::new(exit::TRY_AGAIN, "no_port", format!("Can't listen on {address}: {error}."))
            .hint("Is another `tasuki serve` running? --listen 127.0.0.1:0 takes any free port.")
    };
    let listener = TcpListener::bind(address).await.map_err(taken)?;
    let address = listener.local_addr().map_err(taken)?;
    let stop = CancellationToken::new();
    let app = Arc::new(App {
        home: session.home.clone(),
        address,
        token,
        patience: session.timeout.unwrap_or(super::ANSWER_SOON),
        bell: Bell::arm(&session.home),
        hub: Hub::new(),
        listeners: Arc::new(Semaphore::new(events::MOST_LISTENERS)),
        stop: stop.clone(),
    });
    stop_on_signals(&stop)?;
    tokio::spawn(hub::run(Arc::clone(&app)));
    // Beside the serving: a terminal that stands still or a pipe that nobody reads must hold up neither it nor its end.
    let mut announced = tokio::task::spawn_blocking(announcement(session, &app));
    let mut serving = std::pin::pin!(listen::serve(listener, routes::router(app), stop));
    tokio::select! {
        () = &mut serving => return Ok(()),
        said = &mut announced => said.unwrap_or(Ok(()))?,
    }
    serving.await;
    Ok(())
}

/// Says where it listens. The token itself is shown on a terminal alone: elsewhere it would stand in a log.
fn announcement(session: &Session, app: &App) -> impl FnOnce() -> Result<(), CliError> + Send + 'static {
    let (url, out, file) =
        (format!("http://{}/", app.address), session.out.clone(), app.token.path().display().to_string());
    let (beats, token) = (Pulse::new(&session.home).beats(), app.token.text().to_owned());
    move || {
        if out.is_json() {
            return out.record(&json!({"url": url, "token_file": file, "pid": std::process::id()}));
        }
        if !beats {
            out.note("No sidecar answers: what is shown is what was last known, and requests are refused.");
        }
        out.note(&format!("The token is in {file}; whoever has it can do all that you can do with tasuki."));
        match std::io::stdout().is_terminal() {
            true => out.line(&format!("{url}#token={token}")),
            false => out.line(&url),
        }
    }
}

/// Ctrl-C, the end of its terminal and a service manager end it in good order.
fn stop_on_signals(stop: &CancellationToken) -> Result<(), CliError> {
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        let mut received = signal(kind).map_err(|error| {
            CliError::new(exit::TRY_AGAIN, "no_signals", format!("Signals can't be listened for: {error}."))
        })?;
        let stop = stop.clone();
        tokio::spawn(async move {
            received.recv().await;
            stop.cancel();
        });
    }
    Ok(())
}
