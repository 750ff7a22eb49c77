//! What a text waits for, told while it waits: an agent that starts, that is in a turn, or that asks its person something.

use super::output::Tone;
use super::{Session, view};
use crate::core::text::sanitise;
use serde_json::Value;
use std::time::{Duration, Instant};

/// So long nothing is said: mostly a text is typed at once.
const SILENT: Duration = Duration::from_secs(1);
/// Pause between two looks.
const EVERY: Duration = Duration::from_millis(250);

/// Looks at the agent, and tells each cause once.
pub(super) struct Waiting<'s> {
    session: &'s Session,
    agent_id: &'s str,
    next: Instant,
    told: String,
}

impl<'s> Waiting<'s> {
    pub(super) fn new(session: &'s Session, agent_id: &'s str) -> Self {
        Waiting { session, agent_id, next: Instant::now() + SILENT, told: String::new() }
    }

    /// Looks, if it is time to. A view that can't be read tells nothing.
    pub(super) fn look(&mut self) {
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

/// Why nothing is typed yet; none if nothing is in the way.
fn cause(agent: &Value) -> Option<String> {
    let short = || view::cell(agent, "agent_id").chars().take(8).collect();
    let who = sanitise(&view::text(agent, "persona_slug").map_or_else(short, str::to_owned));
    match view::text(agent, "state")? {
        "starting" => Some(format!("{who} is starting")),
        "blocked" => {
            let pane = sanitise(&view::cell(agent, "pane"));
            Some(format!("{who} has a dialog open in {pane}; answer it there"))
        }
        "busy" => Some(format!("{who} is in a turn")),
        "idle" if agent.get("primed") == Some(&Value::Bool(false)) => Some(format!("{who} is being given its skill")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_state_has_its_cause() {
        let agent =
            |state: &str| json!({"agent_id": "aaaa1111-0", "persona_slug": "kai", "state": state, "pane": "%7"});
        assert_eq!(cause(&agent("starting")).as_deref(), Some("kai is starting"));
        assert_eq!(cause(&agent("blocked")).as_deref(), Some("kai has a dialog open in %7; answer it there"));
        assert_eq!(cause(&agent("busy")).as_deref(), Some("kai is in a turn"));
        assert_eq!(cause(&agent("idle")), None);
        let nameless = json!({"agent_id": "aaaa1111-0", "persona_slug": null, "state": "busy"});
        assert_eq!(cause(&nameless).as_deref(), Some("aaaa1111 is in a turn"));
    }
}
