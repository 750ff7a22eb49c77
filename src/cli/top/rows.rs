//! The rows: an agent, a handoff, a failure, a work item. Pure: a view or an error file goes in, a bounded plain row or
//! nothing comes out.

use super::plain::plain;
use crate::cli::examined;
use crate::cli::follow::FlowEnd;
use crate::cli::view::{said, shown};
use crate::contract::{AgentView, DeliveryView, ErrorFile, HandoffView, HostState, NeedView, WorkBrief};
use crate::core::needs::{self, AgentNeeds, FailureNeed, HandoffNeeds};
use crate::core::time::millis;

/// The sidecar's state, for the header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SidecarStatus {
    /// Its process id; `None` if no sidecar has run here, or the last one ended properly.
    pub pid: Option<u32>,
    pub is_alive: bool,
    /// When the last heartbeat was written, in milliseconds since 1970; `None` while the sidecar is alive.
    pub heartbeat_ms: Option<i64>,
    /// The process id of its tmux server.
    pub tmux: Option<u64>,
    /// What prevents its work, or why it does not run, and what to do.
    pub problem: Option<String>,
}

/// The host of a row that is not of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostMark {
    pub name: String,
    /// What is known of the host.
    pub state: HostState,
    /// Since when nothing new is known of the host, in milliseconds since 1970; `None` while it is live.
    pub since_ms: Option<i64>,
}

/// A row of the list of agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRow {
    pub id: String,
    pub persona: Option<String>,
    pub pane: Option<String>,
    pub state: String,
    /// Tokens used, and percent of the window where that is known.
    pub context: Option<(u64, Option<u64>)>,
    /// The context is so full that a handoff is suggested.
    pub suggested: bool,
    pub handoff: Option<String>,
    /// The agent's predecessor.
    pub previous: Option<String>,
    /// When it registered; compared, not shown.
    pub registered: String,
    pub cwd: String,
    pub waiting: u64,
    pub living: bool,
    /// The host that it runs on, if it is not this host.
    pub host: Option<HostMark>,
    pub(super) needs: AgentNeeds,
}

/// A row of the list of handoffs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffRow {
    pub id: String,
    pub agent: String,
    pub successor: Option<String>,
    pub persona: String,
    pub reason: String,
    pub step: String,
    pub outcome: Option<FlowEnd>,
    /// When it was requested; compared, not shown.
    pub created: String,
    /// When this step began, in milliseconds since 1970.
    pub entered_ms: Option<i64>,
    pub deadline_ms: Option<i64>,
    /// The verdict on each text, such as `instruction delivered`.
    pub verdicts: Vec<String>,
    /// Bytes of the document so far.
    pub bytes: Option<u64>,
    /// A dialog blocks its successor.
    pub blocked: bool,
    /// It waits for a person to accept its document.
    pub held: bool,
    pub questions: Vec<String>,
    /// Why it failed.
    pub error: Option<HandoffFault>,
    /// The host that it happens on, if it is not this host.
    pub host: Option<HostMark>,
    pub(super) needs: HandoffNeeds,
}

/// Error code and step of a failed handoff, as in its view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffFault {
    /// The name of its file in `spool/errors/`.
    pub id: String,
    pub code: String,
    pub step: String,
}

/// A row of the list of errors: one file of `spool/errors/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureRow {
    pub id: String,
    pub at: String,
    /// The same in milliseconds since 1970.
    pub at_ms: Option<i64>,
    pub code: String,
    pub message: String,
    pub hint: String,
    pub handoff: Option<String>,
    pub agent: Option<String>,
    /// It has stopped its handoff.
    pub(super) has_halted: bool,
    pub(super) need: FailureNeed,
}

/// A row of the list of work items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkRow {
    pub id: String,
    pub kind: String,
    pub status: String,
    pub priority: String,
    /// Who has it: an agent, or `human`.
    pub owner: Option<String>,
    pub title: String,
    pub(super) place: (usize, String, String),
    pub(super) need: Option<NeedView>,
}

fn word<'a>(text: impl Into<Option<&'a str>>) -> String {
    plain(&shown(text))
}

/// An id, which is also the name of a file.
fn name<'a>(id: impl Into<Option<&'a str>>) -> Option<String> {
    said(id).map(plain).filter(|id| !id.starts_with('.') && !id.contains('/'))
}

/// The successor's questions without an answer.
fn questions(seen: &HandoffView) -> Vec<String> {
    let open = if seen.waits_after_failure() { &[] } else { seen.open_questions() };
    open.iter().take(20).map(|question| plain(question)).collect()
}

impl AgentRow {
    /// Makes the row from an agent's view; nothing from a view that has no id.
    #[must_use]
    pub fn read(seen: &AgentView) -> Option<Self> {
        let text = |text: Option<&str>| said(text).map(plain);
        let registered = text(seen.registered_at.as_deref()).unwrap_or_else(|| plain(&seen.created_at));
        Some(AgentRow {
            id: name(seen.agent_id.as_str())?,
            persona: text(seen.persona_slug.as_deref()),
            pane: text(seen.pane.as_deref()),
            state: word(seen.state.as_str()),
            context: seen.context.as_ref().map(|context| (context.used, context.percent)),
            suggested: seen.handoff_suggested,
            handoff: name(seen.handoff_id.as_deref()),
            previous: name(seen.previous_agent_id.as_deref()),
            registered,
            cwd: text(seen.cwd.as_deref()).unwrap_or_default(),
            waiting: seen.waiting_texts,
            living: seen.is_living(),
            host: None,
            needs: AgentNeeds::of(seen),
        })
    }
}

impl AgentRow {
    /// Its place in a list: the agents of this host first, then those of each other host.
    pub(super) fn place(&self) -> (Option<&str>, &str, &str) {
        (self.host.as_ref().map(|host| host.name.as_str()), &self.registered, &self.id)
    }
}

impl HandoffRow {
    /// Makes the row from a handoff's view; nothing from a view that has no id.
    #[must_use]
    pub fn read(seen: &HandoffView) -> Option<Self> {
        let verdict =
            |(name, verdict): (&str, &DeliveryView)| Some(format!("{name} {}", plain(said(verdict.verdict.as_str())?)));
        Some(HandoffRow {
            id: name(seen.handoff_id.as_str())?,
            agent: name(seen.agent_id.as_str())?,
            successor: name(seen.successor_id.as_deref()),
            persona: word(seen.persona_slug.as_str()),
            reason: word(seen.reason.as_str()),
            outcome: FlowEnd::of(&seen.step),
            step: word(seen.step.as_str()),
            created: plain(&seen.created_at),
            entered_ms: seen.steps.last().and_then(|step| millis(&step.entered_at)),
            deadline_ms: seen.deadline.as_deref().and_then(millis),
            verdicts: seen.verdicts.typed().filter_map(verdict).collect(),
            bytes: seen.bytes.or_else(|| seen.document.as_ref().map(|document| document.bytes)),
            blocked: said(seen.successor_blocked_at.as_deref()).is_some(),
            held: examined::is_held(seen),
            questions: questions(seen),
            error: seen.error.as_ref().map(|error| HandoffFault {
                id: name(error.error_id.as_str()).unwrap_or_default(),
                code: word(error.code.as_str()),
                step: word(error.step.as_str()),
            }),
            host: None,
            needs: HandoffNeeds::of(seen),
        })
    }

    /// Whether the handoff has not ended.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.outcome.is_none()
    }

    /// Whether only a person can find out if its last text arrived. A retry must then say whether it did.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        let error = self.error.as_ref().map(|error| (error.code.as_str(), error.step.as_str()));
        matches!(error, Some(("unconfirmed", _) | ("priming_failed", "priming")))
    }

    /// Its place in a list: waiting for a person, running, failed, finished.
    pub(super) fn rank(&self) -> u8 {
        match self.outcome {
            None if self.held => 0,
            None => 1,
            Some(FlowEnd::Failed) => 2,
            Some(FlowEnd::Done | FlowEnd::Cancelled) => 3,
        }
    }
}

impl FailureRow {
    /// Makes the row from an error file; nothing from a file that has no id.
    #[must_use]
    pub fn read(seen: &ErrorFile) -> Option<Self> {
        Some(FailureRow {
            id: name(seen.error_id.as_str())?,
            at: plain(&seen.at),
            at_ms: millis(&seen.at),
            code: word(seen.code.as_str()),
            message: word(seen.message.as_str()),
            hint: plain(&seen.hint),
            handoff: name(seen.handoff_id.as_deref()),
            agent: name(seen.agent_id.as_deref()),
            has_halted: needs::halted(&seen.code, seen.step.as_deref().unwrap_or_default()),
            need: FailureNeed::of(seen),
        })
    }
}

impl WorkRow {
    /// Makes the row from a work item's view; none for an item that is not open.
    #[must_use]
    pub fn read(seen: &WorkBrief) -> Option<Self> {
        seen.is_open().then(|| WorkRow {
            id: plain(&seen.item_id),
            kind: plain(&seen.r#type),
            status: plain(seen.status.as_str()),
            priority: plain(seen.priority.as_str()),
            owner: seen.claimed_by.as_deref().map(plain),
            title: plain(&seen.title),
            place: seen.place(),
            need: needs::item(seen),
        })
    }
}
