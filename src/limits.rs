//! What the system lets this process have: how many files it may hold open, and whether it is short of them. That a thing
//! could not be looked at says nothing of the thing; this says why it could not.

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs::File;

/// The most descriptors that we ask for: one for each agent and some, and no burden for a child that closes every one.
const MOST: u64 = 65_536;
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
pub fn is_shortage(error: &std::io::Error) -> bool {
    let short = [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, Errno::ENOBUFS, Errno::EAGAIN];
    error.raw_os_error().is_some_and(|code| short.contains(&Errno::from_raw(code)))
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

fn in_words(error: &std::io::Error) -> Option<String> {
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
