//! The trigger: is this agent to be handed off, and how does it begin (SPEC 4.1).

use super::{Handoff, Step, Verdicts, document, flow};
use crate::core::agent::AgentState;
use crate::core::decision::Tx;
use crate::core::event::{PersonaFacts, RequestFacts};
use crate::core::id::{AgentId, RequestId, Slug};
use crate::core::reply::{Refused, Reply};
use crate::core::request::{Author, HandoffAsked, Successor};
use serde_json::json;
use std::collections::BTreeSet;

/// Names of documents that are remembered with their agent.
const MOST_PROMISED: usize = 16;

/// Answers a `handoff` request, and begins the handoff if nothing is against it.
pub(crate) fn asked(tx: &mut Tx<'_>, request: &RequestId, asked: HandoffAsked, facts: &RequestFacts) {
    match check(tx, &asked, facts) {
        Err(refused) => tx.refuse(request, refused),
        Ok((agent_id, slug, persona)) => begin(tx, request, asked, agent_id, slug, persona),
    }
}

/// The rows of SPEC 4.1 in their order, then what else stands in the way.
fn check<'f>(
    tx: &Tx<'_>,
    asked: &HandoffAsked,
    facts: &'f RequestFacts,
) -> Result<(AgentId, Slug, &'f PersonaFacts), Refused> {
    let agent = asked.agent_id.parse().ok().and_then(|id| tx.agent(&id));
    let agent = agent.ok_or_else(|| Refused::new(404, "no_agent", "Agent not found"))?;
    if agent.state == AgentState::Ended {
        return Err(Refused::new(400, "not_active", "Agent is not active"));
    }
    let Some(slug) = agent.persona_slug.clone() else {
        return Err(Refused::new(400, "no_persona", "Agent has no persona"));
    };
    if agent.pane.is_none() || agent.state == AgentState::Lost {
        return Err(Refused::new(400, "no_pane", "Agent has no tmux pane"));
    }
    if agent.handoff_id.is_some() || agent.record_of.is_some() {
        let hint = "follow it with: tasuki handoffs; a failed one can be retried or abandoned";
        return Err(Refused::new(409, "handoff_in_progress", "Handoff already in progress").hint(hint));
    }
    if agent.shutdown.is_some() {
        return Err(Refused::new(409, "shutting_down", "The agent is being shut down"));
    }
    dials(asked)?;
    let persona = facts.persona.as_ref().filter(|(named, _)| *named == slug).map(|(_, persona)| persona);
    let persona = persona.filter(|persona| persona.has_skill).ok_or_else(|| {
        Refused::new(400, "no_skill", format!("Persona {slug} has no skill.md"))
            .hint("a persona is a folder with a skill.md; write one, then ask again")
    })?;
    if tx.state.server.is_none() {
        return Err(no_tmux());
    }
    Ok((agent.agent_id, slug, persona))
}

/// 503: no tmux server answers.
pub(crate) fn no_tmux() -> Refused {
    Refused::new(503, "no_tmux", "No tmux server answers").hint("start tmux, or check --tmux; nothing was done")
}

/// What the three dials may say in this version.
fn dials(asked: &HandoffAsked) -> Result<(), Refused> {
    let not_built = |what: &str| Refused::new(501, "not_built", format!("{what} is not carried out by this version"));
    match asked.author {
        Author::AgentFile => {}
        Author::AgentReply => return Err(not_built("author agent_reply").field("author")),
        Author::Salvage => return Err(not_built("author salvage").field("author")),
        Author::Provided => return Err(not_built("author provided").field("author")),
    }
    if asked.document.is_some() {
        return Err(Refused::bad("document", "goes with author provided only"));
    }
    successor(&asked.successor)?;
    if asked.urgency.is_some() {
        return Err(not_built("urgency").field("urgency"));
    }
    if asked.publish.is_some() {
        return Err(not_built("publish").field("publish"));
    }
    Ok(())
}

/// Whether this version can make that successor.
pub(crate) fn successor(successor: &Successor) -> Result<(), Refused> {
    let not_built = |what: &str| {
        let message = format!("successor {what} is not carried out by this version");
        Err(Refused::new(501, "not_built", message).field("successor"))
    };
    match successor {
        Successor::New => Ok(()),
        Successor::SamePane => not_built("same_pane"),
        Successor::Existing { .. } => not_built("{\"agent_id\":…}"),
    }
}

fn begin(
    tx: &mut Tx<'_>,
    request: &RequestId,
    asked: HandoffAsked,
    agent_id: AgentId,
    slug: Slug,
    persona: &PersonaFacts,
) {
    let handoff_id = tx.new_handoff_id();
    let taken = taken_names(tx, &agent_id, &slug, persona);
    let file_name = document::file_name(tx.now.wall_ms, &agent_id, &taken);
    let file_path = format!("{}/{file_name}", persona.handoffs_dir);
    let handoff = Handoff {
        handoff_id,
        agent_id,
        persona_slug: slug,
        reason: asked.reason,
        focus: asked.focus,
        tasks: asked.tasks,
        now: asked.now,
        author: asked.author,
        successor: asked.successor,
        created_at: tx.now.stamp(),
        file_path: file_path.clone(),
        file_name: file_name.clone(),
        step: Step::Waiting,
        steps: Vec::new(),
        deadline: None,
        wait_until: None,
        effect: None,
        waits: false,
        stopped_meanwhile: false,
        reading: None,
        verdicts: Verdicts::default(),
        error: None,
        document: None,
        record: None,
        successor_id: None,
        former_successors: Vec::new(),
        place: None,
        warnings: Vec::new(),
    };
    tx.out.handoffs.insert(handoff_id, handoff);
    if let Some(agent) = tx.agent_mut(&agent_id) {
        agent.handoff_id = Some(handoff_id);
        let from = (agent.promised.len() + 1).saturating_sub(MOST_PROMISED);
        agent.promised.drain(..from);
        agent.promised.push(file_name);
    }
    let result = json!({ "status": "initiated", "handoff_id": handoff_id, "file_path": file_path });
    tx.answer(request, Reply::Ok(result));
    flow::enter(tx, handoff_id, Step::Waiting);
}

/// Names that lie in the folder, and names that handoffs have been promised.
fn taken_names(tx: &Tx<'_>, agent_id: &AgentId, slug: &Slug, persona: &PersonaFacts) -> BTreeSet<String> {
    let rows = tx.state.handoffs.values().chain(tx.out.handoffs.values());
    let promised = rows.filter(|handoff| handoff.persona_slug == *slug).map(|handoff| handoff.file_name.clone());
    let own = tx.agent(agent_id).into_iter().flat_map(|agent| agent.promised.clone());
    persona.handoff_files.iter().cloned().chain(promised).chain(own).collect()
}
