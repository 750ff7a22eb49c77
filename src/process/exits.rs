//! Notices the exit of processes.

use super::is_alive;
use crate::core::pane::Process;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The time between two checks of a process whose end the system does not report.
const POLL: Duration = Duration::from_millis(500);
/// The most processes that are watched at once.
const MAX_WATCHED: usize = 4_096;
/// The most reported ends that wait to be received.
const QUEUE: usize = 256;

/// Reports the end of each watched process once.
#[derive(Debug)]
pub struct ExitWatch {
    tasks: HashMap<Process, JoinHandle<()>>,
    ended: mpsc::Sender<Process>,
}

impl ExitWatch {
    /// A watch without processes, and the receiver of those that have ended.
    #[must_use]
    pub fn new() -> (ExitWatch, mpsc::Receiver<Process>) {
        let (ended, receiver) = mpsc::channel(QUEUE);
        (ExitWatch { tasks: HashMap::new(), ended }, receiver)
    }

    /// Watches a process until it ends; if it has ended already, that is reported at once. `false` if too many are
    /// watched. Must be called within a tokio runtime.
    pub fn watch(&mut self, process: Process) -> bool {
        self.tasks.retain(|_, task| !task.is_finished());
        if self.tasks.contains_key(&process) {
            return true;
        }
        if self.tasks.len() >= MAX_WATCHED {
            tracing::warn!(pid = process.pid, "too many processes are watched; tasuki does not watch this one");
            return false;
        }
        let ended = self.ended.clone();
        let task = tokio::spawn(async move {
            wait_for_end(&process).await;
            // This fails only at a shutdown, when nobody listens any more.
            let _ = ended.send(process).await;
        });
        self.tasks.insert(process, task);
        true
    }

    /// Stops watching a process. If its end was already noticed, it may still be reported.
    pub fn unwatch(&mut self, process: &Process) {
        if let Some(task) = self.tasks.remove(process) {
            task.abort();
        }
    }
}

impl Drop for ExitWatch {
    fn drop(&mut self) {
        self.tasks.values().for_each(JoinHandle::abort);
    }
}

/// Returns as soon as a process has ended. Dropping the future ends the wait.
pub async fn wait_for_end(process: &Process) {
    while is_alive(process) {
        if told_by_the_system(process).await || !is_alive(process) {
            return;
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Waits until the system reports that a process has ended. `false` if it can't report it, for example because no
/// descriptor is free. Then the caller checks the process itself, and tries again.
#[cfg(all(target_os = "linux", not(tasuki_portable)))]
async fn told_by_the_system(process: &Process) -> bool {
    let Ok(fd) = pidfd_open(process.pid) else { return false };
    // Between our look and the open, the id may have been given to another process.
    is_alive(process) && fd.readable().await.is_ok()
}

/// Waits until the system reports that a process has ended. `false` if it can't report it, or if the process still
/// counts as running some time after the report.
#[cfg(all(target_os = "macos", not(tasuki_portable)))]
async fn told_by_the_system(process: &Process) -> bool {
    /// How often we look after the report: the system reports an end shortly before the process counts as ended.
    const LOOKS: u32 = 40;
    const PAUSE: Duration = Duration::from_millis(5);
    let Ok(exit) = super::queue::await_exit(process.pid) else { return false };
    // Between our look and the call, the id may have been given to another process.
    if !is_alive(process) {
        return true;
    }
    exit.told().await;
    for _ in 0..LOOKS {
        if !is_alive(process) {
            return true;
        }
        tokio::time::sleep(PAUSE).await;
    }
    false
}

/// This system does not report the end of a process.
#[cfg(any(tasuki_portable, not(any(target_os = "linux", target_os = "macos"))))]
async fn told_by_the_system(_process: &Process) -> bool {
    false
}

/// A file descriptor that becomes readable when the process ends. It is not inherited by children.
#[cfg(all(target_os = "linux", not(tasuki_portable)))]
#[allow(unsafe_code)]
fn pidfd_open(pid: u32) -> std::io::Result<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>> {
    use std::os::fd::{FromRawFd, OwnedFd};
    use tokio::io::{Interest, unix::AsyncFd};
    let pid = i32::try_from(pid).map_err(|_| std::io::Error::from(std::io::ErrorKind::InvalidInput))?;
    // SAFETY: the call takes two integers and touches no memory; no wrapper for it exists in nix or std.
    let fd = unsafe { nix::libc::syscall(nix::libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(std::io::Error::last_os_error)?;
    // SAFETY: the system has just made this descriptor for us, and nobody else knows it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: an `OwnedFd` keeps one and the same open descriptor until it is dropped.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::identify;
    use std::process::{Child, Command, Stdio};

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().expect("sleep is everywhere")
    }

    #[tokio::test]
    #[cfg_attr(tasuki_portable, ignore = "a zombie counts as alive where the system tells no start")]
    async fn the_end_of_a_process_is_told_once_and_late_watchers_hear_it_too() {
        let (mut watch, mut ends) = ExitWatch::new();
        let mut child = sleeper();
        let process = identify(child.id()).expect("it runs");
        assert!(watch.watch(process));
        assert!(watch.watch(process));
        child.kill().expect("our own child");
        let limit = Duration::from_secs(10);
        assert_eq!(tokio::time::timeout(limit, ends.recv()).await, Ok(Some(process)));
        child.wait().expect("our own child");
        let gone = Process { start_ticks: process.start_ticks, pid: process.pid };
        assert!(watch.watch(gone));
        assert_eq!(tokio::time::timeout(limit, ends.recv()).await, Ok(Some(process)));
        assert!(ends.try_recv().is_err());
    }

    #[tokio::test]
    async fn no_end_of_an_unwatched_process_is_reported() {
        let (mut watch, mut ends) = ExitWatch::new();
        let (mut one, mut other) = (sleeper(), sleeper());
        let first = identify(one.id()).expect("it runs");
        let second = identify(other.id()).expect("it runs");
        watch.watch(first);
        watch.watch(second);
        watch.unwatch(&first);
        for child in [&mut one, &mut other] {
            child.kill().expect("our own child");
            child.wait().expect("our own child");
        }
        assert_eq!(tokio::time::timeout(Duration::from_secs(10), ends.recv()).await, Ok(Some(second)));
        assert!(ends.try_recv().is_err());
    }
}
