//! How full an agent's context is, and what follows from that: the operator is told once, and, where that is wanted, a
//! handoff begins by itself. Both are off unless the operator has set them.

use super::effect::{Effect, EffectKey, Measured, Round};
use super::event::RequestFacts;
use super::fact::Fact;
use super::hook::ContextGauge;
use super::id::{AgentId, HandoffId};
use super::rows::agent::Agent;
use super::tx::Tx;
use crate::contract::{JournalLine, known};
use serde_json::json;

/// The reason of a handoff that begins by itself.
pub const REASON: &str = "context_limit";

/// Another session has begun in the agent's process: its context is empty.
pub(crate) fn forget(agent: &mut Agent) {
    agent.context = None;
    agent.watch.put_off = None;
    agent.watch.reached = false;
}

/// Whether the operator is to see that a handoff is suggested: as long as the context is that full and none has begun.
#[must_use]
pub fn is_suggested(agent: &Agent) -> bool {
    agent.watch.reached && is_free(agent)
}

/// Whether it could be handed off.
fn is_free(agent: &Agent) -> bool {
    let has_none = agent.handoff_id.is_none() && agent.record_of.is_none();
    agent.persona_slug.is_some() && has_none && agent.state.is_live()
}

/// The CLI itself reports.
pub(crate) fn told(tx: &mut Tx<'_>, agent_id: &AgentId, gauge: ContextGauge) {
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    agent.watch.told_window = gauge.window.or(agent.watch.told_window);
    agent.watch.guessed = false;
    agent.context = Some(ContextGauge { used: gauge.used, window: agent.watch.told_window });
    suggest(tx, agent_id);
}

/// A turn has ended: what it has used stands in the transcript, where the profile can read that.
pub(crate) fn turn_ended(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id).filter(|agent| agent.state.is_live()) else { return };
    let reads = tx.state.settings.profiles.get(&agent.profile).is_some_and(|profile| profile.tells_context);
    let before = agent.watch.reading;
    let Some(path) = agent.transcript_path.clone().filter(|_| reads) else { return judge(tx, agent_id) };
    let (agent_id, profile) = (*agent_id, agent.profile.clone());
    if let Some(key) = before {
        tx.drop_effect(key);
    }
    let key = tx.effect_of(&agent_id, Effect::ReadGauge { agent_id, profile, path });
    if let Some(agent) = tx.agent_mut(&agent_id) {
        agent.watch.reading = Some(key);
    }
}

/// The transcript was read; none where it tells nothing.
pub(crate) fn measured(tx: &mut Tx<'_>, agent_id: &AgentId, key: EffectKey, measured: Option<Measured>) {
    let Some(agent) = tx.agent_mut(agent_id).filter(|agent| agent.watch.reading == Some(key)) else { return };
    agent.watch.reading = None;
    if let Some(Measured { gauge, guessed }) = measured {
        let told = agent.watch.told_window.filter(|_| guessed || gauge.window.is_none());
        agent.watch.guessed = guessed && told.is_none();
        agent.context = Some(ContextGauge { used: gauge.used, window: told.or(gauge.window) });
    }
    judge(tx, agent_id);
}

fn judge(tx: &mut Tx<'_>, agent_id: &AgentId) {
    suggest(tx, agent_id);
    look_round(tx, agent_id);
}

fn session(agent: &Agent) -> String {
    agent.session.id.clone().unwrap_or_default()
}

/// The share that is used, if it has reached the limit, of an agent that could be handed off.
fn over(agent: &Agent, limit: Option<u64>) -> Option<u64> {
    let percent = agent.context.and_then(|context| context.percent())?;
    (is_free(agent) && percent >= limit?).then_some(percent)
}

/// Tells the operator, once in a session, and notes for the views whether it holds.
fn suggest(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let limit = tx.state.settings.context.suggest_at;
    let Some(agent) = tx.agent(agent_id) else { return };
    let percent = agent.context.and_then(|context| context.percent());
    let reached = percent.zip(limit).is_some_and(|(percent, limit)| percent >= limit);
    if agent.watch.reached != reached
        && let Some(agent) = tx.agent_mut(agent_id)
    {
        agent.watch.reached = reached;
    }
    let Some(agent) = tx.agent(agent_id) else { return };
    let session = session(agent);
    let is_new = agent.watch.suggested_in.as_ref() != Some(&session);
    let Some(percent) = over(agent, limit).filter(|_| is_new) else { return };
    let slug = agent.persona_slug.as_ref().map(ToString::to_string).unwrap_or_default();
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.watch.suggested_in = Some(session);
    }
    let text = format!(
        "the context of {slug} is {percent} % full; hand it off with: tasuki handoff {slug} --reason {REASON} --wait"
    );
    tx.tell_notice(&text, json!({ "agent_id": agent_id, "persona_slug": slug, "percent": percent }));
    journal(tx, agent_id, "suggested", percent, JournalLine::default());
}

/// Asks for a look at what decides whether a handoff may begin by itself, right before it would.
fn look_round(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let limit = tx.state.settings.context.auto_at;
    let Some(agent) = tx.agent(agent_id) else { return };
    let is_new = agent.watch.begun_in.as_ref() != Some(&session(agent)) && agent.watch.looking.is_none();
    let Some(percent) = over(agent, limit).filter(|_| is_new) else { return };
    if agent.watch.guessed {
        let why = "the size of its context window is only guessed; its CLI has not told it";
        return put_off(tx, agent_id, percent, why);
    }
    let Some((pane, persona)) = agent.pane.zip(agent.persona_slug.clone()).filter(|_| is_at_rest(agent)) else {
        return;
    };
    let key = tx.effect_of(agent_id, Effect::LookRound { agent_id: *agent_id, pane, persona });
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.watch.looking = Some(key);
    }
}

fn is_at_rest(agent: &Agent) -> bool {
    agent.is_free() && agent.queue.is_empty()
}

/// What was seen; none where the look itself failed. Much may have happened meanwhile, so all is judged anew.
pub(crate) fn looked(tx: &mut Tx<'_>, agent_id: &AgentId, key: EffectKey, round: Option<Round>) {
    let limit = tx.state.settings.context.auto_at;
    let Some(agent) = tx.agent_mut(agent_id).filter(|agent| agent.watch.looking == Some(key)) else { return };
    agent.watch.looking = None;
    let Some(percent) = over(agent, limit).filter(|_| is_at_rest(agent)) else { return };
    let Some((slug, round)) = agent.persona_slug.clone().zip(round) else { return };
    match round.viewers {
        Some(0) => {}
        Some(_) => return put_off(tx, agent_id, percent, "a client is attached to its window"),
        None => return put_off(tx, agent_id, percent, "its window could not be looked at"),
    }
    let facts = RequestFacts { persona: Some((slug, round.persona)), ..RequestFacts::default() };
    tx.learn(Fact::ContextFull { agent_id: *agent_id, percent, facts: Box::new(facts) });
}

/// Its handoff has begun by itself.
pub(crate) fn begun(tx: &mut Tx<'_>, agent_id: &AgentId, percent: u64, handoff_id: HandoffId) {
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    agent.watch.begun_in = Some(session(agent));
    agent.watch.put_off = None;
    let slug = agent.persona_slug.as_ref().map(ToString::to_string).unwrap_or_default();
    let text = format!("the context of {slug} is {percent} % full; its handoff has begun by itself");
    let fields = json!({ "agent_id": agent_id, "handoff_id": handoff_id, "percent": percent });
    tx.tell_notice(&text, fields);
    journal(tx, agent_id, "begun", percent, JournalLine { handoff_id: known(&handoff_id), ..JournalLine::default() });
}

/// It does not begin now; the next end of a turn tries again. The journal says so as often as the reason changes.
pub(crate) fn put_off(tx: &mut Tx<'_>, agent_id: &AgentId, percent: u64, why: &str) {
    let Some(agent) = tx.agent(agent_id).filter(|agent| agent.watch.put_off.as_deref() != Some(why)) else { return };
    let agent_id = agent.agent_id;
    if let Some(agent) = tx.agent_mut(&agent_id) {
        agent.watch.put_off = Some(why.to_owned());
    }
    journal(tx, &agent_id, "put_off", percent, JournalLine { reason: known(&why), ..JournalLine::default() });
}

fn journal(tx: &mut Tx<'_>, agent_id: &AgentId, what: &str, percent: u64, more: JournalLine) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let (handoff_id, reason) = (more.handoff_id, more.reason);
    let (percent, auto) = (Some(percent), Some(what.to_owned()));
    let line = JournalLine { handoff_id, reason, percent, auto, ..agent.line() };
    tx.journal(line);
}

#[cfg(test)]
#[path = "gauge_tests.rs"]
mod tests;
