//! `completions`: a shell script that runs this program at each Tab, so that it offers the agents, handoffs and
//! personas that exist at that moment.

mod offer;
mod on_hosts;

use super::error::CliError;
use super::view::{ViewFile, said, shown};
use super::{CliSession, fleet, schema, view};
use crate::agents::Profiles;
use crate::config::Home;
use crate::contract::{AgentView, ErrorFile, HandoffView, WorkView};
use clap::Args;
use clap_complete::env::{CompleteEnv, Shells};
use clap_complete::{ArgValueCompleter, CompletionCandidate};
use offer::{MOST_OFFERED, home, one, short};
use serde::de::DeserializeOwned;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: clap_complete::Shell,
}

/// The environment variable by which the shell's script asks for completions.
const VARIABLE: &str = "TASUKI_COMPLETE";
/// The variable by which the script says which word is at the cursor; fish leaves it out.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";
/// The bash function that is put before the generator's script; see [`whole_names`].
const WHOLE_NAMES: &str = include_str!("whole_names.bash");

/// Prints a completion script.
///
/// # Errors
/// When the output is closed.
pub fn command(session: &CliSession, args: &CompletionsArgs) -> Result<(), CliError> {
    print(session, args, "tasuki")
}

/// Prints the completion script of a program. It is made in memory first, so that our code handles a closed output, and
/// not the generator.
///
/// # Errors
/// When the output is closed.
pub(crate) fn print(session: &CliSession, args: &CompletionsArgs, program: &str) -> Result<(), CliError> {
    let mut script = Vec::new();
    let shell = args.shell.to_string();
    let shells = Shells::builtins();
    let made = shells
        .completer(&shell)
        .map(|completer| completer.write_registration(VARIABLE, program, program, program, &mut script));
    let none = || Err(CliError::refused("no_script", format!("{program} has no completion script for {shell}.")));
    let Some(Ok(())) = made else { return none() };
    let script = String::from_utf8_lossy(&script);
    match args.shell {
        clap_complete::Shell::Bash => session.out.raw(&whole_names(&script, program)),
        _ => session.out.raw(&script),
    }
}

/// The script for bash. bash ends a word at each `@`, so a function around the generator's function joins the parts of
/// names such as `kai@box`, and removes from the answers the part that bash leaves in the line.
fn whole_names(script: &str, program: &str) -> String {
    let function = format!("_clap_complete_{}", program.replace('-', "_"));
    let own = WHOLE_NAMES.replace("FUNCTION", &function);
    let script = script.replace(&format!("-F {function} "), &format!("-F {function}_whole "));
    format!("{own}{script}")
}

/// Answers a script that asks what could be typed at the cursor; returns whether this was such a question.
pub(crate) fn answer(args: &[OsString], command: fn() -> clap::Command) -> bool {
    if std::env::var_os(VARIABLE).is_none() {
        return false;
    }
    let present = std::env::current_dir().ok();
    // If completion fails, the answer is empty.
    CompleteEnv::with_factory(command).var(VARIABLE).try_complete(args, present.as_deref()).unwrap_or(true)
}

/// Lets tasuki-fleet answer a script that asks about the words after `tasuki fleet`; returns whether this was such a
/// question. If tasuki-fleet is not installed, nothing is offered.
pub(super) fn passed_on(args: &[OsString]) -> bool {
    if std::env::var_os(VARIABLE).is_none() {
        return false;
    }
    let at_cursor = std::env::var(INDEX).ok().and_then(|index| index.parse().ok());
    let Some((question, at_cursor)) = asked_of_fleet(args, at_cursor) else { return false };
    // It returns only if the program could not be run.
    let _ = Command::new(fleet::program()).args(question).env(INDEX, at_cursor.to_string()).exec();
    true
}

/// The question as tasuki-fleet takes it: the arguments, and the index of the word at the cursor.
fn asked_of_fleet(args: &[OsString], at_cursor: Option<usize>) -> Option<(Vec<OsString>, usize)> {
    let words = args.get(args.iter().position(|arg| arg == "--")? + 1..)?;
    let own = fleet::arguments(words)?;
    // If the shell does not say which word is at the cursor, it is the last one.
    let at_cursor = at_cursor.unwrap_or_else(|| words.len().saturating_sub(1));
    let at_fleet = words.iter().position(|word| word == "fleet")?;
    let question = ["--", fleet::PROGRAM].map(OsString::from).into_iter().chain(own).collect();
    // `tasuki` and `fleet` have become one word.
    (at_cursor > at_fleet).then(|| (question, at_cursor - 1))
}

/// The candidates for an argument of that name, if it names something that tasuki knows. `elsewhere`: things on other
/// hosts are offered too, as in `kai@box`.
pub(super) fn candidates(argument: &str, elsewhere: bool) -> Option<ArgValueCompleter> {
    let find: fn() -> Vec<CompletionCandidate> = match argument {
        "agent" | "previous" | "successor" => agents,
        "handoff" => handoffs,
        "persona" => personas,
        "profile" => profiles,
        "item" | "parent" => items,
        "error" => errors,
        "schema" => schemas,
        "host" | "to" => on_hosts::names,
        _ => return None,
    };
    let told = on_hosts::told_of(argument).filter(|_| elsewhere);
    Some(ArgValueCompleter::new(move |typed: &OsStr| {
        let Some(typed) = typed.to_str() else { return Vec::new() };
        let mut all = find();
        all.retain(|candidate| candidate.get_value().to_str().is_some_and(|name| name.starts_with(typed)));
        all.extend(told.into_iter().flat_map(|told| on_hosts::candidates(typed, told)));
        all
    }))
}

/// The newest valid files of a folder, sorted by the time that `at` reads from them: their names begin with random
/// digits.
fn newest<T: DeserializeOwned>(folder: fn(&Home) -> PathBuf, at: fn(&T) -> &str) -> Vec<ViewFile<T>> {
    let mut all: Vec<ViewFile<T>> = home().and_then(|home| view::readable(&folder(&home)).ok()).unwrap_or_default();
    all.sort_by(|one, other| at(other).cmp(at(one)));
    all.truncate(MOST_OFFERED);
    all
}

/// A candidate: the beginning of the id, and a description.
fn by_id(id: &str, about: &str) -> Option<CompletionCandidate> {
    Some(one(short(said(id)?), about))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str, at_cursor: Option<usize>) -> Option<(String, usize)> {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (question, at_cursor) = asked_of_fleet(&args, at_cursor)?;
        let words: Vec<String> = question.into_iter().map(|word| word.into_string().expect("UTF-8")).collect();
        Some((words.join(" "), at_cursor))
    }

    #[test]
    fn tasuki_fleet_is_asked_about_the_words_after_fleet() {
        let passed = |line: &str, at_cursor| asked(line, at_cursor).expect("it is for tasuki-fleet");
        assert_eq!(passed("tasuki -- tasuki fleet ho", Some(2)), ("-- tasuki-fleet ho".to_owned(), 1));
        // fish does not say which word is at the cursor.
        assert_eq!(passed("tasuki -- tasuki fleet accept ", None), ("-- tasuki-fleet accept ".to_owned(), 2));
        let with_home = passed("tasuki -- tasuki --home /h fleet run x", Some(4));
        assert_eq!(with_home, ("-- tasuki-fleet --home /h run x".to_owned(), 3));
        for (line, at_cursor) in [
            ("tasuki -- tasuki fleet", Some(1)),
            ("tasuki -- tasuki fleet x", Some(1)),
            ("tasuki -- tasuki send ", None),
        ] {
            assert_eq!(asked(line, at_cursor), None, "{line}");
        }
    }
}
