//! What a dashboard reads: rows as the contract shows them (SPEC 3.4).

use super::gauge;
use super::handoff::ack;
use super::hook::ContextGauge;
use super::rows::agent::{Agent, AgentState, Primed};
use super::rows::handoff::{Handoff, HandoffError, Span};
use super::rows::item::{Item, Status, Told};
use super::time::stamp;
use super::work::complete;
use crate::contract::{self, AgentView, ContextView, Hooks};
use serde_json::{Value, json};

/// `view/agents/<agent_id>.json`.
#[must_use]
pub fn agent(agent: &Agent) -> AgentView {
    AgentView {
        v: 1,
        agent_id: agent.agent_id.to_string(),
        persona_slug: agent.persona_slug.as_ref().map(ToString::to_string),
        profile: agent.profile.clone(),
        pane: agent.pane.map(|pane| pane.to_string()),
        pid: agent.process.map(|process| process.pid),
        tmux_session: agent.tmux_session.clone(),
        cwd: agent.cwd.clone(),
        session_id: agent.session.id.clone(),
        transcript_path: agent.transcript_path.clone(),
        state: agent.state.into(),
        previous_agent_id: agent.previous_agent_id.map(|id| id.to_string()),
        successor_id: agent.successor_id.map(|id| id.to_string()),
        handoff_id: agent.handoff_id.map(|id| id.to_string()),
        created_at: agent.created_at.clone(),
        registered_at: agent.registered_at.clone(),
        ended_at: agent.ended_at.clone(),
        started_by_tasuki: agent.ours,
        hooks: if agent.hooks_seen { Hooks::Seen } else { Hooks::Unseen },
        primed: agent.primed == Primed::Done,
        waiting_texts: agent.queue.len() as u64,
        handoff_suggested: gauge::is_suggested(agent),
        context: agent.context.map(|context| context_of(agent, &context)),
    }
}

fn context_of(agent: &Agent, context: &ContextGauge) -> ContextView {
    ContextView {
        used: context.used,
        window: context.window,
        percent: context.percent(),
        window_is_guess: agent.watch.guessed,
    }
}

impl From<AgentState> for contract::AgentState {
    fn from(state: AgentState) -> Self {
        match state {
            AgentState::Starting => Self::Starting,
            AgentState::Idle => Self::Idle,
            AgentState::Busy => Self::Busy,
            AgentState::Blocked => Self::Blocked,
            AgentState::Ended => Self::Ended,
            AgentState::Lost => Self::Lost,
        }
    }
}

/// `view/handoffs/<handoff_id>.json`.
#[must_use]
pub fn handoff(handoff: &Handoff) -> Value {
    let record = handoff.record.as_ref();
    json!({
        "v": 1,
        "handoff_id": handoff.handoff_id,
        "agent_id": handoff.agent_id,
        "persona_slug": handoff.persona_slug,
        "reason": handoff.reason,
        "focus": handoff.focus,
        "tasks": handoff.tasks,
        "author": handoff.author,
        "successor": handoff.successor,
        "file_path": handoff.file_path,
        "bytes": record.map(|record| record.bytes),
        "sha256": record.map(|record| record.sha256.as_str()),
        "injection_prompt": record.map(|record| record.injection_prompt.as_str()),
        "recorded_at": record.map(|record| record.created_at.as_str()),
        "created_at": handoff.created_at,
        "successor_id": handoff.successor_id,
        "former_successors": handoff.former_successors,
        "step": handoff.step.word(),
        "steps": handoff.steps.iter().map(span).collect::<Vec<_>>(),
        "deadline": handoff.deadline.map(|deadline| deadline.stamp()).or_else(|| handoff.ack.as_ref()?.final_deadline()),
        "document": handoff.document,
        "verdicts": handoff.verdicts,
        "warnings": handoff.warnings,
        "read": handoff.read,
        "successor_blocked_at": handoff.successor_blocked_at,
        "error": handoff.error.as_ref().map(error),
        "ack": ack::view::ack(handoff),
        "publish": handoff.publish.as_ref().map(|publish| publish.view(&handoff.file_path)),
        "checklist": ack::checklist::points(handoff),
    })
}

fn span(span: &Span) -> Value {
    json!({ "step": span.step.word(), "entered_at": span.entered_at, "left_at": span.left_at })
}

fn error(error: &HandoffError) -> Value {
    json!({
        "error_id": error.error_id, "step": error.step.word(), "code": error.code, "message": error.message,
        "hint": error.hint,
    })
}

/// `view/work/<item_id>.json`.
#[must_use]
pub fn item(item: &Item) -> Value {
    json!({
        "v": 1,
        "item_id": item.item_id,
        "type": item.kind,
        "title": item.title,
        "description": item.description,
        "status": item.status.word(),
        "project_id": item.project_id,
        "parent_id": item.parent_id,
        "children": item.children,
        "priority": item.priority.word(),
        "claimed_by": item.claimed_by,
        "claimed_at": (item.status == Status::Claimed).then(|| stamp(item.since_ms)),
        "held_by": item.held_by,
        "output": item.output,
        "parent_output": item.parent_output,
        "metadata": item.metadata,
        "failed_children": item.failed_children.iter().map(complete::failed_json).collect::<Vec<_>>(),
        "comments": item.comments,
        "history": item.history,
        "told": item.told.iter().map(told).collect::<Vec<_>>(),
        "created_at": item.created_at,
        "created_by": item.created_by,
        "completed_at": item.completed_at,
        "completed_by": item.completed_by,
        "escalated_at": item.escalated_at,
        "escalation_reason": item.escalation_reason,
    })
}

fn told(told: &Told) -> Value {
    json!({ "agent_id": told.agent_id, "at": told.at, "verdict": told.verdict })
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
