//! `agents`, `agent create|register|shutdown|forget`, `send`.

use super::CliSession;
use super::error::CliError;
use super::output::{Tone, bar};
use super::register::{self, RegisterArgs};
use super::unread::Unread;
use super::view::{ViewFile, said, shown};
use super::{input, names, remote, view};
use crate::contract::reply::AgentReply;
use crate::contract::{AgentState, AgentView, LimitedView, Verdict};
use crate::core::host::HostName;
use crate::core::text::sanitise;
use clap::{Args, Subcommand};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// `agents`.
#[derive(Debug, Args)]
pub struct AgentsArgs {
    /// Show agents that have ended too.
    #[arg(long, short)]
    pub all: bool,
    /// Show the agents of all hosts of the fleet.
    #[arg(long, conflicts_with = "all")]
    pub all_hosts: bool,
}

/// `send`.
#[derive(Debug, Args)]
pub struct SendArgs {
    /// Agent id or a unique prefix, persona, pane such as `%3`, `.` for the agent in this pane, or `kai@b` for an agent
    /// on the host b.
    pub agent: String,
    /// The text, or `-` for standard input. tasuki types it as a text from the operator, with its signature below.
    pub text: String,
}

/// `agent …`.
#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Start an agent with a persona and prime it with the persona's skill.
    #[command(after_help = "Example:\n  tasuki agent create kai --profile demo --cwd ~/src/app")]
    Create(CreateArgs),
    /// Adopt an agent that already runs in a pane. Nothing is typed into it.
    #[command(after_help = "Example:\n  tasuki agent register %3 --persona kai")]
    Register(RegisterArgs),
    /// End an agent with its profile's exit command.
    #[command(after_help = "Example:\n  tasuki agent shutdown kai")]
    Shutdown(ShutdownArgs),
    /// Forget an agent that is listed as running although its process has ended. Nothing changes in tmux.
    #[command(after_help = "Example:\n  tasuki agent forget 6f1c3a52")]
    Forget(ForgetArgs),
}

/// `agent create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// The persona's slug, or `kai@b` for the persona kai on the host b.
    pub persona: String,
    /// The profile [default: the profile that the persona names].
    #[arg(long)]
    pub profile: Option<String>,
    /// The model, as the CLI's own option takes it [default: the CLI chooses].
    #[arg(long)]
    pub model: Option<String>,
    /// The agent's working folder; on another host, a whole path there.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// The tmux session to open the window in.
    #[arg(long)]
    pub session: Option<String>,
    /// The agent whose work the new agent continues.
    #[arg(long, value_name = "AGENT")]
    pub previous: Option<String>,
}

/// `agent shutdown`.
#[derive(Debug, Args)]
pub struct ShutdownArgs {
    /// Agent id or a unique prefix, persona, pane such as `%3`, or `kai@b` for an agent on the host b.
    pub agent: String,
    /// Close the pane if the agent does not end; only for agents that tasuki started.
    #[arg(long)]
    pub force: bool,
}

/// `agent forget`.
#[derive(Debug, Args)]
pub struct ForgetArgs {
    /// Agent id or a unique prefix, persona, or pane such as `%3`.
    pub agent: String,
}

/// Lists the agents.
///
/// # Errors
/// When the views can't be read, or there are none.
pub fn list(session: &CliSession, args: &AgentsArgs) -> Result<(), CliError> {
    if args.all_hosts {
        return remote::list::agents(session);
    }
    session.require_views()?;
    let mut unread = Unread::default();
    let mut agents: Vec<ViewFile<AgentView>> = view::all(&session.home.agent_views(), &mut unread)?;
    session.warn(&unread);
    agents.retain(|agent| args.all || agent.is_living());
    agents.sort_by_cached_key(|agent| place(agent));
    if session.out.is_json() {
        return session.out.document(&agents.iter().map(ViewFile::json).collect());
    }
    if agents.is_empty() {
        session.out.note("No agents. Start one with: tasuki agent create PERSONA");
        return Ok(());
    }
    let ids = names::short(agents.iter().map(|agent| agent.agent_id.as_str()));
    for agent in agents.iter().filter(|agent| agent.handoff_suggested) {
        let Some(slug) = said(agent.persona_slug.as_deref()).map(sanitise) else { continue };
        // Several agents may have the persona.
        let id = ids.get(agent.agent_id.as_str()).map_or(agent.agent_id.as_str(), String::as_str);
        let reason = crate::core::agent::context_usage::REASON;
        session.out.note(&format!(
            "The context of {slug} is nearly full; to hand it off: tasuki handoff {id} --reason {reason} --wait"
        ));
    }
    let asks = |agent: &AgentView| {
        let handoff = said(agent.handoff_id.as_deref()).and_then(|id| view::handoff(&session.home, id).ok().flatten());
        handoff.is_some_and(|handoff| handoff.asks() && handoff.successor_id.as_ref() == Some(&agent.agent_id))
    };
    let agents: Vec<Line> = agents.iter().map(|agent| Line { agent, asks: asks(agent) }).collect();
    let (headings, mut rows) = table(&agents, session.out.is_unicode());
    let home = std::env::var("HOME").unwrap_or_default();
    for cwd in rows.iter_mut().filter_map(|row| row.last_mut()) {
        *cwd = view::tilde(cwd, &home);
    }
    let tone = |line: &Line| match line.agent.state.known() {
        _ if line.asks => Tone::Care,
        Some(AgentState::Blocked | AgentState::Lost) => Tone::Bad,
        Some(AgentState::Ended) => Tone::Faint,
        _ if line.agent.handoff_suggested => Tone::Care,
        _ => Tone::Plain,
    };
    let tones: Vec<Tone> = agents.iter().map(tone).collect();
    session.out.toned(&headings, &rows, &tones)
}

/// The key by which lists of agents are sorted: when the agent was registered, then its id.
pub(super) fn place(agent: &AgentView) -> (String, String) {
    (shown(agent.registered_at.as_deref()), shown(agent.agent_id.as_str()))
}

struct Line<'a> {
    agent: &'a AgentView,
    /// The agent is the successor of a handoff, and waits for answers to its questions.
    asks: bool,
}

/// Headings and rows. There is a column for the context usage only if the usage of at least one agent is known.
fn table(agents: &[Line<'_>], unicode: bool) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let ids = agents.iter().flat_map(|Line { agent, .. }| [Some(agent.agent_id.as_str()), agent.handoff_id.as_deref()]);
    let short = names::short(ids.filter_map(said));
    let contexts: Vec<Option<String>> = agents.iter().map(|line| context_cell(line.agent, unicode)).collect();
    let with_context = contexts.iter().any(Option::is_some);
    let row = |(Line { agent, asks }, context): (&Line<'_>, Option<String>)| {
        let id = |id: Option<&str>| id.and_then(|id| short.get(id)).cloned().unwrap_or_else(|| "-".to_owned());
        let state = if *asks { "asks you" } else { agent.state.as_str() };
        let reopened = if agent.reopened { " (reopened)" } else { "" };
        let mut row = vec![id(Some(&agent.agent_id)), shown(agent.persona_slug.as_deref())];
        row.extend([shown(agent.profile.as_str()), shown(agent.pane.as_deref()), shown(state) + reopened]);
        row.extend(with_context.then(|| context.unwrap_or_else(|| "-".to_owned())));
        row.extend([id(agent.handoff_id.as_deref()), shown(agent.cwd.as_deref())]);
        row
    };
    let rows = agents.iter().zip(contexts).map(row).collect();
    let mut headings = vec!["AGENT", "PERSONA", "PROFILE", "PANE", "STATE"];
    headings.extend(with_context.then_some("CONTEXT"));
    headings.extend(["HANDOFF", "CWD"]);
    (headings, rows)
}

/// How full an agent's context is: a share of its window, or else the tokens used.
fn context_cell(agent: &AgentView, unicode: bool) -> Option<String> {
    let context = agent.context.as_ref()?;
    Some(match context.percent {
        Some(percent) => {
            let word = if agent.handoff_suggested { ", hand off" } else { "" };
            format!("{} {percent:>3} %{word}", bar(percent, unicode))
        }
        None => format!("{} tokens", context.used),
    })
}

/// All details of an agent, as `tasuki top` shows them.
pub(super) fn lines(seen: &AgentView) -> Vec<String> {
    let text = |text: &Option<String>| text.clone();
    let at = |at: &Option<String>| said(at.as_deref()).map(view::clock);
    let fields = [
        ("persona", text(&seen.persona_slug)),
        ("profile", Some(seen.profile.clone())),
        ("model", seen.model.clone()),
        ("state", Some(seen.state.as_str().to_owned())),
        ("limited", seen.limited.as_ref().map(limited)),
        ("pane", text(&seen.pane)),
        ("session", text(&seen.tmux_session)),
        ("process", seen.pid.map(|pid| pid.to_string())),
        ("folder", text(&seen.cwd)),
        ("hooks", Some(seen.hooks.as_str().to_owned())),
        ("handoff", text(&seen.handoff_id)),
        ("predecessor", text(&seen.previous_agent_id)),
        ("successor", text(&seen.successor_id)),
        ("registered", at(&seen.registered_at)),
        ("ended", at(&seen.ended_at)),
        ("transcript", text(&seen.transcript_path)),
        ("resume", text(&seen.resume_command)),
        ("reopened of", text(&seen.reopened_from)),
    ];
    let mut lines = vec![format!("agent {}", shown(seen.agent_id.as_str()))];
    for (name, field) in fields {
        lines.extend(said(field.as_deref()).map(|field| format!("  {name:<11} {field}")));
    }
    lines.extend(seen.context.as_ref().map(|context| match context.window {
        Some(window) => format!("  {:<11} {} of {window} tokens", "context", context.used),
        None => format!("  {:<11} {} tokens", "context", context.used),
    }));
    lines
}

/// Which limit stops the CLI, and until when.
fn limited(limited: &LimitedView) -> String {
    let until = said(limited.until.as_deref()).map(|until| format!(" until {}", view::clock(until)));
    format!("{}{}: {}", limited.kind.as_str(), until.unwrap_or_default(), limited.said)
}

/// Starts, adopts, ends or forgets an agent.
///
/// # Errors
/// What the sidecar refused.
pub fn command(session: &CliSession, command: &AgentCommand) -> Result<(), CliError> {
    match command {
        AgentCommand::Create(args) => create(session, args),
        AgentCommand::Register(args) => register::register(session, args),
        AgentCommand::Shutdown(args) => shutdown(session, args),
        AgentCommand::Forget(args) => forget(session, args),
    }
}

fn create(session: &CliSession, args: &CreateArgs) -> Result<(), CliError> {
    let persona = remote::names::persona(&session.home, &args.persona)?;
    let host = persona.host.as_ref();
    let mut fields = Map::from_iter([("persona_slug".to_owned(), persona.id.clone().into())]);
    let mut put = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value.into());
        }
    };
    put("profile", args.profile.clone());
    put("model", args.model.clone());
    put("session", args.session.clone());
    put("cwd", args.cwd.as_deref().map(|path| folder_on(host, path)).transpose()?);
    let previous = args.previous.as_deref().map(|name| remote::names::agent_on(&session.home, host, name));
    put("previous_agent_id", previous.transpose()?);
    let answer: ViewFile<AgentReply> = session.ask_about_agent(host, "agent_create", fields)?;
    let (id, pane) = (shown(answer.agent_id.as_deref()), shown(answer.pane.as_ref().and_then(Option::as_deref)));
    session.report(&answer.json(), &format!("agent {} in pane {pane}", persona.beside(id.clone())))?;
    if persona.host.is_some() {
        return Ok(());
    }
    let seen = view::agent(&session.home, &id).ok().flatten();
    if let Some(name) = seen.as_ref().and_then(|agent| said(agent.tmux_session.as_deref())) {
        let name = sanitise(name);
        session.out.note(&format!(
            "The agent runs in the tmux session {name}; go there with: {}",
            super::go_to::go_to(&session.home, &name)
        ));
    }
    Ok(())
}

/// A folder's absolute path, with links resolved. A path that is not UTF-8 is an error: JSON can't carry it.
pub fn folder(path: &Path) -> Result<String, CliError> {
    let full = std::fs::canonicalize(path).map_err(|error| CliError::file("Can't find the folder", path, &error))?;
    full.into_os_string()
        .into_string()
        .map_err(|name| CliError::usage(format!("The path {} is not UTF-8.", Path::new(&name).display())))
}

/// A folder on the host where the agent will run. A folder on another host can't be looked up from here, so its path
/// must be absolute.
fn folder_on(host: Option<&HostName>, path: &Path) -> Result<String, CliError> {
    let Some(host) = host else { return folder(path) };
    let name = path.to_str().filter(|_| path.is_absolute()).map(str::to_owned);
    name.ok_or_else(|| CliError::usage(format!("A folder on the host {host} must be given as a whole path, from `/`.")))
}

fn shutdown(session: &CliSession, args: &ShutdownArgs) -> Result<(), CliError> {
    let agent = remote::names::agent(&session.home, &args.agent)?;
    let mut fields = Map::from_iter([("agent_id".to_owned(), agent.id.clone().into())]);
    if args.force {
        fields.insert("force".to_owned(), Value::Bool(true));
    }
    let host = agent.host.as_ref();
    let answer: ViewFile<AgentReply> = session.ask_about_agent(host, "agent_shutdown", fields)?;
    let ended_at = shown(answer.ended_at.as_ref().and_then(Option::as_deref));
    session.report(&answer.json(), &format!("agent {agent} ended at {ended_at}"))
}

fn forget(session: &CliSession, args: &ForgetArgs) -> Result<(), CliError> {
    let id = names::agent(&session.home, &args.agent)?;
    let fields = Map::from_iter([("agent_id".to_owned(), id.clone().into())]);
    let answer: ViewFile<AgentReply> = session.ask("agent_forget", fields, super::ANSWER_SOON)?;
    session.report(&answer.json(), &format!("agent {id} is forgotten; its files were left as they are"))
}

/// Types a text into an agent's composer and prints the verdict.
///
/// # Errors
/// What the sidecar refused; exit code 1 too when the verdict is not `delivered`.
pub fn send(session: &CliSession, args: &SendArgs) -> Result<(), CliError> {
    let remote::names::Named { id, host } = remote::names::agent(&session.home, &args.agent)?;
    let text = if args.text == "-" { input::standard_input()? } else { args.text.clone() };
    let fields = Map::from_iter([("agent_id".to_owned(), id.clone().into()), ("text".to_owned(), text.into())]);
    let answer = match &host {
        None => session.ask_to_type(fields, &id)?,
        Some(_) => session.ask_about_agent(host.as_ref(), "agent_send", fields)?,
    };
    let verdict = sanitise(&shown(answer.verdict.as_str()));
    let tone = if answer.verdict == Verdict::Delivered { Tone::Good } else { Tone::Bad };
    session.report(&answer.json(), &session.out.paint(tone, &verdict))?;
    if answer.verdict == Verdict::Delivered {
        return Ok(());
    }
    let reason = said(answer.reason.as_deref()).map(why_unconfirmed).unwrap_or_default();
    Err(CliError::refused(verdict, format!("tasuki could not confirm that the text arrived{reason}."))
        .hint("Look at the pane before you send the text again: it may have arrived."))
}

/// Why nobody knows whether a text arrived, to complete a sentence.
fn why_unconfirmed(reason: &str) -> String {
    let words = match reason {
        "not_seen" => ": it was not seen in the composer",
        "mixed_draft" => ": the composer showed other characters too",
        "not_submitted" => ": it is still in the composer",
        "no_receipt" => ": the agent's hooks reported no prompt",
        "partial" => ": the agent's hooks reported another prompt than the one that was typed",
        "not_taken" => ": it did not appear in the transcript",
        "dialog" => ": a dialog opened",
        "deadline" => " in time",
        _ => "",
    };
    format!("{words} ({})", sanitise(reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::ContextView;

    #[test]
    fn the_context_is_shown_where_it_is_known() {
        let agent = |id: &str, context: Option<ContextView>| AgentView {
            agent_id: id.to_owned(),
            state: AgentState::Idle.into(),
            context,
            ..AgentView::default()
        };
        let table = |agents: &[AgentView]| {
            let line = |agent| Line { agent, asks: false };
            table(&agents.iter().map(line).collect::<Vec<_>>(), true)
        };
        let plain = agent("aaaa1111-0", None);
        let (headings, rows) = table(std::slice::from_ref(&plain));
        assert!(!headings.contains(&"CONTEXT"));
        assert_eq!(rows[0], ["aaaa1111", "-", "-", "-", "idle", "-", "-"]);
        let context = ContextView { used: 90_000, ..ContextView::default() };
        let full = ContextView { window: Some(200_000), percent: Some(45), ..context };
        let nearly = AgentView { handoff_suggested: true, ..agent("dddd1111-0", Some(full.clone())) };
        let all = [plain, agent("bbbb1111-0", Some(full)), agent("cccc1111-0", Some(context)), nearly];
        let (headings, rows) = table(&all);
        let at = headings.iter().position(|heading| *heading == "CONTEXT").expect("a column");
        let shown: Vec<&str> = rows.iter().map(|row| row[at].as_str()).collect();
        assert_eq!(shown, ["-", "██░░░  45 %", "90000 tokens", "██░░░  45 %, hand off"]);
        assert_eq!(
            [0, 1, 99, 100, 250].map(|percent| bar(percent, false)),
            ["-----", "#----", "####-", "#####", "#####"]
        );
    }
}
