//! An event that an agent's CLI reported through its hooks, as the core sees it. The `agents` adapter has already
//! replaced the CLI's own names by tasuki's, and removed the CLI's wrappers from texts.

use super::id::{AgentId, Slug};
use super::pane::{Process, ServerId};
use serde::{Deserialize, Serialize};

/// What happened. The names are part of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookKind {
    /// A session of the CLI began.
    SessionStart,
    /// A prompt was submitted.
    PromptSubmit,
    /// A turn ended.
    Stop,
    /// A turn ended in an error.
    StopFailure,
    /// A person stopped the turn.
    Interrupted,
    /// A dialog waits for a person.
    Blocked,
    /// Anything else that the CLI wants a person to know.
    Notification,
    /// How full the context is.
    Context,
    /// A session of the CLI ended; the process may live on.
    SessionEnd,
}

/// Why a session began or ended, as far as a handoff must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionReason {
    /// The process started, or is about to end.
    Process,
    /// The process is about to end because it was told to from outside: its pane was closed, for example.
    Killed,
    /// The same process continues with another session id: `/clear`, `/new`, a resume.
    Replaced,
    /// The same session continues: a compaction.
    Same,
}

/// How full an agent's context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "ContextGauge")]
pub struct ContextUsage {
    /// Tokens used.
    pub used: u64,
    /// Size of the context window in tokens, if the CLI reports it.
    pub window: Option<u64>,
}

impl ContextUsage {
    /// How much of the window is used, in percent, rounded down; more than 100 if the CLI says so.
    #[must_use]
    pub fn percent(&self) -> Option<u64> {
        self.window.filter(|window| *window > 0).map(|window| self.used.saturating_mul(100) / window)
    }
}

/// An agent CLI among the processes above a hook, recognised by its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCli {
    pub process: Process,
    pub profile: String,
}

/// One event of one agent, from its CLI's hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookEvent {
    pub kind: HookKind,
    /// `TASUKI_AGENT_ID` of the process that reported it. A nested CLI inherits it, so it is a claim, not a proof.
    pub agent_id: Option<AgentId>,
    /// The number behind `%` in `TMUX_PANE`.
    pub pane: Option<u32>,
    /// The server pid that `$TMUX` names (its start time is not in there).
    pub server_pid: Option<u32>,
    pub profile: Option<String>,
    pub persona_slug: Option<Slug>,
    pub session_id: Option<String>,
    /// The CLI's id of the turn to which the event belongs.
    pub turn_id: Option<String>,
    /// The submitted prompt, without the CLI's wrapper.
    pub text: Option<String>,
    pub last_text: Option<String>,
    pub transcript_path: Option<String>,
    pub cwd: Option<String>,
    /// For session starts and ends.
    pub reason: Option<SessionReason>,
    /// For a stop: something started in this turn is still running, so the turn only pauses.
    pub paused: bool,
    /// For blocked, notification and failure: what the CLI says, at most 500 characters, sanitised.
    pub message: Option<String>,
    /// Process ids from the hook's parent upwards, at most 8; empty if the reporter does not say.
    pub ancestors: Vec<u32>,
    /// The agent CLIs among `ancestors`, nearest first. A CLI that begins by running itself again counts once. They are
    /// looked up when the event is read, if [`super::wants_clis`] says so.
    #[serde(default)]
    pub clis: Vec<AgentCli>,
    pub context: Option<ContextUsage>,
}

impl HookEvent {
    /// An event with nothing but its kind.
    #[must_use]
    pub fn new(kind: HookKind) -> Self {
        HookEvent {
            kind,
            agent_id: None,
            pane: None,
            server_pid: None,
            profile: None,
            persona_slug: None,
            session_id: None,
            turn_id: None,
            text: None,
            last_text: None,
            transcript_path: None,
            cwd: None,
            reason: None,
            paused: false,
            message: None,
            ancestors: Vec::new(),
            clis: Vec::new(),
            context: None,
        }
    }

    /// The CLI that ran the hook: the nearest CLI of the reporting profile.
    #[must_use]
    pub fn cli(&self) -> Option<&AgentCli> {
        self.clis.iter().find(|cli| self.profile.as_ref().is_none_or(|profile| *profile == cli.profile))
    }

    /// Whether exactly one agent CLI runs from the hook's parent up to `top`, and that CLI is of `profile`. If so, the
    /// other processes between them are launchers (npx, a version manager), and not a second agent that the first one
    /// runs.
    #[must_use]
    pub fn is_of_the_only_cli_below(&self, top: &Process, profile: &str) -> bool {
        let Some(place) = self.ancestors.iter().position(|pid| *pid == top.pid) else { return false };
        let below = &self.ancestors[..=place];
        let mut clis = self.clis.iter().filter(|cli| below.contains(&cli.process.pid));
        clis.next().is_some_and(|cli| cli.profile == profile) && clis.next().is_none()
    }

    /// Whether `ancestors` reaches up to the tmux server in whose pane the hook ran, so that no process between is
    /// missing.
    #[must_use]
    pub fn is_known_up_to_tmux(&self) -> bool {
        self.server_pid.is_some_and(|server| self.ancestors.contains(&server))
    }

    /// Whether the hook ran below this process. `None` if `ancestors` ends too early to tell.
    #[must_use]
    pub fn is_below(&self, process: &Process) -> Option<bool> {
        let is_below = self.ancestors.contains(&process.pid);
        (is_below || self.is_known_up_to_tmux()).then_some(is_below)
    }

    /// Whether the event may come from a pane of that server.
    #[must_use]
    pub fn is_on(&self, server: &ServerId) -> bool {
        self.server_pid.is_none_or(|pid| pid == server.pid)
    }
}
