//! One connection: lines go out, replies come back to the caller.
//!
//! A request is one line, followed by a second line that prints a random number. All answers to our lines before that
//! number belong to the request, however many there are, so hooks, aliases, parse errors and braces can't give a reply
//! to the wrong request. At most [`MAX_REQUESTS`] requests, with [`MAX_BYTES`] bytes, are in flight. If a request is
//! not answered in time, the whole connection is suspect and is closed. Whether a change in flight was made is then
//! found out by reading marks; it is never sent again.

use super::protocol::{Block, ProtocolEvent, ProtocolParser};
use super::pty::PtyClient;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The most requests that tmux has not answered yet.
const MAX_REQUESTS: usize = 32;
/// The most bytes of such requests; a single request may be bigger.
const MAX_BYTES: usize = 64 * 1024;
/// The most answers to one request that are kept.
const MAX_BLOCKS: usize = 4096;
/// The most notifications that may wait; further ones are dropped.
const MAX_NOTICES: usize = 1024;
/// How long tmux may take to answer a line.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

pub(super) type CommandReplies = Vec<Block>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost {
    /// Whether tmux may have got the line.
    pub(super) sent: bool,
}

#[derive(Debug)]
pub(super) struct QueuedLine {
    /// Without its line end; never empty (an empty line detaches).
    pub(super) line: String,
    /// Gets the reply; the caller may no longer wait for it.
    pub(super) reply: oneshot::Sender<Result<CommandReplies, Lost>>,
    pub(super) due: Instant,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionEnd {
    #[error("the tmux client has ended{}", if .0.is_empty() { String::new() } else { format!(": {}", .0) })]
    Gone(String),
    #[error("tmux did not answer within {} s", PATIENCE.as_secs())]
    Silent,
    #[error(transparent)]
    Desync(#[from] super::protocol::Desync),
    #[error("the control client's terminal failed: {0}")]
    Io(#[from] io::Error),
    #[error("another process of this tasuki home has taken over the tmux server")]
    FencedOut,
    /// The lock between homes was lost before the server was made ready.
    #[error("another tasuki home has connected to the tmux server at the same moment")]
    Crossed,
    /// The last handle was dropped, or the adapter was closed.
    #[error("closed")]
    Closed,
}

#[derive(Debug)]
struct InFlight {
    nonce: String,
    size: usize,
    blocks: Vec<Block>,
    due: Instant,
    reply: oneshot::Sender<Result<CommandReplies, Lost>>,
}

#[derive(Debug)]
pub(super) struct Connection {
    client: PtyClient,
    parser: ProtocolParser,
    outgoing: Vec<u8>,
    written: usize,
    queue: VecDeque<QueuedLine>,
    in_flight: VecDeque<InFlight>,
    notices: VecDeque<(String, String)>,
    last_words: String,
    /// The id of our session, such as `$3`; empty until our client is in it.
    session: String,
}

impl Connection {
    /// Takes over a client that was just started.
    pub(super) fn new(client: PtyClient) -> Connection {
        Connection {
            client,
            parser: ProtocolParser::default(),
            outgoing: Vec::new(),
            written: 0,
            queue: VecDeque::new(),
            in_flight: VecDeque::new(),
            notices: VecDeque::new(),
            last_words: String::new(),
            session: String::new(),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.client.pid()
    }

    pub(super) fn enter(&mut self, session: &str) {
        session.clone_into(&mut self.session);
    }

    pub(super) fn session(&self) -> &str {
        &self.session
    }

    /// Whether notices wait. They may have come in while somebody waited for an answer.
    pub(super) fn has_notice(&self) -> bool {
        !self.notices.is_empty()
    }

    pub(super) fn next_notice(&mut self) -> Option<(String, String)> {
        self.notices.pop_front()
    }

    /// Sends a line from the connection's own thread, and serves all other callers meanwhile.
    pub(super) fn ask(&mut self, line: &str, wake: &ConnectionWaker<'_>) -> Result<CommandReplies, ConnectionEnd> {
        let (reply, mut answer) = oneshot::channel();
        self.queue.push_back(QueuedLine { line: line.to_owned(), reply, due: Instant::now() + PATIENCE });
        loop {
            self.serve_once(wake, PATIENCE)?;
            match answer.try_recv() {
                Ok(Ok(blocks)) => return Ok(blocks),
                Ok(Err(_)) | Err(oneshot::error::TryRecvError::Closed) => return Err(ConnectionEnd::Silent),
                Err(oneshot::error::TryRecvError::Empty) => {}
            }
        }
    }

    /// Serves the connection once: takes requests, writes, waits for at most `wait`, reads, answers.
    pub(super) fn serve_once(&mut self, wake: &ConnectionWaker<'_>, wait: Duration) -> Result<(), ConnectionEnd> {
        self.take_requests(wake);
        self.check_deadlines(Instant::now())?;
        self.fill();
        self.flush()?;
        self.wait(wake, wait)?;
        self.drain()?;
        if wake.stop.load(Ordering::Acquire) { Err(ConnectionEnd::Closed) } else { Ok(()) }
    }

    fn take_requests(&mut self, wake: &ConnectionWaker<'_>) {
        let Some(inbox) = wake.inbox else { return };
        while self.queue.len() < MAX_REQUESTS {
            let Ok(request) = inbox.try_recv() else { break };
            self.queue.push_back(request);
        }
    }

    fn check_deadlines(&mut self, now: Instant) -> Result<(), ConnectionEnd> {
        if self.in_flight.front().is_some_and(|first| first.due <= now) {
            return Err(ConnectionEnd::Silent);
        }
        // A line that was not sent has changed nothing, so the connection stays. Only the caller must be told.
        let (late, rest) = self.queue.drain(..).partition::<VecDeque<_>, _>(|request| request.due <= now);
        self.queue = rest;
        for request in late {
            let _ = request.reply.send(Err(Lost { sent: false }));
        }
        Ok(())
    }

    fn fill(&mut self) {
        let mut bytes: usize = self.in_flight.iter().map(|request| request.size).sum();
        while let Some(next) = self.queue.front() {
            let size = next.line.len();
            let full = self.in_flight.len() >= MAX_REQUESTS || bytes + size > MAX_BYTES;
            if full && !self.in_flight.is_empty() {
                break;
            }
            let Some(request) = self.queue.pop_front() else { break };
            let nonce = nonce();
            debug_assert!(!request.line.is_empty() && !request.line.contains('\n'), "an empty line detaches");
            self.outgoing.extend_from_slice(request.line.as_bytes());
            self.outgoing.extend_from_slice(format!("\ndisplay-message -p {nonce}\n").as_bytes());
            // A line that waited here has its full time from the moment that tmux can see it.
            let due = Instant::now() + PATIENCE;
            self.in_flight.push_back(InFlight { nonce, size, blocks: Vec::new(), due, reply: request.reply });
            bytes += size;
        }
    }

    fn flush(&mut self) -> Result<(), ConnectionEnd> {
        while self.written < self.outgoing.len() {
            match self.client.write(&self.outgoing[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The end is reported by the reading side, with the server's last words.
                Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        self.outgoing.clear();
        self.written = 0;
        Ok(())
    }

    fn wait(&self, wake: &ConnectionWaker<'_>, wait: Duration) -> Result<(), ConnectionEnd> {
        let now = Instant::now();
        let dues = self.in_flight.iter().map(|sent| sent.due).chain(self.queue.iter().map(|request| request.due));
        let wait = dues.min().map_or(wait, |due| wait.min(due.saturating_duration_since(now)));
        let Some(fd) = self.client.fd() else { return Err(ConnectionEnd::Closed) };
        let mut interest = PollFlags::POLLIN;
        if self.written < self.outgoing.len() {
            interest |= PollFlags::POLLOUT;
        }
        let mut fds = [PollFd::new(fd, interest), PollFd::new(wake.pipe.as_fd(), PollFlags::POLLIN)];
        wait_for(&mut fds, wait)?;
        wake.clear();
        Ok(())
    }

    fn drain(&mut self) -> Result<(), ConnectionEnd> {
        let mut buffer = [0; 16 * 1024];
        let mut events = Vec::new();
        loop {
            match self.client.read(&mut buffer) {
                Ok(0) => {
                    self.handle(events);
                    return Err(ConnectionEnd::Gone(std::mem::take(&mut self.last_words)));
                }
                Ok(count) => {
                    self.parser.push(&buffer[..count], &mut events)?;
                    self.handle(std::mem::take(&mut events));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn handle(&mut self, events: Vec<ProtocolEvent>) {
        for event in events {
            match event {
                ProtocolEvent::Block(block) if block.ours => self.answer(block),
                ProtocolEvent::Block(_) => {}
                ProtocolEvent::Notice { name, args } => {
                    if self.notices.len() < MAX_NOTICES {
                        self.notices.push_back((name, args));
                    }
                }
                ProtocolEvent::Stray(line) => {
                    tracing::debug!("tmux sent a line that belongs to no answer");
                    self.last_words = line.chars().take(200).collect();
                }
                ProtocolEvent::Exit { reason } => self.last_words = reason.chars().take(200).collect(),
            }
        }
    }

    fn answer(&mut self, block: Block) {
        let Some(first) = self.in_flight.front_mut() else { return };
        let ends = block.ok && block.lines.len() == 1 && block.lines[0] == first.nonce.as_bytes();
        if !ends {
            if first.blocks.len() < MAX_BLOCKS {
                first.blocks.push(block);
            }
            return;
        }
        if let Some(done) = self.in_flight.pop_front() {
            // The caller may have been cancelled; the line was carried out all the same.
            let _ = done.reply.send(Ok(done.blocks));
        }
    }
}

impl Connection {
    /// Tells everybody who waits for an answer that none will come.
    pub(super) fn give_up(&mut self) {
        for sent in self.in_flight.drain(..) {
            let _ = sent.reply.send(Err(Lost { sent: true }));
        }
        for request in self.queue.drain(..) {
            let _ = request.reply.send(Err(Lost { sent: false }));
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.give_up();
        self.client.end();
    }
}

/// Wakes the connection's thread.
pub(super) struct ConnectionWaker<'a> {
    /// Bytes come in when somebody has put a request into the inbox, or wants the thread to end.
    pub(super) pipe: &'a UnixStream,
    /// Requests; `None` while the connection is being set up.
    pub(super) inbox: Option<&'a Receiver<QueuedLine>>,
    /// Set when the thread is to end.
    pub(super) stop: &'a AtomicBool,
}

impl ConnectionWaker<'_> {
    /// Empties the pipe, which does not block.
    pub(super) fn clear(&self) {
        let mut buffer = [0; 64];
        let mut pipe = self.pipe;
        while matches!(pipe.read(&mut buffer), Ok(count) if count == buffer.len()) {}
    }

    /// Sleeps until woken, for at most `wait`.
    pub(super) fn sleep(&self, wait: Duration) {
        let mut fds = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
        if wait_for(&mut fds, wait).is_ok() {
            self.clear();
        }
    }
}

fn wait_for(fds: &mut [PollFd<'_>], wait: Duration) -> io::Result<()> {
    // One millisecond more, so that a deadline has passed when the wait for it is over.
    let wait = PollTimeout::try_from(wait + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
    match poll(fds, wait) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// A random number that no answer can hold by chance.
pub(super) fn nonce() -> String {
    format!("{:016x}", (uuid::Uuid::new_v4().as_u128() >> 64) as u64)
}
