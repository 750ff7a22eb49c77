//! Which process has an id, whether it runs, and how it was started.

use super::stat::Stat;
use super::system::{self, look};
use crate::child::answers;
use crate::core::pane::Process;
use crate::limits;
use std::io;
use std::path::Path;

/// The most processes that are listed.
pub(super) const MOST_LISTED: usize = 20_000;

/// Whether a process lives, as far as a look at it has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessState {
    Alive,
    Gone,
    /// We could not look, for example because no file descriptor is free. The process may be alive or gone.
    Unknown,
}

/// The time at which a process started, in the system's own measure (see [`Process`]); `None` if there is no such
/// process, or if we could not look. `Some(0)` if the system does not say when it started (`ps`).
#[must_use]
pub fn start_ticks(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.start_ticks)
}

/// The process with this id, and what identifies it beside the id. `None` if there is no such process, or if we could
/// not look. It may be a zombie.
#[must_use]
pub fn identify(pid: u32) -> Option<Process> {
    look_up(pid).ok().flatten()
}

/// As [`identify`], but a temporary error is reported. `None` also if we are not allowed to look.
///
/// # Errors
/// We could not look, for a reason that may be temporary.
pub fn find(pid: u32) -> io::Result<Option<Process>> {
    Ok(limits::of_proc(look_up(pid))?.flatten())
}

/// As [`find`], but missing permission is an error too.
fn look_up(pid: u32) -> io::Result<Option<Process>> {
    Ok(match look(pid)? {
        Some(stat) => Some(Process { pid, start_ticks: stat.start_ticks }),
        None if !system::KNOWS_STARTS && answers(pid) => Some(Process { pid, start_ticks: 0 }),
        None => None,
    })
}

/// Whether this very process still runs. A zombie does not: it has ended, and only waits for its parent to notice that.
/// But where the system does not say when a process started (`ps`), a zombie counts as alive.
#[must_use]
pub fn life(process: &Process) -> ProcessState {
    if !system::KNOWS_STARTS {
        return if answers(process.pid) { ProcessState::Alive } else { ProcessState::Gone };
    }
    match look(process.pid) {
        Ok(Some(stat)) if stat.start_ticks == process.start_ticks && !matches!(stat.state, b'Z' | b'X' | b'x') => {
            ProcessState::Alive
        }
        Ok(_) => ProcessState::Gone,
        // A signal needs no descriptor, so it can still show that no process has the id.
        Err(_) if !answers(process.pid) => ProcessState::Gone,
        Err(_) => ProcessState::Unknown,
    }
}

/// Whether this very process still runs, as far as is known: a process counts as dead only if it is known to be gone.
#[must_use]
pub fn is_alive(process: &Process) -> bool {
    life(process) != ProcessState::Gone
}

/// Whether there is a process with this id, a zombie included, as far as is known.
#[must_use]
pub fn exists(pid: u32) -> bool {
    match system::KNOWS_STARTS.then(|| look(pid)) {
        Some(Ok(stat)) => stat.is_some(),
        Some(Err(_)) | None => answers(pid),
    }
}

/// Whether a process is a child of this parent, as far as is known. If the parent has ended, or if another process has
/// the id by now, it is known that it is not.
#[must_use]
pub fn is_child(pid: u32, parent: u32) -> bool {
    match look(pid) {
        Ok(Some(stat)) => stat.parent == parent,
        // Perhaps `ps` could not be run.
        Ok(None) => !system::KNOWS_STARTS && answers(pid),
        Err(_) => answers(pid),
    }
}

/// Whether somebody has stopped a process (SIGSTOP).
#[must_use]
pub fn is_stopped(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| matches!(stat.state, b'T' | b't'))
}

/// Whether a path leads to a file that this user may execute, as far as is known.
#[must_use]
pub fn is_program(path: &Path) -> bool {
    match std::fs::metadata(path) {
        Ok(meta) => meta.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok(),
        // If the error may be temporary, the file may exist: starting it will show.
        Err(error) => limits::is_passing(&error),
    }
}

/// The parent of a process; none if there is no such process, or if the system does not say.
#[must_use]
pub(super) fn parent(pid: u32) -> Option<u32> {
    stat(pid).map(|stat| stat.parent)
}

/// The parent of a process, the parent of that, and so on, at most `max`. The system's first process is left out.
#[must_use]
pub fn ancestors(pid: u32, max: usize) -> Vec<u32> {
    let mut found = Vec::new();
    let mut next = stat(pid).map(|stat| stat.parent);
    while let Some(parent) = next.filter(|parent| *parent > 1) {
        if found.len() >= max || found.contains(&parent) {
            break;
        }
        found.push(parent);
        next = stat(parent).map(|stat| stat.parent);
    }
    found
}

/// The program in front in a pane. `pid` is the pane's process. The program in front is the leader of the foreground
/// group of its terminal, or the pane's process itself if there is no such leader. None if that process is gone, or if
/// we may not look at it.
///
/// # Errors
/// We could not look, for a reason that may be temporary.
pub fn front(pid: u32) -> io::Result<Option<Process>> {
    let group = limits::of_proc(look(pid))?.flatten().and_then(|stat| u32::try_from(stat.foreground).ok());
    let leader = match group.filter(|group| *group > 0) {
        Some(group) => find(group)?,
        None => None,
    };
    match leader {
        Some(leader) => Ok(Some(leader)),
        None => find(pid),
    }
}

/// The arguments of a process, program first. Bytes that are not UTF-8 are replaced.
#[must_use]
pub fn argv(pid: u32) -> Option<Vec<String>> {
    arguments(pid).ok().flatten()
}

/// A variable of the environment that a process was started with.
#[must_use]
pub fn environ_var(pid: u32, name: &str) -> Option<String> {
    environment(pid, name).ok().flatten()
}

/// As [`argv`], but `None` does not hide a temporary error.
///
/// # Errors
/// We could not look, for a reason that may be temporary.
pub fn arguments(pid: u32) -> io::Result<Option<Vec<String>>> {
    system::arguments(pid)
}

/// As [`environ_var`], but `None` does not hide a temporary error.
///
/// # Errors
/// We could not look, for a reason that may be temporary.
pub fn environment(pid: u32, name: &str) -> io::Result<Option<String>> {
    system::environment(pid, name)
}

/// The whole environment that a process was started with, as names and values. Entries that are not UTF-8 are left out.
/// None if there is no such process, if we may not read its environment (that of another user, or of a process that has
/// forbidden it, with `PR_SET_DUMPABLE` on Linux), or if the system does not say; see [`READS_ENVIRONMENTS`].
///
/// # Errors
/// We could not look, for a reason that may be temporary.
pub fn environment_all(pid: u32) -> io::Result<Option<Vec<(String, String)>>> {
    system::environment_all(pid)
}

/// Whether this system says with which environment a process of ours was started.
pub const READS_ENVIRONMENTS: bool = system::READS_ENVIRONMENTS;

/// When a process started, in milliseconds since boot; `None` if the system does not say.
///
/// `booted_ms`: when the machine was booted, in milliseconds since 1970, because some systems note the start as a time
/// since 1970.
#[must_use]
pub fn started_ms(process: &Process, booted_ms: i64) -> Option<i64> {
    system::started_ms(process, booted_ms)
}

/// The ids of the processes of this machine, at most 20,000; empty if the system does not say.
#[must_use]
pub fn all() -> Vec<u32> {
    system::processes(MOST_LISTED).unwrap_or_default()
}

fn stat(pid: u32) -> Option<Stat> {
    look(pid).ok().flatten()
}

#[cfg(all(test, not(tasuki_portable), any(target_os = "linux", target_os = "macos")))]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().expect("sleep is everywhere")
    }

    #[test]
    fn a_process_is_alive_until_it_ends_and_a_zombie_is_not() {
        let mut child = sleeper();
        let process = identify(child.id()).expect("it runs");
        assert!(is_alive(&process));
        assert!(!is_alive(&Process { start_ticks: process.start_ticks + 1, ..process }));
        assert_eq!(ancestors(child.id(), 8).first(), Some(&std::process::id()));
        let own = std::process::id();
        assert!(is_child(child.id(), own) && !is_child(own, child.id()), "and no other process is its parent");
        child.kill().expect("our own child");
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while is_alive(&process) {
            assert!(std::time::Instant::now() < deadline, "it was killed");
            std::thread::yield_now();
        }
        child.wait().expect("our own child");
        assert_eq!((identify(process.pid), is_child(process.pid, own)), (None, false));
    }

    #[test]
    fn our_own_arguments_can_be_read() {
        let argv = argv(std::process::id()).expect("we run");
        assert_eq!(argv.first().map(String::as_str), std::env::args().next().as_deref());
    }
}
