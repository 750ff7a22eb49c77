//! The one priming of an agent: its persona's skill and experience, in that order, typed as one text.

use super::typing::{self, Text};
use crate::core::effect::{Effect, EffectKey, Outcome, PersonaTexts};
use crate::core::fact::{DeliveryResult, Fact};
use crate::core::id::{AgentId, HandoffId};
use crate::core::rows::agent::{Primed, Purpose};
use crate::core::rows::handoff::{Handoff, Step};
use crate::core::text::shell_word;
use crate::core::time::Deadline;
use crate::core::tx::Tx;

/// What to do about an agent that was started and has not got its skill. A skill usually begins with a heading, and no
/// text may begin with `#`.
pub(crate) fn hint_to_send_skill(tx: &Tx<'_>, agent_id: &AgentId) -> String {
    let slug = tx.agent(agent_id).and_then(|agent| agent.persona_slug.as_ref()).map(ToString::to_string);
    let path = format!("{}/{}/skill.md", tx.state.settings.personas_dir, slug.unwrap_or_default());
    format!(
        "look at the agent's pane, which tasuki left as it is; if the agent runs there, give it its persona's skill: \
         echo Your skill: | cat - {} | tasuki send {} -",
        shell_word(&path),
        agent_id.short()
    )
}

/// Begins the one priming of an agent that was not primed before.
pub(crate) fn begin(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id).filter(|agent| agent.primed == Primed::Never) else { return };
    let Some(persona) = agent.persona_slug.clone() else { return };
    let effect = tx.effect_of(agent_id, Effect::ReadPersona { persona });
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.primed = Primed::Reading { effect };
    }
}

/// Takes the outcome of the effect that reads the persona.
pub(crate) fn settled(tx: &mut Tx<'_>, agent_id: &AgentId, key: EffectKey, outcome: Outcome) {
    if tx.agent(agent_id).is_none_or(|agent| agent.primed != Primed::Reading { effect: key }) {
        return;
    }
    let read = if let Outcome::Persona(Some(texts)) = outcome {
        Ok(texts)
    } else if let Outcome::Failed { why } = outcome {
        // `why` names the file.
        Err(format!("The persona's skill or experience can't be read: {why}"))
    } else {
        Err("The persona's skill.md is missing".to_owned())
    };
    persona_read(tx, agent_id, read);
}

/// The persona was read: types skill and experience, in that order, as one text. `read` may be the problem instead, as
/// a whole sentence.
fn persona_read(tx: &mut Tx<'_>, agent_id: &AgentId, read: Result<PersonaTexts, String>) {
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    // `typing` sets `Begun` in the same commit, unless it refuses the text at once.
    agent.primed = Primed::Never;
    let slug = agent.persona_slug.clone();
    let handoff = waiting_handoff(tx, agent_id);
    let deadline = handoff
        .and_then(|id| tx.handoff(&id).and_then(|handoff| handoff.stay.deadline))
        .or_else(|| tx.agent(agent_id).and_then(|agent| agent.priming_deadline));
    // A priming's receipt comes as fast as any other. Only the turn that answers the priming may take longer.
    let receipt = Deadline::after(&tx.now, tx.state.settings.limits.instructing_ms);
    let is_earlier = |deadline: &Deadline| deadline.remaining_ms(&tx.now) < receipt.remaining_ms(&tx.now);
    let deadline = deadline.filter(is_earlier).unwrap_or(receipt);
    let texts = match read {
        Ok(texts) => texts,
        Err(why) => {
            return match handoff {
                Some(handoff_id) => tx.learn(Fact::Primed { handoff_id, problem: Some(why) }),
                None => finish(tx, agent_id, Some(&why)),
            };
        }
    };
    let body = match texts.experience {
        Some(experience) => format!("{}\n\n{}", texts.skill.trim_end(), experience.trim_end()),
        None => texts.skill.trim_end().to_owned(),
    };
    let name = slug.map_or_else(String::new, |slug| slug.to_string());
    let text = Text { first_line: format!("You are the persona {name}. Your skill follows."), body, allow_busy: false };
    typing::begin(tx, agent_id, Purpose::Priming(handoff), text, Some(deadline));
}

/// The handoff that waits for this priming: the agent is its successor, and it has reached step `priming`. An existing
/// agent may become a handoff's successor while its own start still primes it.
fn waiting_handoff(tx: &Tx<'_>, agent_id: &AgentId) -> Option<HandoffId> {
    let id = tx.agent(agent_id)?.handoff_id?;
    let is_its = |handoff: &&Handoff| handoff.step == Step::Priming && handoff.successor_id == Some(*agent_id);
    tx.handoff(&id).filter(is_its).map(|handoff| handoff.handoff_id)
}

/// Takes the verdict of a priming outside a handoff: a failure is reported to the operator.
pub(crate) fn verdict_outside_handoff(tx: &mut Tx<'_>, agent_id: &AgentId, result: &DeliveryResult) {
    match result {
        DeliveryResult::Delivered(_) => {}
        DeliveryResult::Unconfirmed(reason) => {
            let what = if reason == "no_receipt" { ": the agent's hooks reported no prompt" } else { "" };
            let why = format!("It is not known whether the agent's priming arrived ({reason}){what}");
            finish(tx, agent_id, Some(&why));
        }
        DeliveryResult::Refused(reason) => {
            finish(tx, agent_id, Some(&reason.told("The agent's priming was not typed")));
        }
    }
}

/// The turn that answers the priming has ended, or the priming has failed.
pub(crate) fn finish(tx: &mut Tx<'_>, agent_id: &AgentId, problem: Option<&str>) {
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    agent.priming_deadline = None;
    if agent.our_turn.as_ref().is_some_and(|turn| matches!(turn.purpose, Purpose::Priming(_))) {
        agent.our_turn = None;
    }
    if problem.is_none() {
        agent.primed = Primed::Done;
    }
    match (waiting_handoff(tx, agent_id), problem) {
        (Some(handoff_id), problem) => {
            tx.learn(Fact::Primed { handoff_id, problem: problem.map(str::to_owned) });
        }
        (None, None) => {}
        (None, Some(why)) => {
            let hint =
                "the agent runs without its skill: look at its pane, then send the agent what it needs or shut it down";
            tx.notify_agent_failure(agent_id, "priming_failed", why, hint);
        }
    }
}
