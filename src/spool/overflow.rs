//! The bound on the events that wait while no sidecar takes them. Hooks stay installed when a service is stopped, and
//! the agents then report for months: without a bound, the folder would grow until the file system has no room.

use super::client::{SidecarPresence, sidecar_alive};
use super::order;
use crate::core::time::Now;
use crate::files::{self, Grade};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// At most about so many events wait while no sidecar runs: what 20 agents report in some days.
pub const MOST_WAITING: usize = 20_000;
/// So many of the oldest are removed at once, so that few hooks pay for that.
const REMOVED_AT_ONCE: usize = 1_000;
/// What the removal leaves behind, so that the next sidecar can say it. A sidecar takes no name with a leading dot.
const MARK: &str = ".removed";

/// Removes the oldest events of hooks if too many wait in a home and no sidecar runs that would take them. Files with
/// other names stay. What can't be looked at stays as it is: a hook must neither fail nor wait.
pub fn make_room(home: &Path, now: impl FnOnce() -> Now) {
    let Ok(events) = files::open_dir(&home.join("spool/events")) else { return };
    // With a sidecar the folder is nearly empty, so the count comes first: it is cheaper than to read the heartbeat.
    let Ok((names, _)) = files::names(&events, 2 * MOST_WAITING, order::is_event_name) else { return };
    if names.len() < MOST_WAITING || matches!(sidecar_alive(home, &now()), SidecarPresence::Alive { .. }) {
        return;
    }
    // The mark comes first: no event may be gone and nobody be told.
    if mark(&events).is_ok() {
        remove_oldest(&events, names);
    }
}

/// For a sidecar that starts: whether events were removed since the last one ended. It asks once, and says so.
#[must_use]
pub fn take_mark(home: &Path) -> bool {
    let events = files::open_dir(&home.join("spool/events"));
    events.and_then(|events| files::remove_at(&events, OsStr::new(MARK))).unwrap_or(false)
}

fn mark(events: &OwnedFd) -> io::Result<()> {
    if files::meta_at(events, MARK)?.is_some() {
        return Ok(());
    }
    let temp = OsString::from(format!("{MARK}-{}.tmp", std::process::id()));
    files::replace_at(events, &temp, OsStr::new(MARK), b"", Grade::Fast)
}

fn remove_oldest(events: &OwnedFd, names: Vec<OsString>) {
    let surplus = names.len() - MOST_WAITING + REMOVED_AT_ONCE;
    let mtime_ns = |name: &OsStr| files::meta_at(events, name).ok().flatten().map(|meta| meta.file_stamp.mtime_ns);
    let listed = names.into_iter().filter_map(|name| mtime_ns(&name).map(|at| (name, at))).collect();
    for name in order::events(listed).into_iter().take(surplus) {
        // Another hook may have removed it.
        let _ = files::remove_at(events, &name);
    }
}
