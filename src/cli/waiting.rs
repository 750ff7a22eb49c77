//! Tells a person why a text is not typed yet: the agent is starting, is in a turn, has a dialog open, or is being
//! primed.

use super::error::CliError;
use super::interrupts::Interrupts;
use super::output::Tone;
use super::session::ANSWER_LATE;
use super::view::{ViewFile, said, shown};
use super::{CliSession, view};
use crate::contract::{AgentState, AgentView, DeliveryView};
use crate::core::text::sanitise;
use serde_json::{Map, Value};
use std::time::{Duration, Instant};

/// Nothing is printed for this long: mostly a text is typed at once.
const SILENT: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_millis(250);

/// Watches the agent, and prints each cause once.
struct Waiting<'s> {
    session: &'s CliSession,
    agent_id: &'s str,
    next: Instant,
    told: String,
}

impl<'s> Waiting<'s> {
    fn new(session: &'s CliSession, agent_id: &'s str) -> Self {
        Waiting { session, agent_id, next: Instant::now() + SILENT, told: String::new() }
    }

    /// Looks at the agent, if it is time to. A view that can't be read changes nothing.
    fn look(&mut self) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + EVERY;
        let Ok(Some(agent)) = view::agent(&self.session.home, self.agent_id) else { return };
        let Some(cause) = cause(&agent).filter(|cause| *cause != self.told) else { return };
        self.session.out.note(&self.session.out.paint(Tone::Faint, &format!("waiting: {cause}")));
        self.told = cause;
    }
}

impl CliSession {
    /// Submits the request to type a text, and waits for its answer. Meanwhile it prints on standard error what the
    /// text waits for.
    ///
    /// # Errors
    /// As [`CliSession::ask`]; `interrupted`, exit code 130, after Ctrl-C and the like.
    pub fn ask_to_type(&self, fields: Map<String, Value>, agent_id: &str) -> Result<ViewFile<DeliveryView>, CliError> {
        let mut waiting = Waiting::new(self, agent_id);
        let interrupts = Interrupts::while_asking()?;
        self.ask_meanwhile(None, "agent_send", fields, ANSWER_LATE, &mut || {
            waiting.look();
            interrupts.check()
        })
    }
}

/// Why nothing is typed yet; none if nothing is in the way.
fn cause(agent: &AgentView) -> Option<String> {
    let short = || shown(agent.agent_id.as_str()).chars().take(8).collect();
    let who = sanitise(&said(agent.persona_slug.as_deref()).map_or_else(short, str::to_owned));
    match agent.state.known() {
        Some(AgentState::Starting) => Some(format!("{who} is starting")),
        Some(AgentState::Blocked) => {
            let pane = sanitise(&shown(agent.pane.as_deref()));
            Some(format!("{who} has a dialog open in {pane}; answer it there"))
        }
        Some(AgentState::Busy) => Some(format!("{who} is busy with a turn")),
        // An agent that was registered by hand gets no skill.
        Some(AgentState::Idle) if agent.started_by_tasuki && !agent.primed => {
            Some(format!("{who} is being primed with its skill"))
        }
        Some(AgentState::Idle | AgentState::Ended | AgentState::Lost) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_its_cause() {
        let text = |text: &str| Some(text.to_owned());
        let agent = |state: AgentState| AgentView {
            agent_id: "aaaa1111-0".to_owned(),
            persona_slug: text("kai"),
            state: state.into(),
            pane: text("%7"),
            primed: true,
            ..AgentView::default()
        };
        assert_eq!(cause(&agent(AgentState::Starting)).as_deref(), Some("kai is starting"));
        assert_eq!(cause(&agent(AgentState::Blocked)).as_deref(), Some("kai has a dialog open in %7; answer it there"));
        assert_eq!(cause(&agent(AgentState::Busy)).as_deref(), Some("kai is busy with a turn"));
        assert_eq!(cause(&agent(AgentState::Idle)), None);
        let unprimed = AgentView { primed: false, started_by_tasuki: true, ..agent(AgentState::Idle) };
        assert_eq!(cause(&unprimed).as_deref(), Some("kai is being primed with its skill"));
        let by_hand = AgentView { started_by_tasuki: false, ..unprimed };
        assert_eq!(cause(&by_hand), None, "tasuki gives it no skill, so nothing waits for that");
        let nameless = AgentView { persona_slug: None, ..agent(AgentState::Busy) };
        assert_eq!(cause(&nameless).as_deref(), Some("aaaa1111 is busy with a turn"));
    }
}
