//! `completions`: a script for a shell, which asks this program at each Tab, so that it offers the agents, handoffs and
//! personas that there are.

use super::args::CompletionsArgs;
use super::error::CliError;
use super::view::{Seen, said, shown};
use super::{Session, help, schema, view};
use crate::agents::Profiles;
use crate::config::Home;
use crate::contract::{AgentView, ErrorFile};
use crate::core::text::sanitise;
use clap_complete::env::{CompleteEnv, Shells};
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;

/// By which variable a script asks.
const VARIABLE: &str = "TASUKI_COMPLETE";
/// Most things of one kind that are offered, the newest first.
const MOST_OFFERED: usize = 100;

/// Prints a completion script. It is made in memory first, so that a closed output is met by us and not by the maker.
///
/// # Errors
/// When the output is closed.
pub fn command(session: &Session, args: &CompletionsArgs) -> Result<(), CliError> {
    let mut script = Vec::new();
    let shell = args.shell.to_string();
    let shells = Shells::builtins();
    let made = shells
        .completer(&shell)
        .map(|completer| completer.write_registration(VARIABLE, "tasuki", "tasuki", "tasuki", &mut script));
    match made {
        Some(Ok(())) => session.out.raw(&String::from_utf8_lossy(&script)),
        Some(Err(_)) | None => Err(CliError::refused("no_script", format!("No script can be made for {shell}."))),
    }
}

/// Answers a script that asks what could stand where the cursor is; whether this was such a question.
pub(super) fn answer(args: &[OsString]) -> bool {
    if std::env::var_os(VARIABLE).is_none() {
        return false;
    }
    let present = std::env::current_dir().ok();
    // What can't be completed is completed to nothing.
    CompleteEnv::with_factory(help::command).var(VARIABLE).try_complete(args, present.as_deref()).unwrap_or(true)
}

/// What an argument of that name can be, if it names something that we know.
pub(super) fn candidates(argument: &str) -> Option<ArgValueCandidates> {
    let find: fn() -> Vec<CompletionCandidate> = match argument {
        "agent" | "previous" | "successor" => agents,
        "handoff" => handoffs,
        "persona" => personas,
        "profile" => profiles,
        "item" | "parent" => items,
        "error" => errors,
        "schema" => schemas,
        _ => return None,
    };
    Some(ArgValueCandidates::new(find))
}

fn home() -> Option<Home> {
    Home::resolve(None).ok()
}

fn one(name: &str, about: &str) -> CompletionCandidate {
    CompletionCandidate::new(sanitise(name)).help(Some(sanitise(about).into()))
}

/// The newest objects of a folder of views. A view's name begins with chance, so that its time is what counts.
fn newest(folder: Option<PathBuf>, at: &str) -> Vec<Value> {
    let mut all = folder.and_then(|folder| view::objects(&folder).ok()).unwrap_or_default();
    all.sort_by(|one, other| view::text(other, at).cmp(&view::text(one, at)));
    all.truncate(MOST_OFFERED);
    all
}

fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

/// Living agents, by their persona where no other has it, else by the beginning of their ids.
fn agents() -> Vec<CompletionCandidate> {
    let mut all: Vec<Seen<AgentView>> = home().and_then(|home| view::all(&home.agent_views()).ok()).unwrap_or_default();
    all.sort_by(|one, other| other.registered_at.cmp(&one.registered_at));
    all.truncate(MOST_OFFERED);
    let living: Vec<&Seen<AgentView>> = all.iter().filter(|agent| agent.is_living()).collect();
    let is_alone = |slug: &str| living.iter().filter(|one| one.persona_slug.as_deref() == Some(slug)).count() == 1;
    let named = living.iter().filter_map(|agent| {
        let id = said(agent.agent_id.as_str())?;
        let about = format!("{} {} {}", short(id), shown(agent.profile.as_str()), shown(agent.state.word()));
        Some(match said(agent.persona_slug.as_deref()).filter(|slug| is_alone(slug)) {
            Some(slug) => one(slug, &about),
            None => one(short(id), &about),
        })
    });
    named.collect()
}

fn handoffs() -> Vec<CompletionCandidate> {
    by_id("handoff_id", &newest(home().map(|home| home.handoff_views()), "created_at"), &["persona_slug", "step"])
}

fn items() -> Vec<CompletionCandidate> {
    by_id("item_id", &newest(home().map(|home| home.work_views()), "created_at"), &["status", "title"])
}

fn errors() -> Vec<CompletionCandidate> {
    let mut all: Vec<Seen<ErrorFile>> = home().and_then(|home| view::all(&home.errors()).ok()).unwrap_or_default();
    all.sort_by(|one, other| other.at.cmp(&one.at));
    all.truncate(MOST_OFFERED);
    let named =
        |error: &Seen<ErrorFile>| Some(one(short(said(error.error_id.as_str())?), &shown(error.message.as_str())));
    all.iter().filter_map(named).collect()
}

/// Each by the beginning of its id, with what these fields say of it.
fn by_id(id: &str, all: &[Value], about: &[&str]) -> Vec<CompletionCandidate> {
    let said = |object: &Value| about.iter().map(|field| view::cell(object, field)).collect::<Vec<_>>().join(" ");
    all.iter().filter_map(|object| Some(one(short(view::text(object, id)?), &said(object)))).collect()
}

fn personas() -> Vec<CompletionCandidate> {
    let folders = home().and_then(|home| std::fs::read_dir(home.personas()).ok());
    let folders = folders.into_iter().flatten().flatten().filter(|entry| entry.path().join("skill.md").exists());
    folders.filter_map(|entry| Some(one(entry.file_name().to_str()?, ""))).take(MOST_OFFERED).collect()
}

fn profiles() -> Vec<CompletionCandidate> {
    let own = home().and_then(|home| Profiles::load(Some(&home.profiles())).ok());
    let all = own.or_else(|| Profiles::load(None).ok());
    all.iter().flat_map(Profiles::iter).map(|profile| one(&profile.name, "")).collect()
}

fn schemas() -> Vec<CompletionCandidate> {
    schema::names().into_iter().map(|name| one(name, "")).collect()
}
