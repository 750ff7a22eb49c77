//! The author of the document, and how tasuki writes the document if the agent does not.

use super::next::Next;
use crate::core::effect::{DocumentSource, Effect};
use crate::core::event::RequestFacts;
use crate::core::id::HandoffId;
use crate::core::prompts::{Instruction, Salvage};
use crate::core::reply::Refused;
use crate::core::request::{Author, HandoffRequest};
use crate::core::rows::agent::Agent;
use crate::core::rows::handoff::{Handoff, Step};
use crate::core::settings::ProfileFacts;
use crate::core::tx::Tx;

/// An agent can be asked to answer with its document only if its session has at least this many messages: a question
/// and its answer.
const FEWEST_MESSAGES: u64 = 2;

/// Whether this author needs no agent to write the document, so that the agent may be dead.
pub(crate) fn needs_no_agent(author: Author) -> bool {
    matches!(author, Author::Salvage | Author::Provided)
}

/// Checks that the requested author can write this agent's document.
pub(crate) fn check(tx: &Tx<'_>, asked: &HandoffRequest, agent: &Agent, facts: &RequestFacts) -> Result<(), Refused> {
    let profile = tx.state.settings.profiles.get(&agent.profile);
    match asked.author {
        Author::AgentFile => Ok(()),
        Author::AgentReply => check_reply(agent, profile, facts),
        Author::Salvage => check_salvage(tx, agent, profile),
        Author::Provided => match &facts.document {
            Some(Ok(_)) => Ok(()),
            Some(Err(why)) => Err(Refused::bad("document", why)),
            None => Err(Refused::bad("document", "is required with author \"provided\"")),
        },
    }
}

fn check_reply(agent: &Agent, profile: Option<&ProfileFacts>, facts: &RequestFacts) -> Result<(), Refused> {
    let has_transcript = profile.is_some_and(|profile| profile.has_transcript) && agent.transcript_path.is_some();
    if !has_transcript && !profile.is_some_and(|profile| profile.reports_answers) {
        let message = format!("Profile {} does not say how to read an agent's answer", agent.profile);
        return Err(Refused::new(400, "no_transcript", message).field("author"));
    }
    // The larger of the two numbers counts: the transcript may be unreadable.
    if facts.messages.unwrap_or(0).max(agent.prompts_and_answers) < FEWEST_MESSAGES {
        let message = "Nothing to hand off (no messages yet)";
        return Err(Refused::new(409, "nothing_to_hand_off", message));
    }
    Ok(())
}

fn check_salvage(tx: &Tx<'_>, agent: &Agent, profile: Option<&ProfileFacts>) -> Result<(), Refused> {
    if !profile.is_some_and(|profile| profile.has_transcript) {
        let message = format!("Profile {} does not say how to read a transcript", agent.profile);
        return Err(Refused::new(400, "no_transcript", message).field("author"));
    }
    if agent.transcript_path.is_none() {
        let message = "tasuki knows no transcript of the agent";
        return Err(Refused::new(400, "no_transcript", message)
            .field("author")
            .hint("write the document yourself: author provided"));
    }
    // An event names the file, and anybody who can write an event could name another agent's file.
    let is_anothers = |other: &&Agent| {
        other.agent_id != agent.agent_id && other.state.is_live() && other.transcript_path == agent.transcript_path
    };
    match tx.state.agents.values().find(is_anothers) {
        Some(other) => {
            let message = format!("The agent's transcript is also the transcript of agent {}", other.agent_id);
            Err(Refused::new(409, "transcript_of_another", message)
                .field("author")
                .hint("write the document yourself: author provided"))
        }
        None => Ok(()),
    }
}

/// The text that asks the agent for its document; empty if nobody is asked.
pub(crate) fn instruction(tx: &Tx<'_>, handoff: &Handoff) -> String {
    let values = Instruction {
        reason: &handoff.reason,
        file_path: &handoff.file_path,
        focus: handoff.focus.as_deref(),
        tasks: &handoff.tasks,
        urgent: handoff.ack.is_some(),
    };
    let prompts = &tx.state.settings.prompts;
    match handoff.author {
        Author::AgentReply => prompts.reply(&values),
        Author::AgentFile => prompts.instruction(&values),
        Author::Salvage | Author::Provided => String::new(),
    }
}

/// The effect that writes the document, if tasuki writes it.
pub(crate) fn composition(tx: &Tx<'_>, handoff: &Handoff) -> Option<Effect> {
    let agent = tx.agent(&handoff.agent_id);
    let transcript = agent.and_then(|agent| agent.transcript_path.clone());
    let profile = agent.map(|agent| agent.profile.clone()).unwrap_or_default();
    let asked = handoff.verdicts.rework.as_ref().or(handoff.verdicts.instruction.as_ref());
    let source = match handoff.author {
        Author::AgentFile => return None,
        Author::AgentReply => DocumentSource::Reply {
            profile,
            transcript,
            delivery_id: asked.map(|verdict| verdict.delivery_id.clone()),
            last_text: handoff.last_text.clone(),
        },
        Author::Salvage => {
            let head = tx.state.settings.prompts.salvage(&Salvage {
                agent_id: &handoff.agent_id.to_string(),
                persona: handoff.persona_slug.as_str(),
                reason: &handoff.reason,
                focus: handoff.focus.as_deref(),
                cwd: agent.and_then(|agent| agent.cwd.as_deref()),
            });
            DocumentSource::Transcript { profile, transcript: transcript.unwrap_or_default(), head }
        }
        Author::Provided => DocumentSource::Text(handoff.provided.clone().unwrap_or_default()),
    };
    let (persona, file_name) = (handoff.persona_slug.clone(), handoff.file_name.clone());
    // After a rework, the new answer replaces the file only if the file still holds the earlier answer: a person may
    // have changed it.
    let replaces = handoff.examined.sha256.clone().filter(|_| handoff.examined.reworks > 0);
    let replaces = replaces.filter(|_| handoff.author == Author::AgentReply);
    Some(Effect::ComposeDocument { persona, file_name, source, replaces })
}

/// The failure if there is no document, or an empty one. The message depends on the author.
pub(crate) fn no_document(tx: &Tx<'_>, id: HandoffId, code: &str) -> Next {
    let Some(handoff) = tx.handoff(&id) else { return Next::Stay };
    let is_empty = code == "document_empty";
    let (what, hint) = match (handoff.author, is_empty) {
        (Author::AgentFile, true) => ("The agent ended its turn, but the document is empty", AGENT_WRITES),
        (Author::AgentFile, false) => ("The agent ended its turn, but the document is not there", AGENT_WRITES),
        (Author::AgentReply, true) => {
            ("The agent ended its turn without an answer that tasuki could use", AGENT_WRITES)
        }
        (Author::AgentReply, false) => ("The agent's answer was not written to the file", AGENT_WRITES),
        (Author::Salvage, true) => ("The transcript holds nothing to salvage", PERSON_WRITES),
        (Author::Provided, true) => ("The document that was provided is empty", PERSON_WRITES),
        (Author::Salvage | Author::Provided, false) => ("The document is not there", PERSON_WRITES),
    };
    let message = format!("{what}: {}", handoff.file_path);
    Next::fail(code, message, hint)
}

/// The failure if the agent has ended before its document was recorded, or before it was asked for one.
pub(crate) fn author_ended(tx: &Tx<'_>, id: HandoffId) -> Next {
    let salvage = to_salvage(tx, id);
    // While the handoff waits for the agent, nobody has asked the agent for a document yet.
    if tx.handoff(&id).is_some_and(|handoff| handoff.step == Step::Waiting) {
        return Next::fail("agent_ended", "The agent has ended before it was asked for its document", &salvage);
    }
    let hint = format!("if the agent wrote the document, a retry accepts it; otherwise {salvage}");
    Next::fail("agent_ended", "The agent has ended before its document was recorded", &hint)
}

/// The hint for a handoff whose agent can't write any more. It names the agent by its id: a persona may have other
/// agents.
pub(crate) fn to_salvage(tx: &Tx<'_>, id: HandoffId) -> String {
    let agent = tx.handoff(&id).map(|handoff| handoff.agent_id.short()).unwrap_or_default();
    format!("hand the agent off without its help: tasuki handoff {agent} --author salvage")
}

const AGENT_WRITES: &str = "the agent is left running: have it write the document, then retry";
const PERSON_WRITES: &str = "write the document there yourself, then retry";
