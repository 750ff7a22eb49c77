//! `handoffs` and `handoffs show`.

use super::Session;
use super::args::{HandoffName, HandoffsArgs, HandoffsCommand};
use super::error::CliError;
use super::follow;
use super::{names, view};
use crate::core::text::sanitise;
use serde_json::Value;

/// Lists the handoffs, or shows one.
///
/// # Errors
/// When the views can't be read, or there are none.
pub fn command(session: &Session, args: &HandoffsArgs) -> Result<(), CliError> {
    session.require_views()?;
    match &args.command {
        Some(HandoffsCommand::Show(name)) => show(session, name),
        None => list(session, args.limit),
    }
}

fn list(session: &Session, limit: usize) -> Result<(), CliError> {
    let handoffs = view::newest(&session.home.handoff_views(), limit)?;
    if session.out.is_json() {
        return session.out.document(&Value::Array(handoffs));
    }
    if handoffs.is_empty() {
        session.out.note("No handoffs. Ask for one with: tasuki handoff AGENT --wait");
        return Ok(());
    }
    let row = |handoff: &Value| {
        let code = handoff.get("error").and_then(|error| view::text(error, "code"));
        let state =
            code.map_or_else(|| view::cell(handoff, "step"), |code| format!("{}: {code}", view::cell(handoff, "step")));
        let cell = |key: &str| view::cell(handoff, key);
        vec![cell("handoff_id"), cell("persona_slug"), state, cell("agent_id"), cell("successor_id"), cell("reason")]
    };
    let rows: Vec<Vec<String>> = handoffs.iter().map(row).collect();
    session.out.table(&["HANDOFF", "PERSONA", "STEP", "FROM", "TO", "REASON"], &rows)
}

fn show(session: &Session, name: &HandoffName) -> Result<(), CliError> {
    let id = names::handoff(&session.home, &name.handoff)?;
    let seen = view::handoff(&session.home, &id)?;
    let seen = seen.ok_or_else(|| CliError::refused("no_handoff", "Handoff not found"))?;
    if session.out.is_json() {
        return session.out.document(&seen);
    }
    lines(&seen).iter().try_for_each(|line| session.out.line(line))
}

/// One handoff as text.
fn lines(seen: &Value) -> Vec<String> {
    let mut lines = vec![format!("handoff {}", sanitise(&view::cell(seen, "handoff_id")))];
    for (name, key) in [("step", "step"), ("from", "agent_id"), ("persona", "persona_slug"), ("reason", "reason")] {
        lines.push(format!("  {name:<10} {}", sanitise(&view::cell(seen, key))));
    }
    if let Some(deadline) = view::text(seen, "deadline") {
        lines.push(format!("  deadline   {}", sanitise(deadline)));
    }
    lines.extend(follow::summary(seen).into_iter().map(|line| format!("  {line}")));
    let mut told = follow::Follower::new();
    for news in told.observe(seen) {
        match (&news, follow::line(&news)) {
            (_, Some((line, good))) => lines.push(format!("  {} {line}", if good { " " } else { "!" })),
            (follow::Progress::Ended(outcome), None) => lines.push(format!("    {}", outcome.word())),
            _ => {}
        }
    }
    if let Some(error) = seen.get("error").filter(|error| error.is_object()) {
        lines.push(CliError::from_answer(error, None).text());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_handoff_is_shown_with_its_steps_and_its_error() {
        let text = lines(&json!({
            "handoff_id": "h", "step": "failed", "agent_id": "a", "reason": "r",
            "steps": [{"step": "waiting", "entered_at": "2026-11-21T20:00:00.000Z", "left_at": "2026-11-21T20:00:01.000Z"},
                      {"step": "writing", "entered_at": "2026-11-21T20:00:01.000Z", "left_at": null}],
            "error": {"code": "stop_never_came", "message": "No end.", "hint": "Look."},
        }))
        .join("\n");
        for part in ["handoff h", "waiting", "! writing", "stopped here", "No end. (stop_never_came)", "Look."] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}
