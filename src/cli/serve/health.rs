//! Answers what waits for a person, and whether the sidecar lives. Both need the token, like every other address of the
//! API, because they say how busy this home is.

use super::app::ServeApp;
use super::problem::json;
use super::query::Parameters;
use super::views::{blocking, list};
use crate::cli::client::{Pulse, SidecarPresence};
use crate::cli::{needs, view};
use crate::clock::Clock;
use crate::contract::sidecar::Health;
use crate::contract::{SidecarView, Word};
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::Response;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

/// What `GET /api/health` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct HealthReport {
    /// Whether a sidecar answers requests. If it does not, the status is 503.
    alive: bool,
    /// `running`, or `degraded` while the sidecar can't do all of its work; null if none answers.
    #[schemars(with = "Option<Health>")]
    state: Option<Word<Health>>,
    /// How long ago the sidecar wrote its last heartbeat, in milliseconds; null if none has run here, or the last one
    /// ended properly.
    heartbeat_age_ms: Option<i64>,
    /// The sidecar's version; null if none has run here, or the last one ended properly.
    version: Option<String>,
    /// How many agents, handoffs, errors and needs there are.
    counts: Counts,
}

/// How many of each there are.
#[derive(Debug, Serialize, JsonSchema)]
struct Counts {
    /// Agents that live.
    agents: usize,
    /// Handoffs that run.
    handoffs: usize,
    /// Failures that nobody has dismissed, up to 1,000.
    errors: usize,
    /// Things that wait for a person: the length of `/api/needs`.
    needs: usize,
}

/// `GET /api/needs`: what waits for a person, the most urgent first.
pub(super) async fn needs(State(app): State<Arc<ServeApp>>, RawQuery(query): RawQuery) -> Response<Body> {
    list(app, query, Parameters::Limit, |home, asked| {
        let needs = needs::read(home)?.needs;
        Ok(needs.iter().take(asked.limit).map(|need| serde_json::json!(need)).collect())
    })
    .await
}

/// `GET /api/health`: 200 if a sidecar answers requests, else 503.
pub(super) async fn health(State(app): State<Arc<ServeApp>>) -> Response<Body> {
    blocking(move || {
        let seen = Pulse::new(&app.home).check();
        let found = needs::read(&app.home)?;
        let view = view::sidecar(&app.home)?;
        let counts =
            Counts { agents: found.agents, handoffs: found.handoffs, errors: found.errors, needs: found.needs.len() };
        let report = report(seen, view.as_deref(), counts, Clock::new().now().wall_ms);
        Ok(json(if report.alive { 200 } else { 503 }, &serde_json::json!(report)))
    })
    .await
}

fn report(seen: SidecarPresence, view: Option<&SidecarView>, counts: Counts, now_ms: i64) -> HealthReport {
    let (alive, age_ms) = match seen {
        SidecarPresence::Alive { heartbeat_ms, .. } => (true, Some(now_ms.saturating_sub(heartbeat_ms))),
        SidecarPresence::Stale { age_ms, .. } => (false, Some(age_ms)),
        SidecarPresence::None => (false, None),
    };
    HealthReport {
        alive,
        state: view.filter(|_| alive).map(|view| view.state.clone()),
        heartbeat_age_ms: age_ms,
        version: view.map(|view| view.version.clone()).filter(|version| !version.is_empty()),
        counts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn reported(seen: SidecarPresence, view: Option<&SidecarView>) -> Value {
        json!(report(seen, view, Counts { agents: 2, handoffs: 1, errors: 0, needs: 3 }, 10_000))
    }

    #[test]
    fn a_silent_sidecar_is_not_alive_and_without_a_sidecar_there_is_no_age() {
        let view = SidecarView {
            version: "0.1.0".to_owned(),
            state: Health::Degraded.into(),
            problem: Some("tmux does not answer".to_owned()),
            ..SidecarView::default()
        };
        let counts = json!({"agents": 2, "handoffs": 1, "errors": 0, "needs": 3});
        assert_eq!(
            reported(SidecarPresence::Alive { pid: 7, heartbeat_ms: 8_000 }, Some(&view)),
            json!({"alive": true, "state": "degraded", "heartbeat_age_ms": 2_000, "version": "0.1.0", "counts": counts})
        );
        let stale = SidecarPresence::Stale { pid: 7, age_ms: 60_000, heartbeat_ms: -50_000 };
        let silent = reported(stale, Some(&view));
        assert_eq!((&silent["alive"], &silent["state"]), (&json!(false), &json!(null)));
        assert_eq!((&silent["heartbeat_age_ms"], &silent["version"]), (&json!(60_000), &json!("0.1.0")));
        let none = reported(SidecarPresence::None, None);
        assert_eq!(
            (&none["alive"], &none["heartbeat_age_ms"], &none["version"]),
            (&json!(false), &json!(null), &json!(null))
        );
    }
}
