//! Entering and leaving steps. What a step waits for comes in by `outcome`.

use super::{Handoff, HandoffError, Reading, Record, Step, document, prompts};
use crate::core::agent::{Agent, AgentState, Primed, Purpose};
use crate::core::decision::{Failure, Tx};
use crate::core::effect::Effect;
use crate::core::id::HandoffId;
use crate::core::reply::Refused;
use crate::core::time::Deadline;
use crate::core::{priming, start, typing};
use serde_json::json;

/// Leaves the present step and enters another: closes its span, cancels what it had running, sets the limit, writes
/// the journal line, and does what the new step begins with.
pub(crate) fn enter(tx: &mut Tx<'_>, id: HandoffId, step: Step) {
    leave(tx, id);
    let now = tx.now;
    let limit = step.limit_ms(&tx.state.settings.limits);
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    handoff.step = step;
    handoff.deadline = limit.map(|limit| Deadline::after(&now, limit));
    handoff.steps.push(super::Span { step, entered_at: now.stamp(), left_at: None });
    if step == Step::Waiting {
        handoff.deadline = handoff.wait_until.or(handoff.deadline);
        handoff.wait_until = handoff.deadline;
    }
    let (agent_id, successor_id) = (handoff.agent_id, handoff.successor_id);
    let line = json!({ "handoff_id": id, "agent_id": agent_id, "successor_id": successor_id, "step": step.word() });
    tx.journal("handoff.step", line);
    match step {
        Step::Waiting => wait(tx, id),
        Step::Instructing => prepare_folder(tx, id),
        Step::Writing | Step::Recording | Step::Failed => {}
        Step::Ending => end_agent(tx, id),
        Step::Starting => start_successor(tx, id),
        Step::Priming => prime(tx, id),
        Step::Briefing => compare_document(tx, id),
        Step::Done | Step::Cancelled => release(tx, id),
    }
}

/// Ends the present step without entering one: what it had running is cancelled in the same commit.
fn leave(tx: &mut Tx<'_>, id: HandoffId) {
    let stamp = tx.now.stamp();
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    if let Some(span) = handoff.steps.last_mut() {
        span.left_at.get_or_insert(stamp);
    }
    handoff.deadline = None;
    handoff.exit_waits = false;
    let reading = handoff.reading.take();
    let effect = handoff.effect.take();
    let agents = [Some(handoff.agent_id), handoff.successor_id];
    if let Some(key) = effect {
        tx.drop_effect(key);
    }
    if let Some(Reading::Accepted(request)) = reading {
        let message = "The handoff went another way before the document was read";
        tx.refuse(&request, Refused::new(409, "not_writing", message).hint("see: tasuki handoffs show HANDOFF"));
    }
    for agent_id in agents.into_iter().flatten() {
        typing::forget(tx, &agent_id, id);
    }
}

/// Adds an effect of which the present step waits for the outcome.
pub(crate) fn run(tx: &mut Tx<'_>, id: HandoffId, effect: Effect) {
    let key = tx.effect(effect);
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.effect = Some(key);
    }
}

/// In `waiting`: goes on as soon as the agent can take the instruction. Called again whenever the agent changes.
pub(crate) fn wait(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    if handoff.step != Step::Waiting {
        return;
    }
    let (agent_id, effect) = (handoff.agent_id, handoff.effect);
    let Some(agent) = tx.agent(&agent_id) else { return };
    if agent.is_free() || (handoff.now && can_be_interrupted(tx, agent)) {
        return enter(tx, id, Step::Instructing);
    }
    let is_busy = matches!(agent.state, AgentState::Busy | AgentState::Blocked);
    let nothing_on_its_way = agent.typing.is_none() && agent.start.is_none();
    if let (true, None, Some(pane)) = (is_busy && nothing_on_its_way, effect, agent.pane) {
        let profile = agent.profile.clone();
        run(tx, id, Effect::AwaitIdle { agent_id, pane, profile });
    }
}

/// In `ending`: types the exit command as soon as no other text is on its way. Called again whenever the agent changes.
pub(crate) fn exit_when_free(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let is_free = tx.agent(&handoff.agent_id).is_some_and(|agent| agent.typing.is_none());
    if handoff.step == Step::Ending && handoff.exit_waits && is_free {
        type_exit(tx, id);
    }
}

/// Whether an instruction may be typed into a running turn: only where turn ids tell later whose Stop it was.
fn can_be_interrupted(tx: &Tx<'_>, agent: &Agent) -> bool {
    let knows_turns = tx.state.settings.profiles.get(&agent.profile).is_some_and(|profile| profile.turn_ids);
    agent.state == AgentState::Busy && agent.typing.is_none() && agent.our_turn.is_none() && knows_turns
}

fn prepare_folder(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let persona = handoff.persona_slug.clone();
    run(tx, id, Effect::PrepareFolder { persona });
}

/// Types the instruction: the folder is there.
pub(crate) fn instruct(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let values = prompts::Instruction {
        reason: &handoff.reason,
        file_path: &handoff.file_path,
        focus: handoff.focus.as_deref(),
    };
    let text = typing::Text {
        first_line: "Please write a handoff document for your successor.".to_owned(),
        body: tx.state.settings.prompts.instruction(&values),
        allow_busy: handoff.now,
    };
    let (agent_id, deadline) = (handoff.agent_id, handoff.deadline);
    typing::begin(tx, &agent_id, Purpose::Instruction(id), text, deadline);
}

/// Reads the document; what comes of it is judged by why it was read.
pub(crate) fn read_document(tx: &mut Tx<'_>, id: HandoffId, reading: Reading) {
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    handoff.reading = Some(reading);
    let (persona, file_name, before) = (handoff.persona_slug.clone(), handoff.file_name.clone(), handoff.effect.take());
    if let Some(key) = before {
        tx.drop_effect(key);
    }
    run(tx, id, Effect::ReadDocument { handoff_id: id, persona, file_name });
}

/// Commits the record, then goes on to end the agent: in one decision, so that nothing ends before the record is
/// durable.
pub(crate) fn record(tx: &mut Tx<'_>, id: HandoffId, text: String, sha256: String) {
    enter(tx, id, Step::Recording);
    let stamp = tx.now.stamp();
    let Some(handoff) = tx.handoff(&id) else { return };
    let agent_id = handoff.agent_id;
    let cwd = tx.agent(&agent_id).and_then(|agent| agent.cwd.clone());
    let summary = document::first_paragraph(&text);
    let predecessor = agent_id.to_string();
    let injection_prompt = tx.state.settings.prompts.briefing(&prompts::Briefing {
        predecessor_id: &predecessor,
        persona: handoff.persona_slug.as_str(),
        reason: &handoff.reason,
        file_path: &handoff.file_path,
        focus: handoff.focus.as_deref(),
        cwd: cwd.as_deref(),
        tasks: &handoff.tasks,
        summary: summary.as_deref(),
    });
    let bytes = text.len() as u64;
    let warnings = document::missing_sections(&text);
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.record = Some(Record { bytes, sha256, injection_prompt, created_at: stamp.clone() });
        handoff.document = Some(super::DocumentSeen { bytes, at: stamp });
        handoff.warnings.extend(warnings);
    }
    tx.out.documents.insert(id, Some(text));
    if let Some(agent) = tx.agent_mut(&agent_id) {
        agent.record_of = Some(id);
    }
    enter(tx, id, Step::Ending);
}

fn end_agent(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let (agent_id, tag) = (handoff.agent_id, handoff.place_tag());
    let Some(agent) = tx.agent(&agent_id) else { return };
    match (agent.state, agent.pane) {
        (AgentState::Ended, _) => enter(tx, id, Step::Starting),
        (AgentState::Lost, _) | (_, None) => {
            let pid = agent.process.map_or_else(String::new, |process| format!(" (process {})", process.pid));
            let message = format!("The agent's pane is gone, but it is not known to have ended{pid}");
            let hint = "end the process yourself, then retry";
            fail(tx, id, "did_not_exit", message, hint);
        }
        (_, Some(pane)) => run(tx, id, Effect::HoldPlace { pane, tag }),
    }
}

/// Types the exit command, or first waits for the end of a turn that the agent is in.
pub(crate) fn type_exit(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let (agent_id, deadline) = (handoff.agent_id, handoff.deadline);
    let Some(agent) = tx.agent(&agent_id) else { return };
    let waits = agent.typing.is_some();
    let (state, pane, profile) = (agent.state, agent.pane, agent.profile.clone());
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.exit_waits = waits;
    }
    match (state, pane) {
        _ if waits => {}
        (AgentState::Busy | AgentState::Blocked, Some(pane)) => {
            run(tx, id, Effect::AwaitIdle { agent_id, pane, profile });
        }
        _ => typing::begin_exit(tx, &agent_id, Some(id), deadline),
    }
}

fn start_successor(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let deadline = handoff.deadline;
    if let Some(successor_id) = handoff.successor_id {
        return start::adopt(tx, &successor_id, id, deadline);
    }
    let Some(outgoing) = tx.agent(&handoff.agent_id) else { return };
    let place = handoff.place.as_ref();
    let slug = handoff.persona_slug.clone();
    let fallback = || outgoing.tmux_session.clone().unwrap_or_else(|| format!("tasuki-{slug}"));
    let wanted = start::Wanted {
        persona: slug.clone(),
        profile: outgoing.profile.clone(),
        cwd: outgoing.cwd.clone().or_else(|| place.and_then(|place| place.cwd.clone())),
        session: place.map_or_else(fallback, |place| place.session.clone()),
        size: place.map_or(start::DEFAULT_SIZE, |place| place.size),
        previous: Some(handoff.agent_id),
    };
    let successor_id = start::create(tx, wanted, crate::core::agent::Owner::Handoff(id), deadline);
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.successor_id = Some(successor_id);
    }
}

fn prime(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let Some(successor_id) = handoff.successor_id else { return };
    match tx.agent(&successor_id).map(|agent| agent.primed.clone()) {
        Some(Primed::Done) => enter(tx, id, Step::Briefing),
        _ => priming::begin(tx, &successor_id, Some(id)),
    }
}

fn compare_document(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let Some(record) = &handoff.record else { return };
    let effect = Effect::CompareDocument {
        persona: handoff.persona_slug.clone(),
        file_name: handoff.file_name.clone(),
        sha256: record.sha256.clone(),
    };
    run(tx, id, effect);
}

/// Types the briefing. A document that was changed after the record is said to be so, in view and briefing.
pub(crate) fn brief(tx: &mut Tx<'_>, id: HandoffId, unchanged: bool) {
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    let (Some(record), Some(successor_id)) = (&handoff.record, handoff.successor_id) else { return };
    let mut body = record.injection_prompt.clone();
    let sha256 = record.sha256.clone();
    let first_line = format!("Here is your handoff from agent {}.", handoff.agent_id.short());
    let deadline = handoff.deadline;
    if !unchanged {
        let warning = "the document was changed after it was recorded".to_owned();
        if !handoff.warnings.contains(&warning) {
            handoff.warnings.push(warning);
        }
        body = format!("{body}\n\n{}", tx.state.settings.prompts.changed(&sha256));
    }
    let text = typing::Text { first_line, body, allow_busy: false };
    typing::begin(tx, &successor_id, Purpose::Briefing(id), text, deadline);
}

/// Lets go of both agents, and of the document's copy.
fn release(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let agents = [Some(handoff.agent_id), handoff.successor_id];
    let has_document = handoff.record.is_some();
    for agent_id in agents.into_iter().flatten() {
        release_agent(tx, &agent_id, id);
    }
    if has_document {
        tx.out.documents.insert(id, None);
    }
}

fn release_agent(tx: &mut Tx<'_>, agent_id: &crate::core::id::AgentId, id: HandoffId) {
    let Some(agent) = tx.agent(agent_id) else { return };
    if agent.handoff_id != Some(id) {
        return;
    }
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.handoff_id = None;
    }
}

/// Halts the flow at its present step (`HANDOFF` in the hint stands for its id): error file, one journal line, every channel; document and record are kept, the
/// agents are left as they are.
pub(crate) fn fail(tx: &mut Tx<'_>, id: HandoffId, code: &str, message: impl Into<String>, hint: &str) {
    let Some(handoff) = tx.handoff(&id) else { return };
    if handoff.step.is_end() {
        return;
    }
    let (step, agent_id, successor_id) = (handoff.step, handoff.agent_id, handoff.successor_id);
    let (message, hint) = (message.into(), hint.replace("HANDOFF", &id.short()));
    leave(tx, id);
    let drops_place = step >= Step::Ending && tx.handoff(&id).is_some_and(|handoff: &Handoff| handoff.place.is_some());
    let error_id = tx.tell_failure(Failure {
        code: code.to_owned(),
        message: message.clone(),
        hint: hint.clone(),
        handoff_id: Some(id),
        agent_id: Some(agent_id),
        step: Some(step.word().to_owned()),
    });
    let stamp = tx.now.stamp();
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.step = Step::Failed;
        handoff.steps.push(super::Span { step: Step::Failed, entered_at: stamp, left_at: None });
        handoff.error = Some(HandoffError { error_id, step, code: code.to_owned(), message: message.clone(), hint });
    }
    for agent in [Some(agent_id), successor_id].into_iter().flatten() {
        release_agent(tx, &agent, id);
    }
    if drops_place {
        drop_place(tx, id);
    }
    let line = json!({
        "handoff_id": id, "agent_id": agent_id, "step": step.word(), "code": code, "message": message,
        "error_id": error_id,
    });
    tx.journal("handoff.failed", line);
}

/// Removes the placeholder window, if there is one: the successor stands in its place, or nobody will.
pub(crate) fn drop_place(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    if handoff.place.is_some() {
        let tag = handoff.place_tag();
        tx.effect(Effect::DropPlace { tag });
    }
}
