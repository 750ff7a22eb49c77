//! The rows of other hosts: made from what each host has last told of itself, with the host's name and its age. Pure.

use super::model::{AgentRow, HandoffRow};
use super::plain::plain;
use super::rows::HostMark;
use crate::cli::view::{said, shown};
use crate::contract::fleet::{HostAgent, HostHandoff};
use crate::contract::{AgentView, ContextView, HandoffView, HostState, HostView, StepError, StepView};
use crate::core::time::millis;

/// What is known of a host, and since when nothing new is known if it is not live.
fn mark(host: &HostView, bridge_is_fresh: bool) -> HostMark {
    let state = host.state(bridge_is_fresh);
    let since = host.away_since.as_deref().filter(|_| state == HostState::Away).unwrap_or(&host.seen_at);
    HostMark { name: plain(&host.host), state, since_ms: millis(since).filter(|_| state != HostState::Live) }
}

/// The agents of a host.
pub(super) fn agents(host: &HostView, bridge_is_fresh: bool) -> Vec<AgentRow> {
    let row = |agent: &HostAgent| {
        let view = AgentView {
            agent_id: agent.agent_id.clone(),
            persona_slug: agent.persona.clone(),
            profile: agent.profile.clone(),
            state: agent.state.as_str().into(),
            handoff_id: agent.handoff_id.clone(),
            registered_at: Some(agent.since.clone()),
            context: agent
                .context
                .map(|percent| ContextView { percent: Some(percent.into()), ..ContextView::default() }),
            ..AgentView::default()
        };
        Some(AgentRow { host: Some(mark(host, bridge_is_fresh)), ..AgentRow::read(&view)? })
    };
    host.agents.iter().filter_map(row).filter(|agent| agent.living).collect()
}

/// The handoffs of a host.
pub(super) fn handoffs(host: &HostView, bridge_is_fresh: bool) -> Vec<HandoffRow> {
    let row = |handoff: &HostHandoff| {
        let step = || handoff.step.as_str().into();
        let error = said(handoff.error.as_deref()).map(|code| StepError {
            code: code.to_owned(),
            step: step(),
            ..StepError::default()
        });
        let view = HandoffView {
            handoff_id: handoff.handoff_id.clone(),
            agent_id: handoff.agent_id.clone(),
            persona_slug: handoff.persona.clone().unwrap_or_default(),
            step: step(),
            steps: vec![StepView { step: step(), entered_at: handoff.since.clone(), left_at: None }],
            created_at: handoff.since.clone(),
            error,
            ..HandoffView::default()
        };
        Some(HandoffRow { host: Some(mark(host, bridge_is_fresh)), ..HandoffRow::read(&view)? })
    };
    host.handoffs.iter().filter_map(row).collect()
}

/// The details of an agent of another host, in lines.
pub(super) fn agent_lines(host: &HostView, bridge_is_fresh: bool, agent: &HostAgent) -> Vec<String> {
    let mut lines = about(host, bridge_is_fresh);
    let context = agent.context.map(|percent| format!("{percent} %"));
    lines.extend([
        line("agent", &agent.agent_id),
        line("persona", &shown(agent.persona.as_deref())),
        line("profile", &agent.profile),
        line("state", &agent.state),
        line("since", &agent.since),
        line("context", &shown(context.as_deref())),
        line("handoff", &shown(agent.handoff_id.as_deref())),
    ]);
    lines
}

/// The details of a handoff of another host, in lines.
pub(super) fn handoff_lines(host: &HostView, bridge_is_fresh: bool, handoff: &HostHandoff) -> Vec<String> {
    let mut lines = about(host, bridge_is_fresh);
    lines.extend([
        line("handoff", &handoff.handoff_id),
        line("agent", &handoff.agent_id),
        line("persona", &shown(handoff.persona.as_deref())),
        line("step", &handoff.step),
        line("since", &handoff.since),
        line("from host", &shown(handoff.from.as_deref())),
        line("to host", &shown(handoff.to.as_deref())),
        line("error", &shown(handoff.error.as_deref())),
    ]);
    lines
}

fn about(host: &HostView, bridge_is_fresh: bool) -> Vec<String> {
    let mut lines = vec![
        line("host", &host.host),
        line("known", host.state(bridge_is_fresh).as_str()),
        line("seen", &shown(host.seen_at.as_str())),
    ];
    lines.extend(said(host.away_since.as_deref()).map(|since| line("away since", since)));
    lines
}

fn line(name: &str, text: &str) -> String {
    format!("{name:<11} {text}")
}

#[cfg(test)]
#[path = "fleet_rows_tests.rs"]
mod tests;
