//! The one thread that keeps the connection: it finds the server, connects with care, serves, and reconnects.
//!
//! A careless control client can crash a user's server (`server_lock` says how). So there is one client at a time, and
//! none is started within [`CLIENT_GAP`] of another's end or of our own start. Clients of an earlier process are ended
//! first, by SIGTERM.

use super::client::{CommandReplies, Connection, ConnectionEnd, ConnectionWaker, Lost, PATIENCE, QueuedLine};
use super::guard::Names;
use super::notice_queue::NoticeQueue;
use super::owner;
use super::probe::{self, ProbeResult, SocketState};
use super::pty::PtyClient;
use super::server_lock::{self, ServerLock};
use super::socket::check_length;
use super::stale::{InUse, Others};
use super::version::Version;
use super::{Error, ServerInfo, SocketOptions, TmuxNotice, private, server};
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// The shortest pause between one client's end, or our start, and the start of the next client.
const CLIENT_GAP: Duration = Duration::from_millis(250);
/// Longest pause between two looks for a server by running tmux.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Longest pause between two looks at the socket file, which cost next to nothing.
const MAX_STAT_PAUSE: Duration = Duration::from_secs(1);
/// How often, even if tmux reports nothing, we ask the sidecar to look at the panes, and check whether only private
/// sessions are left. The sidecar looks more often while it is awake anyway; this long pause lets an idle machine
/// sleep.
const RECONCILE: Duration = Duration::from_secs(10 * 60);
/// How long we stay connected to a server that holds nothing but private sessions.
const LINGER: Duration = Duration::from_secs(3);
/// If a connection ends sooner than this, the next attempt waits longer, because something keeps ending our
/// connections.
const STEADY: Duration = Duration::from_secs(10);
/// Requests that may wait for their turn.
const INBOX: usize = 256;

#[derive(Debug, Clone)]
pub(super) enum ConnectionStatus {
    Looking,
    Live(Arc<LiveClient>),
    /// Not connected.
    Down {
        reason: String,
        /// True if no usable server runs, so that waiting is of no use.
        certain: bool,
        /// Whether the operator has to know the reason: waiting does not help, or a server runs and does not answer.
        is_problem: bool,
    },
    Closed,
}

/// A connection as its users see it.
#[derive(Debug)]
pub(super) struct LiveClient {
    pub(super) info: ServerInfo,
    /// The value that identifies this connection. Each line that changes something names it.
    pub(super) fence: String,
    inbox: SyncSender<QueuedLine>,
    wake: UnixStream,
    fenced_out: AtomicBool,
}

impl LiveClient {
    /// Called when another process of this home has taken the fence, so that this connection can't change anything any
    /// more. The thread replaces the connection and takes the fence back, unless the other process ends our client
    /// first.
    pub(super) fn give_up(&self) {
        self.fenced_out.store(true, Ordering::Release);
        wake(&self.wake);
    }

    /// Sends a line and waits for all its answers.
    pub(super) async fn ask(&self, line: String) -> Result<CommandReplies, Lost> {
        let (reply, answer) = oneshot::channel();
        let request = QueuedLine { line, reply, due: Instant::now() + PATIENCE };
        if self.inbox.try_send(request).is_err() {
            return Err(Lost { sent: false });
        }
        wake(&self.wake);
        // A sender that is dropped unanswered was still in the inbox when the connection ended.
        answer.await.unwrap_or(Err(Lost { sent: false }))
    }
}

fn wake(mut pipe: &UnixStream) {
    // A full pipe wakes just as well.
    let _ = pipe.write(&[1]);
}

/// What the handle and the thread share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) names: Names,
    pub(super) status: watch::Sender<ConnectionStatus>,
    stop: AtomicBool,
    /// Another thread of this home holds the lock between homes, to end the connection.
    pub(super) leaves: AtomicBool,
    wake: UnixStream,
}

impl Shared {
    /// Ends the thread, which closes the client's terminal.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        wake(&self.wake);
    }
}

pub(super) fn start(options: SocketOptions, notices: mpsc::Sender<TmuxNotice>) -> Result<Arc<Shared>, Error> {
    let socket = probe::socket_path(&options.socket);
    check_length(&socket)?;
    let (pipe, waker) = UnixStream::pair().map_err(Error::Thread)?;
    pipe.set_nonblocking(true).map_err(Error::Thread)?;
    waker.set_nonblocking(true).map_err(Error::Thread)?;
    let shared = Arc::new(Shared {
        names: Names::new(&options.home_tag),
        status: watch::Sender::new(ConnectionStatus::Looking),
        stop: AtomicBool::new(false),
        leaves: AtomicBool::new(false),
        wake: waker,
    });
    let notices = NoticeQueue::new(notices);
    let now = Instant::now();
    let (last_end, dead, others) = (now, None, Others::default());
    let mut supervisor =
        Supervisor { shared: Arc::clone(&shared), options, socket, pipe, notices, last_end, dead, others };
    let thread = thread::Builder::new().name("tmux".to_owned());
    thread.spawn(move || supervisor.run()).map_err(Error::Thread)?;
    Ok(shared)
}

struct Supervisor {
    shared: Arc<Shared>,
    options: SocketOptions,
    socket: PathBuf,
    pipe: UnixStream,
    notices: NoticeQueue,
    last_end: Instant,
    dead: Option<SocketState>,
    others: Others,
}

struct NotNow {
    reason: String,
    certain: bool,
    is_problem: bool,
    longest_pause: Duration,
}

impl Supervisor {
    fn run(&mut self) {
        let mut pause = CLIENT_GAP;
        while !self.stopped() {
            match self.attempt() {
                Ok((connection, live, inbox)) => {
                    let began = Instant::now();
                    let reason = self.serve(connection, &live, &inbox);
                    self.last_end = Instant::now();
                    pause = if began.elapsed() > STEADY { CLIENT_GAP } else { (pause * 2).min(MAX_PAUSE) };
                    tracing::info!(%reason, "disconnected from tmux");
                    self.notices.put(TmuxNotice::Disconnected { reason });
                    self.rest(pause / 2);
                }
                Err(not_now) => {
                    self.report(&not_now);
                    self.rest(pause.min(not_now.longest_pause));
                    pause = (pause * 2).min(MAX_PAUSE);
                }
            }
        }
        self.shared.status.send_replace(ConnectionStatus::Closed);
    }

    fn stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Acquire)
    }

    fn report(&mut self, not_now: &NotNow) {
        let NotNow { reason, certain, is_problem, .. } = not_now;
        let (reason, certain, is_problem) = (reason.clone(), *certain, *is_problem);
        let status = ConnectionStatus::Down { reason: reason.clone(), certain, is_problem };
        if matches!(self.shared.status.send_replace(status), ConnectionStatus::Looking) {
            self.notices.put(TmuxNotice::Disconnected { reason });
        }
    }

    /// Pauses for the whole time, or until the thread is to end. Notices go out meanwhile.
    fn rest(&mut self, pause: Duration) {
        let (began, shared) = (Instant::now(), Arc::clone(&self.shared));
        loop {
            self.notices.flush();
            let left = pause.saturating_sub(began.elapsed());
            if left.is_zero() || shared.stop.load(Ordering::Acquire) {
                return;
            }
            let slice = if self.notices.is_empty() { left } else { left.min(Duration::from_millis(50)) };
            ConnectionWaker { pipe: &self.pipe, inbox: None, stop: &shared.stop }.sleep(slice);
        }
    }

    fn attempt(&mut self) -> Result<(Connection, Arc<LiveClient>, Receiver<QueuedLine>), NotNow> {
        self.find_server()?;
        self.rest((self.last_end + CLIENT_GAP).saturating_duration_since(Instant::now()));
        if self.stopped() {
            return Err(unclear("closed".to_owned()));
        }
        // During the pause, somebody may have put another socket there.
        owner::check_place(&self.socket).map_err(|foreign| refused(&foreign))?;
        let lock = ServerLock::exclusive(&self.socket, server_lock::PATIENCE);
        let names = self.shared.names.clone();
        let command = server::control_client(&self.options.program, &self.socket, &names);
        let client = PtyClient::start(command).map_err(|error| unclear(format!("could not run tmux: {error}")))?;
        let mut connection = Connection::new(client);
        let waker = ConnectionWaker { pipe: &self.pipe, inbox: None, stop: &self.shared.stop };
        let prepared = server::await_session(&mut connection, &waker, &names).and_then(|()| {
            // The server treats our client as a control client now: others may change what they like.
            lock.share(server_lock::LEAVES_WITHIN).then_some(()).ok_or(ConnectionEnd::Crossed)?;
            server::prepare(&mut connection, &waker, &names)
        });
        match prepared {
            Ok((info, fence)) => {
                let (inbox, requests) = sync_channel(INBOX);
                let wake = self.shared.wake.try_clone().map_err(|error| unclear(error.to_string()))?;
                Ok((
                    connection,
                    Arc::new(LiveClient { info, fence, inbox, wake, fenced_out: AtomicBool::new(false) }),
                    requests,
                ))
            }
            Err(ended) => {
                lock.unshare(server_lock::LEAVES_WITHIN);
                drop(connection);
                self.last_end = Instant::now();
                Err(unclear(ended.to_string()))
            }
        }
    }

    /// Makes sure that a usable server runs and that no client of an earlier process is attached to it.
    fn find_server(&mut self) -> Result<(), NotNow> {
        let state = probe::socket_state(&self.socket);
        if state.is_none() || state == self.dead {
            return self.no_server(format!("no server running on {}", self.socket.display()));
        }
        let session = self.shared.names.session();
        match probe::probe(&self.options.program, &self.socket, &session) {
            ProbeResult::NoServer { reason } => {
                self.dead = state;
                self.no_server(reason)
            }
            ProbeResult::Unclear { reason } => Err(NotNow { is_problem: reason == probe::SILENT, ..unclear(reason) }),
            ProbeResult::NotRun { reason } => Err(NotNow { is_problem: true, ..unclear(reason) }),
            ProbeResult::Foreign(foreign) => Err(refused(&foreign)),
            ProbeResult::Server { version, .. } if version < Version::MINIMUM => {
                Err(unusable(format!("tmux {version} is too old: {} or newer is needed", Version::MINIMUM)))
            }
            ProbeResult::ManualSize => Err(unusable(probe::MANUAL_SIZE.to_owned())),
            ProbeResult::Redefined { command } => Err(unusable(format!(
                "the tmux option command-alias redefines {command}, which tasuki needs unchanged"
            ))),
            ProbeResult::Server { clients, .. } => {
                let _lock = (!clients.is_empty()).then(|| ServerLock::exclusive(&self.socket, server_lock::PATIENCE));
                if self.others.clear(&clients, &session).map_err(|in_use| taken(&in_use, &self.socket))? {
                    self.last_end = Instant::now();
                }
                Ok(())
            }
        }
    }

    fn no_server(&self, reason: String) -> Result<(), NotNow> {
        if !self.options.start_server {
            return Err(NotNow { reason, certain: true, is_problem: false, longest_pause: MAX_STAT_PAUSE });
        }
        server::start(&self.options.program, &self.socket, &self.shared.names).map_err(unusable)
    }

    fn serve(&mut self, mut connection: Connection, live: &Arc<LiveClient>, inbox: &Receiver<QueuedLine>) -> String {
        tracing::info!(server_pid = live.info.id.pid, version = %live.info.version, "connected to tmux");
        // The status comes before the notice, so that a caller who gets the notice can use the connection.
        self.shared.status.send_replace(ConnectionStatus::Live(Arc::clone(live)));
        self.notices.put(TmuxNotice::Connected(live.info.clone()));
        self.notices.put(TmuxNotice::PanesChanged);
        let ended = loop {
            if let Err(ended) = self.serve_once(&mut connection, live, inbox) {
                break ended;
            }
        };
        // A caller whose line was lost must not find the dead connection again.
        self.shared.status.send_replace(ConnectionStatus::Looking);
        connection.give_up();
        let _lock = ServerLock::unless(&self.socket, server_lock::LEAVES_WITHIN, || self.stopped());
        drop(connection);
        ended.to_string()
    }

    /// Serves the connection for [`RECONCILE`], then removes old creation marks.
    fn serve_once(
        &mut self,
        connection: &mut Connection,
        live: &LiveClient,
        inbox: &Receiver<QueuedLine>,
    ) -> Result<(), ConnectionEnd> {
        let began = Instant::now();
        let mut leave = Some(began + LINGER);
        // Whether a program may have come into our session.
        let mut came = false;
        let (shared, socket) = (Arc::clone(&self.shared), self.socket.clone());
        let lock = || {
            let leaves = || shared.leaves.load(Ordering::Acquire);
            ServerLock::shared_unless(&socket, private::LOCK_PATIENCE, leaves)
        };
        while began.elapsed() < RECONCILE {
            let waker = ConnectionWaker { pipe: &self.pipe, inbox: Some(inbox), stop: &shared.stop };
            while let Some((name, args)) = connection.next_notice() {
                private::react(connection, &waker, &shared.names, (&name, &args), lock)?;
                if name == "sessions-changed" {
                    leave = Some(Instant::now() + LINGER);
                }
                came |= changes_panes(&name) || name == "layout-change";
                if changes_panes(&name) {
                    self.notices.put(TmuxNotice::PanesChanged);
                }
            }
            if std::mem::take(&mut came) {
                // Takes no requests meanwhile: one of them might end our session, and would be sent right behind the
                // moves.
                let alone = ConnectionWaker { inbox: None, ..waker };
                private::move_programs_out(connection, &alone, &shared.names, lock)?;
            }
            if !self.options.start_server && leave.is_some_and(|at| at <= Instant::now()) {
                leave = None;
                connection.ask(&private::leave_if_alone(&shared.names), &waker)?;
            }
            self.notices.flush();
            let mut wait = RECONCILE.saturating_sub(began.elapsed());
            if !self.notices.is_empty() {
                wait = wait.min(Duration::from_millis(50));
            }
            if let Some(at) = leave {
                wait = wait.min(at.saturating_duration_since(Instant::now()));
            }
            if connection.has_notice() {
                wait = Duration::ZERO;
            }
            connection.serve_once(&waker, wait)?;
            if live.fenced_out.load(Ordering::Acquire) {
                return Err(ConnectionEnd::FencedOut);
            }
        }
        self.notices.put(TmuxNotice::PanesChanged);
        let waker = ConnectionWaker { pipe: &self.pipe, inbox: Some(inbox), stop: &shared.stop };
        server::sweep_creations(connection, &waker, &shared.names)
    }
}

fn refused(foreign: &owner::Foreign) -> NotNow {
    unusable(format!("{foreign}; {}", foreign.fix))
}

fn taken(in_use: &InUse, socket: &Path) -> NotNow {
    let certain = matches!(in_use, InUse::BySidecar(_));
    NotNow { reason: in_use.reason(socket), certain, is_problem: in_use.is_problem(), longest_pause: MAX_PAUSE }
}

/// For a server that can't be used until somebody changes something there.
fn unusable(reason: String) -> NotNow {
    NotNow { reason, certain: true, is_problem: true, longest_pause: MAX_PAUSE }
}

fn unclear(reason: String) -> NotNow {
    NotNow { reason, certain: false, is_problem: false, longest_pause: MAX_PAUSE }
}

fn changes_panes(notice: &str) -> bool {
    matches!(
        notice,
        "subscription-changed"
            | "sessions-changed"
            | "window-add"
            | "window-close"
            | "unlinked-window-add"
            | "unlinked-window-close"
            | "window-pane-changed"
    )
}
