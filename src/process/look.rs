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

/// What a look at a process has told. That we could not look says nothing of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessState {
    Alive,
    Gone,
    /// There was no way to look: something is short.
    Unknown,
}

/// The time at which a process started, in the system's own measure (see [`Process`]); `None` if there is no such
/// process, or if the system does not say.
#[must_use]
pub fn start_ticks(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.start_ticks)
}

/// A process with all that identifies it; `None` if there is none of that id. It may be a zombie.
#[must_use]
pub fn identify(pid: u32) -> Option<Process> {
    look_up(pid).ok().flatten()
}

/// As [`identify`].
///
/// # Errors
/// There was no way to look, and that may pass.
pub fn find(pid: u32) -> io::Result<Option<Process>> {
    Ok(limits::of_proc(look_up(pid))?.flatten())
}

/// As [`identify`], but each failed look is an error, even where another look will fail too.
fn look_up(pid: u32) -> io::Result<Option<Process>> {
    Ok(match look(pid)? {
        Some(stat) => Some(Process { pid, start_ticks: stat.start_ticks }),
        None if !system::KNOWS_STARTS && answers(pid) => Some(Process { pid, start_ticks: 0 }),
        None => None,
    })
}

/// Whether that very process still runs. A zombie does not: it has ended, and only its parent has not looked.
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
        // A signal needs no descriptor, and shows that nobody has the id.
        Err(_) if !answers(process.pid) => ProcessState::Gone,
        Err(_) => ProcessState::Unknown,
    }
}

/// Whether that very process still runs, as far as is known: only a process that is known to be gone counts as dead.
#[must_use]
pub fn is_alive(process: &Process) -> bool {
    life(process) != ProcessState::Gone
}

/// Whether there is a process of that id, a zombie included, as far as is known.
#[must_use]
pub fn exists(pid: u32) -> bool {
    match system::KNOWS_STARTS.then(|| look(pid)) {
        Some(Ok(stat)) => stat.is_some(),
        Some(Err(_)) | None => answers(pid),
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
        // It may exist: starting it will show.
        Err(error) => limits::is_passing(&error),
    }
}

/// The parent of a process; none if there is no such process, or if the system does not say.
#[must_use]
pub(super) fn parent(pid: u32) -> Option<u32> {
    stat(pid).map(|stat| stat.parent)
}

/// The parents of a process, nearest first, at most `max`; the system's first process is left out.
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

/// Of a pane's process, the program in front: the leader of the foreground group of its terminal, or that process
/// itself where there is none; none if it is gone, or is nothing that we may look at.
///
/// # Errors
/// There was no way to look, and that may pass.
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

/// The arguments of a process, program first; what is not UTF-8 in them is replaced.
#[must_use]
pub fn argv(pid: u32) -> Option<Vec<String>> {
    arguments(pid).ok().flatten()
}

/// A variable of the environment that a process was started with.
#[must_use]
pub fn environ_var(pid: u32, name: &str) -> Option<String> {
    environment(pid, name).ok().flatten()
}

/// As [`argv`].
///
/// # Errors
/// There was no way to look, and that may pass.
pub fn arguments(pid: u32) -> io::Result<Option<Vec<String>>> {
    system::arguments(pid)
}

/// As [`environ_var`].
///
/// # Errors
/// There was no way to look, and that may pass.
pub fn environment(pid: u32, name: &str) -> io::Result<Option<String>> {
    system::environment(pid, name)
}

/// The whole environment that a process was started with: names and values, without what is not UTF-8. Empty where the
/// system does not say; see [`READS_ENVIRONMENTS`].
///
/// # Errors
/// There was no way to look, and that may pass.
pub fn environment_all(pid: u32) -> io::Result<Vec<(String, String)>> {
    system::environment_all(pid)
}

/// Whether this system says with which environment a process of ours was started.
pub const READS_ENVIRONMENTS: bool = system::READS_ENVIRONMENTS;

/// When a process started, in milliseconds since boot; `None` if the system does not say.
///
/// `booted_ms`: when the machine was booted, in milliseconds since 1970, because some systems note the time of the day.
#[must_use]
pub fn started_ms(process: &Process, booted_ms: i64) -> Option<i64> {
    system::started_ms(process, booted_ms)
}

/// The ids of the processes of this machine, at most 20,000; none if the system does not say.
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
        child.kill().expect("our own child");
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while is_alive(&process) {
            assert!(std::time::Instant::now() < deadline, "it was killed");
            std::thread::yield_now();
        }
        child.wait().expect("our own child");
        assert_eq!(identify(process.pid), None);
    }

    #[test]
    fn our_own_arguments_can_be_read() {
        let argv = argv(std::process::id()).expect("we run");
        assert_eq!(argv.first().map(String::as_str), std::env::args().next().as_deref());
    }
}
