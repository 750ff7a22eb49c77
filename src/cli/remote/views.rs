//! Asks another host for whole views. Its roster, which all hosts get, has only ids and states. A view, with its texts,
//! is sent only to the host that asks, if that host may see it.

use super::names::no_view;
use super::request::{self, RemoteRequest};
use crate::cli::error::CliError;
use crate::cli::view::{ViewFile, said};
use crate::cli::{ANSWER_SOON, CliSession};
use crate::config::Home;
use crate::contract::{AgentView, HandoffView};
use crate::core::host::HostName;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// The kind of such a request.
const VIEW: &str = "view";
/// How many agents of one lineage are asked for at most.
const MOST_AGENTS: usize = 40;

/// The answer to a request of the kind `view`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ViewAnswer {
    /// The view that was asked for by its id.
    view: Option<Value>,
    /// All views, where no id was given.
    views: Vec<Value>,
}

/// The whole view of a handoff on another host.
///
/// # Errors
/// `no_handoff`; as [`super::request::ask`].
pub fn handoff(session: &CliSession, host: &HostName, id: &str) -> Result<ViewFile<HandoffView>, CliError> {
    one(session, host, "handoffs", id)?.ok_or_else(|| no_view("handoff", id, host))
}

/// As [`handoff`], for a wait that asks again and again: the answer must come within `within`, and the other host does
/// not carry out a question that is older than that.
///
/// # Errors
/// As [`handoff`].
pub(super) fn look_at_handoff(
    home: &Home,
    host: &HostName,
    id: &str,
    within: Duration,
) -> Result<ViewFile<HandoffView>, CliError> {
    let fields = one_of("handoffs", id);
    let request = RemoteRequest { host, kind: VIEW, fields, patience: within, ttl: Some(within), parts: Vec::new() };
    let answer: ViewFile<ViewAnswer> = request::look(home, &request)?;
    viewed(&answer).ok_or_else(|| no_view("handoff", id, host))
}

/// The views of all handoffs that another host still has.
///
/// # Errors
/// As [`super::request::ask`].
pub fn handoffs(session: &CliSession, host: &HostName) -> Result<Vec<ViewFile<HandoffView>>, CliError> {
    let fields = Map::from_iter([("of".to_owned(), "handoffs".into())]);
    let answer: ViewFile<ViewAnswer> = session.ask_on(Some(host), VIEW, fields, ANSWER_SOON)?;
    Ok(answer.views.iter().cloned().map(ViewFile::from).collect())
}

/// The views of an agent on another host, its predecessors and its successors, as far as that host has them.
///
/// # Errors
/// `no_agent`; as [`super::request::ask`].
pub fn lineage(session: &CliSession, host: &HostName, id: &str) -> Result<Vec<ViewFile<AgentView>>, CliError> {
    let named: Option<ViewFile<AgentView>> = one(session, host, "agents", id)?;
    let mut agents = vec![named.ok_or_else(|| no_view("agent", id, host))?];
    let mut known = BTreeSet::from([id.to_owned()]);
    let mut looked = 0;
    while let Some(agent) = agents.get(looked).filter(|_| agents.len() < MOST_AGENTS) {
        looked += 1;
        let beside = [agent.previous_agent_id.clone(), agent.successor_id.clone()];
        for other in beside.into_iter().flatten().filter(|other| said(other.as_str()).is_some()) {
            if known.insert(other.clone())
                && let Some(found) = found(one(session, host, "agents", &other))?
            {
                agents.push(found);
            }
        }
    }
    Ok(agents)
}

/// A view that its host no longer has is left out.
fn found<T>(answer: Result<Option<T>, CliError>) -> Result<Option<T>, CliError> {
    match answer {
        Err(error) if error.code == "no_agent" || error.code == "no_view" => Ok(None),
        answer => answer,
    }
}

fn one<T>(session: &CliSession, host: &HostName, of: &str, id: &str) -> Result<Option<ViewFile<T>>, CliError>
where
    T: DeserializeOwned + Default,
{
    let answer: ViewFile<ViewAnswer> = session.ask_on(Some(host), VIEW, one_of(of, id), ANSWER_SOON)?;
    Ok(viewed(&answer))
}

fn one_of(of: &str, id: &str) -> Map<String, Value> {
    [("of", json!(of)), ("id", json!(id))].map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

fn viewed<T: DeserializeOwned + Default>(answer: &ViewAnswer) -> Option<ViewFile<T>> {
    answer.view.clone().filter(Value::is_object).map(ViewFile::from)
}
