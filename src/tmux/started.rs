//! The environment and the arguments that a process of a pane was started with: they show whether tasuki started it.

use std::io;

/// The variable that holds the creation id.
pub(super) const VARIABLE: &str = "TASUKI_CREATION";
/// The most bytes that are read of an environment.
#[cfg(all(target_os = "linux", not(tasuki_portable)))]
const MAX_ENVIRONMENT: u64 = 2 * 1024 * 1024;

/// Whether a process was started with this creation's id. A process that has ended, or that belongs to another user,
/// counts as another one.
#[cfg(all(target_os = "linux", not(tasuki_portable)))]
pub(super) fn was_started_by(pid: u32, creation: &str) -> io::Result<bool> {
    use std::io::Read as _;
    let mut environment = Vec::new();
    let file = std::fs::File::open(format!("/proc/{pid}/environ"));
    match file.and_then(|file| file.take(MAX_ENVIRONMENT).read_to_end(&mut environment)) {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {}
        Err(error) if error.raw_os_error() == Some(nix::libc::ESRCH) => {}
        Err(error) => return Err(error),
    }
    let wanted = format!("{VARIABLE}={creation}");
    Ok(environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
}

/// Whether a process was started with this creation's id. A process that has ended, or that belongs to another user,
/// counts as another one.
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

/// Whether a process is a control client of ours in the session of that name.
#[cfg(all(target_os = "linux", not(tasuki_portable)))]
pub(super) fn is_our_client(pid: u32, session: &str) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = line.split(|byte| *byte == 0);
    words.clone().any(|word| word == b"-C") && words.any(|word| word == session.as_bytes())
}

/// Whether a process is a control client of ours in the session of that name.
#[cfg(all(target_os = "macos", not(tasuki_portable)))]
pub(super) fn is_our_client(pid: u32, session: &str) -> bool {
    let bytes = crate::darwin::start_bytes(pid).unwrap_or_default();
    crate::darwin::start_words(&bytes).is_some_and(|words| {
        let mut words = words.arguments.into_iter();
        words.clone().any(|word| word == b"-C") && words.any(|word| word == session.as_bytes())
    })
}

/// Where no arguments can be read, the answer of the server, that this is a control client in our private session, has
/// to do.
#[cfg(any(tasuki_portable, not(any(target_os = "linux", target_os = "macos"))))]
pub(super) fn is_our_client(pid: u32, _session: &str) -> bool {
    crate::child::answers(pid)
}
