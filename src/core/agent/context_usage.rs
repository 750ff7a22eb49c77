//! How full an agent's context is, and what follows: the operator is notified once, and a handoff may begin
//! automatically (`context.suggest_at`, `context.auto_at`).
//!
//! An agent whose context is full before it has done any work is not handed off automatically. Its successor would be
//! as full, and would be handed off at once too, and so on without an end.

use crate::contract::{JournalLine, NoticeCode, known};
use crate::core::effect::{AutoHandoffCheck, Effect, EffectKey, Measured};
use crate::core::event::RequestFacts;
use crate::core::fact::Fact;
use crate::core::hook::ContextUsage;
use crate::core::id::{AgentId, HandoffId};
use crate::core::notice::OperatorNotice;
use crate::core::rows::agent::{Agent, LastTurn, Purpose};
use crate::core::time::{Deadline, Now};
use crate::core::tx::Tx;
use serde_json::json;

/// The reason of a handoff that begins because the context is full.
pub const REASON: &str = "context_limit";

/// If the turn that answers the briefing ends within this time, in milliseconds, the agent has only read.
const READING_MS: u64 = 2 * 60_000;
/// Why no handoff begins automatically: the agent was full when it had read no more than its persona's skill.
const FULL_AT_START: &str = "its context was that full before it was told of its work, and its successor's would be \
                             too: context.auto_at may be too low, or the skill too long";
/// The same: the agent is full, and has only read its briefing and what that names.
const FULL_WITHOUT_WORK: &str = "it has only read its briefing, and its successor would be as full when it has done \
                                 the same: context.auto_at may be too low, or the document too long";

/// Forgets what is still being read or checked, because it is about a session, or a part of one, that is over.
pub(crate) fn forget_pending(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let pending = [agent.context_watch.reading, agent.context_watch.checking];
    if let (Some(agent), true) = (tx.agent_mut(agent_id), pending.iter().any(Option::is_some)) {
        (agent.context_watch.reading, agent.context_watch.checking) = (None, None);
    }
    pending.into_iter().flatten().for_each(|key| tx.drop_effect(key));
}

/// The CLI has compacted the session. How full its context is now is known when its next turn ends.
pub(crate) fn compacted(tx: &mut Tx<'_>, agent_id: &AgentId) {
    forget_pending(tx, agent_id);
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    agent.context = None;
    agent.context_watch.reached = false;
}

/// Another session has begun in the agent's process: its context is empty.
pub(crate) fn reset(tx: &mut Tx<'_>, agent_id: &AgentId) {
    compacted(tx, agent_id);
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    agent.context_watch.deferred_because = None;
    agent.context_watch.last_turn = LastTurn::Other;
    agent.context_watch.used_by_priming = None;
}

/// The briefing has arrived.
pub(crate) fn briefed(now: &Now, agent: &mut Agent) {
    agent.context_watch.reads_until = Some(Deadline::after(now, READING_MS));
}

/// A turn is over. Its row still says whether it has answered a briefing. `ours`: the text of ours that it answered.
pub(crate) fn note_turn(now: &Now, agent: &mut Agent, ours: Option<&Purpose>) {
    let reads = agent.context_watch.reads_until.is_some_and(|until| !until.is_due(now));
    // A handoff that is done has released its text, but the agent still answers it.
    let is_briefing = ours.map_or(agent.answering.is_some(), |ours| matches!(ours, Purpose::Briefing(_)));
    agent.context_watch.last_turn = if is_briefing {
        LastTurn::Briefing { short: reads }
    } else if matches!(ours, Some(Purpose::Priming(_))) {
        LastTurn::Priming
    } else {
        LastTurn::Other
    };
}

/// Whether views should suggest a handoff: the context is full enough, and no handoff has begun.
#[must_use]
pub fn is_suggested(agent: &Agent) -> bool {
    agent.context_watch.reached && may_be_handed_off(agent)
}

fn may_be_handed_off(agent: &Agent) -> bool {
    let has_none = agent.handoff_id.is_none() && agent.recorded_in.is_none();
    agent.persona_slug.is_some() && has_none && agent.state.is_live()
}

/// Keeps what the CLI itself says of its context usage in an event of any kind. What follows depends on the event.
pub(crate) fn keep(agent: &mut Agent, usage: ContextUsage) {
    agent.context_watch.reported_window = usage.window.or(agent.context_watch.reported_window);
    agent.context_watch.guessed = false;
    agent.context = Some(ContextUsage { used: usage.used, window: agent.context_watch.reported_window });
}

/// A turn has ended: reads the context usage from the transcript, if the profile says how; otherwise the CLI's own last
/// report counts.
pub(crate) fn turn_ended(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id).filter(|agent| agent.state.is_live()) else { return };
    let reads = tx.state.settings.profiles.get(&agent.profile).is_some_and(|profile| profile.reports_context);
    let earlier = agent.context_watch.reading;
    let Some(path) = agent.transcript_path.clone().filter(|_| reads) else { return evaluate(tx, agent_id) };
    let (agent_id, profile) = (*agent_id, agent.profile.clone());
    if let Some(key) = earlier {
        tx.drop_effect(key);
    }
    let key = tx.effect_of(&agent_id, Effect::ReadContextUsage { agent_id, profile, path });
    if let Some(agent) = tx.agent_mut(&agent_id) {
        agent.context_watch.reading = Some(key);
    }
}

/// Takes the outcome of `Effect::ReadContextUsage`; none if the transcript could not be read or does not say.
pub(crate) fn measured(tx: &mut Tx<'_>, agent_id: &AgentId, key: EffectKey, measured: Option<Measured>) {
    let Some(agent) = tx.agent_mut(agent_id).filter(|agent| agent.context_watch.reading == Some(key)) else { return };
    agent.context_watch.reading = None;
    if let Some(Measured { usage, guessed }) = measured {
        // A window size that the CLI itself has reported comes before a guess.
        let reported = agent.context_watch.reported_window.filter(|_| guessed || usage.window.is_none());
        agent.context_watch.guessed = guessed && reported.is_none();
        agent.context = Some(ContextUsage { used: usage.used, window: reported.or(usage.window) });
    }
    evaluate(tx, agent_id);
}

fn evaluate(tx: &mut Tx<'_>, agent_id: &AgentId) {
    note_priming(tx, agent_id);
    suggest(tx, agent_id);
    check_auto_handoff(tx, agent_id);
}

/// Notes how much an agent uses that has read its persona's skill and nothing else.
fn note_priming(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let watch = &agent.context_watch;
    let used = agent.context.filter(|_| watch.last_turn == LastTurn::Priming && watch.used_by_priming.is_none());
    if let Some(used) = used.map(|context| context.used)
        && let Some(agent) = tx.agent_mut(agent_id)
    {
        agent.context_watch.used_by_priming = Some(used);
    }
}

/// Why an automatic handoff would not help, if the agent has done no work and its context has reached the limit.
fn full_without_work(agent: &Agent, limit: u64) -> Option<&'static str> {
    let watch = &agent.context_watch;
    let at_start = agent.context.zip(watch.used_by_priming).map(|(context, used)| ContextUsage { used, ..context });
    let was_full = at_start.and_then(|context| context.percent()).is_some_and(|percent| percent >= limit);
    match watch.last_turn {
        LastTurn::Priming | LastTurn::Briefing { .. } if was_full => Some(FULL_AT_START),
        LastTurn::Briefing { short: true } => Some(FULL_WITHOUT_WORK),
        LastTurn::Priming | LastTurn::Briefing { short: false } | LastTurn::Other => None,
    }
}

fn session(agent: &Agent) -> String {
    agent.session.id.clone().unwrap_or_default()
}

/// How full the context is in percent, if that has reached the limit and the agent may be handed off.
fn percent_over(agent: &Agent, limit: Option<u64>) -> Option<u64> {
    let percent = agent.context.and_then(|context| context.percent())?;
    (may_be_handed_off(agent) && percent >= limit?).then_some(percent)
}

/// Notifies the operator once in a session, and notes for the views whether a handoff is suggested. After an event of
/// kind `context` nothing else follows: only the end of a turn begins an automatic handoff.
pub(crate) fn suggest(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let limit = tx.state.settings.context.suggest_at;
    let Some(agent) = tx.agent(agent_id) else { return };
    let percent = agent.context.and_then(|context| context.percent());
    let reached = percent.zip(limit).is_some_and(|(percent, limit)| percent >= limit);
    if agent.context_watch.reached != reached
        && let Some(agent) = tx.agent_mut(agent_id)
    {
        agent.context_watch.reached = reached;
    }
    let Some(agent) = tx.agent(agent_id) else { return };
    let session = session(agent);
    let is_new = agent.context_watch.suggested_in.as_ref() != Some(&session);
    let Some(percent) = percent_over(agent, limit).filter(|_| is_new) else { return };
    let slug = agent.persona_slug.as_ref().map(ToString::to_string).unwrap_or_default();
    let is_guessed = agent.context_watch.guessed;
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.context_watch.suggested_in = Some(session);
    }
    let remark = if is_guessed { " (tasuki has guessed the size of its context window)" } else { "" };
    let message = format!("The context of {slug} is {percent} % full{remark}");
    let hint = format!("to hand {slug} off: tasuki handoff {} --reason {REASON} --wait", agent_id.short());
    let details = json!({ "persona_slug": slug, "percent": percent });
    let notice = OperatorNotice::new(NoticeCode::ContextFull, message).hint(hint);
    tx.notify_operator(notice.agent(*agent_id).details(details));
    journal(tx, agent_id, "suggested", percent, JournalLine::default());
}

/// If the context is full enough for an automatic handoff, begins the check of its preconditions.
fn check_auto_handoff(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let limit = tx.state.settings.context.auto_at;
    let Some(agent) = tx.agent(agent_id) else { return };
    let is_new =
        agent.context_watch.begun_in.as_ref() != Some(&session(agent)) && agent.context_watch.checking.is_none();
    let Some(percent) = percent_over(agent, limit).filter(|_| is_new) else { return };
    if agent.context_watch.guessed {
        let why = "the size of the agent's context window is a guess; its CLI has not reported the size";
        return defer_and_tell(tx, agent_id, percent, why);
    }
    let Some((pane, persona)) = agent.pane.zip(agent.persona_slug.clone()).filter(|_| agent.is_free()) else {
        return;
    };
    if let Some(why) = limit.and_then(|limit| full_without_work(agent, limit)) {
        return defer_and_tell(tx, agent_id, percent, why);
    }
    let key = tx.effect_of(agent_id, Effect::CheckAutoHandoff { agent_id: *agent_id, pane, persona });
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.context_watch.checking = Some(key);
    }
}

/// Whether the turn that has ended may be followed by an automatic handoff: the context usage is still being read, or
/// the preconditions are still being checked. Until that is known, the agent gets no waiting text and no notice of a
/// work item. Each of them begins a turn, so as long as some are left, the agent would never be free for a handoff.
pub(crate) fn may_hand_off(tx: &Tx<'_>, agent: &Agent) -> bool {
    let watch = &agent.context_watch;
    let is_pending = watch.reading.is_some() || watch.checking.is_some();
    let is_new = || watch.begun_in.as_ref() != Some(&session(agent));
    is_pending && tx.state.settings.context.auto_at.is_some() && may_be_handed_off(agent) && is_new()
}

/// Takes the outcome of `Effect::CheckAutoHandoff`; none if the effect failed. Much may have happened meanwhile, so the
/// agent's row is checked again.
pub(crate) fn auto_handoff_checked(
    tx: &mut Tx<'_>,
    agent_id: &AgentId,
    key: EffectKey,
    check: Option<AutoHandoffCheck>,
) {
    let limit = tx.state.settings.context.auto_at;
    let Some(agent) = tx.agent_mut(agent_id).filter(|agent| agent.context_watch.checking == Some(key)) else { return };
    agent.context_watch.checking = None;
    let Some(percent) = percent_over(agent, limit).filter(|_| agent.is_free()) else { return };
    let Some(slug) = agent.persona_slug.clone() else { return };
    let Some(check) = check else {
        return defer_and_tell(tx, agent_id, percent, "tasuki could not read the agent's persona");
    };
    match check.viewers {
        Some(0) => {}
        Some(_) => {
            // A person has attached this client, and needs no notice of that.
            defer(tx, agent_id, percent, "a tmux client is attached to the agent's window");
            return;
        }
        None => return defer_and_tell(tx, agent_id, percent, "tasuki could not check the agent's window"),
    }
    let facts = RequestFacts { persona: Some((slug, check.persona)), ..RequestFacts::default() };
    tx.learn(Fact::ContextFull { agent_id: *agent_id, percent, facts: Box::new(facts) });
}

/// The automatic handoff has begun: notifies the operator. No other handoff begins by itself in the same session.
pub(crate) fn auto_handoff_begun(tx: &mut Tx<'_>, agent_id: &AgentId, percent: u64, handoff_id: HandoffId) {
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    agent.context_watch.begun_in = Some(session(agent));
    agent.context_watch.deferred_because = None;
    let slug = agent.persona_slug.as_ref().map(ToString::to_string).unwrap_or_default();
    let message =
        format!("The context of {slug} is {percent} % full; tasuki has started its handoff (context.auto_at)");
    let notice = OperatorNotice::new(NoticeCode::HandoffBegun, message).agent(*agent_id).handoff(handoff_id);
    tx.notify_operator(notice.details(json!({ "persona_slug": slug, "percent": percent })));
    journal(tx, agent_id, "begun", percent, JournalLine { handoff_id: known(&handoff_id), ..JournalLine::default() });
}

/// The handoff does not begin now, for a reason that may need a person: notifies the operator of each new reason.
pub(crate) fn defer_and_tell(tx: &mut Tx<'_>, agent_id: &AgentId, percent: u64, why: &str) {
    if !defer(tx, agent_id, percent, why) {
        return;
    }
    let Some(agent) = tx.agent(agent_id) else { return };
    let slug = agent.persona_slug.as_ref().map(ToString::to_string).unwrap_or_default();
    let message =
        format!("The context of {slug} is {percent} % full, and its handoff (context.auto_at) has not begun: {why}");
    let hint = format!(
        "tasuki tries again after the agent's next turn; to hand {slug} off yourself: tasuki handoff {} \
         --reason {REASON} --wait",
        agent_id.short()
    );
    let details = json!({ "persona_slug": slug, "percent": percent, "reason": why });
    let notice = OperatorNotice::new(NoticeCode::HandoffDeferred, message).hint(hint);
    tx.notify_operator(notice.agent(*agent_id).details(details));
}

/// The handoff does not begin now; the next end of a turn tries again. Each new reason gets a line in the journal.
/// Returns whether the reason is new.
fn defer(tx: &mut Tx<'_>, agent_id: &AgentId, percent: u64, why: &str) -> bool {
    let is_new = |agent: &&mut Agent| agent.context_watch.deferred_because.as_deref() != Some(why);
    let Some(agent) = tx.agent_mut(agent_id).filter(is_new) else { return false };
    agent.context_watch.deferred_because = Some(why.to_owned());
    journal(tx, agent_id, "put_off", percent, JournalLine { reason: known(&why), ..JournalLine::default() });
    true
}

fn journal(tx: &mut Tx<'_>, agent_id: &AgentId, what: &str, percent: u64, more: JournalLine) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let (handoff_id, reason) = (more.handoff_id, more.reason);
    let (percent, auto) = (Some(percent), Some(what.to_owned()));
    let line = JournalLine { handoff_id, reason, percent, auto, ..agent.line() };
    tx.journal(line);
}

#[cfg(test)]
#[path = "context_usage_tests.rs"]
mod tests;
