//! The terminal: taken over, written to without ever waiting for it, and restored no matter how the program ends.
//!
//! The terminal is opened a second time by its name, so that `O_NONBLOCK` applies to this program, and not to the shell
//! that shares the terminal. Output that the terminal does not take at once waits in a buffer, and nothing more is
//! drawn until the buffer is empty. So a stopped terminal cannot delay a signal that ends the program.

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::Mode;
use nix::sys::termios::{self, SetArg, Termios};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};
use std::cell::RefCell;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The alternate screen, no cursor, bracketed paste.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[2J";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?2004l\x1b[?25h\x1b[?1049l";
/// How long to wait at the end for a terminal that takes no output.
const RESTORE_WITHIN: Duration = Duration::from_millis(500);
/// How much is read at once, in bytes.
const CHUNK: usize = 64 * 1024;

#[derive(Debug, Clone, Default)]
struct Outbox(Rc<RefCell<Vec<u8>>>);

impl Write for Outbox {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TerminalGone;

/// A terminal that is ours for a while.
pub(super) struct Screen {
    tty: OwnedFd,
    before: Termios,
    outbox: Outbox,
    terminal: Terminal<CrosstermBackend<Outbox>>,
    area: Rect,
}

impl Screen {
    /// Takes over the terminal behind a file descriptor.
    ///
    /// # Errors
    /// When it is not a terminal, or can't be opened or set.
    pub(super) fn open(terminal: BorrowedFd<'_>, size: (u16, u16)) -> io::Result<Self> {
        let path: PathBuf = nix::unistd::ttyname(terminal)?;
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let tty = open(&path, flags, Mode::empty())?;
        let before = termios::tcgetattr(tty.as_fd())?;
        let outbox = Outbox::default();
        let area = Rect::new(0, 0, size.0, size.1);
        // The caller gives the size, because crossterm may start `tput` to find it.
        let options = TerminalOptions { viewport: Viewport::Fixed(area) };
        let terminal = Terminal::with_options(CrosstermBackend::new(outbox.clone()), options)?;
        let mut screen = Screen { tty, before, outbox, terminal, area };
        screen.take_over()?;
        Ok(screen)
    }

    /// Switches to raw mode and the alternate screen. It is done again after the program was stopped and continued,
    /// because a shell may have changed both.
    fn take_over(&mut self) -> io::Result<()> {
        let mut raw = self.before.clone();
        termios::cfmakeraw(&mut raw);
        termios::tcsetattr(self.tty.as_fd(), SetArg::TCSANOW, &raw)?;
        self.outbox.write_all(ENTER)
    }

    /// Begins with an empty screen of this size. The caller makes sure that no output for the old size waits.
    ///
    /// # Errors
    /// When the terminal can't be set any more.
    pub(super) fn renew(&mut self, size: (u16, u16)) -> io::Result<()> {
        self.area = Rect::new(0, 0, size.0, size.1);
        self.take_over()?;
        self.terminal.resize(self.area)
    }

    /// Draws a frame into the buffer.
    ///
    /// # Errors
    /// None in practice: the buffer takes everything.
    pub(super) fn draw(&mut self, paint: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(paint).map(|_| ())
    }

    pub(super) fn area(&self) -> Rect {
        self.area
    }

    /// Whether output waits for the terminal.
    pub(super) fn is_behind(&self) -> bool {
        !self.outbox.0.borrow().is_empty()
    }

    /// Writes as much of the waiting output as the terminal takes at once.
    pub(super) fn write_on(&mut self) -> Result<(), TerminalGone> {
        let mut waiting = self.outbox.0.borrow_mut();
        while !waiting.is_empty() {
            match nix::unistd::write(&self.tty, &waiting) {
                Ok(0) | Err(Errno::EAGAIN) => return Ok(()),
                Ok(count) => drop(waiting.drain(..count)),
                Err(Errno::EINTR) => {}
                Err(_) => return Err(TerminalGone),
            }
        }
        Ok(())
    }

    /// The typed bytes, if any.
    pub(super) fn read(&self) -> Result<Vec<u8>, TerminalGone> {
        let mut bytes = vec![0; CHUNK];
        match nix::unistd::read(self.tty.as_fd(), &mut bytes) {
            Ok(0) => Err(TerminalGone),
            Ok(count) => {
                bytes.truncate(count);
                Ok(bytes)
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(Vec::new()),
            Err(_) => Err(TerminalGone),
        }
    }

    /// Restores the terminal. If the terminal is gone, this does nothing.
    fn restore(&mut self) {
        let _ = self.outbox.write_all(LEAVE);
        let end = Instant::now() + RESTORE_WITHIN;
        while self.write_on().is_ok() && self.is_behind() && Instant::now() < end {
            let mut fds = [PollFd::new(self.tty.as_fd(), PollFlags::POLLOUT)];
            let left = end.saturating_duration_since(Instant::now()).as_millis();
            let _ = poll(&mut fds, PollTimeout::from(u8::try_from(left).unwrap_or(u8::MAX)));
        }
        let _ = termios::tcsetattr(self.tty.as_fd(), SetArg::TCSANOW, &self.before);
    }
}

impl AsFd for Screen {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tty.as_fd()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.restore();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::pty::openpty;

    fn echoes(terminal: &OwnedFd) -> bool {
        let state = termios::tcgetattr(terminal.as_fd()).expect("a terminal");
        state.local_flags.contains(termios::LocalFlags::ECHO)
    }

    /// The whole output, which may come in pieces.
    fn shown(master: &OwnedFd) -> Vec<u8> {
        let (mut all, mut piece) = (Vec::new(), vec![0; CHUNK]);
        while !all.ends_with(LEAVE) {
            let mut fds = [PollFd::new(master.as_fd(), PollFlags::POLLIN)];
            let ready = poll(&mut fds, PollTimeout::from(60_000_u16)).expect("it can be waited for");
            assert!(ready > 0, "no end came: {:?}", String::from_utf8_lossy(&all));
            let count = nix::unistd::read(master, &mut piece).expect("something was written");
            all.extend_from_slice(&piece[..count]);
        }
        all
    }

    #[test]
    fn the_terminal_is_given_back_also_after_a_panic() {
        let pty = openpty(None, None).expect("a terminal");
        assert!(echoes(&pty.slave));
        let panicked = std::panic::catch_unwind(|| {
            let mut screen = Screen::open(pty.slave.as_fd(), (80, 24)).expect("taken over");
            assert!(!echoes(&pty.slave));
            assert_eq!(screen.write_on(), Ok(()));
            panic!("in the middle of it");
        });
        assert!(panicked.is_err() && echoes(&pty.slave));
        let shown = shown(&pty.master);
        assert!(shown.starts_with(ENTER) && shown.ends_with(LEAVE), "{:?}", String::from_utf8_lossy(&shown));
    }

    #[test]
    fn a_terminal_that_takes_nothing_holds_nothing_up() {
        let pty = openpty(None, None).expect("a terminal");
        let mut screen = Screen::open(pty.slave.as_fd(), (80, 24)).expect("taken over");
        screen.outbox.write_all(&vec![b'x'; 1 << 20]).expect("a buffer");
        assert_eq!(screen.write_on(), Ok(()));
        assert!(screen.is_behind());
        let began = Instant::now();
        drop(screen);
        assert!(began.elapsed() < 20 * RESTORE_WITHIN && echoes(&pty.slave));
    }

    #[test]
    fn a_terminal_that_is_gone_is_known() {
        let pty = openpty(None, None).expect("a terminal");
        let mut screen = Screen::open(pty.slave.as_fd(), (80, 24)).expect("taken over");
        assert_eq!(screen.read(), Ok(Vec::new()));
        drop(pty.master);
        assert_eq!(screen.read(), Err(TerminalGone));
        assert_eq!(screen.write_on(), Err(TerminalGone));
    }
}
