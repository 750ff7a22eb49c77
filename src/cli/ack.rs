//! `ack`, `clarify` and `ack-override`.

use super::CliSession;
use super::error::CliError;
use super::free_text::free_text;
use super::remote::names::Named;
use super::view::{ViewFile, said, shown};
use super::{handoff, input, names, remote, view};
use crate::contract::ack::Standing;
use crate::contract::reply::HandoffReply;
use crate::contract::{HandoffView, Step, Word};
use crate::core::text::sanitise;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// `ack`.
#[derive(Debug, Args)]
pub struct AckArgs {
    /// The whole acknowledgement as JSON instead of flags: a file, or `-` for standard input.
    #[arg(value_name = "FILE", conflicts_with_all = ["understanding", "starting_from", "questions", "status"])]
    pub file: Option<PathBuf>,
    /// Handoff id, the beginning of it, or a persona [default: the handoff that this pane's agent was briefed with].
    #[arg(long, value_name = "ID")]
    pub handoff: Option<String>,
    /// The task in one line, in your own words.
    #[arg(
        long,
        value_name = "TEXT",
        required_unless_present = "file",
        allow_hyphen_values = true,
        value_parser = free_text
    )]
    pub understanding: Option<String>,
    /// Where you continue: the checkpoint that the document names.
    #[arg(
        long,
        value_name = "TEXT",
        required_unless_present = "file",
        allow_hyphen_values = true,
        value_parser = free_text
    )]
    pub starting_from: Option<String>,
    /// A question that you need answered before you start; may be given several times.
    #[arg(long = "question", value_name = "TEXT", allow_hyphen_values = true, value_parser = free_text)]
    pub questions: Vec<String>,
    /// Your answer to the handoff [default: ready-to-proceed, or needs-clarification with --question].
    #[arg(long, value_enum)]
    pub status: Option<AckStatusArg>,
}

/// What a successor answers to its handoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AckStatusArg {
    /// You understand the task and begin.
    #[value(alias = "ready_to_proceed")]
    ReadyToProceed,
    /// You have questions and wait for the answers.
    #[value(alias = "needs_clarification")]
    NeedsClarification,
    /// Something that you need is missing or does not work.
    #[value(alias = "environment_issue")]
    EnvironmentIssue,
    /// You can't take the task.
    Rejected,
}

/// `clarify`.
#[derive(Debug, Args)]
pub struct ClarifyArgs {
    /// Handoff id, the beginning of it, or a persona (its latest handoff); `5f2a@b` for a handoff on the host b.
    pub handoff: String,
    /// The answer to one question; give one --answer for each open question, in their order.
    #[arg(
        long = "answer",
        value_name = "TEXT",
        required_unless_present = "file",
        allow_hyphen_values = true,
        value_parser = free_text
    )]
    pub answers: Vec<String>,
    /// The answers as JSON instead: a list of {"question","answer"} in a file, or `-` for standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "answers")]
    pub file: Option<PathBuf>,
    /// An updated handoff document: a file.
    #[arg(long, value_name = "FILE")]
    pub document: Option<PathBuf>,
}

/// `ack-override`.
#[derive(Debug, Args)]
pub struct OverrideArgs {
    /// Handoff id, the beginning of it, or a persona (its latest handoff); `5f2a@b` for a handoff on the host b.
    pub handoff: String,
    /// Why the handoff continues without an acknowledgement.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = free_text)]
    pub reason: String,
    /// Act as yourself, the operator; by default the agent in this pane acts, or else you.
    #[arg(long)]
    pub human: bool,
}

/// Acknowledges a handoff: meant to be run by the successor itself, in its own pane.
///
/// # Errors
/// What the sidecar refused; a usage error when this runs in no agent's pane.
pub fn ack(session: &CliSession, args: &AckArgs) -> Result<(), CliError> {
    let mut fields = match &args.file {
        Some(file) => object(file)?,
        None => flags(args),
    };
    if !fields.contains_key("agent_id") {
        fields.insert("agent_id".to_owned(), own_id(session)?.into());
    }
    if let Some(name) = &args.handoff {
        fields.insert("handoff_id".to_owned(), names::handoff(&session.home, name)?.into());
    } else if !fields.contains_key("handoff_id") {
        let agent = fields.get("agent_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        fields.insert("handoff_id".to_owned(), briefed_with(session, &agent)?.into());
    }
    let answer: ViewFile<HandoffReply> = session.ask("ack", fields, super::ANSWER_SOON)?;
    let what = match Word::from(answer.status.as_str()).known() {
        Some(Standing::Acknowledged) => "acknowledged: start with the work",
        Some(Standing::NeedsClarification) => {
            "your questions were sent: wait, the answers will be typed into this pane"
        }
        Some(Standing::EnvironmentIssue) => "the operator was told what you need: wait",
        Some(Standing::Rejected) => "the operator was told that you can't take the task: stop here",
        _ => "acknowledgement received",
    };
    let late = if answer.late == Some(true) { " (late)" } else { "" };
    let id = sanitise(&shown(answer.handoff_id.as_str()));
    session.report(&answer.json(), &format!("handoff {id} {what}{late}"))
}

/// The successor, in whose pane this runs. No option names it.
fn own_id(session: &CliSession) -> Result<String, CliError> {
    names::own_id(&session.home).map_err(|error| match error.code.as_str() {
        "usage" => error.hint(
            "Only the successor itself acknowledges: let it run this command in its pane. To continue the handoff without it: \
             tasuki ack-override HANDOFF --reason TEXT",
        ),
        _ => error,
    })
}

fn flags(args: &AckArgs) -> Map<String, Value> {
    let asks = !args.questions.is_empty();
    let status = match args.status {
        Some(AckStatusArg::ReadyToProceed) => "ready_to_proceed",
        Some(AckStatusArg::NeedsClarification) => "needs_clarification",
        Some(AckStatusArg::EnvironmentIssue) => "environment_issue",
        Some(AckStatusArg::Rejected) => "rejected",
        None if asks => "needs_clarification",
        None => "ready_to_proceed",
    };
    let fields = [
        ("understanding", json!(args.understanding)),
        ("starting_from", json!(args.starting_from)),
        ("questions", json!(args.questions)),
        ("status", json!(status)),
    ];
    fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

fn text_of(file: &Path) -> Result<String, CliError> {
    if file == Path::new("-") { input::standard_input() } else { input::text_file(file) }
}

fn json_of(file: &Path) -> Result<Value, CliError> {
    serde_json::from_str(&text_of(file)?)
        .map_err(|error| CliError::refused("not_json", format!("The file is not JSON: {error}. Nothing was sent.")))
}

/// The acknowledgement in a file, without `v` and `kind`: these are added to every request.
fn object(file: &Path) -> Result<Map<String, Value>, CliError> {
    let Value::Object(mut fields) = json_of(file)? else {
        return Err(CliError::refused("not_json", "An acknowledgement must be a JSON object. Nothing was sent."));
    };
    fields.remove("v");
    fields.remove("kind");
    Ok(fields)
}

/// The handoff that has this agent as its successor and asks for an acknowledgement. If there are several: the one that
/// waits for the acknowledgement now, else the latest.
fn briefed_with(session: &CliSession, agent: &str) -> Result<String, CliError> {
    let views: Vec<ViewFile<HandoffView>> = view::readable(&session.home.handoff_views())?;
    let is_of = |seen: &ViewFile<HandoffView>| {
        seen.ack.is_some() && seen.successor_id.as_deref().is_some_and(|id| id.eq_ignore_ascii_case(agent))
    };
    let of = views.into_iter().filter(is_of);
    let last = of.max_by_key(|seen| (seen.step == Step::Acknowledging, shown(seen.created_at.as_str())));
    let found = last.and_then(|seen| said(seen.handoff_id.as_str()).map(str::to_owned));
    found.ok_or_else(|| {
        CliError::refused("no_handoff", "No handoff is waiting for an acknowledgement from this agent.")
            .hint("Name the handoff with --handoff ID; `tasuki handoffs` lists the handoffs.")
    })
}

/// Answers the successor's questions.
///
/// # Errors
/// What the sidecar refused; a usage error when there are not as many answers as questions.
pub fn clarify(session: &CliSession, args: &ClarifyArgs) -> Result<(), CliError> {
    let handoff = remote::names::handoff(&session.home, &args.handoff)?;
    let host = handoff.host.as_ref();
    let clarifications = match &args.file {
        Some(file) => json_of(file)?,
        None => pairs(session, &handoff, &args.answers)?,
    };
    let mut fields = Map::new();
    fields.insert("handoff_id".to_owned(), handoff.id.clone().into());
    fields.insert("clarifications".to_owned(), clarifications);
    if let Some(path) = &args.document {
        fields.insert("document".to_owned(), handoff::document(session, host, path)?);
    }
    let answer: ViewFile<HandoffReply> = session.ask_on(host, "clarify", fields, super::ANSWER_SOON)?;
    let path = said(answer.file_path.as_ref().and_then(Option::as_deref));
    let document = path.map(|path| format!("; document {}", sanitise(path))).unwrap_or_default();
    let line = format!("handoff {handoff}: the answers are being typed to the successor{document}");
    session.report(&answer.json(), &line)
}

fn pairs(session: &CliSession, handoff: &Named, answers: &[String]) -> Result<Value, CliError> {
    let seen = match &handoff.host {
        None => view::handoff(&session.home, &handoff.id)?,
        Some(host) => Some(remote::views::handoff(session, host, &handoff.id)?),
    };
    let open = seen.as_ref().map(|seen| seen.open_questions().to_vec()).unwrap_or_default();
    let ack = seen.and_then(|seen| seen.ack.clone()).unwrap_or_default();
    let mut questions = open;
    if ack.status == Standing::EnvironmentIssue && questions.is_empty() {
        // The successor has asked nothing, but has said what it lacks: the answer is to that text.
        questions.extend(ack.understanding);
    }
    if questions.is_empty() {
        return Err(CliError::refused("no_questions", "The successor has no open questions. Nothing was sent.")
            .hint(format!("See: tasuki handoffs show {handoff}")));
    }
    if questions.len() != answers.len() {
        let lines = questions.iter().map(|question| format!("\n  {}", sanitise(question)));
        let message = format!(
            "The successor has asked {} questions, but {} answers were given:{}",
            questions.len(),
            answers.len(),
            lines.collect::<String>()
        );
        return Err(CliError::usage(message).hint("Give one --answer for each question, in this order."));
    }
    let pair = |(question, answer): (&String, &String)| json!({"question": question, "answer": answer});
    Ok(questions.iter().zip(answers).map(pair).collect())
}

/// Continues a handoff without an acknowledgement.
///
/// # Errors
/// What the sidecar refused.
pub fn ack_override(session: &CliSession, args: &OverrideArgs) -> Result<(), CliError> {
    let handoff = remote::names::handoff(&session.home, &args.handoff)?;
    let mut fields = Map::new();
    fields.insert("handoff_id".to_owned(), handoff.id.clone().into());
    fields.insert("reason".to_owned(), args.reason.clone().into());
    // Another host does not know the agent in this pane.
    let acts_here = !args.human && handoff.host.is_none();
    if let Some(own) = names::own_id(&session.home).ok().filter(|_| acts_here) {
        fields.insert("agent_id".to_owned(), own.into());
    }
    let answer: ViewFile<HandoffReply> =
        session.ask_on(handoff.host.as_ref(), "ack_override", fields, super::ANSWER_SOON)?;
    session.report(&answer.json(), &format!("handoff {handoff} continues without an acknowledgement"))
}
