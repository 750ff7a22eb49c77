//! The start: opens everything in an order in which each failure is reported and nothing is half done.

use super::answers::Answers;
use super::checkpoint::Checkpoints;
use super::concerns::Concerns;
use super::failed::{StartFailure, fails};
use super::ground;
use super::health::StoreHealth;
use super::history::History;
use super::intake::Intake;
use super::learned::Learned;
use super::liveness::Liveness;
use super::parts::{Leftovers, Sidecar};
use super::projection::Projection;
use super::settings::{settings, tools};
use super::status_line::StatusLine;
use super::tidy::Tidy;
use super::timers::Timers;
use super::wait::{Sources, THREADS_WITHIN};
use super::watches::{Watches, grown_documents};
use crate::clock::Clock;
use crate::clock::alarm::Alarm;
use crate::config::{Config, Home};
use crate::core::settings::Settings;
use crate::core::state::State;
use crate::core::text::sanitise;
use crate::core::time::Now;
use crate::exit;
use crate::files::{self, Grade};
use crate::runner::Runner;
use crate::service::SERVICE_VARIABLE;
use crate::service::watchdog::{StartReporter, Watchdog};
use crate::spool::{ErrorKind, Journal, Spool, SpoolWatch, overflow};
use crate::store::{Loaded, Store};
use crate::tmux::{self, Socket, Tmux};
use anyhow::Context;
use serde_json::json;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// How long a service whose start has failed for a reason that may pass waits before it ends.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(15);

/// What the sidecar is started with.
#[derive(Debug, Clone)]
pub struct SidecarOptions {
    pub home: Home,
    /// The tmux server that `--tmux` names. It takes precedence over environment and configuration.
    pub tmux: Option<String>,
    pub json: bool,
}

/// Runs the sidecar until it is told to end. Returns the exit code.
#[must_use]
pub fn run(options: &SidecarOptions) -> u8 {
    if let Err(error) = super::log::start(options.json) {
        // Without that thread nothing can be logged, and even this line may find no reader.
        let _ = writeln!(std::io::stderr(), "tasuki: could not start the thread that writes the log: {error}");
        return exit::TRY_AGAIN;
    }
    end_on_fault();
    let code = run_to_the_end(options);
    super::log::finish();
    let managers = ["NOTIFY_SOCKET", SERVICE_VARIABLE];
    if code == exit::TRY_AGAIN && managers.iter().any(|variable| std::env::var_os(variable).is_some()) {
        // The service manager starts it again. After five failures within a minute systemd would give up, and a disk
        // may be full for longer than that.
        std::thread::sleep(PAUSE_AFTER_FAILURE);
    }
    code
}

fn run_to_the_end(options: &SidecarOptions) -> u8 {
    crate::limits::raise();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        // A thread that was needed once does not stay for long beside an idle sidecar.
        .thread_keep_alive(std::time::Duration::from_secs(1))
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return complain(options.json, &StartFailure { code: exit::TRY_AGAIN, error: error.into() }),
    };
    let code = runtime.block_on(async {
        outlive_file_limits();
        match open(options).await {
            Ok((sidecar, sources)) => {
                sidecar.run(sources).await;
                exit::DONE
            }
            Err(failed) => complain(options.json, &failed),
        }
    });
    runtime.shutdown_timeout(THREADS_WITHIN);
    code
}

/// A panic ends the whole program. Otherwise the sidecar would seem to run while a part of it is missing: no signal
/// would end it, or no request would be answered. An effect's panic becomes that effect's outcome instead.
fn end_on_fault() {
    exit::end_on_fault(crate::runner::catches_panics, |said| {
        super::log::say(&format!("tasuki: {said} Nothing is lost, and the next start continues."));
        super::log::finish();
    });
}

/// Says why there is no sidecar, with `json` in the form of every command's error.
fn complain(json: bool, failed: &StartFailure) -> u8 {
    let message = sanitise(&failed.in_full());
    let code = match failed.code {
        exit::NOT_ALLOWED => "not_allowed",
        exit::CONFIG => "config",
        _ => "not_started",
    };
    super::log::say(&match json {
        true => json!({"error": {"code": code, "message": message, "hint": null}}).to_string(),
        false => format!("tasuki: {message}"),
    });
    failed.code
}

/// The exit code for a file that can't be used.
fn code_for(is_about_rights: bool) -> u8 {
    if is_about_rights { exit::NOT_ALLOWED } else { exit::CONFIG }
}

pub(super) async fn open(options: &SidecarOptions) -> Result<(Sidecar, Sources), StartFailure> {
    let home = options.home.clone();
    let config = Config::load(&home.config()).or_else(|error| fails(code_for(error.is_about_rights()), Err(error)))?;
    ground::check_name(&home)?;
    let (profiles, prompts) = (ground::load_profiles(&home)?, ground::load_prompts(&home)?);
    let program = fails(exit::CONFIG, files::own_program().context("could not find the path of the tasuki program"))?;
    ground::make_home(&home)?;
    let spool = Spool::open(home.root()).map_err(spool_failed)?;
    // Before the state file is opened: it would not be closed cleanly, and the next start would check the whole of it.
    let (learned, rules) =
        Learned::begin(&home).or_else(|error| fails(code_for(error.is_about_rights()), Err(error)))?;
    // A large file that was not closed properly takes a while, and so do the views of a long history if all are gone.
    let _said = StartReporter::begin();
    let store = Store::open(&home.state()).map_err(store_failed)?;
    let (folders, (clock, now)) = (SpoolWatch::new(&spool), first_clock());
    let loaded = store.load().map_err(store_failed)?;
    let (notice_sender, notices) = mpsc::channel(64);
    let tmux = start_tmux(options, &config, &store, notice_sender)?;
    let settings = settings(&home, &config, &profiles, (prompts, rules), &program);
    let concerns = Concerns::begin(&config, named_elsewhere(options).is_none());
    let status_line = StatusLine::new(tmux.clone(), config.tmux_status);
    let tools = tools(&home, config, profiles, (tmux, program, Arc::default()));
    let (runner, ended) = Runner::new(Arc::clone(&tools));
    let (journal, _) = Journal::open(&spool, loaded.state.next_seq).map_err(spool_failed)?;
    let (watches, exits, listings) = Watches::new(folders);
    let sources = Sources {
        hints: watches.folders.hints(),
        ended,
        notices,
        exits,
        listings,
        signals: fails(exit::TRY_AGAIN, super::signals::listen())?,
        alarm: Alarm::new(),
    };
    let mut sidecar = Sidecar {
        left: left(&loaded, &now),
        answers: Answers::new(&now),
        checkpoints: Checkpoints::default(),
        concerns,
        status_line,
        health: StoreHealth::default(),
        liveness: Liveness::new(&now),
        history: History::default(),
        intake: Intake::new(first_free_number(&home)),
        learned,
        projection: Projection::new(journal),
        tidy: Tidy::new(),
        timers: Timers::new(&now),
        watches,
        home,
        clock,
        store,
        spool,
        state: State::default(),
        runner,
        tools,
        watchdog: Watchdog::from_env(),
        events: Vec::new(),
    };
    sidecar.begin(&now, loaded, settings)?;
    Ok((sidecar, sources))
}

fn first_clock() -> (Clock, Now) {
    let clock = Clock::new();
    let now = clock.now();
    (clock, now)
}

fn left(loaded: &Loaded, now: &Now) -> Leftovers {
    Leftovers {
        has_work: !loaded.state.outbox.is_empty() || loaded.state.next_deadline_ms(now).is_some(),
        effects: loaded.state.outbox.keys().copied().collect(),
    }
}

fn start_tmux(
    options: &SidecarOptions,
    config: &Config,
    store: &Store,
    notices: mpsc::Sender<tmux::TmuxNotice>,
) -> Result<Tmux, StartFailure> {
    let socket = socket(options, config);
    warn_of_another_server(&socket);
    keep_socket(&options.home, &socket);
    let options = tmux::SocketOptions {
        socket,
        home_tag: store.home_tag().map_err(store_failed)?,
        program: PathBuf::from("tmux"),
        start_server: config.tmux_start,
    };
    fails(exit::CONFIG, Tmux::start(options, notices))
}

fn spool_failed(error: crate::spool::Error) -> StartFailure {
    let code = match error.kind() {
        ErrorKind::NotAllowed => exit::NOT_ALLOWED,
        ErrorKind::Full | ErrorKind::Io => exit::TRY_AGAIN,
        ErrorKind::Layout | ErrorKind::NoSpool | ErrorKind::Taken => exit::CONFIG,
    };
    StartFailure { code, error: error.into() }
}

fn store_failed(error: crate::store::Error) -> StartFailure {
    use crate::store::Error;
    let code = match &error {
        Error::NotAllowed { .. } => exit::NOT_ALLOWED,
        Error::Locked { .. } | Error::Io { .. } | Error::Gone { .. } | Error::OtherHome { .. } => exit::TRY_AGAIN,
        Error::Unreadable { .. } | Error::Row { .. } | Error::NewerSchema { .. } => exit::CONFIG,
    };
    StartFailure { code, error: error.into() }
}

/// Warns if the sidecar is started in a pane of another server and no server is named: most likely it should use the
/// pane's.
fn warn_of_another_server(socket: &Socket) {
    let Some(around) = tmux::examine::socket_around() else { return };
    let default = tmux::examine::socket_path(socket, std::env::var_os("TMUX_TMPDIR"));
    let is_same = files::lead_to_same(&default, &around);
    if matches!(socket, Socket::Default) && !is_same {
        let (socket, pane_socket) = (default.display().to_string(), sanitise(&around.to_string_lossy()));
        tracing::warn!(
            socket,
            pane_socket,
            "this pane belongs to a different tmux server (pane_socket) than the one that tasuki uses (socket): to use the \
             pane's server, name it with --tmux"
        );
    }
}

fn say_what_was_removed(home: &Home) {
    if overflow::take_mark(home.root()) {
        tracing::warn!(
            "while no sidecar ran, more than {} events waited in spool/events, and hooks removed the oldest",
            overflow::MOST_WAITING
        );
    }
}

/// Writes down which server this sidecar uses. Only hints depend on the file, so a failure is only logged.
fn keep_socket(home: &Home, socket: &Socket) {
    let path = home.last_socket();
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
    let socket = tmux::examine::socket_path(socket, std::env::var_os("TMUX_TMPDIR"));
    let mut line = socket.into_os_string().into_vec();
    line.push(b'\n');
    let temp = OsStr::new(".tmux-socket.new");
    let written = files::open_dir(folder).and_then(|dir| files::replace_at(dir, temp, name, &line, Grade::Fast));
    if let Err(error) = written {
        tracing::warn!(path = %path.display(), %error, "could not write down which tmux server this sidecar uses");
    }
}

/// What is named outside the configuration, else what the configuration names, else the user's default server.
fn socket(options: &SidecarOptions, config: &Config) -> Socket {
    let named = named_elsewhere(options).or_else(|| config.tmux_socket.clone());
    named.map_or(Socket::Default, Socket::named)
}

/// `--tmux`, else `TASUKI_TMUX`.
fn named_elsewhere(options: &SidecarOptions) -> Option<String> {
    options.tmux.clone().or_else(|| std::env::var("TASUKI_TMUX").ok().filter(|name| !name.is_empty()))
}

/// One more than the highest number of a rejected file; 1 if there is none.
fn first_free_number(home: &Home) -> u64 {
    let Ok(entries) = std::fs::read_dir(home.spool().join("rejected")) else { return 1 };
    let number = |name: &str| name.split('-').next().and_then(|digits| digits.parse::<u64>().ok());
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str().and_then(number));
    numbers.max().map_or(1, |most| most + 1)
}

/// A limit on the size of files (`ulimit -f`) is treated like a full disk: with a handler for its signal the write
/// returns an error, and the process does not die.
fn outlive_file_limits() {
    match signal(SignalKind::from_raw(nix::libc::SIGXFSZ)) {
        Ok(mut received) => drop(tokio::spawn(async move { while received.recv().await.is_some() {} })),
        Err(error) => {
            tracing::warn!(%error, "could not handle SIGXFSZ: a limit on the size of files would end the sidecar")
        }
    }
}

impl Sidecar {
    /// Takes over what the last run left: brings what others read up to date, and converts deadlines to this boot's
    /// clock.
    fn begin(&mut self, now: &Now, mut loaded: Loaded, settings: Settings) -> Result<(), StartFailure> {
        self.state = std::mem::take(&mut loaded.state);
        self.state.settings = settings;
        self.state.rebase(now);
        self.reproject_all(loaded, now).map_err(store_failed)?;
        self.store.put_live(&self.state).map_err(store_failed)?;
        self.events.extend(grown_documents(&self.home, &self.state));
        self.learn_roles();
        self.heartbeat(now);
        self.watchdog.ready();
        say_what_was_removed(&self.home);
        tracing::info!(home = %self.home.root().display(), pid = std::process::id(), "tasuki runs");
        Ok(())
    }
}
