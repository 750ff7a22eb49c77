//! `agent register`: tells tasuki of an agent that you have started yourself.

use super::error::CliError;
use super::view::{ViewFile, shown};
use super::{ANSWER_SOON, CliSession, view};
use crate::agents::Profiles;
use crate::contract::AgentView;
use crate::contract::reply::AgentReply;
use crate::core::text::sanitise;
use crate::process;
use clap::Args;
use serde_json::Map;

/// `agent register`.
#[derive(Debug, Args)]
pub struct RegisterArgs {
    /// The pane, such as `%3`, or `.` for this pane. Inside tmux, it is a pane of the tmux server that you are in.
    pub pane: String,
    /// The persona to give the agent. Without a persona, tasuki lists the agent and otherwise leaves it alone.
    #[arg(long, value_name = "SLUG")]
    pub persona: Option<String>,
    /// The profile, if tasuki can't recognise it from the screen.
    #[arg(long)]
    pub profile: Option<String>,
}

/// Registers the agent in a pane.
///
/// # Errors
/// What the sidecar refused.
pub(super) fn register(session: &CliSession, args: &RegisterArgs) -> Result<(), CliError> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let pane = match args.pane.as_str() {
        "." => variable("TMUX_PANE")
            .ok_or_else(|| CliError::usage("This command does not run in a tmux pane (TMUX_PANE is not set)."))?,
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
    let answer: ViewFile<AgentReply> = session.ask("agent_register", fields, ANSWER_SOON)?;
    let id = shown(answer.agent_id.as_deref());
    session.report(&answer.json(), &format!("agent {id} in pane {}", sanitise(&pane)))?;
    // The agent is registered by now. If a file that only a note needs can't be read, the note is left out.
    note_of_another_program(session, &id);
    if let Some(slug) = &args.persona {
        note_of_others(session, slug);
    }
    Ok(())
}

/// Prints a note if the program in the pane does not look like the agent's profile: the profile may have been named, or
/// come from the persona.
fn note_of_another_program(session: &CliSession, agent_id: &str) {
    let Ok(Some(seen)) = view::agent(&session.home, agent_id) else { return };
    let Ok(profiles) = Profiles::load(Some(&session.home.profiles())) else { return };
    let profile = profiles.get(&seen.profile).filter(|profile| profile.file.detect.is_some());
    let arguments = seen.pid.and_then(|pid| process::arguments(pid).ok().flatten());
    if let Some((profile, arguments)) = profile.zip(arguments)
        && !profile.detects(&arguments)
    {
        let (pane, name) = (sanitise(&shown(seen.pane.as_deref())), sanitise(&profile.name));
        session.out.note(&format!(
            "The program in pane {pane} does not look like the agent of profile {name}; it is registered all the same."
        ));
    }
}

/// Prints a note if several living agents have the persona: its name then means none of them.
fn note_of_others(session: &CliSession, slug: &str) {
    let agents: Vec<ViewFile<AgentView>> = view::readable(&session.home.agent_views()).unwrap_or_default();
    let has_it = |agent: &&ViewFile<AgentView>| {
        agent.is_living() && agent.pane.is_some() && agent.persona_slug.as_deref() == Some(slug)
    };
    let count = agents.iter().filter(has_it).count();
    if count > 1 {
        let slug = sanitise(slug);
        session
            .out
            .note(&format!("{count} agents have the persona {slug} now: name them by their ids, or end all but one."));
    }
}
