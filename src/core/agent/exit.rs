//! An agent's exit: requested, or detected because its process is dead or its pane is gone.

use super::{alerts, idle, queue, start, typing, verdict};
use crate::contract::NoticeCode;
use crate::contract::reply::AgentReply;
use crate::core::effect::{Effect, EffectKey};
use crate::core::event::Exit;
use crate::core::fact::{DeliveryResult, Fact};
use crate::core::id::{AgentId, RequestId};
use crate::core::notice::OperatorNotice;
use crate::core::reply::{Refused, Reply};
use crate::core::rows::agent::{Agent, AgentState, PendingExit, Primed, Purpose, Shutdown};
use crate::core::rows::handoff::Step;
use crate::core::time::Deadline;
use crate::core::tx::{Failure, Tx};
use serde_json::json;

/// How long a dead agent's last hooks may still write, in milliseconds: tasuki may see the death of the process before
/// the event file of its last Stop.
const LAST_HOOKS_MS: u64 = 2_000;
/// How long an agent's process may take to exit after its pane was killed, in milliseconds.
const KILL_MS: u64 = 10_000;
/// Deaths that are due within this time of each other are told in one notice, in milliseconds: many agents die together
/// if their session or their tmux server ends.
const TOGETHER_MS: u64 = 1_000;
/// How many of the agents that have died together a notice names.
const MOST_NAMED: usize = 3;

/// Begins an `agent_shutdown` that was checked: with force tasuki kills the pane, otherwise it types the exit command.
pub(crate) fn shut_down(tx: &mut Tx<'_>, agent_id: &AgentId, request: &RequestId, force: bool) {
    let deadline = Deadline::after(&tx.now, tx.state.settings.limits.ending_ms);
    let effect = if force { kill_pane(tx, agent_id) } else { None };
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.shutdown = Some(Shutdown { request_id: request.clone(), effect, deadline });
    }
    if !force {
        typing::begin_command(tx, agent_id, Purpose::Exit(None), Some(deadline));
    }
}

/// Begins to kill the agent's pane, if it has one. The end of its process is then noticed in the usual way.
pub(crate) fn kill_pane(tx: &mut Tx<'_>, agent_id: &AgentId) -> Option<EffectKey> {
    let agent = tx.agent(agent_id)?;
    let (pane, process) = (agent.pane?, agent.process);
    Some(tx.effect_of(agent_id, Effect::KillPane { agent_id: *agent_id, pane, process }))
}

/// A forced shutdown of an agent without a pane: there is nothing to kill, so tasuki only notes that the agent is lost.
pub(crate) fn end_without_pane(tx: &mut Tx<'_>, agent_id: &AgentId, request: &RequestId) {
    end(tx, agent_id, AgentState::Lost);
    answer_ended(tx, agent_id, request);
}

fn answer_ended(tx: &mut Tx<'_>, agent_id: &AgentId, request: &RequestId) {
    let ended_at = tx.agent(agent_id).and_then(|agent| agent.ended_at.clone());
    tx.answer(request, Reply::ok(&AgentReply { ended_at: Some(ended_at), ..AgentReply::default() }));
}

/// Takes the outcome of `Effect::KillPane` of a forced shutdown; `failed` if it is not certain that the agent has
/// ended.
pub(crate) fn pane_killed(tx: &mut Tx<'_>, agent_id: &AgentId, failed: Option<&str>) {
    let Some(shutdown) = tx.agent_mut(agent_id).and_then(|agent| agent.shutdown.as_mut()) else { return };
    shutdown.effect = None;
    if let Some(why) = failed {
        let message =
            format!("tasuki could not kill the agent's pane, or could not make sure that the agent has ended: {why}");
        let refused = Refused::new(409, "did_not_exit", message);
        refuse_shutdown(tx, agent_id, refused.hint("look at the agent's pane and process, then ask again"));
    }
}

/// Takes the verdict of the exit command of a shutdown: if the command was not typed, the shutdown is refused.
/// Otherwise the shutdown waits for the agent's exit.
pub(crate) fn exit_command_verdict(tx: &mut Tx<'_>, agent_id: &AgentId, result: &DeliveryResult) {
    let DeliveryResult::Refused(reason) = result else { return };
    let refused = Refused::new(409, "refused", reason.told("Nothing was typed"));
    refuse_shutdown(tx, agent_id, refused.hint(reason.hint()));
}

/// The deadline of a shutdown has passed, and the agent still lives.
pub(crate) fn shutdown_deadline_passed(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let hint = "end the agent yourself; if tasuki started the agent, you can shut it down with force";
    let refused = Refused::new(409, "did_not_exit", "The agent did not end in time").hint(hint);
    refuse_shutdown(tx, agent_id, refused);
}

fn refuse_shutdown(tx: &mut Tx<'_>, agent_id: &AgentId, refused: Refused) {
    if let Some(request) = take_shutdown(tx, agent_id) {
        tx.refuse(&request, refused);
    }
}

/// Ends the shutdown, and drops the effect that kills the pane. Returns the request that asked for the shutdown.
fn take_shutdown(tx: &mut Tx<'_>, agent_id: &AgentId) -> Option<RequestId> {
    let shutdown = tx.agent_mut(agent_id)?.shutdown.take()?;
    if let Some(key) = shutdown.effect {
        tx.drop_effect(key);
    }
    Some(shutdown.request_id)
}

/// An agent's process is dead, or only its pane is gone. If tasuki asked the agent to exit and its process is dead, the
/// agent counts as ended at once. Otherwise tasuki waits a while: for the last hooks of a dead agent, or for the death
/// of the process whose pane it kills.
pub(crate) fn detected(tx: &mut Tx<'_>, agent_id: &AgentId, how: Exit) {
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
        Exit::Dead if is_ending => end(tx, agent_id, AgentState::Ended),
        Exit::Dead | Exit::PaneGone => {
            let is_killed = agent.shutdown.as_ref().is_some_and(|shutdown| shutdown.effect.is_some());
            let within = if is_killed { KILL_MS } else { LAST_HOOKS_MS };
            let fresh = PendingExit { due: Deadline::after(&tx.now, within), pane_gone: how == Exit::PaneGone };
            if let Some(agent) = tx.agent_mut(agent_id) {
                let pending_exit = agent.pending_exit.get_or_insert(fresh);
                pending_exit.pane_gone &= how == Exit::PaneGone;
            }
        }
    }
}

/// The time that [`detected`] has set is over: the agent counts as ended, or as lost if only its pane is known to be
/// gone.
pub(crate) fn pending_exit_due(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(pending_exit) = tx.agent(agent_id).and_then(|agent| agent.pending_exit) else { return };
    if let Some(death) = death(tx, agent_id, how_gone(&pending_exit)) {
        tx.notify_error(death);
    }
    end(tx, agent_id, state_after(&pending_exit));
}

/// The CLI of an agent whose process is not known has said that it ends.
pub(crate) fn ended_by_its_word(tx: &mut Tx<'_>, agent_id: &AgentId) {
    if let Some(death) = death(tx, agent_id, "its CLI was told to end") {
        tx.notify_error(death);
    }
    end(tx, agent_id, AgentState::Ended);
}

/// Called before the deadlines of single agents are handled. If a death is due that the operator is to be told of, and
/// others are due soon after it, all these agents end now. Each leaves its own error file, but there is one notice.
pub(crate) fn deaths_due_together(tx: &mut Tx<'_>) {
    let dying = |id: &AgentId| {
        let pending_exit = tx.agent(id).filter(|agent| is_news(agent))?.pending_exit?;
        Some((*id, pending_exit)).filter(|_| pending_exit.due.remaining_ms(&tx.now) <= TOGETHER_MS)
    };
    let dying: Vec<(AgentId, PendingExit)> = tx.agent_ids().iter().filter_map(dying).collect();
    if dying.len() < 2 || !dying.iter().any(|(_, pending_exit)| pending_exit.due.is_due(&tx.now)) {
        return;
    }
    let names: Vec<String> = dying.iter().filter_map(|(id, _)| tx.agent(id).map(alerts::named)).collect();
    let mut named = names[..MOST_NAMED.min(names.len())].join(", ");
    if names.len() > MOST_NAMED {
        named.push_str(&format!(" and {} more", names.len() - MOST_NAMED));
    }
    let mut error_ids = Vec::new();
    for (agent_id, pending_exit) in &dying {
        if let Some(death) = death(tx, agent_id, how_gone(pending_exit)) {
            error_ids.push(tx.leave_error(death).to_string());
        }
        end(tx, agent_id, state_after(pending_exit));
    }
    let message = format!("{} agents have died, and nobody asked them to end: {named}", dying.len());
    let agent_ids: Vec<String> = dying.iter().map(|(id, _)| id.to_string()).collect();
    let details = json!({ "agent_ids": agent_ids, "error_ids": error_ids });
    let notice = OperatorNotice::new(NoticeCode::AgentDied, message).details(details);
    tx.notify_operator(notice.hint("see how to hand the work of each off: tasuki errors"));
}

fn how_gone(pending_exit: &PendingExit) -> &'static str {
    if pending_exit.pane_gone { "its pane is gone" } else { "its process is dead" }
}

fn state_after(pending_exit: &PendingExit) -> AgentState {
    if pending_exit.pane_gone { AgentState::Lost } else { AgentState::Ended }
}

/// Whether the operator is told of the agent's death: it has a persona, and nobody asked it to end. Not in these cases:
///
/// - The agent's handoff, shutdown or start reports the end itself.
/// - The agent's work is recorded, so a failed handoff had already asked it to end.
/// - The CLI has said that it ends, because a person has typed its exit command or logged out. That person knows.
///
/// If a person closes the pane, that counts as a death: the CLI reports nothing, or that it was told to end from
/// outside.
fn is_news(agent: &Agent) -> bool {
    let is_reported =
        agent.shutdown.is_some() || agent.handoff_id.is_some() || agent.recorded_in.is_some() || agent.start.is_some();
    agent.persona_slug.is_some() && !is_reported && !agent.session.closed
}

/// The death of an agent, as the operator is told of it; none if the operator is not told.
fn death(tx: &Tx<'_>, agent_id: &AgentId, what: &str) -> Option<Failure> {
    let agent = tx.agent(agent_id).filter(|agent| is_news(agent))?;
    let message = format!("Agent {} has died: {what}, and nobody asked it to end", alerts::named(agent));
    // Without a transcript tasuki can't write the document.
    let author = if agent.transcript_path.is_some() { "salvage" } else { "provided --document FILE" };
    let hint = format!(
        "to hand its work off: tasuki handoff {} --author {author}; or start another agent, which knows nothing of it",
        agent_id.short()
    );
    Some(Failure::of_agent(agent_id, NoticeCode::AgentDied.as_str(), &message, &hint))
}

/// The agent has ended or is lost: whatever waited for it gets its answer.
pub(crate) fn end(tx: &mut Tx<'_>, agent_id: &AgentId, state: AgentState) {
    idle::clear_silence(tx, agent_id);
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    agent.pending_exit = None;
    agent.priming_deadline = None;
    agent.notices.not_before = None;
    agent.our_turn = None;
    let queue = std::mem::take(&mut agent.queue);
    let primed = agent.primed.clone();
    tx.set_state(agent_id, state);
    if let Primed::Reading { effect } = primed {
        tx.drop_effect(effect);
    }
    end_typing(tx, agent_id);
    start::agent_ended(tx, agent_id);
    for queued in queue {
        let refused = Refused::new(400, "not_active", "Agent is not active");
        let refused = after_handoff(tx, agent_id).into_iter().fold(refused, Refused::hint);
        queue::not_typed(tx, agent_id, queued, refused);
    }
    if let Some(request) = take_shutdown(tx, agent_id) {
        answer_ended(tx, agent_id, &request);
    }
    tx.learn(Fact::Ended { agent_id: *agent_id });
}

/// The hint for a text that waited for an agent that has ended in its own handoff.
fn after_handoff(tx: &Tx<'_>, agent_id: &AgentId) -> Option<String> {
    let agent = tx.agent(agent_id)?;
    let handoff = tx.handoff(&agent.recorded_in.or(agent.handoff_id)?)?;
    let slug = agent.persona_slug.as_ref().filter(|_| handoff.agent_id == *agent_id)?;
    let id = handoff.handoff_id.short();
    Some(format!(
        "nothing was typed: the agent was handed off first (handoff {id}); as soon as its successor has the document, send the \
         text to it: tasuki send {slug} TEXT"
    ))
}

/// Ends the delivery to an agent that has ended. The askers of four kinds of texts get a verdict, because they learn of
/// the agent's end in no other way. The others need none: `Fact::Ended` reaches the step of a handoff, [`end`] answers
/// a shutdown, and nothing waits for a priming outside a handoff.
fn end_typing(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let purpose = tx.agent(agent_id).and_then(|agent| agent.typing.as_ref()).map(|typing| typing.purpose.clone());
    match purpose {
        None => {}
        Some(Purpose::Send(_) | Purpose::Message(..) | Purpose::Work(_) | Purpose::Resume) => {
            verdict::finish(tx, agent_id, &DeliveryResult::Unconfirmed("agent_ended".to_owned()))
        }
        Some(_) => drop(verdict::take(tx, agent_id)),
    }
}

/// Gives up a start that nothing waits for any more. An agent without a pane was never seen alive, so it counts as
/// lost.
pub(crate) fn abandon_start(tx: &mut Tx<'_>, agent_id: &AgentId) {
    start::take(tx, agent_id);
    if tx.agent(agent_id).is_some_and(|agent| agent.pane.is_none() && agent.state.is_live()) {
        end(tx, agent_id, AgentState::Lost);
    }
}
