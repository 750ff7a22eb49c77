//! Answers with what is known of the fleet's hosts: the files that the bridge writes, each with the host's state at
//! this moment.

use super::app::ServeApp;
use super::problem::{Problem, json};
use super::query::{ListQuery, Parameters};
use super::views::{Id, blocking};
use crate::cli::error::CliError;
use crate::cli::hosts::{self, FleetHosts};
use crate::clock::Clock;
use crate::config::Home;
use crate::contract::fleet::{HOST_STALE_MS, HostAgent, HostError, HostHandoff, HostSidecar};
use crate::contract::{HostState, HostView, Word};
use crate::core::host::HostName;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::Response;
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// A host without its entries: what `GET /api/hosts` lists, and the data of an event of type `host`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct HostSummary {
    /// The host's name.
    pub host: String,
    /// What is known of it at this moment. Unless it is `live`, everything else is as old as `seen_at` says.
    #[schemars(with = "HostState")]
    pub state: Word<HostState>,
    /// Whether it is this host.
    pub own: bool,
    /// The id of its home.
    pub home_id: String,
    /// The version of its bridge.
    pub version: String,
    /// Its sidecar.
    pub sidecar: HostSidecar,
    /// How much there is.
    pub counts: HostCounts,
    /// How many entries its roster leaves out because it would be too large.
    pub more: u64,
    /// When its bridge started: UTC, by that host's clock.
    pub started_at: String,
    /// When the server stored its roster, by the server's clock; empty if the host never sent one.
    pub told_at: String,
    /// When this host's bridge last read that roster: UTC, by this host's clock.
    pub seen_at: String,
    /// Since when the host has sent no roster, by this host's clock; null while it is live.
    pub away_since: Option<String>,
    /// False if the roster under its name is not signed by it, or is older than a roster that was seen before.
    pub authentic: bool,
}

/// How many entries a host's roster has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct HostCounts {
    /// Agents that live.
    pub agents: usize,
    /// Handoffs that have not ended.
    pub handoffs: usize,
    /// Errors that nobody has dismissed.
    pub errors: usize,
    /// Personas.
    pub personas: usize,
}

/// The agents of a host: what `GET /api/hosts/<name>/agents` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct HostAgents {
    #[serde(flatten)]
    about: RosterAge,
    /// Its agents that live.
    agents: Vec<HostAgent>,
}

/// The handoffs of a host: what `GET /api/hosts/<name>/handoffs` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct HostHandoffs {
    #[serde(flatten)]
    about: RosterAge,
    /// Its handoffs that are open, and the last that have ended.
    handoffs: Vec<HostHandoff>,
}

/// The errors of a host: what `GET /api/hosts/<name>/errors` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct HostErrors {
    #[serde(flatten)]
    about: RosterAge,
    /// Its errors that nobody has dismissed.
    errors: Vec<HostError>,
}

/// The host that the entries are of, and how old they are.
#[derive(Debug, Serialize, JsonSchema)]
struct RosterAge {
    /// The host's name.
    host: String,
    /// What is known of it at this moment.
    #[schemars(with = "HostState")]
    state: Word<HostState>,
    /// When this host's bridge last read its roster: UTC, by this host's clock.
    seen_at: String,
    /// Since when the host has sent no roster; null while it is live.
    away_since: Option<String>,
}

impl HostSummary {
    /// The summary of a host of this fleet.
    pub(super) fn of(host: &HostView, among: &FleetHosts) -> HostSummary {
        let open = host.handoffs.iter().filter(|handoff| handoff.is_open()).count();
        let counts = HostCounts {
            agents: host.agents.len(),
            handoffs: open,
            errors: host.errors.len(),
            personas: host.personas.len(),
        };
        HostSummary {
            host: host.host.clone(),
            state: among.state(host).into(),
            own: host.host == among.own.as_str(),
            home_id: host.home_id.clone(),
            version: host.version.clone(),
            sidecar: host.sidecar.clone(),
            counts,
            more: host.more,
            started_at: host.started_at.clone(),
            told_at: host.told_at.clone(),
            seen_at: host.seen_at.clone(),
            away_since: host.away_since.clone(),
            authentic: host.authentic,
        }
    }
}

impl RosterAge {
    fn of(host: &HostView, among: &FleetHosts) -> RosterAge {
        RosterAge {
            host: host.host.clone(),
            state: among.state(host).into(),
            seen_at: host.seen_at.clone(),
            away_since: host.away_since.clone(),
        }
    }
}

/// `GET /api/hosts`: all hosts of the fleet by their names, this one among them.
pub(super) async fn all(State(app): State<Arc<ServeApp>>, RawQuery(query): RawQuery) -> Response<Body> {
    let asked = match ListQuery::read(query.as_deref(), Parameters::Limit) {
        Ok(asked) => asked,
        Err(problem) => return problem.into_response(),
    };
    from_fleet(app, move |fleet| {
        let listed = fleet.hosts.iter().take(asked.limit);
        json(200, &listed.map(|host| serde_json::json!(HostSummary::of(host, fleet))).collect())
    })
    .await
}

/// `GET /api/hosts/<name>/agents`.
pub(super) async fn agents(state: State<Arc<ServeApp>>, host: Id, query: RawQuery) -> Response<Body> {
    entries(state, host, query, |host, about, limit| {
        serde_json::json!(HostAgents { about, agents: host.agents.iter().take(limit).cloned().collect() })
    })
    .await
}

/// `GET /api/hosts/<name>/handoffs`.
pub(super) async fn handoffs(state: State<Arc<ServeApp>>, host: Id, query: RawQuery) -> Response<Body> {
    entries(state, host, query, |host, about, limit| {
        serde_json::json!(HostHandoffs { about, handoffs: host.handoffs.iter().take(limit).cloned().collect() })
    })
    .await
}

/// `GET /api/hosts/<name>/errors`.
pub(super) async fn errors(state: State<Arc<ServeApp>>, host: Id, query: RawQuery) -> Response<Body> {
    entries(state, host, query, |host, about, limit| {
        serde_json::json!(HostErrors { about, errors: host.errors.iter().take(limit).cloned().collect() })
    })
    .await
}

async fn entries(
    State(app): State<Arc<ServeApp>>,
    host: Id,
    RawQuery(query): RawQuery,
    show: fn(&HostView, RosterAge, usize) -> Value,
) -> Response<Body> {
    let asked = match ListQuery::read(query.as_deref(), Parameters::Limit) {
        Ok(asked) => asked,
        Err(problem) => return problem.into_response(),
    };
    let name = host.ok().and_then(|Path(name)| name.parse::<HostName>().ok());
    from_fleet(app, move |fleet| {
        let found = name.and_then(|name| fleet.hosts.iter().find(|host| host.host == name.as_str()));
        match found {
            Some(host) => json(200, &show(host, RosterAge::of(host, fleet), asked.limit)),
            None => no_host().into_response(),
        }
    })
    .await
}

/// The error for a name that no host of the fleet has.
pub(super) fn no_host() -> Problem {
    Problem::new(404, "no_host", "The fleet has no host of this name").hint("GET /api/hosts lists all hosts")
}

/// The error if this home has joined no fleet, or if its files can't be read.
pub(super) fn problem(error: CliError) -> Problem {
    if error.code != "no_fleet" {
        return error.into();
    }
    let refused = Problem::new(404, "no_fleet", error.message);
    error.hint.into_iter().fold(refused, |refused, hint| refused.hint(hint))
}

/// Answers from the hosts as the bridge has written them.
async fn from_fleet(
    app: Arc<ServeApp>,
    answer: impl FnOnce(&FleetHosts) -> Response<Body> + Send + 'static,
) -> Response<Body> {
    blocking(move || {
        Ok(match known(&app.home) {
            Ok(fleet) => answer(&fleet),
            Err(error) => problem(error).into_response(),
        })
    })
    .await
}

/// All hosts. The bridge stops reading rosters while nobody looks at them. If it has not read them for a while, this
/// asks it to, and waits for that.
fn known(home: &Home) -> Result<FleetHosts, CliError> {
    let bridge = hosts::bridge(home)?;
    let now_ms = Clock::new().now().wall_ms;
    let read_ms = bridge.and_then(|bridge| hosts::rosters_read_ms(&bridge));
    match read_ms.map(|at| now_ms.saturating_sub(at)) {
        Some(age_ms) if (0..HOST_STALE_MS).contains(&age_ms) => {
            hosts::ask_for_rosters(home);
            hosts::as_written(home)
        }
        _ => hosts::all(home),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::unread::Unread;
    use crate::cli::view::ViewFile;
    use serde_json::json;

    #[test]
    fn a_host_is_told_of_by_its_state_and_by_how_much_it_has() {
        let handoff = |step: &str| json!({"handoff_id": step, "step": step});
        let box_1 = json!({
            "host": "box-1", "authentic": true, "away_since": "2026-11-25T12:00:00.000Z", "agents": [{"agent_id": "a"}],
            "handoffs": [handoff("writing"), handoff("done"), handoff("failed")], "errors": [{"code": "x"}],
        });
        let desk = json!({"host": "desk", "authentic": true});
        let hosts: Vec<ViewFile<HostView>> = [box_1, desk].into_iter().map(ViewFile::from).collect();
        let own: HostName = "desk".parse().expect("a name");
        let told = |is_fresh: bool| {
            let fleet = FleetHosts { own: own.clone(), is_fresh, hosts: hosts.clone(), unread: Unread::default() };
            fleet.hosts.iter().map(|host| json!(HostSummary::of(host, &fleet))).collect::<Vec<Value>>()
        };
        let [away, live] = told(true).try_into().expect("two hosts");
        assert_eq!((&away["state"], &away["own"], &live["state"]), (&json!("away"), &json!(false), &json!("live")));
        assert_eq!(away["counts"], json!({"agents": 1, "handoffs": 1, "errors": 1, "personas": 0}));
        assert_eq!((&live["own"], &live["counts"]["agents"]), (&json!(true), &json!(0)));
        assert!(told(false).iter().all(|host| host["state"] == "unknown"), "nobody here knows");
    }
}
