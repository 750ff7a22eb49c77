//! From the receipt of a text to its verdict, where the receipt alone is no proof: a CLI tells of a prompt before its
//! hooks have ended, and may drop it until then, for another prompt or because a hook refuses it.
//!
//! Where the CLI writes each prompt that it has taken into its transcript, that line is the proof. Elsewhere only a
//! prompt with which somebody's keys were merged is not believed at once: whoever has just typed may go on typing.

use super::effect::{Effect, EffectKey};
use super::fact::Ended;
use super::id::AgentId;
use super::rows::agent::{Reported, Typing};
use super::time::Deadline;
use super::tx::Tx;
use super::verdict::finish;

/// So long a prompt may take from its receipt to its transcript, in milliseconds: the user's own hooks run meanwhile.
const TAKEN_MS: u64 = 30_000;
/// For so long no other prompt may follow a merged one, in milliseconds.
const CALM_MS: u64 = 2_000;
/// The reason of a text that was reported, and perhaps never taken.
const NOT_TAKEN: &str = "not_taken";

/// The CLI has reported our text. `into_a_turn`: a turn was running, so that it waits there and is written down later.
pub(super) fn reported(tx: &mut Tx<'_>, agent_id: &AgentId, remark: Option<String>, into_a_turn: bool) {
    let Some(agent) = tx.agent(agent_id) else { return };
    let Some(typing) = &agent.typing else { return };
    let proves = tx.state.settings.profiles.get(&agent.profile).is_some_and(|profile| profile.proves_prompts);
    let path = agent.transcript_path.clone().filter(|_| proves && !into_a_turn);
    let (profile, delivery_id) = (agent.profile.clone(), typing.delivery_id.clone());
    if path.is_none() && remark.is_none() {
        return finish(tx, agent_id, &Ended::Delivered(None));
    }
    let key = path
        .map(|path| tx.effect_of(agent_id, Effect::AwaitPrompt { agent_id: *agent_id, profile, path, delivery_id }));
    let latest = Deadline::after(&tx.now, if key.is_some() { TAKEN_MS } else { CALM_MS });
    let now = tx.now;
    let Some(typing) = tx.agent_mut(agent_id).and_then(|agent| agent.typing.as_mut()) else { return };
    if key.is_none() || typing.deadline.remaining_ms(&now) > TAKEN_MS {
        typing.deadline = latest;
    }
    typing.reported = Some(Reported { remark });
    if let Some(typed) = std::mem::replace(&mut typing.effect, key) {
        tx.drop_effect(typed);
    }
}

fn pending<'t>(tx: &'t Tx<'_>, agent_id: &AgentId) -> Option<(&'t Typing, &'t Reported)> {
    let typing = tx.agent(agent_id)?.typing.as_ref()?;
    Some((typing, typing.reported.as_ref()?))
}

/// The transcript was read: the text stands there, or it can't be read. Then the hook is believed, as of every CLI without
/// a transcript, if nobody else has typed.
pub(super) fn settled(tx: &mut Tx<'_>, agent_id: &AgentId, key: EffectKey, stands_there: bool) {
    let Some((_, reported)) = pending(tx, agent_id).filter(|(typing, _)| typing.effect == Some(key)) else { return };
    let remark = reported.remark.clone();
    if stands_there || remark.is_none() { finish(tx, agent_id, &Ended::Delivered(remark)) } else { doubt(tx, agent_id) }
}

/// Another turn has begun before ours was seen to be taken.
pub(super) fn another_turn(tx: &mut Tx<'_>, agent_id: &AgentId) {
    if pending(tx, agent_id).is_some() {
        doubt(tx, agent_id);
    }
}

/// Another prompt has come, perhaps into the same turn. Where a transcript is read, that one tells what became of ours.
pub(super) fn another_prompt(tx: &mut Tx<'_>, agent_id: &AgentId) {
    if pending(tx, agent_id).is_some_and(|(typing, _)| typing.effect.is_none()) {
        doubt(tx, agent_id);
    }
}

/// The turn that answers our text has ended: so it was taken.
pub(super) fn answered(tx: &mut Tx<'_>, agent_id: &AgentId) {
    if let Some((_, reported)) = pending(tx, agent_id) {
        let remark = reported.remark.clone();
        finish(tx, agent_id, &Ended::Delivered(remark));
    }
}

/// Time is up. Gives false if no receipt has come, and so nothing is known here.
pub(super) fn deadline(tx: &mut Tx<'_>, agent_id: &AgentId) -> bool {
    match pending(tx, agent_id).map(|(typing, _)| typing.effect.is_some()) {
        Some(true) => doubt(tx, agent_id),
        Some(false) => answered(tx, agent_id),
        None => return false,
    }
    true
}

/// It can't be known, and no turn of ours is waited for.
fn doubt(tx: &mut Tx<'_>, agent_id: &AgentId) {
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.our_turn = None;
    }
    finish(tx, agent_id, &Ended::Unconfirmed(NOT_TAKEN.to_owned()));
}
