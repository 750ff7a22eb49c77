//! Views that were removed for their age, or that something has damaged. The store still has their contents, and the
//! sidecar writes a view again on request.

use super::client::{Pulse, SidecarPresence};
use super::error::CliError;
use super::view::{self, ViewFile};
use crate::config::Home;
use crate::contract::{AgentView, HandoffView, WorkView};
use crate::spool::wanted::WANTED_PREFIX;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long to wait for the sidecar, which looks for marker files every five seconds.
const WITHIN: Duration = Duration::from_secs(12);
const EVERY: Duration = Duration::from_millis(50);

/// One handoff's view, written again if need be.
///
/// # Errors
/// When it can't be read.
pub fn handoff(home: &Home, id: &str) -> Result<Option<ViewFile<HandoffView>>, CliError> {
    again(home, id, || view::handoff(home, id))
}

/// One agent's view, written again if need be.
///
/// # Errors
/// When it can't be read.
pub fn agent(home: &Home, id: &str) -> Result<Option<ViewFile<AgentView>>, CliError> {
    again(home, id, || view::agent(home, id))
}

/// One work item's view, written again if need be.
///
/// # Errors
/// When it can't be read.
pub fn item(home: &Home, id: &str) -> Result<Option<ViewFile<WorkView>>, CliError> {
    again(home, id, || view::item(home, id))
}

/// The views of these agents, written again if need be. The sidecar is asked for all of them at once. An agent that it
/// does not know is left out.
///
/// # Errors
/// When one can't be read.
pub fn agents(home: &Home, ids: &[String]) -> Result<Vec<ViewFile<AgentView>>, CliError> {
    write_again(home, ids.iter().map(String::as_str));
    ids.iter().filter_map(|id| view::agent(home, id).transpose()).collect()
}

fn again<T>(home: &Home, id: &str, read: impl Fn() -> Result<Option<T>, CliError>) -> Result<Option<T>, CliError> {
    match read() {
        Ok(None) => {}
        // A file that something has damaged is written whole.
        Err(error) if error.code == "not_json" => {}
        found => return found,
    }
    write_again(home, [id].into_iter());
    read()
}

/// Asks the sidecar to write these views again, and waits until it has. If no sidecar runs, does nothing.
fn write_again<'i>(home: &Home, ids: impl Iterator<Item = &'i str>) {
    if !matches!(Pulse::new(home).check(), SidecarPresence::Alive { .. }) {
        return;
    }
    let markers: Vec<PathBuf> = ids.filter_map(|id| marker(home, id)).collect();
    let until = Instant::now() + WITHIN;
    // The sidecar removes the marker after it has written the view, or if it knows nothing with this id.
    while markers.iter().any(|marker| marker.exists()) && Instant::now() < until {
        std::thread::sleep(EVERY);
    }
    // A marker that no sidecar has handled must not wait for the next sidecar.
    for marker in markers {
        let _ = std::fs::remove_file(marker);
    }
}

/// Creates the marker file that asks for a view; `None` if it can't be created, as by a user who may only read.
fn marker(home: &Home, id: &str) -> Option<PathBuf> {
    id.parse::<uuid::Uuid>().ok()?;
    let marker = home.view().join(format!("{WANTED_PREFIX}{id}"));
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&marker) {
        Ok(_) => Some(marker),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Some(marker),
        Err(_) => None,
    }
}
