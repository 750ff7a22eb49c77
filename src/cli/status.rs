//! `status`: what waits for a person, each with the command that settles it.

use super::error::CliError;
use super::output::{Tone, one_line};
use super::view::said;
use super::{CliSession, client, go_to, home_option, needs};
use crate::contract::{NeedKind, NeedView};
use crate::exit;
use serde_json::json;

/// Prints the list. Returns the exit code: 0 if nothing waits for a person, else 10.
///
/// # Errors
/// 69 if no sidecar runs, and when the views can't be read.
pub fn command(session: &CliSession) -> Result<u8, CliError> {
    client::require_sidecar(&session.home)?;
    let found = needs::read(&session.home)?;
    let code = if found.needs.is_empty() { exit::DONE } else { exit::NEEDS_YOU };
    if session.out.is_json() {
        session.out.document(&json!(found.needs))?;
        return Ok(code);
    }
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let all = format!("{}, {}", count(found.agents, "agent"), count(found.handoffs, "running handoff"));
    if found.needs.is_empty() {
        session.out.line(&format!("{} ({all})", session.out.paint(Tone::Good, "Nothing needs you.")))?;
        return Ok(code);
    }
    let needs = if found.needs.len() == 1 { "thing needs" } else { "things need" };
    session.out.line(&format!("{} {needs} you ({all})", found.needs.len()))?;
    for need in &found.needs {
        for line in lines(session, need) {
            session.out.line(&line)?;
        }
    }
    Ok(code)
}

/// One entry as text: what waits and what it is about, then the hint, then the command.
fn lines(session: &CliSession, need: &NeedView) -> Vec<String> {
    let out = &session.out;
    let what = out.paint(tone(need), &format!("{:<10}", need.what.as_str().replace('_', " ")));
    let since = said(need.since.as_deref()).map(|at| format!("  {}", out.paint(Tone::Faint, &out.when(at))));
    let mut lines = vec![format!("{what}  {}: {}{}", subject(need), one_line(&need.said), since.unwrap_or_default())];
    let hint = said(need.hint.as_deref()).map(|hint| one_line(&home_option::fit(hint)));
    lines.extend(hint.map(|hint| format!("  {}", out.paint(Tone::Faint, &hint))));
    lines.push(format!("  {}", out.paint(Tone::Strong, &one_line(&go_to::fit(&session.home, &need.command)))));
    lines
}

fn tone(need: &NeedView) -> Tone {
    match need.what.known() {
        Some(NeedKind::Degraded | NeedKind::Dialog | NeedKind::Question | NeedKind::InDoubt | NeedKind::Failed) => {
            Tone::Bad
        }
        Some(NeedKind::Held | NeedKind::Limited | NeedKind::Escalated | NeedKind::Unprimed) => Tone::Care,
        Some(NeedKind::Suggestion) | None => Tone::Plain,
    }
}

/// What the entry is about, in a few words.
#[must_use]
pub fn subject(need: &NeedView) -> String {
    let short = |id: &str| id.chars().take(8).collect::<String>();
    let ids = [("agent", &need.agent_id), ("handoff", &need.handoff_id), ("item", &need.item_id)];
    let about = ids.into_iter().find_map(|(kind, id)| Some(format!("{kind} {}", short(id.as_deref()?))));
    match (said(need.persona_slug.as_deref()), about) {
        (Some(slug), Some(about)) => one_line(&format!("{slug}, {about}")),
        (None, Some(about)) => one_line(&about),
        (_, None) => "tasuki".to_owned(),
    }
}
