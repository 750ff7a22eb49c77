//! An agent, as others see it.

use super::words::{Word, without_defaults, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    listed
    /// What an agent is doing, as its view says it.
    AgentState {
        /// It was started and has not registered, or is not ready.
        Starting = "starting",
        /// It waits for a prompt.
        Idle = "idle",
        /// It is in the middle of a turn.
        Busy = "busy",
        /// A dialog waits for a person.
        Blocked = "blocked",
        /// Its process is dead.
        Ended = "ended",
        /// Its pane is gone, and tasuki did not see the agent end.
        Lost = "lost",
    }
}

impl AgentState {
    /// Neither ended nor lost.
    #[must_use]
    pub fn is_live(self) -> bool {
        !matches!(self, AgentState::Ended | AgentState::Lost)
    }

    /// In a turn, or asking its person something in one.
    #[must_use]
    pub fn is_in_a_turn(self) -> bool {
        matches!(self, AgentState::Busy | AgentState::Blocked)
    }
}

words! {
    listed
    /// Whether any hook of the agent has reported yet.
    Hooks {
        Seen = "seen",
        Unseen = "unseen",
    }
}

words! {
    /// Which limit stops an agent's CLI.
    #[derive(JsonSchema)]
    LimitKind {
        /// So much was used that the CLI takes nothing more until a certain time.
        UsageLimit = "usage_limit",
        /// The account has no credit left.
        NoCredit = "no_credit",
        /// The login has expired, or the key is refused.
        LoggedOut = "logged_out",
        /// The service has too much to do.
        Overloaded = "overloaded",
    }
}

impl LimitKind {
    /// What the limit does to a CLI, as the rest of a sentence that begins with the CLI's name.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            LimitKind::UsageLimit => "has reached its usage limit",
            LimitKind::NoCredit => "has no credit left",
            LimitKind::LoggedOut => "is logged out",
            LimitKind::Overloaded => "can't be served at the moment",
        }
    }
}

/// A limit that stops an agent's CLI.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct LimitedView {
    /// Which limit.
    pub kind: Word<LimitKind>,
    /// When tasuki saw it: UTC, milliseconds, `Z`.
    pub since: String,
    /// When it ends, if the CLI says so.
    pub until: Option<String>,
    /// What the CLI says.
    pub said: String,
}

/// `view/agents/<agent_id>.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct AgentView {
    /// The format's version: 1.
    pub v: u8,
    /// The agent's id: a random UUID.
    pub agent_id: String,
    /// Its persona; null for an anonymous agent, which tasuki shows and leaves alone.
    pub persona_slug: Option<String>,
    /// The profile that drives it.
    pub profile: String,
    /// The model that it was told to use when it was started; null if its CLI chose.
    pub model: Option<String>,
    /// Its tmux pane, such as `%3`.
    pub pane: Option<String>,
    /// Its own process.
    pub pid: Option<u32>,
    /// The tmux session of its window.
    pub tmux_session: Option<String>,
    /// The folder that it works in.
    pub cwd: Option<String>,
    /// The CLI's own session id, which changes on `/clear`.
    pub session_id: Option<String>,
    /// The command with which a person opens its CLI's session again, quoted for a shell; null if its profile has none,
    /// or the session's id is not known.
    pub resume_command: Option<String>,
    /// Where its CLI keeps the transcript.
    pub transcript_path: Option<String>,
    /// What it does. `lost` means that its pane is gone and tasuki did not see the agent end.
    pub state: Word<AgentState>,
    /// Since when it has been in this state: UTC, milliseconds, `Z`; null if an earlier version of tasuki set the
    /// state.
    pub state_since: Option<String>,
    /// The agent whose work it continues.
    pub previous_agent_id: Option<String>,
    /// The agent that continues its work.
    pub successor_id: Option<String>,
    /// The handoff that it is in.
    pub handoff_id: Option<String>,
    /// The handoff that has recorded its document, unless that handoff was abandoned.
    pub recorded_in: Option<String>,
    /// When tasuki first knew of it: UTC, milliseconds, `Z`.
    pub created_at: String,
    /// When it registered.
    pub registered_at: Option<String>,
    /// When it ended or was lost.
    pub ended_at: Option<String>,
    /// tasuki started it, so tasuki may close its pane when the agent is to end.
    pub started_by_tasuki: bool,
    /// Whether any of its hooks has reported: without hooks no delivery can be confirmed.
    pub hooks: Word<Hooks>,
    /// `tasuki reopen` has opened the session of an agent that had ended: tasuki shows this agent and never types to
    /// it.
    #[serde(default)]
    pub reopened: bool,
    /// The agent that had this session before, if it is reopened.
    pub reopened_from: Option<String>,
    /// It was given its persona's skill.
    #[serde(default = "yes")]
    pub primed: bool,
    /// Texts that wait until it can take them.
    pub waiting_texts: u64,
    /// Its context has reached `context.suggest_at`, and it is in no handoff.
    pub handoff_suggested: bool,
    /// The limit that stops its CLI; null if none does.
    pub limited: Option<LimitedView>,
    /// How full its context is, if its CLI reports it.
    pub context: Option<ContextView>,
}

/// `primed` in a view that lacks the field: the version that wrote it typed only into primed agents.
fn yes() -> bool {
    true
}

/// How full an agent's context is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = without_defaults)]
pub struct ContextView {
    /// Tokens used.
    pub used: u64,
    /// Size of the context window in tokens, where it is known.
    pub window: Option<u64>,
    /// The share that is used, in percent, rounded down.
    pub percent: Option<u64>,
    /// The window's size is guessed from the model's name: no automatic handoff begins on a guess.
    #[serde(default)]
    pub window_is_guess: bool,
}

impl AgentView {
    /// Whether it has neither ended nor been lost.
    #[must_use]
    pub fn is_living(&self) -> bool {
        let has_ended = self.ended_at.as_ref().is_some_and(|at| !at.is_empty());
        self.state.known().is_none_or(AgentState::is_live) && !has_ended
    }
}
