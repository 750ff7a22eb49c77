//! Begins a handoff, by request or automatically, after a check that the agent can be handed off.

use super::{agents, authors, document, driver, publish_targets, successors};
use crate::contract::handoff::Author;
use crate::contract::known;
use crate::contract::reply::HandoffReply;
use crate::core::agent::register;
use crate::core::event::RequestFacts;
use crate::core::id::{AgentId, HandoffId, RequestId, Slug};
use crate::core::persona::{PersonaFacts, ProfileChoice};
use crate::core::reply::{Refused, Reply};
use crate::core::request::HandoffRequest;
use crate::core::rows::ack::Ack;
use crate::core::rows::agent::AgentState;
use crate::core::rows::examined::Examined;
use crate::core::rows::handoff::{Handoff, LastVerdicts, OutgoingSession, Stay, Step};
use crate::core::tx::Tx;

/// The result of a passed check: what a new handoff needs.
struct Checked<'f> {
    agent_id: AgentId,
    slug: Slug,
    persona: &'f PersonaFacts,
    /// The agent that is to take over, if it runs already.
    successor: Option<AgentId>,
    choice: ProfileChoice,
}

/// `handoff`: checks the request, begins the handoff, and answers.
pub(crate) fn asked(tx: &mut Tx<'_>, request: &RequestId, asked: HandoffRequest, facts: &RequestFacts) {
    match check(tx, &asked, facts) {
        Err(refused) => tx.refuse(request, refused),
        Ok(checked) => {
            let (handoff_id, file_path) = begin(tx, asked, &checked, facts);
            let file_path = known(&file_path);
            tx.answer(request, Reply::ok(&HandoffReply { file_path, ..HandoffReply::new(&handoff_id, "initiated") }));
        }
    }
}

/// Begins an automatic handoff, without a request, if the check allows it.
pub(crate) fn begin_automatic(
    tx: &mut Tx<'_>,
    agent_id: &AgentId,
    reason: &str,
    facts: &RequestFacts,
) -> Result<HandoffId, Refused> {
    let asked = HandoffRequest::new(agent_id, reason);
    let checked = check(tx, &asked, facts)?;
    Ok(begin(tx, asked, &checked, facts).0)
}

/// Begins the handoff of an agent to another CLI, because the agent's CLI has reached its usage limit. tasuki writes
/// the document. The handoff does not wait for the end of the agent's turn, because that turn only waits until the
/// usage limit is over.
pub(crate) fn begin_after_limit(
    tx: &mut Tx<'_>,
    agent_id: &AgentId,
    reason: &str,
    choice: &ProfileChoice,
    facts: &RequestFacts,
) -> Result<HandoffId, Refused> {
    let asked = HandoffRequest {
        author: Author::Salvage,
        now: true,
        profile: Some(choice.profile.clone()),
        model: choice.model.clone(),
        ..HandoffRequest::new(agent_id, reason)
    };
    // Without a model the CLI takes its default: the model of the outgoing agent may be the one that is used up.
    let checked = Checked { choice: choice.clone(), ..check(tx, &asked, facts)? };
    let id = begin(tx, asked, &checked, facts).0;
    if let Some(handoff) = tx.handoff_mut(&id) {
        handoff.after_limit = true;
    }
    Ok(id)
}

/// Checks the request and the agent. The order of the checks is part of the contract: where several would fail, the
/// first one gives the answer.
fn check<'f>(tx: &Tx<'_>, asked: &HandoffRequest, facts: &'f RequestFacts) -> Result<Checked<'f>, Refused> {
    let agent = asked.agent_id.parse().ok().and_then(|id| tx.agent(&id));
    let agent = agent.ok_or_else(|| Refused::new(404, "no_agent", "Agent not found"))?;
    let needs_agent = !authors::needs_no_agent(asked.author);
    if agent.state == AgentState::Ended && needs_agent {
        return Err(Refused::new(400, "not_active", "Agent is not active"));
    }
    let Some(slug) = agent.persona_slug.clone() else {
        return Err(Refused::new(400, "no_persona", "Agent has no persona"));
    };
    if (agent.pane.is_none() || agent.state == AgentState::Lost) && needs_agent {
        return Err(Refused::new(400, "no_pane", "Agent has no tmux pane"));
    }
    if let Some(id) = agent.handoff_id.or(agent.recorded_in) {
        return Err(agents::in_progress(tx, &id));
    }
    if let Some(handoff) = agents::unbriefed_in(tx, agent) {
        return Err(agents::is_unbriefed(handoff));
    }
    if agent.shutdown.is_some() {
        return Err(Refused::new(409, "shutting_down", "The agent is being shut down"));
    }
    authors::check(tx, asked, agent, facts)?;
    publish_targets::check(tx, asked.publish.as_ref())?;
    let successor = successors::check(tx, &asked.successor, agent, None)?;
    let persona = facts.persona.as_ref().filter(|(named, _)| *named == slug).map(|(_, persona)| persona);
    let persona = persona.filter(|persona| persona.has_skill).ok_or_else(|| {
        Refused::new(400, "no_skill", format!("Persona {slug} has no skill.md"))
            .hint("a persona is a folder with a skill.md; write the skill.md, then ask again")
    })?;
    // A persona that can't be read may ask for a stricter check of its documents, or for another CLI.
    if let Some(why) = &persona.broken {
        let hint = "no handoff has begun; correct the file, then ask again";
        return Err(Refused::new(400, "bad_persona", why.clone()).hint(hint));
    }
    let choice = (asked.profile.as_deref(), asked.model.as_deref());
    let choice = successors::choice(tx, &asked.successor, choice, agent, &persona.fallbacks)?;
    register::check_reach(tx, agent)?;
    if let Some(successor) = successor.and_then(|id| tx.agent(&id)) {
        register::check_reach(tx, successor)?;
    }
    Ok(Checked { agent_id: agent.agent_id, slug, persona, successor, choice })
}

/// Begins the handoff; returns its id and the document's path.
fn begin(tx: &mut Tx<'_>, asked: HandoffRequest, checked: &Checked<'_>, facts: &RequestFacts) -> (HandoffId, String) {
    let Checked { agent_id, persona, successor, .. } = *checked;
    let slug = checked.slug.clone();
    let handoff_id = tx.new_handoff_id();
    let taken = document::taken_names(tx, &agent_id, &slug, persona);
    let file_name = document::file_name(tx.now.wall_ms, &agent_id, &taken);
    let file_path = format!("{}/{file_name}", persona.handoffs_dir);
    let check = asked.check.or(persona.check).unwrap_or(tx.state.settings.document.check);
    let chain = tx.agent(&agent_id).map(|agent| agent.chain.clone()).unwrap_or_default();
    let handoff = Handoff {
        handoff_id,
        agent_id,
        session: tx.agent(&agent_id).map(OutgoingSession::of).unwrap_or_default(),
        persona_slug: slug,
        reason: asked.reason,
        focus: asked.focus,
        tasks: asked.tasks,
        interrupts_turn: asked.now,
        author: asked.author,
        successor: asked.successor,
        choice: checked.choice.clone(),
        after_limit: false,
        created_at: tx.now.rfc3339(),
        file_path: file_path.clone(),
        file_name: file_name.clone(),
        step: Step::Waiting,
        steps: Vec::new(),
        stay: Stay::default(),
        wait_until: None,
        verdicts: LastVerdicts::default(),
        error: None,
        document: None,
        provided: facts.document.clone().and_then(Result::ok),
        last_text: None,
        record: None,
        checkpoint: None,
        examined: Examined { check, review: asked.review, ..Examined::default() },
        chain,
        successor_id: None,
        former_successors: Vec::new(),
        successor_window: None,
        warnings: Vec::new(),
        read: None,
        successor_blocked_at: None,
        ack: asked.urgency.map(Ack::new),
        publish: publish_targets::chosen(tx, asked.publish.as_ref(), persona),
    };
    tx.out.handoffs.insert(handoff_id, handoff);
    if let Some(agent) = tx.agent_mut(&agent_id) {
        agent.handoff_id = Some(handoff_id);
    }
    document::reserve_name(tx, &agent_id, &file_name);
    if let Some(successor) = successor {
        successors::bind_successor(tx, handoff_id, successor);
    }
    driver::enter(tx, handoff_id, Step::Waiting);
    (handoff_id, file_path)
}
