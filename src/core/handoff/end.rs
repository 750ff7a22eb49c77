//! How a handoff ends: finished, cancelled or halted.

use super::flow;
use crate::core::effect::Effect;
use crate::core::id::{AgentId, HandoffId};
use crate::core::request::Successor;
use crate::core::rows::handoff::{HandoffError, Span, Step};
use crate::core::text::sentence;
use crate::core::tx::{Failure, Tx};
use crate::core::work;
use serde_json::json;

/// Lets go of both agents, and of the document's copy.
pub(super) fn release(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let agents = [Some(handoff.agent_id), handoff.successor_id];
    let has_document = handoff.record.is_some();
    for agent_id in agents.into_iter().flatten() {
        release_agent(tx, &agent_id, id);
    }
    if has_document {
        tx.out.documents.insert(id, None);
    }
    work::carry::let_go(tx, id);
    tell_in_place(tx, id);
}

/// A new session in the same pane looks like the old one, so its operator is told (seed 3).
fn tell_in_place(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id).filter(|handoff| handoff.successor == Successor::SamePane) else { return };
    let is_done = handoff.step == Step::Done;
    let text = if is_done { "New session started with handoff context" } else { "Handoff cancelled" };
    let fields = json!({ "handoff_id": id, "agent_id": handoff.agent_id, "successor_id": handoff.successor_id });
    tx.tell_notice(text, fields);
}

fn release_agent(tx: &mut Tx<'_>, agent_id: &AgentId, id: HandoffId) {
    let Some(agent) = tx.agent(agent_id) else { return };
    if agent.handoff_id != Some(id) {
        return;
    }
    if let Some(agent) = tx.agent_mut(agent_id) {
        agent.handoff_id = None;
        let is_of_this = agent.our_turn.as_ref().is_some_and(|turn| turn.purpose.handoff() == Some(id));
        if is_of_this {
            agent.our_turn = None;
        }
    }
}

/// Halts the flow at its present step: error file, one journal line, every channel; document and record are kept, the
/// agents are left as they are. `HANDOFF` in the hint stands for the handoff's id.
pub(crate) fn fail(tx: &mut Tx<'_>, id: HandoffId, code: &str, message: impl Into<String>, hint: &str) {
    let Some(handoff) = tx.handoff(&id) else { return };
    if handoff.step.is_end() {
        return;
    }
    let (step, agent_id, successor_id) = (handoff.step, handoff.agent_id, handoff.successor_id);
    let (message, hint) = (message.into(), sentence(&hint.replace("HANDOFF", &id.short())));
    flow::leave(tx, id);
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
        handoff.steps.push(Span { step: Step::Failed, entered_at: stamp, left_at: None });
        handoff.error = Some(HandoffError { error_id, step, code: code.to_owned(), message: message.clone(), hint });
    }
    for agent in [Some(agent_id), successor_id].into_iter().flatten() {
        release_agent(tx, &agent, id);
    }
    if step >= Step::Ending {
        drop_place(tx, id);
    }
    let line = json!({
        "handoff_id": id, "agent_id": agent_id, "step": step.word(), "code": code, "message": message,
        "error_id": error_id,
    });
    tx.journal("handoff.failed", line);
}

/// Removes the placeholder window, if there is one: the successor stands in its place, or nobody will. It may be there
/// although nothing was heard of it, for the act that makes it can't be called back.
pub(crate) fn drop_place(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let tag = handoff.place_tag();
    tx.effect(Effect::DropPlace { tag });
}
