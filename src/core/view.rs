//! What a dashboard reads: rows as JSON objects (SPEC 3.4).

use super::gauge;
use super::handoff::ack;
use super::hook::ContextGauge;
use super::rows::agent::{Agent, Primed};
use super::rows::handoff::{Handoff, HandoffError, Span};
use super::rows::item::{Item, Status, Told};
use super::time::stamp;
use super::work::complete;
use serde_json::{Value, json};

/// `view/agents/<agent_id>.json`.
#[must_use]
pub fn agent(agent: &Agent) -> Value {
    json!({
        "v": 1,
        "agent_id": agent.agent_id,
        "persona_slug": agent.persona_slug,
        "profile": agent.profile,
        "pane": agent.pane.map(|pane| pane.to_string()),
        "pid": agent.process.map(|process| process.pid),
        "tmux_session": agent.tmux_session,
        "cwd": agent.cwd,
        "session_id": agent.session.id,
        "transcript_path": agent.transcript_path,
        "state": agent.state.word(),
        "previous_agent_id": agent.previous_agent_id,
        "successor_id": agent.successor_id,
        "handoff_id": agent.handoff_id,
        "created_at": agent.created_at,
        "registered_at": agent.registered_at,
        "ended_at": agent.ended_at,
        "started_by_tasuki": agent.ours,
        "hooks": if agent.hooks_seen { "seen" } else { "unseen" },
        "primed": agent.primed == Primed::Done,
        "waiting_texts": agent.queue.len(),
        "handoff_suggested": gauge::is_suggested(agent),
        "context": agent.context.map(|context| context_of(agent, &context)),
    })
}

fn context_of(agent: &Agent, context: &ContextGauge) -> Value {
    json!({
        "used": context.used,
        "window": context.window,
        "percent": context.percent(),
        "window_is_guess": agent.watch.guessed,
    })
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
