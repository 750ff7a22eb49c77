//! What an agent needs of a person: an answer to a dialog, help with a limit of its CLI, or a handoff.

use super::text::{id, is_pane, line, short, slug, time};
use crate::contract::{AgentState, AgentView, LimitKind, NeedKind, NeedView};
use crate::core::agent::context_usage;

/// What one agent needs of a person, and what tasuki must know of the agent to judge its failures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentNeeds {
    /// Which agent.
    pub agent_id: String,
    pub(super) persona_slug: Option<String>,
    pub(super) is_living: bool,
    pub(super) is_blocked: bool,
    pub(super) is_primed: bool,
    /// Another agent continues its work.
    is_succeeded: bool,
    /// The handoff that it is in, and the one that has recorded its document.
    in_handoffs: Vec<String>,
    pub(super) needs: Vec<NeedView>,
}

impl AgentNeeds {
    /// Judges an agent's view. An agent without a persona is left alone, so it needs nobody.
    #[must_use]
    pub fn of(seen: &AgentView) -> Self {
        let is_living = seen.is_living();
        let of = AgentNeeds {
            agent_id: seen.agent_id.clone(),
            persona_slug: slug(seen.persona_slug.as_deref()),
            is_living,
            is_blocked: is_living && seen.state == AgentState::Blocked,
            is_primed: seen.primed,
            is_succeeded: seen.successor_id.is_some(),
            in_handoffs: [&seen.handoff_id, &seen.recorded_in].into_iter().flatten().cloned().collect(),
            needs: Vec::new(),
        };
        if !is_living || of.persona_slug.is_none() {
            return of;
        }
        AgentNeeds { needs: [dialog(seen), limited(seen), suggestion(seen)].into_iter().flatten().collect(), ..of }
    }

    /// Whether it is alive. An agent that has ended needs nobody.
    #[must_use]
    pub fn is_living(&self) -> bool {
        self.is_living
    }

    /// Whether it is, or was handed off, in another handoff than this one.
    pub(super) fn is_in_another(&self, handoff_id: &str) -> bool {
        self.in_handoffs.iter().any(|other| other != handoff_id)
    }

    /// What has become of the agent since a failure with this code, in one sentence; none if the failure still counts.
    #[must_use]
    pub fn has_settled(&self, code: &str) -> Option<&'static str> {
        match code {
            "agent_died" if self.is_succeeded => Some("a successor continues its work: nothing is left to do"),
            "start_failed" | "priming_failed" if self.is_primed => {
                Some("the agent got its skill after that: nothing is left to do")
            }
            "priming_failed" if self.is_succeeded => Some("a successor continues its work: nothing is left to do"),
            "priming_failed" if !self.is_living => Some("the agent has ended since: nothing is left to do"),
            _ => None,
        }
    }
}

fn about_agent(seen: &AgentView, what: NeedKind) -> NeedView {
    NeedView {
        what: what.into(),
        agent_id: id(&seen.agent_id),
        persona_slug: slug(seen.persona_slug.as_deref()),
        ..NeedView::default()
    }
}

fn dialog(seen: &AgentView) -> Option<NeedView> {
    let pane = seen.pane.as_deref().filter(|pane| is_pane(pane));
    (seen.state == AgentState::Blocked).then(|| NeedView {
        since: time(seen.state_since.as_deref()),
        said: pane.map_or_else(|| "A dialog is open".to_owned(), |pane| format!("A dialog is open in its pane {pane}")),
        hint: Some("Answer the dialog in the pane.".to_owned()),
        command: pane.map_or_else(|| "tasuki agents".to_owned(), |pane| format!("tmux switch-client -t {pane}")),
        ..about_agent(seen, NeedKind::Dialog)
    })
}

fn limited(seen: &AgentView) -> Option<NeedView> {
    let limited = seen.limited.as_ref()?;
    let until = time(limited.until.as_deref()).map(|until| format!(", until {until}")).unwrap_or_default();
    let pane = seen.pane.as_deref().filter(|pane| is_pane(pane));
    let look = || pane.map_or_else(|| "tasuki agents".to_owned(), |pane| format!("tmux switch-client -t {pane}"));
    let other_cli = || format!("tasuki handoff {} --author salvage --profile … --wait", short(&seen.agent_id));
    // A kind that a later version knows is most likely a usage limit of another name.
    let kind = limited.kind.known().unwrap_or(LimitKind::UsageLimit);
    let (hint, command) = match kind {
        LimitKind::UsageLimit => (
            "Wait until it has ended, then tell the agent to continue; or hand its work off to another CLI.",
            other_cli(),
        ),
        LimitKind::NoCredit => ("Add credit, or hand its work off to another CLI.", other_cli()),
        LimitKind::LoggedOut => ("Log in again in its pane.", look()),
        LimitKind::Overloaded => ("Tell the agent to try again later.", look()),
    };
    let state = kind.in_words();
    Some(NeedView {
        since: time(Some(&limited.since)),
        said: line(&format!("Its CLI {state}{until}: {}", limited.said)),
        hint: Some(hint.to_owned()),
        command,
        ..about_agent(seen, NeedKind::Limited)
    })
}

fn suggestion(seen: &AgentView) -> Option<NeedView> {
    let percent = seen.context.as_ref().and_then(|context| context.percent);
    let full = percent.map_or_else(|| "nearly full".to_owned(), |percent| format!("{percent} % full"));
    seen.handoff_suggested.then(|| NeedView {
        said: format!("Its context is {full}"),
        command: format!("tasuki handoff {} --reason {} --wait", short(&seen.agent_id), context_usage::REASON),
        ..about_agent(seen, NeedKind::Suggestion)
    })
}
