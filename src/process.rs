//! Processes of this machine: who they are, whether they live, and the moment at which they end.

use crate::core::pane::Process;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The most that is read of a process's arguments, in bytes.
#[cfg(target_os = "linux")]
const MAX_ARGV_BYTES: u64 = 256 * 1024;
/// The most that is read of a process's environment, in bytes.
#[cfg(target_os = "linux")]
const MAX_ENVIRON_BYTES: u64 = 4 * 1024 * 1024;
/// How often a process is looked at where its end can't be waited for.
const POLL: Duration = Duration::from_millis(500);
/// The most processes that are watched at once.
const MAX_WATCHED: usize = 4_096;
/// The most ends that wait to be received.
const QUEUE: usize = 256;

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
pub enum Life {
    /// It runs.
    Alive,
    /// It has ended.
    Gone,
    /// There was no way to look: something is short.
    Unknown,
}

/// The time at which a process started, in clock ticks since boot; `None` if there is no such process, or no way to know.
#[must_use]
pub fn start_ticks(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.start_ticks)
}

/// A process with all that identifies it; `None` if there is none of that id. It may be a zombie.
#[must_use]
pub fn identify(pid: u32) -> Option<Process> {
    match stat(pid) {
        Some(stat) => Some(Process { pid, start_ticks: stat.start_ticks }),
        None if !cfg!(target_os = "linux") && answers(pid) => Some(Process { pid, start_ticks: 0 }),
        None => None,
    }
}

/// Whether that very process still runs. A zombie does not: it has ended, and only its parent has not looked.
#[must_use]
pub fn life(process: &Process) -> Life {
    if !cfg!(target_os = "linux") {
        return if answers(process.pid) { Life::Alive } else { Life::Gone };
    }
    match look(process.pid) {
        Ok(Some(stat)) if stat.start_ticks == process.start_ticks && !matches!(stat.state, b'Z' | b'X' | b'x') => {
            Life::Alive
        }
        Ok(_) => Life::Gone,
        // A signal needs no descriptor, and tells of an id that nobody has.
        Err(_) if !answers(process.pid) => Life::Gone,
        Err(_) => Life::Unknown,
    }
}

/// Whether that very process still runs, as far as is known: only one that is known to be gone is not alive.
#[must_use]
pub fn is_alive(process: &Process) -> bool {
    life(process) != Life::Gone
}

/// Whether there is a process of that id, a zombie included, as far as is known.
#[must_use]
pub fn exists(pid: u32) -> bool {
    match cfg!(target_os = "linux").then(|| look(pid)) {
        Some(Ok(stat)) => stat.is_some(),
        Some(Err(_)) | None => answers(pid),
    }
}

/// Whether a process stands still because somebody has stopped it.
#[must_use]
pub fn is_stopped(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| matches!(stat.state, b'T' | b't'))
}

/// Whether a file is there that this user may execute.
#[must_use]
pub fn is_program(path: &Path) -> bool {
    path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
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

/// The leader of the foreground group of the terminal that a process has: of a pane's process, the program in front.
#[must_use]
pub fn foreground_leader(pid: u32) -> Option<Process> {
    let group = u32::try_from(stat(pid)?.foreground).ok().filter(|group| *group > 0)?;
    identify(group)
}

/// The arguments of a process, program first; what is not UTF-8 in them is replaced.
#[cfg(target_os = "linux")]
#[must_use]
pub fn argv(pid: u32) -> Option<Vec<String>> {
    let bytes = read_proc(pid, "cmdline", MAX_ARGV_BYTES).ok()?;
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    if bytes.is_empty() {
        return None;
    }
    Some(bytes.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect())
}

/// The arguments of a process, program first.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn argv(pid: u32) -> Option<Vec<String>> {
    let output = std::process::Command::new("/bin/ps").args(["-o", "args=", "-p", &pid.to_string()]).output().ok()?;
    let words: Vec<String> = String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect();
    (!words.is_empty()).then_some(words)
}

/// A variable of the environment that a process was started with.
#[cfg(target_os = "linux")]
#[must_use]
pub fn environ_var(pid: u32, name: &str) -> Option<String> {
    let bytes = read_proc(pid, "environ", MAX_ENVIRON_BYTES).ok()?;
    variable(&bytes, name)
}

/// A variable of the environment that a process was started with: not to be had on this system.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn environ_var(_pid: u32, _name: &str) -> Option<String> {
    None
}

#[cfg(any(target_os = "linux", test))]
fn variable(environ: &[u8], name: &str) -> Option<String> {
    let value = |entry: &[u8]| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec);
    String::from_utf8(environ.split(|byte| *byte == 0).find_map(value)?).ok()
}

#[cfg(target_os = "linux")]
fn read_proc(pid: u32, file: &str, limit: u64) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(format!("/proc/{pid}/{file}"))?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What `/proc` says of a process; none if there is no such process. An error says nothing of it.
#[cfg(target_os = "linux")]
fn look(pid: u32) -> std::io::Result<Option<Stat>> {
    let is_gone = |error: &std::io::Error| {
        error.kind() == std::io::ErrorKind::NotFound || error.raw_os_error() == Some(nix::libc::ESRCH)
    };
    match read_proc(pid, "stat", 4096) {
        Ok(line) => Ok(parse_stat(&line)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn look(pid: u32) -> std::io::Result<Option<Stat>> {
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

/// Whether there is a process of that id, ours or not.
fn answers(pid: u32) -> bool {
    let Ok(pid) = i32::try_from(pid) else { return false };
    !matches!(nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None), Err(nix::errno::Errno::ESRCH))
}

/// Tells when processes end: of each one that is watched, once.
#[derive(Debug)]
pub struct ExitWatch {
    tasks: HashMap<Process, JoinHandle<()>>,
    ended: mpsc::Sender<Process>,
}

impl ExitWatch {
    /// A watch, and where the ends come out.
    #[must_use]
    pub fn new() -> (ExitWatch, mpsc::Receiver<Process>) {
        let (ended, receiver) = mpsc::channel(QUEUE);
        (ExitWatch { tasks: HashMap::new(), ended }, receiver)
    }

    /// Watches a process until it ends; one that has ended already is told at once. `false` if too many are watched.
    /// Must be called within a tokio runtime.
    pub fn watch(&mut self, process: Process) -> bool {
        self.tasks.retain(|_, task| !task.is_finished());
        if self.tasks.contains_key(&process) {
            return true;
        }
        if self.tasks.len() >= MAX_WATCHED {
            tracing::warn!(pid = process.pid, "too many processes are watched; this one is not");
            return false;
        }
        let ended = self.ended.clone();
        let task = tokio::spawn(async move {
            wait_for_end(&process).await;
            // Nobody listens any more only at a shutdown.
            let _ = ended.send(process).await;
        });
        self.tasks.insert(process, task);
        true
    }

    /// Stops watching; an end that is already under way may still come out.
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

async fn wait_for_end(process: &Process) {
    while is_alive(process) {
        // Where no descriptor is to be had, the process is looked at again and again until there is one.
        #[cfg(target_os = "linux")]
        if let Ok(fd) = pidfd_open(process.pid)
            // Between our look and the open, the id may have been given to another process.
            && is_alive(process)
            && fd.readable().await.is_ok()
        {
            return;
        }
        tokio::time::sleep(POLL).await;
    }
}

/// A file descriptor that becomes readable when the process ends. It is not inherited by children.
#[cfg(target_os = "linux")]
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
    use std::process::{Child, Command, Stdio};

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

    #[tokio::test]
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
    async fn nothing_is_told_of_a_process_that_is_not_watched_any_more() {
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
