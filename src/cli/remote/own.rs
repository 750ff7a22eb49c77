//! This host's own agents, handoffs and errors as a roster tells of them. They are read from the sidecar's views, which are
//! never as old as the roster that this host has last told the others.

use crate::cli::client::{Pulse, SidecarPresence};
use crate::cli::error::CliError;
use crate::cli::follow::FlowEnd;
use crate::cli::hosts;
use crate::cli::view::{self, ViewFile, said};
use crate::config::Home;
use crate::contract::fleet::{HostAgent, HostError, HostHandoff, HostSidecar, SidecarWord};
use crate::contract::{AgentView, ErrorFile, HandoffView, HostView};
use crate::core::host::HostName;

/// The most handoffs that have ended, as in a roster.
const MOST_ENDED: usize = 20;
/// How many handoffs are looked at, those that have changed last.
const LOOK_AT: usize = 2_000;
/// The most errors.
const MOST_ERRORS: usize = 100;

/// What this host would tell of itself at this moment.
///
/// # Errors
/// When the views can't be read.
pub fn host(home: &Home, own: &HostName) -> Result<HostView, CliError> {
    let told = hosts::one(home, own)?.as_deref().cloned().unwrap_or_default();
    let is_alive = matches!(Pulse::new(home).check(), SidecarPresence::Alive { .. });
    let state = if is_alive { SidecarWord::Runs } else { SidecarWord::Away };
    let since = if told.sidecar.state == state { told.sidecar.since.clone() } else { String::new() };
    let agents: Vec<ViewFile<AgentView>> = view::all(&home.agent_views())?;
    let errors: Vec<ViewFile<ErrorFile>> = view::latest(&home.errors(), MOST_ERRORS)?;
    Ok(HostView {
        v: 1,
        host: own.to_string(),
        sidecar: HostSidecar { state: state.into(), since },
        agents: agents.iter().filter(|agent| agent.is_living()).map(|agent| of_agent(agent)).collect(),
        handoffs: handoffs(home)?,
        errors: errors.iter().map(|error| of_error(error)).collect(),
        more: 0,
        away_since: None,
        authentic: true,
        ..told
    })
}

/// The handoffs that are open, and the last that have ended.
fn handoffs(home: &Home) -> Result<Vec<HostHandoff>, CliError> {
    let latest: Vec<ViewFile<HandoffView>> = view::latest(&home.handoff_views(), LOOK_AT)?;
    let (ended, open): (Vec<_>, Vec<_>) = latest.iter().partition(|handoff| FlowEnd::of(&handoff.step).is_some());
    let ended = ended.into_iter().take(MOST_ENDED);
    Ok(open.into_iter().chain(ended).map(|handoff| of_handoff(handoff)).collect())
}

fn of_agent(agent: &AgentView) -> HostAgent {
    let percent = agent.context.as_ref().and_then(|context| context.percent);
    HostAgent {
        agent_id: agent.agent_id.clone(),
        persona: agent.persona_slug.clone(),
        profile: agent.profile.clone(),
        state: agent.state.as_str().to_owned(),
        context: percent.and_then(|percent| u8::try_from(percent).ok()),
        handoff_id: agent.handoff_id.clone(),
        since: agent.state_since.clone().unwrap_or_default(),
    }
}

fn of_handoff(handoff: &HandoffView) -> HostHandoff {
    HostHandoff {
        handoff_id: handoff.handoff_id.clone(),
        agent_id: handoff.agent_id.clone(),
        persona: said(handoff.persona_slug.as_str()).map(str::to_owned),
        step: handoff.step.as_str().to_owned(),
        since: handoff.steps.last().map(|step| step.entered_at.clone()).unwrap_or_default(),
        from: None,
        to: None,
        error: handoff.error.as_ref().and_then(|error| said(error.code.as_str())).map(str::to_owned),
    }
}

fn of_error(error: &ErrorFile) -> HostError {
    HostError { error_id: error.error_id.clone(), code: error.code.clone(), at: error.at.clone() }
}
