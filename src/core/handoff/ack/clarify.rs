//! Answers to a successor's questions, with or without an updated document.

use super::{content, messages, timeline};
use crate::contract::reply::HandoffReply;
use crate::core::effect::{Composed, DocumentRead, DocumentSource, Effect, EnvironmentSearch, Outcome};
use crate::core::event::RequestFacts;
use crate::core::handoff::next::DocumentText;
use crate::core::handoff::{document, examination, publish, record, row, successors};
use crate::core::id::{HandoffId, RequestId};
use crate::core::reply::{Refused, Reply};
use crate::core::request::{Clarification, ClarifyRequest};
use crate::core::rows::ack::{Ack, Clarifying, FormerDocument, Kind, Standing};
use crate::core::rows::handoff::{DocumentSeen, Handoff, Step};
use crate::core::text::{normalise, sha256};
use crate::core::tx::Tx;

/// The largest number of answers that are kept.
const MOST_ANSWERS: usize = 256;
/// How many times the document of one handoff may be replaced.
const MOST_DOCUMENTS: usize = 32;

/// Handles the answers of a checked request. If an updated document comes with them, tasuki writes that first;
/// otherwise it types the answers at once.
pub(super) fn begin(
    tx: &mut Tx<'_>,
    request: &RequestId,
    asked: ClarifyRequest,
    (id, document): (HandoffId, Option<String>),
    facts: &RequestFacts,
) {
    match document {
        None => {
            answer(tx, id, &asked.clarifications, false);
            tx.answer(request, granted(id, None));
        }
        Some(text) => write(tx, id, request, asked.clarifications, text, facts),
    }
}

fn granted(id: HandoffId, file_path: Option<String>) -> Reply {
    Reply::ok(&HandoffReply { file_path: Some(file_path), ..HandoffReply::new(&id, "clarified") })
}

/// Checks that the successor waits for an answer: it has questions, or the last answers have left some of them open, or
/// the step has failed although it waits for an answer. Returns the handoff's id and the updated document, if there is
/// one.
pub(super) fn check(
    tx: &Tx<'_>,
    asked: &ClarifyRequest,
    facts: &RequestFacts,
) -> Result<(HandoffId, Option<String>), Refused> {
    let handoff = row::find(tx, &asked.handoff_id)?;
    let is_late = waits_after_failure(handoff);
    if handoff.step.is_end() && !is_late {
        return Err(row::already_ended_refusal(handoff));
    }
    let ack = handoff.ack.as_ref().filter(|_| handoff.step == Step::Acknowledging || is_late);
    let asks = |ack: &&Ack| {
        // An answer that the successor has got already would be typed twice.
        let is_for_one_left = || ack.left_open().iter().any(|question| is_answered(question, &asked.clarifications));
        ack.standing == Standing::NeedsClarification || is_late || is_for_one_left()
    };
    let Some(ack) = ack.filter(asks) else {
        let message = match ack.is_some_and(|ack| !ack.left_open().is_empty()) {
            true => "None of the answers is for a question that is still open",
            false => "The successor has no open questions",
        };
        let hint = format!("see: tasuki handoffs show {}", handoff.handoff_id.short());
        return Err(Refused::new(409, "no_questions", message).hint(hint));
    };
    if ack.clarifying.is_some() || handoff.stay.effect.is_some() {
        return Err(Refused::new(409, "already_clarifying", "Other answers are already on their way to the successor"));
    }
    if asked.document.is_none() {
        return Ok((handoff.handoff_id, None));
    }
    if ack.former_documents.len() >= MOST_DOCUMENTS {
        return Err(Refused::new(
            409,
            "too_many",
            format!("The document was already replaced {MOST_DOCUMENTS} times; more is not allowed"),
        ));
    }
    match &facts.document {
        Some(Ok(text)) if !text.trim().is_empty() => Ok((handoff.handoff_id, Some(text.clone()))),
        Some(Ok(_)) => Err(Refused::bad("document", "is empty")),
        Some(Err(why)) => Err(Refused::bad("document", why)),
        None => Err(Refused::bad("document", "can't be read")),
    }
}

fn is_answered(question: &str, clarifications: &[Clarification]) -> bool {
    clarifications.iter().any(|given| normalise(&given.question) == normalise(question))
}

/// Whether the step has failed, and its successor waits for an answer all the same: it could not set up its
/// environment, or nobody has answered its questions in time.
pub(super) fn waits_after_failure(handoff: &Handoff) -> bool {
    let Some((error, ack)) = handoff.error.as_ref().zip(handoff.ack.as_ref()) else { return false };
    let has_asked = ack.received.as_ref().is_some_and(|received| received.standing() == Standing::NeedsClarification);
    let waits = match error.code.as_str() {
        "ack_rejected" => ack.standing == Standing::EnvironmentIssue,
        "ack_timeout" => ack.standing == Standing::TimedOut && has_asked,
        _ => false,
    };
    handoff.step == Step::Failed && waits
}

/// Writes the updated document beside the first one, under a new name. The answers are typed after that.
fn write(
    tx: &mut Tx<'_>,
    id: HandoffId,
    request: &RequestId,
    clarifications: Vec<Clarification>,
    text: String,
    facts: &RequestFacts,
) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let (agent_id, slug) = (handoff.agent_id, handoff.persona_slug.clone());
    let persona = facts.persona.as_ref().map(|(_, persona)| persona.clone()).unwrap_or_default();
    let mut taken = document::taken_names(tx, &agent_id, &slug, &persona);
    taken.extend(tx.handoff(&id).map(|handoff| handoff.file_name.clone()));
    let file_name = document::file_name(tx.now.wall_ms, &agent_id, &taken);
    document::reserve_name(tx, &agent_id, &file_name);
    let clarifying = Clarifying {
        request_id: request.clone(),
        clarifications,
        file_name: file_name.clone(),
        sha256: Some(sha256(text.as_bytes())),
        unchecked: false,
    };
    if let Some(ack) = tx.handoff_mut(&id).and_then(|handoff| handoff.ack.as_mut()) {
        ack.clarifying = Some(clarifying);
    }
    let source = DocumentSource::Text(text);
    row::run(tx, id, Effect::ComposeDocument { persona: slug, file_name, source, replaces: None });
}

/// The outcome of writing, reading or checking the updated document.
pub(crate) fn settled(tx: &mut Tx<'_>, id: HandoffId, outcome: Outcome) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let Some(clarifying) = handoff.ack.as_ref().and_then(|ack| ack.clarifying.clone()) else { return };
    if outcome == Outcome::Composed(Composed::Written) {
        read(tx, id, clarifying.file_name);
    } else if let Outcome::Document(DocumentRead::Whole { text, sha256 }) = outcome {
        // Another file may have been there under that name.
        if clarifying.sha256.as_ref().is_some_and(|given| *given != sha256) {
            refuse(tx, id, "the file does not hold the text that you gave");
        } else if clarifying.unchecked {
            if let Some(handoff) = tx.handoff_mut(&id) {
                handoff.examined.environment = EnvironmentSearch::NotDone;
            }
            let redacted = Some(examination::unsearched(&clarifying.file_name));
            take(tx, id, &clarifying, DocumentText { text, sha256, redacted });
        } else {
            if let Some(clarifying) = clarifying_mut(tx, id) {
                clarifying.sha256 = Some(sha256.clone());
            }
            examination::begin_update(tx, id, &clarifying.file_name, &sha256);
        }
    } else if let Outcome::Examined(examination) = outcome {
        // The file may have changed after it was read.
        if !matches!(&examination.document, DocumentRead::Whole { sha256, .. } if clarifying.sha256.as_ref() == Some(sha256))
        {
            return refuse(tx, id, "it has changed while it was read");
        }
        let Some(handoff) = tx.handoff_mut(&id) else { return };
        handoff.examined.environment = EnvironmentSearch::NotDone;
        let Some(whole) = examination::keep(handoff, *examination, &clarifying.file_name) else {
            return refuse(tx, id, "it has changed while it was read");
        };
        take(tx, id, &clarifying, whole);
    } else if let Outcome::Failed { why } = outcome {
        // Only an examination has this outcome, and tasuki does not refuse a document because of it.
        row::warn(tx, id, &format!("the updated document was not checked: {why}"));
        if let Some(clarifying) = clarifying_mut(tx, id) {
            clarifying.unchecked = true;
        }
        read(tx, id, clarifying.file_name);
    } else if let Outcome::Document(DocumentRead::Unsafe { why }) | Outcome::Composed(Composed::Failed { why }) =
        outcome
    {
        refuse(tx, id, &why);
    } else {
        refuse(tx, id, "it is missing or empty");
    }
}

fn clarifying_mut<'a>(tx: &'a mut Tx<'_>, id: HandoffId) -> Option<&'a mut Clarifying> {
    tx.handoff_mut(&id)?.ack.as_mut()?.clarifying.as_mut()
}

fn read(tx: &mut Tx<'_>, id: HandoffId, file_name: String) {
    let Some(persona) = tx.handoff(&id).map(|handoff| handoff.persona_slug.clone()) else { return };
    row::run(tx, id, Effect::ReadDocument { handoff_id: id, persona, file_name });
}

/// The updated document takes the place of the recorded one, and the answers are typed.
fn take(tx: &mut Tx<'_>, id: HandoffId, clarifying: &Clarifying, whole: DocumentText) {
    replace(tx, id, &clarifying.file_name, whole);
    answer(tx, id, &clarifying.clarifications, true);
    let path = tx.handoff(&id).map(|handoff| handoff.file_path.clone());
    tx.answer(&clarifying.request_id, granted(id, path));
    publish::begin(tx, id);
}

fn refuse(tx: &mut Tx<'_>, id: HandoffId, why: &str) {
    let clarifying = tx.handoff_mut(&id).and_then(|handoff| handoff.ack.as_mut()?.clarifying.take());
    let Some(clarifying) = clarifying else { return };
    let message = format!("tasuki can't accept the updated document: {why}");
    let hint = "nothing was typed, and the questions are still open; fix the cause, then clarify again";
    tx.refuse(&clarifying.request_id, Refused::new(409, "document_unsafe", message).hint(hint));
}

/// The handoff leaves the step: refuses a request whose document is still being written.
pub(crate) fn leave(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(ack) = tx.handoff_mut(&id).and_then(|handoff| handoff.ack.as_mut()) else { return };
    let Some(clarifying) = ack.clarifying.take() else { return };
    let message = "The handoff moved on before the updated document was written";
    tx.refuse(&clarifying.request_id, Refused::new(409, "no_questions", message));
}

/// Replaces the recorded document, its checkpoint and its entry in the successor's chain by those of the updated
/// document. The file of the former document is kept.
fn replace(tx: &mut Tx<'_>, id: HandoffId, file_name: &str, whole: DocumentText) {
    let timestamp = tx.now.rfc3339();
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    let Some(record) = handoff.record.clone() else { return };
    let folder = handoff.file_path.strip_suffix(&handoff.file_name).unwrap_or_default().to_owned();
    let former = FormerDocument {
        file_path: std::mem::replace(&mut handoff.file_path, format!("{folder}{file_name}")),
        bytes: record.bytes,
        sha256: record.sha256,
        recorded_at: record.created_at,
    };
    file_name.clone_into(&mut handoff.file_name);
    let bytes = whole.text.len() as u64;
    handoff.document = Some(DocumentSeen { bytes, at: timestamp.clone() });
    handoff.checkpoint = document::checkpoint(whole.redacted.as_deref().unwrap_or(&whole.text));
    if let Some(ack) = handoff.ack.as_mut() {
        ack.former_documents.push(former);
        ack.checkpoint.clone_from(&handoff.checkpoint);
    }
    record::renew(tx, id, whole, timestamp);
    successors::extend_chain(tx, id);
}

/// Types the answers, and gives the successor the whole time T again.
fn answer(tx: &mut Tx<'_>, id: HandoffId, clarifications: &[Clarification], is_updated: bool) {
    let Some(ack) = tx.handoff_mut(&id).and_then(|handoff| handoff.ack.as_mut()) else { return };
    ack.clarifying = None;
    ack.set_aside();
    ack.unanswered.retain(|question| !is_answered(question, clarifications));
    ack.answers.extend(clarifications.iter().cloned());
    let from = ack.answers.len().saturating_sub(MOST_ANSWERS);
    ack.answers.drain(..from);
    timeline::start_timer(tx, id, Standing::Pending);
    timeline::journal(tx, id, "clarify");
    let Some(handoff) = tx.handoff(&id) else { return };
    let json = content::clarification(handoff, clarifications, is_updated);
    let mut text = timeline::with_instructions(tx, handoff, &json);
    if is_updated {
        text = format!("Read the document again, it was brought up to date: `{}`\n\n{text}", handoff.file_path);
    }
    messages::to_successor(tx, id, Kind::Clarification, json, text);
}
