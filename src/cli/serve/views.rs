//! Answers reads: the views and the error files as they are, in lists of limited length.

use super::app::ServeApp;
use super::problem::{Problem, json};
use super::query::{ListQuery, Parameters};
use crate::cli::agents::place;
use crate::cli::error::CliError;
use crate::cli::past;
use crate::cli::persona;
use crate::cli::unread::Unread;
use crate::cli::view::{self, ViewFile};
use crate::cli::work::read as items;
use crate::config::Home;
use crate::contract::{AgentView, ErrorFile, HandoffView, WorkBrief};
use crate::core::id::{AgentId, HandoffId, ItemId};
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::Response;
use axum::response::IntoResponse;
use serde_json::Value;
use std::sync::Arc;

/// The id in an address.
pub(super) type Id = Result<Path<String>, PathRejection>;

/// `GET /api/agents`: living agents, and with `all=true` also the latest ended ones; with `session` or `pane` only
/// those that are there.
pub(super) async fn agents(State(app): State<Arc<ServeApp>>, RawQuery(query): RawQuery) -> Response<Body> {
    list(app, query, Parameters::OfAgents, |home, asked| {
        let mut agents: Vec<ViewFile<AgentView>> = view::readable(&home.agent_views())?;
        agents.retain(|agent| (asked.all || agent.is_living()) && asked.is_there(agent));
        agents.sort_by_cached_key(|agent| (agent.is_living(), place(agent)));
        agents.drain(..agents.len().saturating_sub(asked.limit));
        agents.sort_by_cached_key(|agent| place(agent));
        Ok(agents.iter().map(ViewFile::json).collect())
    })
    .await
}

/// `GET /api/handoffs`: the handoffs that changed last, the newest first.
pub(super) async fn handoffs(State(app): State<Arc<ServeApp>>, RawQuery(query): RawQuery) -> Response<Body> {
    list(app, query, Parameters::Limit, |home, asked| {
        let handoffs: Vec<ViewFile<HandoffView>> = view::latest_readable(&home.handoff_views(), asked.limit)?;
        Ok(handoffs.iter().map(ViewFile::json).collect())
    })
    .await
}

/// `GET /api/errors`: the failures that nobody has dismissed, the newest first.
pub(super) async fn errors(State(app): State<Arc<ServeApp>>, RawQuery(query): RawQuery) -> Response<Body> {
    list(app, query, Parameters::Limit, |home, asked| {
        let errors: Vec<ViewFile<ErrorFile>> = view::latest_readable(&home.errors(), asked.limit)?;
        Ok(errors.iter().map(ViewFile::json).collect())
    })
    .await
}

/// `GET /api/work`: open work items, and with `all=true` all of them, by priority.
pub(super) async fn work(State(app): State<Arc<ServeApp>>, RawQuery(query): RawQuery) -> Response<Body> {
    list(app, query, Parameters::All, |home, asked| {
        let ids = if asked.all { items::all_ids(home)? } else { items::open_ids(home)? };
        let mut found: Vec<(String, WorkBrief)> = items::views(home, &ids, &mut Unread::default());
        found.retain(|(_, item)| asked.all || item.is_open());
        found.sort_by_cached_key(|(_, item)| item.place());
        found.truncate(asked.limit);
        Ok(found.iter().filter_map(|(text, _)| serde_json::from_str(text).ok()).collect())
    })
    .await
}

/// `GET /api/personas`: the personas, by their slugs. A persona whose `persona.toml` can't be read is listed without
/// the fields from that file.
pub(super) async fn personas(State(app): State<Arc<ServeApp>>, RawQuery(query): RawQuery) -> Response<Body> {
    list(app, query, Parameters::Limit, |home, asked| {
        let mut found = persona::all(home, |_| {})?;
        found.truncate(asked.limit);
        Ok(found.iter().filter_map(|persona| serde_json::to_value(persona).ok()).collect())
    })
    .await
}

/// `GET /api/agents/<id>`. A view that was removed for its age is written again, unless the query says `old=false`.
pub(super) async fn agent(State(app): State<Arc<ServeApp>>, RawQuery(query): RawQuery, id: Id) -> Response<Body> {
    let read = if with_old(query.as_deref()) { past::agent } else { view::agent };
    one(app, id, ("no_agent", "Agent not found"), move |home, id| {
        let Ok(id) = id.parse::<AgentId>() else { return Ok(None) };
        Ok(read(home, &id.to_string())?.as_ref().map(ViewFile::json))
    })
    .await
}

/// `GET /api/handoffs/<id>`, as [`agent`].
pub(super) async fn handoff(State(app): State<Arc<ServeApp>>, RawQuery(query): RawQuery, id: Id) -> Response<Body> {
    let read = if with_old(query.as_deref()) { past::handoff } else { view::handoff };
    one(app, id, ("no_handoff", "Handoff not found"), move |home, id| {
        let Ok(id) = id.parse::<HandoffId>() else { return Ok(None) };
        Ok(read(home, &id.to_string())?.as_ref().map(ViewFile::json))
    })
    .await
}

/// Whether views that were removed for their age are written again. A client that follows the changes must not ask for
/// that: it is told of the removal too.
fn with_old(query: Option<&str>) -> bool {
    query.is_none_or(|query| query.split('&').all(|part| part != "old=false"))
}

/// `GET /api/work/<id>`.
pub(super) async fn item(State(app): State<Arc<ServeApp>>, id: Id) -> Response<Body> {
    one(app, id, ("no_item", "Work item not found"), |home, id| {
        let Ok(id) = id.parse::<ItemId>() else { return Ok(None) };
        Ok(past::item(home, &id.to_string())?.as_ref().map(ViewFile::json))
    })
    .await
}

/// `GET /api/sidecar`: the sidecar's view. A sidecar that has ended properly has none.
pub(super) async fn sidecar(State(app): State<Arc<ServeApp>>) -> Response<Body> {
    let none = ("no_sidecar", "No sidecar runs");
    one(app, Ok(Path(String::new())), none, |home, _| Ok(view::sidecar(home)?.as_ref().map(ViewFile::json))).await
}

/// Answers with a list. `read` runs on a thread where waiting for a disk blocks no other client.
pub(super) async fn list(
    app: Arc<ServeApp>,
    query: Option<String>,
    parameters: Parameters,
    read: impl FnOnce(&Home, &ListQuery) -> Result<Vec<Value>, CliError> + Send + 'static,
) -> Response<Body> {
    let asked = match ListQuery::read(query.as_deref(), parameters) {
        Ok(asked) => asked,
        Err(problem) => return problem.into_response(),
    };
    blocking(move || Ok(json(200, &Value::Array(read(&app.home, &asked)?)))).await
}

async fn one(
    app: Arc<ServeApp>,
    id: Id,
    missing: (&'static str, &'static str),
    read: impl FnOnce(&Home, &str) -> Result<Option<Value>, CliError> + Send + 'static,
) -> Response<Body> {
    let missing = Problem::new(404, missing.0, missing.1);
    let Ok(Path(id)) = id else { return missing.into_response() };
    blocking(move || Ok(read(&app.home, &id)?.map_or_else(|| missing.into_response(), |view| json(200, &view)))).await
}

/// Runs `work` on a thread where waiting for a disk blocks no other client.
pub(super) async fn blocking(
    work: impl FnOnce() -> Result<Response<Body>, CliError> + Send + 'static,
) -> Response<Body> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => Problem::from(error).into_response(),
        Err(error) => Problem::new(500, "failed", format!("Reading the view failed: {error}")).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_views_are_left_alone_only_if_the_query_says_so() {
        assert!([None, Some(""), Some("old=true"), Some("x=old=false")].into_iter().all(with_old));
        assert!(["old=false", "x=1&old=false"].into_iter().all(|query| !with_old(Some(query))));
    }
}
