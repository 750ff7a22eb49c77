//! `agents`, `agent create|register|shutdown|forget`, `send`.

use super::Session;
use super::args::{AgentCommand, AgentsArgs, CreateArgs, ForgetArgs, RegisterArgs, SendArgs, ShutdownArgs};
use super::error::CliError;
use super::output::Tone;
use super::{input, names, view};
use crate::core::text::sanitise;
use serde_json::{Map, Value};
use std::path::Path;

/// Lists the agents.
///
/// # Errors
/// When the views can't be read, or there are none.
pub fn list(session: &Session, args: &AgentsArgs) -> Result<(), CliError> {
    session.require_views()?;
    let mut agents = view::objects(&session.home.agent_views())?;
    agents.retain(|agent| args.all || view::is_living(agent));
    agents.sort_by_key(|agent| (view::cell(agent, "registered_at"), view::cell(agent, "agent_id")));
    if session.out.is_json() {
        return session.out.document(&Value::Array(agents));
    }
    if agents.is_empty() {
        session.out.note("No agents. Start one with: tasuki agent create PERSONA");
        return Ok(());
    }
    for agent in &mut agents {
        let handoff = view::text(agent, "handoff_id").and_then(|id| view::handoff(&session.home, id).ok().flatten());
        let asks = handoff.is_some_and(|handoff| {
            super::handoffs::asks(&handoff) && view::text(&handoff, "successor_id") == view::text(agent, "agent_id")
        });
        if asks {
            agent["state"] = "asks you".into();
        }
    }
    for slug in agents.iter().filter(|agent| is_suggested(agent)).filter_map(|agent| view::text(agent, "persona_slug"))
    {
        let slug = sanitise(slug);
        let reason = crate::core::gauge::REASON;
        session.out.note(&format!(
            "The context of {slug} is nearly full; hand it off with: tasuki handoff {slug} --reason {reason} --wait"
        ));
    }
    let (headings, mut rows) = table(&agents, session.out.is_unicode());
    let home = std::env::var("HOME").unwrap_or_default();
    for cwd in rows.iter_mut().filter_map(|row| row.last_mut()) {
        *cwd = view::tilde(cwd, &home);
    }
    let tone = |agent: &Value| match view::text(agent, "state") {
        Some("blocked" | "lost") => Tone::Bad,
        Some("asks you") => Tone::Care,
        Some("ended") => Tone::Faint,
        _ if is_suggested(agent) => Tone::Care,
        _ => Tone::Plain,
    };
    let tones: Vec<Tone> = agents.iter().map(tone).collect();
    session.out.toned(&headings, &rows, &tones)
}

/// The agents as rows; the context is shown where at least one CLI tells it.
fn table(agents: &[Value], unicode: bool) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let ids = agents.iter().flat_map(|agent| [view::text(agent, "agent_id"), view::text(agent, "handoff_id")]);
    let short = names::short(ids.flatten());
    let gauges: Vec<Option<String>> = agents.iter().map(|agent| gauge(agent, unicode)).collect();
    let with_context = gauges.iter().any(Option::is_some);
    let row = |(agent, gauge): (&Value, Option<String>)| {
        let id = |key: &str| short.get(&view::cell(agent, key)).cloned().unwrap_or_else(|| "-".to_owned());
        let cell = |key: &str| view::cell(agent, key);
        let mut row = vec![id("agent_id"), cell("persona_slug"), cell("profile"), cell("pane"), cell("state")];
        row.extend(with_context.then(|| gauge.unwrap_or_else(|| "-".to_owned())));
        row.extend([id("handoff_id"), cell("cwd")]);
        row
    };
    let rows = agents.iter().zip(gauges).map(row).collect();
    let mut headings = vec!["AGENT", "PERSONA", "PROFILE", "PANE", "STATE"];
    headings.extend(with_context.then_some("CONTEXT"));
    headings.extend(["HANDOFF", "CWD"]);
    (headings, rows)
}

/// Whether its context is so full that a handoff is suggested.
fn is_suggested(agent: &Value) -> bool {
    agent["handoff_suggested"] == true
}

/// How full an agent's context is: a share of its window, or else the tokens used.
fn gauge(agent: &Value, unicode: bool) -> Option<String> {
    let context = agent.get("context")?;
    let used = context.get("used")?.as_u64()?;
    Some(match context.get("percent").and_then(Value::as_u64) {
        Some(percent) => {
            let word = if is_suggested(agent) { ", hand off" } else { "" };
            format!("{} {percent:>3} %{word}", bar(percent, unicode))
        }
        None => format!("{used} tokens"),
    })
}

/// A share as a bar of five cells; what is used at all shows, and only what is full fills it.
pub(super) fn bar(percent: u64, unicode: bool) -> String {
    const CELLS: usize = 5;
    let full = usize::try_from(percent / 20).unwrap_or(CELLS).max(usize::from(percent > 0)).min(CELLS);
    let (on, off) = if unicode { ("█", "░") } else { ("#", "-") };
    on.repeat(full) + &off.repeat(CELLS - full)
}

/// Starts, adopts, ends or forgets an agent.
///
/// # Errors
/// What the sidecar refused.
pub fn command(session: &Session, command: &AgentCommand) -> Result<(), CliError> {
    match command {
        AgentCommand::Create(args) => create(session, args),
        AgentCommand::Register(args) => register(session, args),
        AgentCommand::Shutdown(args) => shutdown(session, args),
        AgentCommand::Forget(args) => forget(session, args),
    }
}

fn create(session: &Session, args: &CreateArgs) -> Result<(), CliError> {
    let mut fields = Map::from_iter([("persona_slug".to_owned(), args.persona.clone().into())]);
    let mut put = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value.into());
        }
    };
    put("profile", args.profile.clone());
    put("session", args.session.clone());
    put("cwd", args.cwd.as_deref().map(folder).transpose()?);
    put("previous_agent_id", args.previous.as_deref().map(|name| names::agent(&session.home, name)).transpose()?);
    let answer = session.ask("agent_create", fields, super::ANSWER_LATE)?;
    session
        .tell(&answer, &format!("agent {} in pane {}", view::cell(&answer, "agent_id"), view::cell(&answer, "pane")))?;
    let seen = view::agent(&session.home, &view::cell(&answer, "agent_id")).ok().flatten().unwrap_or(Value::Null);
    if let Some(name) = view::text(&seen, "tmux_session") {
        let name = sanitise(name);
        session.out.note(&format!("It lives in the tmux session {name}; go there with: tmux switch-client -t {name}"));
    }
    Ok(())
}

/// A folder as an absolute path in UTF-8, for JSON carries no other.
pub fn folder(path: &Path) -> Result<String, CliError> {
    let full = std::fs::canonicalize(path).map_err(|error| CliError::file("There is no folder", path, &error))?;
    full.into_os_string()
        .into_string()
        .map_err(|name| CliError::usage(format!("The path {} is not UTF-8.", Path::new(&name).display())))
}

fn register(session: &Session, args: &RegisterArgs) -> Result<(), CliError> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let pane = match args.pane.as_str() {
        "." => {
            variable("TMUX_PANE").ok_or_else(|| CliError::usage("This runs in no tmux pane (TMUX_PANE is not set)."))?
        }
        pane => pane.to_owned(),
    };
    let mut fields = Map::from_iter([("pane".to_owned(), pane.clone().into())]);
    let mut put = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value.into());
        }
    };
    put("tmux", variable("TMUX"));
    put("persona_slug", args.persona.clone());
    put("profile", args.profile.clone());
    let answer = session.ask("agent_register", fields, super::ANSWER_SOON)?;
    session.tell(&answer, &format!("agent {} in pane {}", view::cell(&answer, "agent_id"), sanitise(&pane)))?;
    if let Some(slug) = &args.persona {
        note_of_others(session, slug)?;
    }
    Ok(())
}

/// A persona names its one living agent: with another one it names none any more.
fn note_of_others(session: &Session, slug: &str) -> Result<(), CliError> {
    let agents = view::objects(&session.home.agent_views())?;
    let has_it = |agent: &&Value| {
        view::is_living(agent) && !agent["pane"].is_null() && view::text(agent, "persona_slug") == Some(slug)
    };
    let count = agents.iter().filter(has_it).count();
    if count > 1 {
        let slug = sanitise(slug);
        session.out.note(&format!("{slug} names {count} agents now: name them by their ids, or end all but one."));
    }
    Ok(())
}

fn shutdown(session: &Session, args: &ShutdownArgs) -> Result<(), CliError> {
    let id = names::agent(&session.home, &args.agent)?;
    let mut fields = Map::from_iter([("agent_id".to_owned(), id.clone().into())]);
    if args.force {
        fields.insert("force".to_owned(), Value::Bool(true));
    }
    let answer = session.ask("agent_shutdown", fields, super::ANSWER_LATE)?;
    session.tell(&answer, &format!("agent {id} ended at {}", view::cell(&answer, "ended_at")))
}

fn forget(session: &Session, args: &ForgetArgs) -> Result<(), CliError> {
    let id = names::agent(&session.home, &args.agent)?;
    let fields = Map::from_iter([("agent_id".to_owned(), id.clone().into())]);
    let answer = session.ask("agent_forget", fields, super::ANSWER_SOON)?;
    session.tell(&answer, &format!("agent {id} is forgotten; its files are left as they are"))
}

/// Types a text into an agent's composer and says what became of it.
///
/// # Errors
/// What the sidecar refused; exit code 1 too when the verdict is not `delivered`.
pub fn send(session: &Session, args: &SendArgs) -> Result<(), CliError> {
    let id = names::agent(&session.home, &args.agent)?;
    let text = if args.text == "-" { input::standard_input()? } else { args.text.clone() };
    let fields = Map::from_iter([("agent_id".to_owned(), id.clone().into()), ("text".to_owned(), text.into())]);
    let answer = session.ask_to_type(fields, &id)?;
    let verdict = view::cell(&answer, "verdict");
    let tone = if verdict == "delivered" { Tone::Good } else { Tone::Bad };
    session.tell(&answer, &session.out.paint(tone, &sanitise(&verdict)))?;
    if verdict == "delivered" {
        return Ok(());
    }
    let reason = view::text(&answer, "reason").map(|reason| format!(" ({})", sanitise(reason))).unwrap_or_default();
    Err(CliError::refused(sanitise(&verdict), format!("The text's arrival is not proven{reason}."))
        .hint("Look at the pane before you send it again: it may be there."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_context_is_shown_where_it_is_known() {
        let plain = json!({"agent_id": "aaaa1111-0", "persona_slug": "kai", "state": "idle", "context": null});
        let (headings, rows) = table(std::slice::from_ref(&plain), true);
        assert!(!headings.contains(&"CONTEXT"));
        assert_eq!(rows[0][0], "aaaa1111");
        let full = json!({"agent_id": "bbbb1111-0", "context": {"used": 90_000, "window": 200_000, "percent": 45}});
        let open = json!({"agent_id": "cccc1111-0", "context": {"used": 90_000, "window": null, "percent": null}});
        let mut nearly = full.clone();
        nearly["handoff_suggested"] = true.into();
        let (headings, rows) = table(&[plain, full, open, nearly], true);
        let at = headings.iter().position(|heading| *heading == "CONTEXT").expect("a column");
        let shown: Vec<&str> = rows.iter().map(|row| row[at].as_str()).collect();
        assert_eq!(shown, ["-", "██░░░  45 %", "90000 tokens", "██░░░  45 %, hand off"]);
        assert_eq!(
            [0, 1, 99, 100, 250].map(|percent| bar(percent, false)),
            ["-----", "#----", "####-", "#####", "#####"]
        );
    }
}
