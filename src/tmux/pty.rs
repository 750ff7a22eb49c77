//! A control client on a pseudo-terminal of its own.
//!
//! It is on a pty and not on pipes, because the kernel hangs the terminal up when the sidecar dies, and then the client
//! exits. A client on pipes with answers in flight would stay for ever, and could keep the server from exiting. The
//! terminal is raw and is the client's controlling terminal. On Linux the client also dies with the *thread* that
//! started it, so that thread must live as long as the sidecar.

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};
use nix::unistd::Pid;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a client may take to exit before tasuki uses a stronger means.
const PATIENCE: Duration = Duration::from_secs(1);

/// A child with the other end of its terminal.
#[derive(Debug)]
pub(super) struct PtyClient {
    /// `None` once the terminal is hung up.
    master: Option<OwnedFd>,
    child: Child,
}

impl PtyClient {
    /// Starts `command` on a new raw pty. Call it from a thread that lives as long as the client should.
    pub(super) fn start(mut command: Command) -> io::Result<PtyClient> {
        let (master, slave) = open_pair()?;
        let mut modes = tcgetattr(&slave)?;
        cfmakeraw(&mut modes);
        tcsetattr(&slave, SetArg::TCSANOW, &modes)?;
        nix::fcntl::fcntl(&master, nix::fcntl::FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        command
            .stdin(Stdio::from(slave.try_clone()?))
            .stdout(Stdio::from(slave.try_clone()?))
            .stderr(Stdio::from(slave));
        lead_a_session(&mut command);
        let child = command.spawn()?;
        // The command keeps our copies of the slave; they must go, or the end of the client would never be seen.
        drop(command);
        Ok(PtyClient { master: Some(master), child })
    }

    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.master.as_ref().map(AsFd::as_fd)
    }

    /// Reads what has arrived. `Ok(0)` is the end: a pty returns `EIO` when the other side is gone.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(master) = &self.master else { return Ok(0) };
        match nix::unistd::read(master, buffer) {
            Ok(count) => Ok(count),
            Err(Errno::EIO) => Ok(0),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Writes as much as there is room for.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let Some(master) = &self.master else { return Err(io::ErrorKind::BrokenPipe.into()) };
        Ok(nix::unistd::write(master, bytes)?)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Hangs up and waits until the client has exited. A client that does not exit by itself within a second gets
    /// SIGTERM, and another second later SIGKILL. SIGKILL comes last, because killing a client that is still starting
    /// can crash the server.
    pub(super) fn end(&mut self) {
        self.master = None;
        if self.gone_within(PATIENCE) {
            return;
        }
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(i32::MAX));
        if kill(pid, Signal::SIGTERM).is_ok() && self.gone_within(PATIENCE) {
            return;
        }
        if self.child.kill().is_err() || !self.gone_within(PATIENCE) {
            tracing::warn!(pid = self.child.id(), "a tmux control client did not end after it was killed");
        }
    }

    fn gone_within(&mut self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
                Ok(None) => return false,
                Ok(Some(_)) | Err(_) => return true,
            }
        }
    }
}

impl Drop for PtyClient {
    fn drop(&mut self) {
        self.end();
    }
}

/// Both ends have the close-on-exec flag from the start, so that no child that another thread forks can hold them open.
#[cfg(all(target_os = "linux", not(tasuki_portable)))]
fn open_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
    let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let slave = nix::fcntl::open(ptsname_r(&master)?.as_str(), flags, nix::sys::stat::Mode::empty())?;
    Ok((master.into(), slave))
}

/// Without `ptsname_r`, the close-on-exec flag can only be set a moment later.
#[cfg(any(tasuki_portable, not(target_os = "linux")))]
fn open_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use nix::fcntl::{FcntlArg, FdFlag, fcntl};
    let pair = nix::pty::openpty(None, None)?;
    for end in [&pair.master, &pair.slave] {
        fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    }
    Ok((pair.master, pair.slave))
}

nix::ioctl_write_int_bad!(set_controlling_terminal, nix::libc::TIOCSCTTY);

/// Makes the child lead its own session with the pty as its controlling terminal, and die with us.
#[allow(unsafe_code)]
fn lead_a_session(command: &mut Command) {
    #[cfg(all(target_os = "linux", not(tasuki_portable)))]
    let parent = nix::unistd::getpid();
    // SAFETY: the closure runs between fork and exec and calls only async-signal-safe functions: setsid, ioctl,
    // prctl, getppid and close_range. It allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || {
            nix::unistd::setsid()?;
            set_controlling_terminal(0, 0)?;
            #[cfg(all(target_os = "linux", not(tasuki_portable)))]
            {
                nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
                if nix::unistd::getppid() != parent {
                    return Err(Errno::ESRCH.into());
                }
                // File descriptors that another library left inheritable must not stay open in the client. On an old
                // kernel without this call they do, which is bearable.
                nix::libc::syscall(nix::libc::SYS_close_range, 3, u32::MAX, nix::libc::CLOSE_RANGE_CLOEXEC);
            }
            Ok(())
        });
    }
}

/// Whether a terminal is in canonical mode, in which it collects whole lines and cuts a long one.
///
/// # Errors
/// When `tty` is not a terminal, or can't be opened.
pub(super) fn is_canonical(tty: &str) -> io::Result<bool> {
    use std::os::unix::fs::OpenOptionsExt as _;
    if !tty.starts_with("/dev/") {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file: File = std::fs::OpenOptions::new().read(true).custom_flags(flags.bits()).open(tty)?;
    let modes = tcgetattr(&file)?;
    Ok(modes.local_flags.contains(nix::sys::termios::LocalFlags::ICANON))
}
