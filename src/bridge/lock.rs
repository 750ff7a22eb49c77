//! `fleet/lock`: the lock that lets only one bridge run on a home. `join` makes the file, `leave` removes it, and
//! nothing replaces it.

use super::folder::FleetFolder;
use crate::cli::error::CliError;
use crate::cli::hosts::no_fleet;
use crate::exit;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::time::{Duration, Instant};

/// The file's name.
pub(super) const LOCK: &str = "lock";
/// How long taking the lock is tried. A command that looks whether a bridge runs also holds it, for a moment.
const TRY_FOR: Duration = Duration::from_secs(1);
/// The pause between two tries.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// Opening the file does not follow a link, and does not block if a pipe lies in its place.
const FLAGS: i32 = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;

/// The held lock. Dropping it releases the lock.
pub(super) type BridgeLock = Flock<File>;

/// Takes the home's lock.
///
/// # Errors
/// 75 `bridge_runs` if a bridge holds it; this home has joined no fleet.
pub(super) fn lock(folder: &FleetFolder) -> Result<BridgeLock, CliError> {
    let path = folder.path("", LOCK);
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => no_fleet(),
        _ => CliError::file("Can't lock", &path, &error),
    };
    let mut file = open(folder).map_err(failed)?;
    let end = Instant::now() + TRY_FOR;
    let held = loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(held) => break held,
            Err((again, Errno::EWOULDBLOCK)) if Instant::now() < end => file = again,
            Err((_, Errno::EWOULDBLOCK)) => return Err(bridge_runs(folder)),
            Err((_, error)) => return Err(failed(error.into())),
        }
        std::thread::sleep(TRY_EVERY);
    };
    // `leave` removes the file while it holds the lock. So the file that was waited for may be gone, or another one by
    // now.
    let named = std::fs::symlink_metadata(&path).map_err(failed)?;
    let own = held.metadata().map_err(failed)?;
    if (named.dev(), named.ino()) == (own.dev(), own.ino()) { Ok(held) } else { Err(no_fleet()) }
}

fn bridge_runs(folder: &FleetFolder) -> CliError {
    let message = format!("A tasuki-fleet runs on {} already.", folder.path("", "").display());
    CliError::new(exit::TRY_AGAIN, "bridge_runs", message)
        .hint("To stop it: tasuki fleet service uninstall, or end `tasuki fleet run`.")
}

/// Opens the file. Fails if it is a link, a pipe or anything else than a plain file.
fn open(folder: &FleetFolder) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(FLAGS).open(folder.path("", LOCK))?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a plain file")) }
}

/// Makes the file, if it is missing.
///
/// # Errors
/// The system's, or something else lies there.
pub(super) fn make_lock(folder: &FleetFolder) -> Result<(), CliError> {
    let path = folder.path("", LOCK);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(FLAGS);
    let made = options.open(&path).and_then(|_| open(folder));
    made.map(drop).map_err(|error| CliError::file("Can't make", &path, &error))
}

/// Whether somebody holds the lock: a bridge, or a command such as `leave`.
#[must_use]
pub(super) fn is_running(folder: &FleetFolder) -> bool {
    let held = open(folder).map(|file| Flock::lock(file, FlockArg::LockSharedNonblock));
    matches!(held, Ok(Err((_, Errno::EWOULDBLOCK))))
}

#[cfg(test)]
mod tests {
    use super::super::folder::of_test;
    use super::*;

    #[test]
    fn one_bridge_holds_the_lock_and_a_look_sees_it() {
        let (_dir, _, folder) = of_test();
        assert_eq!(lock(&folder).expect_err("no fleet").code, "no_fleet");
        make_lock(&folder).expect("made");
        assert!(!is_running(&folder));
        let held = lock(&folder).expect("free");
        assert!(is_running(&folder));
        assert_eq!(lock(&folder).expect_err("held").code, "bridge_runs");
        drop(held);
        assert!(!is_running(&folder) && lock(&folder).is_ok());
    }

    #[test]
    fn a_look_does_not_stop_a_bridge_from_starting() {
        let (_dir, _, folder) = of_test();
        make_lock(&folder).expect("made");
        let look = Flock::lock(open(&folder).expect("there"), FlockArg::LockSharedNonblock).expect("free");
        let ends = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            drop(look);
        });
        assert!(lock(&folder).is_ok());
        ends.join().expect("it ends");
    }

    #[test]
    fn a_lock_that_was_waited_for_does_not_count_if_the_home_has_left_meanwhile() {
        let (_dir, _, folder) = of_test();
        make_lock(&folder).expect("made");
        let leaves = lock(&folder).expect("free");
        let starts = std::thread::spawn({
            let folder = folder.clone();
            move || lock(&folder)
        });
        std::thread::sleep(Duration::from_millis(200));
        folder.remove("", LOCK).expect("removed");
        drop(leaves);
        assert_eq!(starts.join().expect("it ends").expect_err("it has left").code, "no_fleet");
    }

    #[test]
    fn a_pipe_or_a_link_is_not_a_lock_and_does_not_block() {
        let (_dir, _, folder) = of_test();
        nix::unistd::mkfifo(&folder.path("", LOCK), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        assert!(!is_running(&folder) && lock(&folder).is_err() && make_lock(&folder).is_err());
        folder.remove("", LOCK).expect("removed");
        std::os::unix::fs::symlink("elsewhere", folder.path("", LOCK)).expect("a link");
        assert!(!is_running(&folder) && lock(&folder).is_err() && make_lock(&folder).is_err());
    }
}
