//! From the receipt of a text to its verdict. The receipt alone is not always proof: a CLI reports a prompt before all
//! hooks for the prompt have ended, and may still drop it, for another prompt or because a hook refuses it.
//!
//! If the CLI writes each prompt that it takes into its transcript at once, that line is the proof. Otherwise tasuki
//! believes the hook at once. It also believes the hook for a text that was submitted into a running turn, because the
//! CLI writes such a text only later. Where tasuki believes the hook, there is one exception: a prompt that was merged
//! with somebody's keys has no verdict for a while ([`Phase::Merged`]), because that person may still be typing.

use super::verdict::finish;
use crate::core::effect::{Effect, EffectKey};
use crate::core::fact::DeliveryResult;
use crate::core::id::AgentId;
use crate::core::rows::agent::Phase;
use crate::core::time::Deadline;
use crate::core::tx::Tx;

/// How long the transcript may lag behind a prompt's receipt, in milliseconds: the user's own hooks run meanwhile.
const TAKEN_MS: u64 = 30_000;
/// A merged prompt counts as delivered if no other prompt follows within this time, in milliseconds.
const CALM_MS: u64 = 2_000;
/// The reason of a text that the CLI reported but may never have taken.
const NOT_TAKEN: &str = "not_taken";

/// News of a typed text that has no verdict yet, or of its agent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sign {
    /// The wait for the text in the transcript has ended. `found`: the text is there; otherwise the transcript could
    /// not be read.
    Read { found: bool },
    /// Another prompt has come, perhaps into the same turn.
    AnotherPrompt,
    /// A turn that does not answer our text has begun, and it was not yet seen that the CLI took our text.
    AnotherTurn,
    /// The turn that answers our text has ended, so the text was taken.
    Answered,
    /// The deadline of the delivery has passed.
    TimeIsUp,
}

/// What a sign means for a text in its phase; `None` while the verdict is still open.
fn verdict(phase: &Phase, sign: Sign) -> Option<DeliveryResult> {
    let unconfirmed = |reason: &str| Some(DeliveryResult::Unconfirmed(reason.to_owned()));
    match (phase, sign) {
        (Phase::InFlight(_), Sign::TimeIsUp) => unconfirmed("deadline"),
        (Phase::Submitted, Sign::TimeIsUp) => unconfirmed("no_receipt"),
        (Phase::Doubt(reason), Sign::TimeIsUp) => unconfirmed(reason),
        // No receipt has come, so only the deadline decides.
        (Phase::InFlight(_) | Phase::Submitted | Phase::Doubt(_), _) => None,
        // The transcript will show what became of our text.
        (Phase::Reported { .. }, Sign::AnotherPrompt) => None,
        (Phase::Reported { remark, .. }, Sign::Answered | Sign::Read { found: true }) => {
            Some(DeliveryResult::Delivered(remark.clone()))
        }
        // The transcript could not be read. If nobody else has typed, tasuki believes the hook, as it does without a
        // transcript.
        (Phase::Reported { remark: None, .. }, Sign::Read { .. }) => Some(DeliveryResult::Delivered(None)),
        (Phase::Reported { .. }, Sign::Read { .. } | Sign::AnotherTurn | Sign::TimeIsUp) => unconfirmed(NOT_TAKEN),
        // A merged prompt is in this phase only if no effect looks for it in a transcript.
        (Phase::Merged { remark }, Sign::Answered | Sign::TimeIsUp) => {
            Some(DeliveryResult::Delivered(Some(remark.clone())))
        }
        (Phase::Merged { .. }, Sign::AnotherPrompt | Sign::AnotherTurn) => unconfirmed(NOT_TAKEN),
        (Phase::Merged { .. }, Sign::Read { .. }) => None,
    }
}

/// Ends the delivery if the sign decides what became of the text.
pub(crate) fn apply(tx: &mut Tx<'_>, agent_id: &AgentId, sign: Sign) {
    let Some(typing) = tx.agent(agent_id).and_then(|agent| agent.typing.as_ref()) else { return };
    let Some(result) = verdict(&typing.phase, sign) else { return };
    // A text that was reported but perhaps never taken may have no turn, so nothing waits for one.
    if typing.phase.is_reported()
        && matches!(result, DeliveryResult::Unconfirmed(_))
        && let Some(agent) = tx.agent_mut(agent_id)
    {
        agent.our_turn = None;
    }
    finish(tx, agent_id, &result);
}

/// The effect that waits for the text in the transcript has ended.
pub(crate) fn settled(tx: &mut Tx<'_>, agent_id: &AgentId, key: EffectKey, found: bool) {
    let typing = tx.agent(agent_id).and_then(|agent| agent.typing.as_ref());
    if typing.is_some_and(|typing| typing.phase.effect() == Some(key)) {
        apply(tx, agent_id, Sign::Read { found });
    }
}

/// The CLI has reported our text. If `turn_was_open`, the CLI answers the text after the running turn or as a part of
/// it, and writes the text to the transcript too late to wait for it there. With a `remark`, the text was merged with
/// somebody's keys.
pub(crate) fn reported(tx: &mut Tx<'_>, agent_id: &AgentId, remark: Option<String>, turn_was_open: bool) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let Some(typing) = &agent.typing else { return };
    let proves = tx.state.settings.profiles.get(&agent.profile).is_some_and(|profile| profile.proves_prompts);
    let path = agent.transcript_path.clone().filter(|_| proves && !turn_was_open);
    let (profile, delivery_id) = (agent.profile.clone(), typing.delivery_id.clone());
    let (before, now) = (typing.deadline, tx.now);
    // Never later than the text's own limit, with which its step may end.
    let within = |ms: u64| if before.remaining_ms(&now) > ms { Deadline::after(&now, ms) } else { before };
    // `path`: the transcript that will prove the text, if there is one.
    let (phase, deadline) = match (path, remark) {
        (None, None) => return finish(tx, agent_id, &DeliveryResult::Delivered(None)),
        (None, Some(remark)) => (Phase::Merged { remark }, within(CALM_MS)),
        (Some(path), remark) => {
            let await_prompt = Effect::AwaitPrompt { agent_id: *agent_id, profile, path, delivery_id };
            (Phase::Reported { effect: tx.effect_of(agent_id, await_prompt), remark }, within(TAKEN_MS))
        }
    };
    let Some(typing) = tx.agent_mut(agent_id).and_then(|agent| agent.typing.as_mut()) else { return };
    typing.deadline = deadline;
    // The receipt may come while the effect that types the text still runs.
    if let Some(key) = std::mem::replace(&mut typing.phase, phase).effect() {
        tx.drop_effect(key);
    }
}
