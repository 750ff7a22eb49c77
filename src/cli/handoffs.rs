//! `handoffs` and `handoffs show`.

use super::Session;
use super::args::{HandoffName, HandoffsArgs, HandoffsCommand};
use super::error::CliError;
use super::follow::{self, Progress};
use super::output::{Tone, short_text};
use super::{names, past, view, wait};
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
        Some(HandoffsCommand::Follow(name)) => {
            let id = names::handoff(&session.home, &name.handoff)?;
            wait::follow_to_end(session, &id, follow::Follower::new()).map(|_| ())
        }
        None => list(session, args.limit),
    }
}

fn list(session: &Session, limit: usize) -> Result<(), CliError> {
    let mut handoffs = view::newest(&session.home.handoff_views(), limit)?;
    handoffs.sort_by_key(|handoff| std::cmp::Reverse(view::cell(handoff, "created_at")));
    if session.out.is_json() {
        return session.out.document(&Value::Array(handoffs));
    }
    if handoffs.is_empty() {
        session.out.note("No handoffs. Ask for one with: tasuki handoff AGENT --wait");
        return Ok(());
    }
    let keys = ["handoff_id", "agent_id", "successor_id"];
    let short = names::short(handoffs.iter().flat_map(|handoff| keys.map(|key| view::text(handoff, key))).flatten());
    let row = |handoff: &Value| {
        let cell = |key: &str| view::cell(handoff, key);
        let code = handoff.get("error").and_then(|error| view::text(error, "code"));
        let news = code.or_else(|| asks(handoff).then_some("asks you"));
        let state = news.map_or_else(|| cell("step"), |news| format!("{}: {news}", cell("step")));
        let id = |key: &str| short.get(&view::cell(handoff, key)).cloned().unwrap_or_else(|| "-".to_owned());
        let created = session.out.when(&cell("created_at"));
        let ids = (id("handoff_id"), id("agent_id"), id("successor_id"));
        vec![ids.0, cell("persona_slug"), created, state, ids.1, ids.2, short_text(&cell("reason"), LONGEST_REASON)]
    };
    let rows: Vec<Vec<String>> = handoffs.iter().map(row).collect();
    let tone = |handoff: &Value| match view::text(handoff, "step") {
        Some("failed") => Tone::Bad,
        _ if asks(handoff) => Tone::Care,
        _ => Tone::Plain,
    };
    let tones: Vec<Tone> = handoffs.iter().map(tone).collect();
    session.out.toned(&["HANDOFF", "PERSONA", "ASKED FOR", "STEP", "FROM", "TO", "REASON"], &rows, &tones)
}

/// As much of a reason as a row shows: it may be as long as a request.
const LONGEST_REASON: usize = 120;

fn show(session: &Session, name: &HandoffName) -> Result<(), CliError> {
    let id = names::handoff(&session.home, &name.handoff)?;
    let seen = past::handoff(&session.home, &id)?;
    let seen = seen.ok_or_else(|| CliError::refused("no_handoff", "Handoff not found"))?;
    if session.out.is_json() {
        return session.out.document(&seen);
    }
    lines(&seen).iter().try_for_each(|line| session.out.line(line))
}

/// Whether its successor has asked something that nobody has answered.
pub(super) fn asks(handoff: &Value) -> bool {
    view::text(handoff, "step") == Some("acknowledging")
        && handoff.get("ack").is_some_and(|ack| view::text(ack, "status") == Some("needs_clarification"))
}

/// One handoff as text.
pub(super) fn lines(seen: &Value) -> Vec<String> {
    let mut lines = vec![format!("handoff {}", sanitise(&view::cell(seen, "handoff_id")))];
    let fields = [
        ("step", "step"),
        ("from", "agent_id"),
        ("persona", "persona_slug"),
        ("reason", "reason"),
        ("focus", "focus"),
        ("asked for", "created_at"),
        ("deadline", "deadline"),
    ];
    for (name, key) in fields {
        let shown = view::text(seen, key)
            .map(|text| if key == "created_at" || key == "deadline" { view::clock(text) } else { text.to_owned() });
        let shown = shown.map(|text| plain(&text));
        lines.extend(shown.map(|text| format!("  {name:<10} {text}")));
    }
    lines.extend(follow::summary(seen).into_iter().map(|line| format!("  {line}")));
    lines.push("  steps".to_owned());
    lines.extend(step_lines(seen));
    lines.extend(acknowledgement(seen));
    lines.extend(checklist(seen));
    if let Some(error) = seen.get("error").filter(|error| error.is_object()) {
        lines.push(CliError::from_answer(error, None).text());
    }
    lines
}

fn step_lines(seen: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open = None;
    for news in follow::Follower::new().observe(seen) {
        match &news {
            Progress::Entered { step } => open = Some(step.clone()),
            Progress::Passed { .. } | Progress::Stopped { .. } => open = None,
            Progress::Grew { .. } | Progress::Blocked { .. } => continue,
            Progress::Ended(outcome) => lines.push(format!("    {}", outcome.word())),
        }
        lines.extend(follow::line(&news).map(|(line, good)| format!("  {} {line}", if good { " " } else { "!" })));
    }
    lines.extend(open.map(|step| format!("    {step:<13} {:>10}", "running")));
    lines
}

/// In one line, so that a text can't look like a line of ours.
fn plain(text: &str) -> String {
    sanitise(text).replace(['\n', '\t'], " ")
}

/// What the successor has said, beside what it was to do; and what falls next.
fn acknowledgement(seen: &Value) -> Vec<String> {
    let Some(ack) = seen.get("ack").filter(|ack| ack.is_object()) else { return Vec::new() };
    let list = |key: &str| ack[key].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut lines = vec!["  acknowledgement".to_owned()];
    let mut say = |name: &str, what: String| lines.push(format!("    {name:<14} {}", plain(&what)));
    let late = if ack["late"].as_bool() == Some(true) { " (late)" } else { "" };
    say("status", format!("{}{late}, urgency {}", view::cell(ack, "status"), view::cell(ack, "urgency")));
    if let Some(next) = ack.get("next").filter(|next| next.is_object()) {
        say("next", format!("{} at {}", view::cell(next, "what"), view::clock(&view::cell(next, "at"))));
    }
    list("tasks").iter().filter_map(Value::as_str).for_each(|task| say("task", task.to_owned()));
    for (name, key) in
        [("understanding", "understanding"), ("checkpoint", "checkpoint"), ("starting from", "starting_from")]
    {
        if let Some(text) = view::text(ack, key) {
            say(name, text.to_owned());
        }
    }
    list("questions").iter().filter_map(Value::as_str).for_each(|question| say("question", question.to_owned()));
    if asks(seen) {
        let answers = vec!["--answer …"; list("questions").len().max(1)].join(" ");
        let id: String = view::cell(seen, "handoff_id").chars().take(8).collect();
        say("answer with", format!("tasuki clarify {id} {answers}"));
    }
    for (name, key) in [("reminder", "reminders"), ("escalation", "escalations")] {
        for sent in list(key) {
            let at = view::text(sent, "at").map(view::clock).unwrap_or_default();
            let why = view::text(sent, "reason").map(|why| format!(" ({why})")).unwrap_or_default();
            say(name, format!("to {}: {} {at}{why}", view::cell(sent, "to"), view::cell(sent, "outcome")));
        }
    }
    if let Some(by) = view::text(&ack["override"], "reason") {
        say("override", by.to_owned());
    }
    lines
}

/// The delivery, point by point, each with its time, or why it was not reached.
fn checklist(seen: &Value) -> Vec<String> {
    let points = seen.get("checklist").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let line = |point: &Value| {
        let at = view::text(point, "at");
        let sign = if at.is_some() { "[x]" } else { "[ ]" };
        let what = plain(&view::cell(point, "point"));
        let why = view::text(point, "reason").filter(|_| at.is_none()).map(|why| format!("({})", plain(why)));
        let end = at.map(view::clock).or(why).unwrap_or_default();
        format!("    {sign} {what:<32} {end}").trim_end().to_owned()
    };
    let mut lines: Vec<String> = points.iter().map(line).collect();
    if !lines.is_empty() {
        lines.insert(0, "  checklist".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_running_step_is_shown_as_running() {
        let seen = json!({"step": "writing", "steps": [{"step": "writing", "entered_at": "2026-11-21T20:00:01.000Z", "left_at": null}],
            "document": {"bytes": 12, "at": "2026-11-21T20:00:02.000Z"}, "file_path": "/d.md"});
        let text = lines(&seen).join("\n");
        assert!(text.contains("writing          running") && text.contains("/d.md (12 bytes so far"), "{text}");
    }

    #[test]
    fn an_acknowledgement_is_shown_beside_the_tasks_and_points_without_a_time_say_why() {
        let text = lines(&json!({
            "handoff_id": "h", "step": "acknowledging", "steps": [],
            "ack": {"status": "needs_clarification", "urgency": "prepare", "late": false, "tasks": ["mend the test"],
                "understanding": "to mend\na test", "checkpoint": "step 2", "starting_from": "step 3", "questions": ["Which branch?"],
                "next": {"what": "reminder", "at": "2026-11-21T20:00:01.000Z"}, "override": null,
                "reminders": [{"to": "operator", "outcome": "sent", "at": null, "reason": null}], "escalations": []},
            "checklist": [{"point": "all questions answered", "at": null, "reason": "open: Which branch?"}],
        }))
        .join("\n");
        for part in [
            "status         needs_clarification, urgency prepare",
            "task           mend the test",
            "understanding  to mend a test",
            "checkpoint     step 2",
            "starting from  step 3",
            "question       Which branch?",
            "reminder       to operator: sent",
            "[ ] all questions answered           (open: Which branch?)",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn a_handoff_is_shown_with_its_steps_and_its_error() {
        let text = lines(&json!({
            "handoff_id": "h", "step": "failed", "agent_id": "a", "reason": "r",
            "steps": [{"step": "waiting", "entered_at": "2026-11-21T20:00:00.000Z", "left_at": "2026-11-21T20:00:01.000Z"},
                      {"step": "writing", "entered_at": "2026-11-21T20:00:01.000Z", "left_at": null}],
            "error": {"code": "stop_never_came", "message": "No end.", "hint": "Look."},
            "warnings": ["the document has no section about blockers"], "file_path": "/d.md",
            "checklist": [{"point": "instruction delivered", "at": "2026-11-21T20:00:01.000Z"}, {"point": "document recorded", "at": null}],
        }))
        .join("\n");
        for part in [
            "handoff h",
            "waiting",
            "! writing",
            "stopped here",
            "No end. (stop_never_came)",
            "Look.",
            "no section about blockers",
            "[x] instruction delivered",
            "[ ] document recorded",
            "document   /d.md",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}
