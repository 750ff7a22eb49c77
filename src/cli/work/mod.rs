//! `work …`: sends requests about work items, and prints their views. `show` prints, `read` reads views,
//! `import_export` imports and exports.

pub mod args;
mod import_export;
pub mod read;
pub(super) mod show;

use super::error::CliError;
use super::output::one_line;
use super::view::{ViewFile, shown};
use super::{CliSession, input, names};
use crate::contract::Fault;
use crate::contract::reply::{ChildrenReply, CommentReply, WorkReply};
use crate::core::text::sanitise;
use args::{
    CommentArgs, CompleteArgs, CreateArgs, NextStatusArg, PriorityArg, RetryChildrenArgs, WhoArgs, WorkCommand,
};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Sends a request about work items, or prints views.
///
/// # Errors
/// The sidecar's refusal, or a view that can't be read.
pub fn command(session: &CliSession, command: &WorkCommand) -> Result<(), CliError> {
    match command {
        WorkCommand::List(args) => show::list(session, args),
        WorkCommand::Show(name) => show::one(session, &name.item),
        WorkCommand::Tree(args) => show::tree(session, args.item.as_deref()),
        WorkCommand::History(name) => show::history(session, &name.item),
        WorkCommand::Stats => show::stats(session),
        WorkCommand::Create(args) => create(session, args),
        WorkCommand::Claim(args) => simple(session, "work_claim", &args.item, Some(&args.who), None),
        WorkCommand::Complete(args) => complete(session, args),
        WorkCommand::RetryChildren(args) => retry_children(session, args),
        WorkCommand::Release(args) => {
            simple(session, "work_release", &args.item, Some(&args.who), args.reason.as_deref())
        }
        WorkCommand::Escalate(args) => {
            simple(session, "work_escalate", &args.item, Some(&args.who), Some(&args.reason))
        }
        WorkCommand::Rollback(args) => simple(session, "work_rollback", &args.item, None, Some(&args.reason)),
        WorkCommand::Comment(args) => comment(session, args),
        WorkCommand::Import(args) => import_export::import(session, args),
        WorkCommand::Export(args) => import_export::export(session, args),
    }
}

/// Who acts: as the arguments say, else the agent in whose pane this runs, else the operator.
fn who(session: &CliSession, args: &WhoArgs) -> Result<String, CliError> {
    match args.agent.as_deref() {
        _ if args.human => Ok("human".to_owned()),
        Some(name) => names::agent(&session.home, name),
        None => Ok(names::own_id(&session.home).unwrap_or_else(|_| "human".to_owned())),
    }
}

/// A request that names an item, and optionally who acts and why.
fn simple(
    session: &CliSession,
    kind: &str,
    item: &str,
    asker: Option<&WhoArgs>,
    reason: Option<&str>,
) -> Result<(), CliError> {
    let mut fields = named(session, item)?;
    if let Some(asker) = asker {
        fields.insert("agent_id".to_owned(), who(session, asker)?.into());
    }
    if let Some(reason) = reason {
        fields.insert("reason".to_owned(), reason.into());
    }
    report_status(session, &session.ask(kind, fields, super::ANSWER_SOON)?)
}

fn named(session: &CliSession, item: &str) -> Result<Map<String, Value>, CliError> {
    Ok(Map::from_iter([("item_id".to_owned(), names::item(&session.home, item)?.into())]))
}

fn report_status(session: &CliSession, answer: &ViewFile<WorkReply>) -> Result<(), CliError> {
    let (id, status) = (shown(answer.item_id.as_str()), shown(answer.status.as_str()));
    session.report(&answer.json(), &format!("{id} {}", sanitise(&status)))
}

fn create(session: &CliSession, args: &CreateArgs) -> Result<(), CliError> {
    let mut fields = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value);
        }
    };
    put("type", Some(args.kind.clone().into()));
    put("title", Some(args.title.clone().into()));
    let description = match args.description.as_deref() {
        Some("-") => Some(input::standard_input()?),
        other => other.map(str::to_owned),
    };
    put("description", description.map(Value::from));
    put("parent_id", args.parent.as_deref().map(|item| names::item(&session.home, item)).transpose()?.map(Value::from));
    let priority = args.priority.map(|priority| match priority {
        PriorityArg::Low => "low",
        PriorityArg::Normal => "normal",
        PriorityArg::High => "high",
        PriorityArg::Urgent => "urgent",
    });
    put("priority", priority.map(Value::from));
    put("metadata", args.metadata.as_deref().map(given).transpose()?);
    if args.parent.is_some() || args.who.agent.is_some() {
        put("agent_id", Some(who(session, &args.who)?.into()));
    }
    report_status(session, &session.ask("work_create", fields, super::ANSWER_SOON)?)
}

/// JSON from an argument, from the file that it names, or from standard input (`-`).
fn given(text: &str) -> Result<Value, CliError> {
    let (what, json) = match text {
        "-" => ("Standard input".to_owned(), input::standard_input()?),
        text if text.trim_start().starts_with(['{', '[']) => ("The argument".to_owned(), text.to_owned()),
        path => (sanitise(path), input::text_file(Path::new(path))?),
    };
    serde_json::from_str(&json).map_err(|error| {
        CliError::refused("not_json", format!("{what} is not JSON: {error}.")).hint("Nothing was sent.")
    })
}

fn complete(session: &CliSession, args: &CompleteArgs) -> Result<(), CliError> {
    let mut fields = named(session, &args.item)?;
    fields.insert("agent_id".to_owned(), who(session, &args.who)?.into());
    fields.insert("output".to_owned(), given(&args.output)?);
    if let Some(children) = &args.children {
        fields.insert("children".to_owned(), given(children)?);
    }
    if args.partial {
        fields.insert("partial".to_owned(), json!(true));
    }
    let next = args.next_status.map(|next| match next {
        NextStatusArg::Done => "done",
        NextStatusArg::Ready => "ready",
        NextStatusArg::Escalated => "escalated",
    });
    if let Some(next) = next {
        fields.insert("next_status".to_owned(), next.into());
    }
    if args.check {
        fields.insert("check".to_owned(), json!(true));
    }
    let what = if args.check { "can be completed like this; nothing was changed" } else { "completed" };
    report_children(session, &session.ask("work_complete", fields, super::ANSWER_SOON)?, what)
}

fn retry_children(session: &CliSession, args: &RetryChildrenArgs) -> Result<(), CliError> {
    let mut fields = named(session, &args.item)?;
    fields.insert("agent_id".to_owned(), who(session, &args.who)?.into());
    if let Some(children) = &args.children {
        fields.insert("children".to_owned(), given(children)?);
    }
    if args.partial {
        fields.insert("partial".to_owned(), json!(true));
    }
    report_children(session, &session.ask("work_retry_children", fields, super::ANSWER_SOON)?, "children created")
}

/// Prints the children that were created, and those that were not.
fn report_children(session: &CliSession, answer: &ViewFile<ChildrenReply>, what: &str) -> Result<(), CliError> {
    if session.out.is_json() {
        return session.out.document(&answer.json());
    }
    let id = shown(answer.item_id.as_str());
    session.out.line(&format!("{id} {what}"))?;
    for child in &answer.children {
        let (kind, title) = (shown(child.r#type.as_deref()), shown(child.title.as_deref()));
        session.out.line(&format!("  {}  {kind}  {}", shown(child.item_id.as_str()), one_line(&title)))?;
    }
    let not = if answer.checked.is_none() { "not" } else { "would not be" };
    for child in &answer.failed {
        let why = |error: &Fault| format!("{}: {}", shown(error.pointer.as_str()), shown(error.message.as_str()));
        let why: Vec<String> = child.errors.iter().map(why).collect();
        let title = one_line(&shown(child.title.as_deref()));
        session.out.line(&format!("  {not} created: {title}  {}", one_line(&why.join("; "))))?;
    }
    if !answer.failed.is_empty() && answer.checked.is_none() {
        session.out.note(&format!(
            "Fix the children that were not created, then: tasuki work retry-children {id} --children FILE"
        ));
    }
    Ok(())
}

fn comment(session: &CliSession, args: &CommentArgs) -> Result<(), CliError> {
    let mut fields = named(session, &args.item)?;
    let text = if args.text == "-" { input::standard_input()? } else { args.text.clone() };
    let author = match &args.author {
        Some(author) => author.clone(),
        None => names::own_id(&session.home).unwrap_or_else(|_| "human".to_owned()),
    };
    fields.insert("author".to_owned(), author.into());
    fields.insert("text".to_owned(), text.into());
    let answer: ViewFile<CommentReply> = session.ask("work_comment", fields, super::ANSWER_SOON)?;
    session.report(&answer.json(), &format!("comment {}", shown(answer.comment_id.as_str())))
}
