//! Checks the document against the facts that tasuki collected. If it has faults, the agent is asked once to repair it,
//! or the handoff waits for a person. Faults that remain become warnings: a check that throws work away would be worse
//! than no check.

use super::author_turn;
use super::verdict::HINT_DOUBT;
use crate::contract::document::DocumentCheck;
use crate::contract::{JournalLine, LineType, NoticeCode};
use crate::core::agent::typing;
use crate::core::effect::Outcome;
use crate::core::fact::{DeliveryResult, Fact};
use crate::core::handoff::handler::{StepHandler, ended_agent};
use crate::core::handoff::next::{DocumentText, Entry, Next};
use crate::core::handoff::{authors, early, examination, reader, row};
use crate::core::hook::HookEvent;
use crate::core::id::{AgentId, HandoffId};
use crate::core::notice::OperatorNotice;
use crate::core::pane::Refusal;
use crate::core::prompts::Rework;
use crate::core::request::{Assume, Author};
use crate::core::rows::agent::{AgentState, OurTurn, Purpose};
use crate::core::rows::examined::FormerDocument;
use crate::core::rows::handoff::{CheckPhase, Handoff, ReadReason, Step};
use crate::core::settings::Limits;
use crate::core::time::Deadline;
use crate::core::tx::Tx;
use serde_json::json;

/// If the step's limit passes while the document is being read or examined, the limit moves by this much, in
/// milliseconds.
const READING_MS: u64 = 60_000;
/// The hint where the document may be taken as it is. [`hint_accept`] adds what a retry does.
const HINT_ACCEPT: &str = "if the document is good: tasuki accept HANDOFF; otherwise: tasuki rework HANDOFF --note TEXT, or \
                           tasuki abandon HANDOFF";
/// The same if nobody is left who could repair the document.
const HINT_ALONE: &str = "if the document is good: tasuki accept HANDOFF; otherwise repair the file yourself before that, or: \
                          tasuki abandon HANDOFF";

pub(crate) struct Checking;

impl StepHandler for Checking {
    fn limit_ms(&self, limits: &Limits) -> Option<u64> {
        Some(limits.checking_ms)
    }

    fn begin(&self, tx: &mut Tx<'_>, id: HandoffId, how: Entry) -> Next {
        let Some(handoff) = tx.handoff_mut(&id) else { return Next::Stay };
        if handoff.examined.note.is_some() {
            return rework(tx, id);
        }
        if how == Entry::AssumeDelivered && await_assumed_turn(tx, id) {
            return Next::Stay;
        }
        let Some(handoff) = tx.handoff_mut(&id) else { return Next::Stay };
        handoff.stay.checking = Some(CheckPhase::Examining);
        if matches!(how, Entry::Retry | Entry::AssumeDelivered) {
            reader::begin(tx, id, ReadReason::Retry { instruct_again: false });
        } else {
            examination::begin(tx, id);
        }
        Next::Stay
    }

    fn leave(&self, tx: &mut Tx<'_>, id: HandoffId) {
        if let Some(handoff) = tx.handoff_mut(&id) {
            handoff.examined.held_since = None;
        }
    }

    fn retry(&self, tx: &mut Tx<'_>, id: HandoffId, assume: Option<Assume>) -> Next {
        if assume == Some(Assume::Delivered)
            && let Some(handoff) = tx.handoff_mut(&id)
        {
            handoff.examined.note = None;
            return Next::AssumeDelivered(Step::Checking);
        }
        Next::Retry(Step::Checking)
    }

    fn leaves_doubt(&self, code: &str) -> bool {
        code == "unconfirmed"
    }

    fn settled(&self, tx: &mut Tx<'_>, id: HandoffId, outcome: Outcome) -> Next {
        if let Outcome::Failed { why } = &outcome
            && tx.handoff(&id).is_some_and(examination::needs_person_unexamined)
        {
            row::warn(tx, id, &reader::not_checked(why));
            return hold(tx, id, false);
        }
        reader::settled(tx, id, outcome, judge)
    }

    fn learned(&self, tx: &mut Tx<'_>, id: HandoffId, fact: &Fact) -> Next {
        if let Fact::Verdict { agent_id, purpose: Purpose::Rework(_), result, .. } = fact {
            rework_verdict(tx, id, agent_id, result)
        } else if let Fact::OurTurnEnded { purpose: Purpose::Rework(_), event, .. } = fact {
            turn_ended(tx, id, event.as_deref())
        } else {
            author_ended(tx, id, fact)
        }
    }

    fn run_ready(&self, tx: &mut Tx<'_>, id: HandoffId) -> Next {
        let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
        let is_idle = tx.agent(&handoff.agent_id).is_none_or(|agent| agent.state == AgentState::Idle);
        if handoff.stay.checking == Some(CheckPhase::AwaitingIdle) && handoff.stay.reading.is_none() && is_idle {
            read_again(tx, id);
        }
        Next::Stay
    }

    fn types_to(&self, handoff: &Handoff) -> Option<AgentId> {
        Some(handoff.agent_id)
    }

    fn type_deferred(&self, tx: &mut Tx<'_>, id: HandoffId) -> Next {
        type_rework(tx, id)
    }

    fn due(&self, tx: &mut Tx<'_>, id: HandoffId) -> Next {
        let later = Deadline::after(&tx.now, READING_MS);
        let Some(handoff) = tx.handoff_mut(&id) else { return Next::Stay };
        if handoff.stay.reading.is_some() || handoff.stay.checking == Some(CheckPhase::Examining) {
            handoff.stay.deadline = Some(later);
            return Next::Stay;
        }
        let message = if handoff.stay.deferred {
            "The agent's turn did not end in time, so tasuki could not ask it to repair its document"
        } else if handoff.stay.checking == Some(CheckPhase::AwaitingIdle) {
            "The agent may not have been asked to repair its document, and its turn did not end in time"
        } else {
            "The agent did not end the turn in which it was to repair its document"
        };
        let hint = hint_accept(handoff);
        Next::fail("stop_never_came", message, &hint)
    }
}

/// The hint where the document may be taken as it is, and what a retry does. As long as nobody has asked the agent, or
/// a person must accept the document, the retry begins with the checks.
fn hint_accept(handoff: &Handoff) -> String {
    let examined = &handoff.examined;
    let retry = if examined.note.is_some() {
        "asks the agent again"
    } else if examined.reworks == 0 || examination::needs_person(handoff) {
        "checks the document again"
    } else {
        "takes the document as it is"
    };
    format!("{HINT_ACCEPT}; a retry {retry}")
}

/// The operator says that the agent was asked to repair its document. If the agent is in a turn, waits for the end of
/// that turn. Returns whether it waits.
fn await_assumed_turn(tx: &mut Tx<'_>, id: HandoffId) -> bool {
    let deadline = Deadline::after(&tx.now, tx.state.settings.limits.checking_ms);
    let agent_id = tx.handoff(&id).map(|handoff| handoff.agent_id);
    let Some(agent) = agent_id.and_then(|agent_id| tx.agent_mut(&agent_id)) else { return false };
    if !agent.state.is_in_a_turn() {
        return false;
    }
    agent.our_turn = Some(OurTurn::of(Purpose::Rework(id)));
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.stay.checking = Some(CheckPhase::Reworking);
        handoff.stay.deadline = Some(deadline);
    }
    true
}

/// Decides what follows from the result of the examination.
fn judge(tx: &mut Tx<'_>, id: HandoffId, whole: DocumentText) -> Next {
    let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
    if examination::needs_person(handoff) {
        return hold(tx, id, true);
    }
    if reader::restore_better(tx, id) {
        return Next::Stay;
    }
    let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
    let examined = &handoff.examined;
    let asks = !examined.accepted
        && examined.check == DocumentCheck::Fix
        && examined.reworks == 0
        && examined.needs_repairing();
    let lives = tx.agent(&handoff.agent_id).is_some_and(|agent| agent.state.is_live() && agent.pending_exit.is_none());
    if asks && lives && !authors::needs_no_agent(handoff.author) { rework(tx, id) } else { Next::Record(whole) }
}

/// Waits for a person, however long that takes, and notifies the operator.
fn hold(tx: &mut Tx<'_>, id: HandoffId, is_checked: bool) -> Next {
    let now = tx.now.rfc3339();
    let Some(handoff) = tx.handoff_mut(&id) else { return Next::Stay };
    handoff.stay.checking = Some(CheckPhase::Held);
    handoff.stay.deadline = None;
    let is_news = handoff.examined.held_since.is_none();
    handoff.examined.held_since.get_or_insert(now);
    let (agent_id, author, count) = (handoff.agent_id, handoff.author, handoff.examined.faults.len());
    let file_path = handoff.file_path.clone();
    early::discard(tx, id);
    if !is_news {
        return Next::Stay;
    }
    let short = id.short();
    let found = match count {
        _ if !is_checked => "tasuki could not check it".to_owned(),
        0 => "the checks found no fault".to_owned(),
        1 => "the checks found 1 fault".to_owned(),
        count => format!("the checks found {count} faults"),
    };
    let choices = match authors::needs_no_agent(author) {
        true => format!("tasuki accept {short} or tasuki cancel {short}"),
        false => format!("tasuki accept {short}, tasuki rework {short} --note TEXT, or tasuki cancel {short}"),
    };
    let message = format!("The handoff {short} waits for you to accept its document ({found}): {file_path}");
    let notice = OperatorNotice::new(NoticeCode::DocumentHeld, message.clone()).hint(format!("to decide: {choices}"));
    tx.notify_operator(notice.agent(agent_id).handoff(id).details(json!({ "file_path": file_path })));
    tx.journal(JournalLine {
        step: Some(Step::Checking.as_str().to_owned()),
        code: Some(NoticeCode::DocumentHeld.as_str().to_owned()),
        message: Some(message),
        ..JournalLine::of_handoff(LineType::HandoffStep, &id, &agent_id)
    });
    Next::Stay
}

/// Asks the agent to repair its document. The number of reworks is written in the commit that starts the text, so the
/// agent is asked only once.
pub(crate) fn rework(tx: &mut Tx<'_>, id: HandoffId) -> Next {
    let limit = tx.state.settings.limits.checking_ms;
    let deadline = Deadline::after(&tx.now, limit);
    let Some(handoff) = tx.handoff_mut(&id) else { return Next::Stay };
    handoff.examined.held_since = None;
    handoff.stay.checking = Some(CheckPhase::Reworking);
    handoff.stay.deadline = Some(deadline);
    row::stop(tx, id);
    type_rework(tx, id)
}

fn type_rework(tx: &mut Tx<'_>, id: HandoffId) -> Next {
    let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
    let faults: Vec<String> = handoff.examined.faults.iter().map(|fault| fault.sentence()).collect();
    let is_reply = handoff.author == Author::AgentReply;
    let body = tx.state.settings.prompts.rework(&Rework {
        file_path: &handoff.file_path,
        faults: &faults,
        note: handoff.examined.note.as_deref(),
        reply: is_reply,
    });
    let first_line = match is_reply {
        true => "Please answer with your handoff document once more.",
        false => "Please repair your handoff document.",
    };
    let text = typing::Text { first_line: first_line.to_owned(), body, allow_busy: false };
    let agent_id = handoff.agent_id;
    if tx.agent(&agent_id).is_some_and(|agent| agent.typing.is_some() || agent.state.is_in_a_turn()) {
        return Next::Defer;
    }
    // The agent's time limit begins when the text is typed, not while the text is deferred.
    let deadline = Some(Deadline::after(&tx.now, tx.state.settings.limits.checking_ms));
    if let Some(handoff) = tx.handoff_mut(&id) {
        let examined = &mut handoff.examined;
        examined.reworks += 1;
        let (faults, sha256) = (examined.repairable(), examined.sha256.clone());
        let by_person = examined.note.is_some();
        let former = examined.last_read_text.clone();
        examined.former = former.map(|text| FormerDocument { text, faults, sha256, by_person });
        handoff.stay.deadline = deadline;
    }
    typing::begin(tx, &agent_id, Purpose::Rework(id), text, deadline);
    Next::Stay
}

/// The verdict on the text that asks the agent to repair its document has come.
fn rework_verdict(tx: &mut Tx<'_>, id: HandoffId, agent_id: &AgentId, result: &DeliveryResult) -> Next {
    let why = match result {
        DeliveryResult::Delivered(_) => {
            if let Some(handoff) = tx.handoff_mut(&id) {
                handoff.examined.note = None;
            }
            return Next::Stay;
        }
        DeliveryResult::Refused(Refusal::Busy) => {
            tx.set_state(agent_id, AgentState::Busy);
            was_not_asked(tx, id);
            return Next::Defer;
        }
        DeliveryResult::Refused(reason) if awaits_repair(tx, id) => {
            was_not_asked(tx, id);
            let message = reason.told("The agent could not be asked to repair its document");
            return Next::fail("not_delivered", message, reason.hint());
        }
        DeliveryResult::Unconfirmed(reason) if awaits_repair(tx, id) => {
            let message = format!("It is not known whether the agent was asked to repair its document ({reason})");
            return Next::fail("unconfirmed", message, &format!("look at the agent's pane; {HINT_DOUBT}"));
        }
        DeliveryResult::Refused(reason) => reason.told("it could not be asked"),
        DeliveryResult::Unconfirmed(reason) => format!("it is not known whether it was asked ({reason})"),
    };
    row::warn(tx, id, &format!("the agent was to repair its document, but {why}"));
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.examined.note = None;
        handoff.stay.checking = Some(CheckPhase::AwaitingIdle);
    }
    Checking.run_ready(tx, id)
}

/// Nothing was typed, so this rework does not count.
fn was_not_asked(tx: &mut Tx<'_>, id: HandoffId) {
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.examined.reworks = handoff.examined.reworks.saturating_sub(1);
    }
}

/// Whether a person has asked for the repair, and nothing will hold the document for a person's accept. tasuki would
/// then record the document without the repair, so the step fails if the agent may not have been asked. A retry asks
/// again with the same note.
fn awaits_repair(tx: &Tx<'_>, id: HandoffId) -> bool {
    tx.handoff(&id).is_some_and(|handoff| handoff.examined.note.is_some() && !examination::needs_person(handoff))
}

/// The turn in which the agent was to repair its document has ended.
fn turn_ended(tx: &mut Tx<'_>, id: HandoffId, event: Option<&HookEvent>) -> Next {
    let what = "The turn in which the agent was to repair its document";
    let hint = tx.handoff(&id).map_or_else(String::new, hint_accept);
    author_turn::after_turn(tx, id, event, (what, &hint)).unwrap_or_else(|| {
        read_again(tx, id);
        Next::Stay
    })
}

fn read_again(tx: &mut Tx<'_>, id: HandoffId) {
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.stay.checking = Some(CheckPhase::Examining);
    }
    reader::begin(tx, id, ReadReason::InFlow);
}

/// If the agent has ended before it repaired its document, the step fails: a person must accept the document or repair
/// it.
fn author_ended(tx: &mut Tx<'_>, id: HandoffId, fact: &Fact) -> Next {
    let phase = tx.handoff(&id).and_then(|handoff| handoff.stay.checking);
    let waits = matches!(phase, Some(CheckPhase::Reworking | CheckPhase::AwaitingIdle));
    match ended_agent(tx, id, fact).filter(|ended| ended.is_outgoing && waits) {
        Some(ended) => {
            let code = if ended.is_lost { "pane_gone" } else { "agent_ended" };
            Next::fail(code, "The agent has ended before it had repaired its document", HINT_ALONE)
        }
        None => Next::Stay,
    }
}
