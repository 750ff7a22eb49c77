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

/// How long to wait for a lock whose owner is dead: a child that the dead sidecar was just starting holds the lock
/// until its `exec`.
const DEAD_OWNER_WAIT: Duration = Duration::from_secs(10);
/// The pause between two tries to take the lock.
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Takes the home's lock; the file holds the pid of its owner.
///
/// # Errors
/// [`Error::Locked`], or what the disk refused.
pub(super) fn lock(lock_path: &Path, state_path: &Path) -> Result<File, Error> {
    let failed = |what, why: std::io::Error| Error::io(lock_path, what, &why);
    // The lock file is written to, so a link in its place would damage the file that it leads to.
    let mut file = File::options()
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(lock_path)
        .map_err(|error| failed("opened", error))?;
    let until = Instant::now() + DEAD_OWNER_WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(std::fs::TryLockError::WouldBlock) => {
                let pid: String =
                    std::fs::read_to_string(lock_path).unwrap_or_default().trim().chars().take(10).collect();
                // Without a readable pid, the owner counts as alive.
                let is_alive = pid.parse().map_or(true, child::answers);
                if is_alive || Instant::now() >= until {
                    return Err(Error::Locked { path: state_path.to_path_buf(), pid });
                }
                std::thread::sleep(LOCK_RETRY_PAUSE);
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(failed("locked", error)),
        }
    }
    let pid = format!("{}\n", std::process::id());
    file.set_len(0).and_then(|()| file.write_all(pid.as_bytes())).map_err(|error| failed("written", error))?;
    Ok(file)
}

/// An open database, and device and inode of its file.
pub(super) type OpenedStore = (Database, (u64, u64));

/// Device and inode of the file at a path, if it exists.
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

/// Opens and creates databases with tasuki's cache size.
pub(super) fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Opens an existing file. redb writes to it, and trusts its pages: where damage or a newer version is possible,
/// [`check`](super::peek::check) the file first.
///
/// # Errors
/// [`Error::Unreadable`], also if the file is missing or empty; [`Error::Locked`] if it is open already;
/// [`Error::Gone`] if it was replaced meanwhile; [`Error::NotAllowed`], or what the disk refused.
pub(super) fn open_existing(path: &Path) -> Result<OpenedStore, Error> {
    let meta = std::fs::metadata(path).map_err(|error| Error::of_opening(path, &error))?;
    if meta.len() == 0 {
        return Err(Error::Unreadable { path: path.to_path_buf(), why: "it is empty".to_owned() });
    }
    let database = builder().open(path).map_err(|error| Error::of_database(path, error))?;
    let opened = (meta.dev(), meta.ino());
    if identity(path) != Some(opened) {
        return Err(Error::Gone { path: path.to_path_buf() });
    }
    Ok((database, opened))
}

/// Creates a new file if nothing has its name. A link that leads nowhere counts as something: its disk may not be
/// mounted, and a new file would hide every handoff that is there. Returns whether it created one.
pub(super) fn create_if_missing(state_dir: &Path, path: &Path) -> Result<bool, Error> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => create_new_file(state_dir, path).map(|()| true),
        Err(error) => Err(Error::Io { path: path.to_path_buf(), what: "checked", why: error.to_string() }),
    }
}

/// Creates the file under another name and renames it when it is complete. So a state file that is empty or incomplete
/// is always damaged, and never a new one.
fn create_new_file(state_dir: &Path, path: &Path) -> Result<(), Error> {
    let failed = |what, why: String| Error::Io { path: path.to_path_buf(), what, why };
    let fresh = state_dir.join("tasuki.redb.new");
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed("created", error.to_string())),
        _ => {}
    }
    // Created with its final mode, because a folder's default access list could open it to others.
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)
        .map_err(|error| failed("created", error.to_string()))?;
    let database = builder().create(&fresh).map_err(|error| failed("created", error.to_string()))?;
    let home_number = uuid::Uuid::new_v4().as_u128() as u64;
    tables::create(&database, home_number).map_err(|error| failed("created", error.to_string()))?;
    drop(database);
    let synced = std::fs::rename(&fresh, path).and_then(|()| File::open(state_dir)).and_then(|dir| dir.sync_all());
    synced.map_err(|error| failed("created", error.to_string()))
}
