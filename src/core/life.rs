//! An agent's end: asked for, seen, or feared.

use super::effect::Effect;
use super::event::Gone;
use super::fact::{Ended, Fact};
use super::id::{AgentId, RequestId};
use super::reply::{Refused, Reply};
use super::rows::agent::{AgentState, Dying, Primed, Purpose, Shutdown};
use super::rows::handoff::Step;
use super::text::word;
use super::time::Deadline;
use super::tx::Tx;
use super::{idle, queue, start, typing, verdict};
use crate::contract::reply::AgentReply;
use serde_json::json;

/// How long a dead agent's last hooks may still write, in milliseconds (`flow.md` rule 6).
const LAST_HOOKS_MS: u64 = 2_000;
/// How long the process of an agent may take to its end whose pane we are killing, in milliseconds.
const KILL_MS: u64 = 10_000;

/// `agent_shutdown`, checked already.
pub(crate) fn shut_down(tx: &mut Tx<'_>, agent_id: &AgentId, request: &RequestId, force: bool) {
    let deadline = Deadline::after(&tx.now, tx.state.settings.limits.ending_ms);
    let Some(agent) = tx.agent(agent_id) else { return };
    let process = agent.process;
    let effect = match agent.pane {
        Some(pane) if force => Some(tx.effect_of(agent_id, Effect::KillPane { agent_id: *agent_id, pane, process })),
        _ => None,
    };
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.shutdown = Some(Shutdown { request_id: request.clone(), effect, deadline });
    }
    if !force {
        typing::begin_command(tx, agent_id, Purpose::Exit(None), Some(deadline));
    }
}

/// A forced shutdown of an agent without a pane: there is nothing to kill, so its row is all that ends.
pub(crate) fn forget(tx: &mut Tx<'_>, agent_id: &AgentId, request: &RequestId) {
    end(tx, agent_id, AgentState::Lost);
    let ended_at = tx.agent(agent_id).and_then(|agent| agent.ended_at.clone());
    tx.answer(request, Reply::ok(&AgentReply { ended_at: Some(ended_at), ..AgentReply::default() }));
}

/// The pane of a forced shutdown was killed, or could not be.
pub(crate) fn pane_killed(tx: &mut Tx<'_>, agent_id: &AgentId, failed: Option<&str>) {
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    let Some(shutdown) = agent.shutdown.as_mut() else { return };
    shutdown.effect = None;
    if let Some(why) = failed {
        let request = shutdown.request_id.clone();
        agent.shutdown = None;
        tx.refuse(&request, Refused::new(409, "did_not_exit", format!("The pane was not killed: {why}")));
    }
}

/// The exit command of a shutdown was not typed.
pub(crate) fn exit_refused(tx: &mut Tx<'_>, agent_id: &AgentId, ended: &Ended) {
    let Ended::Refused(reason) = ended else { return };
    let Some(shutdown) = tx.agent_mut(agent_id).and_then(|agent| agent.shutdown.take()) else { return };
    let message = format!("Nothing was typed: {}", word(reason));
    tx.refuse(&shutdown.request_id, Refused::new(409, "refused", message).hint(reason.hint()));
}

/// An agent is gone. The end of a process that was asked to end is its end; otherwise its last hooks are waited for.
pub(crate) fn gone(tx: &mut Tx<'_>, agent_id: &AgentId, how: Gone) {
    let Some(agent) = tx.agent(agent_id) else { return };
    if !agent.state.is_live() {
        return;
    }
    let is_ending = agent.shutdown.is_some()
        || agent
            .handoff_id
            .and_then(|id| tx.handoff(&id))
            .is_some_and(|handoff| handoff.agent_id == *agent_id && handoff.step == Step::Ending);
    match how {
        Gone::Dead if is_ending => end(tx, agent_id, AgentState::Ended),
        Gone::Dead | Gone::PaneGone => {
            let is_killed = agent.shutdown.as_ref().is_some_and(|shutdown| shutdown.effect.is_some());
            let within = if is_killed { KILL_MS } else { LAST_HOOKS_MS };
            let fresh = Dying { due: Deadline::after(&tx.now, within), lost: how == Gone::PaneGone };
            if let Some(agent) = tx.agent_mut(agent_id) {
                let dying = agent.dying.get_or_insert(fresh);
                dying.lost &= how == Gone::PaneGone;
            }
        }
    }
}

/// What was seen of an agent that is gone has lasted long enough to be believed.
pub(crate) fn is_due(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(dying) = tx.agent(agent_id).and_then(|agent| agent.dying) else { return };
    tell_death(tx, agent_id, dying.lost);
    end(tx, agent_id, if dying.lost { AgentState::Lost } else { AgentState::Ended });
}

/// An agent has died that nobody asked to: where no handoff and no start tells of it, nobody would know.
fn tell_death(tx: &mut Tx<'_>, agent_id: &AgentId, lost: bool) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let Some(slug) = &agent.persona_slug else { return };
    let is_told = agent.shutdown.is_some() || agent.handoff_id.is_some() || agent.start.is_some();
    if is_told || agent.session.closed {
        return;
    }
    let what = if lost { "its pane is gone" } else { "its process is dead" };
    let hint = "hand it off with author salvage, or start another";
    let text = format!("agent {} ({slug}) has died: {what}, and nobody asked for it. {hint}", agent_id.short());
    let fields =
        json!({ "code": "agent_died", "agent_id": agent_id, "persona_slug": slug, "lost": lost, "hint": hint });
    tx.tell_notice(&text, fields);
}

/// The agent has ended or is lost: everything that waited for it is told so.
pub(crate) fn end(tx: &mut Tx<'_>, agent_id: &AgentId, state: AgentState) {
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    agent.dying = None;
    agent.priming_deadline = None;
    agent.notices.not_before = None;
    agent.our_turn = None;
    idle::forget(tx, agent_id);
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    let queue = std::mem::take(&mut agent.queue);
    let shutdown = agent.shutdown.take();
    let reading = agent.primed.clone();
    tx.set_state(agent_id, state);
    if let Primed::Reading { effect } = reading {
        tx.drop_effect(effect);
    }
    end_typing(tx, agent_id);
    start::ended(tx, agent_id);
    for queued in queue {
        queue::not_typed(tx, queued, Refused::new(400, "not_active", "Agent is not active"));
    }
    if let Some(shutdown) = shutdown {
        if let Some(key) = shutdown.effect {
            tx.drop_effect(key);
        }
        let ended_at = tx.agent(agent_id).and_then(|agent| agent.ended_at.clone());
        tx.answer(&shutdown.request_id, Reply::ok(&AgentReply { ended_at: Some(ended_at), ..AgentReply::default() }));
    }
    tx.learn(Fact::Ended { agent_id: *agent_id });
}

/// A text that was on its way to an agent that has ended: for a handoff the step fails by itself; a sender is told.
fn end_typing(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let purpose = tx.agent(agent_id).and_then(|agent| agent.typing.as_ref()).map(|typing| typing.purpose.clone());
    match purpose {
        None => {}
        Some(Purpose::Send(_) | Purpose::Message(..) | Purpose::Work(_)) => {
            verdict::finish(tx, agent_id, &Ended::Unconfirmed("agent_ended".to_owned()))
        }
        Some(_) => {
            let effect = tx.agent_mut(agent_id).and_then(|agent| agent.typing.take()).and_then(|typing| typing.effect);
            if let Some(key) = effect {
                tx.drop_effect(key);
            }
        }
    }
}

/// A shutdown has taken too long.
pub(crate) fn shutdown_failed(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(shutdown) = tx.agent_mut(agent_id).and_then(|agent| agent.shutdown.take()) else { return };
    if let Some(key) = shutdown.effect {
        tx.drop_effect(key);
    }
    let hint = "end it yourself; an agent that tasuki started can be shut down with force";
    tx.refuse(&shutdown.request_id, Refused::new(409, "did_not_exit", "The agent did not end in time").hint(hint));
}

/// A start that nobody waits for any more: what was never seen to live is not waited for either.
pub(crate) fn give_up(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let effect = agent.start.as_ref().and_then(|start| start.effect);
    let never_seen = agent.pane.is_none() && agent.state.is_live();
    if let Some(key) = effect {
        tx.drop_effect(key);
    }
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.start = None;
    }
    if never_seen {
        end(tx, agent_id, AgentState::Lost);
    }
}
