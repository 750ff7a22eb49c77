//! The idle watch: watches the screen of an agent while a handoff or a text waits for the end of its turn, because an
//! interrupt or an API error may end a turn without any event. Where nothing waits, a long silence causes a brief watch
//! of a few seconds, so that no view says `busy` for ever. An agent at a dialog is watched briefly too, because no
//! event says that the dialog was answered.

use super::{alerts, cli_limits, context_usage, priming, unlocated};
use crate::core::effect::{Effect, EffectKey, Readiness};
use crate::core::fact::Fact;
use crate::core::id::{AgentId, HandoffId};
use crate::core::request::Author;
use crate::core::rows::ack::Ack;
use crate::core::rows::agent::{Agent, AgentState, IdleWatch, LookCause, Purpose, WatchState};
use crate::core::rows::handoff::{CheckPhase, Step};
use crate::core::time::Deadline;
use crate::core::tx::Tx;

/// If nothing waits for the end of a turn, and the agent sends no event for this long, in milliseconds, a brief watch
/// of its screen begins.
const SILENCE_LIMIT_MS: u64 = 10 * 60_000;
/// The same for a CLI that does not report a turn that fails: only its screen shows the end of such a turn.
const UNREPORTED_LIMIT_MS: u64 = 2 * 60_000;
/// The same for a turn that has paused, because something that it started is still running. A server that the agent has
/// started may run for ever, so tasuki does not wait long.
const PAUSED_LIMIT_MS: u64 = 60_000;
/// The same if the agent was asked to repair its document: what it waits for may be a part of the repair.
const PAUSED_REPAIR_LIMIT_MS: u64 = 5 * 60_000;
/// The pause, in milliseconds, before a watch that ended without the end of the turn starts again.
const LOOK_AGAIN_MS: u64 = 2_000;
/// If a look finds no dialog although an event has reported one, a brief watch follows after this time, in
/// milliseconds: the CLI may draw the dialog late.
const DRAWN_LATE_MS: u64 = 60_000;

/// Starts or stops the watch, as the agent's row and its handoff require. Called whenever the agent has changed.
///
/// The silence deadline runs for two kinds of agents: those in a turn, while the watch does not run; and those known
/// only by their own events. It does not run during an agent's start, nor when its exit was detected. Each event of the
/// agent restarts the deadline.
pub(crate) fn update_idle_watch(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let (before, is_unlocated) = (agent.idle_watch, unlocated::is_unlocated(agent));
    // A brief watch also finds out that a dialog is closed.
    let brief = agent.state == AgentState::Blocked;
    let silence_limit_ms = silence_limit_ms(tx, agent);
    // A blocked agent counts as in a turn: if a person closes the dialog with Esc, the CLI sends no event either.
    let is_in_a_turn = agent.state.is_in_a_turn() && agent.pane.is_some();
    let is_running = agent.start.is_none() && agent.pending_exit.is_none();
    let turn = match (before.turn, agent.pane.filter(|_| is_waited_for(tx, agent))) {
        (WatchState::Off, Some(pane)) => {
            let profile = agent.profile.clone();
            WatchState::Running(tx.effect_of(agent_id, Effect::AwaitIdle { agent_id: *agent_id, pane, profile, brief }))
        }
        (WatchState::Running(key), None) => {
            tx.drop_effect(key);
            WatchState::Off
        }
        (WatchState::Due(_), None) => WatchState::Off,
        (watch, _) => watch,
    };
    let counts_silence = is_running && (is_unlocated || (is_in_a_turn && !matches!(turn, WatchState::Running(_))));
    let silence = match (before.silence, counts_silence) {
        (WatchState::Off, true) => WatchState::Due(Deadline::after(&tx.now, silence_limit_ms)),
        (WatchState::Due(_), false) => WatchState::Off,
        (watch, _) => watch,
    };
    let after = IdleWatch { turn, silence };
    if after != before
        && let Some(agent) = tx.agent_mut(agent_id)
    {
        agent.idle_watch = after;
    }
}

fn silence_limit_ms(tx: &Tx<'_>, agent: &Agent) -> u64 {
    let profile = tx.state.settings.profiles.get(&agent.profile);
    if let Some(turn) = agent.our_turn.as_ref().filter(|turn| turn.paused) {
        return paused_limit_ms(tx, &turn.purpose);
    }
    if agent.has_paused && agent.our_turn.is_none() {
        return PAUSED_LIMIT_MS;
    }
    match (unlocated::is_unlocated(agent), profile.is_none_or(|profile| profile.reports_failures)) {
        (true, _) => unlocated::SILENCE_LIMIT_MS,
        (false, true) => SILENCE_LIMIT_MS,
        (false, false) => UNREPORTED_LIMIT_MS,
    }
}

fn paused_limit_ms(tx: &Tx<'_>, purpose: &Purpose) -> u64 {
    let replies = |id: &HandoffId| tx.handoff(id).is_some_and(|handoff| handoff.author == Author::AgentReply);
    match purpose {
        // The agent's last answer becomes the document, so its turn must not count as ended too early.
        Purpose::Instruction(id) | Purpose::Rework(id) if replies(id) => SILENCE_LIMIT_MS,
        Purpose::Rework(_) => PAUSED_REPAIR_LIMIT_MS,
        Purpose::Instruction(_)
        | Purpose::Priming(_)
        | Purpose::Briefing(_)
        | Purpose::Resume
        | Purpose::Send(_)
        | Purpose::Work(_)
        | Purpose::Message(..)
        | Purpose::Exit(_)
        | Purpose::NewSession(_) => PAUSED_LIMIT_MS,
    }
}

/// A turn pauses: something that it started is still running, and may continue it. If nothing comes for a while and the
/// screen is idle, the turn is over: [`update_idle_watch`], which follows in the same decision, counts that silence. A
/// turn that pauses does not wait at a dialog.
pub(crate) fn paused(tx: &mut Tx<'_>, agent_id: &AgentId) {
    dialog_closed(tx, agent_id);
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    agent.has_paused = true;
    if let Some(turn) = agent.our_turn.as_mut() {
        turn.paused = true;
    }
}

/// The pause is over: [`update_idle_watch`], which follows in the same decision, starts the watch again if it is
/// needed.
pub(crate) fn watch_again(tx: &mut Tx<'_>, agent_id: &AgentId) {
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.idle_watch.turn = WatchState::Off;
    }
}

/// The agent was silent for long: begins a brief watch of its screen. An agent that is known only by its events has no
/// screen: for it this returns `Lost`, the state in which the caller must end it.
#[must_use]
pub(crate) fn silence_elapsed(tx: &mut Tx<'_>, agent_id: &AgentId) -> Option<AgentState> {
    let agent = tx.agent(agent_id)?;
    if unlocated::is_unlocated(agent) {
        return Some(AgentState::Lost);
    }
    let pane = agent.pane?;
    let profile = agent.profile.clone();
    let key = tx.effect_of(agent_id, Effect::AwaitIdle { agent_id: *agent_id, pane, profile, brief: true });
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.idle_watch.silence = WatchState::Running(key);
    }
    None
}

/// The agent sent an event or has ended: the silence is over, and the outcome of a brief watch would be outdated.
pub(crate) fn clear_silence(tx: &mut Tx<'_>, agent_id: &AgentId) {
    if tx.agent(agent_id).is_none_or(|agent| agent.idle_watch.silence == WatchState::Off) {
        return;
    }
    let silence = tx.agent_mut(agent_id).map(|agent| std::mem::take(&mut agent.idle_watch.silence));
    if let Some(WatchState::Running(key)) = silence {
        tx.drop_effect(key);
    }
}

/// Whether anything waits for the end of a turn that this agent seems to be in.
fn is_waited_for(tx: &Tx<'_>, agent: &Agent) -> bool {
    // An agent whose start was given up may have become ready since.
    let seems_busy = agent.state.is_in_a_turn() || agent.state == AgentState::Starting;
    // A prompt that was submitted into a running turn gets the next turn, or was added to the running one. In the
    // latter case no further end is ever reported, and only the screen shows it.
    let may_be_over = agent.state == AgentState::Idle && agent.our_turn.as_ref().is_some_and(|turn| turn.queued);
    if !(seems_busy || may_be_over) || agent.typing.is_some() || agent.start.is_some() || agent.pending_exit.is_some() {
        return false;
    }
    // The screen of a turn that has paused is idle; only a long silence ends such a turn.
    if agent.our_turn.as_ref().is_some_and(|turn| turn.paused) {
        return false;
    }
    // Without its profile the screen can't be read.
    if !tx.state.settings.profiles.contains_key(&agent.profile) {
        return false;
    }
    let is_step = |id: &HandoffId, step| tx.handoff(id).is_some_and(|handoff| handoff.step == step);
    let answers_our_text = agent.our_turn.as_ref().is_some_and(|turn| match &turn.purpose {
        Purpose::Instruction(_) | Purpose::Rework(_) | Purpose::Priming(_) => true,
        Purpose::Briefing(id) => is_step(id, Step::Reading),
        Purpose::Send(_) | Purpose::Work(_) | Purpose::Exit(_) | Purpose::NewSession(_) => false,
        Purpose::Message(..) | Purpose::Resume => false,
    });
    let handoff = agent.handoff_id.and_then(|id| tx.handoff(&id));
    let delays_handoff = handoff.is_some_and(|handoff| {
        let has_messages = handoff.step == Step::Acknowledging && handoff.ack.as_ref().is_some_and(Ack::has_waiting);
        let waits = handoff.step == Step::Waiting || handoff.stay.checking == Some(CheckPhase::AwaitingIdle);
        let is_waiting = waits && handoff.agent_id == agent.agent_id;
        handoff.stay.deferred || is_waiting || (has_messages && handoff.successor_id == Some(agent.agent_id))
    });
    may_be_over || answers_our_text || delays_handoff || !agent.queue.is_empty()
}

/// Takes the outcome of `Effect::AwaitIdle`: of the watch, of the brief watch after a long silence, or of a look at a
/// dialog.
pub(crate) fn watch_ended(tx: &mut Tx<'_>, agent_id: &AgentId, key: EffectKey, readiness: &Readiness) {
    let again = Deadline::after(&tx.now, LOOK_AGAIN_MS);
    let is_open = matches!(readiness, Readiness::Blocked { .. });
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    let (mut may_be_closed, is_paused) = (true, agent.our_turn.as_ref().is_some_and(|turn| turn.paused));
    let is_look = agent.alerts.dialog.as_ref().is_some_and(|dialog| dialog.look == Some(key));
    if is_look {
        alerts::dialog_looked_at(tx, agent_id, is_open);
    } else if agent.idle_watch.silence == WatchState::Running(key) {
        agent.idle_watch.silence = WatchState::Off;
    } else if agent.idle_watch.turn == WatchState::Running(key) {
        // If there is no server or pane, or a dialog is still open, the next watch would end at once without a pause.
        agent.idle_watch.turn = if *readiness == Readiness::Ready { WatchState::Off } else { WatchState::Due(again) };
        // This watch may run right after the event, before the CLI has drawn the dialog.
        if let Some(dialog) = &mut agent.alerts.dialog {
            dialog.is_seen |= is_open;
            may_be_closed = dialog.is_seen;
        }
    } else {
        return;
    }
    match readiness {
        // Whatever dialog was open is closed. A turn that has paused ends by a long silence.
        Readiness::Ready if waits_for_document(tx, agent_id) || (is_look && is_paused) => {
            dialog_closed(tx, agent_id);
            tx.set_state(agent_id, AgentState::Busy);
        }
        Readiness::Ready => end_turn(tx, agent_id),
        Readiness::Blocked { .. } => {
            blocked(tx, agent_id, None);
            cli_limits::look(tx, agent_id, LookCause::Sign, None);
        }
        Readiness::AtWork { .. } if may_be_closed => {
            let late = Deadline::after(&tx.now, DRAWN_LATE_MS);
            let is_blocked = |agent: &&mut Agent| agent.state == AgentState::Blocked;
            let Some(agent) = tx.agent_mut(agent_id).filter(is_blocked) else { return };
            if !agent.has_paused && !matches!(agent.idle_watch.silence, WatchState::Running(_)) {
                agent.idle_watch.silence = WatchState::Due(late);
            }
            dialog_closed(tx, agent_id);
        }
        Readiness::AtWork { .. } | Readiness::NotReady { .. } | Readiness::Gone { .. } => {}
    }
}

/// The dialog is closed, and the turn continues. No event reports that. The next dialog of the turn is news.
fn dialog_closed(tx: &mut Tx<'_>, agent_id: &AgentId) {
    if tx.agent(agent_id).is_some_and(|agent| agent.state == AgentState::Blocked && agent.start.is_none()) {
        tx.set_state(agent_id, AgentState::Busy);
        tx.learn(Fact::DialogClosed { agent_id: *agent_id });
    }
}

/// Whether the turn in which the agent is to write its document has paused, and no document has been seen: what the
/// agent has started may still wake it, and the step has a limit.
fn waits_for_document(tx: &Tx<'_>, agent_id: &AgentId) -> bool {
    let turn = tx.agent(agent_id).and_then(|agent| agent.our_turn.as_ref()).filter(|turn| turn.paused);
    let Some(Purpose::Instruction(id)) = turn.map(|turn| &turn.purpose) else { return false };
    tx.handoff(id).is_some_and(|handoff| {
        handoff.author == Author::AgentFile && handoff.document.as_ref().is_none_or(|seen| seen.bytes == 0)
    })
}

/// The screen has been idle for a while: ends the turn, although no event reported its end.
fn end_turn(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let now = tx.now;
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    agent.open_turn = None;
    agent.has_paused = false;
    let our_turn = agent.our_turn.take();
    context_usage::note_turn(&now, agent, our_turn.as_ref().map(|turn| &turn.purpose));
    tx.set_state(agent_id, AgentState::Idle);
    tx.learn(Fact::AnyTurnEnded { agent_id: *agent_id });
    infer_end(tx, agent_id, our_turn.as_ref().map(|turn| &turn.purpose));
    context_usage::turn_ended(tx, agent_id);
    cli_limits::look(tx, agent_id, LookCause::EndedOtherwise, None);
}

/// Another session has begun in the agent's process, so a turn or a dialog of the old session has ended. But a prompt
/// of ours may still be answered in the new session; the watch finds out whether its turn is over.
pub(crate) fn session_was_replaced(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let is_over = |agent: &Agent| agent.start.is_none() && agent.our_turn.is_none() && agent.state.is_in_a_turn();
    if tx.agent(agent_id).is_some_and(is_over) {
        end_turn(tx, agent_id);
    }
}

/// The turn that answers our prompt has ended without an event: that counts like a Stop event, and the handoff's view
/// says that the end was inferred.
pub(crate) fn infer_end(tx: &mut Tx<'_>, agent_id: &AgentId, purpose: Option<&Purpose>) {
    let Some(purpose) = purpose else { return };
    tx.learn(Fact::OurTurnEnded { agent_id: *agent_id, purpose: purpose.clone(), event: None });
    if let Purpose::Priming(_) = purpose {
        priming::finish(tx, agent_id, None);
    }
}

/// A dialog waits for a person. Within a handoff the operator is notified at once.
pub(crate) fn blocked(tx: &mut Tx<'_>, agent_id: &AgentId, message: Option<&str>) {
    let again = Deadline::after(&tx.now, LOOK_AGAIN_MS);
    let Some(agent) = tx.agent(agent_id) else { return };
    let (was_blocked, watch) = (agent.state == AgentState::Blocked, agent.idle_watch.turn);
    let is_another = message.is_some() && alerts::is_another_dialog(agent, message);
    if agent.start.is_none() {
        tx.set_state(agent_id, AgentState::Blocked);
    }
    if was_blocked && !is_another {
        return;
    }
    tx.learn(Fact::Blocked { agent_id: *agent_id, message: message.map(str::to_owned) });
    // The watch that runs waits for a day. Brief ones follow: see `update_idle_watch`.
    if let WatchState::Running(key) = watch
        && let Some(agent) = tx.agent_mut(agent_id)
    {
        agent.idle_watch.turn = WatchState::Due(again);
        tx.drop_effect(key);
    }
}
