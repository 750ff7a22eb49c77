//! The limits of an agent's CLI (used up, no credit, logged out, overloaded), and what follows: the operator is told
//! once of each, and after a usage limit the agent may be told to continue, or may be handed off to another CLI
//! (`limits.on_usage_limit`).

use super::alerts;
use crate::contract::{JournalLine, LimitKind, LineType, NoticeCode, known, maybe};
use crate::core::effect::{AutoHandoffCheck, Effect, EffectKey, LimitFound};
use crate::core::event::RequestFacts;
use crate::core::fact::Fact;
use crate::core::id::{AgentId, HandoffId};
use crate::core::notice::OperatorNotice;
use crate::core::pane::Refusal;
use crate::core::persona::ProfileChoice;
use crate::core::request::Successor;
use crate::core::rows::agent::{Agent, AgentState, Asker, Limited, LookCause, Queued, UsedUp};
use crate::core::rows::handoff::Step;
use crate::core::settings::OnUsageLimit;
use crate::core::time::{Deadline, rfc3339};
use crate::core::tx::Tx;
use serde_json::json;

/// The reason of a handoff that begins because of a usage limit.
pub(crate) const REASON: &str = "usage_limit";
/// How long after the end of a limit the agent is told to continue, in milliseconds: clocks differ, and a CLI may
/// continue by itself (Claude Code 2.1.328 does so after 75 seconds).
const AFTER_RESET_MS: i64 = 150_000;
/// How long tasuki waits until it looks again whether a handoff or a shutdown has come to nothing, in milliseconds.
const RESUME_AGAIN_MS: u64 = 60_000;
/// How long a text may wait for the agent after the end of a limit, in milliseconds.
const RESUME_WITHIN_MS: u64 = 10 * 60_000;
/// How long a usage limit without a known end is taken to last, in milliseconds.
const UNKNOWN_LASTS_MS: i64 = 5 * 3_600_000;
/// An end of a limit that is further ahead than this, in milliseconds, is not believed.
const MOST_AHEAD_MS: i64 = 32 * 24 * 3_600_000;
/// Two readings of one limit's end may differ by this much, in milliseconds: a CLI names the end in full minutes, or
/// counts it from the moment at which it says so.
const SAME_END_MS: u64 = 5 * 60_000;
/// Most CLIs that a chain of agents remembers as used up.
const MOST_USED_UP: usize = 16;

/// Looks for a limit, if the agent's profile says how limits show. `said`: what the CLI's own event says. A look
/// because of a mere sign does not replace a look that already runs.
pub(crate) fn look(tx: &mut Tx<'_>, agent_id: &AgentId, cause: LookCause, said: Option<&str>) {
    let ended_well = cause == LookCause::EndedWell;
    let Some(agent) = tx.agent(agent_id).filter(|agent| agent.state.is_live()) else { return };
    let Some(profile) = tx.state.settings.profiles.get(&agent.profile) else { return };
    if ended_well && (profile.reports_failures || !profile.shows_limits) {
        return limit_is_over(tx, agent_id);
    }
    if !profile.shows_limits || (cause == LookCause::Sign && agent.limits.looking.is_some()) {
        return;
    }
    let effect = Effect::ReadLimit {
        agent_id: *agent_id,
        profile: agent.profile.clone(),
        said: said.map(str::to_owned),
        path: agent.transcript_path.clone(),
        // After a turn that seems to have ended well, an earlier turn's limit may still be on the screen.
        pane: agent.pane.filter(|_| !ended_well),
        is_blocked: agent.state == AgentState::Blocked,
    };
    if let Some(earlier) = agent.limits.looking {
        tx.drop_effect(earlier);
    }
    let key = tx.effect_of(agent_id, effect);
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.limits.looking = Some(key);
        agent.limits.cause = cause;
        agent.limits.in_handoff_id = agent.handoff_id;
    }
}

/// Looks for a limit after a turn has ended. `was_in`: the handoff in which the agent was before the end of the turn.
/// That end may have failed the handoff, so that the agent's row no longer names it.
pub(crate) fn look_after_turn(
    tx: &mut Tx<'_>,
    agent_id: &AgentId,
    cause: LookCause,
    said: Option<&str>,
    was_in: Option<HandoffId>,
) {
    look(tx, agent_id, cause, said);
    if was_in.is_some()
        && let Some(agent) = tx.agent_mut(agent_id)
    {
        agent.limits.in_handoff_id = was_in;
    }
}

/// No limit stops the CLI any more.
fn limit_is_over(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let (is_limited, looking) = (agent.limits.limited.is_some(), agent.limits.looking);
    if let Some(key) = looking {
        tx.drop_effect(key);
    }
    if (is_limited || looking.is_some())
        && let Some(agent) = tx.agent_mut(agent_id)
    {
        agent.limits.limited = None;
        agent.limits.looking = None;
        agent.limits.resume_at = None;
        agent.queue.retain(|queued| queued.asker != Asker::Resume(()));
    }
}

/// Takes the outcome of `Effect::ReadLimit`; none if no limit was found, or if the effect failed.
pub(crate) fn found(tx: &mut Tx<'_>, agent_id: &AgentId, key: EffectKey, found: Option<LimitFound>) {
    let now = tx.now.wall_ms;
    let Some(agent) = tx.agent_mut(agent_id).filter(|agent| agent.limits.looking == Some(key)) else { return };
    agent.limits.looking = None;
    let Some(found) = found else {
        if agent.limits.cause == LookCause::EndedWell {
            limit_is_over(tx, agent_id);
        }
        return alerts::no_limit_found(tx, agent_id);
    };
    agent.alerts.pending_failure = None;
    let until_ms = found.until_ms.filter(|until| *until > now && *until < now + MOST_AHEAD_MS);
    let is_pending = agent.limits.resume_at.is_some() || agent.queue.iter().any(|text| text.asker == Asker::Resume(()));
    let may_have_failed = agent.limits.cause == LookCause::EndedOtherwise;
    let before = agent.limits.limited.take();
    let ends_alike = |before: &Limited| match (before.until_ms, until_ms) {
        (Some(before), Some(until)) => before.abs_diff(until) <= SAME_END_MS,
        (None, Some(_)) => false,
        (_, None) => true,
    };
    // If the earlier limit's end has passed, the same words mean a new limit. But if no further turn may have failed,
    // words that are still on the screen belong to the earlier limit, whatever end they seem to name now.
    let lasts = |before: &Limited| is_pending || before.until_ms.is_none_or(|until| until > now);
    let still_says = |before: &Limited| !may_have_failed && before.said == found.said;
    let is_same =
        |before: &Limited| before.kind == found.kind && (still_says(before) || (lasts(before) && ends_alike(before)));
    if let Some(before) = before.filter(is_same) {
        let is_proved = before.on_screen && !found.on_screen;
        agent.limits.limited = Some(Limited { on_screen: before.on_screen && found.on_screen, ..before });
        if is_proved && tx.state.settings.on_usage_limit != OnUsageLimit::Tell {
            act(tx, agent_id);
        }
        return;
    }
    agent.limits.resume_at = None;
    let LimitFound { kind, said, on_screen, .. } = found;
    agent.limits.limited = Some(Limited { kind, since_ms: now, until_ms, said, on_screen });
    let line = JournalLine {
        agent_id: known(agent_id),
        persona_slug: maybe(agent.persona_slug.as_ref()),
        limit: Some(kind.as_str().to_owned()),
        until: until_ms.map(rfc3339).map(Some),
        ..JournalLine::new(LineType::AgentLimited)
    };
    tx.journal(line);
    act(tx, agent_id);
}

/// Acts on a new limit. If the agent has no persona, nothing follows: tasuki leaves it alone. The operator is only told
/// if the agent is in a handoff, because the handoff itself decides what follows. The same holds if only the screen
/// shows the limit, because an agent's work may print the same words. If the limit has failed the handoff, the
/// agent may still be handed off to another CLI: see [`can_be_replaced`].
fn act(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id).filter(|agent| agent.persona_slug.is_some()) else { return };
    let Some(limited) = agent.limits.limited.clone() else { return };
    let policy = tx.state.settings.on_usage_limit;
    let in_handoff = agent.limits.in_handoff_id.is_some();
    let follows = may_follow(agent) && (!in_handoff || (policy == OnUsageLimit::HandOff && can_be_replaced(tx, agent)));
    let policy = if follows { policy } else { OnUsageLimit::Tell };
    match policy {
        OnUsageLimit::Tell => tell(tx, agent_id, ""),
        OnUsageLimit::Wait => wait(tx, agent_id, &limited),
        OnUsageLimit::HandOff => check(tx, agent_id),
    }
}

/// Whether a usage limit stops the agent while no handoff holds it. A limit that only the screen shows does not count.
fn may_follow(agent: &Agent) -> bool {
    let is_proved = |limited: &Limited| limited.kind == LimitKind::UsageLimit && !limited.on_screen;
    let is_free = agent.handoff_id.is_none() && agent.recorded_in.is_none();
    is_free && agent.limits.limited.as_ref().is_some_and(is_proved)
}

/// Whether another handoff of the agent can take the place of its last one: that one has failed before the agent wrote
/// anything of its document, and its request asked for nothing that the other one would leave out.
fn can_be_replaced(tx: &Tx<'_>, agent: &Agent) -> bool {
    let id = agent.agent_id;
    let of_agent = tx.state.handoffs.keys().chain(tx.out.handoffs.keys()).filter_map(|key| tx.handoff(key));
    let last = of_agent
        .filter(|handoff| handoff.agent_id == id || handoff.successor_id == Some(id))
        .max_by(|one, other| one.created_at.cmp(&other.created_at));
    last.is_some_and(|handoff| {
        let failed_at = handoff.error.as_ref().filter(|_| handoff.step == Step::Failed).map(|error| error.step);
        let is_before_document = matches!(failed_at, Some(Step::Instructing | Step::Writing));
        let asks_for_more = handoff.focus.is_some()
            || !handoff.tasks.is_empty()
            || handoff.ack.is_some()
            || handoff.successor != Successor::New
            || handoff.choice != agent.choice();
        handoff.agent_id == id && is_before_document && handoff.document.is_none() && !asks_for_more
    })
}

/// A handoff of the agent has failed. If a usage limit has stopped the agent in it, the agent's work may go to another
/// CLI. (If the limit is found later, [`act`] sees to it.)
pub(crate) fn handoff_failed(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id).filter(|agent| agent.persona_slug.is_some()) else { return };
    let hands_off = tx.state.settings.on_usage_limit == OnUsageLimit::HandOff;
    if hands_off && may_follow(agent) && is_used_up(agent, tx.now.wall_ms) && can_be_replaced(tx, agent) {
        check(tx, agent_id);
    }
}

fn wait(tx: &mut Tx<'_>, agent_id: &AgentId, limited: &Limited) {
    let Some(until) = limited.until_ms else {
        return tell(tx, agent_id, "; its CLI does not say until when, so tasuki does not wait for the end");
    };
    let after_ms = u64::try_from(until - tx.now.wall_ms + AFTER_RESET_MS).unwrap_or(0);
    let due = Deadline::after(&tx.now, after_ms);
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.limits.resume_at = Some(due);
    }
    tell(tx, agent_id, "; tasuki tells the agent to continue as soon as the limit has ended");
}

/// The limit has ended: the agent is told to continue, unless it has continued already or is being handed off. At a
/// dialog nothing can be typed, so the operator is told.
pub(crate) fn resume(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let (waits, now) = (tx.state.settings.on_usage_limit == OnUsageLimit::Wait, tx.now);
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    agent.limits.resume_at = None;
    let has_continued = agent.limits.limited.is_none() || agent.state == AgentState::Busy;
    if !waits || has_continued {
        return;
    }
    if agent.handoff_id.is_some() || agent.shutdown.is_some() {
        // Both may still come to nothing, and the operator was told that the agent will continue.
        agent.limits.resume_at = Some(Deadline::after(&now, RESUME_AGAIN_MS));
        return;
    }
    if agent.state == AgentState::Blocked {
        return not_resumed(tx, agent_id, &Refusal::Dialog.told("nothing was typed"));
    }
    let deadline = Deadline::after(&tx.now, RESUME_WITHIN_MS);
    let text = tx.state.settings.resume_text.clone();
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.queue.push(Queued { asker: Asker::Resume(()), text, deadline });
    }
}

/// Another session has begun in the agent's process. The work that was to be continued is not in that session.
pub(crate) fn session_replaced(agent: &mut Agent) {
    agent.limits.resume_at = None;
    agent.queue.retain(|queued| queued.asker != Asker::Resume(()));
}

/// The text that tells the agent to continue was not typed, or nobody knows whether it was.
pub(crate) fn not_resumed(tx: &mut Tx<'_>, agent_id: &AgentId, why: &str) {
    let message = format!("The agent could not be told to continue after its usage limit: {why}");
    let hint = "look at the agent's pane, and tell the agent to continue yourself";
    tx.notify_agent_failure(agent_id, "not_resumed", &message, hint);
}

/// Reads which other CLIs the persona names, by `Effect::CheckAutoHandoff`, which reads the persona with its fallbacks.
/// That effect also counts the clients that show the window, which does not matter here.
fn check(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let Some((pane, persona)) = agent.pane.zip(agent.persona_slug.clone()) else { return tell(tx, agent_id, "") };
    let earlier = agent.limits.checking;
    if let Some(key) = earlier {
        tx.drop_effect(key);
    }
    let key = tx.effect_of(agent_id, Effect::CheckAutoHandoff { agent_id: *agent_id, pane, persona });
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.limits.checking = Some(key);
    }
}

/// Takes the outcome of the `Effect::CheckAutoHandoff` that [`check`] began; none if the effect failed. The first
/// fallback that can be started and is not used up takes over.
pub(crate) fn checked(tx: &mut Tx<'_>, agent_id: &AgentId, check: Option<AutoHandoffCheck>) {
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    agent.limits.checking = None;
    if agent.limits.limited.is_none() {
        return;
    }
    if agent.handoff_id.is_some() {
        return tell(tx, agent_id, "");
    }
    let Some((slug, check)) = agent.persona_slug.clone().zip(check) else {
        return tell(tx, agent_id, "; its persona could not be read, so the agent is not handed off");
    };
    remember(tx, agent_id);
    if let Some(why) = &check.persona.broken {
        return tell(tx, agent_id, &format!("; the agent is not handed off, because its persona can't be used: {why}"));
    }
    if check.persona.fallbacks.is_empty() {
        let what = format!("; the agent is not handed off, because persona.toml of {slug} names no fallbacks");
        return tell(tx, agent_id, &what);
    }
    match next(tx, agent_id, &check) {
        Err(why) => {
            let why = why.join("; ");
            tell(tx, agent_id, &format!("; the agent is not handed off, because no fallback can take over: {why}"));
        }
        Ok(choice) => {
            let facts = RequestFacts { persona: Some((slug, check.persona)), ..RequestFacts::default() };
            tx.learn(Fact::UsedUp { agent_id: *agent_id, choice, facts: Box::new(facts) });
        }
    }
}

/// Notes that the agent's own CLI and model are used up, and forgets those that are so no longer.
fn remember(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let now = tx.now.wall_ms;
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    let Some(used_up) = used_up(agent) else { return };
    let list = &mut agent.limits.used_up;
    list.retain(|known| known.until_ms > now && known.choice != used_up.choice);
    list.push(used_up);
    let too_many = list.len().saturating_sub(MOST_USED_UP);
    list.drain(..too_many);
}

/// The agent's own CLI and model, if a usage limit stops it.
fn used_up(agent: &Agent) -> Option<UsedUp> {
    let limited = agent.limits.limited.as_ref().filter(|limited| limited.kind == LimitKind::UsageLimit)?;
    Some(UsedUp { choice: agent.choice(), until_ms: limited.until_ms.unwrap_or(limited.since_ms + UNKNOWN_LASTS_MS) })
}

/// Whether a usage limit still stops the agent's CLI.
pub(crate) fn is_used_up(agent: &Agent, now_ms: i64) -> bool {
    used_up(agent).is_some_and(|known| known.until_ms > now_ms)
}

/// The first fallback that can take over; or why each of them can't. This agent, an earlier agent of its chain, or any
/// other agent may have used it up.
fn next(tx: &Tx<'_>, agent_id: &AgentId, check: &AutoHandoffCheck) -> Result<ProfileChoice, Vec<String>> {
    let own = tx.agent(agent_id).map(|agent| agent.limits.used_up.clone()).unwrap_or_default();
    let others = tx.state.agents.values().filter_map(used_up);
    let known: Vec<UsedUp> = own.into_iter().chain(others).filter(|known| known.until_ms > tx.now.wall_ms).collect();
    let mut why_not = Vec::new();
    for choice in &check.persona.fallbacks {
        match why_not_next(tx, choice, &known, check) {
            None => return Ok(choice.clone()),
            Some(why) => why_not.push(why),
        }
    }
    Err(why_not)
}

/// Why this fallback can't take over; `None` if nothing is known that prevents it. `known`: what is used up.
fn why_not_next(tx: &Tx<'_>, choice: &ProfileChoice, known: &[UsedUp], check: &AutoHandoffCheck) -> Option<String> {
    let ProfileChoice { profile, model } = choice;
    let Some(facts) = tx.state.settings.profiles.get(profile) else {
        return Some(format!("there is no profile {profile}"));
    };
    if !facts.launchable {
        return Some(format!("profile {profile} has no launch line"));
    }
    if model.is_some() && !facts.takes_model {
        return Some(format!("profile {profile} has no option for a model"));
    }
    if known.iter().any(|known| known.choice == *choice) {
        return Some(match model {
            Some(model) => format!("{profile} with the model {model} is used up too"),
            None => format!("{profile} is used up too"),
        });
    }
    check.unstartable.get(profile).map(|why| format!("{profile} can't be started: {why}"))
}

/// The handoff to another CLI has begun.
pub(crate) fn handoff_begun(tx: &mut Tx<'_>, agent_id: &AgentId, choice: &ProfileChoice, handoff_id: HandoffId) {
    let model = choice.model.as_ref().map(|model| format!(" ({model})")).unwrap_or_default();
    let short = handoff_id.short();
    tell(tx, agent_id, &format!("; tasuki hands its work off to {}{model} (handoff {short})", choice.profile));
}

/// The handoff to another CLI was refused.
pub(crate) fn handoff_refused(tx: &mut Tx<'_>, agent_id: &AgentId, why: &str) {
    tell(tx, agent_id, &format!("; its handoff to another CLI was refused: {why}"));
}

/// Tells the operator, once for each limit. `what` says what tasuki does about it.
fn tell(tx: &mut Tx<'_>, agent_id: &AgentId, what: &str) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let Some(limited) = agent.limits.limited.clone() else { return };
    let slug = agent.persona_slug.as_ref().map(ToString::to_string);
    let name = slug.clone().unwrap_or_else(|| agent_id.short());
    let profile = agent.profile.clone();
    let state = limited.kind.in_words();
    let why = if limited.kind == LimitKind::Overloaded { ": the service is overloaded" } else { "" };
    let until = limited.until_ms.map(rfc3339);
    let ends = until.as_ref().map(|until| format!(", until {until}")).unwrap_or_default();
    let message = format!("{profile}, the CLI of {name}, {state}{why}{ends}{what}");
    let details = json!({
        "persona_slug": slug, "profile": profile, "kind": limited.kind.as_str(), "until": until, "said": limited.said,
    });
    tx.notify_operator(OperatorNotice::new(NoticeCode::AgentLimited, message).agent(*agent_id).details(details));
}
