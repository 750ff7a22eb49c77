//! The record of a document. Once it is committed, the agent may end and the file may be lost.

use super::next::DocumentText;
use super::{document, publish};
use crate::core::id::{HandoffId, ItemId};
use crate::core::prompts;
use crate::core::request::Successor;
use crate::core::resume;
use crate::core::rows::handoff::{DocumentSeen, Handoff, HandoffRecord, OutgoingSession};
use crate::core::text;
use crate::core::tx::Tx;
use crate::core::work;

/// How many earlier documents of the chain a briefing names. If there are more, the file with the facts names them too.
const MOST_NAMED: usize = 3;

/// Adds the record to the decision. The effect that ends the agent starts after the commit, when the record is durable.
pub(crate) fn add_record(tx: &mut Tx<'_>, id: HandoffId, whole: DocumentText) {
    let timestamp = tx.now.rfc3339();
    let DocumentText { text, sha256, redacted } = whole;
    let Some(handoff) = tx.handoff(&id) else { return };
    let agent_id = handoff.agent_id;
    let session = tx.agent(&agent_id).map(OutgoingSession::of);
    let (injection_prompt, items) = injection_prompt(tx, handoff, redacted.as_deref().unwrap_or(&text));
    let bytes = text.len() as u64;
    let warnings: Vec<String> = handoff.examined.faults.iter().map(|fault| fault.sentence()).collect();
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.session = session.unwrap_or_default();
        handoff.checkpoint = document::checkpoint(redacted.as_deref().unwrap_or(&text));
        if let Some(ack) = handoff.ack.as_mut() {
            ack.checkpoint.clone_from(&handoff.checkpoint);
        }
        handoff.record = Some(HandoffRecord { bytes, sha256, injection_prompt, items, created_at: timestamp.clone() });
        handoff.document = Some(DocumentSeen { bytes, at: timestamp });
        handoff.warnings.extend(warnings);
        handoff.examined.sha256 = None;
        handoff.examined.last_read_text = None;
        handoff.examined.former = None;
        handoff.examined.note = None;
        handoff.provided = None;
        handoff.last_text = None;
    }
    tx.out.documents.insert(id, Some(text));
    if let Some(agent) = tx.agent_mut(&agent_id) {
        agent.recorded_in = Some(id);
    }
    publish::begin(tx, id);
    work::transfer::hold(tx, id);
}

/// Replaces the record by the record of an updated document. From now on, successors are briefed with that document.
pub(crate) fn renew(tx: &mut Tx<'_>, id: HandoffId, whole: DocumentText, created_at: String) {
    let DocumentText { text, sha256, redacted } = whole;
    let Some(handoff) = tx.handoff(&id) else { return };
    let (injection_prompt, items) = injection_prompt(tx, handoff, redacted.as_deref().unwrap_or(&text));
    let bytes = text.len() as u64;
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.record = Some(HandoffRecord { bytes, sha256, injection_prompt, items, created_at });
    }
    tx.out.documents.insert(id, Some(text));
    // The new briefing also names the items that the agent has claimed since the first record.
    work::transfer::hold(tx, id);
}

/// The text that briefs the successor, and the work items that it names. A new session in the same pane gets the whole
/// document; any other successor gets its path.
fn injection_prompt(tx: &Tx<'_>, handoff: &Handoff, text: &str) -> (String, Vec<ItemId>) {
    let (tasks, items) = work::transfer::tasks(tx, handoff);
    let prompt = match handoff.successor {
        Successor::SamePane => tx.state.settings.prompts.context(text::sanitise(text).trim_end(), &tasks),
        Successor::New | Successor::Existing { .. } => briefing(tx, handoff, text, &tasks),
    };
    (prompt, items)
}

fn briefing(tx: &Tx<'_>, handoff: &Handoff, text: &str, tasks: &[String]) -> String {
    let settings = &tx.state.settings;
    let outgoing = tx.agent(&handoff.agent_id);
    let cwd = outgoing.and_then(|agent| agent.cwd.clone());
    let resume_command =
        outgoing.and_then(|agent| resume::command_of(settings, &agent.profile, agent.session.id.as_deref()));
    let is_readable = outgoing.is_some_and(|agent| {
        let profile = settings.profiles.get(&agent.profile);
        agent.transcript_path.is_some() && profile.is_some_and(|profile| profile.has_transcript)
    });
    let read_command = is_readable.then(|| format!("{} read {}", settings.command, handoff.handoff_id.short()));
    let summary = document::first_paragraph(text);
    let facts_path = handoff.facts_path("md");
    let from = handoff.chain.earlier.len().saturating_sub(MOST_NAMED);
    let folder = handoff.file_path.strip_suffix(&handoff.file_name).unwrap_or_default();
    let named = |path: &str| path.strip_prefix(folder).filter(|name| !name.contains('/')).unwrap_or(path).to_owned();
    let earlier: Vec<String> = handoff.chain.earlier[from..].iter().map(|earlier| named(&earlier.file_path)).collect();
    settings.prompts.briefing(&prompts::Briefing {
        predecessor_id: &handoff.agent_id.to_string(),
        persona: handoff.persona_slug.as_str(),
        reason: &handoff.reason,
        file_path: &handoff.file_path,
        focus: handoff.focus.as_deref(),
        cwd: cwd.as_deref(),
        tasks,
        summary: summary.as_deref(),
        facts_path: facts_path.as_deref(),
        generation: handoff.chain.generation + 1,
        earlier: &earlier,
        read_command: read_command.as_deref(),
        resume_command: resume_command.as_deref(),
    })
}
