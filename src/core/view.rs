//! Makes views, the files that a dashboard reads, out of the store's rows.

use super::agent::context_usage;
use super::handoff::ack;
use super::hook::ContextUsage;
use super::pane::DeliveryVerdict;
use super::resume;
use super::rows::agent::{Agent, Limited, Primed};
use super::rows::handoff::{Handoff, HandoffError, LastVerdicts, Span};
use super::rows::item::{Entry, Item, NotifiedAgent, Status, Who};
use super::settings::Settings;
use super::time::rfc3339;
use crate::contract::work::{EntryView, FailedChildView, ToldView};
use crate::contract::{
    self, AgentView, ContextView, DeliveryView, HandoffView, Hooks, LimitedView, StepError, StepView, Word, WorkView,
};

/// `view/agents/<agent_id>.json`.
#[must_use]
pub fn agent(agent: &Agent, settings: &Settings) -> AgentView {
    AgentView {
        v: 1,
        agent_id: agent.agent_id.to_string(),
        persona_slug: agent.persona_slug.as_ref().map(ToString::to_string),
        profile: agent.profile.clone(),
        model: agent.model.clone(),
        pane: agent.pane.map(|pane| pane.to_string()),
        pid: agent.process.map(|process| process.pid),
        tmux_session: agent.tmux_session.clone(),
        cwd: agent.cwd.clone(),
        session_id: agent.session.id.clone(),
        resume_command: resume::command_of(settings, &agent.profile, agent.session.id.as_deref()),
        transcript_path: agent.transcript_path.clone(),
        state: agent.state.into(),
        state_since: agent.state_since.clone(),
        previous_agent_id: agent.previous_agent_id.map(|id| id.to_string()),
        successor_id: agent.successor_id.map(|id| id.to_string()),
        handoff_id: agent.handoff_id.map(|id| id.to_string()),
        recorded_in: agent.recorded_in.map(|id| id.to_string()),
        created_at: agent.created_at.clone(),
        registered_at: agent.registered_at.clone(),
        ended_at: agent.ended_at.clone(),
        started_by_tasuki: agent.ours,
        hooks: if agent.hooks_seen { Hooks::Seen } else { Hooks::Unseen }.into(),
        reopened: agent.reopened_from.is_some(),
        reopened_from: agent.reopened_from.map(|id| id.to_string()),
        primed: agent.primed == Primed::Done,
        waiting_texts: agent.queue.len() as u64,
        handoff_suggested: context_usage::is_suggested(agent),
        limited: agent.limits.limited.as_ref().map(LimitedView::from),
        context: agent.context.map(|context| context_of(agent, &context)),
    }
}

impl From<&Limited> for LimitedView {
    fn from(limited: &Limited) -> Self {
        LimitedView {
            kind: limited.kind.into(),
            since: rfc3339(limited.since_ms),
            until: limited.until_ms.map(rfc3339),
            said: limited.said.clone(),
        }
    }
}

fn context_of(agent: &Agent, context: &ContextUsage) -> ContextView {
    ContextView {
        used: context.used,
        window: context.window,
        percent: context.percent(),
        window_is_guess: agent.context_watch.guessed,
    }
}

/// `view/handoffs/<handoff_id>.json`.
#[must_use]
pub fn handoff(handoff: &Handoff, settings: &Settings) -> HandoffView {
    let record = handoff.record.as_ref();
    let ack_ends = || handoff.ack.as_ref()?.final_deadline();
    HandoffView {
        v: 1,
        handoff_id: handoff.handoff_id.to_string(),
        agent_id: handoff.agent_id.to_string(),
        resume_command: resume::command_of(settings, &handoff.session.profile, handoff.session.id.as_deref()),
        persona_slug: handoff.persona_slug.to_string(),
        reason: handoff.reason.clone(),
        focus: handoff.focus.clone(),
        tasks: handoff.tasks.clone(),
        author: handoff.author.into(),
        successor: handoff.successor.clone(),
        successor_profile: Some(handoff.choice.profile.clone()).filter(|profile| !profile.is_empty()),
        successor_model: handoff.choice.model.clone(),
        file_path: handoff.file_path.clone(),
        bytes: record.map(|record| record.bytes),
        sha256: record.map(|record| record.sha256.clone()),
        injection_prompt: record.map(|record| record.injection_prompt.clone()),
        recorded_at: record.map(|record| record.created_at.clone()),
        created_at: handoff.created_at.clone(),
        successor_id: handoff.successor_id.map(|id| id.to_string()),
        former_successors: handoff.former_successors.iter().map(ToString::to_string).collect(),
        step: handoff.step.into(),
        steps: handoff.steps.iter().map(StepView::from).collect(),
        deadline: handoff.stay.deadline.map(|deadline| deadline.rfc3339()).or_else(ack_ends),
        document: handoff.document.clone(),
        verdicts: verdicts(&handoff.verdicts),
        warnings: handoff.warnings.clone(),
        check: handoff.examined.check.into(),
        review: handoff.examined.review,
        faults: handoff.examined.faults.clone(),
        reworks: handoff.examined.reworks,
        held_since: handoff.examined.held_since.clone(),
        facts: handoff.examined.facts.as_deref().cloned(),
        facts_path: handoff.facts_path("json"),
        drift: handoff.examined.drift.clone(),
        generation: handoff.chain.generation + 1,
        earlier: handoff.chain.earlier.clone(),
        read: handoff.read.map(Word::from),
        successor_blocked_at: handoff.successor_blocked_at.clone(),
        error: handoff.error.as_ref().map(StepError::from),
        ack: ack::view::ack(handoff),
        publish: handoff.publish.as_ref().map(|publish| publish.view(&handoff.file_path)),
        checklist: ack::checklist::points(handoff),
    }
}

impl From<&Span> for StepView {
    fn from(span: &Span) -> Self {
        StepView { step: span.step.into(), entered_at: span.entered_at.clone(), left_at: span.left_at.clone() }
    }
}

fn verdicts(verdicts: &LastVerdicts) -> contract::handoff::Verdicts {
    let view = |verdict: &Option<DeliveryVerdict>| verdict.as_ref().map(DeliveryView::from);
    contract::handoff::Verdicts {
        instruction: view(&verdicts.instruction),
        priming: view(&verdicts.priming),
        briefing: view(&verdicts.briefing),
    }
}

impl From<&DeliveryVerdict> for DeliveryView {
    fn from(verdict: &DeliveryVerdict) -> Self {
        DeliveryView {
            delivery_id: verdict.delivery_id.to_string(),
            verdict: verdict.verdict.into(),
            reason: verdict.reason.clone(),
            at: verdict.at.clone(),
        }
    }
}

impl From<&HandoffError> for StepError {
    fn from(error: &HandoffError) -> Self {
        StepError {
            error_id: error.error_id.to_string(),
            step: error.step.into(),
            code: error.code.clone(),
            message: error.message.clone(),
            hint: error.hint.clone(),
        }
    }
}

/// `view/work/<item_id>.json`.
#[must_use]
pub fn item(item: &Item) -> WorkView {
    let who = |who: Option<Who>| who.map(|who| who.to_string());
    WorkView {
        v: 1,
        item_id: item.item_id.to_string(),
        r#type: item.kind.clone(),
        title: item.title.clone(),
        description: item.description.clone(),
        status: item.status.into(),
        project_id: item.project_id.to_string(),
        parent_id: item.parent_id.map(|id| id.to_string()),
        children: item.children.iter().map(ToString::to_string).collect(),
        priority: item.priority.into(),
        claimed_by: who(item.claimed_by),
        claimed_at: (item.status == Status::Claimed).then(|| rfc3339(item.since_ms)),
        held_by: item.held_by.map(|id| id.to_string()),
        output: item.output.clone(),
        parent_output: item.parent_output.clone(),
        metadata: item.metadata.clone(),
        failed_children: item.failed_children.iter().map(FailedChildView::from).collect(),
        comments: item.comments.clone(),
        history: item.history.iter().map(EntryView::from).collect(),
        told: item.notified.iter().map(ToldView::from).collect(),
        created_at: item.created_at.clone(),
        created_by: item.created_by.to_string(),
        completed_at: item.completed_at.clone(),
        completed_by: who(item.completed_by),
        escalated_at: item.escalated_at.clone(),
        escalation_reason: item.escalation_reason.clone(),
    }
}

impl From<&Entry> for EntryView {
    fn from(entry: &Entry) -> Self {
        EntryView {
            at: entry.at.clone(),
            action: entry.action.into(),
            by: entry.by.to_string(),
            from: entry.from.map(Word::from),
            to: entry.to.into(),
            owner: entry.owner.map(|who| who.to_string()),
            after_ms: entry.after_ms,
            reason: entry.reason.clone(),
            output_summary: entry.output_summary.clone(),
            validation: entry.validation.clone(),
            children: entry.children.iter().map(ToString::to_string).collect(),
        }
    }
}

impl From<&NotifiedAgent> for ToldView {
    fn from(told: &NotifiedAgent) -> Self {
        ToldView { agent_id: told.agent_id.to_string(), at: told.at.clone(), verdict: told.verdict.map(Word::from) }
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
