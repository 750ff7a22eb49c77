//! Collects facts of the agent's work, and checks the document against them. The effect reads the document once more,
//! so that the text that is recorded is the text that was examined.

use super::next::DocumentText;
use super::{authors, row};
use crate::contract::document::{DocumentCheck, FaultCheck};
use crate::contract::facts::ChainFacts;
use crate::contract::handoff::Author;
use crate::core::effect::{DocumentRead, Effect, EnvironmentSearch, Examination, ExaminePlan};
use crate::core::id::HandoffId;
use crate::core::rows::examined::Examined;
use crate::core::rows::handoff::Handoff;
use crate::core::settings::DocumentRules;
use crate::core::tx::Tx;

/// Begins to examine the document that was read last.
pub(crate) fn begin(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(plan) = tx.handoff(&id).and_then(|handoff| plan(tx, handoff, None)) else { return };
    row::run(tx, id, Effect::Examine(Box::new(plan)));
}

/// Begins to examine an updated document, which a person provides for the questions of the successor.
pub(crate) fn begin_update(tx: &mut Tx<'_>, id: HandoffId, file_name: &str, sha256: &str) {
    let Some(plan) = tx.handoff(&id).and_then(|handoff| plan(tx, handoff, Some(sha256))) else { return };
    let plan = ExaminePlan { file_name: file_name.to_owned(), author: Author::Provided, ..plan };
    row::run(tx, id, Effect::Examine(Box::new(plan)));
}

/// `sha256`: the hash of the document to examine, if that is not the document that was read last.
fn plan(tx: &Tx<'_>, handoff: &Handoff, sha256: Option<&str>) -> Option<ExaminePlan> {
    let agent = tx.agent(&handoff.agent_id);
    Some(ExaminePlan {
        handoff_id: handoff.handoff_id,
        agent_id: handoff.agent_id,
        persona: handoff.persona_slug.clone(),
        file_name: handoff.file_name.clone(),
        sha256: sha256.or(handoff.examined.sha256.as_deref())?.to_owned(),
        author: handoff.author,
        is_urgent: handoff.ack.is_some(),
        rules: DocumentRules { check: asked_check(handoff), ..tx.state.settings.document.clone() },
        instruction: authors::instruction(tx, handoff),
        profile: agent.map(|agent| agent.profile.clone()).unwrap_or_default(),
        cwd: agent.and_then(|agent| agent.cwd.clone()),
        since: agent.and_then(|agent| agent.registered_at.clone()),
        session_id: agent.and_then(|agent| agent.session.id.clone()),
        transcript: agent.and_then(|agent| agent.transcript_path.clone()),
        context_percent: agent.and_then(|agent| agent.context?.percent()),
        process: agent.and_then(|agent| agent.process),
        chain: ChainFacts {
            generation: handoff.chain.generation + 1,
            earlier: handoff.chain.earlier.clone(),
            rules: Vec::new(),
        },
    })
}

/// What is checked. A person who reviews a document sees what the checks find, also where they are off.
fn asked_check(handoff: &Handoff) -> DocumentCheck {
    let Examined { check, review, .. } = handoff.examined;
    if check == DocumentCheck::Off && review { DocumentCheck::Hold } else { check }
}

/// Keeps what an examination of the handoff's document has found. `None` if the document has changed since it was read:
/// the caller must read it again.
pub(crate) fn settled(tx: &mut Tx<'_>, id: HandoffId, examination: Examination) -> Option<DocumentText> {
    let handoff = tx.handoff_mut(&id)?;
    match &examination.document {
        DocumentRead::Whole { sha256, .. } if handoff.examined.sha256.as_ref() == Some(sha256) => {
            let file_path = handoff.file_path.clone();
            keep(handoff, examination, &file_path)
        }
        DocumentRead::Whole { .. } | DocumentRead::Missing | DocumentRead::Empty | DocumentRead::Unsafe { .. } => None,
    }
}

/// Keeps what an examination has found; `None` if there is no whole document.
///
/// Part of an examination is a search of the document for the values of the agent's environment variables, which count
/// as credentials. The environment can be read only while the agent's process lives. If it could not be read this time,
/// the result of an earlier search of the same text counts (`handoff.examined.environment`). After `Clean`, the text
/// may be shown. After `Found` and `NotDone`, no view and no briefing shows the text; after `Found`, the faults of the
/// earlier search are kept too.
pub(crate) fn keep(handoff: &mut Handoff, examination: Examination, file_path: &str) -> Option<DocumentText> {
    let Examination { document: DocumentRead::Whole { text, sha256 }, facts, mut faults, mut redacted, environment } =
        examination
    else {
        return None;
    };
    let examined = &mut handoff.examined;
    if environment != EnvironmentSearch::NotDone {
        examined.environment = environment;
    } else if examined.environment != EnvironmentSearch::Clean {
        redacted = Some(unsearched(file_path));
        if examined.environment == EnvironmentSearch::Found {
            let finds = examined.faults.iter().filter(|fault| fault.check == FaultCheck::Secrets);
            let forgotten: Vec<_> = finds.filter(|fault| !faults.contains(fault)).cloned().collect();
            faults.extend(forgotten);
        }
    }
    examined.facts = Some(facts);
    examined.faults = faults;
    Some(DocumentText { text, sha256, redacted })
}

/// Whether the handoff enters `checking` when its document has been read: an agent has written the document, it is to
/// be checked or reviewed, and no person has accepted it yet. A document that no agent has written is recorded next;
/// from `recording` it enters `checking` only if a person must accept it.
pub(crate) fn goes_to_checking(handoff: &Handoff) -> bool {
    let checks = asked_check(handoff) != DocumentCheck::Off;
    checks && !handoff.examined.accepted && !authors::needs_no_agent(handoff.author)
}

/// Whether a person must accept the document if it could not be examined.
pub(crate) fn needs_person_unexamined(handoff: &Handoff) -> bool {
    let examined = &handoff.examined;
    !examined.accepted && (examined.review || examined.check == DocumentCheck::Hold)
}

/// What the briefing and views contain instead of a document that could not be searched for all credentials.
pub(crate) fn unsearched(file_path: &str) -> String {
    format!("(left out: tasuki could not search the document for all credentials. Read it there: `{file_path}`)\n")
}

/// Whether a person must accept the document after its examination.
pub(crate) fn needs_person(handoff: &Handoff) -> bool {
    let examined = &handoff.examined;
    let finds = examined.check == DocumentCheck::Hold && examined.needs_repairing();
    !examined.accepted && (examined.review || finds)
}
