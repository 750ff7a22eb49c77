//! Finds the agent, handoff or error that a person names as in `kai@b`: by id, unique prefix or persona, in the last
//! roster of host b. `kai@OWN`, with this host's own name, is the local agent `kai`.

use crate::cli::error::CliError;
use crate::cli::hosts;
use crate::cli::names::{self, NamedAgent, can_be_id, not_found, pick_agent, pick_id};
use crate::cli::view::{self, ViewFile, said, shown};
use crate::config::Home;
use crate::contract::HostView;
use crate::core::host::HostName;
use crate::core::text::sanitise;
use std::fmt;

/// The id of an agent, handoff or error, or the slug of a persona, and the host that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its id or slug on that host.
    pub id: String,
    /// The other host; none for something on this host.
    pub host: Option<HostName>,
}

impl Named {
    /// Something on this host.
    #[must_use]
    pub fn here(id: String) -> Named {
        Named { id, host: None }
    }

    /// Something else on the same host.
    #[must_use]
    pub fn beside(&self, id: String) -> Named {
        Named { id, host: self.host.clone() }
    }
}

/// As a person would type it: the id, with `@host` for another host.
impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) => write!(f, "{}@{host}", self.id),
            None => f.write_str(&self.id),
        }
    }
}

/// Finds the agent that `text` names, on any host.
///
/// # Errors
/// `no_agent`, `ambiguous`, `no_host`, `no_bridge`, `no_fleet`.
pub fn agent(home: &Home, text: &str) -> Result<Named, CliError> {
    match place(home, text)? {
        (name, None) => names::agent(home, name).map(Named::here),
        (name, Some(there)) => there.agent(name),
    }
}

/// Finds the agent that `text` names on the host `host`, or on this host if `host` is none. On host b, `kai` and
/// `kai@b` name the same agent.
///
/// # Errors
/// As [`agent`]; a usage error if `text` names a third host.
pub fn agent_on(home: &Home, host: Option<&HostName>, text: &str) -> Result<String, CliError> {
    let Some(host) = host else { return names::agent(home, text) };
    match text.rsplit_once('@') {
        Some((name, other)) if other == host.as_str() => Remote::find(home, host)?.agent(name),
        Some((_, other)) => {
            let other = sanitise(other);
            return Err(CliError::usage(format!(
                "Both agents must be on one host: {host} is not {other}. Nothing was sent."
            )));
        }
        None => Remote::find(home, host)?.agent(text),
    }
    .map(|found| found.id)
}

/// Finds the handoff that `text` names, on any host.
///
/// # Errors
/// `no_handoff`, `ambiguous`, `no_host`, `no_bridge`, `no_fleet`.
pub fn handoff(home: &Home, text: &str) -> Result<Named, CliError> {
    match place(home, text)? {
        (name, None) => names::handoff(home, name).map(Named::here),
        (name, Some(there)) => there.handoff(name),
    }
}

/// Finds the failure that `text` names, on any host.
///
/// # Errors
/// `no_error`, `ambiguous`, `no_host`, `no_bridge`, `no_fleet`.
pub fn error(home: &Home, text: &str) -> Result<Named, CliError> {
    match place(home, text)? {
        (name, None) => {
            let known = view::stems(&home.errors())?;
            let found = pick_id("error", name, &known);
            found.map(Named::here).map_err(|error| names::with_hint(error, "`tasuki errors` lists the failures."))
        }
        (name, Some(there)) => there.error(name),
    }
}

/// A persona's slug, and the other host if one is named.
///
/// # Errors
/// `no_host`, `no_bridge`, `no_fleet`.
pub fn persona(home: &Home, text: &str) -> Result<Named, CliError> {
    let (slug, there) = place(home, text)?;
    Ok(Named { id: slug.to_owned(), host: there.map(|there| there.name) })
}

/// Splits a text such as `kai@b` into the name, and the other host if one is named.
fn place<'t>(home: &Home, text: &'t str) -> Result<(&'t str, Option<Remote>), CliError> {
    let (name, host) = hosts::split(home, text)?;
    let Some(host) = host else { return Ok((name, None)) };
    hosts::require_bridge_to_send(home)?;
    let host: HostName = host.parse().map_err(|_| hosts::no_host(host))?;
    Ok((name, Some(Remote::find(home, &host)?)))
}

/// Another host, and its last roster.
struct Remote {
    name: HostName,
    view: ViewFile<HostView>,
}

impl Remote {
    fn find(home: &Home, name: &HostName) -> Result<Remote, CliError> {
        let view = hosts::all(home)?.named(name)?.clone();
        Ok(Remote { name: name.clone(), view })
    }

    fn agent(&self, text: &str) -> Result<Named, CliError> {
        if text.parse::<crate::core::id::AgentId>().is_ok() {
            return Ok(self.named(text.to_ascii_lowercase()));
        }
        let found = pick_agent(text, &agents(&self.view), |slug| format!("tasuki agent create {slug}"));
        found.map(|id| self.named(id)).map_err(|error| self.unknown(error, "agents"))
    }

    fn handoff(&self, text: &str) -> Result<Named, CliError> {
        if text.parse::<crate::core::id::HandoffId>().is_ok() {
            return Ok(self.named(text.to_ascii_lowercase()));
        }
        let all = self.view.handoffs.iter().filter(|handoff| can_be_id(&handoff.handoff_id));
        let of_persona = all.clone().filter(|handoff| handoff.persona.as_deref() == Some(text));
        if let Some(last) = of_persona.max_by_key(|handoff| &handoff.since) {
            return Ok(self.named(last.handoff_id.clone()));
        }
        let ids: Vec<String> = all.map(|handoff| handoff.handoff_id.clone()).collect();
        let found = pick_id("handoff", text, &ids);
        found.map(|id| self.named(id)).map_err(|error| self.unknown(error, "handoffs"))
    }

    fn error(&self, text: &str) -> Result<Named, CliError> {
        let ids = self.view.errors.iter().map(|error| error.error_id.clone()).filter(|id| can_be_id(id));
        let ids: Vec<String> = ids.collect();
        let found = pick_id("error", text, &ids);
        found.map(|id| self.named(id)).map_err(|error| self.unknown(error, "errors"))
    }

    fn named(&self, id: String) -> Named {
        Named { id, host: Some(self.name.clone()) }
    }

    /// Adds to an error on which host nothing was found, or several. `list` is the command that lists such things.
    fn unknown(&self, error: CliError, list: &str) -> CliError {
        let message = format!("{} on the host {}", error.message.trim_end_matches('.'), self.name);
        match error.code.as_str() {
            "ambiguous" => CliError { message: format!("{message}."), ..error },
            _ => CliError { message, ..error }
                .hint(format!("`tasuki {list} --all-hosts` lists the {list} of all hosts.")),
        }
    }
}

/// The agents in the roster of a host. A roster has only living agents, and no panes.
fn agents(host: &HostView) -> Vec<NamedAgent> {
    let named = host.agents.iter().filter_map(|agent| {
        Some(NamedAgent {
            id: Some(agent.agent_id.as_str()).filter(|id| can_be_id(id))?.to_owned(),
            slug: said(agent.persona.as_deref()).map(str::to_owned),
            living: true,
            pane: None,
            about: shown(agent.state.as_str()),
        })
    });
    named.collect()
}

/// The refusal of an agent or handoff whose view another host does not have.
#[must_use]
pub(super) fn no_view(what: &str, id: &str, host: &HostName) -> CliError {
    let error = not_found(what, id);
    CliError { message: format!("{} on the host {host}", error.message), ..error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::fleet::{HostAgent, HostHandoff};
    use serde_json::json;

    fn there(view: &HostView) -> Remote {
        Remote { name: "b".parse().expect("a host"), view: json!(view).into() }
    }

    fn id(of: &Named) -> &str {
        assert_eq!(of.host.as_ref().map(HostName::as_str), Some("b"));
        &of.id
    }

    #[test]
    fn an_agent_is_found_by_its_persona_or_the_beginning_of_its_id() {
        let agent = |id: &str, persona: &str| HostAgent {
            agent_id: id.to_owned(),
            persona: Some(persona.to_owned()),
            state: "idle".to_owned(),
            ..HostAgent::default()
        };
        let agents = vec![agent("aaaa1111-0", "kai"), agent("bbbb1111-0", "mia"), agent("bbbb2222-0", "mia")];
        let there = there(&HostView { agents, ..HostView::default() });
        assert_eq!(there.agent("kai").as_ref().map(id), Ok("aaaa1111-0"));
        assert_eq!(there.agent("BBBB2").as_ref().map(id), Ok("bbbb2222-0"));
        let whole = "11111111-1111-4111-8111-11111111111A";
        assert_eq!(
            there.agent(whole).as_ref().map(id),
            Ok("11111111-1111-4111-8111-11111111111a"),
            "it may have ended"
        );
        let two = there.agent("mia").expect_err("there are two");
        assert_eq!((two.code.as_str(), two.message.as_str()), ("ambiguous", "\"mia\" matches 2 agents on the host b."));
        assert!(two.hint.is_some_and(|hint| hint.contains("bbbb1111-0  mia  idle")));
        let none = there.agent("%1").expect_err("a roster has no panes");
        assert_eq!((none.code.as_str(), none.message.as_str()), ("no_agent", "Agent not found: \"%1\" on the host b"));
    }

    #[test]
    fn a_persona_names_its_last_handoff() {
        let handoff = |id: &str, since: &str| HostHandoff {
            handoff_id: id.to_owned(),
            persona: Some("kai".to_owned()),
            since: format!("2026-11-25T12:00:{since}.000Z"),
            ..HostHandoff::default()
        };
        let handoffs = vec![
            handoff("aaaa", "02"),
            handoff("bbbb", "03"),
            handoff("cccc", "01"),
            // Not what an id can be: it would get into commands that a person may copy into a shell.
            handoff("$(id)", "04"),
        ];
        let there = there(&HostView { handoffs, ..HostView::default() });
        assert_eq!(there.handoff("kai").as_ref().map(id), Ok("bbbb"));
        assert_eq!(there.handoff("c").as_ref().map(id), Ok("cccc"));
        for unknown in ["mia", "$"] {
            assert_eq!(there.handoff(unknown).map_err(|error| error.code), Err("no_handoff".to_owned()), "{unknown}");
        }
        assert_eq!(there.handoff("c").expect("one").to_string(), "cccc@b");
    }
}
