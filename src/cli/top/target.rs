//! The agent, handoff and failure that a row leads to; the actions on the row concern these. Pure.

use super::choice::Row;
use super::keys::RowAction;
use super::model::{AgentRow, Model};
use crate::cli::home_option;
use crate::cli::names::can_be_id;
use crate::core::id::Slug;

/// The agent, handoff and failure that an action would concern.
pub(super) struct ActionTarget<'a> {
    /// The agent that is handed off, or whose pane is shown.
    pub(super) agent: Option<&'a AgentRow>,
    pub(super) handoff: Option<String>,
    pub(super) failure: Option<String>,
    pub(super) code: String,
    /// The host that the agent or the handoff is on, if it is not this host.
    pub(super) host: Option<&'a str>,
}

impl<'a> ActionTarget<'a> {
    /// The target of a row: agent, handoff and failure lead to each other.
    pub(super) fn of(row: &Row, model: &'a Model) -> Self {
        let living = |id: &String| model.agent(id).filter(|agent| agent.living);
        let (agent, handoff, failure) = match row {
            Row::Agent(id) => {
                let agent = model.agent(id);
                (agent, agent.and_then(|agent| model.handoff_of(agent)), None)
            }
            Row::Handoff(id) | Row::Document(id) => {
                let handoff = model.handoff(id);
                let successor = handoff.and_then(|handoff| handoff.successor.as_ref()).and_then(living);
                (successor.or_else(|| handoff.and_then(|handoff| model.agent(&handoff.agent))), handoff, None)
            }
            Row::Failure(id) => {
                let failure = model.failures.iter().find(|failure| failure.id == *id);
                let agent = failure.and_then(|failure| model.agent(failure.agent.as_deref()?));
                (agent, failure.and_then(|failure| model.handoff(failure.handoff.as_deref()?)), failure)
            }
            Row::Work(id) => {
                let item = model.work.iter().find(|item| item.id == *id);
                (item.and_then(|item| model.agent(item.owner.as_deref()?)), None, None)
            }
        };
        let fault = handoff.and_then(|handoff| handoff.error.as_ref());
        let of_agent = || {
            let id = agent.map(|agent| agent.id.as_str());
            model.failures.iter().find(|failure| id.is_some() && failure.agent.as_deref() == id)
        };
        let by_fault = || model.failures.iter().find(|failure| fault.is_some_and(|fault| fault.id == failure.id));
        let failure = failure.or_else(by_fault).or_else(of_agent);
        let of_agent = agent.and_then(|agent| agent.host.as_ref());
        let host = handoff.and_then(|handoff| handoff.host.as_ref()).or(of_agent);
        ActionTarget {
            agent,
            host: host.map(|host| host.name.as_str()),
            handoff: handoff.map(|handoff| handoff.id.clone()),
            failure: failure.map(|failure| failure.id.clone()),
            code: failure.map(|failure| failure.code.clone()).unwrap_or_default(),
        }
    }

    /// The refusal of an action if the row is of another host. It names the command that asks that host, if there is
    /// one.
    pub(super) fn elsewhere(&self, action: RowAction, model: &Model) -> Option<String> {
        let host = self.host?;
        // Ids and personas are that host's own words. A person may copy the command into a shell.
        let handoff = self.handoff.as_deref().filter(|id| can_be_id(id));
        let handoff = handoff.map_or("HANDOFF", |id| model.short(id));
        let named = self.agent.and_then(|agent| {
            let persona = agent.persona.as_deref().filter(|slug| slug.parse::<Slug>().is_ok());
            let id = Some(agent.id.as_str()).filter(|id| can_be_id(id));
            persona.or_else(|| id.map(|id| model.short(id)))
        });
        let agent = named.unwrap_or("AGENT");
        let command = match action {
            RowAction::HandOff => format!("tasuki handoff {agent}@{host}"),
            RowAction::Cancel => format!("tasuki cancel {handoff}@{host}"),
            RowAction::Retry => format!("tasuki retry {handoff}@{host}"),
            RowAction::Accept => format!("tasuki accept {handoff}@{host}"),
            RowAction::Dismiss | RowAction::Jump => {
                return Some(format!("This row is of the host {host}: that can only be done there."));
            }
        };
        Some(format!("This row is of the host {host}. Ask that host: {}", home_option::fit(&command)))
    }
}
