//! The limits of the machine: how many files this process may hold open, and whether it runs out of files or threads. A
//! check that fails for want of them says nothing about the file or process that was checked.

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs::File;
use std::io;

/// The most descriptors that we ask for: enough for one for each agent, and few enough for a child that closes them
/// all. macOS refuses more than its own limit of a process (`kern.maxfilesperproc`) instead of cutting it, and that is
/// never less than this.
const MOST: u64 = if cfg!(target_os = "macos") { 10_240 } else { 65_536 };
/// The stack of a thread that does nothing, in bytes.
const LITTLE: usize = 64 * 1024;
/// With fewer descriptors left than this, a check may fail half-way.
const SPARE: usize = 4;

/// Raises this process's own limit on open files as far as the system allows, because it holds one for each agent.
pub fn raise() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let wanted = hard.min(MOST);
    if soft < wanted
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, wanted, hard)
    {
        tracing::warn!(%error, soft, "could not raise the limit on open files");
    }
}

/// Whether an error means that the system is short of something, and so says nothing about the file or process.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    let short = [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, Errno::ENOBUFS, Errno::EAGAIN];
    error.raw_os_error().is_some_and(|code| short.contains(&Errno::from_raw(code)))
}

/// Whether an error may be temporary: a shortage, or a disk that does not answer. It says nothing about the file or
/// process, and another try may succeed.
#[must_use]
pub fn is_passing(error: &io::Error) -> bool {
    let passing = [Errno::EIO, Errno::EINTR, Errno::ESTALE, Errno::ETIMEDOUT];
    is_shortage(error) || error.raw_os_error().is_some_and(|code| passing.contains(&Errno::from_raw(code)))
}

/// Whether an error says nothing about the file or process: it may be temporary, or we lack permission.
#[must_use]
pub fn is_unavailable(error: &io::Error) -> bool {
    is_passing(error) || error.kind() == io::ErrorKind::PermissionDenied
}

/// Whether an error says that the file or process does not exist.
#[must_use]
pub fn is_absence(error: &io::Error) -> bool {
    let absent = [Errno::ENOENT, Errno::ENOTDIR, Errno::ESRCH];
    error.raw_os_error().is_some_and(|code| absent.contains(&Errno::from_raw(code)))
}

/// The result of reading `/proc`: none if there is no such process, or if we are not allowed to read about it.
///
/// # Errors
/// Temporary errors: another try may succeed.
pub fn of_proc<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(told) => Ok(Some(told)),
        Err(error) if is_passing(&error) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Gives memory that was freed back to the system, which glibc by itself does only at the end of the heap: after a busy
/// time the rest would be held for months. Takes a few milliseconds at most.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
pub fn give_back_memory() {
    // SAFETY: the call takes a number, and touches only memory that nobody uses.
    unsafe { nix::libc::malloc_trim(0) };
}

/// Here the allocator does it by itself, or has no call for it.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back_memory() {}

/// A message if hardly any more files can be opened.
#[must_use]
pub fn shortage() -> Option<String> {
    let mut spare = Vec::with_capacity(SPARE);
    while spare.len() < SPARE {
        match File::open("/dev/null") {
            Ok(file) => spare.push(file),
            Err(error) => return in_words(&error),
        }
    }
    None
}

/// A message if no thread can be started. Then no process can be started either.
#[must_use]
pub fn no_thread() -> Option<String> {
    // The thread does nothing, and the loop that asks must not wait for its end.
    let begun = std::thread::Builder::new().name("look".to_owned()).stack_size(LITTLE).spawn(|| ());
    let error = begun.err()?;
    Some(format!(
        "the system lets tasuki start no further thread or process ({error}); nothing is lost, and work that needs one \
         waits; end other programs, or raise the limit (ulimit -u, TasksMax, pids.max)"
    ))
}

/// What the system is short of, and what helps, if this error means a shortage.
#[must_use]
pub fn short_of(error: &io::Error) -> Option<(String, &'static str)> {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EMFILE) => {
            let most = getrlimit(Resource::RLIMIT_NOFILE)
                .map_or_else(|_| String::new(), |(soft, _)| format!(" (its limit is {soft})"));
            let what = format!("tasuki has hardly any file descriptors left{most}");
            Some((what, "raise the limit (ulimit -n, LimitNOFILE)"))
        }
        Some(Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS) => {
            Some((format!("the system can't open more files ({error})"), "end other programs"))
        }
        // Without a /dev/null this check can't tell.
        _ => None,
    }
}

/// A message of a running sidecar about what the system is short of and what helps.
fn in_words(error: &io::Error) -> Option<String> {
    let (what, fix) = short_of(error)?;
    let restart = if fix.starts_with("raise") { " and restart the sidecar" } else { "" };
    Some(format!("{what}; meanwhile no agent is taken for dead, and work waits; {fix}{restart}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn memory_below_something_that_is_still_used_is_given_back() {
        let resident_kib = || -> u64 {
            let status = std::fs::read_to_string("/proc/self/status").expect("we run");
            let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux tells");
            line.trim().trim_end_matches(" kB").parse().expect("a number")
        };
        let mut pieces: Vec<Box<[u8; 1024]>> = (0..64 * 1024).map(|_| Box::new([1; 1024])).collect();
        let last = pieces.pop();
        drop(pieces);
        let held = resident_kib();
        give_back_memory();
        let left = resident_kib();
        assert!(last.is_some() && left + 32 * 1024 < held, "{held} KiB, then {left} KiB");
    }

    fn error(errno: Errno) -> io::Error {
        errno.into()
    }

    #[test]
    fn an_error_is_a_shortage_an_absence_or_neither() {
        for short in [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM] {
            assert!(is_shortage(&error(short)) && is_passing(&error(short)) && !is_absence(&error(short)), "{short}");
        }
        assert!(
            is_passing(&error(Errno::EIO)) && is_unavailable(&error(Errno::EIO)) && !is_shortage(&error(Errno::EIO))
        );
        assert!(is_unavailable(&error(Errno::EACCES)) && !is_passing(&error(Errno::EACCES)));
        for absent in [Errno::ENOENT, Errno::ENOTDIR, Errno::ESRCH] {
            assert!(is_absence(&error(absent)) && !is_unavailable(&error(absent)), "{absent}");
        }
    }

    #[test]
    fn a_temporary_error_of_proc_is_an_error_and_a_missing_process_is_none() {
        assert_eq!(of_proc(Ok(7)).ok(), Some(Some(7)));
        assert_eq!(of_proc::<u8>(Err(error(Errno::ESRCH))).ok(), Some(None));
        assert_eq!(of_proc::<u8>(Err(error(Errno::EACCES))).ok(), Some(None), "somebody else's process stays so");
        assert!(of_proc::<u8>(Err(error(Errno::EMFILE))).is_err());
    }
}
