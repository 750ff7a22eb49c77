//! What happens to a typed text: the commit that asks for it, then the receipt from the agent's hooks, then the
//! verdict.

use super::acceptance::{self, Sign};
use super::verdict;
use crate::core::effect::{Attachment, Effect, EffectKey, How, TypeText};
use crate::core::fact::{DeliveryResult, Fact};
use crate::core::hook::HookEvent;
use crate::core::id::{AgentId, DeliveryId, HandoffId};
use crate::core::pane::{PaneRef, Refusal, Typed};
use crate::core::rows::agent::{Agent, AgentState, OurTurn, Phase, Primed, Purpose, Queued, Typing};
use crate::core::text::{self, Match};
use crate::core::time::Deadline;
use crate::core::tx::Tx;

/// How long a receipt may still come after it became unknown whether the text was typed, in milliseconds.
const DOUBT_MS: u64 = 5_000;
/// The time limit of a delivery whose caller gives no deadline, in milliseconds.
pub(crate) const DEFAULT_LIMIT_MS: u64 = 60_000;

/// A prompt that is to be typed.
pub(crate) struct Text {
    pub(crate) first_line: String,
    pub(crate) body: String,
    /// Type it although a turn is running.
    pub(crate) allow_busy: bool,
}

/// Begins to type a prompt. If something prevents it, the verdict is given at once.
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

/// Begins to type a command from the profile: the exit command, or the command for a new session.
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
    agent.typing = Some(Typing { delivery_id, purpose, expected, phase: Phase::InFlight(key), deadline, queued: None });
}

/// Whether a prompt may be typed at all: there is a pane, no other text is being typed, and something will prove that
/// the text has arrived.
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

/// A text that could exceed 64 KiB with tasuki's own lines goes into a file, and a short text that names the file is
/// typed.
fn attach(tx: &Tx<'_>, agent: &Agent, id: &DeliveryId, body: String) -> (Option<Attachment>, String) {
    let Some(persona) = agent.persona_slug.clone().filter(|_| body.len() > text::MAX_TYPED_BYTES - 1024) else {
        return (None, body);
    };
    let file_name = format!("{id}.md");
    let path = format!("{}/{persona}/texts/{file_name}", tx.state.settings.personas_dir);
    let short = tx.state.settings.prompts.long(&path);
    (Some(Attachment { persona, file_name, body }), short)
}

/// Takes the outcome of the effect that types. A submitted command gets neither receipt nor verdict: the agent's exit
/// or its new session is the proof, and the handoff or the shutdown has a limit for that.
pub(crate) fn settled(tx: &mut Tx<'_>, agent_id: &AgentId, key: EffectKey, typed: Typed) {
    let doubt_ends = Deadline::after(&tx.now, DOUBT_MS);
    let now = tx.now;
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    let Some(typing) = agent.typing.take_if(|typing| typing.phase == Phase::InFlight(key)) else { return };
    let is_busy = typed == Typed::Refused { reason: Refusal::Busy };
    if is_busy && waits_again(tx, agent_id, typing.queued.as_ref()) {
        return;
    }
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    let result = match typed {
        Typed::Refused { reason } => DeliveryResult::Refused(reason),
        Typed::Submitted { .. } if typing.purpose.is_command() => {
            if let Purpose::NewSession(handoff_id) = typing.purpose {
                tx.learn(Fact::NewSessionAsked { handoff_id });
            }
            return;
        }
        Typed::Unknown { .. } if typing.purpose.is_command() => return,
        Typed::Submitted { proven: true } => {
            agent.our_turn = Some(OurTurn::of(typing.purpose.clone()));
            // The end of the turn may have been reported already, or may never be. While the agent is busy, its screen
            // is watched.
            if agent.state == AgentState::Idle {
                tx.set_state(agent_id, AgentState::Busy);
            }
            DeliveryResult::Delivered(None)
        }
        Typed::Submitted { proven: false } => {
            agent.typing = Some(Typing { phase: Phase::Submitted, ..typing });
            return;
        }
        Typed::Unknown { reason } => {
            let has_longer = typing.deadline.remaining_ms(&now) > DOUBT_MS;
            let deadline = if has_longer { doubt_ends } else { typing.deadline };
            agent.typing = Some(Typing { phase: Phase::Doubt(reason), deadline, ..typing });
            return;
        }
    };
    verdict::conclude(tx, agent_id, typing.delivery_id, &typing.purpose, &result);
}

/// The screen has shown a turn that no event had reported, and nothing was typed: the text waits for the end of that
/// turn. Returns false if it has waited long enough, or had not waited at all.
fn waits_again(tx: &mut Tx<'_>, agent_id: &AgentId, queued: Option<&Queued>) -> bool {
    let Some(queued) = queued.filter(|queued| !queued.deadline.is_due(&tx.now)) else { return false };
    let Some(agent) = tx.agent_mut(agent_id) else { return false };
    agent.queue.insert(0, queued.clone());
    if agent.state == AgentState::Idle {
        tx.set_state(agent_id, AgentState::Busy);
    }
    true
}

/// Compares a reported prompt with the text that is being typed. `turn_was_open`: the prompt has the id of a turn that
/// was already running, so the CLI answers it after that turn or as a part of it.
pub(crate) fn receipt(tx: &mut Tx<'_>, agent_id: &AgentId, event: &HookEvent, turn_was_open: bool) {
    let Some(typing) = tx.agent(agent_id).and_then(|agent| agent.typing.as_ref()) else { return };
    let Some(prompt) = event.text.as_deref().filter(|_| !typing.purpose.is_command()) else { return };
    let remark = match text::compare(&typing.expected, &typing.delivery_id, prompt) {
        Match::Foreign => return acceptance::apply(tx, agent_id, Sign::AnotherPrompt),
        // Where hooks are installed in two places, each of them reports.
        _ if typing.phase.is_reported() => return,
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
        Ok(remark) => acceptance::reported(tx, agent_id, remark, turn_was_open),
        Err(reason) => verdict::finish(tx, agent_id, &DeliveryResult::Unconfirmed(reason)),
    }
}

/// Whether a prompt contains the text that is being typed to this agent.
pub(crate) fn bears_our_text(agent: &Agent, prompt: Option<&str>) -> bool {
    let (Some(typing), Some(prompt)) = (&agent.typing, prompt) else { return false };
    !typing.expected.is_empty() && text::compare(&typing.expected, &typing.delivery_id, prompt) != Match::Foreign
}

/// The deadline of the delivery has passed. A command ends without a verdict, as in [`settled`].
pub(crate) fn deadline_passed(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(typing) = tx.agent(agent_id).and_then(|agent| agent.typing.as_ref()) else { return };
    if typing.purpose.is_command() {
        verdict::take(tx, agent_id);
    } else {
        acceptance::apply(tx, agent_id, Sign::TimeIsUp);
    }
}

/// The handoff leaves its step: drops the step's text, and cancels the text's effect in the same commit.
pub(crate) fn forget(tx: &mut Tx<'_>, agent_id: &AgentId, handoff: HandoffId) {
    let Some(typing) = tx.agent(agent_id).and_then(|agent| agent.typing.as_ref()) else { return };
    // A message belongs to no step, so tasuki types the rest of a message that is half typed.
    if typing.purpose.handoff() == Some(handoff) && !matches!(typing.purpose, Purpose::Message(..)) {
        verdict::take(tx, agent_id);
    }
}
