//! What all programs that tasuki starts beside its agents have in common: an environment without the service's own
//! variables, a process group of their own, and an end no later than the sidecar's.

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::io;
use std::time::Duration;
use tokio::process::{Child, Command};

/// What belongs to the sidecar's own service, and must not be taken by a child for its own.
const NOT_FOR_CHILDREN: [&str; 8] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "JOURNAL_STREAM",
    "TASUKI_SERVICE",
];

/// The first pause where the system has no room for another process, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether there is a process of that id, ours or not.
#[must_use]
pub fn answers(pid: u32) -> bool {
    let Ok(pid) = i32::try_from(pid) else { return false };
    !matches!(kill(Pid::from_raw(pid), None), Err(Errno::ESRCH))
}

/// Takes from a child's environment what belongs to the sidecar's own service.
fn leave_service(command: &mut Command) {
    for name in NOT_FOR_CHILDREN {
        command.env_remove(name);
    }
}

/// Lets a child end, by force, when the thread that has started it ends: with us, however we end. Must be called from a
/// thread that lives as long as the program does. Where the system can't do that, the child ends by itself.
#[allow(unsafe_code)]
pub fn die_with_us(command: &mut Command) {
    #[cfg(all(target_os = "linux", not(tasuki_portable)))]
    {
        let parent = nix::unistd::getpid();
        // SAFETY: the closure runs between fork and exec and calls only async-signal-safe functions: prctl and getppid.
        // It allocates nothing and takes no lock.
        unsafe {
            command.pre_exec(move || {
                nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
                // A parent that ended before the call sends no signal any more.
                if nix::unistd::getppid() != parent {
                    return Err(nix::errno::Errno::ESRCH.into());
                }
                Ok(())
            });
        }
    }
    #[cfg(any(tasuki_portable, not(target_os = "linux")))]
    let _ = command;
}

/// A child in a process group of its own. Dropping it before its end kills the whole group: a wrapper that is killed
/// alone would leave the programs that it started running.
#[derive(Debug)]
pub struct Grouped {
    child: Child,
}

impl Grouped {
    /// Starts it, outside the sidecar's own service.
    ///
    /// # Errors
    /// As for [`Command::spawn`].
    pub fn spawn(command: &mut Command) -> io::Result<Grouped> {
        leave_service(command);
        Ok(Grouped { child: command.process_group(0).kill_on_drop(true).spawn()? })
    }

    /// Starts it, and waits where the system has no descriptor, process or memory left for another one: that passes,
    /// and what was to be done by the child must not be lost for it. For a day at most.
    ///
    /// # Errors
    /// As for [`Command::spawn`].
    pub async fn start(command: &mut Command) -> io::Result<Grouped> {
        let begun = tokio::time::Instant::now();
        let mut pause = PAUSE.0;
        loop {
            match Grouped::spawn(command) {
                Err(error) if is_shortage(&error) && begun.elapsed() < PATIENCE => {
                    tracing::warn!(%error, "could not start a command; tasuki tries again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE.1);
                }
                started => return started,
            }
        }
    }

    /// The child process, to wait for it or to read its output.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Ends the group, unless its end was seen already: until then its number can be nobody else's.
    pub fn end(&self) {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid {
            // It may have ended by itself at this very moment.
            let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// The system has no room for another process at this moment; the command itself is not at fault.
fn is_shortage(error: &io::Error) -> bool {
    use nix::errno::Errno::{EAGAIN, EMFILE, ENFILE, ENOMEM};
    let code = error.raw_os_error();
    [EAGAIN, EMFILE, ENFILE, ENOMEM].into_iter().any(|errno| code == Some(errno as i32))
}

impl Drop for Grouped {
    fn drop(&mut self) {
        self.end();
    }
}
