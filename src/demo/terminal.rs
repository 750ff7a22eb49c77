//! The terminal: raw mode, its size, and the signals that concern it.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::termios::{self, SetArg, Termios};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// A terminal in raw mode. Dropping this restores it.
pub struct Terminal {
    before: Termios,
    bracketed: bool,
}

impl Terminal {
    /// Switches standard input to raw mode and, unless told not to, bracketed paste on.
    ///
    /// # Errors
    /// When standard input is not a terminal.
    pub fn open(bracketed: bool) -> io::Result<Self> {
        let before = termios::tcgetattr(io::stdin().as_fd())?;
        let mut raw = before.clone();
        termios::cfmakeraw(&mut raw);
        termios::tcsetattr(io::stdin().as_fd(), SetArg::TCSANOW, &raw)?;
        let terminal = Terminal { before, bracketed };
        if bracketed {
            write("\u{1b}[?2004h");
        }
        Ok(terminal)
    }

    /// Puts the terminal back as it was.
    pub fn restore(&self) {
        if self.bracketed {
            write("\u{1b}[?2004l");
        }
        write("\u{1b}[?25h\u{1b}[?7h");
        let _ = termios::tcsetattr(io::stdin().as_fd(), SetArg::TCSANOW, &self.before);
    }

    /// Throws away what was typed and not read.
    pub fn discard_input(&self) {
        let _ = termios::tcflush(io::stdin().as_fd(), termios::FlushArg::TCIFLUSH);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Writes to the terminal. Errors are ignored: if the terminal is gone, the next read fails.
pub fn write(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Columns and rows; 80 × 24 where the terminal does not say.
#[must_use]
pub fn size() -> (u16, u16) {
    window::size().filter(|(width, height)| *width > 0 && *height > 0).unwrap_or((80, 24))
}

mod window {
    //! The one system call here that nix offers only as an unsafe function.
    #![allow(unsafe_code)]

    use nix::libc;
    use std::os::fd::AsRawFd;

    nix::ioctl_read_bad!(tiocgwinsz, libc::TIOCGWINSZ, libc::winsize);

    pub(super) fn size() -> Option<(u16, u16)> {
        let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: TIOCGWINSZ writes one winsize to the pointer that it is given, and `size` outlives the call. Standard
        // output stays open for as long as the process runs.
        let done = unsafe { tiocgwinsz(std::io::stdout().as_raw_fd(), &raw mut size) };
        done.ok().map(|_| (size.ws_col, size.ws_row))
    }
}

/// What a signal asks for; the numbers are the bytes that go through the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SignalNotice {
    Resized = 1,
    End = 2,
}

impl SignalNotice {
    /// The notice that a byte of the pipe means.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        [SignalNotice::Resized, SignalNotice::End].into_iter().find(|notice| *notice as u8 == byte)
    }
}

/// Gives SIGWINCH a handler that does nothing: macOS discards a signal that is ignored by default before anybody can
/// wait for it.
#[cfg(target_os = "macos")]
#[allow(unsafe_code)]
fn hear_resizes() -> nix::Result<()> {
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, sigaction};
    extern "C" fn nothing(_signal: nix::libc::c_int) {}
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler does nothing, so it may run at any time.
    unsafe { sigaction(Signal::SIGWINCH, &action) }.map(drop)
}

/// Turns SIGWINCH, SIGHUP and SIGTERM into bytes on a pipe. Call this before other threads are started, because they
/// must inherit the signal mask.
///
/// # Errors
/// When the system refuses.
pub fn signals() -> io::Result<UnixStream> {
    let set: SigSet = [Signal::SIGWINCH, Signal::SIGHUP, Signal::SIGTERM].into_iter().collect();
    set.thread_block()?;
    #[cfg(target_os = "macos")]
    hear_resizes()?;
    let (mut sender, receiver) = UnixStream::pair()?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        loop {
            let notice = match set.wait() {
                Ok(Signal::SIGWINCH) => SignalNotice::Resized,
                Ok(_) => SignalNotice::End,
                Err(_) => continue,
            };
            if sender.write_all(&[notice as u8]).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}
