//! Other hosts of a fleet, as others see them. The bridge `tasuki-fleet` writes these files; without it there are none.

use super::agent::AgentView;
use super::answer::ResultFile;
use super::error::ErrorFile;
use super::handoff::{HandoffView, Step};
use super::words::{Word, without_defaults, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The age, in milliseconds, at which the bridge's files and a host's roster no longer say anything about the present.
pub const HOST_STALE_MS: i64 = 45_000;
/// The most ended handoffs in a roster. All open handoffs come on top of them.
pub const MOST_ENDED: usize = 20;
/// The most journal lines in a roster.
pub const MOST_EVENTS: usize = 20;

words! {
    listed
    /// What is known of a host at this moment.
    HostState {
        /// It has published a roster within the last 45 s.
        Live = "live",
        /// It has not.
        Away = "away",
        /// The roster at its name in the fleet is not signed by it, or is older than a roster seen before.
        NotAuthentic = "not authentic",
        /// This host's own bridge does not run or reaches no server, so nobody here knows.
        Unknown = "unknown",
    }
}

words! {
    listed
    /// Whether a sidecar answers, as its own host sees it.
    SidecarWord {
        Runs = "runs",
        Away = "away",
    }
}

/// `fleet/hosts/<name>.json`: what a host has last told of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct HostView {
    /// The format's version: 1.
    pub v: u8,
    /// The host's name.
    pub host: String,
    /// The id of its home.
    pub home_id: String,
    /// A random UUID for each start of its bridge.
    pub instance: String,
    /// The roster's number; it rises with each roster of this home.
    pub n: u64,
    /// A hash of its machine and home.
    pub machine: String,
    /// A hash of the machine's boot.
    pub boot: String,
    /// The version of its bridge.
    pub version: String,
    /// The `seq` of the last line in its journal.
    pub journal_seq: u64,
    /// When its bridge started: UTC, by that host's clock.
    pub started_at: String,
    /// Its sidecar.
    pub sidecar: HostSidecar,
    /// Its live agents.
    pub agents: Vec<HostAgent>,
    /// Its open handoffs, and the last ended handoffs.
    pub handoffs: Vec<HostHandoff>,
    /// Its errors that nobody has dismissed.
    pub errors: Vec<HostError>,
    /// Its personas.
    pub personas: Vec<HostPersona>,
    /// The last lines of its journal, the newest last; empty unless `fleet.toml` there says `show.journal = true`.
    pub journal: Vec<HostEvent>,
    /// How many entries were left out because the roster would be too large.
    pub more: u64,
    /// When the server stored the roster, by the server's clock; empty if the host never sent one.
    pub told_at: String,
    /// When this host's bridge last read it: UTC, milliseconds, `Z`, by this host's clock.
    pub seen_at: String,
    /// Since when the host has sent no roster, by this host's clock; null while it is live.
    pub away_since: Option<String>,
    /// False if the roster under its name is not signed by it, or is older than a roster that was seen before. The
    /// other fields are then those of its last authentic roster.
    pub authentic: bool,
}

/// A sidecar, as its own host sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct HostSidecar {
    /// Whether it answers.
    pub state: Word<SidecarWord>,
    /// Since when: UTC, by its own clock.
    pub since: String,
}

/// An agent, as its own host tells of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct HostAgent {
    /// Its id.
    pub agent_id: String,
    /// Its persona; null if it has none, or if the host hides it.
    pub persona: Option<String>,
    /// Its profile.
    pub profile: String,
    /// What it does, as in the agent's own view.
    pub state: String,
    /// How full its context is, in percent; null if its CLI does not report it.
    pub context: Option<u8>,
    /// The handoff that it is in.
    pub handoff_id: Option<String>,
    /// Since when it has been in this state: UTC, by its host's clock.
    pub since: String,
}

/// A handoff, as its own host tells of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct HostHandoff {
    /// Its id.
    pub handoff_id: String,
    /// The agent that is handed off.
    pub agent_id: String,
    /// The persona; null if the host hides it.
    pub persona: Option<String>,
    /// Its step.
    pub step: String,
    /// Since when: UTC, by its host's clock.
    pub since: String,
    /// The host that the work comes from, if it is another one.
    pub from: Option<String>,
    /// The host that the work goes to, if it is another one.
    pub to: Option<String>,
    /// The code of its error.
    pub error: Option<String>,
}

/// An error, as its own host tells of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct HostError {
    /// Its id.
    pub error_id: String,
    /// Its code.
    pub code: String,
    /// When: UTC, by its host's clock.
    pub at: String,
}

/// A persona. Its hash shows whether two hosts have different personas of the same name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct HostPersona {
    /// Its slug.
    pub slug: String,
    /// SHA-256 over the files that `tasuki fleet persona push` would send.
    pub sha256: String,
}

/// A line of a host's journal: only its number, time and type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct HostEvent {
    /// Its number.
    pub seq: u64,
    /// When: UTC, by its host's clock.
    pub at: String,
    /// What it reports, as in the journal.
    pub r#type: String,
}

/// `fleet/requests/<id>.json`: a request to another host. The answer will be `fleet/results/<id>.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetRequestFile {
    /// The format's version: 1.
    pub v: u8,
    /// The name of the host that is asked.
    pub to: String,
    /// The request, as it would stand in that host's spool.
    pub request: Value,
    /// How old it may become before it is carried out, such as `10m`; at most 7 days. If this field is missing,
    /// `ttl.default` of `fleet.toml` counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
    /// Files that go with it, at most 15.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<FleetPart>,
}

/// A file that goes with a request to another host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetPart {
    /// Its name there: a plain file name.
    pub name: String,
    /// Where it lies here: an absolute path.
    pub path: String,
}

/// `fleet/results/<id>.json`: the one answer to a request to another host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FleetResultFile {
    /// The host that was asked.
    pub host: String,
    /// This host itself has answered, and not the host that was asked.
    pub answered_here: bool,
    /// The fields of a result file.
    #[serde(flatten)]
    pub result: ResultFile,
}

/// The agent's entry in the roster if its host hides nothing.
impl From<&AgentView> for HostAgent {
    fn from(agent: &AgentView) -> HostAgent {
        let percent = agent.context.as_ref().and_then(|context| context.percent);
        HostAgent {
            agent_id: agent.agent_id.clone(),
            persona: agent.persona_slug.clone().filter(|slug| !slug.is_empty()),
            profile: agent.profile.clone(),
            state: agent.state.as_str().to_owned(),
            context: percent.and_then(|percent| u8::try_from(percent.min(100)).ok()),
            handoff_id: agent.handoff_id.clone(),
            since: agent.state_since.clone().unwrap_or_default(),
        }
    }
}

/// The handoff's entry in the roster if its host hides nothing.
impl From<&HandoffView> for HostHandoff {
    fn from(handoff: &HandoffView) -> HostHandoff {
        HostHandoff {
            handoff_id: handoff.handoff_id.clone(),
            agent_id: handoff.agent_id.clone(),
            persona: Some(handoff.persona_slug.clone()).filter(|slug| !slug.is_empty()),
            step: handoff.step.as_str().to_owned(),
            since: handoff.steps.last().map_or_else(|| handoff.created_at.clone(), |step| step.entered_at.clone()),
            from: None,
            to: None,
            error: handoff.error.as_ref().map(|error| error.code.clone()).filter(|code| !code.is_empty()),
        }
    }
}

/// The error's entry in the roster.
impl From<&ErrorFile> for HostError {
    fn from(error: &ErrorFile) -> HostError {
        HostError { error_id: error.error_id.clone(), code: error.code.clone(), at: error.at.clone() }
    }
}

impl HostHandoff {
    /// Whether it has not ended. A step of another version counts as open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        Word::<Step>::from(self.step.as_str()).known().is_none_or(|step| !step.is_end())
    }
}

impl HostView {
    /// What is known of the host at this time. `bridge_is_fresh`: this host's own bridge has written `bridge.json`
    /// within 45 s and is connected.
    #[must_use]
    pub fn state(&self, bridge_is_fresh: bool) -> HostState {
        match self {
            _ if !bridge_is_fresh => HostState::Unknown,
            HostView { authentic: false, .. } => HostState::NotAuthentic,
            HostView { away_since: Some(_), .. } => HostState::Away,
            HostView { .. } => HostState::Live,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_live_only_while_the_bridge_here_is_and_its_word_can_be_believed() {
        let live = HostView { authentic: true, ..HostView::default() };
        let away = HostView { away_since: Some("2026-11-25T12:00:00.000Z".to_owned()), ..live.clone() };
        let scribbled = HostView { authentic: false, ..away.clone() };
        let state = |host: &HostView| (host.state(true), host.state(false));
        assert_eq!(state(&live), (HostState::Live, HostState::Unknown));
        assert_eq!(state(&away), (HostState::Away, HostState::Unknown));
        assert_eq!(state(&scribbled), (HostState::NotAuthentic, HostState::Unknown));
    }
}
