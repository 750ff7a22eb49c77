//! What the system lets this process have: how many files it may hold open, and whether it is short of them. That a thing
//! could not be looked at says nothing of the thing; this says why it could not.

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs::File;
use std::io;

/// The most descriptors that we ask for: one for each agent and some, and no burden for a child that closes every one.
const MOST: u64 = 65_536;
/// The stack of a thread that does nothing, in bytes.
const LITTLE: usize = 64 * 1024;
/// With fewer than this left, a look may fail half way.
const SPARE: usize = 4;

/// Lifts this process's own limit on open files as far as the system lets it, for it holds one for each agent.
pub fn raise() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let wanted = hard.min(MOST);
    if soft < wanted
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, wanted, hard)
    {
        tracing::warn!(%error, soft, "the limit on open files could not be raised");
    }
}

/// Whether an error says that something is short, and nothing of what was looked at.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    let short = [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, Errno::ENOBUFS, Errno::EAGAIN];
    error.raw_os_error().is_some_and(|code| short.contains(&Errno::from_raw(code)))
}

/// Whether an error may pass by itself: something is short, or a disk does not answer. It says nothing of what was looked
/// at, and another look may.
#[must_use]
pub fn is_passing(error: &io::Error) -> bool {
    let passing = [Errno::EIO, Errno::EINTR, Errno::ESTALE, Errno::ETIMEDOUT];
    is_shortage(error) || error.raw_os_error().is_some_and(|code| passing.contains(&Errno::from_raw(code)))
}

/// Whether an error says nothing of what was looked at: it may pass, or we may not look there.
#[must_use]
pub fn tells_nothing(error: &io::Error) -> bool {
    is_passing(error) || error.kind() == io::ErrorKind::PermissionDenied
}

/// Whether an error says that what was looked for is not there.
#[must_use]
pub fn is_absence(error: &io::Error) -> bool {
    let absent = [Errno::ENOENT, Errno::ENOTDIR, Errno::ESRCH];
    error.raw_os_error().is_some_and(|code| absent.contains(&Errno::from_raw(code)))
}

/// What a read of `/proc` has told: none where there is no such process, or it is nothing that we may ever look at.
///
/// # Errors
/// Those that may pass: another look may tell.
pub fn of_proc<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(told) => Ok(Some(told)),
        Err(error) if is_passing(&error) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Says it for people if hardly a file can be opened any more.
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

/// Says it for people if no thread can be begun, nor any other process then.
#[must_use]
pub fn no_thread() -> Option<String> {
    // Its end is not waited for: it does nothing, and the loop that asks has no time to lose.
    let begun = std::thread::Builder::new().name("look".to_owned()).stack_size(LITTLE).spawn(|| ());
    let error = begun.err()?;
    Some(format!(
        "no thread or process can be begun ({error}); nothing is lost by it, and what needs one waits; end other \
         programs, or raise the limit (ulimit -u, TasksMax, pids.max)"
    ))
}

/// What is short and what helps, if this error says that something is.
#[must_use]
pub fn in_words(error: &io::Error) -> Option<String> {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EMFILE) => {
            let most =
                getrlimit(Resource::RLIMIT_NOFILE).map_or_else(|_| String::new(), |(soft, _)| format!(" of {soft}"));
            Some(format!(
                "hardly a file descriptor{most} is left; nobody is taken for dead meanwhile, and work waits; \
                 raise the limit (ulimit -n, LimitNOFILE) and start again"
            ))
        }
        Some(Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS) => Some(format!(
            "the machine lets nobody open files ({error}); nobody is taken for dead meanwhile, and work waits; end \
             other programs"
        )),
        // Without a /dev/null nothing can be told this way.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(errno: Errno) -> io::Error {
        errno.into()
    }

    #[test]
    fn an_error_is_a_shortage_an_absence_or_neither() {
        for short in [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM] {
            assert!(is_shortage(&error(short)) && is_passing(&error(short)) && !is_absence(&error(short)), "{short}");
        }
        assert!(
            is_passing(&error(Errno::EIO)) && tells_nothing(&error(Errno::EIO)) && !is_shortage(&error(Errno::EIO))
        );
        assert!(tells_nothing(&error(Errno::EACCES)) && !is_passing(&error(Errno::EACCES)));
        for absent in [Errno::ENOENT, Errno::ENOTDIR, Errno::ESRCH] {
            assert!(is_absence(&error(absent)) && !tells_nothing(&error(absent)), "{absent}");
        }
    }

    #[test]
    fn what_proc_could_not_tell_for_the_moment_is_an_error_and_all_else_is_told() {
        assert_eq!(of_proc(Ok(7)).ok(), Some(Some(7)));
        assert_eq!(of_proc::<u8>(Err(error(Errno::ESRCH))).ok(), Some(None));
        assert_eq!(of_proc::<u8>(Err(error(Errno::EACCES))).ok(), Some(None), "somebody else's process stays so");
        assert!(of_proc::<u8>(Err(error(Errno::EMFILE))).is_err());
    }
}
