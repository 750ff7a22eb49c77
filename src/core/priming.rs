//! The one priming of an agent: its persona's skill and experience, in that order, as one text.

use super::effect::{Effect, PersonaTexts};
use super::fact::{Ended, Fact};
use super::id::{AgentId, HandoffId};
use super::rows::agent::{Primed, Purpose};
use super::rows::handoff::{Handoff, Step};
use super::text::word;
use super::time::Deadline;
use super::tx::Tx;
use super::typing::{self, Text};

/// Begins the one priming of an agent that never was.
pub(crate) fn begin(tx: &mut Tx<'_>, agent_id: &AgentId) {
    let Some(agent) = tx.agent(agent_id).filter(|agent| agent.primed == Primed::Never) else { return };
    let Some(persona) = agent.persona_slug.clone() else { return };
    let effect = tx.effect_of(agent_id, Effect::ReadPersona { persona });
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.primed = Primed::Reading { effect };
    }
}

/// The persona was read: types skill and experience, in that order, as one text.
pub(crate) fn persona_read(tx: &mut Tx<'_>, agent_id: &AgentId, read: Result<PersonaTexts, String>) {
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    agent.primed = Primed::Never;
    let slug = agent.persona_slug.clone();
    let handoff = coming_in(tx, agent_id);
    let deadline = handoff
        .and_then(|id| tx.handoff(&id).and_then(|handoff| handoff.stay.deadline))
        .or_else(|| tx.agent(agent_id).and_then(|agent| agent.priming_deadline));
    // Its receipt comes as soon as any other one; only the turn that answers it may take longer.
    let receipt = Deadline::after(&tx.now, tx.state.settings.limits.instructing_ms);
    let is_earlier = |deadline: &Deadline| deadline.remaining_ms(&tx.now) < receipt.remaining_ms(&tx.now);
    let deadline = deadline.filter(is_earlier).unwrap_or(receipt);
    let texts = match read {
        Ok(texts) => texts,
        Err(why) => {
            let why = format!("The persona's skill.md can't be read{why}");
            return match handoff {
                Some(handoff_id) => tx.learn(Fact::Primed { handoff_id, problem: Some(why) }),
                None => is_over(tx, agent_id, Some(&why)),
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

/// The handoff that waits for this priming. One in which the agent goes out has nothing to do with it, nor has one that is
/// not that far: an agent that runs already may be on its way in while its own start still has it primed.
fn coming_in(tx: &Tx<'_>, agent_id: &AgentId) -> Option<HandoffId> {
    let id = tx.agent(agent_id)?.handoff_id?;
    let is_its = |handoff: &&Handoff| handoff.step == Step::Priming && handoff.successor_id == Some(*agent_id);
    tx.handoff(&id).filter(is_its).map(|handoff| handoff.handoff_id)
}

/// A priming outside a handoff has its verdict: a failure is told.
pub(crate) fn failed_outside(tx: &mut Tx<'_>, agent_id: &AgentId, ended: &Ended) {
    match ended {
        Ended::Delivered(_) => {}
        Ended::Unconfirmed(reason) => {
            let what = if reason == "no_receipt" { ": its hooks told of no prompt" } else { "" };
            let why = format!("It is not known whether the agent's priming arrived ({reason}){what}");
            is_over(tx, agent_id, Some(&why));
        }
        Ended::Refused(reason) => {
            let why = format!("The agent's priming was not typed: {}", word(reason));
            is_over(tx, agent_id, Some(&why));
        }
    }
}

/// The turn that answers the priming has ended, or the priming has failed.
pub(crate) fn is_over(tx: &mut Tx<'_>, agent_id: &AgentId, problem: Option<&str>) {
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    agent.priming_deadline = None;
    if agent.our_turn.as_ref().is_some_and(|turn| matches!(turn.purpose, Purpose::Priming(_))) {
        agent.our_turn = None;
    }
    if problem.is_none() {
        agent.primed = Primed::Done;
    }
    match (coming_in(tx, agent_id), problem) {
        (Some(handoff_id), problem) => {
            tx.learn(Fact::Primed { handoff_id, problem: problem.map(str::to_owned) });
        }
        (None, None) => {}
        (None, Some(why)) => {
            let hint = "the agent runs without its skill: look at its pane; send it what it needs, or shut it down";
            tx.tell_of_agent(agent_id, "priming_failed", why, hint);
        }
    }
}
