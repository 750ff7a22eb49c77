//! Reads the environment and the arguments that a process was started with, and its parent. They show whether tasuki
//! started the process, and which process of tasuki did.

use std::io;

/// The variable that holds the creation id.
pub(super) const VARIABLE: &str = "TASUKI_CREATION";
/// The most bytes of an environment that are read.
#[cfg(all(target_os = "linux", not(tasuki_portable)))]
const MAX_ENVIRONMENT: u64 = 2 * 1024 * 1024;

/// Whether a process was started with this creation's id. `false` for a process that has ended or belongs to another
/// user.
///
/// # Errors
/// The process can't be looked at. If it forbids that, as Codex does, the error is `PermissionDenied`.
#[cfg(all(target_os = "linux", not(tasuki_portable)))]
pub(super) fn was_started_by(pid: u32, creation: &str) -> io::Result<bool> {
    use std::io::Read as _;
    let mut environment = Vec::new();
    let file = std::fs::File::open(format!("/proc/{pid}/environ"));
    match file.and_then(|file| file.take(MAX_ENVIRONMENT).read_to_end(&mut environment)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && is_another_users(pid) => {}
        Err(error) if error.raw_os_error() == Some(nix::libc::ESRCH) => {}
        Err(error) => return Err(error),
    }
    let wanted = format!("{VARIABLE}={creation}");
    Ok(environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
}

/// Whether a process was started with this creation's id. `false` for a process that has ended or belongs to another
/// user.
#[cfg(all(target_os = "macos", not(tasuki_portable)))]
pub(super) fn was_started_by(pid: u32, creation: &str) -> io::Result<bool> {
    let Some(bytes) = crate::limits::of_proc(crate::darwin::start_bytes(pid))? else { return Ok(false) };
    let wanted = format!("{VARIABLE}={creation}");
    let words = crate::darwin::start_words(&bytes);
    Ok(words.is_some_and(|words| words.environment.contains(&wanted.as_bytes())))
}

/// Where no environment can be read, only the pane's option shows which creation made the pane.
#[cfg(any(tasuki_portable, not(any(target_os = "linux", target_os = "macos"))))]
pub(super) fn was_started_by(_pid: u32, _creation: &str) -> io::Result<bool> {
    Ok(false)
}

/// Whether a process is our control client in the session of that name, by its arguments.
///
/// # Errors
/// The process can't be looked at now, but perhaps later.
#[cfg(all(any(target_os = "linux", target_os = "macos"), not(tasuki_portable)))]
pub(super) fn is_our_client(pid: u32, session: &str) -> io::Result<bool> {
    let words = arguments(pid)?.unwrap_or_default();
    Ok(words.iter().any(|word| word == b"-C") && words.iter().any(|word| word == session.as_bytes()))
}

/// The server has said that this is a control client in our private session. On this system that has to be enough, and
/// only whether the process runs is checked.
#[cfg(any(tasuki_portable, not(any(target_os = "linux", target_os = "macos"))))]
#[allow(clippy::unnecessary_wraps)]
pub(super) fn is_our_client(pid: u32, _session: &str) -> io::Result<bool> {
    Ok(crate::child::answers(pid))
}

/// The arguments of a process, program first; `None` if there is no such process, if it is just starting or ending, or
/// if we may not look at it.
///
/// # Errors
/// The process can't be looked at now, but perhaps later.
#[cfg(all(target_os = "linux", not(tasuki_portable)))]
pub(super) fn arguments(pid: u32) -> io::Result<Option<Vec<Vec<u8>>>> {
    let line = crate::limits::of_proc(std::fs::read(format!("/proc/{pid}/cmdline")))?.unwrap_or_default();
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    Ok((!line.is_empty()).then(|| line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()))
}

/// The arguments of a process, program first; `None` if there is no such process, or if we may not look at it.
///
/// # Errors
/// The process can't be looked at now, but perhaps later.
#[cfg(all(target_os = "macos", not(tasuki_portable)))]
pub(super) fn arguments(pid: u32) -> io::Result<Option<Vec<Vec<u8>>>> {
    let bytes = crate::limits::of_proc(crate::darwin::start_bytes(pid))?.unwrap_or_default();
    let words = crate::darwin::start_words(&bytes).map(|words| words.arguments).unwrap_or_default();
    Ok((!words.is_empty()).then(|| words.into_iter().map(<[u8]>::to_vec).collect()))
}

/// The arguments of a process, program first; `None` if `ps` prints none. An argument with blanks counts as several.
///
/// # Errors
/// `ps` can't be run.
#[cfg(any(tasuki_portable, not(any(target_os = "linux", target_os = "macos"))))]
pub(super) fn arguments(pid: u32) -> io::Result<Option<Vec<Vec<u8>>>> {
    let words: Vec<Vec<u8>> = ps("args=", pid)?.split_whitespace().map(|word| word.as_bytes().to_vec()).collect();
    Ok((!words.is_empty()).then_some(words))
}

/// The parent of a process, 0 if the parent is in another container; `None` if there is no such process.
///
/// # Errors
/// The process can't be looked at now, but perhaps later.
#[cfg(all(target_os = "linux", not(tasuki_portable)))]
pub(super) fn parent(pid: u32) -> io::Result<Option<u32>> {
    let line = crate::limits::of_proc(std::fs::read(format!("/proc/{pid}/stat")))?.unwrap_or_default();
    // The program's name, in brackets, may hold anything; the state and the parent stand after the last bracket.
    let rest = line.rsplit(|byte| *byte == b')').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(rest).split_whitespace().nth(1).and_then(|word| word.parse().ok()))
}

/// The parent of a process; `None` if there is no such process.
///
/// # Errors
/// The process can't be looked at now, but perhaps later.
#[cfg(all(target_os = "macos", not(tasuki_portable)))]
pub(super) fn parent(pid: u32) -> io::Result<Option<u32>> {
    Ok(crate::limits::of_proc(crate::darwin::bsd_facts(pid))?.map(|facts| facts.parent))
}

/// The parent of a process; `None` if there is no such process.
///
/// # Errors
/// `ps` can't be run.
#[cfg(any(tasuki_portable, not(any(target_os = "linux", target_os = "macos"))))]
pub(super) fn parent(pid: u32) -> io::Result<Option<u32>> {
    Ok(ps("ppid=", pid)?.trim().parse().ok())
}

/// What `ps` prints about a process. All systems have `ps` in `/bin`.
#[cfg(any(tasuki_portable, not(any(target_os = "linux", target_os = "macos"))))]
fn ps(what: &str, pid: u32) -> io::Result<String> {
    let output = std::process::Command::new("/bin/ps").args(["-o", what, "-p", &pid.to_string()]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a process belongs to another user.
pub(super) fn is_another_users(pid: u32) -> bool {
    let Ok(pid) = i32::try_from(pid) else { return false };
    pid > 0 && nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None) == Err(nix::errno::Errno::EPERM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_child_of_ours_has_us_for_its_parent() {
        let mut child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().expect("sleep is everywhere");
        assert_eq!(parent(child.id()).expect("it is there"), Some(std::process::id()));
        let own = arguments(std::process::id()).expect("it is there").expect("we run");
        assert_eq!(own.len(), std::env::args_os().len(), "{own:?}");
        assert!(!is_another_users(child.id()) && !is_another_users(0));
        child.kill().expect("our own child");
        child.wait().expect("our own child");
        assert_eq!(parent(child.id()).ok().flatten(), None);
    }
}
