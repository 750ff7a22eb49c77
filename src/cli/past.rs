//! Views that were removed for their age. The store still has their contents, and the sidecar writes a view again on
//! request.

use super::client::{Pulse, SidecarPresence};
use super::error::CliError;
use super::view::{self, ViewFile};
use crate::config::Home;
use crate::contract::{AgentView, HandoffView};
use crate::spool::wanted::WANTED_PREFIX;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

/// How long the sidecar may take: it looks for such files every five seconds.
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

/// If no sidecar can be asked, the present view is the answer.
fn again<T>(home: &Home, id: &str, read: impl Fn() -> Result<Option<T>, CliError>) -> Result<Option<T>, CliError> {
    if let Some(found) = read()? {
        return Ok(Some(found));
    }
    if !matches!(Pulse::new(home).check(), SidecarPresence::Alive { .. }) || id.parse::<uuid::Uuid>().is_err() {
        return Ok(None);
    }
    let marker = home.view().join(format!("{WANTED_PREFIX}{id}"));
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&marker) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        // A user who may only read the views gets the present one.
        Err(_) => return Ok(None),
    }
    let until = Instant::now() + WITHIN;
    // The sidecar writes the view before it removes the file; it removes the file even if there is no such view.
    while marker.exists() && Instant::now() < until {
        std::thread::sleep(EVERY);
    }
    // Nobody has taken it: it must not wait for a sidecar of another day.
    let _ = std::fs::remove_file(&marker);
    read()
}
