//! A text's way: from the commit that asks for it, over its receipt, to its verdict (SPEC section 5).

use super::effect::{Attachment, Effect, EffectKey, How, TypeText};
use super::fact::{Ended, Fact};
use super::hook::HookEvent;
use super::id::{AgentId, DeliveryId, HandoffId};
use super::pane::{PaneRef, Refusal, Typed};
use super::rows::agent::{Agent, OurTurn, Primed, Purpose, Typing};
use super::text::{self, Match};
use super::time::Deadline;
use super::tx::Tx;
use super::{taken, verdict};

/// How long a receipt may still come after a delivery went into doubt, in milliseconds.
const DOUBT_MS: u64 = 5_000;
/// The limit of a delivery that nothing else limits, in milliseconds.
pub(crate) const DEFAULT_LIMIT_MS: u64 = 60_000;

/// A prompt to be typed.
pub(crate) struct Text {
    pub(crate) first_line: String,
    pub(crate) body: String,
    /// Type it although a turn is running.
    pub(crate) allow_busy: bool,
}

/// Begins to type a prompt. What stands against it is a verdict too, given at once.
pub(crate) fn begin(tx: &mut Tx<'_>, agent_id: &AgentId, purpose: Purpose, text: Text, deadline: Option<Deadline>) {
    let delivery_id = tx.new_delivery_id();
    let Some(agent) = tx.agent(agent_id) else { return };
    let pane = match takes_prompts(tx, agent) {
        Ok(pane) => pane,
        Err(reason) => return verdict::refuse(tx, agent_id, delivery_id, &purpose, reason),
    };
    let (attachment, body) = attach(tx, agent, &delivery_id, text.body);
    let whole = text::frame(&text.first_line, &body, &delivery_id);
    let expected = text::normalise(&whole);
    let effect = Effect::Type(TypeText {
        agent_id: *agent_id,
        pane,
        process: agent.process,
        profile: agent.profile.clone(),
        delivery_id: delivery_id.clone(),
        text: whole,
        how: How::Prompt,
        attachment,
        allow_busy: text.allow_busy,
    });
    start(tx, agent_id, delivery_id, purpose, expected, effect, deadline);
}

/// Begins to type a command of the profile's: the one that ends the CLI, or the one for a new session.
pub(crate) fn begin_command(tx: &mut Tx<'_>, agent_id: &AgentId, purpose: Purpose, deadline: Option<Deadline>) {
    let delivery_id = tx.new_delivery_id();
    let Some(agent) = tx.agent(agent_id) else { return };
    let Some(pane) = agent.pane else {
        return verdict::refuse(tx, agent_id, delivery_id, &purpose, Refusal::PaneGone);
    };
    let effect = Effect::Type(TypeText {
        agent_id: *agent_id,
        pane,
        process: agent.process,
        profile: agent.profile.clone(),
        delivery_id: delivery_id.clone(),
        text: String::new(),
        how: if matches!(purpose, Purpose::NewSession(_)) { How::NewSession } else { How::Command },
        attachment: None,
        allow_busy: false,
    });
    start(tx, agent_id, delivery_id, purpose, String::new(), effect, deadline);
}

fn start(
    tx: &mut Tx<'_>,
    agent_id: &AgentId,
    delivery_id: DeliveryId,
    purpose: Purpose,
    expected: String,
    effect: Effect,
    deadline: Option<Deadline>,
) {
    let key = tx.effect_of(agent_id, effect);
    let deadline = deadline.unwrap_or_else(|| Deadline::after(&tx.now, DEFAULT_LIMIT_MS));
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    if matches!(purpose, Purpose::Priming(_)) {
        agent.primed = Primed::Begun;
    }
    agent.typing = Some(Typing {
        delivery_id,
        purpose,
        effect: Some(key),
        expected,
        submitted: false,
        reported: None,
        doubt: None,
        deadline,
    });
}

/// Whether a prompt may be typed at all: there is a pane, and there will be a proof.
fn takes_prompts(tx: &Tx<'_>, agent: &Agent) -> Result<PaneRef, Refusal> {
    let pane = agent.pane.filter(|_| agent.state.is_live()).ok_or(Refusal::PaneGone)?;
    if agent.typing.is_some() {
        return Err(Refusal::Busy);
    }
    let profile = tx.state.settings.profiles.get(&agent.profile);
    let has_proof = profile
        .is_some_and(|profile| profile.screen_proof || (profile.reports_prompts && (agent.hooks_seen || agent.ours)));
    if has_proof { Ok(pane) } else { Err(Refusal::HooksUnseen) }
}

/// A text over 64 KiB goes into a file, and a short text that names the file is typed.
fn attach(tx: &Tx<'_>, agent: &Agent, id: &DeliveryId, body: String) -> (Option<Attachment>, String) {
    let Some(persona) = agent.persona_slug.clone().filter(|_| body.len() > text::MAX_TYPED_BYTES - 1024) else {
        return (None, body);
    };
    let file_name = format!("{id}.md");
    let path = format!("{}/{persona}/texts/{file_name}", tx.state.settings.personas_dir);
    let short = tx.state.settings.prompts.long(&path);
    (Some(Attachment { persona, file_name, body }), short)
}

/// Takes the outcome of the effect that types.
pub(crate) fn settled(tx: &mut Tx<'_>, agent_id: &AgentId, key: EffectKey, typed: Typed) {
    let doubt_ends = Deadline::after(&tx.now, DOUBT_MS);
    let now = tx.now;
    let Some(typing) = tx.agent_mut(agent_id).and_then(|agent| agent.typing.as_mut()) else { return };
    if typing.effect != Some(key) {
        return;
    }
    typing.effect = None;
    let is_command = typing.purpose.is_command();
    match typed {
        Typed::Refused { reason } => verdict::finish(tx, agent_id, &Ended::Refused(reason)),
        Typed::Submitted { .. } if is_command => command_typed(tx, agent_id, true),
        Typed::Unknown { .. } if is_command => command_typed(tx, agent_id, false),
        Typed::Submitted { proven: true } => {
            let turn = OurTurn { purpose: typing.purpose.clone(), turn_id: None, queued: false, paused: false };
            if let Some(agent) = tx.agent_mut(agent_id) {
                agent.our_turn = Some(turn);
            }
            verdict::finish(tx, agent_id, &Ended::Delivered(None));
        }
        Typed::Submitted { proven: false } => typing.submitted = true,
        Typed::Unknown { reason } => {
            typing.doubt = Some(reason);
            if typing.deadline.remaining_ms(&now) > DOUBT_MS {
                typing.deadline = doubt_ends;
            }
        }
    }
}

/// A command has no receipt: what it does is its proof, and the step's limit counts.
fn command_typed(tx: &mut Tx<'_>, agent_id: &AgentId, submitted: bool) {
    let Some(typing) = tx.agent_mut(agent_id).and_then(|agent| agent.typing.take()) else { return };
    if let (Purpose::NewSession(id), true) = (typing.purpose, submitted) {
        tx.learn(Fact::NewSessionAsked { handoff_id: id });
    }
}

/// Compares a submitted prompt with the text on its way. `turn_was_open`: the id that the prompt bears was that of the
/// running turn already.
pub(crate) fn receipt(tx: &mut Tx<'_>, agent_id: &AgentId, event: &HookEvent, turn_was_open: bool) {
    let Some(typing) = tx.agent(agent_id).and_then(|agent| agent.typing.as_ref()) else { return };
    let Some(prompt) = event.text.as_deref().filter(|_| !typing.purpose.is_command()) else { return };
    let remark = match text::compare(&typing.expected, &typing.delivery_id, prompt) {
        Match::Foreign => return taken::another_prompt(tx, agent_id),
        // Where hooks are installed in two places, each tells.
        _ if typing.reported.is_some() => return,
        Match::Whole => Ok(None),
        Match::Merged => Ok(Some("merged_draft".to_owned())),
        Match::Partial => Err("partial".to_owned()),
    };
    let turn = OurTurn {
        purpose: typing.purpose.clone(),
        turn_id: event.turn_id.clone(),
        queued: turn_was_open,
        paused: false,
    };
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.our_turn = Some(turn);
    }
    match remark {
        Ok(remark) => taken::reported(tx, agent_id, remark, turn_was_open),
        Err(reason) => verdict::finish(tx, agent_id, &Ended::Unconfirmed(reason)),
    }
}

/// Whether a prompt holds the text that is on its way to this agent.
pub(crate) fn is_ours(agent: &Agent, prompt: Option<&str>) -> bool {
    let (Some(typing), Some(prompt)) = (&agent.typing, prompt) else { return false };
    !typing.expected.is_empty() && text::compare(&typing.expected, &typing.delivery_id, prompt) != Match::Foreign
}

/// The delivery's time is up.
pub(crate) fn is_due(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(typing) = tx.agent(agent_id).and_then(|agent| agent.typing.as_ref()) else { return };
    if typing.purpose.is_command() {
        let effect = typing.effect;
        command_typed(tx, agent_id, false);
        if let Some(key) = effect {
            tx.drop_effect(key);
        }
        return;
    }
    if taken::deadline(tx, agent_id) {
        return;
    }
    let Some(typing) = tx.agent(agent_id).and_then(|agent| agent.typing.as_ref()) else { return };
    let reason = match (&typing.doubt, typing.submitted) {
        (Some(doubt), _) => doubt.clone(),
        (None, true) => "no_receipt".to_owned(),
        (None, false) => "deadline".to_owned(),
    };
    verdict::finish(tx, agent_id, &Ended::Unconfirmed(reason));
}

/// Forgets what is on its way for a handoff that leaves its step: cancelled in the same commit.
pub(crate) fn forget(tx: &mut Tx<'_>, agent_id: &AgentId, handoff: HandoffId) {
    let Some(typing) = tx.agent(agent_id).and_then(|agent| agent.typing.as_ref()) else { return };
    // A message belongs to no step: one that is half typed is finished.
    if typing.purpose.handoff() != Some(handoff) || matches!(typing.purpose, Purpose::Message(..)) {
        return;
    }
    let effect = typing.effect;
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.typing = None;
    }
    if let Some(key) = effect {
        tx.drop_effect(key);
    }
}
