//! Writes the log's lines. A terminal may be stopped, a pipe full, a journal slow, so only the thread of this file
//! waits for them. Lines that do not fit into its queue are dropped and counted, and the count is logged as soon as
//! writing works again. A line that can't be written at all is dropped too.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// The most bytes that wait for a slow reader.
const ROOM: usize = 1024 * 1024;
/// What a line counts in the queue beside its own bytes.
const COST: usize = 64;
/// How long the last lines may take at the end.
const LAST_WITHIN: Duration = Duration::from_secs(1);

thread_local! {
    /// Whether this is the thread that writes: its own lines always fit.
    static WRITES: Cell<bool> = const { Cell::new(false) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogOutput {
    Stderr,
    /// As a message to the journal's socket.
    #[cfg(target_os = "linux")]
    Journal,
}

enum Message {
    Line(LogOutput, Vec<u8>),
    /// Answers when all earlier lines are written.
    Last(mpsc::SyncSender<()>),
}

/// Takes lines; never waits.
#[derive(Debug)]
pub(super) struct Lines {
    messages: mpsc::Sender<Message>,
    count: Arc<Count>,
}

#[derive(Debug, Default)]
struct Count {
    queued: AtomicUsize,
    /// Lines that were dropped and not reported yet.
    dropped: AtomicUsize,
}

impl Lines {
    /// Starts the thread that writes with `write`. `tell` logs how many lines were dropped.
    pub(super) fn start(
        write: impl Fn(LogOutput, &[u8]) -> io::Result<()> + Send + 'static,
        tell: impl Fn(usize) + Send + 'static,
    ) -> io::Result<Lines> {
        let (messages, waiting) = mpsc::channel();
        let count = Arc::new(Count::default());
        let lines = Lines { messages: messages.clone(), count: Arc::clone(&count) };
        let report_dropped = move |count: &Count| {
            let dropped = count.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                tell(dropped);
            }
            dropped > 0
        };
        let write_lines = move || {
            WRITES.set(true);
            for message in waiting {
                match message {
                    Message::Line(to, line) => {
                        let cost = line.len() + COST;
                        let left = count.queued.fetch_sub(cost, Ordering::Relaxed) - cost;
                        if write(to, &line).is_err() {
                            count.dropped.fetch_add(1, Ordering::Relaxed);
                        } else if left <= ROOM / 2 {
                            // Not while the queue is more than half full: otherwise such a report would follow each
                            // line.
                            report_dropped(&count);
                        }
                    }
                    // The report is a line itself, and is queued behind `Last`. So `Last` is queued once more, behind
                    // the report.
                    Message::Last(done) if report_dropped(&count) => drop(messages.send(Message::Last(done))),
                    Message::Last(done) => drop(done.try_send(())),
                }
            }
        };
        std::thread::Builder::new().name("log".to_owned()).spawn(write_lines)?;
        Ok(lines)
    }

    /// Hands a line over, or counts it as dropped.
    pub(super) fn put(&self, to: LogOutput, line: &[u8]) {
        let cost = line.len() + COST;
        let fits = |queued: usize| Some(queued + cost).filter(|all| *all <= ROOM || WRITES.get());
        let taken = self.count.queued.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if !taken || self.messages.send(Message::Line(to, line.to_vec())).is_err() {
            self.count.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all lines are written, but not for long: perhaps nothing reads them.
    pub(super) fn finish(&self) {
        let (done, is_done) = mpsc::sync_channel(1);
        if self.messages.send(Message::Last(done)).is_ok() {
            let _ = is_done.recv_timeout(LAST_WITHIN);
        }
    }
}

/// Writes to standard error without the standard library's lock, which other threads would wait for. If another program
/// has made the terminal non-blocking, it waits.
pub(super) fn to_stderr(mut bytes: &[u8]) -> io::Result<()> {
    let stderr = io::stderr();
    let to = stderr.as_fd();
    while !bytes.is_empty() {
        match nix::unistd::write(to, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                let mut wanted = [PollFd::new(to, PollFlags::POLLOUT)];
                nix::poll::poll(&mut wanted, PollTimeout::from(1000_u16))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_log_writer_delays_nobody_and_dropped_lines_are_reported() {
        let (release, wait) = mpsc::channel::<()>();
        let (wrote, written) = mpsc::channel();
        let (told, missing) = mpsc::channel();
        let write = move |_, line: &[u8]| {
            // Blocks at its first line until the sender is dropped.
            let _ = wait.recv();
            wrote.send(line.len()).map_err(io::Error::other)
        };
        let lines =
            Lines::start(write, move |dropped| told.send(dropped).expect("the test listens")).expect("a thread");
        let all = 2 * ROOM / 1024;
        (0..all).for_each(|_| lines.put(LogOutput::Stderr, &[b'x'; 1024]));
        lines.finish();
        drop(release);
        lines.finish();
        let kept = written.try_iter().count();
        assert!(kept * (1024 + COST) <= ROOM + 1024 + COST && kept > 0, "{kept} lines were kept");
        assert_eq!(missing.try_iter().sum::<usize>(), all - kept);
        lines.put(LogOutput::Stderr, b"it writes!");
        lines.finish();
        assert_eq!(written.try_recv(), Ok(10));
    }

    #[test]
    fn a_log_line_that_can_t_be_written_counts_as_dropped() {
        let (told, missing) = mpsc::channel();
        let write = |_, line: &[u8]| if line == b"bad" { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) };
        let lines =
            Lines::start(write, move |dropped| told.send(dropped).expect("the test listens")).expect("a thread");
        [b"bad", b"bad", b"fit"].iter().for_each(|line| lines.put(LogOutput::Stderr, *line));
        lines.finish();
        assert_eq!(missing.try_iter().collect::<Vec<_>>(), [2]);
    }
}
