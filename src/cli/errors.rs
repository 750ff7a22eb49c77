//! `errors` and `errors dismiss`.

use super::CliSession;
use super::client::Pulse;
use super::error::CliError;
use super::remote::names::Named;
use super::unread::Unread;
use super::view::{ViewFile, said, shown};
use super::{home_option, remote, view};
use crate::config::Home;
use crate::contract::publishing::PublishState;
use crate::contract::reply::DismissReply;
use crate::contract::{AgentView, ErrorFile, HandoffView, Step, Word};
use crate::core::needs::{AgentNeeds, HandoffNeeds, halted};
use crate::core::text::sanitise;
use clap::{Args, Subcommand};
use serde_json::{Map, json};

/// `errors`.
#[derive(Debug, Args)]
pub struct ErrorsArgs {
    /// How many errors to show, newest first.
    #[arg(long, default_value_t = 20)]
    pub limit: usize,
    /// Show the failures of all hosts of the fleet; --limit counts for each host.
    #[arg(long)]
    pub all_hosts: bool,
    /// Dismiss failures instead of listing them.
    #[command(subcommand)]
    pub command: Option<ErrorsCommand>,
}

/// `errors …`.
#[derive(Debug, Subcommand)]
pub enum ErrorsCommand {
    /// Dismiss one failure, or all of them.
    #[command(after_help = "Example:\n  tasuki errors dismiss 5f2a\n  tasuki errors dismiss --all")]
    Dismiss(DismissArgs),
}

/// `errors dismiss`.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct DismissArgs {
    /// Error id or a unique prefix, or `5f2a@b` for a failure on the host b.
    pub error: Option<String>,
    /// Dismiss all failures.
    #[arg(long)]
    pub all: bool,
}

/// Lists the failures that were not dismissed, or dismisses them.
///
/// # Errors
/// When the files can't be read, or the sidecar refused.
pub fn command(session: &CliSession, args: &ErrorsArgs) -> Result<(), CliError> {
    match &args.command {
        Some(ErrorsCommand::Dismiss(what)) => dismiss(session, what),
        None if args.all_hosts => remote::list::errors(session, args.limit),
        None => list(session, args.limit),
    }
}

fn list(session: &CliSession, limit: usize) -> Result<(), CliError> {
    session.require_views()?;
    let mut unread = Unread::default();
    let errors: Vec<ViewFile<ErrorFile>> = view::latest(&session.home.errors(), limit, &mut unread)?;
    session.warn(&unread);
    if session.out.is_json() {
        return session.out.document(&errors.iter().map(ViewFile::json).collect());
    }
    if errors.is_empty() {
        session.out.note("No errors.");
    }
    for error in &errors {
        for line in lines(&session.home, error) {
            session.out.line(&line)?;
        }
    }
    if !errors.is_empty() {
        session.out.note("Once you have dealt with a failure: tasuki errors dismiss ID (or --all)");
    }
    Ok(())
}

/// One failure as text: what happened, then what to do, then its ids. If the handoff or the publishing has continued or
/// ended since then, or the agent has recovered from its failure, the text says so instead of what to do.
pub(super) fn lines(home: &Home, error: &ErrorFile) -> Vec<String> {
    let handoff = said(error.handoff_id.as_deref()).and_then(|id| view::handoff(home, id).ok().flatten());
    let agent = said(error.agent_id.as_deref()).filter(|_| error.handoff_id.is_none());
    let agent = agent.and_then(|id| view::agent(home, id).ok().flatten());
    let taken_over = handoff.as_deref().and_then(|seen| taken_over(home, seen));
    text_of(error, handoff.as_deref(), agent.as_deref(), taken_over)
}

/// That another handoff continues the work of this one, in one sentence; none if it does not.
fn taken_over(home: &Home, handoff: &HandoffView) -> Option<&'static str> {
    let needs = HandoffNeeds::of(handoff);
    let seen = |id: &str| Some(AgentNeeds::of(&*view::agent(home, id).ok()??));
    let agents: Vec<AgentNeeds> = needs.agents().filter_map(seen).collect();
    needs.taken_over(|id| agents.iter().find(|agent| agent.agent_id == id))
}

/// `taken_over`: see the function of this name.
fn text_of(
    error: &ErrorFile,
    handoff: Option<&HandoffView>,
    agent: Option<&AgentView>,
    taken_over: Option<&str>,
) -> Vec<String> {
    let cell = |text: Option<&str>| sanitise(&shown(text));
    let (at, message) = (cell(Some(&error.at)), cell(Some(&error.message)));
    let (code, step) = (cell(Some(&error.code)), cell(error.step.as_deref()));
    let about = [("handoff", &error.handoff_id), ("step", &error.step), ("agent", &error.agent_id)]
        .into_iter()
        .filter_map(|(name, id)| Some(format!("{name} {}", sanitise(said(id.as_deref())?))));
    let mut lines = vec![format!("{}  {message} ({code})", view::clock(&at))];
    let stopped = handoff.filter(|_| halted(&code, &step));
    let since = stopped.map(|handoff| &handoff.step);
    match since.and_then(|since| said(since.as_str())).zip(since.map(Word::known)) {
        Some((_, Some(Step::Cancelled))) if handoff.is_some_and(HandoffView::is_abandoned) => {
            lines.push("  the handoff was abandoned since then: nothing is left to do".to_owned());
        }
        Some((step, Some(Step::Done | Step::Cancelled))) => {
            lines.push(format!("  the handoff is {step} by now: nothing is left to do"));
        }
        Some((step, known)) if known != Some(Step::Failed) => {
            lines.push(format!("  the handoff has continued since then: {}", sanitise(step)));
        }
        Some(_) | None => {
            let settled = agent.and_then(|agent| AgentNeeds::of(agent).has_settled(&code)).map(str::to_owned);
            let settled = settled.or_else(|| publishing_since(error, handoff?));
            let settled = settled.or_else(|| taken_over.filter(|_| stopped.is_some()).map(str::to_owned));
            let settled = settled.or_else(|| failed_again(error, stopped?));
            let what = settled.or_else(|| said(error.hint.as_str()).map(sanitise));
            lines.extend(what.map(|what| format!("  {}", home_option::fit(&what))));
        }
    }
    lines.push(format!(
        "  {}",
        std::iter::once(format!("error {}", cell(Some(&error.error_id)))).chain(about).collect::<Vec<_>>().join(", ")
    ));
    lines
}

/// That the handoff has continued after this failure and then failed again, in one sentence; none if this is its last
/// failure. What to do about an earlier failure would be done about the later one.
fn failed_again(error: &ErrorFile, handoff: &HandoffView) -> Option<String> {
    let now = handoff.error.as_ref().filter(|now| now.error_id != error.error_id)?;
    let (step, id) = (sanitise(&shown(now.step.as_str())), sanitise(&now.error_id));
    Some(format!("the handoff has continued since then, and has failed again at {step}: see error {id}"))
}

/// What has become of publishing since a failure of it, in one sentence; none if the failure still counts.
fn publishing_since(error: &ErrorFile, handoff: &HandoffView) -> Option<String> {
    let publish = handoff.publish.as_ref().filter(|_| error.step.as_deref() == Some("publishing"))?;
    let (state, now) = (publish.state.known()?, publish.error.as_ref());
    match state {
        PublishState::Published => Some("the document was published after that: nothing is left to do".to_owned()),
        PublishState::Failed | PublishState::Held | PublishState::InDoubt => now
            .is_some_and(|now| now.error_id != error.error_id)
            .then(|| "publishing was tried again after that, and has a newer failure".to_owned()),
        PublishState::Waiting | PublishState::Running | PublishState::Retrying => {
            Some(format!("publishing has continued since then: {}", state.as_str()))
        }
    }
}

fn dismiss(session: &CliSession, args: &DismissArgs) -> Result<(), CliError> {
    let chosen = match &args.error {
        Some(text) => vec![remote::names::error(&session.home, text)?],
        None => view::stems(&session.home.errors())?.into_iter().map(Named::here).collect(),
    };
    for error in &chosen {
        match &error.host {
            None => dismiss_one(session, &error.id)?,
            Some(_) => {
                let fields = Map::from_iter([("error_id".to_owned(), error.id.clone().into())]);
                let _: ViewFile<DismissReply> =
                    session.ask_on(error.host.as_ref(), "error_dismiss", fields, super::ANSWER_SOON)?;
            }
        }
    }
    let ids: Vec<&String> = chosen.iter().map(|error| &error.id).collect();
    session.report(&json!({"dismissed": ids}), &format!("{} dismissed", chosen.len()))
}

/// Dismisses one failure. If a sidecar runs, this is a request, so that the journal shows it. Otherwise it deletes the
/// error file, which is also what the sidecar does.
pub(super) fn dismiss_one(session: &CliSession, id: &str) -> Result<(), CliError> {
    if Pulse::new(&session.home).is_alive() {
        let fields = Map::from_iter([("error_id".to_owned(), id.into())]);
        return session.ask("error_dismiss", fields, super::ANSWER_SOON).map(|_: ViewFile<DismissReply>| ());
    }
    let path = session.home.errors().join(format!("{id}.json"));
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(CliError::file("Can't delete", &path, &error))
        }
        _ => Ok(()),
    }
}
