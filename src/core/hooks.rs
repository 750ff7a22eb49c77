//! Takes the events of agents: finds the agent of each event, and changes its rows. An event may come from another
//! session, from a CLI that the agent runs, or from a process that has ended, so each is checked before it counts.

use super::agent::acceptance::{self, Sign};
use super::agent::{alerts, cli_limits, context_usage, exit, idle, priming, register, start, typing, unlocated};
use super::fact::Fact;
use super::follow;
use super::hook::{HookEvent, HookKind, SessionReason};
use super::id::{AgentId, HandoffId};
use super::rows::agent::{Agent, AgentState, LookCause, OurTurn, Purpose};
use super::state::State;
use super::tx::Tx;
use std::borrow::Cow;

pub(crate) fn arrived(tx: &mut Tx<'_>, event: &HookEvent) {
    if event.kind == HookKind::SessionEnd {
        register::session_ended(tx, event);
    }
    let Some(agent_id) = whose(tx, event) else {
        if event.kind == HookKind::SessionStart {
            register::unknown_session(tx, event);
        }
        return;
    };
    let event = &with_reason(tx, &agent_id, event);
    if !counts(tx, &agent_id, event) {
        return;
    }
    note(tx, &agent_id, event);
    match event.kind {
        HookKind::SessionStart => session_start(tx, &agent_id, event),
        HookKind::PromptSubmit => prompt(tx, &agent_id, event),
        HookKind::Stop if event.paused => {
            let was_in = handoff_of(tx, &agent_id);
            idle::paused(tx, &agent_id);
            context_usage::turn_ended(tx, &agent_id);
            cli_limits::look_after_turn(tx, &agent_id, LookCause::EndedWell, None, was_in);
        }
        HookKind::Stop => {
            let was_in = handoff_of(tx, &agent_id);
            turn_end(tx, &agent_id, event);
            follow::facts(tx);
            context_usage::turn_ended(tx, &agent_id);
            cli_limits::look_after_turn(tx, &agent_id, LookCause::EndedWell, None, was_in);
        }
        HookKind::StopFailure => {
            let was_in = handoff_of(tx, &agent_id);
            turn_end(tx, &agent_id, event);
            follow::facts(tx);
            let said = event.message.as_deref();
            cli_limits::look_after_turn(tx, &agent_id, LookCause::EndedOtherwise, said, was_in);
        }
        HookKind::Interrupted => turn_end(tx, &agent_id, event),
        HookKind::Blocked => {
            idle::blocked(tx, &agent_id, event.message.as_deref());
            follow::facts(tx);
            // The dialog's message is not searched: it may quote any words, also those of a limit.
            cli_limits::look(tx, &agent_id, LookCause::Sign, None);
        }
        // A CLI that waits within a turn for the end of a limit says so in a notification.
        HookKind::Notification => cli_limits::look(tx, &agent_id, LookCause::Sign, event.message.as_deref()),
        HookKind::Context => context_usage::suggest(tx, &agent_id),
        HookKind::SessionEnd => session_end(tx, &agent_id, event),
    }
}

/// Adds the missing reason to the session start of a CLI that starts a session only with the first prompt: such a CLI
/// reports that a session has begun, but not why. If the agent's process already has a session, the new one replaces
/// it.
fn with_reason<'e>(tx: &Tx<'_>, agent_id: &AgentId, event: &'e HookEvent) -> Cow<'e, HookEvent> {
    let says_why = matches!(event.reason, Some(SessionReason::Same | SessionReason::Replaced));
    if event.kind != HookKind::SessionStart || says_why || event.ancestors.is_empty() {
        return Cow::Borrowed(event);
    }
    let replaces = tx.agent(agent_id).is_some_and(|agent| {
        let is_lazy = tx.state.settings.profiles.get(&agent.profile).is_some_and(|profile| !profile.starts_at_launch);
        let is_other = agent.session.id.is_some() && event.session_id.is_some() && agent.session.id != event.session_id;
        is_lazy && is_other && agent.ran(event)
    });
    if !replaces {
        return Cow::Borrowed(event);
    }
    Cow::Owned(HookEvent { reason: Some(SessionReason::Replaced), ..event.clone() })
}

fn handoff_of(tx: &Tx<'_>, agent_id: &AgentId) -> Option<HandoffId> {
    tx.agent(agent_id)?.handoff_id
}

/// Finds the live agent to which an event belongs: by the id from the environment, else by the bound session, else by
/// the pane. An id whose agent is in another pane was inherited, so it does not count. Two CLIs may continue the same
/// session in two panes: then process and pane tell them apart.
fn whose(tx: &Tx<'_>, event: &HookEvent) -> Option<AgentId> {
    let live = || {
        let rows = tx.state.agents.values().filter_map(|row| tx.agent(&row.agent_id));
        rows.filter(|row| row.state.is_live() && !is_of_another(row, event))
    };
    let same_profile = |agent: &Agent| event.profile.as_ref().is_none_or(|profile| *profile == agent.profile);
    if let Some(agent) = event.agent_id.and_then(|id| tx.agent(&id)).filter(|agent| agent.state.is_live())
        && !is_of_another(agent, event)
        && !is_elsewhere(agent, event)
    {
        return Some(agent.agent_id);
    }
    // A reopened agent has the same session id as the ended agent whose session it continues. The last hooks of that
    // ended agent may still come; the agent id in the event tells them apart.
    let may_be_its = |agent: &Agent| {
        agent.reopened_from.is_none() || event.agent_id.is_none_or(|agent_id| agent_id == agent.agent_id)
    };
    let is_session = |agent: &Agent| event.session_id.is_some() && agent.session.id == event.session_id;
    let have_session = live().filter(|agent| is_session(agent) && same_profile(agent) && may_be_its(agent));
    let nearest = have_session.filter_map(|agent| Some((nearness(agent, event)?, agent.agent_id))).min();
    let by_session = nearest.filter(|(nearness, _)| *nearness != Nearness::OtherPane).map(|(_, agent_id)| agent_id);
    let by_pane = || event.pane.and_then(|pane| live().find(|agent| is_in_pane(agent, pane, event)));
    by_session.or_else(|| by_pane().map(|agent| agent.agent_id)).or(nearest.map(|(_, agent_id)| agent_id))
}

/// How near an agent is to the hook that has reported an event of its session, the nearest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    /// The hook ran below the agent's process.
    Process,
    /// The hook ran in the agent's pane.
    Pane,
    Unknown,
    /// The hook ran in another pane.
    OtherPane,
}

/// `None` if the event is another CLI's: it comes from another pane, and not from below the agent's process.
fn nearness(agent: &Agent, event: &HookEvent) -> Option<Nearness> {
    let is_here = event.pane.is_some_and(|pane| is_in_pane(agent, pane, event));
    match (agent.process.and_then(|process| event.is_below(&process)), is_elsewhere(agent, event)) {
        (Some(true), _) => Some(Nearness::Process),
        (None, false) if is_here => Some(Nearness::Pane),
        (_, false) => Some(Nearness::Unknown),
        (None, true) => Some(Nearness::OtherPane),
        (Some(false), true) => None,
    }
}

/// Whether the event starts a session that can't be this agent's: the agent's process is known to be dead and tasuki
/// only waits for its last hooks, or the hook ran below another process. That happens if a person quits a CLI and
/// starts it again in the same pane before tasuki has noticed the agent's death, for example while the sidecar does not
/// run.
fn is_of_another(agent: &Agent, event: &HookEvent) -> bool {
    let is_other = event.session_id.is_some() && event.session_id != agent.session.id;
    let process = agent.process.filter(|_| agent.start.is_none() && event.reason != Some(SessionReason::Same));
    let is_elsewhere = process.is_some_and(|process| event.is_below(&process) == Some(false));
    event.kind == HookKind::SessionStart && ((is_other && agent.is_known_dead()) || is_elsewhere)
}

fn is_in_pane(agent: &Agent, pane: u32, event: &HookEvent) -> bool {
    agent.pane.is_some_and(|own| own.pane == pane && event.is_on(&own.server))
}

fn is_elsewhere(agent: &Agent, event: &HookEvent) -> bool {
    agent.pane.is_some_and(|own| event.pane.is_some_and(|pane| pane != own.pane || !event.is_on(&own.server)))
}

/// Whether the event's session is the agent's own. If it is, and the agent is not bound to it yet, binds the agent to
/// it. A CLI that the agent itself runs inherits the agent's environment and pane, but has its own session, which does
/// not count. A session other than the bound one counts only if something shows that it has replaced the bound one.
fn counts(tx: &mut Tx<'_>, agent_id: &AgentId, event: &HookEvent) -> bool {
    let Some(agent) = tx.agent(agent_id) else { return false };
    let Some(session) = &event.session_id else { return true };
    let is_former = agent.session.former.as_ref() == Some(session);
    // If a CLI starts its session only with the first prompt, it does not report that a person goes back to the former
    // session. Only the next prompt shows it.
    let is_lazy = tx.state.settings.profiles.get(&agent.profile).is_some_and(|profile| !profile.starts_at_launch);
    let goes_back = is_former
        && is_lazy
        && !agent.in_place
        && event.kind == HookKind::PromptSubmit
        && !event.ancestors.is_empty()
        && agent.ran(event);
    // Of the former session, only a start counts, and a compaction is not a start.
    if is_former && !goes_back && (event.kind != HookKind::SessionStart || event.reason == Some(SessionReason::Same)) {
        return false;
    }
    let is_receipt = event.kind == HookKind::PromptSubmit && typing::bears_our_text(agent, event.text.as_deref());
    match &agent.session.id {
        Some(bound) if bound == session => true,
        None => {
            // Our text was typed into this very pane, so the process that received it is the agent.
            let is_own = agent.ran(event) || is_first(agent, event) || is_receipt;
            if is_own && let Some(agent) = tx.agent_mut(agent_id) {
                agent.session.id = Some(session.clone());
                // If this is the former session, a person has gone back to it: from now on it is the agent's own.
                agent.session.former.take_if(|former| former == session);
            }
            is_own
        }
        Some(_) => {
            let says_so = event.reason == Some(SessionReason::Replaced) && !event.ancestors.is_empty();
            let was_replaced = agent.session.replaced || (says_so && agent.ran(event));
            let follows = was_replaced && event.kind == HookKind::SessionStart;
            let is_next = follows || is_receipt || goes_back;
            if is_next && let Some(agent) = tx.agent_mut(agent_id) {
                agent.session.begin(session);
            }
            is_next
        }
    }
}

/// Whether this event needs [`HookEvent::clis`]: it starts a session, or it may belong to an agent whose session or
/// process is not known.
pub(crate) fn wants_clis(state: &State, event: &HookEvent) -> bool {
    let may_be_its = |agent: &Agent| {
        event.agent_id == Some(agent.agent_id)
            || (event.session_id.is_some() && event.session_id == agent.session.id)
            || event.pane.is_some_and(|pane| is_in_pane(agent, pane, event))
    };
    let is_unsure = |agent: &Agent| agent.session.id.is_none() || unlocated::is_unlocated(agent);
    let begins = event.kind == HookKind::SessionStart;
    let unsure = || state.agents.values().any(|agent| agent.state.is_live() && is_unsure(agent) && may_be_its(agent));
    !event.ancestors.is_empty() && (begins || unsure())
}

/// Whether this is the session for which the agent's start waits. The hook may run at any depth below the agent's
/// process: there may be launchers between (npx, a version manager), and an agent that is still starting does not run
/// another CLI yet.
fn is_first(agent: &Agent, event: &HookEvent) -> bool {
    let is_below = agent.process.is_some_and(|process| event.ancestors.contains(&process.pid));
    // A successor in its predecessor's process: only a session that replaces another one is the successor's.
    let begins = !agent.in_place || event.reason == Some(SessionReason::Replaced);
    event.kind == HookKind::SessionStart && agent.start.is_some() && is_below && begins
}

fn note(tx: &mut Tx<'_>, agent_id: &AgentId, event: &HookEvent) {
    // While its turn pauses, Claude Code still notifies that it waits for a prompt. That does not end the silence.
    let has_paused = tx.agent(agent_id).is_some_and(|agent| agent.has_paused);
    if !has_paused || event.kind != HookKind::Notification {
        idle::clear_silence(tx, agent_id);
    }
    unlocated::find_process(tx, agent_id, event);
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    // A context event comes from a status line, which is not a hook: it does not show that prompts will be reported.
    agent.hooks_seen |= event.kind != HookKind::Context;
    if let Some(path) = &event.transcript_path {
        agent.transcript_path = Some(path.clone());
    }
    if let Some(usage) = event.context {
        context_usage::keep(agent, usage);
    }
}

fn session_start(tx: &mut Tx<'_>, agent_id: &AgentId, event: &HookEvent) {
    if event.reason == Some(SessionReason::Replaced)
        && let Some(agent) = tx.agent_mut(agent_id)
    {
        agent.open_turn = None;
        agent.has_paused = false;
        agent.prompts_and_answers = 0;
        cli_limits::session_replaced(agent);
        context_usage::reset(tx, agent_id);
    }
    if event.reason == Some(SessionReason::Same) {
        context_usage::compacted(tx, agent_id);
    }
    // Some CLIs report only the start of the new session. If a handoff waits for that, the agent ends here, and this
    // event is its successor's.
    let successor = match event.reason {
        Some(SessionReason::Replaced) => session_replaced(tx, agent_id, event),
        Some(SessionReason::Same | SessionReason::Process | SessionReason::Killed) | None => None,
    };
    let Some(successor) = successor else {
        if event.reason == Some(SessionReason::Replaced) {
            idle::session_was_replaced(tx, agent_id);
        }
        return start::session_started(tx, agent_id, event);
    };
    if let Some(agent) = tx.agent_mut(&successor) {
        agent.session.id.clone_from(&event.session_id);
    }
    start::session_started(tx, &successor, event);
}

/// Another session replaces the agent's. If a handoff has waited for that, returns the successor, which is the new
/// session in the same process.
fn session_replaced(tx: &mut Tx<'_>, agent_id: &AgentId, event: &HookEvent) -> Option<AgentId> {
    let session = &tx.agent(agent_id)?.session;
    let is_start = event.kind == HookKind::SessionStart;
    let former = if is_start { session.former.clone() } else { session.id.clone() };
    tx.learn(Fact::SessionReplaced { agent_id: *agent_id, former });
    follow::facts(tx);
    let is_its = |agent: &Agent| agent.in_place && agent.previous_agent_id == Some(*agent_id);
    let ended = tx.agent(agent_id).filter(|agent| !agent.state.is_live())?;
    let successor = tx.handoff(&ended.handoff_id?)?.successor_id?;
    tx.agent(&successor).filter(|agent| is_its(agent)).map(|agent| agent.agent_id)
}

fn prompt(tx: &mut Tx<'_>, agent_id: &AgentId, event: &HookEvent) {
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    let turn_was_open = event.turn_id.is_some() && agent.open_turn == event.turn_id;
    agent.open_turn.clone_from(&event.turn_id);
    agent.has_paused = false;
    agent.prompts_and_answers += 1;
    end_superseded(tx, agent_id, event);
    if tx.agent(agent_id).is_some_and(|agent| agent.start.is_none()) {
        tx.set_state(agent_id, AgentState::Busy);
    }
    typing::receipt(tx, agent_id, event, turn_was_open);
}

/// An event with the id of another turn shows that our turn has ended without a report, so nobody waits for it any
/// longer. But a paused turn continues under the other id: Claude Code wakes itself with a prompt of its own when the
/// background work of the turn has ended.
fn end_superseded(tx: &mut Tx<'_>, agent_id: &AgentId, event: &HookEvent) {
    let turn_id = event.turn_id.as_deref();
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    let is_our_text = event.kind == HookKind::PromptSubmit && typing::bears_our_text(agent, event.text.as_deref());
    if let Some(turn) = agent.our_turn.as_mut().filter(|turn| turn.paused && !is_our_text) {
        turn.queued &= event.turn_id.is_none() || event.turn_id == turn.turn_id;
        turn.turn_id = event.turn_id.clone().or(turn.turn_id.take());
        turn.paused = false;
        return;
    }
    if agent.our_turn.as_ref().is_some_and(|turn| turn.is_superseded_by(turn_id)) {
        acceptance::apply(tx, agent_id, Sign::AnotherTurn);
        follow::facts(tx);
        let Some(agent) = tx.agent_mut(agent_id) else { return };
        let our_turn = agent.our_turn.take();
        idle::infer_end(tx, agent_id, our_turn.as_ref().map(|turn| &turn.purpose));
        follow::facts(tx);
    }
}

/// A turn has ended, well or not. It is ours only if it follows the receipt of our own prompt.
fn turn_end(tx: &mut Tx<'_>, agent_id: &AgentId, event: &HookEvent) {
    let now = tx.now;
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    agent.open_turn = None;
    agent.has_paused = false;
    agent.prompts_and_answers += u64::from(event.kind == HookKind::Stop);
    end_superseded(tx, agent_id, event);
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    let is_ours = agent.our_turn.as_ref().is_some_and(|turn| turn.ends_with(event.turn_id.as_deref()));
    if is_ours {
        acceptance::apply(tx, agent_id, Sign::Answered);
        follow::facts(tx);
    }
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    let ours: Option<OurTurn> = if is_ours { agent.our_turn.take() } else { None };
    context_usage::note_turn(&now, agent, ours.as_ref().map(|turn| &turn.purpose));
    let is_priming = ours.as_ref().is_some_and(|turn| matches!(turn.purpose, Purpose::Priming(_)));
    if agent.start.is_none() {
        tx.set_state(agent_id, AgentState::Idle);
    }
    if event.kind == HookKind::Stop {
        alerts::turn_succeeded(tx, agent_id);
    }
    // `priming::finish` reports a priming that fails.
    if event.kind == HookKind::StopFailure && !is_priming {
        alerts::turn_failed(tx, agent_id, event.message.as_deref(), is_ours);
    }
    tx.learn(Fact::AnyTurnEnded { agent_id: *agent_id });
    let Some(turn) = ours else { return };
    if is_priming {
        let said = event.message.as_deref().map(|said| format!(": {said}")).unwrap_or_default();
        let failed = (event.kind == HookKind::StopFailure)
            .then(|| format!("The agent's turn after the priming ended in an error{said}"));
        let interrupted = (event.kind == HookKind::Interrupted)
            .then(|| "The agent's turn after the priming was interrupted".to_owned());
        priming::finish(tx, agent_id, failed.or(interrupted).as_deref());
    }
    let event = Some(Box::new(event.clone()));
    tx.learn(Fact::OurTurnEnded { agent_id: *agent_id, purpose: turn.purpose, event });
}

/// The end of a session is not the end of its process. If the agent's process is known, the agent ends only when that
/// process dies.
fn session_end(tx: &mut Tx<'_>, agent_id: &AgentId, event: &HookEvent) {
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    match event.reason {
        Some(SessionReason::Same) => {}
        Some(SessionReason::Replaced) => {
            agent.session.replaced = true;
            agent.open_turn = None;
            context_usage::forget_pending(tx, agent_id);
            session_replaced(tx, agent_id, event);
        }
        Some(SessionReason::Process | SessionReason::Killed) | None => {
            agent.session.closed |= event.reason != Some(SessionReason::Killed);
            if agent.process.is_none() && agent.start.is_none() {
                exit::ended_by_its_word(tx, agent_id);
            }
        }
    }
}
