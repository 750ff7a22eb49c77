//! This host's own agents, handoffs and errors in the form of a roster. They are read from the sidecar's views, which
//! are never as old as the last roster that this host has sent to the others.

use crate::cli::client::{Pulse, SidecarPresence};
use crate::cli::error::CliError;
use crate::cli::hosts;
use crate::cli::unread::Unread;
use crate::cli::view::{self, ViewFile};
use crate::config::Home;
use crate::contract::fleet::{HostAgent, HostError, HostHandoff, HostSidecar, MOST_ENDED, SidecarWord};
use crate::contract::{AgentView, ErrorFile, HandoffView, HostView};
use crate::core::host::HostName;

/// How many handoffs are read at most: those whose views changed last.
const LOOK_AT: usize = 2_000;
/// How many errors are listed at most: those whose files changed last.
const MOST_ERRORS: usize = 100;

/// The roster that this host would send at this moment. Views that can't be read are noted.
///
/// # Errors
/// When the views can't be read.
pub fn host(home: &Home, own: &HostName, unread: &mut Unread) -> Result<HostView, CliError> {
    let told = hosts::one(home, own)?.as_deref().cloned().unwrap_or_default();
    let is_alive = matches!(Pulse::new(home).check(), SidecarPresence::Alive { .. });
    let state = if is_alive { SidecarWord::Runs } else { SidecarWord::Away };
    let since = if told.sidecar.state == state { told.sidecar.since.clone() } else { String::new() };
    let agents: Vec<ViewFile<AgentView>> = view::all(&home.agent_views(), unread)?;
    let errors: Vec<ViewFile<ErrorFile>> = view::latest(&home.errors(), MOST_ERRORS, unread)?;
    Ok(HostView {
        v: 1,
        host: own.to_string(),
        sidecar: HostSidecar { state: state.into(), since },
        agents: agents.iter().filter(|agent| agent.is_living()).map(|agent| HostAgent::from(&**agent)).collect(),
        handoffs: handoffs(home, unread)?,
        errors: errors.iter().map(|error| HostError::from(&**error)).collect(),
        more: 0,
        away_since: None,
        authentic: true,
        ..told
    })
}

/// The open handoffs, and those that ended last.
fn handoffs(home: &Home, unread: &mut Unread) -> Result<Vec<HostHandoff>, CliError> {
    let latest: Vec<ViewFile<HandoffView>> = view::latest(&home.handoff_views(), LOOK_AT, unread)?;
    let all = latest.iter().map(|handoff| HostHandoff::from(&**handoff));
    let (open, ended): (Vec<_>, Vec<_>) = all.partition(HostHandoff::is_open);
    Ok(open.into_iter().chain(ended.into_iter().take(MOST_ENDED)).collect())
}
