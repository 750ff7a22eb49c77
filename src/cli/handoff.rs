//! `handoff`, `retry`, `cancel`, `accept`, `rework`, `abandon`.

use super::CliSession;
use super::error::CliError;
use super::follow::Follower;
use super::free_text::free_text;
use super::handoff_words::{AssumeArg, AuthorArg, CheckArg, UrgencyArg};
use super::publish::PublishOptions;
use super::remote::follow::RemoteHandoff;
use super::remote::names::Named;
use super::view::{ViewFile, said};
use super::{examined, input, names, remote, review, view, wait};
use crate::contract::reply::HandoffReply;
use crate::contract::{HandoffView, Word};
use crate::core::host::HostName;
use crate::core::needs;
use crate::core::text::sanitise;
use clap::Args;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::path::PathBuf;

/// The reason of a handoff without `--reason`.
pub(super) const REASON: &str = "requested by the operator";

/// `handoff`.
#[derive(Debug, Args)]
pub struct HandoffArgs {
    /// Agent id or a unique prefix, persona, pane such as `%3`, or `kai@b` for an agent on the host b [default: `.`,
    /// the agent in this pane].
    pub agent: Option<String>,
    /// Hand off the agent in this pane; the same as `.`, for scripts.
    #[arg(long = "self", conflicts_with = "agent")]
    pub own: bool,
    /// Why the agent is handed off.
    #[arg(long, default_value = REASON, allow_hyphen_values = true, value_parser = free_text)]
    pub reason: String,
    /// What the document should concentrate on.
    #[arg(long, allow_hyphen_values = true, value_parser = free_text)]
    pub focus: Option<String>,
    /// Who writes the document.
    #[arg(long, value_enum)]
    pub author: Option<AuthorArg>,
    /// The document itself, for `--author provided`: a file, or `-` for standard input.
    #[arg(long, value_name = "FILE", required_if_eq("author", "provided"))]
    pub document: Option<PathBuf>,
    /// Who takes over: `new`, `same-pane`, or an agent that is already running.
    #[arg(long, value_name = "WHO")]
    pub successor: Option<String>,
    /// The profile of a new successor [default: its predecessor's].
    #[arg(long)]
    pub profile: Option<String>,
    /// The model of a new successor, as its CLI's own option takes it.
    #[arg(long)]
    pub model: Option<String>,
    /// Ask the successor for an acknowledgement within a time; if none comes, reminders and escalation follow.
    #[arg(long, value_enum)]
    pub urgency: Option<UrgencyArg>,
    /// Whether and where to publish the document.
    #[command(flatten)]
    pub publishing: PublishOptions,
    /// A task for the successor; may be given several times.
    #[arg(long = "task", value_name = "TEXT", allow_hyphen_values = true, value_parser = free_text)]
    pub tasks: Vec<String>,
    /// Do not wait for the end of the agent's running turn. If the agent writes the document, this works only with some
    /// profiles (claude, codex, demo); with others, tasuki still waits.
    #[arg(long)]
    pub now: bool,
    /// What to do about faults of the document [default: `check` of persona.toml, else `document.check`].
    #[arg(long, value_enum)]
    pub check: Option<CheckArg>,
    /// Let the handoff wait until you accept the document; on a terminal, show it in your editor and ask.
    #[arg(long)]
    pub review: bool,
    /// Show each step as it passes, and exit only when the handoff has ended.
    #[arg(long)]
    pub wait: bool,
}

/// One handoff.
#[derive(Debug, Args)]
pub struct HandoffName {
    /// Handoff id, the beginning of it, or a persona (its latest handoff); `5f2a@b` for a handoff on the host b.
    pub handoff: String,
}

/// `retry`.
#[derive(Debug, Args)]
pub struct RetryArgs {
    /// Handoff id, the beginning of it, or a persona (its latest handoff); `5f2a@b` for a handoff on the host b.
    pub handoff: String,
    /// For a text with the verdict `unconfirmed`: whether it arrived, as you see it in the pane.
    #[arg(long, value_enum)]
    pub assume: Option<AssumeArg>,
    /// Continue with another successor: `new`, `same-pane`, or an agent that is already running.
    #[arg(long, value_name = "WHO")]
    pub successor: Option<String>,
    /// Continue with a new successor of this profile.
    #[arg(long)]
    pub profile: Option<String>,
    /// Continue with a new successor that uses this model.
    #[arg(long)]
    pub model: Option<String>,
    /// Show each step as it passes, and exit only when the handoff has ended.
    #[arg(long)]
    pub wait: bool,
}

/// `accept`.
#[derive(Debug, Args)]
pub struct AcceptArgs {
    /// Handoff id, the beginning of it, or a persona (its latest handoff); `5f2a@b` for a handoff on the host b.
    pub handoff: String,
    /// Show each step as it passes, and exit only when the handoff has ended.
    #[arg(long)]
    pub wait: bool,
}

/// `rework`.
#[derive(Debug, Args)]
pub struct ReworkArgs {
    /// Handoff id, the beginning of it, or a persona (its latest handoff).
    pub handoff: String,
    /// What the agent should change.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = free_text)]
    pub note: String,
    /// Show each step as it passes, and exit only when the handoff has ended.
    #[arg(long)]
    pub wait: bool,
}

/// Asks for a handoff.
///
/// # Errors
/// What the sidecar refused, or, with `--wait` or `--review`, how the handoff failed.
pub fn handoff(session: &CliSession, args: &HandoffArgs) -> Result<(), CliError> {
    let agent = match args.agent.as_deref() {
        Some(name) => remote::names::agent(&session.home, name)?,
        None => Named::here(names::own_id(&session.home)?),
    };
    let is_here = agent.host.is_none();
    let is_own = is_here && names::own_id(&session.home).is_ok_and(|own| own.eq_ignore_ascii_case(&agent.id));
    if args.wait && is_own {
        return Err(CliError::usage(
            "An agent can't wait for its own handoff: the handoff begins when the agent's turn ends.",
        )
        .hint("Run the command without --wait, then end the turn."));
    }
    // The document of another host's agent can't be shown here, so nobody is asked about it.
    let waits = args.wait || (args.review && !is_own && is_here);
    let fields = handoff_fields(session, args, &agent)?;
    let answer: ViewFile<HandoffReply> = session.ask_on(agent.host.as_ref(), "handoff", fields, super::ANSWER_SOON)?;
    let (id, path) = (answer.handoff_id.clone(), answer.file_path.as_ref().and_then(Option::as_deref));
    let handoff = agent.beside(id.clone());
    if session.out.is_json() {
        if !waits {
            return session.out.document(&answer.json());
        }
        session.out.record(&json!({"v": 1, "type": "initiated", "handoff_id": id, "file_path": path}))?;
    } else {
        session.out.line(&format!("handoff {}", sanitise(&handoff.to_string())))?;
    }
    if args.review && waits && is_here && review::can_ask(&session.out) {
        return wait::follow_and_review(session, &id, Follower::new());
    }
    if waits {
        return match &handoff.host {
            Some(host) => RemoteHandoff::new(host, &id).follow_to_end(session, Follower::new()),
            None => wait::follow_to_end(session, &id, Follower::new()).map(|_| ()),
        };
    }
    if let Some(path) = said(path) {
        session.out.line(&format!("  document  {}", sanitise(path)))?;
    }
    session.out.note(&format!("Follow it with: tasuki handoffs follow {}", sanitise(&handoff.to_string())));
    if args.review {
        let has_writer = !matches!(args.author, Some(AuthorArg::Salvage | AuthorArg::Provided));
        let there = handoff.host.as_ref().map(|host| format!(" (on the host {host})")).unwrap_or_default();
        session.out.note(&format!("When the document is written: {}{there}", examined::choices(&id, has_writer)));
    }
    Ok(())
}

/// The fields of the request. Options that were not given are left out, so that the sidecar's defaults apply.
fn handoff_fields(session: &CliSession, args: &HandoffArgs, agent: &Named) -> Result<Map<String, Value>, CliError> {
    let host = agent.host.as_ref();
    let mut fields = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value);
        }
    };
    put("agent_id", Some(agent.id.clone().into()));
    put("reason", Some(args.reason.clone().into()));
    // The command `/handoff` of an agent CLI passes on the text typed after its name, which may be empty.
    put("focus", args.focus.clone().filter(|focus| !focus.trim().is_empty()).map(Value::from));
    put("author", args.author.map(|author| author.as_str().into()));
    put("urgency", args.urgency.map(|urgency| urgency.as_str().into()));
    put("document", args.document.as_deref().map(|path| document(session, host, path)).transpose()?);
    put("successor", args.successor.as_deref().map(|who| successor(session, host, who)).transpose()?);
    put("profile", args.profile.clone().map(Value::from));
    put("model", args.model.clone().map(Value::from));
    put("tasks", (!args.tasks.is_empty()).then(|| args.tasks.clone().into()));
    put("publish", args.publishing.field()?);
    put("now", args.now.then_some(Value::Bool(true)));
    put("check", args.check.map(|check| check.as_str().into()));
    put("review", args.review.then_some(Value::Bool(true)));
    Ok(fields)
}

/// Parses the option `--successor`: `new`, `same-pane` or an agent.
fn successor(session: &CliSession, host: Option<&HostName>, who: &str) -> Result<Value, CliError> {
    match who {
        "new" => Ok("new".into()),
        "same-pane" | "same_pane" => Ok("same_pane".into()),
        name => Ok(json!({"agent_id": remote::names::agent_on(&session.home, host, name)?})),
    }
}

/// A document inside tasuki's home is sent as a path, any other as text. Another host always gets the text, because the
/// path does not exist there.
pub(super) fn document(session: &CliSession, host: Option<&HostName>, path: &Path) -> Result<Value, CliError> {
    if path == Path::new("-") {
        return Ok(json!({"text": input::standard_input()?}));
    }
    let absolute = std::fs::canonicalize(path).map_err(|error| CliError::file("Can't read", path, &error))?;
    let inside =
        std::fs::canonicalize(session.home.root()).is_ok_and(|home| absolute.starts_with(home)) && host.is_none();
    match absolute.to_str().filter(|_| inside) {
        Some(name) => Ok(json!({"path": name})),
        None => Ok(json!({"text": input::text_file(&absolute)?})),
    }
}

/// Continues a failed handoff at the step that failed.
///
/// # Errors
/// What the sidecar refused, or, with `--wait`, how the handoff failed.
pub fn retry(session: &CliSession, args: &RetryArgs) -> Result<(), CliError> {
    let handoff = remote::names::handoff(&session.home, &args.handoff)?;
    let mut fields = Map::new();
    fields.insert("handoff_id".to_owned(), handoff.id.clone().into());
    if let Some(assume) = args.assume {
        let keeps_successor = args.successor.is_none() && args.profile.is_none() && args.model.is_none();
        if handoff.host.is_none() && keeps_successor {
            check_doubt(session, &handoff.id)?;
        }
        fields.insert("assume".to_owned(), assume.as_str().into());
    }
    if let Some(who) = args.successor.as_deref() {
        fields.insert("successor".to_owned(), successor(session, handoff.host.as_ref(), who)?);
    }
    for (name, text) in [("profile", &args.profile), ("model", &args.model)] {
        if let Some(text) = text {
            fields.insert(name.to_owned(), text.clone().into());
        }
    }
    continue_on(session, "handoff_retry", &handoff, fields, args.wait)
}

/// Refuses `--assume` if the failure leaves nothing in doubt: the sidecar would try the step again, whatever was said.
fn check_doubt(session: &CliSession, id: &str) -> Result<(), CliError> {
    let Some(seen) = view::handoff(&session.home, id)? else { return Ok(()) };
    let Some(error) = seen.error.as_ref().filter(|error| !needs::is_in_doubt(error)) else { return Ok(()) };
    let (step, code) = (sanitise(error.step.as_str()), sanitise(&error.code));
    let message = format!("Nothing is in doubt: the handoff has failed at {step} ({code}). Nothing was sent.");
    Err(CliError::refused("not_in_doubt", message).hint(format!("Retry it without --assume: tasuki retry {id}")))
}

/// Accepts the document as it is.
///
/// # Errors
/// What the sidecar refused, or, with `--wait`, how the handoff failed.
pub fn accept(session: &CliSession, args: &AcceptArgs) -> Result<(), CliError> {
    let handoff = remote::names::handoff(&session.home, &args.handoff)?;
    let fields = Map::from_iter([("handoff_id".to_owned(), handoff.id.clone().into())]);
    continue_on(session, "handoff_accept", &handoff, fields, args.wait)
}

/// Asks the agent to write its document once more.
///
/// # Errors
/// What the sidecar refused, or, with `--wait`, how the handoff failed.
pub fn rework(session: &CliSession, args: &ReworkArgs) -> Result<(), CliError> {
    let id = names::handoff(&session.home, &args.handoff)?;
    let fields = [("handoff_id", &id), ("note", &args.note)].map(|(name, text)| (name.to_owned(), text.clone().into()));
    continue_handoff(session, "handoff_rework", &id, Map::from_iter(fields), args.wait)
}

/// As [`continue_handoff`], for a handoff on any host.
fn continue_on(
    session: &CliSession,
    kind: &str,
    handoff: &Named,
    fields: Map<String, Value>,
    and_wait: bool,
) -> Result<(), CliError> {
    let Some(host) = &handoff.host else { return continue_handoff(session, kind, &handoff.id, fields, and_wait) };
    let before = RemoteHandoff::read(&session.home, host, &handoff.id)?;
    let follower = Follower::after(before.view());
    let answer: ViewFile<HandoffReply> = session.ask_on(Some(host), kind, fields, super::ANSWER_SOON)?;
    let line = continues_line(&handoff.to_string(), &HandoffView::default(), &answer);
    if !and_wait {
        return session.report(&answer.json(), &line);
    }
    if session.out.is_json() {
        session.out.record(&json!({"v": 1, "type": "resumed", "handoff_id": handoff.id}))?;
    } else {
        session.out.line(&line)?;
    }
    before.follow_to_end(session, follower)
}

fn continue_handoff(
    session: &CliSession,
    kind: &str,
    id: &str,
    fields: Map<String, Value>,
    and_wait: bool,
) -> Result<(), CliError> {
    let before = view::handoff(&session.home, id)?;
    let before = before.as_deref().cloned().unwrap_or_default();
    let answer: ViewFile<HandoffReply> = session.ask(kind, fields, super::ANSWER_SOON)?;
    let line = continues_line(id, &before, &answer);
    if !and_wait {
        return session.report(&answer.json(), &line);
    }
    if session.out.is_json() {
        session.out.record(&json!({"v": 1, "type": "resumed", "handoff_id": id}))?;
    } else {
        session.out.line(&line)?;
    }
    wait::follow_to_end(session, id, Follower::after(&before)).map(|_| ())
}

pub(super) fn continues_line(id: &str, before: &HandoffView, answer: &HandoffReply) -> String {
    let step = said(answer.step.as_ref().map(Word::as_str));
    let step = step.map(|step| format!(" at {}", sanitise(step))).unwrap_or_default();
    let error = before.error.as_ref();
    let after = error.and_then(|error| said(error.step.as_str()).zip(said(error.code.as_str())));
    let after = after.map(|(step, code)| format!("; it had failed at {} ({})", sanitise(step), sanitise(code)));
    format!("handoff {id} continues{step}{}", after.unwrap_or_default())
}

/// Cancels a handoff.
///
/// # Errors
/// What the sidecar refused.
pub fn cancel(session: &CliSession, args: &HandoffName) -> Result<(), CliError> {
    end(session, "handoff_cancel", args, |_| "is cancelled".to_owned())
}

/// Closes a failed handoff for good.
///
/// # Errors
/// What the sidecar refused.
pub fn abandon(session: &CliSession, args: &HandoffName) -> Result<(), CliError> {
    end(session, "handoff_abandon", args, closed)
}

/// What became of an abandoned handoff, and where its document is, if it has one.
fn closed(seen: &HandoffView) -> String {
    let path = sanitise(&seen.file_path);
    match (seen.bytes, &seen.document) {
        (Some(_), _) => format!("is closed; its document and record are kept: {path}"),
        (None, Some(_)) => format!("is closed; its document was not recorded, but is kept: {path}"),
        (None, None) => "is closed".to_owned(),
    }
}

/// Ends a handoff; `what` says what became of it.
fn end(
    session: &CliSession,
    kind: &str,
    args: &HandoffName,
    what: impl FnOnce(&HandoffView) -> String,
) -> Result<(), CliError> {
    let handoff = remote::names::handoff(&session.home, &args.handoff)?;
    let fields = Map::from_iter([("handoff_id".to_owned(), handoff.id.clone().into())]);
    let answer: ViewFile<HandoffReply> = session.ask_on(handoff.host.as_ref(), kind, fields, super::ANSWER_SOON)?;
    let seen = match handoff.host {
        None => view::handoff(&session.home, &handoff.id).ok().flatten(),
        Some(_) => None,
    };
    let what = what(&seen.as_deref().cloned().unwrap_or_default());
    session.report(&answer.json(), &format!("handoff {handoff} {what}"))
}
