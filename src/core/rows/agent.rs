//! An agent's row: who it is, where it runs, what it is doing, and which text is being typed to it.

mod alerts;
mod context;
mod idle_watch;
mod limit;
mod notices;
mod phase;
mod purpose;
mod queued;
mod texts;
pub(crate) mod timers;

use crate::contract::{JournalLine, LineType, known, maybe};
use crate::core::effect::{EffectKey, StartAgent};
use crate::core::hook::{ContextUsage, HookEvent};
use crate::core::id::{AgentId, ErrorId, HandoffId, RequestId, Slug};
use crate::core::pane::{PaneRef, Process, ServerId};
use crate::core::rows::chain::Chain;
use crate::core::rows::choice::ProfileChoice;
use crate::core::time::Deadline;
use serde::{Deserialize, Serialize};

pub use crate::contract::AgentState;
pub use alerts::{Alerts, OpenDialog};
pub use context::{ContextWatch, LastTurn};
pub use idle_watch::{IdleWatch, WatchState};
pub use limit::{LimitWatch, Limited, LookCause, UsedUp};
pub use notices::Notices;
pub use phase::Phase;
pub use purpose::Purpose;
pub use queued::{Asker, Queued};
pub use texts::{OurTurn, Typing};

/// Who asked for the start of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// An `agent_create`.
    Request(RequestId),
    /// A handoff, as its successor.
    Handoff(HandoffId),
    /// Nobody any more: a successor that was started early and is not wanted. Its pane is killed.
    Nobody,
    /// A `handoff_reopen`: the session of the handoff's outgoing agent is opened again.
    Reopening { request_id: RequestId, handoff_id: HandoffId },
}

/// A start that has not finished. If its owner is `Nobody`, it only marks an agent that is being ended: `effect` kills
/// its pane, or still makes its window, and `deadline` is the time within which the agent must end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    pub owner: Owner,
    /// The running effect: the start itself, then the wait for readiness.
    pub effect: Option<EffectKey>,
    /// A hook has reported the agent's session.
    pub registered: bool,
    /// The pane that the session's own hook named.
    #[serde(rename = "claimed_pane")]
    pub reported_pane: Option<u32>,
    /// The screen was stable, and takes input.
    pub ready: bool,
    pub deadline: Deadline,
    /// If a dialog was open, or the pane is gone: what the screen showed last.
    #[serde(default)]
    pub last_screen: String,
    /// When an open dialog is looked at again.
    #[serde(default)]
    pub look_again: Option<Deadline>,
    /// The failure by which the operator was told of that dialog.
    #[serde(default)]
    pub dialog_error: Option<ErrorId>,
}

impl Start {
    /// A start that has just been asked for.
    #[must_use]
    pub fn begun(owner: Owner, effect: EffectKey, deadline: Deadline) -> Self {
        Start {
            owner,
            effect: Some(effect),
            registered: false,
            reported_pane: None,
            ready: false,
            deadline,
            last_screen: String::new(),
            look_again: None,
            dialog_error: None,
        }
    }
}

/// How far the one priming of an agent is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Primed {
    Never,
    /// The persona is being read; nothing was typed.
    Reading {
        effect: EffectKey,
    },
    /// The text may have been typed. This never goes back, except after proof that nothing was typed.
    Begun,
    /// It arrived, and its turn ended.
    Done,
}

/// A shutdown that was asked for and has not finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shutdown {
    pub request_id: RequestId,
    /// The running effect, other than typing.
    pub effect: Option<EffectKey>,
    pub deadline: Deadline,
}

/// An agent whose process or pane was seen to be gone, before tasuki decides that it has ended: hooks of a dead process
/// may still write, and a pane disappears a moment before its process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingExit {
    pub due: Deadline,
    /// Only the pane is known to be gone.
    #[serde(rename = "lost")]
    pub pane_gone: bool,
}

/// The CLI session whose events count: a CLI that the agent runs inherits its environment and hooks, and reports a
/// session of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentSession {
    /// The bound id; none until the first event that has one.
    pub id: Option<String>,
    /// The bound session has ended by `/clear` or the like: the next session start binds another one.
    pub replaced: bool,
    /// The CLI session that was in this process before the bound one, of this agent or of its predecessor. Its events
    /// do not count, unless a person goes back to it.
    #[serde(default)]
    pub former: Option<String>,
    /// The CLI said that it ends, so somebody has asked it to.
    #[serde(default)]
    pub closed: bool,
}

impl AgentSession {
    /// Another session takes the place of the bound one.
    pub fn begin(&mut self, session: &str) {
        self.former = self.id.replace(session.to_owned());
        self.replaced = false;
    }
}

/// The stored row of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub agent_id: AgentId,
    /// Its persona; none for an anonymous agent.
    pub persona_slug: Option<Slug>,
    pub profile: String,
    /// The model that it was told to use when it was started.
    #[serde(default)]
    pub model: Option<String>,
    pub pane: Option<PaneRef>,
    pub process: Option<Process>,
    pub cwd: Option<String>,
    pub tmux_session: Option<String>,
    pub session: AgentSession,
    pub transcript_path: Option<String>,
    pub state: AgentState,
    /// Since when it has been in this state; none in a row of an earlier version.
    #[serde(default)]
    pub state_since: Option<String>,
    pub previous_agent_id: Option<AgentId>,
    pub successor_id: Option<AgentId>,
    /// The handoff in progress that it belongs to, as outgoing agent or as successor.
    pub handoff_id: Option<HandoffId>,
    /// The handoff that has a record of it and was not abandoned.
    #[serde(rename = "record_of")]
    pub recorded_in: Option<HandoffId>,
    /// The failed handoff that has started it as the successor, and whose document it can't have got. tasuki tells it
    /// of no work item until that handoff is over or has another successor.
    #[serde(default)]
    pub unbriefed_in: Option<HandoffId>,
    pub created_at: String,
    pub registered_at: Option<String>,
    pub ended_at: Option<String>,
    /// tasuki started it, or it is a new session in the process of such an agent. tasuki kills only such agents, and
    /// may type to them before it has seen one of their hooks, because the launch line installs the hooks.
    pub ours: bool,
    /// It is a new session in the process of its predecessor: nothing was started for it.
    #[serde(default)]
    pub in_place: bool,
    /// The life of the tmux server in which it was to be started.
    pub start_server: Option<ServerId>,
    /// The agent whose ended session this process has opened again. tasuki types nothing to such an agent.
    #[serde(default)]
    pub reopened_from: Option<AgentId>,
    pub hooks_seen: bool,
    /// The id of the running turn, if one runs and has an id.
    pub open_turn: Option<String>,
    /// Its start, if that has not finished, or the mark of an unwanted successor that is being ended.
    pub start: Option<Start>,
    pub primed: Primed,
    /// The time at which a priming outside a handoff fails.
    pub priming_deadline: Option<Deadline>,
    /// The text on its way. It stays here until its verdict, so also after it was typed, while its receipt is awaited.
    pub typing: Option<Typing>,
    /// Our prompt that was taken and whose turn has not ended.
    pub our_turn: Option<OurTurn>,
    /// The handoff whose briefing it answers in this turn. That handoff may be done by now.
    #[serde(default)]
    pub answering: Option<HandoffId>,
    pub queue: Vec<Queued>,
    /// What is remembered of the work items that it was told of.
    #[serde(default)]
    pub notices: Notices,
    #[serde(flatten)]
    pub idle_watch: IdleWatch,
    /// Its turn has only paused: something that it started is still running.
    #[serde(default)]
    pub has_paused: bool,
    pub shutdown: Option<Shutdown>,
    /// It was seen to be gone; when this is due, it counts as ended or lost.
    #[serde(rename = "dying")]
    pub pending_exit: Option<PendingExit>,
    /// File names that are reserved for the documents of its last handoffs. A failed handoff whose document was never
    /// written may be retried when its row is history, so no other document may get the name of that document.
    pub promised: Vec<String>,
    pub context: Option<ContextUsage>,
    #[serde(default, rename = "watch")]
    pub context_watch: ContextWatch,
    #[serde(default)]
    pub limits: LimitWatch,
    /// What the operator is told of it outside a handoff.
    #[serde(default)]
    pub alerts: Alerts,
    /// How many prompts and answers of its session events have reported.
    #[serde(default, rename = "messages")]
    pub prompts_and_answers: u64,
    /// The handoffs by which its work has come to it.
    #[serde(default)]
    pub chain: Chain,
}

impl Agent {
    /// Whether a handoff has it: as one of its agents, or, after it has failed, as the successor that lacks its
    /// document.
    #[must_use]
    pub fn is_held_in(&self, id: &HandoffId) -> bool {
        self.handoff_id == Some(*id) || self.unbriefed_in == Some(*id)
    }

    /// That handoff has it no longer; what another one has of it stays.
    pub fn leave(&mut self, id: &HandoffId) {
        self.handoff_id.take_if(|bound| bound == id);
        self.unbriefed_in.take_if(|failed| failed == id);
    }

    /// The CLI and the model that it was started with.
    #[must_use]
    pub fn choice(&self) -> ProfileChoice {
        ProfileChoice { profile: self.profile.clone(), model: self.model.clone() }
    }

    /// What starts it, in a window of this many columns and rows.
    #[must_use]
    pub fn start_plan(&self, persona: Slug, size: (u16, u16)) -> StartAgent {
        StartAgent {
            agent_id: self.agent_id,
            session: self.tmux_session.clone().unwrap_or_else(|| format!("tasuki-{persona}")),
            persona,
            session_number: None,
            beside: None,
            profile: self.profile.clone(),
            cwd: self.cwd.clone(),
            size,
            previous: self.previous_agent_id,
            model: self.model.clone(),
            server: self.start_server,
            reopens: None,
        }
    }

    /// The journal line that tells its state.
    #[must_use]
    pub fn line(&self) -> JournalLine {
        JournalLine {
            agent_id: known(&self.agent_id),
            persona_slug: maybe(self.persona_slug.as_ref()),
            handoff_id: maybe(self.handoff_id),
            state: Some(self.state.as_str().to_owned()),
            ..JournalLine::new(LineType::AgentState)
        }
    }

    /// The row of an agent that is starting, with everything else unknown.
    #[must_use]
    pub fn new(agent_id: AgentId, profile: String, created_at: String) -> Self {
        Agent {
            agent_id,
            persona_slug: None,
            profile,
            model: None,
            pane: None,
            process: None,
            cwd: None,
            tmux_session: None,
            session: AgentSession::default(),
            transcript_path: None,
            state: AgentState::Starting,
            state_since: Some(created_at.clone()),
            previous_agent_id: None,
            successor_id: None,
            handoff_id: None,
            recorded_in: None,
            unbriefed_in: None,
            created_at,
            registered_at: None,
            ended_at: None,
            ours: false,
            in_place: false,
            start_server: None,
            reopened_from: None,
            hooks_seen: false,
            open_turn: None,
            start: None,
            primed: Primed::Never,
            priming_deadline: None,
            typing: None,
            our_turn: None,
            answering: None,
            queue: Vec::new(),
            notices: Notices::default(),
            idle_watch: IdleWatch::default(),
            has_paused: false,
            shutdown: None,
            pending_exit: None,
            promised: Vec::new(),
            context: None,
            context_watch: ContextWatch::default(),
            limits: LimitWatch::default(),
            alerts: Alerts::default(),
            prompts_and_answers: 0,
            chain: Chain::default(),
        }
    }

    /// Whether the agent's own CLI ran the hook, and not another CLI that the agent runs. The agent's process may have
    /// run the hook directly or by a shell, or it may be only the launcher of the CLI that did. If the agent's process
    /// or the hook's ancestors are not known, tasuki assumes that the agent's own CLI ran the hook.
    #[must_use]
    pub fn ran(&self, event: &HookEvent) -> bool {
        let Some(process) = self.process.filter(|_| !event.ancestors.is_empty()) else { return true };
        let is_direct = event.ancestors.iter().take(2).any(|pid| *pid == process.pid);
        is_direct || event.is_of_the_only_cli_below(&process, &self.profile)
    }

    /// It waits for a prompt, and nothing is on its way to it.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.state == AgentState::Idle
            && self.typing.is_none()
            && self.start.is_none()
            && self.shutdown.is_none()
            && self.our_turn.is_none()
            && self.pending_exit.is_none()
            && !matches!(self.primed, Primed::Reading { .. })
    }

    /// It lives, as far as tasuki knows: its process was not seen to end.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.state.is_live() && !self.is_known_dead()
    }

    /// Its process is dead, and tasuki waits only for its last hooks.
    #[must_use]
    pub fn is_known_dead(&self) -> bool {
        self.pending_exit.is_some_and(|pending_exit| !pending_exit.pane_gone)
    }

    /// Whether this effect watches its screen for the end of its turn, or looks at a dialog.
    #[must_use]
    pub fn watches_by(&self, key: EffectKey) -> bool {
        self.idle_watch.runs(key) || self.alerts.dialog.as_ref().is_some_and(|dialog| dialog.look == Some(key))
    }

    /// Whether its deadlines count. Those of an agent that has ended do not, even if they are still in its row.
    #[must_use]
    pub fn keeps_time(&self) -> bool {
        self.state != AgentState::Ended
    }

    /// Its row is history: nothing happens to it any more, unless a request names it.
    #[must_use]
    pub fn is_past(&self) -> bool {
        !self.state.is_live() && self.handoff_id.is_none() && self.typing.is_none() && self.queue.is_empty()
    }
}
