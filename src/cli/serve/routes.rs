//! The addresses of the API, and the function that answers each.

use super::app::ServeApp;
use super::problem::{Problem, json};
use super::{ask, documents, events, guard, health, host_requests, hosts, login, openapi, page, views};
use axum::Router;
use axum::body::Body;
use axum::http::Response;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use std::sync::Arc;

/// All addresses, behind the guard.
pub(super) fn router(app: Arc<ServeApp>) -> Router {
    Router::new()
        .merge(page::routes(app.all_hosts))
        .route(login::PROOF, get(login::prove))
        .route(login::SESSION, post(login::enter))
        .route("/api/agents", get(views::agents))
        .route("/api/agents/{id}", get(views::agent))
        .route("/api/agents/{id}/handoff", post(ask::handoff))
        .route("/api/handoffs", get(views::handoffs))
        .route("/api/handoffs/{id}", get(views::handoff))
        .route("/api/handoffs/{id}/document", get(documents::document))
        .route("/api/handoffs/{id}/facts", get(documents::facts))
        .route("/api/handoffs/{id}/rework", post(ask::rework))
        .route("/api/work", get(views::work))
        .route("/api/work/{id}", get(views::item))
        .route("/api/errors", get(views::errors))
        .route("/api/needs", get(health::needs))
        .route("/api/health", get(health::health))
        .route("/api/personas", get(views::personas))
        .route("/api/sidecar", get(views::sidecar))
        .route("/api/events", get(events::listen))
        .route("/api/requests", post(ask::any))
        .route("/api/requests/{id}", get(ask::result))
        .route("/api/hosts", get(hosts::all))
        .route("/api/hosts/{host}/agents", get(hosts::agents))
        .route("/api/hosts/{host}/handoffs", get(hosts::handoffs))
        .route("/api/hosts/{host}/errors", get(hosts::errors))
        .route("/api/hosts/{host}/requests", post(host_requests::ask))
        .route("/api/hosts/{host}/requests/{id}", get(host_requests::result))
        .route("/api/openapi.json", get(described))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(&app), guard::guard))
        .with_state(app)
}

async fn described() -> Response<Body> {
    json(200, &openapi::document())
}

async fn unknown() -> Response<Body> {
    Problem::new(404, "not_found", "There is nothing at this address")
        .hint("GET /api/openapi.json lists all addresses")
        .into_response()
}

async fn wrong_method() -> Response<Body> {
    Problem::new(405, "bad_method", "This address does not accept this method").into_response()
}
