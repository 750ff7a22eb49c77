//! Entering and leaving steps. What a step waits for comes in by `outcome`.

use super::{ack, authors, document, end, ending, publish, reading, successors};
use crate::core::effect::Effect;
use crate::core::id::HandoffId;
use crate::core::prompts;
use crate::core::reply::Refused;
use crate::core::request::{Author, Successor};
use crate::core::rows::agent::{Agent, AgentState, Primed, Purpose};
use crate::core::rows::handoff::{DocumentSeen, Handoff, Reading, Record, Span, Step};
use crate::core::time::Deadline;
use crate::core::tx::Tx;
use crate::core::{priming, text, typing, work};
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
    handoff.steps.push(Span { step, entered_at: now.stamp(), left_at: None });
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
        Step::Writing | Step::Failed => {}
        Step::Recording => authors::record(tx, id),
        Step::Ending => ending::begin(tx, id),
        Step::Starting => successors::begin(tx, id),
        Step::Priming => prime(tx, id),
        Step::Briefing => compare_document(tx, id),
        Step::Reading => reading::begin(tx, id),
        Step::Acknowledging => ack::timeline::begin(tx, id),
        Step::Done | Step::Cancelled => end::release(tx, id),
    }
}

/// Ends the present step without entering one: what it had running is cancelled in the same commit.
pub(super) fn leave(tx: &mut Tx<'_>, id: HandoffId) {
    let stamp = tx.now.stamp();
    ack::timeline::leave(tx, id);
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    if let Some(span) = handoff.steps.last_mut() {
        span.left_at.get_or_insert(stamp);
    }
    handoff.deadline = None;
    handoff.waits = false;
    handoff.stopped_meanwhile = false;
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
    let Some(agent) = tx.agent(&handoff.agent_id) else { return };
    if authors::needs_no_agent(handoff.author) {
        if agent.is_free() || handoff.now || !agent.state.is_live() {
            enter(tx, id, Step::Recording);
        }
    } else if agent.is_free() || (handoff.now && can_be_interrupted(tx, agent)) {
        enter(tx, id, Step::Instructing);
    }
}

/// Types a step's text that has waited, as soon as its agent is free for it. Called again whenever an agent changes.
pub(crate) fn go_on_when_free(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let step = handoff.step;
    let agent_id = if step == Step::Ending { Some(handoff.agent_id) } else { handoff.successor_id };
    let agent = agent_id.and_then(|id| tx.agent(&id));
    let is_free = agent.is_some_and(|agent| agent.typing.is_none() && agent.state == AgentState::Idle);
    if !handoff.waits || !is_free {
        return;
    }
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.waits = false;
    }
    match step {
        Step::Ending => ending::type_exit(tx, id),
        Step::Starting => successors::begin(tx, id),
        Step::Priming => prime(tx, id),
        Step::Briefing => compare_document(tx, id),
        // They type nothing, or not to an agent that may be at work.
        Step::Waiting
        | Step::Instructing
        | Step::Writing
        | Step::Recording
        | Step::Reading
        | Step::Acknowledging
        | Step::Done
        | Step::Failed
        | Step::Cancelled => {}
    }
}

/// Puts a step's text off until its agent is free for it; the step's limit goes on.
pub(crate) fn put_off(tx: &mut Tx<'_>, id: HandoffId) {
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.waits = true;
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
    let prompts = &tx.state.settings.prompts;
    let (first_line, body) = match handoff.author {
        Author::AgentReply => ("Please answer with a handoff document for your successor.", prompts.reply(&values)),
        Author::AgentFile | Author::Salvage | Author::Provided => {
            ("Please write a handoff document for your successor.", prompts.instruction(&values))
        }
    };
    let text = typing::Text { first_line: first_line.to_owned(), body, allow_busy: handoff.now };
    let (agent_id, deadline) = (handoff.agent_id, handoff.deadline);
    typing::begin(tx, &agent_id, Purpose::Instruction(id), text, deadline);
}

/// Reads the document, which is written first where tasuki does that; what comes of it is judged by why it was read.
pub(crate) fn read_document(tx: &mut Tx<'_>, id: HandoffId, reading: Reading) {
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    handoff.reading = Some(reading);
    if let Some(key) = handoff.effect.take() {
        tx.drop_effect(key);
    }
    let Some(handoff) = tx.handoff(&id) else { return };
    match authors::composition(tx, handoff) {
        Some(effect) => run(tx, id, effect),
        None => look_at_document(tx, id),
    }
}

/// Reads the file.
pub(crate) fn look_at_document(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let (persona, file_name) = (handoff.persona_slug.clone(), handoff.file_name.clone());
    run(tx, id, Effect::ReadDocument { handoff_id: id, persona, file_name });
}

/// Commits the record, then goes on to end the agent: in one decision, so that nothing ends before the record is
/// durable.
pub(crate) fn record(tx: &mut Tx<'_>, id: HandoffId, text: String, sha256: String) {
    if tx.handoff(&id).is_some_and(|handoff| handoff.step != Step::Recording) {
        enter(tx, id, Step::Recording);
    }
    let stamp = tx.now.stamp();
    let Some(handoff) = tx.handoff(&id) else { return };
    let agent_id = handoff.agent_id;
    let injection_prompt = injection_prompt(tx, handoff, &text);
    let bytes = text.len() as u64;
    let warnings = document::missing_sections(handoff.author, &text);
    if let Some(handoff) = tx.handoff_mut(&id) {
        if let Some(ack) = handoff.ack.as_mut() {
            ack.checkpoint = document::checkpoint(&text);
        }
        handoff.record = Some(Record { bytes, sha256, injection_prompt, created_at: stamp.clone() });
        handoff.document = Some(DocumentSeen { bytes, at: stamp });
        handoff.warnings.extend(warnings);
        handoff.provided = None;
        handoff.last_text = None;
    }
    tx.out.documents.insert(id, Some(text));
    if let Some(agent) = tx.agent_mut(&agent_id) {
        agent.record_of = Some(id);
    }
    publish::begin(tx, id);
    work::carry::hold(tx, id);
    enter(tx, id, Step::Ending);
}

/// A better document has taken the place of the recorded one: from now on it is what a successor is briefed with.
pub(crate) fn renew_record(tx: &mut Tx<'_>, id: HandoffId, text: &str, sha256: String, created_at: String) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let injection_prompt = injection_prompt(tx, handoff, text);
    let bytes = text.len() as u64;
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.record = Some(Record { bytes, sha256, injection_prompt, created_at });
    }
    tx.out.documents.insert(id, Some(text.to_owned()));
}

/// What the successor is told. A new session in the same pane gets the whole document, as seed 3 has it.
fn injection_prompt(tx: &Tx<'_>, handoff: &Handoff, text: &str) -> String {
    let prompts = &tx.state.settings.prompts;
    let tasks = work::carry::tasks(tx, &handoff.agent_id, &handoff.tasks);
    if handoff.successor == Successor::SamePane {
        return prompts.context(text::sanitise(text).trim_end(), &tasks);
    }
    let cwd = tx.agent(&handoff.agent_id).and_then(|agent| agent.cwd.clone());
    let summary = document::first_paragraph(text);
    prompts.briefing(&prompts::Briefing {
        predecessor_id: &handoff.agent_id.to_string(),
        persona: handoff.persona_slug.as_str(),
        reason: &handoff.reason,
        file_path: &handoff.file_path,
        focus: handoff.focus.as_deref(),
        cwd: cwd.as_deref(),
        tasks: &tasks,
        summary: summary.as_deref(),
    })
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

/// Types the briefing. A document that was changed after the record is said to be so, in view and briefing; the address
/// under which it is published is named if it is known by now.
pub(crate) fn brief(tx: &mut Tx<'_>, id: HandoffId, unchanged: bool) {
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    let (Some(record), Some(successor_id)) = (&handoff.record, handoff.successor_id) else { return };
    let mut body = record.injection_prompt.clone();
    let sha256 = record.sha256.clone();
    let first_line = format!("Here is your handoff from agent {}.", handoff.agent_id.short());
    let (deadline, url) = (handoff.deadline, publish::url(handoff).map(str::to_owned));
    if !unchanged {
        let warning = "the document was changed after it was recorded".to_owned();
        if !handoff.warnings.contains(&warning) {
            handoff.warnings.push(warning);
        }
        body = format!("{body}\n\n{}", tx.state.settings.prompts.changed(&sha256));
    }
    if let Some(url) = url {
        body = format!("{body}\n\n{}", tx.state.settings.prompts.published(&url));
    }
    if let Some(how) = tx.handoff(&id).and_then(|handoff| ack::timeline::for_briefing(tx, handoff)) {
        body = format!("{body}\n\n{how}");
    }
    let text = typing::Text { first_line, body, allow_busy: false };
    typing::begin(tx, &successor_id, Purpose::Briefing(id), text, deadline);
}
