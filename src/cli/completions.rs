//! `completions`: a shell script that runs this program at each Tab, so that it offers the agents, handoffs and
//! personas that exist at that moment.

use super::error::CliError;
use super::view::{ViewFile, said, shown};
use super::{CliSession, schema, view};
use crate::agents::Profiles;
use crate::config::Home;
use crate::contract::{AgentView, ErrorFile, HandoffView, WorkView};
use crate::core::text::sanitise;
use clap::Args;
use clap_complete::env::{CompleteEnv, Shells};
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::path::PathBuf;

/// `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: clap_complete::Shell,
}

/// The environment variable by which the shell's script asks for completions.
const VARIABLE: &str = "TASUKI_COMPLETE";
/// How many candidates of one kind are offered, the newest first.
const MOST_OFFERED: usize = 100;

/// Prints a completion script. It is made in memory first, so that our code handles a closed output, and not the
/// generator.
///
/// # Errors
/// When the output is closed.
pub fn command(session: &CliSession, args: &CompletionsArgs) -> Result<(), CliError> {
    let mut script = Vec::new();
    let shell = args.shell.to_string();
    let shells = Shells::builtins();
    let made = shells
        .completer(&shell)
        .map(|completer| completer.write_registration(VARIABLE, "tasuki", "tasuki", "tasuki", &mut script));
    match made {
        Some(Ok(())) => session.out.raw(&String::from_utf8_lossy(&script)),
        Some(Err(_)) | None => {
            Err(CliError::refused("no_script", format!("tasuki has no completion script for {shell}.")))
        }
    }
}

/// Answers a script that asks what could be typed at the cursor; returns whether this was such a question.
pub(super) fn answer(args: &[OsString], command: fn() -> clap::Command) -> bool {
    if std::env::var_os(VARIABLE).is_none() {
        return false;
    }
    let present = std::env::current_dir().ok();
    // Without a completion the answer is empty.
    CompleteEnv::with_factory(command).var(VARIABLE).try_complete(args, present.as_deref()).unwrap_or(true)
}

/// The candidates for an argument of that name, if it names something that tasuki knows.
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

/// The newest valid files of a folder, by their times: the names of views begin with random digits.
fn newest<T: DeserializeOwned>(folder: fn(&Home) -> PathBuf, at: fn(&T) -> &str) -> Vec<ViewFile<T>> {
    let mut all: Vec<ViewFile<T>> = home().and_then(|home| view::all(&folder(&home)).ok()).unwrap_or_default();
    all.sort_by(|one, other| at(other).cmp(at(one)));
    all.truncate(MOST_OFFERED);
    all
}

/// A candidate: the beginning of the id, and a description.
fn by_id(id: &str, about: &str) -> Option<CompletionCandidate> {
    Some(one(short(said(id)?), about))
}

fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

/// Living agents: by persona if no other agent has it, else by the beginning of the id.
fn agents() -> Vec<CompletionCandidate> {
    let all = newest(Home::agent_views, |agent: &AgentView| agent.registered_at.as_deref().unwrap_or_default());
    let living: Vec<&ViewFile<AgentView>> = all.iter().filter(|agent| agent.is_living()).collect();
    let is_alone = |slug: &str| living.iter().filter(|one| one.persona_slug.as_deref() == Some(slug)).count() == 1;
    let named = living.iter().filter_map(|agent| {
        let id = said(agent.agent_id.as_str())?;
        let about = format!("{} {} {}", short(id), shown(agent.profile.as_str()), shown(agent.state.as_str()));
        Some(match said(agent.persona_slug.as_deref()).filter(|slug| is_alone(slug)) {
            Some(slug) => one(slug, &about),
            None => one(short(id), &about),
        })
    });
    named.collect()
}

fn handoffs() -> Vec<CompletionCandidate> {
    let all = newest(Home::handoff_views, |handoff: &HandoffView| &handoff.created_at);
    let about = |seen: &HandoffView| format!("{} {}", shown(seen.persona_slug.as_str()), shown(seen.step.as_str()));
    all.iter().filter_map(|seen| by_id(&seen.handoff_id, &about(seen))).collect()
}

fn items() -> Vec<CompletionCandidate> {
    let all = newest(Home::work_views, |item: &WorkView| &item.created_at);
    let about = |seen: &WorkView| format!("{} {}", shown(seen.status.as_str()), shown(seen.title.as_str()));
    all.iter().filter_map(|seen| by_id(&seen.item_id, &about(seen))).collect()
}

fn errors() -> Vec<CompletionCandidate> {
    let all = newest(Home::errors, |error: &ErrorFile| &error.at);
    all.iter().filter_map(|error| by_id(&error.error_id, &shown(error.message.as_str()))).collect()
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
