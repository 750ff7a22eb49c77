//! Reads the document, and returns to the step what follows. Unless the agent writes the file itself (author
//! `agent_file`), tasuki writes the document first.

use super::next::{DocumentText, Next};
use super::{agents, authors, examination, row};
use crate::contract::reply::HandoffReply;
use crate::core::effect::{Composed, DocumentRead, DocumentSource, Effect, EnvironmentSearch, Outcome, Readiness};
use crate::core::id::{HandoffId, RequestId};
use crate::core::reply::{Refused, Reply};
use crate::core::request::Author;
use crate::core::rows::agent::{AgentState, OurTurn, Purpose};
use crate::core::rows::examined::FormerDocument;
use crate::core::rows::handoff::{CheckPhase, Handoff, ReadReason, Step};
use crate::core::tx::Tx;

/// Begins to read the document. Cancels the step's running effect, such as an earlier reading.
pub(crate) fn begin(tx: &mut Tx<'_>, id: HandoffId, reading: ReadReason) {
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    handoff.stay.reading = Some(reading);
    row::stop(tx, id);
    let Some(handoff) = tx.handoff(&id) else { return };
    match authors::composition(tx, handoff) {
        Some(effect) => row::run(tx, id, effect),
        None => read_file(tx, id),
    }
}

fn read_file(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let (persona, file_name) = (handoff.persona_slug.clone(), handoff.file_name.clone());
    row::run(tx, id, Effect::ReadDocument { handoff_id: id, persona, file_name });
}

/// The outcome of writing, reading or examining the document. `examined` is called after a successful examination, when
/// the facts and faults are in the row, and returns what follows.
pub(crate) fn settled(
    tx: &mut Tx<'_>,
    id: HandoffId,
    outcome: Outcome,
    examined: impl FnOnce(&mut Tx<'_>, HandoffId, DocumentText) -> Next,
) -> Next {
    if let Outcome::Document(read) = outcome {
        after_reading(tx, id, read)
    } else if let Outcome::Composed(composed) = outcome {
        after_writing(tx, id, composed)
    } else if let Outcome::Examined(examination) = outcome {
        if let Some(whole) = examination::settled(tx, id, *examination) {
            return examined(tx, id, whole);
        }
        begin(tx, id, ReadReason::InFlow);
        Next::Stay
    } else if let Outcome::Readiness(seen) = outcome {
        turn_looked_at(tx, id, &seen);
        Next::Stay
    } else if let Outcome::Failed { why } = outcome {
        // Only an examination has this outcome. The handoff does not fail: the document is recorded, but no view and no
        // briefing shows its text.
        row::warn(tx, id, &not_checked(&why));
        begin(tx, id, ReadReason::Unexamined);
        Next::Stay
    } else {
        Next::Stay
    }
}

/// The warning about a document that could not be examined.
pub(crate) fn not_checked(why: &str) -> String {
    format!("the document was not checked: {why}")
}

fn after_writing(tx: &mut Tx<'_>, id: HandoffId, composed: Composed) -> Next {
    let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
    match composed {
        Composed::Written => {
            if handoff.author == Author::Salvage {
                let path = tx.agent(&handoff.agent_id).and_then(|agent| agent.transcript_path.clone());
                let path = path.unwrap_or_else(|| "that its hooks named".to_owned());
                row::warn(tx, id, &format!("salvaged: tasuki wrote the document from the transcript {path}"));
            }
            read_file(tx, id);
            Next::Stay
        }
        Composed::Nothing => after_reading(tx, id, DocumentRead::Empty),
        Composed::Failed { why } => after_reading(tx, id, DocumentRead::Unsafe { why }),
    }
}

fn after_reading(tx: &mut Tx<'_>, id: HandoffId, read: DocumentRead) -> Next {
    let Some(handoff) = tx.handoff_mut(&id) else { return Next::Stay };
    let Some(reading) = handoff.stay.reading.take() else { return Next::Stay };
    let stopped = std::mem::take(&mut handoff.stay.stopped_meanwhile);
    let problem = match read {
        DocumentRead::Whole { text, sha256 } => {
            return document_read(tx, id, &reading, DocumentText { text, sha256, redacted: None });
        }
        DocumentRead::Missing => "document_missing",
        DocumentRead::Empty => "document_empty",
        DocumentRead::Unsafe { why } => return refuse(tx, id, &reading, &why, stopped),
    };
    if restore(tx, id, &reading, problem) || (reading == ReadReason::InFlow && look_at_turn(tx, id)) {
        return Next::Stay;
    }
    match reading {
        ReadReason::InFlow | ReadReason::Unexamined | ReadReason::Retry { instruct_again: false } => {
            authors::no_document(tx, id, problem)
        }
        ReadReason::Retry { instruct_again: true } => instruct_again(tx, id),
        ReadReason::Accepted(request) => {
            refuse_accept(tx, id, &request, problem, "There is no document to accept");
            if stopped { authors::no_document(tx, id, problem) } else { as_before(tx, id) }
        }
    }
}

/// The instructed agent has left no document, but its turn may still run: a Stop hook of the user's own can let it
/// continue, and tasuki's hook reports a Stop before that. Begins a look at the screen. Returns false if a look has
/// shown already that the turn is over, or there is no screen to look at.
fn look_at_turn(tx: &mut Tx<'_>, id: HandoffId) -> bool {
    let is_to_write = |handoff: &&Handoff| {
        handoff.step == Step::Writing && !handoff.stay.turn_seen_over && !authors::needs_no_agent(handoff.author)
    };
    let author = tx.handoff(&id).filter(is_to_write).and_then(|handoff| tx.agent(&handoff.agent_id));
    let Some(agent) = author.filter(|agent| agent.is_alive()) else { return false };
    let Some(pane) = agent.pane else { return false };
    let profile = agent.profile.clone();
    row::run(tx, id, Effect::LookAtTurn { pane, profile });
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.stay.reading = Some(ReadReason::InFlow);
    }
    true
}

/// What that look has shown. If a turn runs, or waits at a dialog, the document is read after its end. Otherwise it is
/// read once more, because it may have been written meanwhile.
fn turn_looked_at(tx: &mut Tx<'_>, id: HandoffId, seen: &Readiness) {
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    let is_running = matches!(seen, Readiness::AtWork { .. } | Readiness::Blocked { .. });
    if !is_running {
        handoff.stay.turn_seen_over = true;
        return begin(tx, id, ReadReason::InFlow);
    }
    handoff.stay.reading = None;
    let agent_id = handoff.agent_id;
    if let Some(agent) = tx.agent_mut(&agent_id) {
        agent.our_turn = Some(OurTurn::of(Purpose::Instruction(id)));
    }
    tx.set_state(&agent_id, AgentState::Busy);
}

/// The agent was asked to repair its document and left none: writes the text that was read last back to the file, and
/// then reads it with the same `reading`. Returns false if the agent was not asked, or no such text is kept.
fn restore(tx: &mut Tx<'_>, id: HandoffId, reading: &ReadReason, problem: &str) -> bool {
    let Some(handoff) = tx.handoff_mut(&id).filter(|handoff| handoff.examined.reworks > 0) else { return false };
    let Some(text) = handoff.examined.last_read_text.take() else { return false };
    handoff.stay.reading = Some(reading.clone());
    let (persona, file_name) = (handoff.persona_slug.clone(), handoff.file_name.clone());
    let source = DocumentSource::Before(text);
    row::warn(
        tx,
        id,
        &format!("asked to repair its document, the agent left none ({problem}); tasuki kept the one before"),
    );
    row::run(tx, id, Effect::ComposeDocument { persona, file_name, source, replaces: None });
    true
}

/// The repaired document has more faults that matter than the one that the agent was asked to repair, such as one line
/// on what it has repaired: writes the former text back, and reads it. Returns false if it is not worse, or a person
/// has asked for it or accepted it.
pub(crate) fn restore_better(tx: &mut Tx<'_>, id: HandoffId) -> bool {
    let Some(handoff) = tx.handoff_mut(&id) else { return false };
    let examined = &mut handoff.examined;
    let faults = examined.repairable();
    let is_worse = |former: &FormerDocument| !former.by_person && !examined.accepted && faults > former.faults;
    let Some(former) = examined.former.take().filter(is_worse) else { return false };
    let before = former.faults;
    put_back(
        tx,
        id,
        former,
        &format!("asked to repair its document, the agent left one with {faults} faults in place of {before}"),
    );
    true
}

/// A person has accepted the document while the agent is still in the turn in which it repairs it, and what it has
/// written so far has more faults than what was there before: half a document is not one. Writes the former text back,
/// and reads it. Returns false if the turn is over or the document is not worse.
pub(crate) fn restore_finished(tx: &mut Tx<'_>, id: HandoffId) -> bool {
    let Some(handoff) = tx.handoff(&id) else { return false };
    let is_in_turn = tx.agent(&handoff.agent_id).is_some_and(|agent| agent.state.is_in_a_turn());
    let faults = handoff.examined.repairable();
    let is_worse = |former: &&FormerDocument| is_in_turn && handoff.examined.accepted && faults > former.faults;
    let Some(former) = handoff.examined.former.as_ref().filter(is_worse).cloned() else { return false };
    put_back(tx, id, former, "the agent was still repairing its document when it was accepted");
    true
}

fn put_back(tx: &mut Tx<'_>, id: HandoffId, former: FormerDocument, why: &str) {
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    let (persona, file_name) = (handoff.persona_slug.clone(), handoff.file_name.clone());
    let (source, replaces) = (DocumentSource::Text(former.text), handoff.examined.sha256.clone());
    if handoff.examined.accepted {
        // The text is another one, but it is the one that was accepted.
        handoff.examined.sha256 = former.sha256;
    }
    handoff.stay.reading = Some(ReadReason::InFlow);
    row::warn(tx, id, &format!("{why}; tasuki kept the one before"));
    row::run(tx, id, Effect::ComposeDocument { persona, file_name, source, replaces });
}

fn refuse(tx: &mut Tx<'_>, id: HandoffId, reading: &ReadReason, why: &str, stopped: bool) -> Next {
    if let ReadReason::Accepted(request) = reading {
        refuse_accept(tx, id, request, "document_unsafe", why);
        if !stopped {
            return as_before(tx, id);
        }
    }
    let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
    let message = format!("tasuki can't accept the document: {why}: {}", handoff.file_path);
    Next::fail("document_unsafe", message, "put a regular UTF-8 file of at most 1 MiB in its place, then retry")
}

/// An accept was refused, and the handoff continues as it was. An examination that the accept has cut off begins again.
fn as_before(tx: &mut Tx<'_>, id: HandoffId) -> Next {
    if tx.handoff(&id).is_some_and(|handoff| handoff.stay.checking == Some(CheckPhase::Examining)) {
        begin(tx, id, ReadReason::InFlow);
    }
    Next::Stay
}

/// Refuses an accept. If the handoff had failed, its agents are released again.
fn refuse_accept(tx: &mut Tx<'_>, id: HandoffId, request: &RequestId, code: &str, message: &str) {
    if tx.handoff(&id).is_some_and(|handoff| handoff.step == Step::Failed) {
        agents::release_agents(tx, id);
    }
    let hint = "the handoff was left as it was; write the document, then accept again";
    tx.refuse(request, Refused::new(409, code, message).hint(hint));
}

/// A retry has found no document: instructs the agent again, if it lives.
fn instruct_again(tx: &Tx<'_>, id: HandoffId) -> Next {
    let agent = tx.handoff(&id).and_then(|handoff| tx.agent(&handoff.agent_id));
    if agent.is_some_and(|agent| agent.state.is_live()) {
        Next::Enter(Step::Waiting)
    } else {
        authors::author_ended(tx, id)
    }
}

/// There is a whole document: what follows depends on why it was read.
fn document_read(tx: &mut Tx<'_>, id: HandoffId, reading: &ReadReason, whole: DocumentText) -> Next {
    let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
    let is_other = handoff.provided.as_ref().is_some_and(|provided| *provided != whole.text);
    if is_other && matches!(reading, ReadReason::InFlow) {
        // A retry accepts the file as it is, because the operator has seen this message.
        let message = format!("The file does not hold the text that was provided: {}", handoff.file_path);
        let hint =
            "nothing was recorded; put the right text into the file, then retry: the retry accepts the file as it is";
        return Next::fail("document_unsafe", message, hint);
    }
    if let ReadReason::Accepted(request) = reading {
        if let Err(refused) = agents::bind_agents_and_clear_error(tx, id) {
            tx.refuse(request, refused);
            return Next::Stay;
        }
        tx.answer(request, Reply::ok(&HandoffReply::new(&id, "accepted")));
    }
    let Some(handoff) = tx.handoff_mut(&id) else { return Next::Stay };
    if handoff.examined.sha256.as_ref() != Some(&whole.sha256) {
        handoff.examined.environment = EnvironmentSearch::NotDone;
        // An earlier accept was for another text.
        handoff.examined.accepted = false;
    }
    handoff.examined.sha256 = Some(whole.sha256.clone());
    handoff.examined.last_read_text = Some(whole.text.clone());
    handoff.examined.accepted |= matches!(reading, ReadReason::Accepted(_));
    let step = handoff.step;
    if matches!(reading, ReadReason::Unexamined) {
        // Somebody has saved another text than the one that a person has accepted.
        if step == Step::Recording && examination::needs_person_unexamined(handoff) {
            return Next::Enter(Step::Checking);
        }
        let redacted = Some(examination::unsearched(&handoff.file_path));
        return Next::Record(DocumentText { redacted, ..whole });
    }
    let next = if examination::goes_to_checking(handoff) { Step::Checking } else { Step::Recording };
    if step == next {
        examination::begin(tx, id);
        return Next::Stay;
    }
    Next::Enter(next)
}
