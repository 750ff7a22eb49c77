//! What must stay true whatever happens (no text is typed twice, no agent is started twice, no document is published
//! twice, and more), checked while the world runs and at its end.

use super::world::World;
use std::collections::BTreeMap;
use tasuki::core::effect::{Effect, How};
use tasuki::core::id::{AgentId, DeliveryId, HandoffId};
use tasuki::core::rows::agent::{AgentState, Owner};
use tasuki::core::rows::handoff::Step;
use tasuki::core::rows::publishing::{PublishState, Publishing};
use tasuki::core::text::signature;

/// What must hold at every moment.
pub(crate) fn always(world: &World) -> Result<(), String> {
    if let Some((id, times)) = world.tmux.typed.iter().find(|(_, times)| **times > 1) {
        return Err(format!("delivery {id} was typed {times} times"));
    }
    if let Some((id, times)) = world.tmux.spawned.iter().find(|(_, times)| **times > 1) {
        return Err(format!("agent {id} was started {times} times"));
    }
    for agent in world.tmux.agents.iter().filter(|agent| world.anonymous.contains(&agent.pane)) {
        if !agent.mark.is_empty() {
            return Err(format!("something was typed into the anonymous agent in {}", agent.pane));
        }
    }
    let mut uploads = world.disk.uploads.iter().filter(|((id, ..), _)| !world.unpublished.contains(id));
    if let Some((upload, times)) = uploads.find(|(_, times)| **times > 1) {
        return Err(format!("{upload:?} was published {times} times"));
    }
    one_successor(world)
}

/// No second successor lives beside the first one, but for one that is being ended.
fn one_successor(world: &World) -> Result<(), String> {
    for handoff in world.disk.handoffs().filter(|handoff| !world.changed.contains(&handoff.handoff_id)) {
        let mut ids: Vec<AgentId> = handoff.former_successors.clone();
        ids.extend(handoff.successor_id);
        let is_wanted = |id: &AgentId| {
            let start = world.disk.agent(id).and_then(|agent| agent.start.as_ref());
            start.is_none_or(|start| start.owner != Owner::Nobody)
        };
        let living = ids.iter().filter(|id| world.tmux.by_env(id).is_some() && is_wanted(id)).count();
        if living > 1 {
            return Err(format!("handoff {} has {living} living successors", handoff.handoff_id));
        }
    }
    Ok(())
}

/// What must hold before an effect types: looked at when it is about to.
pub(crate) fn before_typing(world: &World, effect: &Effect) -> Result<(), String> {
    let Effect::Type(plan) = effect else { return Ok(()) };
    let Some(row) = world.disk.agent(&plan.agent_id) else { return Err("an unknown agent is typed to".to_owned()) };
    if row.persona_slug.is_none() {
        return Err("an anonymous agent is typed to".to_owned());
    }
    if row.typing.as_ref().is_none_or(|typing| typing.delivery_id != plan.delivery_id) {
        return Err("a text is typed that nobody waits for any more".to_owned());
    }
    if plan.how != How::Prompt {
        let handoff = row.handoff_id.and_then(|id| world.disk.state.handoffs.get(&id));
        let hands_off = handoff.filter(|handoff| handoff.agent_id == plan.agent_id);
        if hands_off.is_some_and(|handoff| handoff.record.is_none()) {
            return Err("the agent is ended before the record is durable".to_owned());
        }
    }
    if plan.text.starts_with("Here is your handoff") {
        // An agent that lives on in its predecessor's pane is primed in its own session.
        let mut in_pane = world.tmux.agents.iter().filter(|agent| agent.pane == plan.pane);
        let is_priming = |text: &String| text.starts_with("You are the persona");
        let primed = in_pane.any(|agent| agent.submitted[agent.session_from..].iter().any(is_priming));
        let mut told = world.disk.handoffs().filter(|handoff| world.assumed.contains(&handoff.handoff_id));
        let assumed = told.any(|handoff| handoff.successor_id == Some(plan.agent_id));
        if !primed && !assumed {
            return Err("the briefing comes before the priming".to_owned());
        }
    }
    Ok(())
}

/// What must hold when everything has come to rest.
pub(crate) fn at_rest(world: &World) -> Result<(), String> {
    for id in &world.dropped {
        let answers = world.disk.answers.get(id).copied().unwrap_or(0);
        if answers != 1 {
            return Err(format!("request {id} was answered {answers} times"));
        }
    }
    for handoff in world.disk.handoffs() {
        if !handoff.step.is_end() {
            return Err(format!("handoff {} hangs in {}: {handoff:?}", handoff.handoff_id, handoff.step.as_str()));
        }
        if let Some(publishing) = handoff.publish.as_ref().filter(|_| handoff.record.is_some()) {
            published(world, handoff.handoff_id, publishing)?;
        }
        // An abandoned handoff still says why it had failed.
        let fits = match handoff.step {
            Step::Failed => handoff.error.is_some(),
            Step::Cancelled => true,
            _ => handoff.error.is_none(),
        };
        if !fits {
            return Err(format!(
                "handoff {} is {} and its error says otherwise",
                handoff.handoff_id,
                handoff.step.as_str()
            ));
        }
    }
    no_stray_successor(world)?;
    for agent in world.disk.agents() {
        if agent.typing.is_some() || agent.start.is_some() || !agent.queue.is_empty() {
            return Err(format!("agent {} still waits for something: {agent:?}", agent.agent_id));
        }
        // Every turn is over: that its end was never reported is found out in time, unless a draft hides the idle
        // composer.
        let shows = |pane| world.tmux.agents.iter().any(|row| row.alive && row.pane == pane && row.composer.is_empty());
        if agent.pane.is_some_and(shows) && agent.state == AgentState::Busy {
            return Err(format!("agent {} is said to be busy for ever: {agent:?}", agent.agent_id));
        }
        let in_handoff = agent.handoff_id.and_then(|id| world.disk.handoffs().find(|row| row.handoff_id == id));
        if in_handoff.is_some_and(|handoff| handoff.step.is_end()) {
            return Err(format!("agent {} is held by a handoff that has ended", agent.agent_id));
        }
    }
    if !world.disk.state.outbox.is_empty() {
        return Err(format!("effects are left: {:?}", world.disk.state.outbox));
    }
    journal(world)?;
    verdicts(world)?;
    told(world)?;
    super::acks::at_rest(world)?;
    texts(world)
}

/// No successor is left of a handoff that ended before its document was recorded: it was started early, and for
/// nothing.
fn no_stray_successor(world: &World) -> Result<(), String> {
    for handoff in world.disk.handoffs().filter(|handoff| handoff.record.is_none()) {
        // One that a person has typed to is left to that person.
        let is_untouched = |id: &&AgentId| world.disk.agent(id).is_none_or(|agent| agent.prompts_and_answers == 0);
        let mut former = handoff.former_successors.iter().filter(is_untouched);
        if let Some(id) = former.find(|id| world.tmux.by_env(id).is_some()) {
            return Err(format!("handoff {} has left the agent {id} behind", handoff.handoff_id));
        }
    }
    Ok(())
}

/// What was recorded is published or told as failed, held or in doubt, and what is said of it is true unless the
/// operator said so.
fn published(world: &World, id: HandoffId, publishing: &Publishing) -> Result<(), String> {
    let place = (id, publishing.number, publishing.destination().way().as_str());
    let is_there = world.disk.uploads.contains_key(&place);
    let told = publishing.error.as_ref().is_some_and(|error| world.disk.told.contains_key(&error.error_id));
    let is_so = match publishing.state {
        PublishState::Published => is_there || publishing.url.is_none(),
        PublishState::Failed | PublishState::Held => told && !is_there,
        PublishState::InDoubt => told,
        PublishState::Waiting | PublishState::Running | PublishState::Retrying => false,
    };
    if is_so { Ok(()) } else { Err(format!("handoff {id}: {publishing:?}, there: {is_there}")) }
}

fn journal(world: &World) -> Result<(), String> {
    for (place, (seq, _)) in world.disk.journal.iter().enumerate() {
        if *seq != place as u64 {
            return Err(format!("journal line {place} bears the number {seq}"));
        }
    }
    Ok(())
}

/// No text is said to have been refused that was typed, and none to be delivered that no agent has taken.
fn verdicts(world: &World) -> Result<(), String> {
    for (_, line) in world.disk.journal.iter().filter(|(_, line)| line["type"] == "delivery") {
        let Some(id) = line["delivery_id"].as_str().and_then(|id| DeliveryId::try_from(id.to_owned()).ok()) else {
            return Err(format!("a delivery without an id: {line}"));
        };
        let end = signature(&id);
        let is_taken = || world.tmux.agents.iter().flat_map(|agent| &agent.submitted).any(|text| text.ends_with(&end));
        let is_false = match line["verdict"].as_str().unwrap_or_default() {
            "not_delivered" => world.tmux.typed.contains_key(&id),
            "delivered" => !is_taken(),
            verdict => verdict != "unconfirmed",
        };
        if is_false {
            return Err(format!("the verdict is not true: {line}"));
        }
    }
    Ok(())
}

/// One error file and one journal line for each failure, and every error was told.
fn told(world: &World) -> Result<(), String> {
    let mut lines: BTreeMap<HandoffId, u32> = BTreeMap::new();
    let fails = |line: &serde_json::Value| {
        let is_publish =
            line["type"] == "publish" && ["failed", "held", "in_doubt"].iter().any(|end| line["state"] == *end);
        line["type"] == "handoff.failed" || is_publish
    };
    for (_, line) in world.disk.journal.iter().filter(|(_, line)| fails(line)) {
        if let Some(id) = line["handoff_id"].as_str().and_then(|id| id.parse().ok()) {
            *lines.entry(id).or_default() += 1;
        }
    }
    let mut files: BTreeMap<HandoffId, u32> = BTreeMap::new();
    for row in &world.disk.errors {
        // What did not reach an orchestrator is an error of its own.
        if let Some(id) = row.handoff_id.filter(|_| row.step.is_some()) {
            *files.entry(id).or_default() += 1;
        }
        if !world.disk.told.contains_key(&row.error_id) {
            return Err(format!("error {} was told to nobody", row.error_id));
        }
    }
    if lines != files {
        return Err(format!("failures in the journal {lines:?} and in errors/ {files:?} differ"));
    }
    Ok(())
}

/// Each text of a handoff was submitted once, and once more for each retry that the operator asked for.
fn texts(world: &World) -> Result<(), String> {
    for handoff in world.disk.handoffs() {
        let retries = world.retries.get(&handoff.handoff_id).copied().unwrap_or(0);
        // A briefing may name the documents before this one, so the first path is the one that it is about.
        let names = |text: &&String| text.split('`').nth(1) == Some(handoff.file_path.as_str());
        let holds = |text: &&String, head: &str| text.starts_with(head) && names(text);
        let submitted = || world.tmux.agents.iter().flat_map(|agent| &agent.submitted);
        let instructions = submitted().filter(|text| holds(text, "Please write a handoff")).count();
        let briefings = submitted().filter(|text| holds(text, "Here is your handoff")).count();
        // The agent is asked to repair its document as often as the row says, and by tasuki itself once.
        let is_rework = |text: &&String| holds(text, "Please repair");
        let reworks = submitted().filter(is_rework).count() as u64;
        let asked = handoff.examined.reworks;
        let by_operator = world.reworks.get(&handoff.handoff_id).copied().unwrap_or(0);
        if reworks > asked || asked > 1 + by_operator {
            return Err(format!("handoff {}: {reworks} of {asked} reworks", handoff.handoff_id));
        }
        if instructions > 1 + retries || briefings > 1 + retries {
            let id = handoff.handoff_id;
            return Err(format!("handoff {id}: {instructions} instructions, {briefings} briefings, {retries} retries"));
        }
    }
    Ok(())
}
