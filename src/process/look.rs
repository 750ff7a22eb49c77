//! Which process has an id, whether it runs, and how it was started.

use crate::child::answers;
use crate::core::pane::Process;
use crate::limits;
use std::io;
use std::path::Path;

/// The most that is read of a process's arguments, in bytes.
#[cfg(target_os = "linux")]
const MAX_ARGV_BYTES: u64 = 256 * 1024;

/// The most that is read of a process's environment, in bytes.
#[cfg(target_os = "linux")]
const MAX_ENVIRON_BYTES: u64 = 4 * 1024 * 1024;

/// What `/proc/<pid>/stat` says, as far as we need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    state: u8,
    parent: u32,
    /// The foreground group of its terminal; -1 if it has none.
    foreground: i64,
    start_ticks: u64,
}

/// What a look at a process has told. That we could not look says nothing of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessState {
    Alive,
    Gone,
    /// There was no way to look: something is short.
    Unknown,
}

/// The time at which a process started, in clock ticks since boot; `None` if there is no such process, or if the system
/// does not say.
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

/// The same, but a failed look is an error.
fn look_up(pid: u32) -> io::Result<Option<Process>> {
    Ok(match look(pid)? {
        Some(stat) => Some(Process { pid, start_ticks: stat.start_ticks }),
        None if !cfg!(target_os = "linux") && answers(pid) => Some(Process { pid, start_ticks: 0 }),
        None => None,
    })
}

/// Whether that very process still runs. A zombie does not: it has ended, and only its parent has not looked.
#[must_use]
pub fn life(process: &Process) -> ProcessState {
    if !cfg!(target_os = "linux") {
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
    match cfg!(target_os = "linux").then(|| look(pid)) {
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
#[cfg(target_os = "linux")]
pub fn arguments(pid: u32) -> io::Result<Option<Vec<String>>> {
    let Some(bytes) = limits::of_proc(read_proc(pid, "cmdline", MAX_ARGV_BYTES))? else { return Ok(None) };
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    if bytes.is_empty() {
        return Ok(None);
    }
    Ok(Some(bytes.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect()))
}

/// As [`argv`].
///
/// # Errors
/// `ps` could not be started.
#[cfg(not(target_os = "linux"))]
pub fn arguments(pid: u32) -> io::Result<Option<Vec<String>>> {
    let output = std::process::Command::new("/bin/ps").args(["-o", "args=", "-p", &pid.to_string()]).output()?;
    let words: Vec<String> = String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect();
    Ok((!words.is_empty()).then_some(words))
}

/// As [`environ_var`].
///
/// # Errors
/// There was no way to look, and that may pass.
#[cfg(target_os = "linux")]
pub fn environment(pid: u32, name: &str) -> io::Result<Option<String>> {
    let bytes = limits::of_proc(read_proc(pid, "environ", MAX_ENVIRON_BYTES))?;
    Ok(bytes.and_then(|bytes| variable(&bytes, name)))
}

/// The whole environment that a process was started with: names and values, without what is not UTF-8.
///
/// # Errors
/// There was no way to look, and that may pass.
#[cfg(target_os = "linux")]
pub fn environment_all(pid: u32) -> io::Result<Vec<(String, String)>> {
    let bytes = limits::of_proc(read_proc(pid, "environ", MAX_ENVIRON_BYTES))?.unwrap_or_default();
    let variable = |entry: &[u8]| {
        let (name, value) = std::str::from_utf8(entry).ok()?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    Ok(bytes.split(|byte| *byte == 0).filter_map(variable).collect())
}

/// The whole environment that a process was started with: not to be had on this system.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn environment_all(_pid: u32) -> io::Result<Vec<(String, String)>> {
    Ok(Vec::new())
}

/// A variable of the environment that a process was started with: not to be had on this system.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn environment(_pid: u32, _name: &str) -> io::Result<Option<String>> {
    Ok(None)
}

#[cfg(any(target_os = "linux", test))]
fn variable(environ: &[u8], name: &str) -> Option<String> {
    let value = |entry: &[u8]| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec);
    String::from_utf8(environ.split(|byte| *byte == 0).find_map(value)?).ok()
}

#[cfg(target_os = "linux")]
fn read_proc(pid: u32, file: &str, limit: u64) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(format!("/proc/{pid}/{file}"))?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What `/proc` says about a process; none if there is no such process. An error says nothing about it.
#[cfg(target_os = "linux")]
fn look(pid: u32) -> io::Result<Option<Stat>> {
    match read_proc(pid, "stat", 4096) {
        Ok(line) => Ok(parse_stat(&line)),
        Err(error) if limits::is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn look(pid: u32) -> io::Result<Option<Stat>> {
    Ok(stat(pid))
}

#[cfg(target_os = "linux")]
fn stat(pid: u32) -> Option<Stat> {
    look(pid).ok().flatten()
}

#[cfg(not(target_os = "linux"))]
fn stat(pid: u32) -> Option<Stat> {
    let ask = ["-o", "state=,ppid=,tpgid=", "-p", &pid.to_string()].map(str::to_owned);
    let output = std::process::Command::new("/bin/ps").args(ask).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut words = text.split_whitespace();
    let state = *words.next()?.as_bytes().first()?;
    Some(Stat { state, parent: words.next()?.parse().ok()?, foreground: words.next()?.parse().ok()?, start_ticks: 0 })
}

/// The program's name, in brackets, may hold anything; the fields begin after the last bracket.
#[cfg(any(target_os = "linux", test))]
fn parse_stat(line: &[u8]) -> Option<Stat> {
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&line[close + 1..]).ok()?;
    let field: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Stat {
        state: *field.first()?.as_bytes().first()?,
        parent: field.get(1)?.parse().ok()?,
        foreground: field.get(5)?.parse().ok()?,
        start_ticks: field.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "linux")]
    use std::process::{Child, Command, Stdio};
    #[cfg(target_os = "linux")]
    use std::time::Duration;

    #[cfg(target_os = "linux")]
    fn sleeper() -> Child {
        Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().expect("sleep is everywhere")
    }

    #[test]
    fn a_program_name_may_hold_brackets_and_blanks() {
        let line = b"42 (a) b (c)) S 7 42 42 34816 99 4194304 1 2 3 4 5 6 7 8 20 0 1 0 123456 1000 200";
        let stat = parse_stat(line).expect("a stat line");
        assert_eq!(stat, Stat { state: b'S', parent: 7, foreground: 99, start_ticks: 123_456 });
        assert_eq!(parse_stat(b"42 (a"), None);
    }

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environ = b"XTASUKI_HOME=/x\0TASUKI_HOME=/h=1\0A=b\0";
        assert_eq!(variable(environ, "TASUKI_HOME").as_deref(), Some("/h=1"));
        assert_eq!(variable(environ, "TASUKI"), None);
    }

    #[cfg(target_os = "linux")]
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

    #[cfg(target_os = "linux")]
    #[test]
    fn our_own_arguments_can_be_read() {
        let argv = argv(std::process::id()).expect("we run");
        assert_eq!(argv.first().map(String::as_str), std::env::args().next().as_deref());
    }
}
