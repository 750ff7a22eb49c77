//! A failure that nobody has dismissed. If it has halted a handoff or its publishing, the view of that handoff says
//! whether it still needs a person. Other failures are entries of their own, until somebody dismisses them or they are
//! settled.

use super::agent::AgentNeeds;
use super::handoff::HandoffNeeds;
use super::text::{id, line, short, some_line, time};
use crate::contract::{ErrorFile, NeedKind, NeedView, Step};

/// Whether a failure with this code and step has halted its handoff, so that it needs nobody once the handoff is over.
/// A document that was not published, or a message that did not arrive, still needs somebody then.
#[must_use]
pub fn halted(code: &str, step: &str) -> bool {
    Step::ALL.iter().any(|known| known.as_str() == step) && !matches!(code, "message_failed" | "escalation_failed")
}

/// One file of `spool/errors/`, as the list judges it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailureNeed {
    /// Which failure.
    pub error_id: String,
    /// The handoff in which it happened.
    pub handoff_id: Option<String>,
    /// The agent that it is about.
    pub agent_id: Option<String>,
    code: String,
    /// The view of its handoff says whether it still needs a person.
    is_in_view: bool,
    need: NeedView,
}

impl FailureNeed {
    /// Judges an error file.
    #[must_use]
    pub fn of(seen: &ErrorFile) -> Self {
        let step = seen.step.as_deref().unwrap_or_default();
        // A failure of a handoff names its agent too, but is about the handoff.
        let agent_id = seen.agent_id.as_deref().filter(|_| seen.handoff_id.is_none());
        let need = NeedView {
            what: NeedKind::Failed.into(),
            agent_id: agent_id.and_then(id),
            handoff_id: seen.handoff_id.as_deref().and_then(id),
            error_id: id(&seen.error_id),
            since: time(Some(&seen.at)),
            said: line(&seen.message),
            hint: some_line(&seen.hint),
            command: format!("tasuki errors dismiss {}", short(&seen.error_id)),
            ..NeedView::default()
        };
        FailureNeed {
            error_id: seen.error_id.clone(),
            handoff_id: seen.handoff_id.clone(),
            agent_id: agent_id.map(str::to_owned),
            code: seen.code.clone(),
            is_in_view: step == "publishing" || halted(&seen.code, step),
            need,
        }
    }

    /// When it happened.
    pub(super) fn since(&self) -> Option<String> {
        self.need.since.clone()
    }

    /// Whether it needs nobody any more, as the views say: of the agent that it is about, and of its handoff. The view
    /// of a handoff that has continued, has ended, or was published after all names the failure no more.
    #[must_use]
    pub fn is_settled(&self, agent: Option<&AgentNeeds>, handoff: Option<&HandoffNeeds>) -> bool {
        let is_past = handoff.is_some_and(|handoff| self.is_in_view && !handoff.names(&self.error_id));
        is_past || agent.is_some_and(|agent| agent.has_settled(&self.code).is_some())
    }

    /// The failure as an entry of its own, if the view of its handoff does not name it. `None` if it is settled, or if
    /// a dialog, which is listed itself, holds up the start of its agent. `agent`: the agent that the failure is about.
    pub(super) fn alone(&self, agent: Option<&AgentNeeds>, handoff: Option<&HandoffNeeds>) -> Option<NeedView> {
        if self.is_settled(agent, handoff) {
            return None;
        }
        let Some(agent) = agent else { return Some(self.need.clone()) };
        let need = NeedView { persona_slug: agent.persona_slug.clone(), ..self.need.clone() };
        if !agent.is_living {
            return Some(need);
        }
        match self.code.as_str() {
            // The dialog is listed, and the agent continues once it is answered.
            "start_failed" if agent.is_blocked => None,
            "priming_failed" => Some(NeedView {
                what: NeedKind::Unprimed.into(),
                command: format!("tasuki send {} …", short(&agent.agent_id)),
                ..need
            }),
            _ => Some(need),
        }
    }
}
