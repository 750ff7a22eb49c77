//! What effects, receipts, agents and time bring to a handoff, step by step.

use super::{ack, authors, end, ending, flow, reading};
use crate::core::effect::{DocumentRead, Outcome};
use crate::core::hook::{HookEvent, HookKind};
use crate::core::id::HandoffId;
use crate::core::pane::{DeliveryVerdict, Refusal};
use crate::core::reply::{Refused, Reply};
use crate::core::request::{Author, Successor};
use crate::core::rows::agent::{AgentState, Purpose};
use crate::core::rows::handoff::{DocumentSeen, Reading, Step};
use crate::core::time::Deadline;
use crate::core::tx::Tx;
use crate::core::typing::Ended;
use crate::core::work;
use serde_json::json;

pub(super) const ANOTHER: &str = "document and record are kept; a retry starts another successor: tasuki retry HANDOFF";
const LOOK: &str = "look at the agent's pane, then: tasuki retry HANDOFF";

/// The effect that this handoff waited for has ended.
pub(crate) fn settled(tx: &mut Tx<'_>, id: HandoffId, outcome: Outcome) {
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    handoff.effect = None;
    let step = handoff.step;
    match (step, outcome) {
        (Step::Acknowledging, outcome) => ack::clarify::settled(tx, id, outcome),
        (_, Outcome::Document(read)) => document(tx, id, read),
        (_, Outcome::Composed(composed)) => authors::composed(tx, id, composed),
        (Step::Instructing, Outcome::Done) => flow::instruct(tx, id),
        (Step::Instructing, Outcome::Failed { why }) => {
            let message = format!("The handoff folder could not be made: {why}");
            end::fail(tx, id, "not_delivered", message, "mend the folder, then retry; nothing was typed");
        }
        (Step::Ending, Outcome::Place(place)) => {
            if let Some(handoff) = tx.handoff_mut(&id) {
                handoff.place = place;
            }
            ending::type_exit(tx, id);
        }
        (Step::Ending, Outcome::Failed { .. }) => ending::type_exit(tx, id),
        (Step::Ending, Outcome::Done) => lost_agent_is_dead(tx, id),
        (Step::Briefing, Outcome::Compared(unchanged)) => flow::brief(tx, id, unchanged),
        (Step::Briefing, Outcome::Failed { why }) => {
            // Whether it is the recorded one is not known, and the briefing may say neither.
            let message = format!("The document can't be compared with its record: {why}");
            end::fail(tx, id, "not_delivered", message, "mend that, then: tasuki retry HANDOFF; nothing was typed");
        }
        // Every other pair is an answer to a question that this step did not ask.
        (_, _) => {}
    }
}

/// The process of an agent whose pane was gone is dead: it has ended after all.
fn lost_agent_is_dead(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(agent_id) = tx.handoff(&id).map(|handoff| handoff.agent_id) else { return };
    tx.set_state(&agent_id, AgentState::Ended);
    flow::enter(tx, id, Step::Starting);
}

/// The document was read.
pub(super) fn document(tx: &mut Tx<'_>, id: HandoffId, read: DocumentRead) {
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    let Some(reading) = handoff.reading.take() else { return };
    let stopped = std::mem::take(&mut handoff.stopped_meanwhile);
    let problem = match read {
        DocumentRead::Whole { text, sha256 } => return document_is_there(tx, id, &reading, text, sha256),
        DocumentRead::Missing => "document_missing",
        DocumentRead::Empty => "document_empty",
        DocumentRead::Unsafe { why } => return document_unsafe(tx, id, &reading, &why, stopped),
    };
    match reading {
        Reading::AtStop | Reading::Retry { instruct_anew: false } => authors::no_document(tx, id, problem),
        Reading::Retry { instruct_anew: true } => instruct_anew(tx, id),
        Reading::Accepted(request) => {
            refuse_accept(tx, &request, problem, "There is no document to accept");
            if stopped {
                authors::no_document(tx, id, problem);
            }
        }
    }
}

fn document_unsafe(tx: &mut Tx<'_>, id: HandoffId, reading: &Reading, why: &str, stopped: bool) {
    if let Reading::Accepted(request) = reading {
        refuse_accept(tx, request, "document_unsafe", why);
        if !stopped {
            return;
        }
    }
    let Some(handoff) = tx.handoff(&id) else { return };
    let message = format!("The document can't be taken: {why}: {}", handoff.file_path);
    end::fail(tx, id, "document_unsafe", message, "put a regular UTF-8 file in its place, then retry");
}

fn refuse_accept(tx: &mut Tx<'_>, request: &crate::core::id::RequestId, code: &str, message: &str) {
    let hint = "the handoff was left as it was; write the document, then accept again";
    tx.refuse(request, Refused::new(409, code, message).hint(hint));
}

/// A retry has found no document: the same path is asked for again, if there is an agent to ask.
fn instruct_anew(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    match tx.agent(&handoff.agent_id).map(|agent| agent.state) {
        Some(state) if state.is_live() => flow::enter(tx, id, Step::Waiting),
        _ => ending::agent_has_ended(tx, id),
    }
}

fn document_is_there(tx: &mut Tx<'_>, id: HandoffId, reading: &Reading, text: String, sha256: String) {
    let provided = tx.handoff(&id).and_then(|handoff| handoff.provided.as_ref());
    if matches!(reading, Reading::AtStop) && provided.is_some_and(|provided| *provided != text) {
        return another_document(tx, id);
    }
    if let Reading::Accepted(request) = reading {
        if let Err(refused) = super::ask::take_up(tx, id) {
            return tx.refuse(request, refused);
        }
        tx.answer(request, Reply::Ok(json!({ "status": "accepted", "handoff_id": id })));
    }
    flow::record(tx, id, text, sha256);
}

/// What lies there is not what was provided. A retry takes it all the same: a person has looked by then.
fn another_document(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let message = format!("The file holds another text than the provided one: {}", handoff.file_path);
    let hint = "nothing was recorded; put the right text in its place, then retry: it is taken as it stands";
    end::fail(tx, id, "document_unsafe", message, hint);
}

/// A text of this handoff has its verdict.
pub(crate) fn verdict(tx: &mut Tx<'_>, id: HandoffId, purpose: &Purpose, verdict: DeliveryVerdict, ended: &Ended) {
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    let slot = match purpose {
        Purpose::Instruction(_) => &mut handoff.verdicts.instruction,
        Purpose::Priming(_) => &mut handoff.verdicts.priming,
        Purpose::Briefing(_) => &mut handoff.verdicts.briefing,
        Purpose::Exit(_) | Purpose::NewSession(_) => return command_refused(tx, id, purpose, ended),
        Purpose::Send(_) | Purpose::Message(..) | Purpose::Work(_) => return,
    };
    *slot = Some(verdict);
    match ended {
        Ended::Delivered(remark) => {
            if let Some(remark) = remark {
                handoff.warnings.push(format!("{}: {remark}", purpose.word()));
            }
            match purpose {
                Purpose::Instruction(_) => flow::enter(tx, id, Step::Writing),
                Purpose::Briefing(_) => flow::enter(tx, id, Step::Reading),
                // The turn that answers the priming ends its step; the others have no step of their own.
                Purpose::Priming(_)
                | Purpose::Send(_)
                | Purpose::Work(_)
                | Purpose::Exit(_)
                | Purpose::NewSession(_)
                | Purpose::Message(..) => {}
            }
        }
        Ended::Unconfirmed(reason) => unconfirmed(tx, id, purpose, reason),
        Ended::Refused(Refusal::Busy) if matches!(purpose, Purpose::Instruction(_)) => wait_again(tx, id),
        Ended::Refused(Refusal::Busy) => put_off_busy(tx, id),
        Ended::Refused(reason) => not_delivered(tx, id, purpose, *reason),
    }
}

fn unconfirmed(tx: &mut Tx<'_>, id: HandoffId, purpose: &Purpose, reason: &str) {
    let message = format!("It is not known whether the {} arrived ({reason})", purpose.word());
    let hint = "look at the agent's pane, then: tasuki retry HANDOFF --assume delivered|not-delivered";
    end::fail(tx, id, "unconfirmed", message, hint);
}

fn not_delivered(tx: &mut Tx<'_>, id: HandoffId, purpose: &Purpose, reason: Refusal) {
    let code = match reason {
        Refusal::PaneGone => "pane_gone",
        Refusal::AgentEnded => "agent_ended",
        Refusal::PaneChanged
        | Refusal::PaneDead
        | Refusal::PaneClaimed
        | Refusal::BareShell
        | Refusal::Dialog
        | Refusal::Draft
        | Refusal::Busy
        | Refusal::NotReady
        | Refusal::InputOff
        | Refusal::CopyMode
        | Refusal::CookedMode
        | Refusal::NoTmux
        | Refusal::HooksUnseen
        | Refusal::BadText
        | Refusal::TextFile => "not_delivered",
    };
    let message = format!("The {} was not typed: {}", purpose.word(), crate::core::typing::word(&reason));
    // What helps with the agent that writes the document is wrong for the one that takes it over.
    let is_gone = matches!(reason, Refusal::PaneGone | Refusal::PaneDead | Refusal::AgentEnded);
    let hint = if is_gone && !matches!(purpose, Purpose::Instruction(_)) { ANOTHER } else { reason.hint() };
    end::fail(tx, id, code, message, hint);
}

/// The screen showed a turn that no event had told of: nothing was typed, so waiting is all that it takes.
fn wait_again(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(agent_id) = tx.handoff(&id).map(|handoff| handoff.agent_id) else { return };
    tx.set_state(&agent_id, AgentState::Busy);
    flow::enter(tx, id, Step::Waiting);
}

/// The successor's screen showed a turn: its text is typed when that has ended.
fn put_off_busy(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(successor_id) = tx.handoff(&id).and_then(|handoff| handoff.successor_id) else { return };
    tx.set_state(&successor_id, AgentState::Busy);
    flow::put_off(tx, id);
}

fn command_refused(tx: &mut Tx<'_>, id: HandoffId, purpose: &Purpose, ended: &Ended) {
    let Ended::Refused(reason) = ended else { return };
    let Some(handoff) = tx.handoff(&id) else { return };
    let agent_id = handoff.agent_id;
    if *reason == Refusal::Busy {
        tx.set_state(&agent_id, AgentState::Busy);
        return flow::put_off(tx, id);
    }
    if matches!(reason, Refusal::PaneGone | Refusal::PaneDead | Refusal::PaneChanged | Refusal::AgentEnded) {
        return; // The end of the process, or the limit, decides.
    }
    let what = if matches!(purpose, Purpose::Exit(_)) { "exit command" } else { "command for a new session" };
    let message = format!("The {what} was not typed: {}", crate::core::typing::word(reason));
    end::fail(tx, id, "did_not_exit", message, reason.hint());
}

/// Our instruction's turn has ended, one way or another.
pub(crate) fn turn_ended(tx: &mut Tx<'_>, id: HandoffId, event: &HookEvent) {
    let Some(handoff) = tx.handoff(&id) else { return };
    if handoff.step != Step::Writing {
        return;
    }
    let is_answer = handoff.author == Author::AgentReply;
    if is_answer && let Some(handoff) = tx.handoff_mut(&id) {
        handoff.last_text.clone_from(&event.last_text);
    }
    let Some(handoff) = tx.handoff(&id) else { return };
    if handoff.reading.is_some() {
        if let Some(handoff) = tx.handoff_mut(&id) {
            handoff.stopped_meanwhile = true;
        }
        return;
    }
    let said = event.message.as_ref().map_or_else(String::new, |message| format!(": {message}"));
    match event.kind {
        HookKind::StopFailure => {
            let text = format!("The agent's turn ended in an error{said}");
            end::fail(tx, id, "agent_failed", text, LOOK);
        }
        HookKind::Interrupted => {
            end::fail(tx, id, "agent_failed", "The agent's turn was interrupted", LOOK);
        }
        HookKind::SessionStart
        | HookKind::PromptSubmit
        | HookKind::Stop
        | HookKind::Blocked
        | HookKind::Notification
        | HookKind::Context
        | HookKind::SessionEnd => flow::read_document(tx, id, Reading::AtStop),
    }
}

/// Our instruction's turn has ended without an event: the document must be there all the same.
pub(crate) fn turn_inferred(tx: &mut Tx<'_>, id: HandoffId) {
    let is_writing = tx.handoff(&id).is_some_and(|handoff| handoff.step == Step::Writing && handoff.reading.is_none());
    if is_writing {
        warn(tx, id, "stop_inferred");
        flow::read_document(tx, id, Reading::AtStop);
    }
}

/// Notes what is not as it should be and stops nothing, once.
pub(crate) fn warn(tx: &mut Tx<'_>, id: HandoffId, warning: &str) {
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    if !handoff.warnings.iter().any(|known| known == warning) {
        handoff.warnings.push(warning.to_owned());
    }
}

/// The successor's priming is over: it arrived and its turn ended well, or not.
pub(crate) fn primed(tx: &mut Tx<'_>, id: HandoffId, problem: Option<&str>) {
    let Some(handoff) = tx.handoff(&id) else { return };
    if handoff.step != Step::Priming {
        return;
    }
    match problem {
        None => flow::enter(tx, id, Step::Briefing),
        Some(why) => {
            let hint = "look at the successor's pane, then: tasuki retry HANDOFF --assume delivered|not-delivered";
            end::fail(tx, id, "priming_failed", why, hint);
        }
    }
}

/// The successor registered and is ready.
pub(crate) fn successor_ready(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    if handoff.step == Step::Starting {
        end::drop_place(tx, id);
        work::carry::give(tx, id);
        flow::enter(tx, id, Step::Priming);
    }
}

/// The successor did not come to life.
pub(crate) fn successor_failed(tx: &mut Tx<'_>, id: HandoffId, code: &str, why: &str) {
    let Some(handoff) = tx.handoff(&id) else { return };
    if handoff.step == Step::Starting {
        let hint = match &handoff.successor {
            // Somebody else's agent is not started anew.
            Successor::Existing { .. } => {
                "document and record are kept; choose another: tasuki retry HANDOFF --successor new"
            }
            Successor::New | Successor::SamePane => {
                "document and record are kept; mend the cause, then: tasuki retry HANDOFF"
            }
        };
        end::fail(tx, id, code, why, hint);
    }
}

/// The step's time is up. Whatever is done here ends the deadline, so that it is never due twice.
pub(crate) fn deadline(tx: &mut Tx<'_>, id: HandoffId) {
    let now = tx.now;
    // A row that is not touched need not be written: there may be very many, and of one only is anything due.
    if !tx.handoff(&id).and_then(|handoff| handoff.deadline).is_some_and(|deadline| deadline.is_due(&now)) {
        return;
    }
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    handoff.deadline = None;
    let (step, is_reading) = (handoff.step, handoff.reading.is_some());
    let retry = "look at the agent's pane, then retry";
    match step {
        Step::Waiting => {
            end::fail(tx, id, "agent_busy", "The agent was busy all the time", "retry, or ask with now");
        }
        Step::Instructing => end::fail(tx, id, "not_delivered", "The instruction was not typed in time", retry),
        // The document is being read: that has its own limit, and its outcome decides.
        Step::Writing if is_reading => extend(tx, id),
        Step::Writing => {
            let hint = "if the document is good: tasuki accept HANDOFF; else retry";
            end::fail(tx, id, "stop_never_came", "The agent did not end its turn in time", hint);
        }
        Step::Ending => did_not_exit(tx, id),
        Step::Starting => successor_failed(tx, id, "successor_failed", "The successor was not ready in time"),
        Step::Priming => primed(tx, id, Some("The successor did not answer its priming in time")),
        Step::Briefing => end::fail(tx, id, "not_delivered", "The briefing was not typed in time", retry),
        Step::Reading => reading::late(tx, id),
        Step::Recording | Step::Acknowledging | Step::Done | Step::Failed | Step::Cancelled => {}
    }
}

fn extend(tx: &mut Tx<'_>, id: HandoffId) {
    let deadline = Deadline::after(&tx.now, 30_000);
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.deadline = Some(deadline);
    }
}

fn did_not_exit(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    if handoff.successor == Successor::SamePane {
        let message = "The agent did not begin a new session after its command for that";
        let hint = "look at the agent's pane, then: tasuki retry HANDOFF, or with --successor new";
        return end::fail(tx, id, "did_not_exit", message, hint);
    }
    let process = tx.agent(&handoff.agent_id).and_then(|agent| agent.process);
    let pid = process.map_or_else(String::new, |process| format!(" (process {})", process.pid));
    let message = format!("The agent did not end after its exit command{pid}");
    end::fail(tx, id, "did_not_exit", message, "end it yourself, then retry: the record is kept");
}

/// The awaited document has another size.
pub(crate) fn document_grew(tx: &mut Tx<'_>, id: HandoffId, bytes: u64) {
    let at = tx.now.stamp();
    let Some(handoff) = tx.handoff(&id) else { return };
    let is_news = handoff.document.as_ref().is_none_or(|seen| seen.bytes != bytes);
    if handoff.step != Step::Writing || !is_news {
        return;
    }
    let agent_id = handoff.agent_id;
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.document = Some(DocumentSeen { bytes, at });
    }
    let line = json!({ "handoff_id": id, "agent_id": agent_id, "step": Step::Writing.word(), "document_bytes": bytes });
    tx.journal("handoff.step", line);
}
