//! Takes the home's lock, opens the state file, or creates a new one.

use super::error::Error;
use super::tables;
use crate::child;
use redb::Database;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Memory that redb may use for pages, in bytes: its own default of 1 GiB is meant for servers.
const CACHE_BYTES: usize = 16 * 1024 * 1024;

/// A child that was being made when its sidecar was killed holds the lock until it has become another program.
const LEFT_BEHIND: Duration = Duration::from_secs(10);
/// Pause before the lock is tried again.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Takes the home's lock; the file holds the pid of its owner.
pub(super) fn lock(lock_path: &Path, state_path: &Path) -> Result<File, Error> {
    let failed = |what, why: std::io::Error| Error::Io { path: lock_path.to_path_buf(), what, why: why.to_string() };
    // The lock is written to, so a link in its place would spoil what it leads to.
    let mut file = File::options()
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(lock_path)
        .map_err(|error| failed("opened", error))?;
    let until = Instant::now() + LEFT_BEHIND;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(std::fs::TryLockError::WouldBlock) => {
                let pid: String =
                    std::fs::read_to_string(lock_path).unwrap_or_default().trim().chars().take(10).collect();
                // A pid that can't be read says nothing.
                let is_alive = pid.parse().map_or(true, child::answers);
                if is_alive || Instant::now() >= until {
                    return Err(Error::Locked { path: state_path.to_path_buf(), pid });
                }
                std::thread::sleep(LOOK_AGAIN);
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(failed("locked", error)),
        }
    }
    let pid = format!("{}\n", std::process::id());
    file.set_len(0).and_then(|()| file.write_all(pid.as_bytes())).map_err(|error| failed("written", error))?;
    Ok(file)
}

/// Device and inode of the file at a path, if it exists.
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

pub(super) fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Opens an existing file; `checked` reads all of it first, to find damage.
pub(super) fn existing(path: &Path, checked: bool) -> Result<Database, Error> {
    let unreadable = |why: String| Error::Unreadable { path: path.to_path_buf(), why };
    let length = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?.len();
    if length == 0 {
        return Err(unreadable("it is empty".to_owned()));
    }
    builder().set_check_integrity_on_open(checked).open(path).map_err(|error| match error {
        redb::DatabaseError::DatabaseAlreadyOpen => Error::Locked { path: path.to_path_buf(), pid: "unknown".into() },
        other => unreadable(other.to_string()),
    })
}

/// Creates a new file only if nothing has its name. A link that leads nowhere does not mean "no state" but a disk that
/// is not mounted, and an empty state there would forget every handoff.
pub(super) fn begin_if_new(state_dir: &Path, path: &Path) -> Result<(), Error> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => begin_new(state_dir, path),
        Err(error) => Err(Error::Io { path: path.to_path_buf(), what: "checked", why: error.to_string() }),
    }
}

/// Makes the file under another name and moves it into place when it is whole, so that a state file that is empty or
/// half made is always damage and never a beginning.
fn begin_new(state_dir: &Path, path: &Path) -> Result<(), Error> {
    let failed = |what, why: String| Error::Io { path: path.to_path_buf(), what, why };
    let fresh = state_dir.join("tasuki.redb.new");
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed("created", error.to_string())),
        _ => {}
    }
    // Ours alone from its first moment, also below a folder whose access list is handed down.
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)
        .map_err(|error| failed("created", error.to_string()))?;
    let database = builder().create(&fresh).map_err(|error| failed("created", error.to_string()))?;
    let home = uuid::Uuid::new_v4().as_u128() as u64;
    tables::create(&database, home).map_err(|error| failed("created", error.to_string()))?;
    drop(database);
    let synced = std::fs::rename(&fresh, path).and_then(|()| File::open(state_dir)).and_then(|dir| dir.sync_all());
    synced.map_err(|error| failed("created", error.to_string()))
}
