//! The only module that moves a handoff from step to step. It asks the present step what follows from an event, and
//! carries that out; a step never enters another step itself. The driver does not know what the steps do, with one
//! exception: it adds the record itself, in the step `recording`.

use super::ack::timeline;
use super::handler::StepHandler;
use super::next::{Entry, Next, StepFailure};
use super::steps;
use super::{agents, early, record};
use crate::contract::{JournalLine, LineType, maybe};
use crate::core::agent::{cli_limits, typing};
use crate::core::effect::{EffectKey, Outcome};
use crate::core::fact::Fact;
use crate::core::id::HandoffId;
use crate::core::pane::DeliveryVerdict;
use crate::core::reply::Refused;
use crate::core::request::Assume;
use crate::core::rows::agent::{AgentState, Purpose};
use crate::core::rows::handoff::{Handoff, HandoffError, ReadReason, Span, Stay, Step};
use crate::core::text::sentence;
use crate::core::time::Deadline;
use crate::core::tx::{Failure, Tx};

/// The most steps that may follow from one another in one decision; more are a bug.
const MOST: usize = 32;

/// Enters a step, and the steps that follow from it at once.
pub(crate) fn enter(tx: &mut Tx<'_>, id: HandoffId, step: Step) {
    proceed(tx, id, Next::Enter(step));
}

/// Fails the handoff at its present step.
pub(crate) fn fail(tx: &mut Tx<'_>, id: HandoffId, code: &str, message: impl Into<String>, hint: &str) {
    proceed(tx, id, Next::fail(code, message, hint));
}

/// Retries the step that has failed. `assume`: the operator's statement whether its text arrived.
pub(crate) fn retry(tx: &mut Tx<'_>, id: HandoffId, failed: Step, assume: Option<Assume>) {
    let next = steps::of(failed).retry(tx, id, assume);
    proceed(tx, id, next);
}

/// Whether this failure leaves it unknown whether the step's text arrived.
pub(crate) fn leaves_doubt(error: &HandoffError) -> bool {
    is_doubtful(error.step, &error.code)
}

/// Like [`leaves_doubt`], for the step and the code of a failure.
pub(crate) fn is_doubtful(step: Step, code: &str) -> bool {
    steps::of(step).leaves_doubt(code)
}

/// The outcome of the effect that this handoff waited for.
pub(crate) fn settled(tx: &mut Tx<'_>, id: HandoffId, key: EffectKey, outcome: Outcome) {
    if tx.handoff(&id).is_none_or(|handoff| handoff.stay.effect != Some(key)) {
        return;
    }
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.stay.effect = None;
    }
    ask_step(tx, id, |step, tx| step.settled(tx, id, outcome));
}

/// A state machine of one of the handoff's agents has learned a fact.
pub(crate) fn learned(tx: &mut Tx<'_>, id: HandoffId, fact: &Fact) {
    if let Fact::Verdict { purpose, verdict, .. } = fact
        && let Some(slot) = tx.handoff_mut(&id).and_then(|handoff| slot(handoff, purpose))
    {
        *slot = Some(verdict.clone());
    }
    if let Fact::SuccessorFailed { why, .. } = fact {
        early::failed(tx, id, why);
    }
    ask_step(tx, id, |step, tx| step.learned(tx, id, fact));
}

fn slot<'h>(handoff: &'h mut Handoff, purpose: &Purpose) -> Option<&'h mut Option<DeliveryVerdict>> {
    match purpose {
        Purpose::Instruction(_) => Some(&mut handoff.verdicts.instruction),
        Purpose::Rework(_) => Some(&mut handoff.verdicts.rework),
        Purpose::Priming(_) => Some(&mut handoff.verdicts.priming),
        Purpose::Briefing(_) => Some(&mut handoff.verdicts.briefing),
        Purpose::Exit(_)
        | Purpose::NewSession(_)
        | Purpose::Send(_)
        | Purpose::Message(..)
        | Purpose::Work(_)
        | Purpose::Resume => None,
    }
}

/// The successor has sent an ACK, well-formed or not, or the missing ACK was overridden.
pub(crate) fn successor_heard(tx: &mut Tx<'_>, id: HandoffId) {
    ask_step(tx, id, |step, tx| step.successor_heard(tx, id));
}

/// Lets the present step continue, if it can. Called at the end of a decision, for each handoff that the decision has
/// changed in itself or in one of its agents.
pub(crate) fn run_ready(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    if !handoff.stay.deferred {
        return ask_step(tx, id, |step, tx| step.run_ready(tx, id));
    }
    // The document is being read, perhaps because a person accepts it. No agent may be asked to change it now.
    if handoff.stay.reading.is_some() {
        return;
    }
    let agent = steps::of(handoff.step).types_to(handoff).and_then(|id| tx.agent(&id));
    if agent.is_some_and(|agent| agent.typing.is_none() && agent.state == AgentState::Idle) {
        if let Some(handoff) = tx.handoff_mut(&id) {
            handoff.stay.deferred = false;
        }
        ask_step(tx, id, |step, tx| step.type_deferred(tx, id));
    }
}

/// Handles the deadline of the present step and those of the acknowledgement, if they have passed. The step's deadline
/// is cleared first, so that it is handled only once.
pub(crate) fn due(tx: &mut Tx<'_>, id: HandoffId) {
    let now = tx.now;
    // `handoff_mut` would write the row again, and there may be many handoffs without a passed deadline.
    if tx.handoff(&id).and_then(|handoff| handoff.stay.deadline).is_some_and(|deadline| deadline.is_due(&now)) {
        if let Some(handoff) = tx.handoff_mut(&id) {
            handoff.stay.deadline = None;
        }
        ask_step(tx, id, |step, tx| step.due(tx, id));
    }
    let next = timeline::due(tx, id);
    proceed(tx, id, next);
}

/// Asks the present step what follows, and does it.
fn ask_step(tx: &mut Tx<'_>, id: HandoffId, what: impl FnOnce(&'static dyn StepHandler, &mut Tx<'_>) -> Next) {
    let Some(step) = tx.handoff(&id).map(|handoff| handoff.step) else { return };
    let next = what(steps::of(step), tx);
    proceed(tx, id, next);
}

/// Does what a step returned. If that enters another step, does what the other step returns, and so on.
pub(crate) fn proceed(tx: &mut Tx<'_>, id: HandoffId, mut next: Next) {
    for _ in 0..MOST {
        next = match next {
            Next::Stay => return,
            Next::Defer => return defer(tx, id),
            Next::Fail(failure) => return fail_step(tx, id, failure),
            Next::Enter(step) => entered(tx, id, step, None),
            Next::Retry(step) => entered(tx, id, step, Some(Entry::Retry)),
            Next::AssumeDelivered(step) => entered(tx, id, step, Some(Entry::AssumeDelivered)),
            Next::Record(whole) => {
                if tx.handoff(&id).is_some_and(|handoff| handoff.step != Step::Recording) {
                    entered(tx, id, Step::Recording, Some(Entry::ToRecord));
                }
                record::add_record(tx, id, whole);
                steps::of(Step::Recording).recorded()
            }
        };
    }
    panic!("the steps of handoff {id} follow from each other without an end");
}

/// Leaves the present step and enters another: sets the new deadline, writes the journal line, and calls the new step's
/// `begin`.
fn entered(tx: &mut Tx<'_>, id: HandoffId, step: Step, how: Option<Entry>) -> Next {
    leave(tx, id);
    let now = tx.now;
    let limit = steps::of(step).limit_ms(&tx.state.settings.limits);
    let Some(handoff) = tx.handoff_mut(&id) else { return Next::Stay };
    let from = std::mem::replace(&mut handoff.step, step);
    handoff.stay.deadline = limit.map(|limit| Deadline::after(&now, limit));
    handoff.steps.push(Span { step, entered_at: now.rfc3339(), left_at: None });
    let (agent_id, successor_id) = (handoff.agent_id, handoff.successor_id);
    tx.journal(JournalLine {
        successor_id: maybe(successor_id),
        step: Some(step.as_str().to_owned()),
        ..JournalLine::of_handoff(LineType::HandoffStep, &id, &agent_id)
    });
    steps::of(step).begin(tx, id, how.unwrap_or(Entry::From(from)))
}

/// Leaves the present step: ends its span, and cancels its effect and its texts in the same commit.
fn leave(tx: &mut Tx<'_>, id: HandoffId) {
    let timestamp = tx.now.rfc3339();
    let Some(step) = tx.handoff(&id).map(|handoff| handoff.step) else { return };
    steps::of(step).leave(tx, id);
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    if let Some(span) = handoff.steps.last_mut() {
        span.left_at.get_or_insert(timestamp);
    }
    let Stay { reading, effect, .. } = std::mem::take(&mut handoff.stay);
    let agents = [Some(handoff.agent_id), handoff.successor_id];
    if let Some(key) = effect {
        tx.drop_effect(key);
    }
    if let Some(ReadReason::Accepted(request)) = reading {
        let message = "The handoff moved on before the document was read";
        let hint = format!("see: tasuki handoffs show {}", id.short());
        tx.refuse(&request, Refused::new(409, "not_writing", message).hint(hint));
    }
    for agent_id in agents.into_iter().flatten() {
        typing::forget(tx, &agent_id, id);
    }
}

fn defer(tx: &mut Tx<'_>, id: HandoffId) {
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.stay.deferred = true;
    }
}

/// Fails the handoff at its present step: writes an error file and a journal line, and notifies by every channel. Keeps
/// document and record, and leaves the agents running, except a successor that was started early and to which nobody
/// has typed.
fn fail_step(tx: &mut Tx<'_>, id: HandoffId, failure: StepFailure) {
    let Some(handoff) = tx.handoff(&id) else { return };
    if handoff.step.is_end() {
        return;
    }
    let (step, agent_id) = (handoff.step, handoff.agent_id);
    let StepFailure { code, message, hint } = failure;
    let hint = sentence(&hint.replace("HANDOFF", &id.short()));
    leave(tx, id);
    let error_id = tx.notify_failure(Failure {
        code: code.clone(),
        message: message.clone(),
        hint: hint.clone(),
        handoff_id: Some(id),
        agent_id: Some(agent_id),
        step: Some(step.as_str().to_owned()),
    });
    let timestamp = tx.now.rfc3339();
    let line = JournalLine {
        step: Some(step.as_str().to_owned()),
        code: Some(code.clone()),
        message: Some(message.clone()),
        error_id: Some(error_id.to_string()),
        ..JournalLine::of_handoff(LineType::HandoffFailed, &id, &agent_id)
    };
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.step = Step::Failed;
        handoff.steps.push(Span { step: Step::Failed, entered_at: timestamp, left_at: None });
        handoff.error = Some(HandoffError { error_id, step, code, message, hint });
    }
    early::discard(tx, id);
    agents::release_agents(tx, id);
    agents::note_unbriefed(tx, id, step);
    if step.is_between_record_and_end() {
        agents::drop_placeholder(tx, id);
    }
    tx.journal(line);
    cli_limits::handoff_failed(tx, &agent_id);
}
