//! Answers with a handoff's document, as it was recorded, and with its facts.

use super::app::ServeApp;
use super::problem::{Problem, json};
use super::views::{Id, blocking};
use crate::cli::documents;
use crate::cli::error::CliError;
use crate::cli::past;
use crate::cli::view::ViewFile;
use crate::config::Home;
use crate::contract::HandoffView;
use crate::core::id::HandoffId;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Response, header};
use axum::response::IntoResponse;
use std::sync::Arc;

/// `GET /api/handoffs/<id>/document`: the text of the document. If the document is recorded and its file has changed
/// since, the answer is 409.
pub(super) async fn document(State(app): State<Arc<ServeApp>>, id: Id) -> Response<Body> {
    about(app, id, |home, seen| {
        let document = documents::read(home, seen).map_err(problem)?;
        if let Some(warning) = documents::warning(seen, &document) {
            return Err(Problem::new(409, documents::CHANGED, warning.trim_end_matches('.'))
                .hint("tasuki handoffs show HANDOFF --document shows the file as it is now"));
        }
        Ok(text(document.text, MARKDOWN))
    })
    .await
}

/// `GET /api/handoffs/<id>/facts`: the facts, as in the view; as text if the client asks for that.
pub(super) async fn facts(State(app): State<Arc<ServeApp>>, id: Id, headers: HeaderMap) -> Response<Body> {
    let text_type = text_type(&headers);
    about(app, id, move |_, seen| match text_type {
        Some(text_type) => Ok(text(documents::facts_text(seen).map_err(problem)?, text_type)),
        None => Ok(json(200, &serde_json::json!(documents::facts(seen).map_err(problem)?))),
    })
    .await
}

const MARKDOWN: &str = "text/markdown; charset=utf-8";

/// The type of text that a client asks for before JSON or anything else; none if it asks for no text.
fn text_type(headers: &HeaderMap) -> Option<&'static str> {
    let accepted = headers.get(header::ACCEPT)?.to_str().ok()?;
    let types = accepted.split(',').map(|accepted| accepted.split(';').next().unwrap_or_default().trim());
    match types.map(str::to_ascii_lowercase).find(|name| name.starts_with("text/") || name.contains("json"))?.as_str() {
        "text/markdown" => Some(MARKDOWN),
        "text/plain" => Some("text/plain; charset=utf-8"),
        _ => None,
    }
}

fn text(text: String, text_type: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(text_type));
    response
}

/// Reads the view of a handoff, and answers from it, on a thread where waiting for a disk blocks no other client.
async fn about(
    app: Arc<ServeApp>,
    id: Id,
    answer: impl FnOnce(&Home, &HandoffView) -> Result<Response<Body>, Problem> + Send + 'static,
) -> Response<Body> {
    let Some(id) = id.ok().and_then(|Path(id)| id.parse::<HandoffId>().ok()) else { return unknown().into_response() };
    blocking(move || {
        let seen: Option<ViewFile<HandoffView>> = past::handoff(&app.home, &id.to_string())?;
        let answered = seen.ok_or_else(unknown).and_then(|seen| answer(&app.home, &seen));
        Ok(answered.unwrap_or_else(IntoResponse::into_response))
    })
    .await
}

fn unknown() -> Problem {
    Problem::new(404, "no_handoff", "Handoff not found")
}

fn problem(error: CliError) -> Problem {
    let status = match error.code.as_str() {
        documents::NO_DOCUMENT | documents::NO_FACTS => 404,
        documents::CHANGED | documents::UNSAFE => 409,
        _ => return Problem::from(error),
    };
    let said = Problem::new(status, &error.code, error.message.trim_end_matches('.'));
    match error.hint {
        Some(hint) => said.hint(hint),
        None => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_text_for_those_who_ask_for_text() {
        for (accept, expected) in [
            (None, None),
            (Some("*/*"), None),
            (Some("application/json, text/plain, */*"), None),
            (Some("text/html,application/xhtml+xml,*/*;q=0.8"), None),
            (Some("Text/Plain"), Some("text/plain; charset=utf-8")),
            (Some("text/markdown;q=0.9, application/json;q=0.1"), Some(MARKDOWN)),
            (Some(""), None),
        ] {
            let value = accept.map(|accept| (header::ACCEPT, HeaderValue::from_static(accept)));
            assert_eq!(text_type(&value.into_iter().collect()), expected, "{accept:?}");
        }
    }

    #[test]
    fn each_reason_has_its_status() {
        for (code, status) in [
            (documents::NO_DOCUMENT, 404),
            (documents::NO_FACTS, 404),
            (documents::CHANGED, 409),
            (documents::UNSAFE, 409),
            ("file", 500),
        ] {
            let response = problem(CliError::refused(code, "It is so.")).into_response();
            assert_eq!(response.status().as_u16(), status, "{code}");
        }
    }
}
